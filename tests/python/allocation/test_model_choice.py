import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.axes import Axes
from scipy import special, stats

import polyabayes as pb
from polyabayes import AllocationModel, Evidence, ModelPosterior, plotting, posterior_over_models

DEEP = [[4, 3, 0], [0, 0, 3], [0, 0, 3]]
MODELS = {f"rank {K}": AllocationModel.nmf(K) for K in (1, 2, 3)}
EXACT = {name: model.log_evidence(DEEP, "exact").value for name, model in MODELS.items()}


def evidence(value, std_error=0.0, n_replicates=0):
    n_free = max(n_replicates - 1, 0)
    values = (value, std_error, "smc", False, 0.0, 3, True, False, n_replicates, 3.0, 0.0)
    return Evidence(*values, n_free=n_free)


def test_posterior_is_bayes_rule():
    prior = {"rank 1": 2.0, "rank 2": 1.0, "rank 3": 1.0}
    found = posterior_over_models(MODELS, DEEP, "exact", prior=prior)
    ln_weights = [np.log(prior[name]) + EXACT[name] for name in MODELS]
    expected = dict(zip(MODELS, special.softmax(ln_weights), strict=True))
    assert found.probabilities == pytest.approx(expected)
    assert list(found.evidences) == sorted(expected, key=lambda name: -expected[name])
    assert found.best == "rank 3"
    ahead, error = found.log_odds("rank 3", "rank 1")
    assert (ahead, error) == (pytest.approx(EXACT["rank 3"] - EXACT["rank 1"] - np.log(2)), 0)
    for name in MODELS:
        assert found.interval(name) == pytest.approx([expected[name]] * 2)
    assert found.prior["rank 1"] == 0.5


def test_error_bars_of_log_odds_hold_the_truth():
    truth = EXACT["rank 3"] - EXACT["rank 2"]
    found = posterior_over_models(MODELS, DEEP, "smc", n_replicates=32, random_state=0)
    ahead, error = found.log_odds("rank 3", "rank 2")
    assert abs(ahead - truth) < 4 * error < 0.1
    low, high = found.interval("rank 3", 0.999)
    exact = special.softmax(list(EXACT.values()))[2]
    assert low < exact < high < low + 0.1


def test_intervals_are_those_of_simulated_evidences():
    errors = {"a": 0.3, "b": 0.2, "c": 0.4}
    values = {"a": 0.0, "b": -0.5, "c": -1.0}
    found = ModelPosterior(
        {name: evidence(values[name], errors[name], 10**6) for name in values},
        dict.fromkeys(values, 1 / 3),
    )
    rng = np.random.default_rng(0)
    mean, error = (np.array(list(x.values())) for x in (values, errors))
    draws = mean + error * rng.standard_normal((100_000, 3))
    ends = np.quantile(special.softmax(draws, axis=1), (0.025, 0.975), axis=0)
    for column, name in enumerate(values):
        # The log of a sum of log-normal weights is nearly, not quite, normal.
        assert found.interval(name) == pytest.approx(ends[:, column], abs=0.02)


def test_few_replicates_widen_intervals():
    few, many = (
        ModelPosterior({"a": evidence(0.0, 0.1, n), "b": evidence(-1.0)}, {"a": 0.5, "b": 0.5})
        for n in (4, 400)
    )
    assert few.quantile() == pytest.approx(stats.t.ppf(0.975, 3))
    assert few.interval("a")[0] < many.interval("a")[0]
    exact = ModelPosterior({"a": evidence(0.0)}, {"a": 1.0})
    assert exact.quantile() == pytest.approx(stats.norm.ppf(0.975))
    assert exact.interval("a") == (1.0, 1.0)


def test_tables_of_models():
    found = posterior_over_models(MODELS, DEEP)
    frame = found.to_frame()
    assert frame.index.tolist() == list(found.evidences)
    assert frame["probability"].sum() == pytest.approx(1)
    assert frame.loc[found.best, "log_odds"] == 0
    assert str(found).splitlines()[1].startswith("rank 3")
    assert repr(found).startswith("<ModelPosterior of 3 models>")


