import matplotlib.pyplot as plt
import numpy as np

from polyabayes import priors
from polyabayes.plotting import plot_size_bounds, plot_size_posterior
from polyabayes.sizes.witness import WitnessSearch


def one_size():
    return WitnessSearch(lambda k: -9.0 / k, priors.Poisson(3.0), max_steps=8)


def two_sizes(**options):
    prior = priors.Product(priors.Poisson(2.0), priors.Poisson(2.0))
    return WitnessSearch(lambda a, b: -5.0 / a - 4.0 / b, prior, max_steps=9, **options)


def test_bounds_of_several_priors():
    search = one_size().fit()
    searches = {"Poisson 3": search, "Geometric": search.under(priors.Geometric(0.3))}
    ax = plot_size_bounds(searches)
    lines = ax.get_lines()
    assert len(lines) == 4
    for ix, one in enumerate(searches.values()):
        np.testing.assert_array_equal(lines[2 * ix].get_xdata(), np.arange(1, 9))
        np.testing.assert_array_equal(lines[2 * ix].get_ydata(), one.bounds_["lower"])
        np.testing.assert_array_equal(lines[2 * ix + 1].get_ydata(), one.bounds_["upper"])
    legend = ax.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == list(searches)
    assert plot_size_bounds(two_sizes().fit()).get_xlabel() == "configurations explored"


def test_posterior_bounds():
    search = one_size().fit()
    given = plt.figure().subplots()
    ax = plot_size_posterior(search, ax=given)
    assert ax is given
    least, rest = ax.containers
    table = search.posterior_bounds_
    np.testing.assert_allclose([bar.get_height() for bar in least], table["lower"], atol=1e-12)
    tops = [bar.get_y() + bar.get_height() for bar in rest]
    np.testing.assert_allclose(tops, table["upper"], atol=1e-12)
