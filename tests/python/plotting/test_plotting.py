import re

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgb
from matplotlib.container import BarContainer, ErrorbarContainer
from matplotlib.patches import Rectangle
from scipy import stats

import polyabayes as pb
from helpers.small_models import known_lda, known_pfa
from polyabayes import exceptions as errors
from polyabayes.plotting import plot_comparison, plot_topics

PHI = np.array(
    [
        [0.40, 0.30, 0.15, 0.10, 0.05, 0.00],
        [0.02, 0.03, 0.05, 0.10, 0.20, 0.60],
        [0.10, 0.10, 0.40, 0.10, 0.20, 0.10],
    ]
)
WORDS = ["urn", "ball", "colour", "draw", "replace", "count"]


def lda(prior=0.1, phi=PHI, vocabulary=WORDS):
    return known_lda(prior, phi, vocabulary=vocabulary)


def texts(ax):
    return [text.get_text() for text in ax.texts]


def titles(ax):
    return [text for text in texts(ax) if text.startswith("topic")]


def bars(ax):
    return [container for container in ax.containers if isinstance(container, BarContainer)]


def widths(container):
    return [bar.get_width() for bar in container]


def test_bars_are_the_largest_weights_with_their_words_and_numbers():
    for topic, row in zip(bars(plot_topics(lda(), n_words=4)), PHI, strict=True):
        assert widths(topic) == pytest.approx(np.sort(row)[:1:-1], rel=1e-12)
    ax = plot_topics(lda(), n_words=3, topics=[1])
    # The best word stands highest; the y axis points downwards.
    assert ax.yaxis_inverted()
    words = sorted((text for text in ax.texts if hasattr(text, "xy")), key=lambda text: text.xy[1])
    assert [text.get_text() for text in words] == ["count", "replace", "draw"]
    (topic,) = bars(ax)
    for bar, text in zip(topic, words, strict=True):
        assert text.xy == (bar.get_x(), pytest.approx(bar.get_y() + bar.get_height() / 2))
    shown = [text for text in texts(ax) if re.fullmatch(r"0\.\d+", text)]
    assert shown == ["0.600", "0.200", "0.100"]
    # Equal weights keep the order of the columns.
    ax = plot_topics(lda(), topics=[2])
    equal = [text.get_text() for text in ax.texts if hasattr(text, "xy")]
    assert equal == ["colour", "replace", "urn", "ball", "draw", "count"]


def test_words_without_a_vocabulary_are_numbered():
    model = lda(vocabulary=None)
    assert "word 5" in texts(plot_topics(model, n_words=1))
    assert "COUNT" in texts(plot_topics(model, vocabulary=[word.upper() for word in WORDS]))


def test_topics_do_not_overlap():
    phi = np.random.default_rng(0).dirichlet(np.full(12, 0.2), size=9)
    ax = plot_topics(lda(phi=phi, vocabulary=None), n_words=5)
    boxes = [bar.get_bbox() for topic in bars(ax) for bar in topic]
    assert len(boxes) == 40
    assert all(
        one.x1 <= other.x0 or other.x1 <= one.x0 or one.y1 <= other.y0 or other.y1 <= one.y0
        for i, one in enumerate(boxes)
        for other in boxes[:i]
    )
    (left, right), (bottom, top) = ax.get_xlim(), ax.get_ylim()
    assert all(left <= box.x0 and box.x1 <= right for box in boxes)
    assert all(top <= box.y0 <= box.y1 <= bottom for box in boxes)
    assert titles(ax) == [f"topic {k}" for k in range(8)]
    assert ax.get_xlabel().startswith("8 of 9 topics; bars")


def test_lda_shows_the_topics_of_largest_prior_first_with_their_share():
    ax = plot_topics(lda([0.1, 0.6, 0.3]))
    assert titles(ax) == ["topic 1  (60%)", "topic 2  (30%)", "topic 0  (10%)"]
    assert ax.get_xlabel() == (
        "bars and numbers: weight of a word in the topic; in brackets: share of the topic in a "
        "mean document"
    )
    equal = plot_topics(lda([0.1, 0.1, 0.1]))
    assert equal.get_xlabel() == "bars and numbers: weight of a word in the topic"


