"""Totals of corpora to a standard error: multilevel Monte Carlo over documents (Giles 2008).

Every document takes short annealing runs. Longer runs of ever smaller random samples tell what
short ones leave out: each level adds the difference to the level below, and effort goes where
the errors of these differences are (Neyman 1934). A level below the last takes the mean of ln of
its runs, which is low but has little noise; the last takes ln of their mean.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from polyabayes import _core
from polyabayes._support import checks
from polyabayes.exceptions import InvalidArgumentError, argument
from polyabayes.likelihood.blocks import BlockScores

Floats = NDArray[np.float64]

# Temperatures of the first level, and how many times as many the next one has: three is near the
# optimum of Giles (2015, "Multilevel Monte Carlo methods", section 2), whatever the problem.
_FIRST, _FACTOR = 2, 3
_MOST_TEMPERATURES = 5_000
# Different documents that go through all levels, about.
_PILOT = 30
# Cost of the start of runs, in temperatures: 0.4 ms beside 0.04 ms each with 20 topics, blog posts
# (``python benches/totals.py levels poliblog5k 20``).
_START = 10
# Replicates of a document: the lanes of one run.
_REPLICATES = 16
# The bias that a last level may leave, and the squared error that a plan aims at, as shares of the
# target.
_SHARE_OF_BIAS, _AIM = 1 / 3, 0.8
_ROUNDS = 20


class Score(Protocol):
    """Scores the documents of these rows through so many temperatures."""

    def __call__(
        self, rows: NDArray[np.int64], *, n_temperatures: int
    ) -> _core.Scores | BlockScores:
        """Values, variances of ln of a run, and how far the mean of ln is below ln of the mean."""


class CorrectedScores(NamedTuple):
    """Scores whose sum estimates the total, and the error that they share.

    `scores` has values of the longest runs, and predictions of the documents that took shorter
    ones; `shared_std_error` is the error of the sum beyond those of the single documents, in nats.
    """

    scores: BlockScores
    shared_std_error: float


def checked_target(
    total_std_error: Any, nats_per_token_std_error: Any, unused: dict[str, bool]
) -> Callable[[int], float] | None:
    """Standard error of a total to reach, given the number of tokens; None if none is wanted."""
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


class Population:
    """The different documents of a corpus.

    `groups` says which of the different documents each one is. `uniforms` are the same for equal
    documents: those below their probability are drawn, so that a larger sample holds a smaller one.
    """

    def __init__(
        self, groups: NDArray[np.int64], n_tokens: NDArray[np.int64], uniforms: Floats
    ) -> None:
        _, first, index, copies = np.unique(
            groups, return_index=True, return_inverse=True, return_counts=True
        )
        # In order of first appearance, however groups are numbered.
        order = np.argsort(first)
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        self.first, self.index = first[order], place[index.ravel()]
        self.copies = copies[order].astype(np.float64)
        self.n_tokens = np.maximum(n_tokens[self.first].astype(np.float64), 1.0)
        self.uniforms = uniforms[self.first]

    def pilot(self) -> Floats:
        """Probabilities of the documents that go through all levels."""
        measure = self.copies * np.sqrt(self.n_tokens)
        if len(measure) <= 2 * _PILOT:
            return np.ones_like(measure)
        probabilities: Floats = np.minimum(_PILOT * measure / measure.sum(), 1.0)
        return probabilities


def score_to_target(score: Score, population: Population, target: float) -> CorrectedScores:
    """Score until the total has this standard error, in nats, or no longer runs are left."""
    levels = _Levels(score, population)
    try:
        levels.climb(target)
        return levels.estimate(levels.sample(target), target)
    except _UnfinishedError as stop:
        scores = levels.best()._replace(interruption=stop.interruption)
        return CorrectedScores(scores, np.inf)


class _UnfinishedError(Exception):
    """Some documents were not reached."""

    def __init__(self, interruption: BaseException) -> None:
        super().__init__()
        self.interruption = interruption


class _Level:
    """Runs of one length, of the documents that were drawn for it."""

    def __init__(self, n_temperatures: int, n_documents: int) -> None:
        self.n_temperatures, self.cost = n_temperatures, float(n_temperatures + _START)
        self.probabilities = np.zeros(n_documents)
        self.drawn = np.zeros(n_documents, np.bool_)
        self.scores = BlockScores.none(n_documents)

    @property
    def rows(self) -> NDArray[np.int64]:
        """The documents that were drawn."""
        return np.flatnonzero(self.drawn)

    @property
    def weights(self) -> Floats:
        """How many documents each of them stands for."""
        weights: Floats = 1.0 / self.probabilities[self.drawn]
        return weights

    def values(self, *, is_last: bool) -> Floats:
        """Ln of the mean of the runs at the last level, else their mean ln; 0 where p is 0."""
        values = self.scores.values - (0.0 if is_last else self.scores.shortfalls)
        found: Floats = np.where(np.isneginf(values), 0.0, values)
        return found


class _Step(NamedTuple):
    """The differences of a level to the one below, of the documents drawn for it.

    `ratio` is what they are, about, in units of the spread of a run at the base; `residuals` are
    what they are beyond that.
    """

    level: _Level
    ratio: float
    residuals: Floats


class _Levels:
    """Levels of runs; those in use begin with one that has all documents, their base."""

    def __init__(self, score: Score, population: Population) -> None:
        self._score, self._population = score, population
        self._pilot = population.pilot()
        self._levels: list[_Level] = []

    def climb(self, target: float) -> None:
        """Take the documents of the pilot to a level that leaves little bias."""
        self._add_level()
        while self._can_climb() and self._bias() > _SHARE_OF_BIAS * target:
            self._add_level()

    def sample(self, target: float) -> list[_Level]:
        """Draw for the levels above the cheapest base until the error is small enough."""
        base, aim = 0, _AIM
        for _ in range(_ROUNDS):
            wanted = max(target**2 - self._of_last(), target**2 / 2)
            bases = range(base, len(self._levels))
            costs = [self._plan(self._levels[least:], wanted)[1] for least in bases]
            base += int(np.argmin(costs))
            levels = self._levels[base:]
            self._draw(levels[0], np.ones_like(self._pilot))
            scales, _ = self._plan(levels, aim * wanted)
            measure = self._measure(levels[0])
            for (below, level), scale in zip(pairwise(levels), scales, strict=True):
                probabilities = np.maximum(self._pilot, scale * measure)
                self._draw(level, np.minimum(probabilities, below.probabilities))
            of_sampling, of_last = self._of_sampling(levels), self._of_last()
            if of_sampling + of_last <= target**2:
                break
            if of_last <= target**2 / 2:
                aim *= _AIM * wanted / of_sampling
            elif self._can_climb():
                self._add_level()
            else:
                break
        return self._levels[base:]

    def estimate(self, levels: list[_Level], target: float) -> CorrectedScores:
        """Values of the last level, and of levels below with the differences that they lack."""
        scores, copies, spread = self.best(), self._population.copies, self._spread(levels[0])
        values = levels[0].values(is_last=len(levels) == 1)
        squares = np.zeros_like(values)
        for level, ratio, residuals in self._steps(levels):
            others = (level.weights - 1.0) * copies[level.drawn] ** 2
            told = float(others @ spread[level.drawn] ** 2)
            squared_ratio = float(others @ residuals**2) / told if told else 0.0
            values += ratio * spread
            squares += squared_ratio * spread**2
            values[level.drawn] = level.values(is_last=level is levels[-1])[level.drawn]
            squares[level.drawn] = 0.0
        last = levels[-1]
        squares[last.drawn] = np.square(last.scores.std_errors[last.drawn])
        whole = self._of_sampling(levels) + self._of_last()
        own = float(copies**2 @ squares)
        index = self._population.index
        values, errors = values[index], np.sqrt(squares)[index]
        scores = scores._replace(
            values=np.where(np.isneginf(scores.values), scores.values, values),
            std_errors=errors,
            # The error is that of the sum, of which no single document's replicates say much.
            n_effs=np.where(np.isinf(scores.n_effs), np.inf, float(_REPLICATES)),
            reached=scores.reached & (whole <= target**2),
        )
        return CorrectedScores(scores, float(np.sqrt(max(whole - own, 0.0))))

    def best(self) -> BlockScores:
        """Scores of the longest runs of every document."""
        best = BlockScores.none(len(self._pilot))
        for level in self._levels:
            rows = np.flatnonzero(~np.isnan(level.scores.values))
            best = best.put(rows, level.scores.taken(rows))
        return best.taken(self._population.index)

    def _can_climb(self) -> bool:
        return _FACTOR * self._levels[-1].n_temperatures <= _MOST_TEMPERATURES

    def _add_level(self) -> None:
        """Take the pilot to the next level."""
        n_temperatures = _FACTOR * self._levels[-1].n_temperatures if self._levels else _FIRST
        self._levels.append(_Level(n_temperatures, len(self._pilot)))
        self._draw(self._levels[-1], self._pilot)

    def _draw(self, level: _Level, probabilities: Floats) -> None:
        """Score those that are drawn in addition."""
        level.probabilities = np.maximum(probabilities, level.probabilities)
        drawn = self._population.uniforms < level.probabilities
        added = np.flatnonzero(drawn & ~level.drawn)
        if not len(added):
            return
        rows = self._population.first[added]
        found = BlockScores.of(self._score(rows, n_temperatures=level.n_temperatures))
        level.scores, level.drawn = level.scores.put(added, found), drawn
        if found.interruption is not None:
            raise _UnfinishedError(found.interruption)

    def _spread(self, base: _Level) -> Floats:
        """Standard deviation of ln of a run, to which differences are in proportion, about."""
        spread: Floats = np.sqrt(base.scores.variances)
        return spread

    def _measure(self, base: _Level) -> Floats:
        """What probabilities are in proportion to: the more the longer the copies take (Neyman)."""
        measure: Floats = self._population.copies * self._spread(base)
        measure /= np.sqrt(self._population.n_tokens)
        return measure

    def _steps(self, levels: list[_Level]) -> list[_Step]:
        spread, copies = self._spread(levels[0]), self._population.copies
        steps = []
        for below, level in pairwise(levels):
            drawn = level.drawn
            values = level.values(is_last=level is levels[-1])
            differences = (values - below.values(is_last=False))[drawn]
            # This ratio makes the estimate the sum of known values and of predictions (Brewer
            # 1999, "Cosmetic calibration with unequal probability sampling").
            others = (level.weights - 1.0) * copies[drawn]
            told = float(others @ spread[drawn])
            ratio = float(others @ differences) / told if told else 0.0
            steps.append(_Step(level, ratio, differences - ratio * spread[drawn]))
        return steps

    def _plan(self, levels: list[_Level], squared_error: float) -> tuple[list[float], float]:
        """Probabilities at each level as multiples of the measure, and the cost of all.

        They make the sum of costs the least where sampling has this squared error.
        """
        population, measure = self._population, self._measure(levels[0])
        whole = float(population.n_tokens.sum())
        squares, costs = [], []
        for level, _, residuals in self._steps(levels):
            drawn = level.drawn & (measure > 0)
            each, weights = measure[drawn], 1.0 / level.probabilities[drawn]
            squared = np.square(population.copies[drawn] * residuals[drawn[level.drawn]])
            squares.append(float((weights * squared / each).sum()))
            costs.append(level.cost * float((weights * population.n_tokens[drawn] * each).sum()))
        roots = np.sqrt(np.multiply(squares, costs))
        scales = [
            float(np.sqrt(square / cost)) * float(roots.sum()) / squared_error if cost else 0.0
            for square, cost in zip(squares, costs, strict=True)
        ]
        of_levels = [
            min(scale * cost, level.cost * whole)
            for scale, cost, level in zip(scales, costs, levels[1:], strict=True)
        ]
        return scales, levels[0].cost * whole + sum(of_levels)

    def _of_sampling(self, levels: list[_Level]) -> float:
        """Squared error of the total that comes from drawing documents.

        Levels hold the same documents in part, so that their errors go together. Sampling ends when
        the error seems small, and it seems so where no large difference was drawn: hence a
        standard error more of what the squares sum to.
        """
        copies = self._population.copies
        before, parts = np.zeros_like(copies), np.zeros_like(copies)
        for level, _, residuals in self._steps(levels):
            n = max(len(residuals), 2)
            errors = np.sqrt(n / (n - 1)) * copies[level.drawn] * residuals
            own = (level.weights - 1.0) * errors
            parts[level.drawn] += level.weights * errors * (own + 2.0 * before[level.drawn])
            before[level.drawn] += own
        whole, n = float(parts.sum()), max(int(np.count_nonzero(parts)), 1)
        doubt = max(float(parts @ parts) - whole**2 / n, 0.0)
        return max(whole + float(np.sqrt(doubt)), 0.0)

    def _of_last(self) -> float:
        """Squared error of the total of the last level: the noise of its runs, and their bias."""
        last = self._levels[-1]
        errors = self._population.copies[last.drawn] * last.scores.std_errors[last.drawn]
        return float(last.weights @ errors**2) + self._bias() ** 2

    def _bias(self) -> float:
        """Bias that the last level may have.

        It falls as one over the temperatures, so that what is left is a share of the last
        difference; ln of a mean is low by half of the squared error of that mean at least.
        """
        last = self._levels[-1]
        if not last.scores.std_errors[last.drawn].any():
            return 0.0
        if len(self._levels) < 2:
            return np.inf
        below = self._levels[-2]
        weights = last.weights * self._population.copies[last.drawn]
        values = last.values(is_last=True) - below.values(is_last=True)
        difference = abs(float(weights @ values[last.drawn])) / (_FACTOR - 1)
        variance = float(weights @ last.scores.variances[last.drawn])
        return max(difference, variance / (2 * _REPLICATES))
