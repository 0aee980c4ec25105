"""The search against traces worked by hand, its rules, and what it refuses."""

import math

import numpy as np
import pytest

from polyabayes import priors
from polyabayes.exceptions import ScoreError, ScoreWarning
from polyabayes.sizes.witness import SearchStep, WitnessSearch

HALF = priors.Geometric(0.5)

# p(y | sizes) of a small search in two variables; it never falls.
SCORES = {(1, 1): 0.01, (2, 1): 0.02, (1, 2): 0.03, (3, 1): 0.04, (2, 2): 0.05, (1, 3): 0.06}
SCORES |= {(4, 1): 0.045}


def step(sizes, witnesses, pruned):
    return SearchStep(sizes, None, tuple(witnesses), witnesses[0], tuple(pruned))


@pytest.mark.parametrize("bound", ["witness", "min-witness", "paper"])
def test_the_trace_of_two_sizes(bound):
    """Every set at every step, and the bounds, worked by hand."""
    search = WitnessSearch(
        lambda a, b: math.log(SCORES[a, b]), priors.Product(HALF, HALF), bound=bound, max_steps=7
    ).fit()
    assert search.trace_ == [
        step((1, 1), [(1, 1)], []),
        # Both successors of (1, 1) have mass 1/8: the first is taken, then the other.
        step((1, 2), [(1, 1), (1, 2)], []),
        # (1, 2) is the better witness of (2, 2) and all above: (2, 1) keeps (3.., 1).
        step((2, 1), [(2, 1), (1, 2)], [(1, 1)]),
        # (2, 2) is not explored, yet (2, 1) is pruned: (1, 2) covers it with a higher score.
        step((3, 1), [(1, 2), (3, 1)], [(2, 1)]),
        # (1, 2) is left with (2, 2) alone.
        step((1, 3), [(1, 2), (3, 1), (1, 3)], []),
        step((2, 2), [(3, 1), (2, 2), (1, 3)], [(1, 2)]),
        step((4, 1), [(4, 1), (2, 2), (1, 3)], [(3, 1)]),
    ]
    f = np.cumsum([0.01 / 4, 0.03 / 8, 0.02 / 8, 0.04 / 16, 0.06 / 16, 0.05 / 16, 0.045 / 32])
    h = 1 - np.cumsum([1 / 4, 1 / 8, 1 / 8, 1 / 16, 1 / 16, 1 / 16, 1 / 32])
    # Masses of the regions: (2.., 1) 1/4; (3.., 1) 1/8; (4.., 1) 1/16; (5.., 1) 1/32; (1, 3..) 1/8;
    # (1, 4..) 1/16; (2.., 2..) 1/4; (3.., 2..) 1/8; (2, 2..) 1/8; (3.., 2) 1/16; (2.., 3..) 1/8.
    by_region = [
        0.01 * 3 / 4,
        0.01 / 4 + 0.03 * 3 / 8,
        0.02 / 8 + 0.03 * 3 / 8,
        0.03 * (1 / 8 + 1 / 8) + 0.04 * (1 / 16 + 1 / 8),
        0.03 / 16 + 0.04 * (1 / 16 + 1 / 16) + 0.06 * (1 / 16 + 1 / 8),
        0.04 / 16 + 0.05 / 16 + 0.06 * (1 / 16 + 1 / 8),
        0.045 / 32 + 0.05 / 16 + 0.06 * (1 / 16 + 1 / 8),
    ]
    by_least = h * [0.01, 0.01, 0.02, 0.03, 0.03, 0.04, 0.045]
    table = search.bounds_
    np.testing.assert_allclose(np.exp(table["log_f"]), f, rtol=1e-12)
    np.testing.assert_allclose(np.exp(table["log_h"]), h, rtol=1e-12)
    rest = by_region if bound == "witness" else by_least
    np.testing.assert_allclose(np.exp(table["lower"]), f + rest, rtol=1e-11)
    np.testing.assert_allclose(np.exp(table["upper"]), f + h, rtol=1e-11)
    assert table["size_1"].tolist() == [1, 1, 2, 3, 1, 2, 4]
    assert table["size_2"].tolist() == [1, 2, 1, 1, 3, 2, 1]


def plateau(a, b):
    """Sizes (1, b) stay below all others, however large b is."""
    return -9.0 - 1.0 / b if a == 1 else -3.0 - 1.0 / (a * b)


def test_the_successors_of_the_least_witness_may_stay_on_one_axis():
    prior = priors.Product(HALF, HALF)
    search = WitnessSearch(plateau, prior, max_steps=30)
    stuck = search.set_params(strategy=None).fit().bounds_
    wide = search.set_params(strategy="widest").fit().bounds_
    assert stuck["size_1"].tolist()[3:] == [1] * 27
    # What is left there has next to no mass, so that the bounds hardly move.
    assert stuck["log_h"][-1] == pytest.approx(math.log(3 / 8), abs=1e-6)
    assert wide["log_h"][-1] < math.log(1 / 16)
    assert wide["upper"][-1] < stuck["upper"][-1] - 1
    assert wide["lower"][-1] > stuck["lower"][-1]


