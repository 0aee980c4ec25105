"""Curve of held-out scores over sizes, smooth where it has no bend, and the recommended size."""

import math
from collections.abc import Callable, Collection
from typing import NamedTuple, Self

import numpy as np

from polyabayes._support.arrays import Floats, Integers
from polyabayes._support.jackknife import Difference, paired_difference, totals_of
from polyabayes.sizes.choice.race import Race, interval

# Values are those with which ``python -m benches.choice topics`` made its record.

# Loss in nats per token up to which sizes share a smooth curve, if the curve does not bend.
_SMOOTH = 0.1
# Default tolerance: loss in nats per token, one percent of the probability of a word.
TOLERANCE = 0.01
# At an elbow, the gain per topic falls by at least this factor.
_SHARP = 5.0
# A bend that sizes between those tried may show to be an elbow. Where gains fall by half from each
# doubling to the next, a topic gains four times what it gains beyond.
_MAY_BE_SHARP = 3.0
# Ratio of sizes within which a bend may hide.
_APART = 1.21
# Gain of a topic that counts as none, as a share of the mean gain of the topics up to there.
_NO_GAIN = 0.02
# Fewest degrees of freedom for the noise of fits on a smooth curve.
_LEAST_FREEDOM = 3
# Sizes that leave as many on two folds: a level and a slope for each, and the curvature.
LEAST_SIZES = 4


class Smooth(NamedTuple):
    """Least squares curve of scores in nats per token, quadratic in 1 / sqrt(size).

    Every fold has a level of its own. On AP from 32 to 200 topics, a cubic term gains nothing. A
    size's score is thereby estimated from the fits of its neighbours too, which share its curve but
    not the noise of its fits.

    `weights` give the slope and the curvature from the scores of the fits, in whose order are
    `values`: the contribution of every document to these scores, with 0 for other folds. `noise`
    is the standard deviation of a score by its fit, and `freedom` its degrees of freedom.
    """

    sizes: tuple[int, ...]
    weights: Floats
    values: Floats
    lengths: Floats
    groups: Integers
    noise: float
    freedom: float

    @classmethod
    def of(cls, race: Race, sizes: Collection[int]) -> Self | None:
        """The curve through some sizes, or None if there are too few fits, or one fold."""
        fits = [(size, fold) for size in sorted(sizes) for fold in sorted(race.fits[size])]
        folds = np.array([fold for _, fold in fits])
        x = np.array([size for size, _ in fits]) ** -0.5
        levels = (folds[:, np.newaxis] == np.unique(folds)).astype(np.float64)
        # Documents make the slopes of folds differ; what is left is noise.
        lines = np.column_stack([levels, levels * x[:, np.newaxis], x**2])
        residuals = np.eye(len(fits)) - lines @ np.linalg.pinv(lines)
        freedom = float(np.trace(residuals))
        if freedom < _LEAST_FREEDOM - 0.5 or len(np.unique(folds)) < 2:
            return None
        values = np.zeros((len(fits), len(race.folds)))
        for row, (size, fold) in zip(values, fits, strict=True):
            row[race.folds == fold] = race.fits[size][fold].values
        # Documents that some size cannot produce are left out.
        kept = np.isfinite(values).all(axis=0) & np.isin(race.folds, folds)
        values, lengths = values[:, kept], race.n_tokens[kept]
        of_fold = folds[:, np.newaxis] == race.folds[kept]
        totals = (of_fold @ lengths)[:, np.newaxis]
        values, shares = values / totals, of_fold * lengths / totals
        scores, groups = values.sum(axis=1), race.groups[kept]
        # Noise of documents has an error of its own, by the jackknife.
        of_documents = totals_of(groups, *(residuals @ (values - scores[:, np.newaxis] * shares)))
        excess = float(((residuals @ scores) ** 2).sum()) - float(np.square(of_documents).sum())
        noise = math.sqrt(max(excess, 0.0) / freedom)
        weights = np.linalg.pinv(np.column_stack([levels, x, x**2]))[-2:]
        return cls(tuple(sorted(sizes)), weights, values, lengths, groups, noise, freedom)

    def difference(self, first: int, second: int) -> Difference:
        """Difference of two sizes on the curve, with its error for new documents and fits."""
        weights = self._weights(first, second)
        total = float(self.lengths.sum())
        found = paired_difference(total * (weights @ self.values), self.lengths, self.groups)
        noise = self.noise * float(np.linalg.norm(weights))
        return Difference(found.mean, float(np.hypot(found.std_error, noise)), self.freedom)

    def best(self, sizes: Collection[int]) -> int:
        """The size with the highest score; ties go to the smallest."""
        return max(sizes, key=lambda size: (self._ahead(size, self.sizes[0]), -size))

    def smallest(self, best: int, loss: float) -> int:
        """The smallest size on the curve that loses at most `loss` against the best one."""
        between = range(self.sizes[0], best + 1)
        return next(size for size in between if self._ahead(best, size) <= loss)

    def _weights(self, first: int, second: int) -> Floats:
        """Weights of the scores of fits in the difference of two sizes."""
        step = np.array([first**-0.5 - second**-0.5, 1 / first - 1 / second])
        return step @ self.weights

    def _ahead(self, first: int, second: int) -> float:
        return float(self._weights(first, second) @ self.values.sum(axis=1))


