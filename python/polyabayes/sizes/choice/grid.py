"""Which sizes to try next: a coarse geometric grid, wider at its edges, finer around the best."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from itertools import pairwise

START = (2, 4, 8, 16, 32)


def wider(tried: Sequence[int], close: Collection[int], least: int, most: int) -> list[int]:
    """Sizes beyond an edge that may be the best; none where the range ends there.

    `close` are those that may be the best.
    """
    further = []
    if tried[-1] in close and tried[-1] < most:
        further.append(min(2 * tried[-1], most))
    if tried[0] in close and tried[0] > least:
        further.append(max(tried[0] // 2, least))
    return further


def finer(tried: Sequence[int], close: Collection[int], best: int, ratio: float) -> list[int]:
    """Geometric midpoints of the gaps where a better or a smaller equally good size may lie.

    These are the gaps beside the best size, between close ones, and below the smallest close one.
    Neighbours within `ratio`, or a step of 1, are near enough.
    """
    found = []
    smallest = min(close, default=best)
    for low, high in pairwise(tried):
        beside = best in (low, high) or high == smallest or (low in close and high in close)
        if beside and high > low + 1 and high / low > ratio:
            middle = round(math.sqrt(low * high))
            found.append(min(max(middle, low + 1), high - 1))
    return found
