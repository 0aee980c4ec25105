"""Commands about topics: what they hold, where they are, how they look."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import numpy as np

import polyabayes as pb
from polyabayes._support.output.tables import counted, printable
from polyabayes.cli.corpora import given_exposure, read
from polyabayes.cli.output import save_picture, say, write_table
from polyabayes.cli.parser import Given
from polyabayes.exceptions import InvalidArgumentError, argument
from polyabayes.io.vocabularies import resolve_vocabulary


def transform(given: Given, model: str, corpus: str, *, output: str = "-") -> int:
    """Write the topic weights of documents, with their standard deviations.

    Parameters
    ----------
    output : WEIGHTS.csv|WEIGHTS.parquet
        One row a document and topic; by default, and for '-', CSV on standard output.

    Examples
    --------
    $ polyabayes transform lda.safetensors test.npz -o weights.csv
    """
    fitted = pb.read_model(model)
    documents = read(corpus, given, fitted)
    general = given.of("log_likelihood")
    fitted.set_params(**{name: general[name] for name in ("n_jobs", "progress") if name in general})
    options = given_exposure(documents, given)
    options |= given.of("LatentDirichletAllocation.topic_weights")
    weights = fitted.topic_weights(documents, **options)
    write_table(weights._columns(), output)
    if output != "-":
        say(f"wrote {output}")
    return 0


def topics(
    given: Given, model: str, corpus: str, *, output: str | None = None, by: str | None = None
) -> int:
    """Show what the topics of a model hold.

    Parameters
    ----------
    output : TOPICS.csv|.parquet|.html
        A table of all figures, or one page for a browser; by default the words are printed.
    by : COLUMN
        Column of the metadata: mean weights of topics in the documents of each of its values.

    Examples
    --------
    $ polyabayes topics lda.safetensors train.npz -o topics.html
    """
    page = output is not None and output.lower().endswith(".html")
    fitted = pb.read_model(model)
    if page and by is not None:
        raise InvalidArgumentError(f"{argument('by')} makes a table: give a .csv or .parquet")
    documents = read(corpus, given, fitted)
    if by is not None:
        return _write_groups(fitted, documents, by, output)
    options = given.of("topics.report")
    if page:
        pb.topics.report(fitted, documents, Path(str(output)), title=Path(model).stem, **options)
        say(f"wrote {output}")
        return 0
    words = {name: options[name] for name in options if name == "n_words"}
    found = pb.topics.diagnostics(fitted, documents, **words)
    order = sorted(range(len(found.tokens)), key=lambda topic: -found.tokens[topic])
    if output is not None:
        columns = {name: [row[k] for k in order] for name, row in found._columns().items()}
        write_table(columns, output)
        say(f"wrote {output}")
        return 0
    for topic in order:
        share = found.tokens[topic] / found.tokens.sum()
        print(f"{topic:>5}  {share:6.1%}  {printable(' '.join(found.words[topic]))}")
    return 0


def _write_groups(model: Any, documents: pb.Corpus, by: str, output: str | None) -> int:
    """Mean weights of topics in groups of documents, as a table or printed."""
    found = pb.topics.by_group(model, documents, by)
    if output is not None:
        write_table(found._columns(), output)
        say(f"wrote {output}")
        return 0
    if np.isnan(found.std_errors).all():
        say(f"no intervals: each document has a value of {by} of its own")
    lower, upper = found.interval()
    for row, (group, n) in enumerate(zip(found.groups, found.n_documents, strict=True)):
        print(f"{by}={printable(str(group))}  {counted(n, 'document')}")
        for topic, mean in enumerate(found.means[row]):
            ends = lower[row, topic], upper[row, topic]
            known = "" if np.isnan(ends).any() else "  ({:.4f} to {:.4f})".format(*ends)
            print(f"{topic:>5}  {mean:9.4f}{known}")
    return 0


def plot(
    given: Given,
    what: Literal["topics", "signatures", "similarity", "weights", "groups"],
    model: str,
    *,
    output: str,
    on: str | None = None,
    by: str | None = None,
) -> int:
    """Draw topics of a saved model.

    Parameters
    ----------
    what
        Most probable words, or 96 channels of mutations, likeness of topics, shares of the tokens
        of --on CORPUS, or mean weights in groups of its documents, --by a column of their metadata.
    output : FILE.png|.pdf|.svg
        The picture.
    by : COLUMN
        Column of the metadata that holds the groups.

    Examples
    --------
    $ polyabayes plot topics lda.safetensors -o topics.png
    """
    if (what in ("weights", "groups")) != (on is not None):
        needs = "needs documents: give" if on is None else "has no use for"
        raise InvalidArgumentError(f"a picture of {what} {needs} --on CORPUS")
    if (what == "groups") != (by is not None):
        needs = "needs" if by is None else "has no use for"
        raise InvalidArgumentError(f"a picture of {what} {needs} {argument('by')}")
    fitted = pb.read_model(model)
    if on is not None:
        documents = read(on, given, fitted)
        if what == "groups":
            ax = pb.plotting.plot_prevalence(pb.topics.by_group(fitted, documents, by))
        else:
            ax = pb.plotting.plot_topic_weights(fitted, documents=documents)
    elif what == "similarity":
        ax = pb.plotting.plot_topic_similarity(fitted)
    elif what == "signatures":
        ax = pb.plotting.plot_signatures(fitted)
    else:
        words = resolve_vocabulary(given.of("read_corpus").get("vocabulary"))
        ax = pb.plotting.plot_topics(fitted, vocabulary=words, **given.of("plotting.plot_topics"))
    save_picture(ax, output)
    return 0
