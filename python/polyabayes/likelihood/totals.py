"""Totals of corpora to a standard error: multilevel Monte Carlo over documents (Giles 2008).

Every document gets short annealing runs. Ever smaller random samples get longer runs: each level
adds the difference to the level below, and samples are allocated by the variance of these
differences (Neyman 1934). Levels below the last use the mean of ln of the runs, which is low but
has little noise; the last uses ln of their mean, its bias by Jensen's inequality removed.
"""

from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy import special

from polyabayes._support import checks
from polyabayes._support.arrays import Floats, Integers
from polyabayes.exceptions import InvalidArgumentError, argument
from polyabayes.likelihood.blocks import BlockScores, last_of
from polyabayes.likelihood.methods import Settings

_Known = Mapping[int, Floats]
_Effort = Mapping[str, float]

# Temperatures of the first level, and the factor between levels: three is near the optimum of Giles
# (2015, "Multilevel Monte Carlo methods", section 2) for any problem.
_FIRST, _FACTOR = 2, 3
_MOST_TEMPERATURES = 5_000
# About how many distinct documents go through all levels.
_PILOT = 30
# Cost of the start of runs, in temperatures: 0.4 ms beside 0.04 ms each with 20 topics, blog posts
# (``python benches/totals.py levels poliblog5k 20``).
_START = 10
# Replicates per document: the lanes of one run.
_REPLICATES = 16
# Squared error that a plan aims at, as a share of the target's.
_AIM = 0.8
_EFFORT = {"share_of_bias": 1 / 3, "first_aim": _AIM, "one_sided": 1.645, "of_variances": 0.0}
_ROUNDS = 20
# Least degrees of freedom of errors.
_FEWEST_DEGREES = 2.0
# Standard errors of a mean per token that are enough, of a thousand documents and of few.
_ENOUGH = 0.001, 0.002
# Settings without effect, since every document gets the effort that the total needs.
_OF_DOCUMENTS = ("n_samples", "n_particles", "n_replicates", "target_std_error", "trace")
_UNUSED = {"method": "auto"} | {name: Settings._field_defaults[name] for name in _OF_DOCUMENTS}


class Score(Protocol):
    """Function that scores the documents of some rows with a given number of temperatures."""

    def __call__(self, rows: Integers, *, n_temperatures: int) -> BlockScores:
        """Values, variances of ln of a run, and ln of the mean minus the mean of ln."""


class CorrectedScores(NamedTuple):
    """Scores whose sum estimates the total, and their shared error.

    `scores` has values of the longest runs, and predictions for documents with shorter runs.
    `shared_std_error` is the error of the sum, in nats, beyond the errors of single documents.
    `probabilities` are those with which documents were sampled, by number of temperatures.
    """

    scores: BlockScores
    shared_std_error: float
    probabilities: dict[int, Floats]


def checked_target(
    total_std_error: Any, nats_per_token_std_error: Any, settings: Settings
) -> Callable[[int], float] | None:
    """Target standard error of a total, given the number of tokens; None without a target."""
    if total_std_error is None and nats_per_token_std_error is None:
        return None
    name = "total_std_error" if nats_per_token_std_error is None else "nats_per_token_std_error"
    if total_std_error is not None and nats_per_token_std_error is not None:
        raise InvalidArgumentError(
            f"{argument('total_std_error')} and {argument('nats_per_token_std_error')} are the "
            "same target in other units: give one of them"
        )
    for other, default in _UNUSED.items():
        if getattr(settings, other) != default:
            raise InvalidArgumentError(
                f"{argument(other)} has no effect with {argument(name)}, which chooses the "
                "effort of every document: omit one of them"
            )
    if nats_per_token_std_error is None:
        total = checks.positive_number(name, total_std_error)
        return lambda _: total
    each = checks.positive_number(name, nats_per_token_std_error)
    return lambda n_tokens: each * n_tokens


def enough_for(n_documents: int) -> float:
    """Standard error of a mean per token that is a fraction of its error for new documents."""
    return float(np.clip(_ENOUGH[0] * np.sqrt(1_000 / max(n_documents, 1)), *_ENOUGH))


