"""Scores as exact as the total of a corpus needs, and no more: effort where the error is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from polyabayes import _core
from polyabayes._support import checks
from polyabayes.exceptions import InvalidArgumentError, argument
from polyabayes.likelihood.blocks import BlockScores
from polyabayes.likelihood.survey import (
    Difference,
    Population,
    difference_scale,
    least_scale,
    unremoved_bias,
)

__all__ = ["AS_DOCUMENTS", "CorrectedScores", "checked_target", "score_to_target"]

# Error of a total, in nats times the root of the number of documents, up to which all documents are
# first scored as without a target: many are exact then, and no sample of them is cheaper.
AS_DOCUMENTS = 0.5

# Documents of the first sample, about, those drawn at least by the scale of their differences, and
# the share of all from which on none is left out.
_FIRST, _FEWEST, _ALMOST_ALL = 40, 40, 0.6
# Rounds in which the sample grows, enough for any number of documents, and in which runs do once no
# document is left out.
_SAMPLE_ROUNDS, _MOST_ROUNDS = 40, 4
# A round aims below the target by this factor; runs and, as one large difference seems to ask for
# more than is needed, the sample grow by these factors at most.
_AIM, _MOST_GROWTH, _MOST_SAMPLE_GROWTH = 0.8, 16, 2
_MOST_TEMPERATURES = 5_000
# Largest variance of ln p of a run in the sample; and the part of the target that the correction of
# the bias may be.
_MOST_VARIANCE, _SHARE_OF_BIAS = 1.0, 0.2
# The variance of ln p of a run falls by this power of its temperatures, about.
_POWER = 0.7
# Most temperatures of the runs of all documents. The variance of the differences is about this
# share of that of sampled runs, times this power of their temperatures over those of the short
# runs: as measured on news articles.
_MOST_SHORT, _DIFFERENCE, _FALL = 20, 0.13, 1.15
# Cost of the start and the pilot of longer runs, in temperatures.
_START_COST = 20
# Rounds of scoring, of which each has streams of its own.
_SHORT, _SAMPLED = 0, 1


class Score(Protocol):
    """Scores the documents of these rows, all by default."""

    def __call__(
        self,
        rows: NDArray[np.int64] | None,
        number: int,
        *,
        sizes: NDArray[np.int64] | None = None,
        size: int | None = None,
        variance: float = _MOST_VARIANCE,
    ) -> _core.Scores | BlockScores:
        """By sizes of runs, one size, or pilots that aim at a variance; with a round's number."""


class CorrectedScores(NamedTuple):
    """Scores with a smaller bias of ln, the error that they share, and the target.

    Attributes
    ----------
    scores : BlockScores
        Values of the sampled documents, corrected, and predictions of the others.
    correction_std_error : float
        Standard error of the sum of the corrections and predictions beyond those of the single
        documents, in nats, with what they leave of the bias.
    """

    scores: BlockScores
    correction_std_error: float


def checked_target(
    total_std_error: Any, nats_per_token_std_error: Any, unused: dict[str, bool]
) -> Callable[[int], float] | None:
    """Standard error of a total to reach, given the number of tokens; None where none is asked for.

    Raises
    ------
    InvalidArgumentError, InvalidTypeError
        If it is no positive number, if both are given, or one beside `unused` arguments.
    """
    if total_std_error is None and nats_per_token_std_error is None:
        return None
    name = "total_std_error" if nats_per_token_std_error is None else "nats_per_token_std_error"
    if total_std_error is not None and nats_per_token_std_error is not None:
        raise InvalidArgumentError(
            f"{argument('total_std_error')} and {argument('nats_per_token_std_error')} ask for one "
            "and the same: give one of them"
        )
    for other, is_given in unused.items():
        if is_given:
            raise InvalidArgumentError(
                f"{argument(other)} means nothing beside {argument(name)}, which chooses the "
                "effort of every document: leave one of them out"
            )
    if nats_per_token_std_error is None:
        total = checks.positive_number(name, total_std_error)
        return lambda _: total
    each = checks.positive_number(name, nats_per_token_std_error)
    return lambda n_tokens: each * n_tokens