def test_plot_of_evidence_has_points_intervals_and_bounds():
    by_rank = {K: AllocationModel.nmf(K).log_evidence(DEEP, "smc", random_state=0) for K in (1, 2)}
    bound = AllocationModel.nmf(3).log_evidence(DEEP, "vb", random_state=0)
    ax = plotting.plot_evidence({**by_rank, 3: bound}, xlabel="K")
    (bars,) = ax.containers
    data = bars[0]
    np.testing.assert_array_equal(data.get_xdata(), [1, 2])
    np.testing.assert_array_equal(ax.lines[-1].get_xydata(), [[3, bound.value]])
    segments = bars[2][0].get_segments()
    assert [y for _, y in segments[1]] == pytest.approx(by_rank[2].interval())
    assert ax.get_legend().get_texts()[0].get_text() == "lower bound"
    assert ax.get_xlabel() == "K"


def test_a_tempered_evidence_tells_its_ladder():
    found = AllocationModel.nmf(2).log_evidence(DEEP, "tempered", random_state=0)
    assert (found.betas[0], found.betas[-1]) == (0.0, 1.0)
    assert sum(found.rejections) == pytest.approx(found.barrier, rel=0.5)
    assert "rejections" not in found.to_frame()


def test_plot_of_a_posterior_shows_log_odds_and_probabilities():
    found = posterior_over_models(MODELS, DEEP)
    ax = plotting.plot_posterior(found, ax=plt.figure().add_subplot())
    assert [label.get_text() for label in ax.get_yticklabels()] == list(found.evidences)
    texts = [text.get_text() for text in ax.texts]
    assert texts == [f"{p:.3g}" for p in found.probabilities.values()]
    assert "rank 3" in ax.get_xlabel()


def test_plot_of_tables():
    found = AllocationModel.nmf(2).decompose(DEEP, random_state=0)
    ax = plotting.plot_table(found, "word")
    shown = ax.images[0].get_array()
    np.testing.assert_array_equal(shown, found.tables["word"])
    assert (ax.get_ylabel(), ax.get_xlabel()) == ("word", "topic")
    # The graph doc <- topic -> word has one node without parents.
    bars = plotting.plot_table(found, "topic").patches
    assert [bar.get_width() for bar in bars] == found.tables["topic"].tolist()


def test_plots_of_tables_have_the_labels_of_all_parents():
    counts = np.ones((50, 2, 2), dtype=int)
    tensor = pb.CountTensor.from_dense(counts, ["i", "j", "k"], {"j": ["low", "high"]})
    model = AllocationModel("j, k -> i; j; k")
    ax = plotting.plot_table(model.decompose(tensor, "em", random_state=0), "i")
    across = [label.get_text() for label in ax.get_xticklabels()]
    assert across == ["low, 0", "low, 1", "high, 0", "high, 1"]
    # 50 values: every second one has its label.
    assert [label.get_text() for label in ax.get_yticklabels()] == list(map(str, range(0, 50, 2)))


def test_plot_of_a_graph_shades_visible_nodes():
    model = AllocationModel.symmetric_nmf(3)
    ax = plotting.plot_graph(model)
    note = "r: 3 values; one table: i, j"
    assert {text.get_text() for text in ax.texts} == {"r", "i", "j", note}
    nodes = ax.collections[0]
    colours = [tuple(colour) for colour in nodes.get_facecolor()]
    order = list(model.graph.to_networkx())
    assert colours[order.index("r")] != colours[order.index("i")] == colours[order.index("j")]


def test_plots_take_and_return_axes():
    ax = plt.figure().add_subplot()
    assert plotting.plot_graph(AllocationModel.nmf(2), ax=ax) is ax
    assert isinstance(ax, Axes)
    assert plotting.plot_evidence({1: evidence(0.0)}, ax=ax) is ax
