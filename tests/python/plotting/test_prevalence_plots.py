"""Pictures of prevalence by covariates."""

import numpy as np
import pytest

import polyabayes as pb
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
    assert len(pb.plotting.plot_prevalence(of).containers) == 8


def test_means_of_groups_are_drawn_with_their_intervals():
    lda = pb.LatentDirichletAllocation.from_parameters(
        doc_topic_prior=0.1, topic_word=[[0.9, 0.1], [0.1, 0.9]], random_state=0
    )
    counts, years = [[9, 0], [8, 1], [0, 9], [1, 7]], [1999, 1999, 2024, 2024]
    groups = pb.topics.by_group(lda, counts, years)
    ax = pb.plotting.plot_prevalence(groups)
    assert [label.get_text() for label in ax.get_yticklabels()] == ["1999", "2024"]
    assert ax.get_xlabel() == "mean topic weight"
    for topic, container in enumerate(ax.containers):
        np.testing.assert_allclose(container.lines[0].get_xdata(), groups.means[:, topic])
    line = pb.plotting.plot_prevalence(groups, [1], along=groups.groups).lines[0]
    np.testing.assert_allclose(line.get_xydata().T, [[1999, 2024], groups.means[:, 1]])
