"""Commands on documents and topics."""

from __future__ import annotations

import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import polyabayes as pb
from polyabayes._support.tables import counted
from polyabayes.cli.output import (
    INTERRUPTED,
    check_table,
    checked_file,
    checked_folder,
    checked_picture,
    escaped,
    keep,
    need,
    refuse_unwritable,
    save_picture,
    say,
    write_table,
)
from polyabayes.cli.parser import Given, make_parser
from polyabayes.cli.signatures import documented
from polyabayes.cli.tables import described, write_groups
from polyabayes.exceptions import Interrupted, InvalidArgumentError, argument
from polyabayes.io.vocabularies import resolve_vocabulary

_FLOAT_BYTES = 8
_MODELS: dict[str, Any] = {"lda": pb.LatentDirichletAllocation, "pfa": pb.PoissonFactorAnalysis}
_CORPUS_SUFFIXES = (".npz", ".ldac", ".ldac.gz", ".mtx", ".mtx.gz")
# These formats do not tell the number of words, only the largest that occurs.
_FORMATS_WITHOUT_WIDTH = (".ldac", ".dat", ".lda-c", ".svmlight", ".libsvm")


def fit(
    given: Given,
    model: str,
    corpus: str,
    *,
    n_components: int,  # noqa: ARG001
    output: str,
    metadata: str | None = None,
) -> int:
    """Train a model.

    Parameters
    ----------
    model : {"lda", "pfa"}
        The kind of model.
    corpus : CORPUS
    n_components : K
        Number of topics.
    output : MODEL.safetensors
        The file of the model.
    metadata : TABLE.csv|TABLE.parquet
        Table with a row for each document, of which formulas take columns; .npz keeps its own.

    Examples
    --------
    $ polyabayes fit lda train.npz -k 5 -o lda.safetensors --seed 0
    """
    path = checked_file(output, (".safetensors",))
    estimator = _untrained(given, model)
    try:
        data = _read(corpus, given, metadata)
        refuse_unwritable(path.parent, _FLOAT_BYTES * estimator.n_components * data.n_words)
        say(f"training on {size(data)}")
        start = time.perf_counter()
        estimator.fit(data, **_exposure(data, given))
    except Interrupted as interrupted:
        keep({path: interrupted.partial.save})
        say(f"interrupted: {interrupted}; {path} holds the model reached")
        return INTERRUPTED
    except KeyboardInterrupt:
        say(f"interrupted before the first sweep: there is no model, and {path} is not written")
        return INTERRUPTED
    keep({path: estimator.save})
    unit = "iteration" if getattr(estimator, "fit_method", None) == "em" else "sweep"
    say(f"{counted(estimator.n_iter_, unit)} in {time.perf_counter() - start:.1f} s; wrote {path}")
    return 0


def _untrained(given: Given, kind: str) -> Any:
    """The model that the options describe, checked before documents are read."""
    given.refuse_other_kinds(kind)
    model = _MODELS[kind](**given.of(_MODELS[kind].__name__))
    model._check_parameters()
    return model


def score(
    given: Given,
    model: str,
    corpus: str,
    *,
    output: str | None = None,
    metadata: str | None = None,
    escape_formulas: bool = False,
) -> int:
    """Score documents with standard errors.

    Parameters
    ----------
    model : MODEL
    corpus : CORPUS
    output : SCORES.csv|SCORES.parquet
        One row a document; '-' is CSV on standard output. By default the total is printed.
    metadata : TABLE.csv|TABLE.parquet
        Table with a row for each document, of which formulas take columns; .npz keeps its own.
    escape_formulas : bool
        Put ' before ids that begin with = + - @, which spreadsheets execute.

    Examples
    --------
    $ polyabayes score lda.safetensors test.npz -o scores.csv --seed 0
    """
    if output is not None:
        check_table(output)
    scorer = pb.interop.read_model(model)
    documents = _read_for(scorer, corpus, given, metadata)
    options = {**_exposure(documents, given), **given.of("log_likelihood")}
    try:
        result = pb.log_likelihood(scorer, documents, **options)
    except Interrupted as interrupted:
        if output is None:
            say(f"interrupted: {interrupted}")
            return INTERRUPTED
        write_table(escaped(interrupted.partial._columns(), wanted=escape_formulas), output)
        place = "the output" if output == "-" else output
        say(f"interrupted: {interrupted}, the others are empty in {place}")
        return INTERRUPTED
    if output is not None:
        write_table(escaped(result._columns(), wanted=escape_formulas), output)
    print(_summary(result), file=sys.stdout if output is None else sys.stderr)
    return 0


