"""Bounds of the search against sums over all sizes, which small cases allow."""

import itertools
import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from polyabayes import priors
from polyabayes.exceptions import InvalidArgumentError, ScoreError
from polyabayes.sizes.witness import WitnessSearch
from polyabayes.sizes.witness.results import mean_bounds, share_bounds

HALF = priors.Geometric(0.5)


class Mixture:
    """A nested family: a mixture of multinomials to which components are added one by one."""

    def __init__(self, rng, most):
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

    def score(self, k):
        k = min(k, self.most)
        return self._log(self._densities(self.train, k), self._weights[k - 1])

    def predict(self, k):
        k = min(k, self.most)
        return self._log(self._densities(self.test, k), self._weights[k - 1])

    def _densities(self, counts, k):
        return np.prod(self.topics[None, :k] ** counts[:, None], axis=2)

    @staticmethod
    def _log(densities, weights):
        return float(np.log(densities @ weights).sum())


class Truth:
    """The sums over all sizes: those up to `most` one by one, beyond that all alike."""

    def __init__(self, prior, tops, score, predict):
        masses = np.exp(prior.log_masses(tops))
        axes = [range(low, top + 2) for low, top in zip(prior.first, tops, strict=True)]
        self.sizes = list(itertools.product(*axes))
        weights = np.array([math.exp(score(*sizes)) for sizes in self.sizes]) * masses.ravel()
        self.evidence = math.log(weights.sum())
        self.posterior = dict(zip(self.sizes, weights / weights.sum(), strict=True))
        values = np.array([math.exp(predict(*sizes)) for sizes in self.sizes])
        self.predictive = math.log((weights * values).sum() / weights.sum())


def random_prior(rng, most):
    return (
        priors.Poisson(float(rng.uniform(0.3, 6))),
        priors.Poisson(float(rng.uniform(0.3, 6)), truncate=True),
        priors.Geometric(float(rng.uniform(0.2, 0.8))),
        priors.NegativeBinomial(float(rng.uniform(0.3, 6)), float(rng.uniform(0.3, 3))),
        priors.Uniform(int(rng.integers(1, 3)), most),
        priors.Table(rng.dirichlet(np.ones(most))),
    )[rng.integers(6)]


def assert_all_contained(search, truth, X_new):
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


def checked(prior, tops, score, predict, train=None, new=None, **options):
    """A search whose bounds hold, by the sums over all sizes."""
    search = WitnessSearch(
        score, prior, predictive=lambda _, *sizes: predict(*sizes), **options
    ).fit(train)
    assert_all_contained(search, Truth(prior, tops, score, predict), new)
    return search


