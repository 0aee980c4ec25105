"""Commands that train, score and compare models of documents."""

from __future__ import annotations

import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any, Literal

import polyabayes as pb
from polyabayes._support.output.tables import columns_of, counted, measured, text_table
from polyabayes.cli import gates
from polyabayes.cli.corpora import given_exposure, read, size
from polyabayes.cli.output import (
    INTERRUPTED,
    keep,
    refuse_unwritable,
    save_picture,
    say,
    write_table,
)
from polyabayes.cli.parser import Given
from polyabayes.exceptions import Interrupted, InvalidArgumentError, argument

_FLOAT_BYTES = 8
_MODELS = {"lda": "LatentDirichletAllocation", "pfa": "PoissonFactorAnalysis"}


def fit(
    given: Given,
    model: Literal["lda", "pfa"],
    corpus: str,
    *,
    n_components: int,  # noqa: ARG001
    output: str,
) -> int:
    """Train a model.

    Parameters
    ----------
    model
        The kind of model.
    n_components : K
        Number of topics.
    output : MODEL.safetensors
        The file of the model.

    Examples
    --------
    $ polyabayes fit lda train.npz -k 5 -o lda.safetensors --seed 0
    """
    path = Path(output)
    estimator = _untrained(given, model)
    if given.metadata is not None and estimator.formula is None:
        raise InvalidArgumentError(
            f"{argument('metadata')} holds columns for {argument('formula')}: give both, or neither"
        )
    try:
        data = read(corpus, given)
        refuse_unwritable(path.parent, _FLOAT_BYTES * estimator.n_components * data.n_words)
        say(f"training on {size(data)}")
        start = time.perf_counter()
        estimator.fit(data, **given_exposure(data, given))
    except Interrupted as interrupted:
        keep({path: interrupted.partial.save})
        way_on = "" if estimator.checkpoint is None else "; the same command goes on from there"
        say(f"interrupted: {interrupted}; {path} holds the model reached{way_on}")
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
    model = getattr(pb, _MODELS[kind])(**given.of(_MODELS[kind]))
    model._check_parameters()
    return model


def score(
    given: Given,
    model: str,
    corpus: str,
    *,
    output: str | None = None,
    json: bool = False,
    fail_below: float | None = None,
    baseline: str | None = None,
    max_time: float | None = None,
) -> int:
    """Score documents with standard errors.

    Parameters
    ----------
    output : SCORES.csv|SCORES.parquet
        One row a document; '-' is CSV on standard output. By default the total is printed.
    json
        Print totals and documents as JSON
    fail_below : NATS
        Exit status 1 if the nats per token, with 1.96 standard errors, are below this
    baseline : SCORES.json
        Exit status 1 if the model is worse on new documents than the one of an earlier --json of
        the same documents, with 95 % confidence
    max_time : SECONDS
        Stop after this time with exit status 124

    Examples
    --------
    $ polyabayes score lda.safetensors test.npz -o scores.csv --seed 0
    """
    if json and output == "-":
        raise InvalidArgumentError("--json and --output - both want standard output: give a file")
    scorer = pb.read_model(model)
    documents = read(corpus, given, scorer)
    earlier = None if baseline is None else gates.read_scores(baseline, documents.n_documents)
    options = {**given_exposure(documents, given), **given.of("log_likelihood")}
    with gates.limited(max_time) as stopped:
        try:
            result = pb.log_likelihood(scorer, documents, **options)
        except Interrupted as interrupted:
            kept = ""
            if output is not None:
                write_table(interrupted.partial._columns(), output)
                kept = f", the others are empty in {'the output' if output == '-' else output}"
            say(f"interrupted: {interrupted}{kept}")
            return stopped.status
    if output is not None:
        write_table(result._columns(), output)
    text = result.to_json() if json else _summary(result)
    print(text, file=sys.stdout if json or output is None else sys.stderr)
    ahead = None if earlier is None else gates.ahead_of(earlier, result)
    return gates.status(Path(model).stem, result, fail_below, ahead)


def compare(
    given: Given,
    models: list[str],
    *,
    on: str,
    plot: str | None = None,
    json: bool = False,
    fail_below: float | None = None,
    baseline: str | None = None,
    max_time: float | None = None,
) -> int:
    """Compare models on the same documents.

    Parameters
    ----------
    models : MODEL
    plot : FILE.png|.pdf|.svg
        Draw the table.
    json
        Print the table as JSON
    fail_below : NATS
        Exit status 1 if the nats per token of the first model, with 1.96 standard errors, are below
        this
    baseline : MODEL
        Compare this model, too; exit status 1 if the first model is worse on new documents, with
        95 % confidence
    max_time : SECONDS
        Stop after this time with exit status 124

    Examples
    --------
    $ polyabayes compare lda.safetensors pfa.safetensors --on test.npz --plot models.png
    """
    paths = [*models, *([] if baseline is None else [baseline])]
    names = _model_names(paths)
    found = {name: pb.read_model(path) for name, path in zip(names, paths, strict=True)}
    corpus = read(on, given, found[names[0]])
    say(f"comparing on {size(corpus)}")
    options = {**given_exposure(corpus, given), **given.of("compare", "log_likelihood")}
    with gates.limited(max_time):
        comparison = pb.compare(found, corpus, **options)
    print(comparison.to_json() if json else comparison)
    if plot is not None:
        save_picture(pb.plotting.plot_comparison(comparison), plot)
    ahead = None if baseline is None else comparison.interval(names[0], names[-1])
    return gates.status(names[0], comparison.results[names[0]], fail_below, ahead)


def choose(
    given: Given,
    model: Literal["lda", "pfa"],
    corpus: str,
    *,
    output: str | None = None,
    plot: str | None = None,
) -> int:
    """Choose the number of topics, with its uncertainty.

    Parameters
    ----------
    model
        The kind of model.
    output : TABLE.csv|TABLE.parquet
        One row a size; by default none.
    plot : FILE.png|.pdf|.svg
        Draw the choice.

    Examples
    --------
    $ polyabayes choose lda train.npz --sizes 2,5,10 --plot choice.png --seed 0
    """
    estimator = _untrained(given, model)
    data = read(corpus, given)
    say(f"choosing on {size(data)}")
    options = given.of("choose_n_components")
    status = 0
    try:
        choice = pb.choose_n_components(estimator, data, **options)
    except Interrupted as interrupted:
        way_on = "; the same command goes on from there" if "checkpoint" in options else ""
        say(f"interrupted: {interrupted}{way_on}")
        if interrupted.partial is None:
            return INTERRUPTED
        choice, status = interrupted.partial, INTERRUPTED
    print(choice)
    shown = ("size", "score", "std_error", "behind", "behind_std_error", "n_folds", "probability")
    print(text_table(columns_of({x: [row[x] for row in choice.rows] for x in shown})))
    if output is not None:
        write_table({name: [row[name] for row in choice.rows] for name in choice.rows[0]}, output)
    if plot is not None:
        save_picture(pb.plotting.plot_choice(choice), plot)
    return status


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
        f"total           {measured(result.total, result.total_std_error)} nats",
        "nats per token  " + measured(result.nats_per_token, result.nats_per_token_std_error),
    ]
    if result.event != "counts":
        lines.append(f"perplexity      {result.perplexity:,.2f}")
    if result.n_unseen_tokens:
        lines.append(f"unseen words    {result.n_unseen_tokens:,} tokens left out")
    return "\n".join(lines)
