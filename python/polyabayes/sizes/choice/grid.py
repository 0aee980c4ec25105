"""Next sizes to try: beyond the edges of a coarse geometric grid, and around the best size."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from itertools import pairwise

START = (2, 4, 8, 16, 32)


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


def finer(tried: Sequence[int], close: Collection[int], best: int, ratio: float) -> list[int]:
    """Geometric midpoints of gaps that may contain a better, or a smaller equally good size.

    These are the gaps next to the best size, between close sizes, and below the smallest close
    size. Neighbours within `ratio`, or a step of 1, are near enough.
    """
    found = []
    smallest = min(close, default=best)
    for low, high in pairwise(tried):
        beside = best in (low, high) or high == smallest or (low in close and high in close)
        if beside and high > low + 1 and high / low > ratio:
            middle = round(math.sqrt(low * high))
            found.append(min(max(middle, low + 1), high - 1))
    return found