def test_a_trained_model_shows_the_topics_of_most_tokens_first():
    counts = [[9, 1, 0, 0], [8, 2, 0, 0], [9, 0, 1, 0], [0, 0, 1, 3]]
    model = pb.LatentDirichletAllocation(2, max_iter=40, random_state=0).fit(counts)
    order = np.argsort(-model.topic_counts_)
    shares = model.topic_counts_[order] / model.topic_counts_.sum()
    assert shares[0] > 0.5
    assert titles(plot_topics(model)) == [
        f"topic {topic}  ({share:.0%})" for topic, share in zip(order, shares, strict=True)
    ]


def test_gamma_poisson_shows_the_topics_of_largest_mean_rate_first():
    # Means r p / (1 - p) of 2, 9 and 5 tokens a document; a rate counts the sum of its weights.
    model = known_pfa([2.0, 1.0, 5.0], [0.5, 0.9, 0.5], PHI)
    assert titles(plot_topics(model)) == ["topic 1  (56%)", "topic 2  (31%)", "topic 0  (12%)"]
    ax = plot_topics(known_pfa(1.0, 0.5, PHI * [[3.0], [1.0], [1.0]]), n_words=1)
    assert titles(ax) == ["topic 0  (60%)", "topic 1  (20%)", "topic 2  (20%)"]
    assert widths(bars(ax)[0]) == [pytest.approx(1.2)]


def test_chosen_topics_come_in_the_order_given():
    ax = plot_topics(lda(), topics=np.array([2, 0]), n_words=1)
    assert titles(ax) == ["topic 2", "topic 0"]
    assert [widths(topic) for topic in bars(ax)] == [[0.4], [0.4]]


def test_long_words_and_names_are_shortened():
    model = lda(vocabulary=["x" * 60, *WORDS[1:]]).name_topics({0: "war " * 20})
    ax = plot_topics(model, topics=[0])
    assert [text for text in texts(ax) if "xx" in text] == ["x" * 25 + "…"]
    assert "war war war war…" in texts(ax)
    ticks = pb.plotting.plot_topic_similarity(model).get_xticklabels()
    assert "war war war w…" in [tick.get_text() for tick in ticks]


@pytest.fixture(scope="module")
def comparison():
    data = pb.datasets.make_lda_corpus(60, 30, 3, document_length=25, random_state=1)
    rng = np.random.default_rng(2)
    models = {
        name: known_lda(
            0.1, (1 - noise) * data.topic_word + noise * rng.dirichlet(np.ones(30), size=3)
        )
        for name, noise in (("far", 0.6), ("true", 0.0), ("near", 0.2))
    }
    sizes = {"n_particles": 20, "n_replicates": 8, "random_state": 3}
    with pytest.warns(errors.UnreliableErrorWarning):
        return pb.compare(models, data.corpus, method="smc", event="counts", **sizes)


def points(ax):
    """Height, value and both ends of every error bar."""
    found = []
    for container in ax.containers:
        if isinstance(container, ErrorbarContainer):
            line, _, (interval,) = container.lines
            ends = interval.get_segments()[0][:, 0]
            found.append((line.get_ydata()[0], line.get_xdata()[0], *ends))
    return found


def numbers(text):
    return [float(n.replace("−", "-")) for n in re.findall(r"−?\d+\.\d+", text)]


@pytest.mark.parametrize("level", [0.8, 0.95])
def test_intervals_are_the_estimate_and_a_quantile_of_its_error(comparison, level):
    ax = plot_comparison(comparison, level=level)
    quantile = stats.norm.ppf(0.5 + level / 2)
    for y, (found, result) in enumerate(zip(points(ax), comparison.results.values(), strict=True)):
        value, error = result.nats_per_token, quantile * result.nats_per_token_std_error
        assert error > 0
        assert found == pytest.approx((y, value, value - error, value + error), rel=1e-12)


