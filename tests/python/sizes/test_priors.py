import math
import pickle
from decimal import Decimal, localcontext

import numpy as np
import pytest
from scipy import special, stats

from polyabayes import priors

LAWS = [
    priors.Poisson(3.5),
    priors.Poisson(0.2, shift=3),
    priors.Poisson(40.0),
    priors.Poisson(2.5, truncate=True),
    priors.Geometric(0.3),
    priors.NegativeBinomial(4.0, 0.7),
    priors.NegativeBinomial(12.0, 30.0, shift=2),
    priors.NegativeBinomial(2.0, 1.5, truncate=True),
    priors.Uniform(2, 9),
    priors.Table({2: 0.25, 5: 0.75}),
    priors.Table([0.5, 0.0, 0.125, 0.375]),
]

HYPER = priors.Mixture([priors.Geometric(0.3), priors.Table([0.5, 0.5])], [0.9, 0.1])


def geometric(size):
    return (size - 1) * math.log(0.4) + math.log(0.6)


def geometric_tail(size):
    return size * math.log(0.4)


def independent_geometric(low, high):
    total = 0.0
    for start, end in zip(low, high, strict=True):
        total += (start - 1) * math.log(0.4)
        if end < math.inf:
            total += math.log(-math.expm1((end - start + 1) * math.log(0.4)))
    return total


@pytest.mark.parametrize("prior", LAWS, ids=repr)
def test_masses_and_tails_are_one_law(prior):
    sizes = np.arange(0, 60)
    pmf, tails = prior.log_pmf(sizes), prior.log_survival(sizes)
    assert pmf[0] == -np.inf
    assert tails[0] == 0.0
    # Every tail is the next mass and the next tail.
    together = np.logaddexp(pmf[1:], tails[1:])
    finite = tails[:-1] > -np.inf
    np.testing.assert_allclose(together[finite], tails[:-1][finite], rtol=1e-13, atol=1e-14)
    assert (together[~finite] == -np.inf).all()


@pytest.mark.parametrize("prior", LAWS, ids=repr)
def test_a_grid_holds_all_the_mass(prior):
    for top in (prior.first[0], prior.first[0] + 7):
        cells = prior.log_masses((top,))
        assert len(cells) == top - prior.first[0] + 2
        assert abs(np.exp(cells).sum() - 1.0) < 1e-14


def ln_tail(mass_of_0, ratio, count):
    """Ln P(N > count) to 40 digits, from ln P(N = 0) and the ratios of P(N = n + 1) to P(N = n)."""
    term = mass_of_0.exp()
    for n in range(count + 1):
        term *= ratio(n)
    total, n = Decimal(0), count + 1
    while term > total * Decimal(10) ** -40:
        total, term, n = total + term, term * ratio(n), n + 1
    return total.ln()


@pytest.mark.parametrize("mean", ["0.5", "5", "40"])
@pytest.mark.parametrize("count", [0, 1, 3, 20, 60, 200, 1000])
def test_poisson_tails_have_all_digits(mean, count):
    # At mean 40 the first is 1 - 4e-18, the last e^-2262: neither 1 - x nor exp could hold them.
    found = float(priors.Poisson(float(mean)).log_survival(count + 1))
    with localcontext(prec=60):
        exact = ln_tail(-Decimal(mean), lambda n: Decimal(mean) / (n + 1), count)
    assert float(Decimal(found) / exact) == pytest.approx(1.0, abs=2e-14)


@pytest.mark.parametrize(("mean", "shape"), [(4, "0.5"), (6, "3"), (1, "9")])
@pytest.mark.parametrize("count", [0, 5, 60, 3000])
def test_negative_binomial_tails_have_all_digits(mean, shape, count):
    with localcontext(prec=60):
        r = Decimal(shape)
        q = mean / (mean + r)
        exact = ln_tail(r * (1 - q).ln(), lambda n: q * (n + r) / (n + 1), count)
    found = float(priors.NegativeBinomial(mean, float(shape)).log_survival(count + 1))
    assert float(Decimal(found) / exact) == pytest.approx(1.0, abs=5e-13)


