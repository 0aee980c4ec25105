"""Pictures of prevalence by covariates."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

import polyabayes as pb
from helpers.small_models import known_lda
from polyabayes.topics import TopicPrevalence

matplotlib = pytest.importorskip("matplotlib")


def found(event="prevalence"):
    rng = np.random.default_rng(0)
    draws = rng.dirichlet(np.ones(10), (200, 4))
    return TopicPrevalence(draws, [f"day={i}" for i in range(4)], event)


def test_points_and_intervals_are_those_of_the_table():
    of = found()
    ax = pb.plotting.plot_prevalence(of, [2, 5])
    assert [label.get_text() for label in ax.get_yticklabels()] == of.rows
    for container, topic in zip(ax.containers, (2, 5), strict=True):
        np.testing.assert_allclose(container.lines[0].get_xdata(), of.mean[:, topic])
        segments = np.array(container.lines[2][0].get_segments())
        np.testing.assert_allclose(segments[:, :, 0].T, of.interval()[:, :, topic])


def test_a_continuous_covariate_has_bands_and_differences_a_line_at_zero():
    of = found("difference")
    ax = pb.plotting.plot_prevalence(of, [1], along=[3.0, 1.0, 2.0, 0.0], labels=["war"])
    line = ax.lines[0]
    assert line.get_xdata().tolist() == [0.0, 1.0, 2.0, 3.0]
    np.testing.assert_allclose(line.get_ydata(), of.mean[[3, 1, 2, 0], 1])
    assert len(ax.collections) == 1
    assert ax.lines[1].get_ydata() == [0, 0]
    assert ax.get_legend().get_texts()[0].get_text() == "war"


def test_differences_have_a_row_for_each_topic_the_largest_first():
    of = found("difference")
    ax = pb.plotting.plot_prevalence(of)
    order = [int(label.get_text().split()[1]) for label in ax.get_yticklabels()]
    means = of.mean.mean(axis=0)
    assert len(order) == 8
    assert (np.diff(means[order]) <= 0).all()
    assert [x.get_label() for x in ax.containers] == of.rows
    colours = [x.lines[0].get_color() for x in ax.containers]
    assert len(set(colours)) == len(colours)
    named = pb.plotting.plot_prevalence(of, [1, 4, 2], labels=["1", "4", "2"])
    shown = [int(label.get_text()) for label in named.get_yticklabels()]
    assert (np.diff(means[shown]) <= 0).all()


@pytest.mark.parametrize("kind", ["grid", "differences", "lines", "similarity"])
def test_nothing_is_cut_squeezed_or_overlaps(kind):
    names = [f"topic {k}: government, administration, president" for k in range(10)]
    draws = np.random.default_rng(0).dirichlet(np.ones(10), (200, 12)) / 30
    rows = [f"rating=Conservative, date=2008-{month:02}-01" for month in range(1, 13)]
    event = "difference" if kind == "differences" else "prevalence"
    of = TopicPrevalence(draws, rows, event, labels=names)
    if kind == "similarity":
        topics = np.random.default_rng(0).dirichlet(np.ones(40), 40)
        words = [f"administration {word}" for word in range(40)]
        ax = pb.plotting.plot_topic_similarity(known_lda(0.1, topics, vocabulary=words))
    elif kind == "lines":
        days = np.arange("2008-01", "2009-01", dtype="datetime64[M]").astype("datetime64[s]")
        ax = pb.plotting.plot_prevalence(of, [1, 2], along=days)
    else:
        ax = pb.plotting.plot_prevalence(of)
    ax.figure.canvas.draw()
    drawn, whole = ax.figure.get_tightbbox(), ax.figure.bbox_inches
    assert drawn.x0 >= -0.02
    assert drawn.x1 <= whole.x1 + 0.02
    assert whole.width <= 7.2
    assert whole.height <= 9
    assert ax.get_position().width > 0.4
    ticks = [label.get_window_extent() for label in ax.get_xticklabels() if label.get_text()]
    assert all(one.x1 <= other.x0 for one, other in pairwise(ticks))
    if legend := ax.get_legend():
        assert not ax.get_window_extent().overlaps(legend.get_window_extent().padded(-2))


def by_party():
    draws = np.random.default_rng(0).dirichlet(np.ones(3), (200, 6))
    at = pd.DataFrame({"party": list("DDDRRR"), "day": [1.0, 2.0, 3.0] * 2})
    return TopicPrevalence(draws, [f"row {i}" for i in range(6)], "prevalence", at=at)


def test_a_line_for_each_group():
    of = by_party()
    ax = pb.plotting.plot_prevalence(of, [1], along="day", by="party")
    assert (ax.get_xlabel(), len(ax.lines)) == ("day", 2)
    for line, rows in zip(ax.lines, ([0, 1, 2], [3, 4, 5]), strict=True):
        np.testing.assert_allclose(line.get_xydata().T, [[1, 2, 3], of.mean[rows, 1]])
    assert [x.get_text() for x in ax.get_legend().get_texts()] == ["topic 1, D", "topic 1, R"]
    assert ax.lines[0].get_color() != ax.lines[1].get_color()
    days = np.array(["2008-01-05", "2008-06-01", "2008-12-20"] * 2, dtype="datetime64[s]")
    dated = pb.plotting.plot_prevalence(of, [1], along=days, by="party")
    dated.figure.canvas.draw()
    assert "Mar" in [label.get_text() for label in dated.get_xticklabels()]
    two = pb.plotting.plot_prevalence(of, [0, 1], along="day", by="party").lines
    assert len({(x.get_color(), x.get_linestyle()) for x in two}) == 4


def test_means_of_groups_are_drawn_with_their_intervals():
    lda = known_lda(0.1, [[0.9, 0.1], [0.1, 0.9]], random_state=0)
    counts, years = [[9, 0], [8, 1], [0, 9], [1, 7]], [1999, 1999, 2024, 2024]
    groups = pb.topics.by_group(lda, counts, years)
    ax = pb.plotting.plot_prevalence(groups)
    assert [label.get_text() for label in ax.get_yticklabels()] == ["1999", "2024"]
    assert ax.get_xlabel() == "mean topic weight"
    for topic, container in enumerate(ax.containers):
        np.testing.assert_allclose(container.lines[0].get_xdata(), groups.means[:, topic])
    line = pb.plotting.plot_prevalence(groups, [1], along=groups.groups).lines[0]
    np.testing.assert_allclose(line.get_xydata().T, [[1999, 2024], groups.means[:, 1]])