def test_the_widest_is_the_next_by_its_part_in_the_width():
    """By hand: mass times (1 - the score of the best witness)."""
    values = {(1, 1): 0.1, (1, 2): 0.2, (2, 1): 0.9, (1, 3): 0.3, (2, 2): 0.95}
    search = WitnessSearch(
        lambda a, b: math.log(values.get((a, b), 0.97)),
        priors.Product(HALF, HALF),
        strategy="widest",
        max_steps=7,
    ).fit()
    # After (1, 1) both have 0.9 / 8, and the first is taken; then (2, 1) has 0.9 / 8 and (1, 3) 0.8
    # / 16; then (1, 3) has 0.8 / 16, (2, 2) and (3, 1) 0.1 / 16; then (1, 4) 0.7 / 32.
    order = [(1, 1), (1, 2), (2, 1), (1, 3), (1, 4), (2, 2), (3, 1)]
    assert [step.sizes for step in search.trace_] == order


def test_a_fall_within_the_errors_is_no_error():
    search = WitnessSearch(lambda k: ((-5.0, -5.4, -4.0)[k - 1], 0.5), priors.Uniform(1, 3)).fit()
    assert search.stop_reason_ == "exhausted"
    assert (search.bounds_["lower"] <= search.bounds_["upper"]).all()


def test_sizes_that_are_not_comparable_may_fall():
    values = {(1, 1): -9.0, (1, 2): -4.0, (2, 1): -6.0, (2, 2): -3.0}
    prior = priors.Product(priors.Uniform(1, 2), priors.Uniform(1, 2))
    assert WitnessSearch(lambda a, b: values[a, b], prior).fit().n_steps_ == 4


def only_40(low, high):
    """All mass at the sizes (40, 40)."""
    return 0.0 if all(a <= 40 <= b for a, b in zip(low, high, strict=True)) else -math.inf


TWO, FOUR = {(1, 2): 0.5, (2, 1): 0.5}, {(1, 1): 0.4, (2, 3): 0.3, (3, 2): 0.2, (9, 9): 0.1}


@pytest.mark.parametrize(
    ("prior", "order"),
    [
        (priors.JointTable(TWO), [*TWO]),
        (priors.JointTable(FOUR), [*FOUR]),
        (priors.Joint(only_40, 2), [(40, 40)]),
    ],
)
def test_holes_of_the_prior_do_not_end_the_search(prior, order):
    search = WitnessSearch(lambda a, b: -3.0 / (a * b), prior).fit()
    assert [step.sizes for step in search.trace_] == order
    assert search.stop_reason_ == "exhausted"
    assert search.bounds_["witness"][-1] is None
    truth = sum(math.exp(prior.log_box(s, s) - 3.0 / (s[0] * s[1])) for s in order)
    assert search.bounds_["lower"][-1] == pytest.approx(math.log(truth), abs=1e-10)
    assert (search.bounds_["lower"] <= math.log(truth)).all()
    assert (search.bounds_["upper"] >= math.log(truth)).all()


def test_a_certain_score_has_no_bound_above_it():
    search = WitnessSearch(lambda _: 0.0, priors.Poisson(2.0), width=1e-9).fit()
    assert search.n_steps_ == 1
    assert search.bounds_["lower"][0] <= 0.0


def test_zero_probability_is_legal():
    search = WitnessSearch(lambda k: -math.inf if k < 3 else -2.0, HALF, max_steps=4).fit()
    assert search.bounds_["lower"][:2].tolist() == [-np.inf, -np.inf]
    assert search.bounds_["lower"][-1] == pytest.approx(math.log(0.25) - 2.0)
    assert search.posterior_bounds_["upper"][:2].tolist() == [0.0, 0.0]
    assert search.best_ == 3


def test_a_failure_is_marked_and_its_mass_stays_unexplored():
    def score(k):
        if k in (2, 3):
            raise MemoryError(f"no room for {k}")
        return math.log(0.1 * k)

    with pytest.warns(ScoreWarning, match="size [23] could not be scored: MemoryError"):
        search = WitnessSearch(score, HALF, max_steps=5).fit()
    table = search.bounds_
    assert table["size"].tolist() == [1, 2, 3, 4, 5]
    failures = [f"MemoryError('no room for {size}')" for size in (2, 3)]
    assert table["failure"].tolist() == [None, *failures, None, None]
    assert np.isnan(table["log_score"][1:3]).all()
    h = [1 / 2, 1 / 2, 1 / 2, 7 / 16, 13 / 32]
    np.testing.assert_allclose(np.exp(table["log_h"]), h, rtol=1e-12)
    # 2 and 3 have 1 for a witness, and the score of 4 for a ceiling: they are below it.
    f = 0.1 / 2 + 0.4 / 16 + 0.5 / 32
    assert math.exp(table["lower"][-1]) == pytest.approx(f + 0.1 * 3 / 8 + 0.5 / 32)
    assert math.exp(table["upper"][-1]) == pytest.approx(f + 0.4 * 3 / 8 + 1.0 / 32)
    assert search.trace_[1].failure is not None
    assert search.trace_[1].witnesses == ((1,),)
    assert search.posterior_bounds_["size"].tolist() == [1, 4, 5]