class Curve(NamedTuple):
    """Losses of sizes against the best size, and the recommendation.

    `behind` is the loss of each size in nats per token, by increasing size. A size is as good as
    the best if the interval of its loss holds 0, unless it surely loses more than the tolerance:
    these are the `good` ones, and `recommended` is the smallest of them, or within the tolerance if
    one is given. `near` is the smallest size within the tolerance, by default 0.01. At an elbow,
    the gain per topic falls sharply; the sharpest elbow is first. Without elbows, `smooth` is a
    curve through the best sizes, and `difference` compares those on it.
    """

    best: int
    behind: dict[int, Difference]
    good: tuple[int, ...]
    elbows: tuple[int, ...]
    tolerance: float
    near: int
    recommended: int
    difference: Callable[[int, int], Difference]
    smooth: Smooth | None

    @classmethod
    def of(cls, race: Race, kept: Collection[int], tolerance: float | None) -> Self:
        """The curve of a race; `kept` are the sizes that may be the best."""
        best, difference = race.best(kept), race.difference
        behind = {size: difference(best, size) for size in sorted(race.fits)}
        elbows = _elbows({size: found.mean for size, found in behind.items()})
        close = {size for size, found in behind.items() if found.mean <= _SMOOTH}
        if smooth := None if elbows else Smooth.of(race, close):
            best, on_curve = smooth.best(close.intersection(kept)), smooth.difference

            def difference(first: int, second: int) -> Difference:
                return (on_curve if {first, second} <= close else race.difference)(first, second)

            behind = {size: difference(best, size) for size in behind}
        allowed = TOLERANCE if tolerance is None else tolerance
        may_be = (size for size in sorted(kept) if interval(behind[size])[0] <= 0.0)
        good = tuple(size for size in may_be if not race.is_hopeless(size, best, allowed))
        near = min(size for size, found in behind.items() if found.mean <= allowed)
        recommended = good[0] if tolerance is None else min(good[0], near)
        return cls(best, behind, good, elbows, allowed, near, recommended, difference, smooth)

    @property
    def close(self) -> list[int]:
        """Sizes that share a smooth curve, if there is no bend."""
        return [size for size, found in self.behind.items() if found.mean <= _SMOOTH]

    @property
    def uncertain(self) -> set[int]:
        """Close sizes whose losses have errors above the tolerance, or none yet."""
        errors = {size: self.behind[size].std_error for size in self.close}
        return {x for x in errors if self.smooth is None or not errors[x] <= self.tolerance}

    @property
    def rises(self) -> bool:
        """Whether the last doubling gained more than half of the tolerance."""
        largest = max(self.behind)
        halves = [size for size in self.behind if 2 * size <= largest]
        if not halves:
            return True
        return self.behind[halves[-1]].mean - self.behind[largest].mean > self.tolerance / 2

    @property
    def is_coarse(self) -> bool:
        """Whether the size before `near` loses more than the tolerance against it."""
        smaller = [size for size in self.behind if size < self.near]
        if not smaller:
            return False
        return self.behind[smaller[-1]].mean - self.behind[self.near].mean > self.tolerance

    @property
    def possible_bend(self) -> int | None:
        """The size below `near` where the curve bends most, if that may be an elbow."""
        found = _sharpness({size: lost.mean for size, lost in self.behind.items()})
        found = {size: x for size, x in found.items() if size < self.near and x > _MAY_BE_SHARP}
        return max(found, key=found.__getitem__, default=None)


def _elbows(losses: dict[int, float]) -> tuple[int, ...]:
    """Sizes at which the gain per topic falls sharply, sharpest first.

    Neighbours within `_APART` hide a bend by the noise of their fits. Without them a bend is less
    certain by as much, and is told only if no other is as near.
    """
    found = {size: x for size, x in _sharpness(losses).items() if x > _SHARP}
    apart = _sharpness(losses, _APART)
    for size in sorted(apart, key=lambda size: -apart[size]):
        is_alone = all(max(size, other) > _APART * min(size, other) for other in found)
        if apart[size] > _SHARP and is_alone:
            found[size] = apart[size]
    return tuple(sorted(found, key=lambda size: -found[size]))


def _sharpness(losses: dict[int, float], apart: float = 1.0) -> dict[int, float]:
    """Least gain of a topic up to each size, in units of the largest beyond.

    Only sizes that differ by more than the factor `apart` are compared.
    """
    sizes = np.array([*losses], dtype=np.float64)
    scores = -np.array([*losses.values()])
    sharpness = {}
    for size, score in zip(sizes, scores, strict=True):
        below, above = sizes * apart < size, sizes > apart * size
        if below.any() and above.any():
            slopes = (scores - score) / np.where(sizes == size, np.nan, sizes - size)
            gained, beyond = float(slopes[0]), max(float(slopes[above].max()), 0.0)
            if gained > 0:
                sharpness[int(size)] = float(slopes[below].min()) / (beyond + _NO_GAIN * gained)
    return sharpness
