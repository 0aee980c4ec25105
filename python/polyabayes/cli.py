"""The command line: every subcommand is a thin call of the public API.

Results go to files or to standard output, everything else to standard error. The exit status is
2 after a mistake of the user, with one line that says which, and 130 after Ctrl-C.
"""

from __future__ import annotations

import argparse
import csv
import importlib.util
import io
import os
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TextIO

import numpy as np

import polyabayes as pb
from polyabayes._cli_options import (
    CORPUS_SUFFIXES,
    DECOMPOSITION,
    EVIDENCE,
    GENERAL,
    MODEL,
    SCORING,
    SEARCH_SCORING,
    SEARCHING,
    TRAINING,
    given,
    make_parser,
)
from polyabayes._missing_cells import observed_outside
from polyabayes.demo import run_demo
from polyabayes.exceptions import (
    FileAccessError,
    Interrupted,
    InvalidArgumentError,
    MissingDependencyError,
    PolyabayesError,
    PolyabayesWarning,
)
from polyabayes.io._files import replacing

__all__ = ["main"]

_USER_ERROR = 2
_INTERRUPTED = 130
_BROKEN_PIPE = 141

_MODELS = {"lda": pb.LatentDirichletAllocation, "pfa": pb.PoissonFactorAnalysis}
_PICTURE_SUFFIXES = (".png", ".pdf", ".svg")
# These formats do not tell the number of words, only the largest that occurs.
_FORMATS_WITHOUT_WIDTH = (".ldac", ".dat", ".lda-c", ".svmlight", ".libsvm")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    argv : sequence of str, optional
        The arguments; None takes those of the process.

    Returns
    -------
    int
        Exit status: 0, 2 after a mistake of the user, 130 after Ctrl-C, 141 when the reader of
        standard output has gone.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("always", PolyabayesWarning)
        warnings.showwarning = _show_warning
        try:
            arguments = make_parser(pb.__version__).parse_args(argv)
            status = _COMMANDS[arguments.command](arguments)
            sys.stdout.flush()
        except KeyboardInterrupt:
            _say("interrupted")
            return _INTERRUPTED
        except BrokenPipeError:
            _discard_output()
            return _BROKEN_PIPE
        except PolyabayesError as error:
            return _fail(str(error))
        except OSError as error:
            _discard_output()
            place = error.filename or "the output"
            return _fail(f"cannot write {place}: {error.strerror or error}")
    return status


def _fit(arguments: argparse.Namespace) -> int:
    for option, model in (("prior", "pfa"), ("sampler", "pfa"), ("fit_method", "lda")):
        if arguments.model != model and getattr(arguments, option) is not None:
            name = option.replace("_", "-")
            raise InvalidArgumentError(
                f"--{name} is an option of {model}, not of {arguments.model}"
            )
    output = _output(arguments.output, (".safetensors",))
    model = _MODELS[arguments.model](**given(arguments, TRAINING))
    corpus = pb.read_corpus(arguments.corpus, vocabulary=arguments.vocabulary)
    _say(f"training on {_size(corpus)}")
    start = time.perf_counter()
    try:
        model.fit(corpus)
    except Interrupted as interrupted:
        interrupted.partial.save(output)
        _say(f"interrupted: {interrupted}; {output} holds the model reached")
        return _INTERRUPTED
    model.save(output)
    units = "iterations" if arguments.fit_method == "em" else "sweeps"
    _say(f"{model.n_iter_:,} {units} in {time.perf_counter() - start:.1f} s; wrote {output}")
    return 0


def _score(arguments: argparse.Namespace) -> int:
    _check_table_output(arguments.output)
    model = pb.load(arguments.model)
    corpus = _read_for(model, arguments)
    try:
        result = pb.log_likelihood(model, corpus, **given(arguments, SCORING))
    except Interrupted as interrupted:
        _write_table(interrupted.partial._columns(), arguments.output)
        place = "the output" if arguments.output == "-" else arguments.output
        _say(f"interrupted: {interrupted}, the others are empty in {place}")
        return _INTERRUPTED
    _write_table(result._columns(), arguments.output)
    print(_summary(result), file=sys.stderr)
    return 0


def _compare(arguments: argparse.Namespace) -> int:
    plot = arguments.plot and _output(arguments.plot, _PICTURE_SUFFIXES)
    if plot:
        _need("matplotlib", "plot", "--plot")
    models = {
        name: pb.load(path)
        for name, path in zip(_model_names(arguments.models), arguments.models, strict=True)
    }
    corpus = _read_for(next(iter(models.values())), arguments)
    _say(f"comparing on {_size(corpus)}")
    comparison = pb.compare(models, corpus, **given(arguments, SCORING))
    print(comparison)
    if plot:
        _save_picture(pb.plotting.plot_comparison(comparison), plot)
        _say(f"wrote {plot}")
    return 0