def compare(
    given: Given,
    models: list[str],
    *,
    on: str,
    plot: str | None = None,
    metadata: str | None = None,
) -> int:
    """Compare models on the same documents.

    Parameters
    ----------
    models : MODEL
    on : CORPUS
    plot : FILE.png|.pdf|.svg
        Draw the table.
    metadata : TABLE.csv|TABLE.parquet
        Table with a row for each document, of which formulas take columns; .npz keeps its own.

    Examples
    --------
    $ polyabayes compare lda.safetensors pfa.safetensors --on test.npz --plot models.png
    """
    picture = checked_picture(plot, "--plot")
    found = {
        name: pb.interop.read_model(path)
        for name, path in zip(_model_names(models), models, strict=True)
    }
    corpus = _read_for(next(iter(found.values())), on, given, metadata)
    say(f"comparing on {size(corpus)}")
    options = {**_exposure(corpus, given), **given.of("compare", "log_likelihood")}
    comparison = pb.compare(found, corpus, **options)
    print(comparison)
    if picture is not None:
        save_picture(pb.plotting.plot_comparison(comparison), picture)
        say(f"wrote {picture}")
    return 0


def split(given: Given, corpus: str, *, train: str, test: str) -> int:
    """Hold documents out.

    Parameters
    ----------
    corpus : CORPUS
    train : FILE
        Documents to train on: .npz, .ldac, .ldac.gz, .mtx or .mtx.gz.
    test : FILE
        Documents held out, likewise.

    Examples
    --------
    $ polyabayes split corpus.ldac --train train.npz --test test.npz --seed 0
    """
    parts = [checked_file(path, _CORPUS_SUFFIXES) for path in (train, test)]
    whole = pb.read_corpus(corpus, **given.of("read_corpus"))
    for path, part in zip(parts, whole.split(**given.of("Corpus.split")), strict=True):
        pb.write_corpus(part, path)
        say(f"wrote {size(part)} to {path}")
    return 0


def choose(
    given: Given,
    model: str,
    corpus: str,
    *,
    output: str | None = None,
    plot: str | None = None,
    metadata: str | None = None,
) -> int:
    """Choose the number of topics, with its uncertainty.

    Parameters
    ----------
    model : {"lda", "pfa"}
        The kind of model.
    corpus : CORPUS
    output : TABLE.csv|TABLE.parquet
        One row a size; by default none.
    plot : FILE.png|.pdf|.svg
        Draw the choice.
    metadata : TABLE.csv|TABLE.parquet
        Table with a row for each document, of which formulas take columns; .npz keeps its own.

    Examples
    --------
    $ polyabayes choose lda train.npz --sizes 2,5,10 --plot choice.png --seed 0
    """
    picture = checked_picture(plot, "--plot")
    if output is not None:
        check_table(output)
    estimator = _untrained(given, model)
    data = _read(corpus, given, metadata)
    say(f"choosing on {size(data)}")
    options = given.of("choose_n_components")
    wanted = documented("choice_cost").parameters
    say(str(pb.choice_cost(estimator, data, **{n: options[n] for n in options if n in wanted})))
    status = 0
    try:
        choice = pb.choose_n_components(estimator, data, **options)
    except Interrupted as interrupted:
        say(f"interrupted: {interrupted}")
        if interrupted.partial is None:
            return INTERRUPTED
        choice, status = interrupted.partial, INTERRUPTED
    print(choice)
    for row in choice.rows:
        mark = "*" if row["size"] in choice.equally_good else " "
        chance = choice.probabilities.get(row["size"])
        print(
            f"{row['size']:>6}{mark} {row['score']:>10.4f}  behind {row['behind']:>8.4f} "
            f"+- {row['behind_std_error']:.4f}  folds {row['n_folds']}  "
            f"{'' if chance is None else f'P(best) {chance:.3f}'}"
        )
    if output is not None:
        write_table({name: [row[name] for row in choice.rows] for name in choice.rows[0]}, output)
    if picture is not None:
        save_picture(pb.plotting.plot_choice(choice), picture)
    return status


def topics(
    given: Given,
    model: str,
    corpus: str,
    *,
    output: str | None = None,
    metadata: str | None = None,
    by: str | None = None,
) -> int:
    """Show what the topics of a model hold.

    Parameters
    ----------
    model : MODEL
    corpus : CORPUS
    output : TOPICS.csv|.parquet|.html
        A table of all figures, or one page for a browser; by default the words are printed.
    metadata : TABLE.csv|TABLE.parquet
        Table with a row for each document, of which formulas take columns; .npz keeps its own.
    by : COLUMN
        Column of the metadata: mean weights of topics in the documents of each of its values.

    Examples
    --------
    $ polyabayes topics lda.safetensors train.npz -o topics.html
    """
    page = output is not None and output.lower().endswith(".html")
    if output is not None:
        checked_file(output, (".html",)) if page else check_table(output)
    fitted = pb.interop.read_model(model)
    if page and by is not None:
        raise InvalidArgumentError(f"{argument('by')} makes a table: give a .csv or .parquet")
    documents = _read_for(fitted, corpus, given, metadata)
    if by is not None:
        return write_groups(fitted, documents, by, output)
    options = given.of("topics.report")
    if page:
        pb.topics.report(fitted, documents, Path(str(output)), title=Path(model).stem, **options)
        say(f"wrote {output}")
        return 0
    words = {name: options[name] for name in options if name == "n_words"}
    found = pb.topics.diagnostics(fitted, documents, **words)
    order = sorted(range(len(found.tokens)), key=lambda topic: -found.tokens[topic])
    if output is not None:
        columns = {"topic": order} | {
            name: [" ".join(row[k]) if name == "words" else row[k] for k in order]
            for name, row in vars(found).items()
        }
        write_table(columns, output)
        return 0
    for topic in order:
        share = found.tokens[topic] / found.tokens.sum()
        print(f"{topic:>5}  {share:6.1%}  {' '.join(found.words[topic])}")
    return 0


