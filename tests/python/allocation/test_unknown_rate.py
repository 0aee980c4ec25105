"""A gamma prior of the intensity's rate."""

import numpy as np
import pytest
from scipy import integrate, special

from polyabayes import AllocationModel, CountTensor

HOLED = np.ma.masked_equal([[-1, 3], [3, 3]], -1)


def ln_total(a, total, shape, rate):
    """ln P(T) by adaptive quadrature in x = ln b."""

    def density(x):
        b = np.exp(x)
        ln_gamma = shape * (x + np.log(rate)) - rate * b - special.gammaln(shape)
        ln_rising = special.gammaln(a + total) - special.gammaln(a) - special.gammaln(total + 1)
        return float(np.exp(ln_gamma + ln_rising - a * np.log1p(1 / b) - total * np.log1p(b)))

    pieces = (integrate.quad(density, x, x + 4, epsabs=0)[0] for x in range(-120, 40, 4))
    return float(np.log(sum(pieces)))


@pytest.mark.parametrize("total", [0, 1, 7, 2000])
@pytest.mark.parametrize("rate", [(2.0, 3.0), (0.3, 0.01), (40.0, 1.0)])
def test_the_probability_of_the_total_is_averaged(total, rate):
    model = AllocationModel("i", concentration=1.5, rate=rate)
    found = model.log_evidence(CountTensor.from_dense([total], ["i"]))
    assert found.value == pytest.approx(ln_total(1.5, total, *rate), abs=1e-9)


def test_a_sharp_prior_is_a_number():
    table = [[4, 3, 0], [0, 0, 3]]
    known = AllocationModel.nmf(2, rate=0.2).log_evidence(table)
    sharp = AllocationModel.nmf(2, rate=(1e8, 5e8)).log_evidence(table)
    assert sharp.value == pytest.approx(known.value, abs=1e-6)
    decomposed = [
        AllocationModel.nmf(2, rate=rate).decompose(table, random_state=0).intensity
        for rate in (0.2, (1e8, 5e8))
    ]
    assert decomposed[1] == pytest.approx(decomposed[0], rel=1e-6)


@pytest.mark.parametrize("method", ["exact", "vb"])
def test_missing_cells_are_averaged_over_the_rate(method):
    shape, inverse_scale = 3.0, 20.0
    options = {"concentration": 4.0}
    model = AllocationModel.nmf(1, rate=(shape, inverse_scale), **options)
    found = model.predict_missing(HOLED, method)
    x = np.linspace(-9.0, 1.5, 64)
    ln_prior = shape * (x + np.log(inverse_scale)) - inverse_scale * np.exp(x)
    ln_weights = ln_prior - special.gammaln(shape) + np.log(x[1] - x[0])
    models = (AllocationModel.nmf(1, rate=float(np.exp(one)), **options) for one in x)
    singly = [model.predict_missing(HOLED, method) for model in models]
    ln_terms = ln_weights + [one.evidence.value for one in singly]
    assert found.evidence.value == pytest.approx(special.logsumexp(ln_terms), abs=1e-4)
    expected = special.softmax(ln_terms) @ [one.expected_counts[0] for one in singly]
    assert found.expected_counts[0] == pytest.approx(expected, rel=1e-3)
    assert found.posterior.sum() == pytest.approx(1.0, abs=1e-6)
    assert np.logaddexp.reduce(found.log_joint) == pytest.approx(found.evidence.value, abs=1e-6)
    assert found.evidence.is_lower_bound == (method == "vb")


def test_simulated_totals_have_the_averaged_distribution():
    model = AllocationModel("i", {"i": 2}, concentration=3.0, rate=(2.0, 0.5))
    rng = np.random.default_rng(1)
    totals = [model.simulate({"i": 2}, random_state=rng).tensor.total for _ in range(4000)]
    for total in range(4):
        share = np.exp(ln_total(3.0, total, 2.0, 0.5))
        error = np.sqrt(share * (1 - share) / len(totals))
        assert np.mean(np.array(totals) == total) == pytest.approx(share, abs=4 * error)


def test_displays_tell_the_prior_of_the_rate():
    assert "rate gamma(2, 50)" in repr(AllocationModel.nmf(1, rate=(2.0, 50.0)))
