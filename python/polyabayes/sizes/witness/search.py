"""Chiang and Poole's witness algorithm over a grid of disjoint boxes.

Along each axis, the grid has single sizes up to the first that was not tried, then all larger sizes
in one box. Every size is in one cell, the best witness of a cell is a cumulative maximum, and
masses are only added. The grid extends to the next size with prior mass.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from polyabayes._support.arrays import Flags, Floats, Integers
from polyabayes._support.log_space import log_difference, log_sum
from polyabayes._support.output.tables import measured
from polyabayes.exceptions import BudgetExceededError, ScoreError, argument
from polyabayes.sizes.priors import SizePrior
from polyabayes.sizes.scores import Intervals, Record, Score, Sizes, named

KINDS = ("nested", "evidence")
BOUNDS = ("witness", "min-witness", "paper")
STRATEGIES = ("successor", "widest")

_LARGEST_GRID = 10**6


class Rules(NamedTuple):
    """Assumptions about the scores, and the bounds to compute."""

    kind: str
    bound: str
    strategy: str
    log_ceiling: float
    level: float


class Bounds(NamedTuple):
    """Logs of prior masses and of probabilities of the data, in nats.

    F is the contribution of explored sizes to p(y), and H the prior mass of the others.
    """

    log_f: float
    log_h: float
    lower: float
    upper: float


class SearchStep(NamedTuple):
    """One step of the search.

    Attributes
    ----------
    sizes : tuple of int
        The configuration that was scored.
    failure : str or None
        Why scoring failed, if it did.
    witnesses : tuple of tuple of int
        The witness set after the step, by increasing score.
    min_witness : tuple of int or None
        The witness with the lowest score; None if some configuration has no witness.
    pruned : tuple of tuple of int
        Configurations that the step removed from the witness set, including the scored one if it is
        not a witness.

    Examples
    --------
    >>> search = pb.WitnessSearch(lambda k: -3.0 - 4.0 / k, pb.priors.Uniform(1, 3)).fit()
    >>> search.trace_[0].sizes, search.trace_[0].witnesses
    ((1,), ((1,),))
    """

    sizes: Sizes
    failure: str | None
    witnesses: tuple[Sizes, ...]
    min_witness: Sizes | None
    pruned: tuple[Sizes, ...]


@dataclass(frozen=True)
class Survey:
    """The grid after some steps; arrays have one entry per cell.

    `scored` cells have a score, `tried` ones a score or a failure; `lower` and `upper` bound ln p(y
    | sizes) anywhere in the cell; `witness` is the record of the best witness, -1 for none.
    """

    first: Sizes
    log_mass: Floats
    scored: Flags
    tried: Flags
    lower: Floats
    upper: Floats
    witness: Integers

    @property
    def open(self) -> Flags:
        """Cells with unexplored prior mass."""
        return ~self.scored & (self.log_mass > -np.inf)

    def cell(self, sizes: Sizes) -> Sizes:
        """Index of the cell of a configuration."""
        return _cell(self.first, sizes)

    def sizes(self, cell: Integers) -> Sizes:
        """Configuration of a cell."""
        return tuple(int(at) + low for at, low in zip(cell, self.first, strict=True))


def take_survey(
    prior: SizePrior, records: Sequence[Record], intervals: Intervals, rules: Rules
) -> Survey:
    """Make the grid and bound the score of every cell.

    For nested scores, a lower bound also bounds all larger sizes, and an upper bound all smaller
    sizes.
    """
    log_mass, tried = _grid(prior, records)
    scored = np.zeros(log_mass.shape, dtype=bool)
    lower = np.full(log_mass.shape, -np.inf)
    upper = np.full(log_mass.shape, rules.log_ceiling)
    rank = np.full(log_mass.shape, -1)
    # The later one of equal scores is the better witness, since its size is not smaller.
    by_score = np.argsort(intervals.lower, kind="stable")
    ranks = np.empty(len(records), dtype=np.int64)
    ranks[by_score] = np.arange(len(records))
    for ix, record in enumerate(records):
        cell = _cell(prior.first, record.sizes)
        if record.score is not None:
            scored[cell] = True
            lower[cell], rank[cell] = intervals.lower[ix], ranks[ix]
            upper[cell] = min(intervals.upper[ix], rules.log_ceiling)
    for axis in range(log_mass.ndim):
        np.maximum.accumulate(rank, axis=axis, out=rank)
        if rules.kind == "nested":
            np.maximum.accumulate(lower, axis=axis, out=lower)
            upper = np.flip(np.minimum.accumulate(np.flip(upper, axis), axis=axis), axis)
    witness = np.where(rank < 0, -1, np.append(by_score, -1)[rank])
    return Survey(prior.first, log_mass, scored, tried, lower, upper, witness)


def _grid(prior: SizePrior, records: Sequence[Record]) -> tuple[Floats, Flags]:
    """Ln of the masses of the cells, and which were tried.

    Each axis extends at least one size beyond all that were tried, until a single configuration
    there has mass.
    """
    axes = range(prior.n_variables)
    tops = tuple(
        max((record.sizes[axis] for record in records), default=prior.first[axis] - 1)
        for axis in axes
    )
    n_beyond = 1
    while True:
        before, tops = tops, tuple(_beyond(prior, axis, tops[axis], n_beyond) for axis in axes)
        n_beyond *= 2
        n_cells = math.prod(top - low + 2 for top, low in zip(tops, prior.first, strict=True))
        if n_cells > _LARGEST_GRID:
            raise BudgetExceededError(
                f"the sizes up to {tops} exceed the {_LARGEST_GRID:,} that a search can "
                "hold; give a prior whose sizes with mass are closer together"
            )
        log_mass = prior.log_masses(tops)
        tried = np.zeros(log_mass.shape, dtype=bool)
        for record in records:
            tried[_cell(prior.first, record.sizes)] = True
        left = (log_mass > -np.inf) & ~tried
        if left[points(left.ndim)].any() or not left.any() or tops == before:
            return log_mass, tried


def _beyond(prior: SizePrior, axis: int, size: int, n_sizes: int) -> int:
    """The `n_sizes`-th size with mass beyond this one, or the last one."""
    for _ in range(n_sizes):
        following = prior.next_size(axis, size)
        if following is None:
            break
        size = following
    return size


def _cell(first: Sizes, sizes: Sizes) -> Sizes:
    return tuple(size - low for size, low in zip(sizes, first, strict=True))


def points(n_variables: int) -> tuple[slice, ...]:
    """The cells that are single configurations."""
    return (slice(0, -1),) * n_variables


class Search:
    """The explored configurations, the bounds after each, and the choice of the next."""

    def __init__(self, prior: SizePrior, rules: Rules) -> None:
        self.prior, self.rules = prior, rules
        self.records: list[Record] = []
        self.steps: list[SearchStep] = []
        self.bounds: list[Bounds] = []
        self._take([], Intervals.of([], rules.level))

    @property
    def explored(self) -> list[Sizes]:
        """The configurations with a score, in the order of the steps."""
        return [record.sizes for record in self.records if record.score is not None]

    def record_of(self, sizes: Sizes | None) -> Record | None:
        """The record of a configuration, if it was tried."""
        return next((record for record in self.records if record.sizes == sizes), None)

    def survey_at(self, level: float) -> Survey:
        """The grid with simultaneous intervals of all scores at this level."""
        intervals = Intervals.of(self.records, level)
        return take_survey(self.prior, self.records, intervals, self.rules)

    def add(self, record: Record) -> None:
        """Add a step; refuse a score that contradicts the kind of score."""
        records = [*self.records, record]
        intervals = Intervals.of(records, self.rules.level)
        if record.score is not None:
            self._check(records, intervals)
        was = [*self._witnesses, *([] if record.score is None else [len(self.records)])]
        self._take(records, intervals)
        self.bounds.append(self._bounds())
        self.steps.append(
            SearchStep(
                record.sizes,
                record.failure,
                tuple(records[ix].sizes for ix in self._witnesses),
                None if self._least is None else records[self._least].sizes,
                tuple(records[ix].sizes for ix in was if ix not in self._witnesses),
            )
        )

    def choose(self) -> tuple[Sizes, Sizes | None] | None:
        """The next configuration and its best witness; None if nothing is left to try."""
        survey, single = self.survey, points(self.prior.n_variables)
        candidates = np.zeros(survey.tried.shape, dtype=bool)
        candidates[single] = (survey.open & ~survey.tried)[single]
        if self.rules.strategy == "successor":
            least = -1 if self._least is None else self._least
            mine = candidates & (survey.witness == least)
            # After failures, there may be none left in the grid: then take any other.
            candidates = mine if mine.any() else candidates
        cells = np.argwhere(_minimal(candidates))
        if not len(cells):
            return None
        worth = [self._worth(tuple(cell)) for cell in cells]
        chosen = cells[int(np.argmax(worth))]
        witness = int(survey.witness[tuple(chosen)])
        return survey.sizes(chosen), None if witness < 0 else self.records[witness].sizes

    def _worth(self, cell: Sizes) -> float:
        """Priority by strategy: prior mass, or contribution to the width."""
        survey = self.survey
        log_mass = float(survey.log_mass[cell])
        if self.rules.strategy == "successor":
            return log_mass
        return log_mass + log_difference(float(survey.upper[cell]), float(survey.lower[cell]))

    def _take(self, records: list[Record], intervals: Intervals) -> None:
        """Survey the grid; list the best witnesses of all configurations, by increasing score.

        If a configuration has no witness, there is no lowest witness.
        """
        survey = take_survey(self.prior, records, intervals, self.rules)
        self.records, self.survey = records, survey
        found = np.unique(self.survey.witness[self.survey.open]).tolist()
        self._witnesses = sorted(
            (ix for ix in found if ix >= 0), key=lambda ix: (intervals.lower[ix], ix)
        )
        self._least = None if -1 in found else next(iter(self._witnesses), None)

    def _bounds(self) -> Bounds:
        survey, rules = self.survey, self.rules
        rest = survey.open
        log_h = log_sum(survey.log_mass[rest])
        rest_lower, rest_upper = rest_bounds(survey, rules)
        scores = [
            float(survey.log_mass[survey.cell(record.sizes)]) + record.score.value
            for record in self.records
            if record.score is not None
        ]
        explored = survey.log_mass[survey.scored]
        lower = log_sum(np.append(explored + survey.lower[survey.scored], rest_lower))
        upper = log_sum(np.append(explored + survey.upper[survey.scored], rest_upper))
        return Bounds(log_sum(np.array(scores)), log_h, lower, upper)

    def _check(self, records: list[Record], intervals: Intervals) -> None:
        """Refuse the last score if its interval contradicts the ceiling or another score."""
        new = records[-1]
        if intervals.lower[-1] > self.rules.log_ceiling:
            raise ScoreError(
                f"the log score of {named(new.sizes)} is {_told(new.score)}, above the ceiling "
                f"{self.rules.log_ceiling!r} on all of them: give another {argument('upper')}, "
                "valid for this score"
            )
        if self.rules.kind != "nested":
            return
        last = len(records) - 1
        for other in reversed(range(last)):
            for small, large in ((other, last), (last, other)):
                pairs = zip(records[small].sizes, records[large].sizes, strict=True)
                below = all(a <= b for a, b in pairs)
                # False for failed records, whose bounds are NaN.
                if below and intervals.lower[small] > intervals.upper[large]:
                    raise ScoreError(
                        f"the log score falls from {_told(records[small].score)} at "
                        f"{named(records[small].sizes)} to {_told(records[large].score)} at "
                        f'{named(records[large].sizes)}, but kind="nested" promises that it never '
                        'does: train more sizes from fewer, or use kind="evidence"'
                    )


def rest_weights(survey: Survey, rules: Rules) -> tuple[Floats, Floats]:
    """Bounds of ln of the contribution of each open cell to p(y)."""
    log_mass, lower, upper = (x[survey.open] for x in (survey.log_mass, survey.lower, survey.upper))
    if rules.bound == "witness":
        return log_mass + lower, log_mass + upper
    return log_mass + lower.min(initial=np.inf), log_mass + rules.log_ceiling


def rest_bounds(survey: Survey, rules: Rules) -> tuple[float, float]:
    """Bounds of ln of the contribution of unexplored configurations to p(y)."""
    least, most = rest_weights(survey, rules)
    return log_sum(least), log_sum(most)


def _minimal(cells: Flags) -> Flags:
    """The minimal cells: not above any other given cell."""
    minimal = cells.copy()
    for axis in range(cells.ndim):
        at_or_below = cells
        for other in range(cells.ndim):
            at_or_below = np.logical_or.accumulate(at_or_below, axis=other)
        below = np.roll(at_or_below, 1, axis=axis)
        below[(slice(None),) * axis + (0,)] = False
        minimal &= ~below
    return minimal


def _told(score: Score | None) -> str:
    if score is None:
        return "nothing"
    return measured(score.value, score.std_error) if score.std_error else repr(score.value)