def plot(given: Given, what: str, model: str, *, output: str, on: str | None = None) -> int:
    """Draw topics of a saved model.

    Parameters
    ----------
    what : {"topics", "similarity", "weights"}
        Most probable words, likeness of topics, or shares of the tokens of --on CORPUS.
    model : MODEL
    output : FILE.png|.pdf|.svg
        The picture.
    on : CORPUS

    Examples
    --------
    $ polyabayes plot topics lda.safetensors -o topics.png
    """
    picture = checked_picture(output, "plot")
    assert picture is not None
    if (what == "weights") != (on is not None):
        needs = "needs documents: give" if on is None else "has no use for"
        raise InvalidArgumentError(f"a picture of {what} {needs} --on CORPUS")
    fitted = pb.interop.read_model(model)
    if on is not None:
        ax = pb.plotting.plot_topic_weights(fitted, documents=_read_for(fitted, on, given))
    elif what == "similarity":
        ax = pb.plotting.plot_topic_similarity(fitted)
    else:
        words = resolve_vocabulary(given.of("read_corpus").get("vocabulary"))
        ax = pb.plotting.plot_topics(fitted, vocabulary=words, **given.of("plotting.plot_topics"))
    save_picture(ax, picture)
    say(f"wrote {picture}")
    return 0


def demo(given: Given, *, output: str = "demo-output") -> int:
    """Train, score and compare on made-up and on real documents.

    Parameters
    ----------
    output : FOLDER
        Where models, scores and pictures go; by default demo-output.

    Examples
    --------
    $ polyabayes demo -o demo-output
    """
    from polyabayes.cli.demo import run_demo

    need("pandas", "frames", "the demo")
    need("matplotlib", "plot", "the demo")
    run_demo(checked_folder(output), **given.of("log_likelihood"))
    return 0


def completion(given: Given, shell: str) -> int:  # noqa: ARG001
    """Print what makes a shell complete these commands.

    Parameters
    ----------
    shell : {"bash", "zsh", "tcsh"}
        The shell.

    Examples
    --------
    $ polyabayes completion bash > ~/.local/share/bash-completion/completions/polyabayes
    """
    need("shtab", "completion", "completion")
    import shtab

    print(shtab.complete(make_parser(pb.__version__), shell))
    return 0


def read_as_wide(n_words: int, path: str, options: dict[str, Any]) -> pb.Corpus:
    """Read a corpus of so many words where its format does not tell their number."""
    name = path.lower().removesuffix(".gz")
    if options.get("vocabulary") is None and (path == "-" or name.endswith(_FORMATS_WITHOUT_WIDTH)):
        return pb.read_corpus(path, n_words=n_words, **options)
    return pb.read_corpus(path, **options)


def _read_for(model: Any, path: str, given: Given, metadata: str | None = None) -> pb.Corpus:
    corpus = read_as_wide(model.n_features_in_, path, given.of("read_corpus"))
    return described(corpus, metadata)


def _read(path: str, given: Given, metadata: str | None) -> pb.Corpus:
    return described(pb.read_corpus(path, **given.of("read_corpus")), metadata)


def _exposure(corpus: pb.Corpus, given: Given) -> dict[str, Any]:
    """Exposures that the user gave, which LDA refuses; others come with the corpus."""
    return {"exposure": corpus.exposure} if "exposure" in given.of("read_corpus") else {}


def size(corpus: pb.Corpus) -> str:
    """How large a corpus is."""
    return repr(corpus).removeprefix("<Corpus: ").removesuffix(">")


def _model_names(paths: list[str]) -> list[str]:
    """Stems of the files; where those are equal, whole paths, numbered if those are equal too."""
    stems = Counter(Path(path).stem for path in paths)
    names: list[str] = []
    for path in paths:
        stem = Path(path).stem
        name = wanted = stem if stems[stem] == 1 else path.removesuffix(".safetensors")
        number = 1
        while name in names:
            number += 1
            name = f"{wanted} ({number})"
        names.append(name)
    return names


def _summary(result: pb.LogLikelihood) -> str:
    used = ", ".join(f"{method} {n:,}" for method, n in Counter(result.methods.tolist()).items())
    lines = [
        f"documents       {len(result.values):,} ({used})",
        f"event           {result.event}{', given the length' if result.given_length else ''}",
        f"total           {result.total:,.2f} +- {result.total_std_error:.2g} nats",
        f"nats per token  {result.nats_per_token:.6f} +- {result.nats_per_token_std_error:.2g}",
        f"perplexity      {result.perplexity:,.2f}",
    ]
    if result.n_unseen_tokens:
        lines.append(f"unseen words    {result.n_unseen_tokens:,} tokens left out")
    return "\n".join(lines)
