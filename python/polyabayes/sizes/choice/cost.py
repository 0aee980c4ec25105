"""Expected time of a choice by held-out likelihood, from short fits."""

from __future__ import annotations

import time
from collections.abc import Mapping
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from polyabayes._support.warnings import quiet
from polyabayes.data.corpus import Corpus
from polyabayes.sizes.choice import grid
from polyabayes.sizes.choice.fits import comparable, comparable_sweeps
from polyabayes.sizes.choice.held_out_scores import annealed, annealed_part, filtered, n_scored

# Sweeps of two fits, whose times separate the start from the sweeps.
_SHORT, _LONGER = 4, 16
# Documents that are scored to time a score.
_SCORED = 20
# Found sizes: rounds of sizes between the largest two of the coarse grid, one fold each.
_ROUNDS = 2
# Doublings beyond the first sizes that are told of where no largest size is given.
_DOUBLINGS = 3
# Topics that double the time of a fit, about.
_DOUBLING_SIZE = 128


class ChoiceCost(NamedTuple):
    """Expected cost of a choice.

    Attributes
    ----------
    n_fits : int
        Number of fits: an upper limit for given sizes (sizes clearly behind are dropped early), an
        estimate if sizes are found.
    sizes : tuple of int
        The smallest and the largest size that were timed.
    seconds_per_fit : tuple of float
        Seconds of training and scoring one fold at these sizes.
    seconds : float
        All fits one after another, each on the threads of the model.
    unit : {"fit", "evidence"}
        Whether the counts are of fits or of evidences of allocation models. For evidences, sizes
        are products over all unknown nodes.
    beyond : tuple of (int, float) or None
        If sizes are found and no largest size is given: a larger size, and the seconds of all fits
        if scores improve up to it.

    Examples
    --------
    >>> from polyabayes.results import ChoiceCost
    >>> print(ChoiceCost(45, (2, 32), (0.8, 3.2), 72.0))
    about 45 fits, 0.8 s each with 2 topics and 3.2 s with 32: 72 s in all, one after another
    """

    n_fits: int
    sizes: tuple[int, int]
    seconds_per_fit: tuple[float, float]
    seconds: float
    unit: str = "fit"
    beyond: tuple[int, float] | None = None

    def __str__(self) -> str:
        low, high = self.seconds_per_fit
        smallest = f"{self.sizes[0]} topics" if self.unit == "fit" else f"size {self.sizes[0]}"
        more = ""
        if self.beyond is not None:
            most, seconds = self.beyond
            more = f", or {_duration(seconds)} if more topics are better up to {most}"
        return (
            f"about {self.n_fits} {self.unit}s, {_duration(low)} each with {smallest} and "
            f"{_duration(high)} with {self.sizes[1]}: "
            f"{_duration(self.seconds)} in all, one after another{more}"
        )


def work_of_found(most: int, n_folds: int) -> dict[int, int]:
    """About the number of fits of each size, if scores improve up to the largest size.

    One fold of the coarse grid. A bend among its first sizes takes one fold of sizes between the
    largest two, and all folds of the largest and of two between. Beyond them the curve is smooth:
    all folds of the largest three sizes and of two between.
    """
    sizes = grid.coarse(most)
    while sizes[-1] < most:
        sizes += grid.wider(sizes, sizes[-1:], sizes[0], most)
    may_bend = most <= grid.LAST
    tried = sizes[-2:] if may_bend else sizes[-3:]
    for _ in range(_ROUNDS):
        tried = sorted({*tried, *(grid.middle(*gap) for gap in pairwise(tried))})
    if may_bend:
        return dict.fromkeys([*sizes, *tried], 1) | dict.fromkeys({most, *tried[1:3]}, n_folds)
    return dict.fromkeys(sizes, 1) | dict.fromkeys(tried[::2], n_folds)


def relative_cost(size: int) -> float:
    """Approximate time of a fit relative to the smallest size, if none was timed."""
    return 1 + size / _DOUBLING_SIZE


def measured_cost(
    model: Any, corpus: Corpus, work: Mapping[int, int], *, n_folds: int, most: int | None
) -> ChoiceCost:
    """Time short fits at both ends of the sizes, and extrapolate to all fits.

    `work` are fits by size; `most` is the largest possible size, if the search has no limit.
    """
    low, high = min(work), max(work)
    held_out = np.arange(corpus.n_documents) % n_folds == 0
    train, test = corpus[~held_out], corpus[held_out]
    ends = [_seconds(model, train, test, size) for size in (low, high)]
    # By noise, the larger size may take less time.
    slope = max(ends[1] - ends[0], 0.0) / max(high - low, 1)

    def seconds_of(work: Mapping[int, int]) -> float:
        return float(sum(n * (ends[0] + slope * (size - low)) for size, n in work.items()))

    beyond = None if most is None else min(most, 2**_DOUBLINGS * high)
    wider = None if beyond in (None, high) else (beyond, seconds_of(work_of_found(beyond, n_folds)))
    return ChoiceCost(
        sum(work.values()), (low, high), (ends[0], ends[1]), seconds_of(work), beyond=wider
    )


def _seconds(model: Any, train: Corpus, test: Corpus, size: int) -> float:
    """Expected time of a full fit, with its starts and scores."""
    n_sweeps: int = model.max_iter
    short, longer = min(_SHORT, n_sweeps), min(_LONGER, n_sweeps)
    with quiet():
        first, _ = _timed_fit(model, train, size, short)
        second, fitted = _timed_fit(model, train, size, longer)
        scores = _seconds_of_scores(fitted, test)
    sweep = max(second - first, 0.0) / max(longer - short, 1)
    seconds: float = second + sweep * (comparable_sweeps(model) - longer) + scores
    return seconds


def _seconds_of_scores(fitted: Any, test: Corpus) -> float:
    """Expected time of the scores of a fold."""
    scored = test[: n_scored(test)]
    some, n_annealed = scored[:_SCORED], len(annealed_part(scored))
    n_of_each = {annealed: n_annealed}
    if n_annealed < scored.n_documents:
        n_of_each[filtered] = scored.n_documents
    seconds = 0.0
    for score, n_documents in n_of_each.items():
        began = time.perf_counter()
        score(fitted, some, 0)
        seconds += (time.perf_counter() - began) * n_documents / some.n_documents
    return seconds


def _timed_fit(model: Any, train: Corpus, size: int, n_sweeps: int) -> tuple[float, Any]:
    fitted = comparable(model, size, 0).set_params(max_iter=n_sweeps, burn_in=0, n_init=1)
    began = time.perf_counter()
    fitted.fit(train)
    return time.perf_counter() - began, fitted


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} minutes" if seconds < 5400 else f"{seconds / 3600:.1f} hours"
