"""Curve of held-out scores over sizes, and the recommended size."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import NamedTuple, Self

import numpy as np

from polyabayes._support.jackknife import Difference
from polyabayes.sizes.choice.race import Race
from polyabayes.sizes.choice.smooth import Smooth

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


class Curve(NamedTuple):
    """Losses of sizes against the best size, and the recommendation.

    `behind` is the loss of each size in nats per token, by increasing size. `good` are the sizes
    within one standard error of the best, and `near` is the smallest size within the tolerance. At
    an elbow, the gain per topic falls sharply; the sharpest elbow is first. `rule` is the reason of
    the recommendation: "equally good", "elbow" or "tolerance". Without elbows, `smooth` is a
    curve through the best sizes, and `difference` compares those on it.
    """

    best: int
    behind: dict[int, Difference]
    good: tuple[int, ...]
    elbows: tuple[int, ...]
    tolerance: float
    near: int
    recommended: int
    rule: str
    difference: Callable[[int, int], Difference]
    smooth: Smooth | None

    @classmethod
    def of(cls, race: Race, kept: Collection[int], tolerance: float | None) -> Self:
        """The curve of a race.

        Without a tolerance, the smallest equally good size is recommended if the curve bends there,
        as for documents drawn from the model; a smaller size if the curve bends there much more
        sharply than anywhere beyond; and if it has no bend, the smallest size within a loss of 0.01
        nats per token. `kept` are the sizes that may be the best.
        """
        best, difference = race.best(kept), race.difference
        behind = {size: difference(best, size) for size in sorted(race.fits)}
        elbows = _elbows({size: found.mean for size, found in behind.items()})
        close = {size for size, found in behind.items() if found.mean <= _SMOOTH}
        if smooth := None if elbows else Smooth.of(race, close):
            best, on_curve = smooth.best(close.intersection(kept)), smooth.difference

            def difference(first: int, second: int) -> Difference:
                return (on_curve if {first, second} <= close else race.difference)(first, second)

            behind = {size: difference(best, size) for size in behind}
        good = tuple(s for s in sorted(kept) if behind[s].mean <= max(behind[s].std_error, 0.0))
        smallest = good[0]
        allowed = TOLERANCE if tolerance is None else tolerance
        near = min(size for size, found in behind.items() if found.mean <= allowed)
        recommended, rule = smallest, "equally good"
        if tolerance is not None:
            recommended, rule = near, "tolerance"
        elif elbows and elbows[0] < smallest:
            recommended, rule = elbows[0], "elbow"
        elif not elbows and near < smallest:
            recommended, rule = near, "tolerance"
        return cls(best, behind, good, elbows, allowed, near, recommended, rule, difference, smooth)

    @property
    def is_bare(self) -> bool:
        """Whether there is no bend, and the tolerance decides or errors are not known yet."""
        return not self.elbows and (self.rule == "tolerance" or self.smooth is None)

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
