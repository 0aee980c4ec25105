"""Commands about topics: how many there are, what they hold, and pictures of them."""

from __future__ import annotations

import argparse
from pathlib import Path

import polyabayes as pb
from polyabayes.cli.documents import read_as_wide, size, untrained
from polyabayes.cli.keywords import CHOOSING, COSTING, TRAINING, given
from polyabayes.cli.messages import INTERRUPTED, say
from polyabayes.cli.output import (
    check_table,
    checked_file,
    checked_picture,
    picture_file,
    save_picture,
    write_table,
)
from polyabayes.exceptions import Interrupted, InvalidArgumentError
from polyabayes.io.vocabularies import resolve_vocabulary

_HTML = ".html"


def choose(arguments: argparse.Namespace) -> int:
    """Choose the number of topics."""
    plot = checked_picture(arguments.plot)
    if arguments.output is not None:
        check_table(arguments.output)
    of_the_choice = ("checkpoint", "random_state", "progress")
    model = untrained(arguments, tuple(name for name in TRAINING if name not in of_the_choice))
    corpus = pb.read_corpus(arguments.corpus, vocabulary=arguments.vocabulary)
    say(f"choosing on {size(corpus)}")
    cost = pb.choice_cost(model, corpus, arguments.sizes, **given(arguments, COSTING))
    say(str(cost))
    status = 0
    try:
        choice = pb.choose_n_components(
            model, corpus, arguments.sizes, **given(arguments, CHOOSING)
        )
    except Interrupted as interrupted:
        say(f"interrupted: {interrupted}")
        if interrupted.partial is None:
            return INTERRUPTED
        choice, status = interrupted.partial, INTERRUPTED
    print(choice)
    for row in choice.rows:
        mark = "*" if row["size"] in choice.equally_good else " "
        print(
            f"{row['size']:>6}{mark} {row['score']:>10.4f}  behind {row['behind']:>8.4f} "
            f"+- {row['behind_std_error']:.4f}  P(best) {row['probability']:.3f}"
            f"{'  dropped' if row['dropped'] else ''}"
        )
    if arguments.output is not None:
        write_table(
            {name: [row[name] for row in choice.rows] for name in choice.rows[0]}, arguments.output
        )
    if plot is not None:
        save_picture(pb.plotting.plot_choice(choice), plot)
    return status


def topics(arguments: argparse.Namespace) -> int:
    """Print the topics of a model over a corpus, or write them."""
    output = arguments.output
    page = output is not None and output.lower().endswith(_HTML)
    if page:
        checked_file(output, (_HTML,))
    elif output is not None:
        check_table(output)
    model = pb.interop.read_model(arguments.model)
    corpus = read_as_wide(model.n_features_in_, arguments.corpus, arguments.vocabulary)
    options = given(arguments, ("n_words",))
    if page:
        pb.topics.report(
            model,
            corpus,
            Path(output),
            title=Path(arguments.model).stem,
            **options,
            **given(arguments, ("random_state", "n_jobs", "progress")),
        )
        say(f"wrote {output}")
        return 0
    found = pb.topics.diagnostics(model, corpus, **options)
    order = sorted(range(len(found.tokens)), key=lambda topic: -found.tokens[topic])
    if output is not None:
        columns = {"topic": order} | {
            name: [" ".join(row[k]) if name == "words" else row[k] for k in order]
            for name, row in vars(found).items()
        }
        write_table(columns, output)
        return 0
    total = found.tokens.sum()
    for topic in order:
        words = " ".join(found.words[topic])
        print(f"{topic:>5}  {found.tokens[topic] / total:6.1%}  {words}")
    return 0


def plot(arguments: argparse.Namespace) -> int:
    """Draw topics of a saved model."""
    picture = picture_file(arguments.output, "plot")
    wants_documents = arguments.what == "weights"
    if wants_documents != (arguments.corpus is not None):
        needs = "needs documents: give" if wants_documents else "has no use for"
        raise InvalidArgumentError(f"a picture of {arguments.what} {needs} --on CORPUS")
    model = pb.interop.read_model(arguments.model)
    if wants_documents:
        corpus = read_as_wide(model.n_features_in_, arguments.corpus, arguments.vocabulary)
        ax = pb.plotting.plot_topic_weights(model, documents=corpus)
    elif arguments.what == "similarity":
        ax = pb.plotting.plot_topic_similarity(model)
    else:
        words = resolve_vocabulary(arguments.vocabulary)
        ax = pb.plotting.plot_topics(model, vocabulary=words, **given(arguments, ("n_words",)))
    save_picture(ax, picture)
    say(f"wrote {picture}")
    return 0