def _split(arguments: argparse.Namespace) -> int:
    parts = [_output(path, CORPUS_SUFFIXES) for path in (arguments.train, arguments.test)]
    if parts[0].resolve() == parts[1].resolve():
        raise InvalidArgumentError("--train and --test are the same file; give two names")
    corpus = pb.read_corpus(arguments.corpus, vocabulary=arguments.vocabulary)
    halves = corpus.split(**given(arguments, ("test_size", "random_state")))
    for path, half in zip(parts, halves, strict=True):
        pb.write_corpus(half, path)
        _say(f"wrote {_size(half)} to {path}")
    return 0


def _search(arguments: argparse.Namespace) -> int:
    _check_table_output(arguments.output)
    plot = arguments.plot and _output(arguments.plot, _PICTURE_SUFFIXES)
    if plot:
        _need("matplotlib", "plot", "--plot")
    if arguments.folds is not None and arguments.test:
        raise InvalidArgumentError("--folds holds documents out by itself: leave out --test")
    training = given(arguments, ("max_iter", "tol", "n_jobs"))
    search = pb.WitnessSearch(
        pb.LatentDirichletAllocation(learn_priors=True, **training),
        arguments.priors[0],
        scoring_options=given(arguments, SEARCH_SCORING),
        **given(arguments, SEARCHING),
    )
    corpus = pb.read_corpus(arguments.corpus, vocabulary=arguments.vocabulary)
    test = None
    if arguments.test:
        test = _read_as_wide(corpus.n_words, arguments.test, arguments.vocabulary)
    _say(f"searching on {_size(corpus)}")
    if arguments.folds is not None:
        options = given(arguments, ("n_workers",))
        others = arguments.priors[1:]
        folds = pb.cross_validate(search, corpus, arguments.folds, priors=others, **options)
        _write_table(folds, arguments.output)
        if plot:
            _save_picture(pb.plotting.plot_predictive_bounds(folds), plot)
        return 0
    try:
        search.fit(corpus)
    except Interrupted as interrupted:
        _write_table(_stacked(search, arguments.priors), arguments.output)
        _say(f"interrupted: {interrupted}")
        return _INTERRUPTED
    _write_table(_stacked(search, arguments.priors), arguments.output)
    _say(f"{search.n_steps_:,} sizes, stopped by {search.stop_reason_}")
    searches = {repr(prior): search.under(prior) for prior in arguments.priors}
    if plot:
        _save_picture(pb.plotting.plot_size_bounds(searches), plot)
    for name, one in searches.items():
        print(_search_summary(name, one, test), file=sys.stderr)
    return 0


def _stacked(search: pb.WitnessSearch, priors: Sequence[Any]) -> dict[str, Any]:
    """The bounds under each prior one below the other, the prior in the first column."""
    tables = [search.under(prior).bounds_ for prior in priors]
    names = np.repeat([repr(prior) for prior in priors], search.n_steps_)
    columns = {name: np.concatenate([table[name] for table in tables]) for name in tables[0]}
    return {"prior": names, **columns}


def _search_summary(name: str, search: pb.WitnessSearch, test: pb.Corpus | None) -> str:
    row = search.bounds_.row(-1)
    least, most = search.unexplored_posterior_
    lines = [
        name,
        f"  ln p(y)         {row['lower']:,.2f} to {row['upper']:,.2f} nats",
        f"  best size       {search.best_} (of trained models, which does not choose a size)",
        f"  not explored    {least:.2g} to {most:.2g} of the posterior",
    ]
    if test is not None:
        bounds = search.predictive_bounds(test)
        lines += [
            f"  ln p(test)      {bounds.lower:,.2f} to {bounds.upper:,.2f} nats",
            f"  by best size    {bounds.best:,.2f} +- {bounds.best_std_error:.2g} nats",
        ]
    if not all(search.holds_.values()):
        failing = ", ".join(name for name, holds in search.holds_.items() if not holds)
        lines.append(f"  not rigorous    {failing}")
    return "\n".join(lines)


