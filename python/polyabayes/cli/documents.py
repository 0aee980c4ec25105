"""Commands that train, score and compare models of documents."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import polyabayes as pb
from polyabayes._support.output.tables import counted
from polyabayes.cli.corpora import given_exposure, read, size
from polyabayes.cli.output import (
    INTERRUPTED,
    escaped,
    keep,
    need,
    refuse_unwritable,
    save_picture,
    say,
    write_table,
)
from polyabayes.cli.parser import Given, make_parser
from polyabayes.exceptions import Interrupted, InvalidArgumentError, argument

_FLOAT_BYTES = 8
_MODELS: dict[str, Any] = {"lda": pb.LatentDirichletAllocation, "pfa": pb.PoissonFactorAnalysis}


def fit(
    given: Given,
    model: str,
    corpus: str,
    *,
    n_components: int,  # noqa: ARG001
    output: str,
    note: Mapping[str, Any] | None = None,
) -> int:
    """Train a model.

    Parameters
    ----------
    model : {"lda", "pfa"}
        The kind of model.
    n_components : K
        Number of topics.
    output : MODEL.safetensors
        The file of the model.
    note : NAME=VALUE
        What the file shall tell of the model, by polyabayes info; as often as you like.

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
        keep({path: partial(interrupted.partial.save, notes=note)})
        way_on = "" if estimator.checkpoint is None else "; the same command goes on from there"
        say(f"interrupted: {interrupted}; {path} holds the model reached{way_on}")
        return INTERRUPTED
    except KeyboardInterrupt:
        say(f"interrupted before the first sweep: there is no model, and {path} is not written")
        return INTERRUPTED
    keep({path: partial(estimator.save, notes=note)})
    unit = "iteration" if getattr(estimator, "fit_method", None) == "em" else "sweep"
    say(f"{counted(estimator.n_iter_, unit)} in {time.perf_counter() - start:.1f} s; wrote {path}")
    return 0


def _untrained(given: Given, kind: str) -> Any:
    """The model that the options describe, checked before documents are read."""
    given.refuse_other_kinds(kind)
    model = _MODELS[kind](**given.of(_MODELS[kind].__name__))
    model._check_parameters()
    return model


def score(given: Given, model: str, corpus: str, *, output: str | None = None) -> int:
    """Score documents with standard errors.

    Parameters
    ----------
    output : SCORES.csv|SCORES.parquet
        One row a document; '-' is CSV on standard output. By default the total is printed.

    Examples
    --------
    $ polyabayes score lda.safetensors test.npz -o scores.csv --seed 0
    """
    scorer = pb.interop.read_model(model)
    documents = read(corpus, given, scorer)
    options = {**given_exposure(documents, given), **given.of("log_likelihood")}
    try:
        result = pb.log_likelihood(scorer, documents, **options)
    except Interrupted as interrupted:
        kept = ""
        if output is not None:
            write_table(escaped(interrupted.partial._columns(), given), output)
            kept = f", the others are empty in {'the output' if output == '-' else output}"
        say(f"interrupted: {interrupted}{kept}")
        return INTERRUPTED
    if output is not None:
        write_table(escaped(result._columns(), given), output)
    print(_summary(result), file=sys.stdout if output is None else sys.stderr)
    return 0


def compare(given: Given, models: list[str], *, on: str, plot: str | None = None) -> int:
    """Compare models on the same documents.

    Parameters
    ----------
    models : MODEL
    plot : FILE.png|.pdf|.svg
        Draw the table.

    Examples
    --------
    $ polyabayes compare lda.safetensors pfa.safetensors --on test.npz --plot models.png
    """
    found = {
        name: pb.interop.read_model(path)
        for name, path in zip(_model_names(models), models, strict=True)
    }
    corpus = read(on, given, next(iter(found.values())))
    say(f"comparing on {size(corpus)}")
    options = {**given_exposure(corpus, given), **given.of("compare", "log_likelihood")}
    comparison = pb.compare(found, corpus, **options)
    print(comparison)
    if plot is not None:
        save_picture(pb.plotting.plot_comparison(comparison), plot)
    return 0


def choose(
    given: Given, model: str, corpus: str, *, output: str | None = None, plot: str | None = None
) -> int:
    """Choose the number of topics, with its uncertainty.

    Parameters
    ----------
    model : {"lda", "pfa"}
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
    if plot is not None:
        save_picture(pb.plotting.plot_choice(choice), plot)
    return status


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
    ]
    if result.event != "counts":
        lines.append(f"perplexity      {result.perplexity:,.2f}")
    if result.n_unseen_tokens:
        lines.append(f"unseen words    {result.n_unseen_tokens:,} tokens left out")
    return "\n".join(lines)