def test_models_stand_from_best_to_worst(comparison):
    ax = plot_comparison(comparison, level=0.9)
    assert [label.get_text() for label in ax.get_yticklabels()] == ["true", "near", "far"]
    assert ax.get_yticks().tolist() == [0, 1, 2]
    bottom, top = ax.get_ylim()
    assert top < 0 < 2 < bottom
    for told in (
        "nats per token (higher is better)",
        "line: 90 % interval of the estimate on these documents",
        "band: the same of the difference to the best, on new documents",
    ):
        assert told in ax.get_xlabel()
    title = "60 documents, 1,500 tokens; event: counts, given the length"
    assert ax.get_title(loc="left") == title


def test_paired_differences_are_drawn_and_written(comparison):
    ax = plot_comparison(comparison, level=0.9)
    bands = [patch for patch in ax.patches if isinstance(patch, Rectangle)]
    annotations = texts(ax)
    assert len(bands) == 2
    best = comparison.results["true"].nats_per_token
    assert annotations[0] == f"best: {best:.4f}".replace("-", "−")
    for name, band, text in zip(("near", "far"), bands, annotations[1:], strict=True):
        behind, _ = comparison.difference("true", name)
        ends = comparison.interval("true", name, 0.9)
        half_width = ends[1] - behind
        value = comparison.results[name].nats_per_token
        assert band.get_x() == pytest.approx(value - half_width, rel=1e-12)
        assert band.get_width() == pytest.approx(2 * half_width, rel=1e-12)
        # Two digits of the half width.
        assert numbers(text) == pytest.approx([behind, *ends], abs=0.06 * half_width)
        assert "behind" in text


def test_limits_hold_the_intervals_but_not_zero(comparison):
    ax = plot_comparison(comparison)
    low, high = ax.get_xlim()
    reached = [end for _, _, *ends in points(ax) for end in ends]
    reached += [band.get_x() for band in ax.patches if isinstance(band, Rectangle)]
    assert low < min(reached)
    assert max(reached) < high < 0
    assert max(reached) - min(reached) > 0.8 * (high - low)


def test_equal_models_are_not_blown_up():
    model = lda(vocabulary=None)
    documents = [[1, 1, 0, 0, 0, 0], [0, 0, 2, 0, 0, 0]]
    ax = plot_comparison(pb.compare({"one": model, "two": model}, documents))
    low, high = ax.get_xlim()
    assert high - low == pytest.approx(1e-4)
    assert numbers(texts(ax)[1]) == [0.0, 0.0, 0.0]


def test_one_document_has_no_interval_of_the_difference():
    models = {"one": lda(), "two": lda(prior=3.0)}
    ax = plot_comparison(pb.compare(models, [[1, 1, 0, 0, 0, 0]]))
    assert "no interval" in texts(ax)[1]
    assert not [patch for patch in ax.patches if isinstance(patch, Rectangle)]
    assert ax.get_title(loc="left").startswith("1 document, 2 tokens")


@pytest.mark.filterwarnings("ignore::polyabayes.exceptions.ImpossibleDocumentWarning")
def test_impossible_documents_are_told_not_drawn():
    without = np.where(np.arange(6) == 0, 0.0, PHI)
    without /= without.sum(axis=1, keepdims=True)
    documents = [[1, 1, 0, 0, 0, 0], [0, 1, 2, 0, 0, 0]]
    ax = plot_comparison(pb.compare({"zero": lda(phi=without), "whole": lda()}, documents))
    assert [y for y, *_ in points(ax)] == [0]
    assert texts(ax)[1] == "probability zero: 1 of 2 documents"
    assert np.isfinite(ax.get_xlim()).all()
    alone = plot_comparison(pb.compare({"zero": lda(phi=without)}, documents))
    assert texts(alone) == ["probability zero: 1 of 2 documents"]


