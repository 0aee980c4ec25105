"""Curves of known losses: the rule of the recommended size, bends, and the sizes to try next."""

import pytest

from polyabayes._support.jackknife import Difference
from polyabayes.sizes.choice import grid, held_out
from polyabayes.sizes.choice.curve import Curve, _elbows


class Losses:
    """A race of known losses."""

    def __init__(self, losses, std_error=0.001):
        self.fits, self._losses, self._error = (
            {size: {0: None} for size in losses},
            losses,
            std_error,
        )

    def best(self, sizes):
        return min(sizes, key=lambda size: (self._losses[size], size))

    def difference(self, first, second):
        lost = self._losses[second] - self._losses[first]
        return Difference(lost, self._error if lost else 0.0, 9.0)


@pytest.mark.parametrize(
    ("losses", "tolerance", "recommended", "rule", "elbows"),
    [
        # Documents of the model: 10 topics, and further ones do a little harm.
        ({4: 0.49, 8: 0.13, 9: 0.05, 10: 0, 11: 0.001, 16: 0.002}, None, 10, "equally good", [10]),
        # Bursts of words: 10 topics, and further ones gain a little for ever.
        ({4: 0.53, 8: 0.165, 9: 0.096, 10: 0.0102, 20: 0.008, 64: 0.004, 128: 0}, None, 10, "elbow",
         [10]),
        # No bend at all, as of real texts: the smallest size within 0.01.
        ({2**k: 0.32 * 0.6**k - 0.32 * 0.6**9 for k in range(10)}, None, 128, "tolerance", []),
        ({4: 0.49, 8: 0.13, 9: 0.05, 10: 0, 11: 0.001}, 0.1, 9, "tolerance", [10]),
        ({4: 0.49, 8: 0.13, 9: 0.05, 10: 0, 11: 0.001}, 0.0, 10, "tolerance", [10]),
    ],
)  # fmt: skip
def test_the_rule_of_the_recommended_size(losses, tolerance, recommended, rule, elbows):
    curve = Curve.of(Losses(losses), [*losses], tolerance)
    assert (curve.recommended, curve.rule, [*curve.elbows]) == (recommended, rule, elbows)


def test_the_grid_widens_and_refines():
    assert grid.wider([2, 4, 8], {8}, 1, 100) == [16]
    assert grid.wider([2, 4, 8], {2, 4}, 1, 100) == [1]
    assert grid.wider([2, 4, 8], {8}, 1, 8) == []
    # Below the best size first, then above it where that may gain.
    assert grid.finer([2, 4, 8, 16], 8, 8, 1.2) == [6]
    assert grid.finer([7, 8, 16], 8, 8, 1.2) == [11]
    assert grid.finer([7, 8, 16], 8, 8, 1.2, lambda _low, _high: False) == []
    assert grid.finer([7, 8, 9], 8, 8, 1.2) == []
    # Below the smallest size that is as good, a smaller one may be as good, too.
    assert grid.finer([2, 4, 8, 16], 16, 8, 1.2) == [6, 11]
    assert grid.finer([2, 4, 8, 16], 16, 8, 1.2, lambda _low, _high: False) == [6]


def test_the_grid_is_finest_beside_what_may_be_chosen():
    def finer(tried, close, possible, best):
        chances = dict.fromkeys(possible, 0.1) | dict.fromkeys(close, 0.5)
        return held_out._finer(tried, chances, best)

    assert finer([16, 19, 23, 32], [23], [23], 23) == [21]
    assert finer([16, 19, 21, 23, 32], [23], [23], 23) == [27]
    assert finer([16, 19, 21, 23, 27, 32], [21, 23], [21, 23], 21) == [20]
    assert finer([19, 20, 21, 23, 27, 32], [21, 23], [21, 23], 21) == []
    # Below the smallest that is as good, but not between others.
    assert finer([40, 48, 58, 70, 84], [58, 70, 84], [58, 70, 84], 84) == [53, 77]
    # And below one that is not as good, but may be: the truth may be there.
    assert finer([16, 19, 23, 25, 27, 29, 32], [27], [23, 25, 27, 29], 27) == [21]


def test_a_bend_between_sizes_of_the_coarse_grid_is_found():
    """10 broad topics of 4 narrow ones each."""
    losses = {2: 0.66, 4: 0.496, 8: 0.246, 16: 0.088, 32: 0.031, 64: 0.0}
    finer = {9: 0.174, 10: 0.118, 11: 0.113, 13: 0.104, 23: 0.062}
    assert not Curve.of(Losses(losses), [*losses], None).elbows
    while (bend := Curve.of(Losses(losses), [*losses], None).possible_bend) is not None:
        wanted = grid.finer([*losses], bend, bend, 1.21)
        if not wanted:
            break
        losses = dict(sorted((losses | {size: finer[size] for size in wanted}).items()))
    curve = Curve.of(Losses(losses), [*losses], None)
    assert (curve.elbows, curve.recommended, curve.near) == ((10,), 10, 64)
    # No size beyond the answer is looked at, nor where each topic gains nearly as much.
    assert Curve.of(Losses(losses), [*losses], 0.2).possible_bend is None
    even = {2**k: 0.1 * (7 - k) for k in range(1, 8)}
    assert Curve.of(Losses(even), [*even], None).possible_bend is None


def test_a_bend_is_told_though_the_noise_of_a_neighbour_hides_it():
    """10 broad topics of 4 narrow ones each; 11 topics happen to gain much."""
    losses = {2: 0.658, 4: 0.476, 8: 0.236, 9: 0.177, 10: 0.115, 11: 0.098, 16: 0.081, 32: 0.027}
    losses |= {38: 0.011, 41: 0.0, 64: 0.002, 128: 0.003}
    assert _elbows(losses) == (41, 10)
    # One neighbour of a bend is no second bend, and even gains have none.
    planted = {8: 0.4, 16: 0.08, 18: 0.04, 19: 0.02, 20: 0.0, 21: 0.001, 23: 0.001, 32: 0.003}
    assert _elbows(planted) == (20,)
    even = {size: 0.5 * size**-0.5 for size in (8, 16, 32, 64, 91, 99, 108, 128, 200)}
    even[99] -= 0.002
    assert not _elbows(even)
