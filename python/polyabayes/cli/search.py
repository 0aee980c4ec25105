"""The command that searches sizes, of LDA or of a network."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import polyabayes as pb
from polyabayes.cli.documents import read_as_wide, size
from polyabayes.cli.keywords import OF_DOCUMENTS, OF_NETWORKS, SEARCH_SCORING, SEARCHING, given
from polyabayes.cli.messages import INTERRUPTED, say
from polyabayes.cli.output import check_table, checked_picture, save_picture, write_table
from polyabayes.cli.tensors import network, read_for
from polyabayes.exceptions import Interrupted, InvalidArgumentError, ScoreError, argument


def search(arguments: argparse.Namespace) -> int:
    """Search the sizes of LDA for a corpus, or those of a network for a tensor."""
    check_table(arguments.output)
    plot = checked_picture(arguments.plot)
    if len(arguments.corpus) == 1:
        return _search_topics(arguments, plot)
    if len(arguments.corpus) == 2:
        return _search_network(arguments, plot)
    raise InvalidArgumentError("give a corpus, or a graph and a tensor")


def _search_topics(arguments: argparse.Namespace, plot: Path | None) -> int:
    _refuse(arguments, OF_NETWORKS, "a graph and a tensor, not of a corpus")
    if arguments.folds is not None and arguments.test:
        raise InvalidArgumentError("--folds holds documents out by itself: leave out --test")
    training = given(arguments, ("max_iter", "tol", "n_jobs"))
    search = pb.WitnessSearch(
        pb.LatentDirichletAllocation(**training),
        arguments.prior[0],
        scoring_options=given(arguments, SEARCH_SCORING),
        **given(arguments, SEARCHING),
    )
    corpus = pb.read_corpus(arguments.corpus[0], vocabulary=arguments.vocabulary)
    test = None
    if arguments.test:
        test = read_as_wide(corpus.n_words, arguments.test, arguments.vocabulary)
    say(f"searching on {size(corpus)}")
    if arguments.folds is not None:
        options = given(arguments, ("n_workers",))
        others = arguments.prior[1:]
        folds = pb.cross_validate(search, corpus, arguments.folds, priors=others, **options)
        write_table(folds, arguments.output)
        if plot is not None:
            save_picture(pb.plotting.plot_predictive_bounds(folds), plot)
        return 0
    return _run(search, corpus, arguments, plot, test)


def _search_network(arguments: argparse.Namespace, plot: Path | None) -> int:
    _refuse(arguments, OF_DOCUMENTS, "a corpus, not of a graph and a tensor")
    arguments.graph, path = arguments.corpus
    model = network(arguments)
    unknown = ", ".join(model.unknown_sizes)
    if not unknown:
        raise InvalidArgumentError("no size is unknown; give --size NODE=? for each to search")
    for prior in arguments.prior:
        if prior.n_variables != len(model.unknown_sizes):
            raise InvalidArgumentError(
                f"--prior has {prior.n_variables} laws for the sizes of {unknown}; give one each, "
                "joined as poisson:3*geometric:0.5"
            )
    search = pb.WitnessSearch(
        model,
        arguments.prior[0],
        scoring_options=given(arguments, (*SEARCH_SCORING, "n_jobs")),
        **given(arguments, SEARCHING),
    )
    tensor = read_for(model, path, arguments.axes)
    say(f"searching {model} on {tensor}")
    return _run(search, tensor, arguments, plot)


def _refuse(arguments: argparse.Namespace, names: Sequence[str], of: str) -> None:
    """Refuse options that the kind of search has no use for."""
    for name in given(arguments, tuple(names)):
        raise InvalidArgumentError(f"{argument(name)} is an option of {of}")


def _run(
    search: pb.WitnessSearch,
    data: Any,
    arguments: argparse.Namespace,
    plot: Path | None,
    test: pb.Corpus | None = None,
) -> int:
    try:
        search.fit(data)
    except Interrupted as interrupted:
        write_table(_stacked(search, arguments.prior), arguments.output)
        say(f"interrupted: {interrupted}")
        return INTERRUPTED
    except ScoreError:
        if np.isfinite(search.bounds_["log_score"]).any():
            write_table(_stacked(search, arguments.prior), arguments.output)
            say(f"{search.n_steps_:,} sizes up to the error are written")
        raise
    searches = {repr(prior): search.under(prior) for prior in arguments.prior}
    try:
        write_table(_stacked(search, arguments.prior), arguments.output)
        if plot is not None:
            save_picture(pb.plotting.plot_size_bounds(searches), plot)
    finally:
        say(f"{search.n_steps_:,} sizes, stopped by {search.stop_reason_}")
        for name, one in searches.items():
            print(_summary(name, one, test), file=sys.stderr)
    return 0


def _stacked(search: pb.WitnessSearch, priors: Sequence[Any]) -> dict[str, Any]:
    """The bounds under each prior one below the other, the prior in the first column."""
    tables = [search.under(prior).bounds_ for prior in priors]
    names = np.repeat([repr(prior) for prior in priors], search.n_steps_)
    columns = {name: np.concatenate([table[name] for table in tables]) for name in tables[0]}
    return {"prior": names, **columns}


def _summary(name: str, search: pb.WitnessSearch, test: pb.Corpus | None) -> str:
    row = search.bounds_.row(-1)
    least, most = search.unexplored_posterior_
    best = f"{search.best_} (of trained models, which does not choose a size)"
    if isinstance(search.estimator, pb.AllocationModel):
        sizes = np.atleast_1d(search.best_).tolist()
        pairs = zip(search.estimator.unknown_sizes, sizes, strict=True)
        best = ", ".join(f"{node} {number}" for node, number in pairs)
    lines = [
        name,
        f"  ln p(y)         {row['lower']:z,.2f} to {row['upper']:z,.2f} nats",
        f"  best size       {best}",
        f"  not explored    {least:.2g} to {most:.2g} of the posterior",
    ]
    if test is not None:
        bounds = search.predictive_bounds(test)
        lines += [
            f"  ln p(test)      {bounds.lower:z,.2f} to {bounds.upper:z,.2f} nats",
            f"  by best size    {bounds.best:z,.2f} +- {bounds.best_std_error:.2g} nats",
        ]
    if not all(search.holds_.values()):
        failing = ", ".join(name for name, holds in search.holds_.items() if not holds)
        lines.append(f"  not rigorous    {failing}")
    return "\n".join(lines)