def score_to_target(score: Score, population: Population, target: float) -> CorrectedScores:
    """Score until the total has this standard error.

    A sample of the documents takes runs whose variance of ln p is small enough for what is left of
    their bias. If that sample is not almost all of them, all take short runs, and the sample grows
    until their difference is known. In the end, or where the sample would be almost all documents,
    runs of all grow.

    Parameters
    ----------
    score : callable
        Gives scores.
    population : Population
        The documents.
    target : float
        In nats.
    """
    allowed = 32 * _SHARE_OF_BIAS * target / max(population.copies.sum(), 1.0)
    sample = _Sample(score, population, min(_MOST_VARIANCE, float(np.log1p(allowed))))
    sample.grow(population.probabilities(_FIRST, population.copies))
    if sample.is_all() or sample.is_interrupted():
        return _score_all(score, population, sample.scores, target)
    short = BlockScores.of(score(None, _SHORT, size=sample.short_size(_AIM * target)))
    if short.interruption is not None:
        return CorrectedScores(short, np.inf)
    difference = sample.grow_beside(short, target)
    if sample.is_interrupted():
        return CorrectedScores(short._replace(interruption=sample.scores.interruption), np.inf)
    if sample.is_all():
        return _score_all(score, population, sample.scores, target)
    return CorrectedScores(*difference.corrected(target))


class _Sample:
    """Documents that take longer runs."""

    def __init__(self, score: Score, population: Population, variance: float) -> None:
        self._score, self._population, self._variance = score, population, variance
        self.probabilities = np.zeros(len(population.first))
        self.scores = BlockScores.none(len(population.index))
        # Documents whose short runs differ: the others are exact, and no sample tells more.
        self.telling = np.ones(len(population.first), np.bool_)

    def is_interrupted(self) -> bool:
        """Whether some of its documents were not reached."""
        return self.scores.interruption is not None

    def is_all(self) -> bool:
        """Whether no document is left out."""
        return bool((self.probabilities == 1).all())

    def grow(self, probabilities: NDArray[np.float64]) -> None:
        """Score those that are drawn in addition; all of them, where it is almost all."""
        probabilities = np.maximum(probabilities, self.probabilities)
        if probabilities[self.telling].sum() >= _ALMOST_ALL * self.telling.sum():
            probabilities = np.ones_like(probabilities)
        uniforms = self._population.uniforms
        added = (uniforms >= self.probabilities) & (uniforms < probabilities)
        rows = np.flatnonzero(added[self._population.index])
        self.probabilities = probabilities
        if len(rows):
            found = BlockScores.of(self._score(rows, _SAMPLED, variance=self._variance))
            self.scores = self.scores.put(rows, found)._replace(interruption=found.interruption)

    def short_size(self, target: float) -> int:
        """Temperatures of short runs of all documents that make both together cheapest."""
        sampled = self.scores.variances > 0
        if not sampled.any():
            return 1
        sizes = self.scores.sizes[sampled].astype(np.float64)
        squared = _DIFFERENCE * float((self.scores.variances[sampled] * sizes**_FALL).mean())
        cost = _START_COST + float(sizes.mean())
        # Least of N s + cost n, where n = squared s^-fall (N / target)^2 documents are sampled.
        least = _FALL * squared * cost * self._population.copies.sum() / target**2
        return int(np.clip(least ** (1.0 / (1.0 + _FALL)), 1, _MOST_SHORT))

    def grow_beside(self, short: BlockScores, target: float) -> Difference:
        """Score more until the difference to short runs of all documents is known."""
        population = self._population
        scale = difference_scale(population, short)
        self.telling = scale > 0
        # As many copies and as large differences, the fewer the more they cost (Neyman 1934).
        measure = population.copies * scale / np.sqrt(self._cost(short))
        self.grow(population.probabilities(_FEWEST, measure))
        difference = Difference(population, short, self.scores, measure, self.probabilities)
        for _ in range(_SAMPLE_ROUNDS):
            is_enough = difference.squared_error() <= target**2
            if self.is_all() or is_enough or self.is_interrupted():
                break
            wanted = difference.probabilities((_AIM * target) ** 2)
            self.grow(np.minimum(wanted, _MOST_SAMPLE_GROWTH * self.probabilities))
            difference = Difference(population, short, self.scores, measure, self.probabilities)
        return difference

    def _cost(self, short: BlockScores) -> NDArray[np.float64]:
        """Cost of the longer runs of each different document, as its short ones foretell it."""
        first, n_tokens = self._population.first, self._population.n_tokens
        growth = (short.variances[first] / self._variance) ** (1.0 / _POWER)
        temperatures = np.minimum(short.sizes[first] * growth, _MOST_TEMPERATURES)
        cost: NDArray[np.float64] = np.maximum(n_tokens, 1.0) * (_START_COST + temperatures)
        return cost


