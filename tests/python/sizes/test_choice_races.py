"""Differences of sizes on common documents and folds, and errors that hold."""

import numpy as np
import pytest
from scipy import stats

from polyabayes.sizes.choice.curve import Smooth
from polyabayes.sizes.choice.fits import FoldFit
from polyabayes.sizes.choice.race import Race
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
    # Each document is a group of its own if there are none.
    race = race_of(far, lengths, 1, 0.0, rng)
    assert race.chance_to_stay(2, 1) == race.behind(2, 1)


@pytest.mark.parametrize("grouped", [False, True])
def test_a_smooth_curve_covers_the_truth(grouped):
    """Differences of 200 races at 95 %: documents have slopes and noise of their own, fits too.

    The true scores are no polynomial in 1 / sqrt(size), and only the first fold has 32 topics.
    """
    rng, sizes, errors, noise = np.random.default_rng(5), [32, 64, 91, 128, 200], [], []
    true = {size: -0.5 * size**-0.4 for size in sizes}
    for _ in range(200):
        lengths = rng.integers(20, 200, 200)
        groups = rng.integers(0, 60, 200) if grouped else None
        folds = folds_of(lengths, 5, rng, groups)
        units = rng.normal(size=200)[groups] if grouped else rng.normal(size=200)
        race = Race(folds, lengths, groups)
        for size in sizes:
            for fold in range(1 if size == 32 else 5):
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
    # Its errors are smaller than those of single sizes.
    assert found.std_error < race.difference(200, 128).std_error


def test_few_fits_have_no_smooth_curve():
    race = Race(np.zeros(4, dtype=np.int64), np.full(4, 50))
    for size in (32, 64, 128, 200):
        race.add(fit_of(size, 0, -np.zeros(4)))
    assert Smooth.of(race, [32, 64, 128, 200]) is None