def test_a_score_that_always_fails_ends_the_search():
    def score(*_):
        raise RuntimeError("never")

    told = "10 configurations in a row.*size 10: RuntimeError"
    with pytest.warns(ScoreWarning), pytest.raises(ScoreError, match=told):
        WitnessSearch(score, HALF, max_steps=50).fit()
    search = WitnessSearch(score, priors.Uniform(1, 3))
    with pytest.warns(ScoreWarning), pytest.raises(ScoreError, match="no configuration could be"):
        search.fit()
    assert search.n_steps_ == 3
    with pytest.raises(ScoreError, match="no configuration has a score"):
        search.best_  # noqa: B018


@pytest.mark.parametrize(
    ("options", "reason", "n_steps"),
    [
        ({"max_steps": 3}, "max_steps", 3),
        ({"width": 0.5}, "width", 3),
        ({"max_unexplored": 0.01}, "max_unexplored", 7),
        ({}, "max_unexplored", 20),
        ({"prior": priors.Uniform(2, 6)}, "exhausted", 5),
        ({"prior": priors.Table({2: 0.5, 40: 0.5})}, "exhausted", 2),
        ({"max_seconds": 1e-9, "prior": priors.Uniform(2, 6)}, "max_seconds", 1),
    ],
)
def test_when_the_search_stops(options, reason, n_steps):
    arguments = {"prior": HALF, "estimator": lambda k: -3.0 / k, **options}
    search = WitnessSearch(**arguments).fit()
    assert (search.stop_reason_, search.n_steps_) == (reason, n_steps)


def test_bounds_of_thousands_of_nats_do_not_underflow():
    search = WitnessSearch(lambda k: -1e5 - 800.0 / k, priors.Poisson(5.0), max_steps=150).fit()
    table = search.bounds_
    assert table["log_h"][-1] == pytest.approx(float(priors.Poisson(5.0).log_survival(150)))
    assert np.isfinite(table["lower"]).all()
    # H is e^-372 here, and U = 1: the upper bound says nothing yet, as it must.
    assert table["upper"][-1] == pytest.approx(table["log_h"][-1])
    assert table["lower"][-1] == pytest.approx(table["log_f"][-1], abs=1e-6)


def test_the_multinomial_ceiling():
    counts = np.array([[2, 1, 0], [0, 0, 4], [0, 0, 0]])
    ceiling = 2 * math.log(2 / 3) + math.log(1 / 3)
    options = {"upper": "multinomial", "max_steps": 3}
    search = WitnessSearch(lambda k: ceiling - 1.0 / k, HALF, **options).fit(counts)
    assert search.log_ceiling_ == pytest.approx(ceiling, rel=1e-11)
    assert search.log_ceiling_ >= ceiling
    with pytest.raises(ScoreError, match="above the ceiling"):
        search.set_params(estimator=lambda k: ceiling + 1e-6 * k).fit(counts)
    own = WitnessSearch(lambda k: 0.5 - 1.0 / k, HALF, upper=lambda _: 0.75, max_steps=1).fit()
    expected = np.logaddexp(math.log(0.5) - 0.5, math.log(0.5) + 0.75)
    assert own.bounds_["upper"][0] == pytest.approx(expected)


def test_the_same_scores_under_another_prior():
    asked: list[int] = []

    def score(k):
        asked.append(k)
        return -3.0 / k

    search = WitnessSearch(score, priors.Poisson(3.0), max_steps=6).fit()
    other = search.under(priors.Geometric(0.2))
    assert asked == [1, 2, 3, 4, 5, 6]
    direct = WitnessSearch(score, priors.Geometric(0.2), max_steps=6).fit()
    for name in ("log_prior", "log_f", "log_h", "lower", "upper"):
        np.testing.assert_array_equal(other.bounds_[name], direct.bounds_[name])
    assert repr(search.prior) == repr(priors.Poisson(3.0))


def of_thirds():
    return WitnessSearch(lambda k: -3.0 / k, HALF, max_steps=2)


def test_tables_are_frames():
    search = WitnessSearch(lambda k: -3.0 / k, HALF, max_steps=15).fit()
    frame = search.bounds_.to_frame()
    assert frame.shape == (15, len(search.bounds_))
    assert frame["size"].tolist() == list(range(1, 16))
    text = repr(search.bounds_)
    assert "... 3 rows ..." in text
    assert text.splitlines()[-1].split()[0] == "15"