def _score_all(
    score: Score, population: Population, scores: BlockScores, target: float
) -> CorrectedScores:
    """Growing runs of all documents; the estimate is that of the last alone.

    Temperatures follow Neyman's allocation.
    """
    for number in range(_SAMPLED + 1, _SAMPLED + _MOST_ROUNDS):
        allocation = _Allocation(population, scores)
        enough = allocation.squared_error(scores.sizes) <= (_AIM * target) ** 2
        if enough or scores.interruption is not None:
            break
        scores = BlockScores.of(score(None, number, sizes=allocation.sizes(_AIM * target)))
    errors = np.where(np.isfinite(scores.values), scores.corrected_errors, 0)
    left = unremoved_bias(float(scores.corrections.sum()), float(scores.variances.sum()))
    squared = float((np.bincount(population.index, weights=errors) ** 2).sum()) + left**2
    corrected = scores._replace(
        values=scores.values + scores.corrections,
        std_errors=np.where(np.isfinite(scores.values), errors, scores.std_errors),
        reached=scores.reached & (squared <= target**2),
    )
    return CorrectedScores(corrected, left)


class _Allocation:
    """Temperatures of documents and the error that they should lead to."""

    def __init__(self, population: Population, scores: BlockScores) -> None:
        copies = population.copies[population.index]
        n_tokens = population.n_tokens[population.index]
        self._least = np.maximum(scores.sizes, 1).astype(np.float64)
        self._most = np.minimum(_MOST_GROWTH * self._least, _MOST_TEMPERATURES)
        self._corrections, self._variances = scores.corrections, scores.variances
        noise = np.nan_to_num(scores.corrected_errors) ** 2
        # Each of m equal documents has the m-th part of the square of their m errors.
        self._squares = copies * np.where(scores.variances > 0, noise, 0.0)
        hardness = self._squares * self._least**_POWER / np.maximum(n_tokens, 1.0)
        self._shape = hardness ** (1.0 / (1.0 + _POWER))

    def squared_error(self, sizes: NDArray[Any]) -> float:
        """Expected squared error of the total."""
        falls = (self._least / np.maximum(sizes, 1)) ** _POWER
        left = unremoved_bias(float(falls @ self._corrections), float(falls @ self._variances))
        return float(falls @ self._squares) + left**2

    def sizes(self, target: float) -> NDArray[np.int64]:
        """Sizes at least as large as those before with which the total should reach the target."""

        def at(scale: float) -> NDArray[np.float64]:
            return np.clip(scale * self._shape, self._least, self._most)

        most = float((self._most / np.maximum(self._shape, 1e-12)).max(initial=1.0))
        scale = least_scale(lambda scale: self.squared_error(at(scale)) <= target**2, most)
        return np.ceil(at(scale)).astype(np.int64)
