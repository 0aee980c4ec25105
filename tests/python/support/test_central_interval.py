"""Intervals from correlated draws against the normal distribution that they are of."""

import numpy as np
import pytest
from scipy.signal import lfilter
from scipy.stats import norm

from polyabayes._support.posterior_draws import central_interval, n_effective


def chains(correlation, n_draws):
    """Stationary standard normal chains of first order, (n_draws, 2000)."""
    noise = np.random.default_rng(0).normal(size=(n_draws + 200, 2000))
    noise[1:] *= np.sqrt(1 - correlation**2)
    return lfilter([1], [1, -correlation], noise, axis=0)[200:]


@pytest.mark.parametrize("level", [0.8, 0.95])
@pytest.mark.parametrize(("correlation", "n_draws"), [(0.0, 100), (0.6, 200), (0.6, 400)])
def test_intervals_hold_new_draws_as_often_as_they_say(correlation, n_draws, level):
    draws = chains(correlation, n_draws)
    (low, high), shortage = central_interval(draws, level)
    held = (norm.cdf(high) - norm.cdf(low)).mean()
    # Numbers of effective draws are estimates themselves, which makes intervals a little wide.
    assert -0.005 < held - level < 0.012
    assert (shortage < 1).mean() > 0.95
    plain = np.quantile(draws, [0.5 - level / 2, 0.5 + level / 2], axis=0)
    assert np.diff(norm.cdf(plain), axis=0).mean() < held - 0.002
    assert ((low <= plain[0]) & (plain[1] <= high)).all()


def test_effective_draws_are_those_of_the_autocorrelation_time():
    for correlation in (0.0, 0.6, 0.9):
        expected = 1000 * (1 - correlation) / (1 + correlation)
        found = n_effective(chains(correlation, 1000))
        assert abs(found.mean() / expected - 1) < 0.1
        assert (found <= 1000).all()
    np.testing.assert_array_equal(n_effective(np.ones((7, 2))), 7.0)


def test_too_few_draws_give_the_outermost_and_say_how_many_are_missing():
    draws = chains(0.0, 10)
    (low, high), shortage = central_interval(draws, 0.95)
    np.testing.assert_array_equal(low, draws.min(axis=0))
    np.testing.assert_array_equal(high, draws.max(axis=0))
    # Ten draws have a tenth of the probability outside on each side.
    assert (shortage >= 4 * 0.99).all()
    (low, high), _ = central_interval(draws[:1], 0.5)
    np.testing.assert_array_equal(low, high)