def _evidence(arguments: argparse.Namespace) -> int:
    plot = arguments.plot and _output(arguments.plot, _PICTURE_SUFFIXES)
    if plot:
        _need("matplotlib", "plot", "--plot")
        if arguments.tried is None:
            raise InvalidArgumentError("--plot draws evidence against size; add --try NODE=N..M")
    tensor = pb.read_tensor(arguments.tensor, arguments.axes)
    options = given(arguments, EVIDENCE)
    if arguments.missing is not None:
        missing = pb.read_tensor(arguments.missing, arguments.axes or tensor.axes)
        options["observed"] = observed_outside(tensor, missing)
    if arguments.predict is not None:
        return _predict_missing(arguments, tensor, options)
    if arguments.tried is None:
        model = _network(arguments)
        _announce(model, tensor)
        print(_evidence_summary(model.log_evidence(tensor, **options)))
        return 0
    node, sizes = arguments.tried
    models = {str(size): _network(arguments, {node: size}) for size in sizes}
    _say(f"{node} from {sizes[0]} to {sizes[-1]}, {tensor}")
    posterior = pb.posterior_over_models(models, tensor, **options)
    print(posterior)
    if plot:
        by_size = {size: posterior.evidences[str(size)] for size in sizes}
        _save_picture(pb.plotting.plot_evidence(by_size, xlabel=f"size of {node}"), plot)
        _say(f"wrote {plot}")
    return 0


def _predict_missing(
    arguments: argparse.Namespace, tensor: pb.CountTensor, options: dict[str, Any]
) -> int:
    if arguments.missing is None or arguments.tried or arguments.given_total:
        raise InvalidArgumentError("--predict needs --missing, and no --try or --given-total")
    _check_table_output(arguments.predict)
    model = _network(arguments)
    _announce(model, tensor)
    found = model.predict_missing(tensor, **options)
    _write_table(found._columns(), arguments.predict)
    low, high = found.total_interval()
    print(_evidence_summary(found.evidence), file=sys.stderr)
    print(f"total         {found.expected_total:,.2f}, {low:,} to {high:,}", file=sys.stderr)
    return 0


def _decompose(arguments: argparse.Namespace) -> int:
    folder = Path(arguments.output)
    folder.mkdir(parents=True, exist_ok=True)
    _refuse_unwritable(folder)
    model = _network(arguments)
    tensor = pb.read_tensor(arguments.tensor, arguments.axes)
    _announce(model, tensor)
    found = model.decompose(tensor, **given(arguments, DECOMPOSITION))
    for node in found.tables:
        with replacing(folder / f"{node}.csv") as stream:
            text = io.TextIOWrapper(stream, encoding="utf-8", newline="")
            _write_csv(found._columns(node), text)
            text.detach()
    _say(f"wrote a table for each of {', '.join(found.tables)} to {folder}")
    print(_decomposition_summary(found), file=sys.stderr)
    return 0


def _announce(model: pb.AllocationModel, tensor: pb.CountTensor) -> None:
    cost = model.cost(tensor)
    _say(
        f"{model} of {tensor}: {cost.n_states:,} joint states a token, {cost.n_marginals:,} "
        "marginal counts"
    )


def _network(
    arguments: argparse.Namespace, sizes: dict[str, int] | None = None
) -> pb.AllocationModel:
    make = pb.AllocationModel.from_undirected if arguments.undirected else pb.AllocationModel
    sizes = {**(arguments.sizes or {}), **(sizes or {})}
    return make(arguments.graph, sizes, **given(arguments, MODEL))


def _demo(arguments: argparse.Namespace) -> int:
    folder = Path(arguments.output)
    _need("pandas", "frames", "the demo")
    _need("matplotlib", "plot", "the demo")
    folder.mkdir(parents=True, exist_ok=True)
    _refuse_unwritable(folder)
    options = given(arguments, GENERAL)
    if "random_state" in options:
        options["seed"] = options.pop("random_state")
    run_demo(folder, **options)
    return 0


def _read_for(model: Any, arguments: argparse.Namespace) -> pb.Corpus:
    return _read_as_wide(model.n_features_in_, arguments.corpus, arguments.vocabulary)


def _read_as_wide(n_words: int, path: str, vocabulary: str | None) -> pb.Corpus:
    """Read a corpus of so many words where its format does not tell their number."""
    name = path.lower().removesuffix(".gz")
    if vocabulary is None and (path == "-" or name.endswith(_FORMATS_WITHOUT_WIDTH)):
        return pb.read_corpus(path, n_words=n_words)
    return pb.read_corpus(path, vocabulary=vocabulary)


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


def _output(path: str, suffixes: tuple[str, ...], also: str = "") -> Path:
    """Path of a file to write; refuse what cannot be written before any work is done."""
    file = Path(path)
    if not file.name.lower().endswith(suffixes):
        raise InvalidArgumentError(
            f"cannot write {path}: its name must end in {' or '.join(suffixes)}{also}"
        )
    if file.is_dir():
        raise FileAccessError(f"cannot write {path}: it is a folder")
    _refuse_unwritable(file.parent)
    return file


