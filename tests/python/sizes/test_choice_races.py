"""Differences of sizes on common documents with their errors; curves, and the next sizes."""

import numpy as np
import pytest
from scipy import stats

from polyabayes._support.jackknife import Difference
from polyabayes.sizes.choice import grid, held_out
from polyabayes.sizes.choice.curve import Curve, Smooth, _elbows
from polyabayes.sizes.choice.fits import FoldFit
from polyabayes.sizes.choice.race import Race, interval
from polyabayes.sizes.folds import folds_of


def fit_of(size, fold, values):
    return FoldFit(size, fold, values, 0 * values, np.zeros(0), np.zeros((size, 1), "f4"), 0.0)


def race_of(differences, lengths, n_folds, noise, rng, groups=None):
    """A race of two sizes whose scores differ by `differences` and noise of every fit."""
    folds = folds_of(lengths, n_folds, rng, groups)
    race = Race(folds, lengths, groups)
    for fold in range(n_folds):
        own = folds == fold
        base = rng.normal(size=own.sum()) * lengths[own]
        shift = rng.normal() * noise * lengths[own]
        for size, values in ((1, base), (2, base + differences[own] + shift)):
            race.add(fit_of(size, fold, values))
    return race


@pytest.mark.parametrize("noise", [0.0, 0.05])
def test_paired_differences_cover_the_truth(noise):
    """At 95 %, of 400 races of sizes whose true difference is 0."""
    rng = np.random.default_rng(7)
    held = 0
    for _ in range(400):
        lengths = rng.integers(20, 200, 60)
        race = race_of(rng.normal(size=60) * np.sqrt(lengths), lengths, 5, noise, rng)
        held += 0.025 < race.behind(1, 2) < 0.975
    # Two binomial errors below 95 %; the larger of two errors may cover more.
    assert held / 400 > 0.928


def test_errors_for_new_groups_hold_where_those_for_documents_do_not():
    """Planted effects of 40 groups of 5 documents, true difference 0, at 95 %."""
    rng, covered = np.random.default_rng(3), {True: 0, False: 0}
    groups = np.repeat(np.arange(40), 5)
    for _ in range(400):
        effect = rng.normal(size=40)[groups] + 0.5 * rng.normal(size=200)
        for grouped in covered:
            race = race_of(effect, np.full(200, 50), 2, 0.0, rng, groups if grouped else None)
            covered[grouped] += 0.025 < race.behind(1, 2) < 0.975
    assert 0.92 < covered[True] / 400 < 0.98
    assert covered[False] / 400 < 0.75


def test_the_leader_is_ahead_on_the_folds_that_it_shares():
    """Size 2 is ahead of 1 on both folds, 3 on the first one, where it is behind 2."""
    values = {1: [[0.0], [0.0]], 2: [[5.0], [1.0]], 3: [[4.0]]}
    race = Race(np.array([0, 1]), np.array([10, 10]))
    for size, rows in values.items():
        for fold, row in enumerate(rows):
            race.add(fit_of(size, fold, np.array(row)))
    assert race.difference(3, 1).mean > race.difference(2, 1).mean
    assert race.best([1, 2, 3]) == 2


def test_one_document_drops_no_size():
    race = race_of(np.array([-40.0]), np.array([10]), 1, 0.0, np.random.default_rng(0))
    assert race.difference(2, 1).mean == -4.0
    assert race.difference(2, 1).std_error == np.inf
    assert race.behind(2, 1) == race.chance_to_stay(2, 1) == 0.5
    assert not race.are_equal(1, 2, loss=5.0)


def test_a_size_far_behind_in_each_of_two_groups_is_dropped():
    """One fold of 100 documents of two donors: Student's t of two groups cannot say so."""
    rng = np.random.default_rng(0)
    groups, lengths = np.repeat([0, 1], 50), np.full(100, 80)
    far, mixed = -0.5 * lengths + 10 * rng.normal(size=100), np.where(groups, 40.0, -60.0)
    race = race_of(far, lengths, 1, 0.0, rng, groups)
    assert race.chance_to_stay(2, 1) < 1e-10 < 1e-3 < race.behind(2, 1)
    assert race.chance_to_stay(2, 1, margin=0.6) > 0.5
    # Groups that do not agree are as uncertain as ever.
    race = race_of(mixed, lengths, 1, 0.0, rng, groups)
    assert race.chance_to_stay(2, 1) == race.behind(2, 1)
    # The interval of two donors holds 0, though either loses more than the tolerance.
    unlike = np.where(groups, -0.2, -0.6) * lengths + 10 * rng.normal(size=100)
    race = race_of(unlike, lengths, 1, 0.0, rng, groups)
    assert interval(race.difference(1, 2))[0] < 0
    assert [Curve.of(race, [1, 2], x).good for x in (None, 0.3)] == [(1,), (1, 2)]
    assert race.may_gain(2, 1, 0.01) < 1e-10 < 0.1 < race.behind(2, 1, -0.01)
    # Each document is a group of its own if there are none.
    race = race_of(far, lengths, 1, 0.0, rng)
    assert race.chance_to_stay(2, 1) == race.behind(2, 1)


