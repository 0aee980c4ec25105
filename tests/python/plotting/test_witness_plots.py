import matplotlib.pyplot as plt
import numpy as np

from polyabayes import priors
from polyabayes.plotting import plot_predictive_bounds, plot_size_bounds, plot_size_posterior
from polyabayes.sizes.witness import ResultTable, WitnessSearch


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


def test_predictions_by_fold_and_prior():
    names = ["fold", "prior", "n_tokens", "lower", "upper", "average", "best", "best_std_error"]
    rows = [
        [0, "a", 10, -21.0, -20.0, -20.4, -22.0, 0.5],
        [1, "a", 20, -42.0, -40.0, -41.2, -41.0, 1],
        [0, "b", 10, -31.0, -30.0, -30.6, -32.0, 0.5],
        [1, "b", 20, -62.0, -60.0, -60.8, -63.0, 1],
    ]
    averaged, best = plot_predictive_bounds(ResultTable(names, rows[:2])).containers
    segments = averaged.lines[2][0].get_segments()
    np.testing.assert_allclose([s[:, 1] for s in segments], [[-2.1, -2.0], [-2.1, -2.0]])
    np.testing.assert_allclose(averaged.lines[0].get_ydata(), [-2.04, -2.06])
    np.testing.assert_allclose(best.lines[0].get_ydata(), [-2.2, -2.05])
    ax = plot_predictive_bounds(ResultTable(names, rows))
    middles = [bars.lines[0].get_ydata().tolist() for bars in ax.containers]
    np.testing.assert_allclose(
        middles, [[-2.04, -2.06], [-2.2, -2.05], [-3.06, -3.04], [-3.2, -3.15]]
    )
    places = [bars.lines[0].get_xdata()[0] for bars in ax.containers]
    assert places == sorted(places)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["a", "b"]
