"""The time that a choice by held-out likelihood will take, from short fits."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import numpy as np

from polyabayes._support.warnings import quiet
from polyabayes.data.corpus import Corpus
from polyabayes.sizes.choice.comparable import comparable, comparable_sweeps
from polyabayes.sizes.choice.fits import n_scored, score

# Sweeps of the two fits whose times tell a start from a sweep.
_SHORT, _LONGER = 2, 8
# Documents that are scored to time a score.
_SCORED = 20
# Found sizes: fits beside those of the best size; most sizes are dropped after one or two.
_FITS_FOUND = 40


class ChoiceCost(NamedTuple):
    """Work that a choice is expected to take.

    Attributes
    ----------
    n_fits : int
        Fits: at most so many for given sizes (those clearly behind are dropped early), about so
        many where sizes are found.
    sizes : tuple of int
        The smallest and the largest size that were timed.
    seconds_per_fit : tuple of float
        Training and scores of one fold at those sizes.
    seconds : float
        All fits one after another, each on the threads of the model.
    unit : {"fit", "evidence"}
        Whether fits are meant, or evidences of allocation models; sizes are then products of those
        of all unknown nodes.
    is_open : bool
        Whether larger sizes follow where the best of these is the largest: they are not counted.

    Examples
    --------
    >>> from polyabayes.results import ChoiceCost
    >>> print(ChoiceCost(45, (2, 32), (0.8, 3.2), 72.0))
    about 45 fits, 0.8 s each with 2 topics and 3.2 s with 32: some 72 s one after another
    """

    n_fits: int
    sizes: tuple[int, int]
    seconds_per_fit: tuple[float, float]
    seconds: float
    unit: str = "fit"
    is_open: bool = False

    def __str__(self) -> str:
        low, high = self.seconds_per_fit
        smallest = f"{self.sizes[0]} topics" if self.unit == "fit" else f"size {self.sizes[0]}"
        more = f", and more if the best lies beyond {self.sizes[1]}" if self.is_open else ""
        return (
            f"about {self.n_fits} {self.unit}s, {_duration(low)} each with {smallest} and "
            f"{_duration(high)} with {self.sizes[1]}: "
            f"some {_duration(self.seconds)} one after another{more}"
        )


def expected_fits(given: list[int] | None, n_folds: int, max_fits: int) -> int:
    """Fits that a choice takes: at most so many for given sizes, about so many otherwise."""
    return min(max_fits, _FITS_FOUND + n_folds if given is None else n_folds * len(given))


def measured_cost(
    model: Any, corpus: Corpus, sizes: list[int], *, found: bool, n_folds: int, n_fits: int
) -> ChoiceCost:
    """Time short fits at the ends of the sizes and tell what all of them will take.

    The sizes, increasing, are those given or those that a search begins with; `found` says whether
    further ones will be looked for.
    """
    low, high = sizes[0], sizes[-1]
    held_out = np.arange(corpus.n_documents) % n_folds == 0
    train, test = corpus[~held_out], corpus[held_out]
    ends = [_seconds(model, train, test, size) for size in (low, high)]
    # Between the ends a fit takes a power of its size.
    power = 0.0 if low == high else np.log(ends[1] / ends[0]) / np.log(high / low)
    each = ends[0] * (np.array(sizes, dtype=np.float64) / low) ** power
    seconds = float(n_fits * each.mean())
    return ChoiceCost(n_fits, (low, high), (ends[0], ends[1]), seconds, is_open=found)


def _seconds(model: Any, train: Corpus, test: Corpus, size: int) -> float:
    """Expected time of a fit of all sweeps, its starts included, and its scores."""
    n_sweeps: int = model.max_iter
    short, longer = min(_SHORT, n_sweeps), min(_LONGER, n_sweeps)
    with quiet():
        first, _ = _timed_fit(model, train, size, short)
        second, fitted = _timed_fit(model, train, size, longer)
        some = test[: min(_SCORED, test.n_documents)]
        began = time.perf_counter()
        score(fitted, some, 0)
        scores = (time.perf_counter() - began) * n_scored(test) / some.n_documents
    sweep = max(second - first, 0.0) / max(longer - short, 1)
    seconds: float = second + sweep * (comparable_sweeps(model) - longer) + scores
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
