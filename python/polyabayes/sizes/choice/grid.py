"""Next sizes to try: beyond the edges of a coarse geometric grid, and around the best size."""

import math
from collections.abc import Callable, Collection, Sequence
from itertools import pairwise

# Values are those with which ``python -m benches.choice topics`` made its record.

_START = (2, 4, 8, 16, 32)
# The largest size that a search begins with.
LAST = _START[-1]
# Rounds of sizes between the largest two of the coarse grid, one fold each, that are expected.
_ROUNDS = 2


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


def expected_fits(most: int, n_folds: int) -> dict[int, int]:
    """About the number of fits of each size, if scores improve up to the largest size.

    One fold of the coarse grid. A bend among its first sizes takes one fold of sizes between the
    largest two, and all folds of the largest and of two between. Beyond them the curve is smooth:
    two folds of the largest three sizes and of two between.
    """
    sizes = coarse(most)
    while sizes[-1] < most:
        sizes += wider(sizes, sizes[-1:], sizes[0], most)
    may_bend = most <= LAST
    tried = sizes[-2:] if may_bend else sizes[-3:]
    for _ in range(_ROUNDS):
        tried = sorted({*tried, *(middle(*gap) for gap in pairwise(tried))})
    if may_bend:
        return dict.fromkeys([*sizes, *tried], 1) | dict.fromkeys({most, *tried[1:3]}, n_folds)
    return dict.fromkeys(sizes, 1) | dict.fromkeys(tried[::2], 2)