def _check_table_output(output: str) -> None:
    if output == "-":
        return
    path = _output(output, (".csv", ".parquet"), "; '-' is CSV on standard output")
    if path.suffix.lower() == ".parquet":
        _need("pandas", "frames", "writing Parquet files")
        _need("pyarrow", "frames", "writing Parquet files")


def _refuse_unwritable(folder: Path) -> None:
    try:
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        reason = error.strerror or error
        raise FileAccessError(f"cannot write to the folder {folder}: {reason}") from error


def _need(module: str, extra: str, purpose: str) -> None:
    if importlib.util.find_spec(module) is None:
        raise MissingDependencyError(f"{purpose} needs {module}: pip install 'polyabayes[{extra}]'")


def _write_table(columns: Mapping[str, Any], output: str) -> None:
    if output == "-":
        _write_csv(columns, sys.stdout)
        sys.stdout.flush()
        return
    with replacing(Path(output)) as stream:
        if output.lower().endswith(".parquet"):
            import pandas as pd

            pd.DataFrame(dict(columns)).to_parquet(stream)
            return
        text = io.TextIOWrapper(stream, encoding="utf-8", newline="")
        _write_csv(columns, text)
        text.detach()


def _write_csv(columns: Mapping[str, Any], stream: TextIO) -> None:
    """One line a row; a value that there is not is left empty."""
    arrays = [np.asarray(column).tolist() for column in columns.values()]
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(columns)
    for row in zip(*arrays, strict=True):
        # NaN is the one value that differs from itself.
        writer.writerow("" if value != value else value for value in row)
    stream.flush()


def _save_picture(ax: Any, path: Path) -> None:
    with replacing(path) as stream:
        ax.figure.savefig(stream, format=path.suffix[1:].lower(), dpi=150)


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


def _evidence_summary(evidence: pb.Evidence) -> str:
    low, high = evidence.interval()
    given_total = ", given the total" if evidence.given_total else ""
    error = f"{evidence.std_error:.2g} nats, {evidence.n_replicates} replicates"
    if evidence.is_lower_bound:
        error = "a lower bound"
    elif not evidence.n_replicates:
        error = "none"
    lines = [
        f"log evidence  {evidence.value:,.6f} nats{given_total}",
        f"method        {evidence.method}",
        f"error         {error}",
        f"95 %          {low:,.6f} to {high:,.6f}",
        f"ln P(T)       {evidence.log_probability_of_total:,.6f}, T = {evidence.n_tokens:,}"
        if not np.isnan(evidence.log_probability_of_total)
        else f"observed      {evidence.n_tokens:,} tokens",
        f"time          {evidence.seconds:.2f} s",
    ]
    return "\n".join(lines)


def _decomposition_summary(found: pb.Decomposition) -> str:
    sparsity = ", ".join(f"{node} {value:.3f}" for node, value in found.sparsity.items())
    lines = [
        f"objective      {found.value:,.4f} nats given the total, {len(found.trace):,} iterations",
        f"squared error  {found.squared_error:,.4f}",
        f"KL error       {found.kl_error:,.4f} nats",
        f"sparsity       {sparsity}",
        f"parameters     {pb.n_effective_parameters(found):,}",
        f"time           {found.seconds:.2f} s",
    ]
    return "\n".join(lines)


def _size(corpus: pb.Corpus) -> str:
    return f"{corpus.n_documents:,} documents, {corpus.n_words:,} words, {corpus.n_tokens:,} tokens"


def _say(message: str) -> None:
    print(f"polyabayes: {message}", file=sys.stderr, flush=True)


def _fail(message: str) -> int:
    _say(f"error: {' '.join(message.split())}")
    return _USER_ERROR


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,  # noqa: ARG001
    line: str | None = None,  # noqa: ARG001
) -> None:
    if issubclass(category, PolyabayesWarning):
        _say(f"warning: {' '.join(str(message).split())}")
    else:
        print(warnings.formatwarning(message, category, filename, lineno), end="", file=sys.stderr)


def _discard_output() -> None:
    """Send what is left in the buffer nowhere, or Python would complain of it when it exits."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


_COMMANDS = {
    "fit": _fit,
    "score": _score,
    "compare": _compare,
    "split": _split,
    "search": _search,
    "evidence": _evidence,
    "decompose": _decompose,
    "demo": _demo,
}