def test_laws_are_those_of_scipy():
    sizes = np.arange(1, 30)
    expected = stats.poisson.logpmf(sizes - 1, 3.5)
    np.testing.assert_allclose(priors.Poisson(3.5).log_pmf(sizes), expected, rtol=1e-13)
    truncated = stats.poisson.logpmf(sizes, 2.5) - math.log(-math.expm1(-2.5))
    found = priors.Poisson(2.5, truncate=True).log_pmf(sizes)
    np.testing.assert_allclose(found, truncated, rtol=1e-12)
    law = priors.NegativeBinomial(4.0, 0.7)
    expected = stats.nbinom.logpmf(sizes - 1, 0.7, 0.7 / 4.7)
    np.testing.assert_allclose(law.log_pmf(sizes), expected, rtol=1e-12)
    expected = stats.geom.logpmf(sizes, 0.3)
    np.testing.assert_allclose(priors.Geometric(0.3).log_pmf(sizes), expected, rtol=1e-13)
    assert priors.Geometric(0.3).log_survival(5000) == pytest.approx(5000 * math.log(0.7))


def test_a_table_in_any_form():
    by_size, by_place = priors.Table({1: 0.5, 3: 0.5}), priors.Table(np.array([0.5, 0.0, 0.5]))
    assert by_size.log_pmf([1, 2, 3, 4]).tolist() == by_place.log_pmf([1, 2, 3, 4]).tolist()
    assert (by_size.first, by_size.last) == ((1,), 3)
    assert [by_size.next_size(0, size) for size in (0, 1, 2, 3)] == [1, 3, 3, None]
    tiny = priors.Table({1: 1.0, 2: 1e-300})
    assert tiny.log_survival(1) == pytest.approx(math.log(1e-300))


@pytest.mark.parametrize(
    "prior",
    [
        priors.Product(priors.Poisson(2.0), priors.Geometric(0.4)),
        priors.Product(
            priors.Uniform(2, 4), priors.NegativeBinomial(2.0, 1.0), priors.Poisson(1.0)
        ),
        priors.JointTable({(1, 2): 0.25, (3, 1): 0.25, (3, 4): 0.5}),
        priors.Joint(independent_geometric, 2),
        priors.Mixture([priors.Geometric(0.5), priors.Poisson(4.0)], [1.0, 3.0]),
        priors.Mixture(
            [
                priors.Product(priors.Uniform(1, 4), priors.Poisson(1.0)),
                priors.JointTable({(1, 2): 0.5, (3, 1): 0.5}),
            ]
        ),
    ],
    ids=repr,
)
def test_joint_priors_add_up(prior):
    tops = tuple(low + 3 for low in prior.first)
    cells = prior.log_masses(tops)
    assert cells.shape == (5,) * prior.n_variables
    assert abs(np.exp(cells).sum() - 1.0) < 1e-13
    # The grid of a base class cell by cell, against the quicker one.
    np.testing.assert_allclose(cells, priors.SizePrior.log_masses(prior, tops), rtol=1e-12)


def test_a_joint_prior_equals_its_product():
    joint = priors.Joint(independent_geometric, 2)
    product = priors.Product(priors.Geometric(0.6), priors.Geometric(0.6))
    np.testing.assert_allclose(joint.log_masses((4, 3)), product.log_masses((4, 3)), rtol=1e-13)


def test_a_poisson_mean_with_a_gamma_prior_is_negative_binomial():
    """Gauss-Laguerre nodes of the mean, shape 3 and mean 4.5, against the closed form."""
    nodes, weights = special.roots_genlaguerre(40, 2.0)
    means = [priors.Poisson(1.5 * node) for node in nodes]
    mixture, closed = priors.Mixture(means, weights), priors.NegativeBinomial(4.5, 3.0)
    np.testing.assert_allclose(mixture.log_masses((30,)), closed.log_masses((30,)), rtol=1e-10)
    assert mixture.next_size(0, 7) == 8


def test_custom_laws_are_asked_once():
    asked: list[int] = []

    def log_pmf(size):
        asked.append(size)
        return geometric(size)

    prior = priors.Custom(log_pmf, geometric_tail)
    prior.log_pmf(np.arange(1, 15))
    assert len(asked) == len(set(asked))
    expected = priors.Geometric(0.6).log_masses((9,))
    np.testing.assert_allclose(prior.log_masses((9,)), expected, rtol=1e-13)


OTHERS = [priors.Custom(geometric, geometric_tail), priors.Joint(independent_geometric, 2), HYPER]


@pytest.mark.parametrize("prior", [*LAWS, *OTHERS], ids=repr)
def test_priors_pickle(prior):
    copy = pickle.loads(pickle.dumps(prior))
    assert repr(copy) == repr(prior)
    tops = tuple(low + 4 for low in prior.first)
    assert (copy.log_masses(tops) == prior.log_masses(tops)).all()
