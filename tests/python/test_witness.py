"""The search against traces worked by hand, and its bounds against sums over all sizes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import polyabayes as pb
from polyabayes import priors
from polyabayes.exceptions import (
    InvalidArgumentError,
    InvalidTypeError,
    NotFittedError,
    ScoreError,
    ScoreWarning,
)
from polyabayes.witness import Score, SearchStep, WitnessSearch
from polyabayes.witness._scores import Intervals, Record

HALF = priors.Geometric(0.5)

# p(y | sizes) of a small search in two variables; it never falls.
SCORES = {
    (1, 1): 0.01,
    (2, 1): 0.02,
    (1, 2): 0.03,
    (3, 1): 0.04,
    (2, 2): 0.05,
    (1, 3): 0.06,
    (4, 1): 0.045,
}


def step(
    sizes: tuple[int, ...],
    witnesses: list[tuple[int, ...]],
    pruned: list[tuple[int, ...]],
) -> SearchStep:
    return SearchStep(sizes, None, tuple(witnesses), witnesses[0], tuple(pruned))


def test_the_trace_of_one_size() -> None:
    search = WitnessSearch(lambda k: math.log(k / 10), HALF, max_steps=4).fit()
    assert search.trace_ == [
        step((1,), [(1,)], []),
        step((2,), [(2,)], [(1,)]),
        step((3,), [(3,)], [(2,)]),
        step((4,), [(4,)], [(3,)]),
    ]
    # F = sum of 2^-k k/10, H = 2^-n; p(y | k) is at least that of the last, at most 1.
    table = search.bounds_
    f, h = [0.05, 0.1, 0.1375, 0.1625], [0.5, 0.25, 0.125, 0.0625]
    last = [0.1, 0.2, 0.3, 0.4]
    np.testing.assert_allclose(np.exp(table["log_f"]), f, rtol=1e-12)
    np.testing.assert_allclose(np.exp(table["log_h"]), h, rtol=1e-12)
    np.testing.assert_allclose(np.exp(table["log_prior"]), h, rtol=1e-12)
    np.testing.assert_allclose(np.exp(table["log_score"]), last, rtol=1e-12)
    np.testing.assert_allclose(np.exp(table["lower"]), np.add(f, np.multiply(h, last)), rtol=1e-11)
    np.testing.assert_allclose(np.exp(table["upper"]), np.add(f, h), rtol=1e-11)
    assert table["witness"].tolist() == [1, 2, 3, 4]


@pytest.mark.parametrize("bound", ["witness", "min-witness", "paper"])
def test_the_trace_of_two_sizes(bound: str) -> None:
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
    assert (table["size_1"].tolist(), table["size_2"].tolist()) == (
        [1, 1, 2, 3, 1, 2, 4],
        [1, 2, 1, 1, 3, 2, 1],
    )


def test_best_first_weighs_the_width_against_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    slow = {(1, 2): 64.0}
    clock = {"time": 0.0}

    def score(a: int, b: int) -> float:
        clock["time"] += slow.get((a, b), 1.0)
        return math.log(0.5)

    monkeypatch.setattr("time.perf_counter", lambda: clock["time"])
    search = WitnessSearch(
        score, priors.Product(HALF, HALF), strategy="best-first", max_steps=5
    ).fit()
    # (1, 2) took 64 s, so its successors come after those of (2, 1), down to a 64th of their mass.
    assert [step.sizes for step in search.trace_] == [(1, 1), (1, 2), (2, 1), (2, 2), (3, 1)]


class Mixture:
    """A nested family: a mixture of multinomials to which components are added one by one."""

    def __init__(self, rng: np.random.Generator, most: int) -> None:
        n_words = int(rng.integers(2, 6))
        self.topics = rng.dirichlet(np.full(n_words, 0.7), size=most)
        self.train = rng.multinomial(int(rng.integers(1, 9)), self.topics[-1], size=3)
        self.test = rng.multinomial(int(rng.integers(1, 5)), self.topics[-1], size=2)
        self.most = most
        self._weights: list[NDArray[np.float64]] = []
        weights = np.ones(1)
        for k in range(1, most + 1):
            densities = self._densities(self.train, k)
            if k > 1:
                # A new component starts with no weight unless that is an improvement.
                shared = np.append(weights * 0.8, 0.2)
                for _ in range(5):
                    posterior = densities * shared
                    shared = (posterior / posterior.sum(1, keepdims=True)).mean(0)
                weights = np.append(weights, 0.0)
                if self._log(densities, shared) > self._log(densities, weights):
                    weights = shared
            self._weights.append(weights)

    def score(self, k: int) -> float:
        k = min(k, self.most)
        return self._log(self._densities(self.train, k), self._weights[k - 1])

    def predict(self, k: int) -> float:
        k = min(k, self.most)
        return self._log(self._densities(self.test, k), self._weights[k - 1])

    def _densities(self, counts: NDArray[np.int64], k: int) -> NDArray[np.float64]:
        return np.prod(self.topics[None, :k] ** counts[:, None], axis=2)

    @staticmethod
    def _log(densities: NDArray[np.float64], weights: NDArray[np.float64]) -> float:
        return float(np.log(densities @ weights).sum())


class Truth:
    """The sums over all sizes: those up to `most` one by one, beyond that all alike."""

    def __init__(
        self,
        prior: priors.SizePrior,
        tops: tuple[int, ...],
        score: Callable[..., float],
        predict: Callable[..., float],
    ) -> None:
        masses = np.exp(prior.log_masses(tops))
        axes = [range(low, top + 2) for low, top in zip(prior.first, tops, strict=True)]
        self.sizes = list(itertools.product(*axes))
        weights = np.array([math.exp(score(*sizes)) for sizes in self.sizes]) * masses.ravel()
        self.evidence = math.log(weights.sum())
        self.posterior = dict(zip(self.sizes, weights / weights.sum(), strict=True))
        values = np.array([math.exp(predict(*sizes)) for sizes in self.sizes])
        self.predictive = math.log((weights * values).sum() / weights.sum())


def random_prior(rng: np.random.Generator, most: int) -> priors.UnivariatePrior:
    return (
        priors.Poisson(float(rng.uniform(0.3, 6))),
        priors.Poisson(float(rng.uniform(0.3, 6)), truncate=True),
        priors.Geometric(float(rng.uniform(0.2, 0.8))),
        priors.NegativeBinomial(float(rng.uniform(0.3, 6)), float(rng.uniform(0.3, 3))),
        priors.Uniform(int(rng.integers(1, 3)), most),
        priors.Table(rng.dirichlet(np.ones(most))),
    )[rng.integers(6)]


def assert_all_contained(search: WitnessSearch, truth: Truth, X_new: Any) -> None:
    table = search.bounds_
    assert (table["lower"] <= truth.evidence).all()
    assert (truth.evidence <= table["upper"]).all()
    assert (np.diff(table["lower"]) >= -1e-12 * abs(truth.evidence)).all()
    assert (np.diff(table["upper"]) <= 1e-12 * abs(truth.evidence)).all()
    if search.stop_reason_ == "width":
        assert table["upper"][-1] - table["lower"][-1] <= search.width
    posterior = search.posterior_bounds_
    names = [name for name in posterior if name.startswith("size")]
    explored = list(zip(*(posterior[name].tolist() for name in names), strict=True))
    assert len(explored) == search.n_steps_
    for sizes, lower, upper in zip(explored, posterior["lower"], posterior["upper"], strict=True):
        assert lower <= truth.posterior[sizes] * (1 + 1e-12), sizes
        assert truth.posterior[sizes] <= upper * (1 + 1e-12), sizes
    rest = sum(mass for sizes, mass in truth.posterior.items() if sizes not in explored)
    least, most = search.unexplored_posterior_
    assert least * (1 - 1e-12) <= rest <= most * (1 + 1e-12) + 1e-15
    predicted = search.predictive_bounds(X_new)
    if search.holds_["predictive"]:
        assert predicted.lower <= truth.predictive + 1e-12 * abs(truth.predictive)
        assert truth.predictive <= predicted.upper + 1e-12 * abs(truth.predictive)


@pytest.mark.parametrize("seed", range(10))
def test_nested_bounds_contain_the_sum_over_all_sizes(seed: int) -> None:
    rng = np.random.default_rng([seed, 1])
    n_claims = 0
    for case in range(60):
        most = int(rng.integers(3, 9))
        mixture, prior = Mixture(rng, most), random_prior(rng, most)
        truth = Truth(prior, (most,), mixture.score, mixture.predict)
        search = WitnessSearch(
            mixture.score,
            prior,
            bound=("witness", "witness", "min-witness", "paper")[case % 4],
            upper=("vacuous", "multinomial")[case // 4 % 2],
            predictive=lambda _, k, mixture=mixture: mixture.predict(k),
            width=(3.0, 0.3, 0.003)[case % 3],
            max_steps=most,
        ).fit(mixture.train)
        n_claims += search.stop_reason_ == "width"
        assert_all_contained(search, truth, mixture.test)
    assert n_claims


@pytest.mark.parametrize("seed", range(10))
def test_nested_bounds_of_two_sizes_contain_the_sum(seed: int) -> None:
    rng = np.random.default_rng([seed, 2])
    for case in range(40):
        most = tuple(int(n) for n in rng.integers(2, 5, size=2))
        one, two = (Mixture(rng, n) for n in most)

        def score(a: int, b: int, one: Mixture = one, two: Mixture = two) -> float:
            return one.score(a) + two.score(b)

        def predict(a: int, b: int, one: Mixture = one, two: Mixture = two) -> float:
            return one.predict(a) + two.predict(b)

        if case % 2:
            prior: priors.SizePrior = priors.Product(*(random_prior(rng, n) for n in most))
        else:
            prior = priors.JointTable(rng.dirichlet(np.ones(math.prod(most))).reshape(most))
        truth = Truth(prior, most, score, predict)
        search = WitnessSearch(
            score,
            prior,
            bound=("witness", "min-witness")[case // 2 % 2],
            strategy=("successor", "best-first")[case // 4 % 2],
            predictive=lambda _, *sizes, predict=predict: predict(*sizes),
            # Never beyond the box where the truth is known size by size.
            max_steps=min(most),
        ).fit()
        assert_all_contained(search, truth, None)


@pytest.mark.parametrize("seed", range(5))
def test_evidence_bounds_contain_the_sum(seed: int) -> None:
    """Scores that rise and fall: no witness gives a lower bound."""
    rng = np.random.default_rng([seed, 3])
    for _ in range(60):
        most = int(rng.integers(3, 9))
        prior = random_prior(rng, most)
        values, new = -rng.gamma(2.0, 2.0, size=most + 2), -rng.gamma(2.0, 1.0, size=most + 2)

        def score(k: int, values: Any = values, most: int = most) -> float:
            return float(values[min(k, most)])

        def predict(k: int, new: Any = new, most: int = most) -> float:
            return float(new[min(k, most)])

        truth = Truth(prior, (most,), score, predict)
        search = WitnessSearch(
            score,
            prior,
            kind="evidence",
            predictive=lambda _, k, predict=predict: predict(k),
            width=0.05,
            max_steps=most,
        ).fit()
        assert_all_contained(search, truth, None)
        np.testing.assert_allclose(search.bounds_["lower"], search.bounds_["log_f"], rtol=1e-11)


def test_a_lower_bound_by_witnesses_would_fail_where_scores_fall() -> None:
    def score(k: int) -> float:
        return math.log(0.5 if k == 1 else 0.01)

    truth = 0.5 * 0.5 + 0.5 * 0.01
    evidence = WitnessSearch(score, HALF, kind="evidence", max_steps=1).fit()
    nested = WitnessSearch(score, HALF, max_steps=1).fit()
    assert evidence.bounds_["lower"][0] <= math.log(truth) < nested.bounds_["lower"][0]


def test_the_sum_of_two_bounds_on_a_prediction_is_twice_the_prediction() -> None:
    """A1 + B1 <= p(y'|y) <= A2 + B2, equation 13 of the paper, fails; what is offered holds.

    A1 = N / (F + H) is the part of the explored sizes, B1 = (N + p(y'|w) p(y|w) H) / (F + H) has
    the others predict as the witness w. Each tends to p as H vanishes, their sum to 2 p.
    """
    rng = np.random.default_rng(13)
    for _ in range(14):
        mixture, prior = Mixture(rng, 8), priors.Poisson(2.0)
        truth = math.exp(Truth(prior, (8,), mixture.score, mixture.predict).predictive)
        search = WitnessSearch(
            mixture.score,
            prior,
            bound="paper",
            predictive=lambda _, k, mixture=mixture: mixture.predict(k),
            max_steps=20,
        ).fit()
        row = search.bounds_.row(-1)
        f, h = math.exp(row["log_f"]), math.exp(row["log_h"])
        w, w_new = math.exp(mixture.score(20)), math.exp(mixture.predict(20))
        n = sum(
            math.exp(float(prior.log_pmf(k)) + mixture.score(k) + mixture.predict(k))
            for k in range(1, 21)
        )
        a1, b1, b2 = n / (f + h), (n + w_new * w * h) / (f + h), (n + w_new * h) / (f + w * h)
        assert a1 + b1 > 1.9 * truth
        found = search.predictive_bounds(None)
        assert found.lower == pytest.approx(math.log(a1), rel=1e-9)
        assert found.upper == pytest.approx(math.log(b2), rel=1e-9)
        assert not search.holds_["predictive"]
        rigorous = search.set_params(bound="witness").fit().predictive_bounds(None)
        assert search.holds_["predictive"]
        assert rigorous.lower <= math.log(truth) <= rigorous.upper


def test_the_papers_predictive_bound_fails_without_its_assumption() -> None:
    """Sizes above 1 predict far better than size 1 does: the paper's bound does not see them."""
    options: dict[str, Any] = {
        "score": lambda k: math.log(0.1 if k == 1 else 0.9),
        "prior": HALF,
        "predictive": lambda _, k: math.log(0.01 if k == 1 else 0.9),
        "max_steps": 1,
    }
    truth = math.log((0.5 * 0.1 * 0.01 + 0.5 * 0.9 * 0.9) / (0.5 * 0.1 + 0.5 * 0.9))
    paper = WitnessSearch(**options, bound="paper").fit().predictive_bounds(None)
    rigorous = WitnessSearch(**options).fit().predictive_bounds(None)
    assert paper.upper < truth <= rigorous.upper
    f, h, n = 0.05, 0.5, 0.0005
    assert rigorous.lower == pytest.approx(math.log(n / (f + h)))
    assert rigorous.upper == pytest.approx(math.log((n + h) / (f + h)))


@pytest.mark.parametrize("degrees", [math.inf, 5.0])
def test_noisy_scores_cover_with_the_confidence_claimed(degrees: float) -> None:
    rng = np.random.default_rng(77)
    confidence, n_runs, n_covered = 0.7, 400, 0
    truth = Truth(priors.Poisson(3.0), (12,), lambda k: -2.0 / k, lambda k: -1.0 / k)

    def draw() -> float:
        return float(rng.standard_normal() if math.isinf(degrees) else rng.standard_t(degrees))

    for _ in range(n_runs):
        search = WitnessSearch(
            lambda k: (-2.0 / k + 0.3 * draw(), 0.3, degrees),
            priors.Poisson(3.0),
            predictive=lambda _, k: (-1.0 / k + 0.2 * draw(), 0.2, degrees),
            confidence=confidence,
            max_steps=12,
        )
        try:
            predicted = search.fit().predictive_bounds(None)
        except ScoreError:
            # Intervals that contradict one another, or the ceiling: one of them misses.
            continue
        table = search.bounds_
        inside = (table["lower"] <= truth.evidence) & (truth.evidence <= table["upper"])
        covers = predicted.lower <= truth.predictive <= predicted.upper
        n_covered += bool(inside.all() and covers)
        assert (np.diff(table["lower"]) >= -1e-9).all()
        assert (np.diff(table["upper"]) <= 1e-9).all()
    assert n_covered >= confidence * n_runs


def test_intervals_cover_all_scores_together_and_are_not_idle() -> None:
    rng = np.random.default_rng(5)
    n_runs, n_covered = 2000, 0
    for errors in rng.standard_normal((n_runs, 30)):
        records = [Record((1,), Score(-50.0 + float(error), 1.0), 0.0) for error in errors]
        lower, upper = Intervals.of(records, 0.8)
        n_covered += bool(((lower <= -50.0) & (upper >= -50.0)).all())
    # Independent errors miss with probability 1 - prod (1 - 0.2 * 6 / (pi i)^2).
    shares = 0.2 * 6 / (math.pi * np.arange(1, 31)) ** 2
    expected = float(np.prod(1 - shares))
    assert 0.8 < expected < 0.83
    assert abs(n_covered / n_runs - expected) < 3 * math.sqrt(expected * (1 - expected) / n_runs)


def test_a_fall_within_the_errors_is_no_error() -> None:
    search = WitnessSearch(lambda k: ((-5.0, -5.4, -4.0)[k - 1], 0.5), priors.Uniform(1, 3)).fit()
    assert search.stop_reason_ == "exhausted"
    assert (search.bounds_["lower"] <= search.bounds_["upper"]).all()


@pytest.mark.parametrize(
    ("score", "message"),
    [
        (lambda k: -3.0 - (k == 3), r"falls from -3.0 at size 2 to -4.0 at size 3"),
        (lambda k: (-3.0 - 9 * (k == 3), 0.1), r"falls from -3.0 \+- 0.1 at size"),
        (lambda k: -3.0 if k < 3 else math.nan, r"log score of size 3 is nan"),
        (lambda k: -3.0 if k < 3 else math.inf, r"log score of size 3 is inf"),
        (lambda k: (-3.0, -float(k)), r"standard error of the score of size 1 is -1.0"),
        (lambda k: (-3.0, math.nan * k), r"standard error of the score of size 1 is nan"),
        (lambda k: (-3.0, 1.0, -1.0 * k), r"degrees of freedom of the score of size 1"),
        (lambda k: "x" * k, r"score of size 1 must be a number"),
        (lambda k: (-3.0, "x" * k), r"its std_error is 'x'"),
        (lambda k: 0.5 * k, r"log score of size 1 is 0.5, above the ceiling 0.0"),
    ],
)
def test_bad_scores_are_refused_with_their_configuration(score: Any, message: str) -> None:
    search = WitnessSearch(score, priors.Poisson(2.0), max_steps=5)
    with pytest.raises(ScoreError, match=message):
        search.fit()


def test_a_fall_in_two_variables_is_seen_between_comparable_sizes_only() -> None:
    values = {(1, 1): -9.0, (1, 2): -4.0, (2, 1): -6.0, (2, 2): -5.0}
    prior = priors.Product(priors.Uniform(1, 2), priors.Uniform(1, 2))
    with pytest.raises(ScoreError, match=r"-4.0 at sizes \(1, 2\) to -5.0 at sizes \(2, 2\)"):
        WitnessSearch(lambda a, b: values[a, b], prior).fit()
    values[2, 2] = -3.0
    assert WitnessSearch(lambda a, b: values[a, b], prior).fit().n_steps_ == 4


def test_zero_probability_is_legal() -> None:
    search = WitnessSearch(lambda k: -math.inf if k < 3 else -2.0, HALF, max_steps=4).fit()
    assert search.bounds_["lower"][:2].tolist() == [-np.inf, -np.inf]
    assert search.bounds_["lower"][-1] == pytest.approx(math.log(0.25) - 2.0)
    assert search.posterior_bounds_["upper"][:2].tolist() == [0.0, 0.0]
    assert search.best_ == 3


def test_a_failure_is_marked_and_its_mass_stays_unexplored() -> None:
    def score(k: int) -> float:
        if k in (2, 3):
            raise MemoryError(f"no room for {k}")
        return math.log(0.1 * k)

    with pytest.warns(ScoreWarning, match="size [23] could not be scored: MemoryError"):
        search = WitnessSearch(score, HALF, max_steps=5).fit()
    table = search.bounds_
    assert table["size"].tolist() == [1, 2, 3, 4, 5]
    assert table["failure"].tolist() == [
        None,
        "MemoryError('no room for 2')",
        "MemoryError('no room for 3')",
        None,
        None,
    ]
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


def test_a_score_that_always_fails_ends_the_search() -> None:
    def score(*_: int) -> float:
        raise RuntimeError("never")

    with (
        pytest.warns(ScoreWarning),
        pytest.raises(ScoreError, match=r"10 configurations in a row.*size 10: RuntimeError"),
    ):
        WitnessSearch(score, HALF, max_steps=50).fit()
    with pytest.warns(ScoreWarning), pytest.raises(ScoreError, match="no configuration could be"):
        WitnessSearch(score, priors.Uniform(1, 3)).fit()


@pytest.mark.parametrize(
    ("options", "reason", "n_steps"),
    [
        ({"max_steps": 3}, "max_steps", 3),
        ({"width": 0.5}, "width", 3),
        ({"max_unexplored": 0.01}, "max_unexplored", 7),
        ({}, "max_unexplored", 20),
        ({"prior": priors.Uniform(2, 6)}, "exhausted", 5),
        ({"prior": priors.Table({2: 0.5, 40: 0.5})}, "exhausted", 2),
        ({"max_seconds": 1e-9, "prior": priors.Uniform(2, 6)}, "max_seconds", 0),
    ],
)
def test_when_the_search_stops(options: dict[str, Any], reason: str, n_steps: int) -> None:
    arguments = {"prior": HALF, "score": lambda k: -3.0 / k, **options}
    search = WitnessSearch(**arguments).fit()
    assert (search.stop_reason_, search.n_steps_) == (reason, n_steps)


def test_an_exhausted_search_is_exact() -> None:
    search = WitnessSearch(lambda k: -3.0 / k, priors.Uniform(2, 6)).fit()
    table = search.bounds_
    truth = math.log(sum(math.exp(-3.0 / k) / 5 for k in range(2, 7)))
    assert table["log_h"][-1] == -np.inf
    assert table["lower"][-1] == pytest.approx(truth, rel=1e-11)
    assert table["upper"][-1] == pytest.approx(truth, rel=1e-11)
    assert table["witness"][-1] is None
    posterior = search.posterior_bounds_
    assert posterior["lower"].sum() == pytest.approx(1.0, rel=1e-10)


def test_bounds_of_thousands_of_nats_do_not_underflow() -> None:
    search = WitnessSearch(lambda k: -1e5 - 800.0 / k, priors.Poisson(5.0), max_steps=150).fit()
    table = search.bounds_
    assert table["log_h"][-1] == pytest.approx(float(priors.Poisson(5.0).log_survival(150)))
    assert np.isfinite(table["lower"]).all()
    # H is e^-372 here, and U = 1: the upper bound says nothing yet, as it must.
    assert table["upper"][-1] == pytest.approx(table["log_h"][-1])
    assert table["lower"][-1] == pytest.approx(table["log_f"][-1], abs=1e-6)


def test_the_multinomial_ceiling() -> None:
    counts = np.array([[2, 1, 0], [0, 0, 4], [0, 0, 0]])
    ceiling = 2 * math.log(2 / 3) + math.log(1 / 3)
    search = WitnessSearch(lambda k: ceiling - 1.0 / k, HALF, upper="multinomial", max_steps=3).fit(
        counts
    )
    assert search.log_ceiling_ == pytest.approx(ceiling, rel=1e-11)
    assert search.log_ceiling_ >= ceiling
    with pytest.raises(ScoreError, match="above the ceiling"):
        search.set_params(score=lambda k: ceiling + 1e-6 * k).fit(counts)
    own = WitnessSearch(lambda k: 0.5 - 1.0 / k, HALF, upper=lambda _: 0.75, max_steps=1).fit()
    assert own.bounds_["upper"][0] == pytest.approx(
        np.logaddexp(math.log(0.5) - 0.5, math.log(0.5) + 0.75)
    )


def test_the_same_scores_under_another_prior() -> None:
    asked: list[int] = []

    def score(k: int) -> float:
        asked.append(k)
        return -3.0 / k

    search = WitnessSearch(score, priors.Poisson(3.0), max_steps=6).fit()
    other = search.under(priors.Geometric(0.2))
    assert asked == [1, 2, 3, 4, 5, 6]
    direct = WitnessSearch(score, priors.Geometric(0.2), max_steps=6).fit()
    for name in ("log_prior", "log_f", "log_h", "lower", "upper"):
        np.testing.assert_array_equal(other.bounds_[name], direct.bounds_[name])
    assert repr(search.prior) == repr(priors.Poisson(3.0))
    with pytest.raises(InvalidArgumentError, match="size 1 is explored, but"):
        search.under(priors.Uniform(2, 9))
    with pytest.raises(InvalidArgumentError, match="prior must be of 1 sizes"):
        search.under(priors.Product(HALF, HALF))


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"prior": 5.0}, InvalidTypeError, "prior must be one of polyabayes.priors"),
        ({"score": 3}, InvalidTypeError, "score must be an estimator or a function"),
        ({"kind": "both"}, InvalidArgumentError, "kind must be one of 'nested', 'evidence'"),
        ({"bound": "best"}, InvalidArgumentError, "bound must be one of"),
        ({"upper": "one"}, InvalidArgumentError, "upper must be one of"),
        ({"upper": "multinomial"}, InvalidArgumentError, "needs X"),
        ({"upper": lambda _: math.nan}, InvalidArgumentError, r"upper\(X\) is nan"),
        ({"strategy": "random"}, InvalidArgumentError, "strategy must be one of"),
        ({"max_steps": 0}, InvalidArgumentError, "max_steps must be at least 1"),
        ({"width": -1.0}, InvalidArgumentError, "width must be positive"),
        ({"max_seconds": 0.0}, InvalidArgumentError, "max_seconds must be positive"),
        ({"confidence": 1.0}, InvalidArgumentError, "confidence must be strictly between"),
        ({"predictive": 3}, InvalidTypeError, "predictive must be a function"),
        ({"random_state": -1}, InvalidArgumentError, "random_state must be"),
        ({"checkpoint": 3}, InvalidTypeError, "checkpoint must be a folder"),
    ],
)
def test_bad_arguments_are_refused_before_any_work(
    options: dict[str, Any], error: type[Exception], message: str
) -> None:
    def score(_: int) -> float:
        raise AssertionError("called")

    with pytest.raises(error, match=message):
        WitnessSearch(**{"score": score, "prior": HALF, **options}).fit()


def test_before_fit_and_without_predictions() -> None:
    search = WitnessSearch(lambda k: -3.0 / k, HALF, max_steps=2)
    for name in ("bounds_", "posterior_bounds_", "best_", "trace_", "n_steps_", "holds_"):
        with pytest.raises(NotFittedError):
            getattr(search, name)
    search.fit()
    with pytest.raises(InvalidArgumentError, match="needs predictive="):
        search.predictive_bounds(None)
    with pytest.raises(InvalidArgumentError, match="there are no models"):
        search.model(1)
    assert pb.WitnessSearch is WitnessSearch


def test_tables_are_frames() -> None:
    search = WitnessSearch(lambda k: -3.0 / k, HALF, max_steps=15).fit()
    frame = search.bounds_.to_frame()
    assert frame.shape == (15, len(search.bounds_))
    assert frame["size"].tolist() == list(range(1, 16))
    text = repr(search.bounds_)
    assert "... 3 rows ..." in text
    assert text.splitlines()[-1].split()[0] == "15"