class Population:
    """The distinct documents of a corpus.

    `groups` numbers the distinct documents. `uniforms` are the same for equal documents; a document
    is sampled if its uniform is below its probability, so that larger samples contain smaller ones.
    """

    def __init__(self, groups: Integers, n_tokens: Integers, uniforms: Floats) -> None:
        _, first, index, copies = np.unique(
            groups, return_index=True, return_inverse=True, return_counts=True
        )
        # Documents stand in the order of their first appearance, however groups are numbered.
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
        return np.asarray(np.minimum(_PILOT * measure / measure.sum(), 1.0))


def score_to_target(
    score: Score,
    population: Population,
    target: float,
    known: _Known | None = None,
    effort: _Effort = _EFFORT,
) -> CorrectedScores:
    """Score until the total has the target standard error, in nats, or runs cannot be longer.

    Samples hold the documents that were sampled before, with the probabilities `known` by number of
    temperatures. `effort` has the largest `share_of_bias` in the target; the `first_aim` at the
    squared error, as a multiple of the target's, which tells what larger samples need; how many
    standard errors `one_sided` the limit of the bias is above its estimate; and the least limit, as
    a share `of_variances` of the runs.
    """
    levels = _Levels(score, population, known or {}, effort)
    try:
        levels.climb(target)
        return levels.estimate(levels.sample(target))
    except _UnfinishedError as stop:
        scores = levels.best()._replace(interruption=stop.interruption)
        return CorrectedScores(scores, np.inf, {})


class _UnfinishedError(Exception):
    """A run ended before it reached all documents."""

    def __init__(self, interruption: BaseException) -> None:
        super().__init__()
        self.interruption = interruption


class _Level:
    """Runs of one length, for the documents sampled at this level."""

    def __init__(self, n_temperatures: int, n_documents: int) -> None:
        self.n_temperatures, self.cost = n_temperatures, float(n_temperatures + _START)
        self.probabilities = np.zeros(n_documents)
        self.drawn = np.zeros(n_documents, np.bool_)
        self.scores = BlockScores.none(n_documents)

    @property
    def rows(self) -> Integers:
        """The sampled documents."""
        return np.flatnonzero(self.drawn)

    @property
    def weights(self) -> Floats:
        """Sampling weight of each of them: 1 / probability."""
        return np.asarray(1.0 / self.probabilities[self.drawn])

    def values(self, *, is_last: bool) -> Floats:
        """Ln of the mean of the runs at the last level, else their mean ln; 0 if p is 0.

        Ln of a mean is low by half its squared error, which is added (delta method).
        """
        scores = self.scores
        correction = scores.std_errors**2 / 2 if is_last else -scores.shortfalls
        values = scores.values + correction
        return np.asarray(np.where(np.isneginf(values), 0.0, values))


class _Step(NamedTuple):
    """Differences between a level and the level below, for the documents sampled.

    Differences are predicted as `ratio` times the spread of a run at the base; `residuals` are
    what is left.
    """

    level: _Level
    ratio: float
    residuals: Floats