@pytest.mark.parametrize("seed", range(10))
def test_nested_bounds_contain_the_sum_over_all_sizes(seed):
    rng = np.random.default_rng([seed, 1])
    n_claims = 0
    for case in range(60):
        most = int(rng.integers(3, 9))
        mixture, prior = Mixture(rng, most), random_prior(rng, most)
        functions, data = (mixture.score, mixture.predict), (mixture.train, mixture.test)
        options = {"bound": ("witness", "witness", "min-witness", "paper")[case % 4]}
        options |= {"upper": ("vacuous", "multinomial")[case // 4 % 2]}
        options |= {"width": (3.0, 0.3, 0.003)[case % 3], "max_steps": most}
        search = checked(prior, (most,), *functions, *data, **options)
        n_claims += search.stop_reason_ == "width"
    assert n_claims


def added(first, second):
    return lambda a, b: first(a) + second(b)


@pytest.mark.parametrize("seed", range(10))
def test_nested_bounds_of_two_sizes_contain_the_sum(seed):
    rng = np.random.default_rng([seed, 2])
    n_steps = 0
    for case in range(40):
        most = tuple(int(n) for n in rng.integers(2, 5, size=2))
        one, two = (Mixture(rng, n) for n in most)
        if case % 2:
            prior: priors.SizePrior = priors.Product(*(random_prior(rng, n) for n in most))
        else:
            masses = rng.dirichlet(np.ones(math.prod(most))).reshape(most)
            # Half of these have holes.
            masses[rng.random(most) < 0.5 * (case // 2 % 2)] = 0.0
            masses[-1, -1] += 1 - masses.sum()
            prior = priors.JointTable(masses)
        functions = added(one.score, two.score), added(one.predict, two.predict)
        options = {"bound": ("witness", "min-witness")[case // 2 % 2]}
        options |= {"strategy": ("successor", "widest")[case // 4 % 2]}
        # Never beyond the box where the truth is known size by size.
        search = checked(prior, most, *functions, max_steps=min(most), **options)
        n_steps += search.n_steps_
    assert n_steps > 40


@pytest.mark.parametrize("kind", ["nested", "evidence"])
def test_bounds_under_an_uncertain_mean_contain_the_sum(kind):
    """Two sizes that share a Poisson mean, itself one of three; sums over 80 x 80 sizes."""
    means, weights = np.array([0.3, 1.0, 2.5]), np.array([0.5, 0.3, 0.2])
    prior = priors.Mixture([priors.Product(*[priors.Poisson(m)] * 2) for m in means], weights)
    sizes = np.arange(1, 81)

    def score(first, second):
        return -3.0 - 9.0 / first - 5.0 / second

    values = np.exp(score(*np.ix_(sizes, sizes)))
    masses = stats.poisson.pmf(sizes - 1, means[:, None])
    evidence = np.einsum("ci,cj,ij->c", masses, masses, values)
    truth, share = math.log(weights @ evidence), weights * evidence / (weights @ evidence)
    for n_steps in (1, 5, 30, 150):
        search = WitnessSearch(score, prior, kind=kind, strategy="widest", max_steps=n_steps).fit()
        assert search.bounds_["lower"][-1] <= truth <= search.bounds_["upper"][-1]
        found = search.posterior_of_priors()
        assert (found["lower"] <= share).all()
        assert (share <= found["upper"]).all()
        assert (found["log_evidence_lower"] <= np.log(evidence)).all()
        assert (np.log(evidence) <= found["log_evidence_upper"]).all()
    assert search.bounds_["upper"][-1] - search.bounds_["lower"][-1] < 0.02
    np.testing.assert_allclose(found["upper"], found["lower"], atol=0.02)
    assert found["prior"].tolist() == list(map(repr, prior.priors))
    with pytest.raises(InvalidArgumentError, match="no components to compare"):
        search.under(priors.Product(HALF, HALF)).posterior_of_priors()


def looked_up(values, most):
    return lambda k: float(values[min(k, most)])


@pytest.mark.parametrize("seed", range(5))
def test_evidence_bounds_contain_the_sum(seed):
    """Scores that rise and fall: no witness gives a lower bound."""
    rng = np.random.default_rng([seed, 3])
    for _ in range(60):
        most = int(rng.integers(3, 9))
        prior = random_prior(rng, most)
        values, new = -rng.gamma(2.0, 2.0, size=most + 2), -rng.gamma(2.0, 1.0, size=most + 2)
        functions = looked_up(values, most), looked_up(new, most)
        search = checked(prior, (most,), *functions, kind="evidence", width=0.05, max_steps=most)
        np.testing.assert_allclose(search.bounds_["lower"], search.bounds_["log_f"], rtol=1e-11)


def test_the_papers_predictive_bound_fails_without_its_assumption():
    """Sizes above 1 predict far better than size 1 does: the paper's bound does not see them."""
    options: dict[str, Any] = {
        "estimator": lambda k: math.log(0.1 if k == 1 else 0.9),
        "prior": HALF,
        "predictive": lambda _, k: math.log(0.01 if k == 1 else 0.9),
        "max_steps": 1,
    }
    truth = math.log((0.5 * 0.1 * 0.01 + 0.5 * 0.9 * 0.9) / (0.5 * 0.1 + 0.5 * 0.9))
    search = WitnessSearch(**options, bound="paper").fit()
    paper = search.predictive_bounds(None)
    assert not search.holds_["predictive"]
    rigorous = WitnessSearch(**options).fit().predictive_bounds(None)
    assert paper.upper < truth <= rigorous.upper
    f, h, n = 0.05, 0.5, 0.0005
    # Equation 13: the others have the likelihood, and the prediction, of the witness.
    assert paper.lower == pytest.approx(math.log(n / (f + h)))
    assert paper.upper == pytest.approx(math.log((n + 0.01 * h) / (f + 0.1 * h)))
    assert rigorous.lower == pytest.approx(math.log(n / (f + h)))
    assert rigorous.upper == pytest.approx(math.log((n + h) / (f + h)))


@pytest.mark.parametrize("degrees", [math.inf, 5.0])
def test_noisy_scores_cover_with_the_confidence_claimed(degrees):
    rng = np.random.default_rng(77)
    level, n_runs, n_covered = 0.7, 400, 0
    truth = Truth(priors.Poisson(3.0), (12,), lambda k: -2.0 / k, lambda k: -1.0 / k)

    def draw():
        return float(rng.standard_normal() if math.isinf(degrees) else rng.standard_t(degrees))

    for _ in range(n_runs):
        search = WitnessSearch(
            lambda k: (-2.0 / k + 0.3 * draw(), 0.3, degrees),
            priors.Poisson(3.0),
            predictive=lambda _, k: (-1.0 / k + 0.2 * draw(), 0.2, degrees),
            level=level,
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
    assert n_covered >= level * n_runs


@pytest.mark.parametrize("seed", range(20))
def test_means_and_shares_are_bounded_by_their_extreme_weights(seed):
    """Both are monotone in every weight, so the extremes are at corners of the box of weights."""
    rng = np.random.default_rng([seed, 4])
    n = int(rng.integers(1, 7))
    low_values, low_weights = rng.normal(0, 3, size=(2, n))
    high_values, high_weights = np.add([low_values, low_weights], rng.gamma(1.0, size=(2, n)))
    corners = np.array(list(itertools.product(*zip(low_weights, high_weights, strict=True))))
    totals = np.exp(corners).sum(axis=1)
    lower, upper = mean_bounds(low_values, high_values, low_weights, high_weights)
    assert lower == pytest.approx(np.log((np.exp(corners + low_values).sum(1) / totals).min()))
    assert upper == pytest.approx(np.log((np.exp(corners + high_values).sum(1) / totals).max()))
    # The last weight is the rest, which has no share of its own.
    rest = low_weights[-1], high_weights[-1]
    least, most = share_bounds(low_weights[:-1], high_weights[:-1], rest)
    shares = (np.exp(corners) / totals[:, None])[:, :-1]
    np.testing.assert_allclose(np.exp(least), shares.min(axis=0), rtol=1e-12)
    np.testing.assert_allclose(np.exp(most), shares.max(axis=0), rtol=1e-12)