def test_empty_documents_have_no_nats_per_token():
    ax = plot_comparison(pb.compare({"one": lda(), "two": lda(prior=3.0)}, [[0] * 6]))
    assert points(ax) == []
    assert texts(ax) == ["no tokens", "no tokens"]


def test_plots_use_the_axes_given_and_change_no_settings(comparison):
    before = dict(mpl.rcParams)
    _, (left, right) = plt.subplots(1, 2)
    assert plot_topics(lda(), ax=left) is left
    assert plot_comparison(comparison, ax=right) is right
    assert len(plt.get_fignums()) == 1
    assert dict(mpl.rcParams) == before


def test_plots_can_be_rendered(comparison):
    for ax in (plot_topics(lda(), n_words=3), plot_comparison(comparison)):
        figure = ax.figure
        figure.canvas.draw()
        outer = figure.bbox
        for text in ax.texts:
            box = text.get_window_extent()
            assert outer.x0 <= box.x0 <= box.x1 <= outer.x1, text.get_text()
            assert outer.y0 <= box.y0 <= box.y1 <= outer.y1, text.get_text()


def test_signatures_are_drawn_in_the_order_of_cosmic():
    changes = ["C>A", "C>G", "C>T", "T>A", "T>C", "T>G"]
    channels = [f"{a}[{s}]{b}" for s in changes for a in "ACGT" for b in "ACGT"]
    rng = np.random.default_rng(0)
    shuffled = rng.permutation(96)
    rows = rng.dirichlet(np.ones(96), 2)
    words = [channels[place] for place in shuffled]
    model = known_pfa(1.0, 0.5, rows[:, shuffled], vocabulary=words)
    ax = pb.plotting.plot_signatures(model, [1], labels=["SBS1"])
    heights = {round(bar.get_x() + 0.4): bar.get_height() for bar in ax.patches}
    np.testing.assert_allclose([heights[place] for place in range(96)], rows[1], rtol=1e-12)
    assert [label.get_text() for label in ax.get_xticklabels()] == changes
    assert [label.get_text() for label in ax.get_yticklabels()] == ["SBS1"]


def test_nothing_is_black_on_black():
    with plt.style.context("dark_background"):
        signatures = pb.plotting.plot_signatures(pd.DataFrame([[1.0]], columns=["A[C>G]G"]))
        graph = pb.plotting.plot_graph(pb.AllocationModel.nmf(2))
        colours = [bar.get_facecolor() for bar in signatures.patches]
        colours += [arrow.get_edgecolor() for arrow in graph.patches]
        colours += [text.get_color() for text in graph.texts]
        colours += list(graph.collections[0].get_edgecolors())
    assert len(colours) == 8
    assert all(sum(to_rgb(colour)) > 1.5 for colour in colours)


def test_transitions_have_rows_from_and_numbers():
    chain = pb.AllocationModel.hidden_markov(2, 2)
    tensor = pb.CountTensor.from_dense([[4, 1, 0], [0, 2, 5], [3, 0, 1]], chain.axes)
    found = chain.decompose(tensor, random_state=0)
    ax = pb.plotting.plot_table(found, "h2")
    assert (ax.get_ylabel(), ax.get_xlabel()) == ("h1", "h2")
    shown = ax.images[0].get_array()
    np.testing.assert_allclose(shown.sum(axis=1), 1)
    assert texts(ax) == [f"{share:.2f}" for share in np.ravel(shown)]


def test_colours_do_not_repeat():
    counts = [[9, 1, 0, 0], [0, 0, 1, 3]]
    model = pb.LatentDirichletAllocation(2, max_iter=10, random_state=0).fit(counts)
    ax = pb.plotting.plot_trace({str(seed): model for seed in range(10)})
    assert len({line.get_color() for line in ax.lines}) == 10
    two = pb.plotting.plot_trace({"a": model, "b": model})
    assert [line.get_color() for line in two.lines] == ["#0072B2", "#D55E00"]