class _Levels:
    """Levels of runs; the levels in use begin with a base, which has all documents."""

    _levels: list[_Level]

    def __init__(self, score: Score, population: Population, known: _Known, effort: _Effort):
        self._score, self._population, self._pilot = score, population, population.pilot()
        self._known, self._effort, self._levels = known, effort, []

    def climb(self, target: float) -> None:
        """Run the documents of the pilot up to a level with little bias."""
        self._add_level()
        while self._can_climb() and self._bias() > self._effort["share_of_bias"] * target:
            self._add_level()

    def sample(self, target: float) -> list[_Level]:
        """Sample the levels above the cheapest base until the error is small enough."""
        done = [level.drawn.all() for level in self._levels] if self._known else []
        # The longest runs that all documents have had before, or the shortest.
        base, aim = int(max(np.flatnonzero(done), default=0)), self._effort["first_aim"]
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
            elif aim > _AIM and of_sampling:
                aim = min(_AIM, aim * _AIM * wanted / of_sampling)
            else:
                break
        return self._levels[base:]

    def estimate(self, levels: list[_Level]) -> CorrectedScores:
        """Values of the last level; predictions for documents that stop at lower levels."""
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
            # The error is for the sum; replicates of single documents say little about it.
            n_effs=np.where(np.isinf(scores.n_effs), np.inf, float(_REPLICATES)),
        )
        shared = float(np.sqrt(max(whole - own, 0.0)))
        sampled = {x.n_temperatures: x.probabilities[index] for x in self._levels}
        return CorrectedScores(scores, shared, sampled)

    def best(self) -> BlockScores:
        """Scores of the longest runs of every document."""
        return last_of([level.scores for level in self._levels]).taken(self._population.index)

    def _can_climb(self) -> bool:
        return _FACTOR * self._levels[-1].n_temperatures <= _MOST_TEMPERATURES

    def _add_level(self) -> None:
        """Run the pilot, and the documents known, at the next level."""
        n_temperatures = _FACTOR * self._levels[-1].n_temperatures if self._levels else _FIRST
        self._levels.append(_Level(n_temperatures, len(self._pilot)))
        known = self._known.get(n_temperatures, np.zeros_like(self._population.index))
        self._draw(self._levels[-1], np.maximum(self._pilot, known[self._population.first]))

    def _draw(self, level: _Level, probabilities: Floats) -> None:
        level.probabilities = np.maximum(probabilities, level.probabilities)
        drawn = self._population.uniforms < level.probabilities
        added = np.flatnonzero(drawn & ~level.drawn)
        if not len(added):
            return
        rows = self._population.first[added]
        found = self._score(rows, n_temperatures=level.n_temperatures)
        level.scores, level.drawn = level.scores.put(added, found), drawn
        if found.interruption is not None:
            raise _UnfinishedError(found.interruption)

    def _spread(self, base: _Level) -> Floats:
        """Standard deviation of ln of a run, roughly proportional to the differences."""
        return np.asarray(np.sqrt(base.scores.variances))

    def _measure(self, base: _Level) -> Floats:
        """Relative sampling probabilities, by spread and cost (Neyman allocation)."""
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
        """Sampling probabilities at each level, as multiples of the measure, and the total cost.

        They minimise the cost for this squared error of sampling.
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
        """Squared error of the total from sampling documents.

        Levels share documents, so their errors are correlated. The sum of squares is raised so that
        1.96 of the errors are the 97.5 % quantile of Student's distribution with as many degrees of
        freedom as there are effective documents in it (Satterthwaite 1946).
        """
        copies = self._population.copies
        before, parts = np.zeros_like(copies), np.zeros_like(copies)
        for level, _, residuals in self._steps(levels):
            n = max(len(residuals), 2)
            errors = np.sqrt(n / (n - 1)) * copies[level.drawn] * residuals
            own = (level.weights - 1.0) * errors
            parts[level.drawn] += level.weights * errors * (own + 2.0 * before[level.drawn])
            before[level.drawn] += own
        whole, squared = max(float(parts.sum()), 0.0), float(parts @ parts)
        return whole * _student_factor(whole**2 / squared - 1.0) if squared else 0.0

    def _of_last(self) -> float:
        """Squared error of the total of the last level: the noise of its runs, and their bias."""
        last = self._levels[-1]
        errors = self._population.copies[last.drawn] * last.scores.std_errors[last.drawn]
        return float(last.weights @ errors**2) + self._bias() ** 2

    def _bias(self) -> float:
        """Upper limit of the bias of the last level.

        The bias falls as 1 / temperatures, so that the rest is a share of the last difference,
        whose own error counts. What :meth:`_Level.values` adds to ln of a mean is right to half.
        """
        last = self._levels[-1]
        squared = np.square(last.scores.std_errors)
        if not squared[last.drawn].any():
            return 0.0
        if len(self._levels) < 2:
            return np.inf
        below, copies = self._levels[-2], self._population.copies
        # If the last level is the base, the level below has the documents of the pilot only.
        both = last.drawn & below.drawn
        weights = copies[both] / np.minimum(last.probabilities, below.probabilities)[both]
        differences = (last.values(is_last=True) - below.values(is_last=True))[both]
        noise = np.sqrt(weights**2 @ (squared + np.square(below.scores.std_errors))[both])
        limit = abs(float(weights @ differences)) + self._effort["one_sided"] * noise
        whole = last.weights * copies[last.drawn]
        errors, spread = (float(whole @ x[last.drawn]) for x in (squared, last.scores.variances))
        spread *= self._effort["of_variances"]
        return max(float(limit) / (_FACTOR - 1), errors / 4, spread)


def _student_factor(degrees_of_freedom: float) -> float:
    """Factor between squared 95 % intervals of Student's and of the normal distribution."""
    quantile = special.stdtrit(max(degrees_of_freedom, _FEWEST_DEGREES), 0.975)
    return float(quantile / special.ndtri(0.975)) ** 2
