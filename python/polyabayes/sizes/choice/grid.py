"""Next sizes to try: beyond the edges of a coarse geometric grid, and around the best size."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from itertools import pairwise

_START = (2, 4, 8, 16, 32)
# The largest size that a search begins with.
LAST = _START[-1]


def coarse(most: int) -> list[int]:
    """The sizes that a search begins with, up to the largest allowed."""
    return [size for size in _START if size <= most] or [most]


def wider(tried: Sequence[int], close: Collection[int], least: int, most: int) -> list[int]:
    """Sizes beyond an edge that may be the best; none at the end of the range.

    `close` are the sizes that may be the best.
    """
    further = []
    if tried[-1] in close and tried[-1] < most:
        further.append(min(2 * tried[-1], most))
    if tried[0] in close and tried[0] > least:
        further.append(max(tried[0] // 2, least))
    return further


def always(_low: int, _high: int) -> bool:
    """Every gap may gain."""
    return True


def finer(
    tried: Sequence[int],
    best: int,
    smallest: int,
    ratio: float,
    may_gain: Callable[[int, int], bool] = always,
) -> list[int]:
    """Geometric midpoints of gaps that may contain a better, or a smaller equally good size.

    These are the gaps below the smallest equally good size, and those next to the best size that
    `may_gain`. Neighbours within `ratio`, or a step of 1, are near enough. The gap above the best
    size is left until there is none below.
    """
    found: list[int] = []
    for low, high in pairwise(tried):
        if found and low == best:
            break
        wanted = high == smallest or (best in (low, high) and may_gain(low, high))
        if wanted and high > low + 1 and high / low > ratio:
            found.append(middle(low, high))
    return found


def middle(low: int, high: int) -> int:
    """The geometric midpoint of two sizes, strictly between them if any size is."""
    return min(max(round(math.sqrt(low * high)), low + 1), high - 1)