@pytest.mark.parametrize(("grouped", "n_folds"), [(False, 5), (True, 5), (False, 2)])
def test_a_smooth_curve_covers_the_truth(grouped, n_folds):
    """Differences of 200 races at 95 %: documents have slopes and noise of their own, fits too.

    The true scores are no polynomial in 1 / sqrt(size), and only the first fold has 32 topics.
    """
    rng, sizes, errors, noise = np.random.default_rng(5), [32, 64, 91, 128, 200], [], []
    true = {size: -0.5 * size**-0.4 for size in sizes}
    for _ in range(200):
        lengths = rng.integers(20, 200, 200)
        groups = rng.integers(0, 60, 200) if grouped else None
        folds = folds_of(lengths, n_folds, rng, groups)
        units = rng.normal(size=200)[groups] if grouped else rng.normal(size=200)
        race = Race(folds, lengths, groups)
        for size in sizes:
            for fold in range(1 if size == 32 else n_folds):
                own = folds == fold
                scores = true[size] + 0.02 * units[own] * np.log(size) + 0.004 * rng.normal()
                values = lengths[own] * scores + 0.2 * rng.normal(size=own.sum())
                race.add(fit_of(size, fold, values))
        curve = Smooth.of(race, sizes)
        noise.append(curve.noise)
        for size in (64, 128):
            found = curve.difference(200, size)
            ahead = found.mean - (true[200] - true[size])
            errors.append(ahead / found.std_error)
        assert curve.best(sizes) == 200
        near = curve.smallest(200, 0.01)
        assert curve.difference(200, near).mean <= 0.01 < curve.difference(200, near - 1).mean
    assert np.sqrt(np.mean(np.square(noise))) == pytest.approx(0.004, rel=0.15)
    quantile = stats.t.ppf(0.975, curve.freedom)
    assert 0.92 < np.mean(np.abs(errors) < quantile) <= 0.99
    # Its errors are smaller than those of single sizes, which do not know the noise of two folds.
    if n_folds > 2:
        assert found.std_error < race.difference(200, 128).std_error


def test_few_fits_have_no_smooth_curve():
    race = Race(np.zeros(4, dtype=np.int64), np.full(4, 50))
    for size in (32, 64, 128, 200):
        race.add(fit_of(size, 0, -np.zeros(4)))
    assert Smooth.of(race, [32, 64, 128, 200]) is None


class Losses:
    """A race of known losses."""

    def __init__(self, losses, std_error=0.001):
        self.fits = {size: {0: None} for size in losses}
        self._losses, self._error = losses, std_error

    def best(self, sizes):
        return min(sizes, key=lambda size: (self._losses[size], size))

    def difference(self, first, second):
        lost = self._losses[second] - self._losses[first]
        return Difference(lost, self._error if lost else 0.0, 9.0)

    def is_hopeless(self, _size, _leader, _margin):
        return False


@pytest.mark.parametrize(
    ("losses", "tolerance", "recommended", "elbows"),
    [
        # Documents of the model: 10 topics, and further ones do a little harm.
        ({4: 0.49, 8: 0.13, 9: 0.05, 10: 0, 11: 0.001, 16: 0.002}, None, 10, [10]),
        # Bursts of words: 10 topics, and further ones gain a little for ever; the bend is told.
        ({4: 0.53, 8: 0.165, 9: 0.096, 10: 0.0102, 20: 0.008, 64: 0.004, 128: 0}, None, 128, [10]),
        ({4: 0.53, 8: 0.165, 9: 0.096, 10: 0.0102, 20: 0.008, 64: 0.004, 128: 0}, 0.02, 10, [10]),
        # No bend at all, as of real texts.
        ({2**k: 0.32 * 0.6**k - 0.32 * 0.6**9 for k in range(10)}, None, 256, []),
        ({2**k: 0.32 * 0.6**k - 0.32 * 0.6**9 for k in range(10)}, 0.01, 128, []),
        ({4: 0.49, 8: 0.13, 9: 0.05, 10: 0, 11: 0.001}, 0.1, 9, [10]),
        # Its interval holds 0, by an error of 0.001 and 9 degrees of freedom.
        ({4: 0.49, 8: 0.13, 9: 0.0022, 10: 0, 11: 0.001}, 0.0, 9, [9]),
    ],
)  # fmt: skip
def test_the_rule_of_the_recommended_size(losses, tolerance, recommended, elbows):
    curve = Curve.of(Losses(losses), [*losses], tolerance)
    assert (curve.recommended, [*curve.elbows]) == (recommended, elbows)


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
    assert (curve.elbows, curve.recommended, curve.near) == ((10,), 64, 64)
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
