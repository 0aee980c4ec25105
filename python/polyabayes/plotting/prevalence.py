"""Prevalence of topics by covariates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from polyabayes._support import checks
from polyabayes.exceptions import InvalidArgumentError, InvalidTypeError, argument
from polyabayes.plotting.axes import axes_or_new
from polyabayes.topics.prevalence import TopicPrevalence

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Share of the height of a row that its topics take.
_FILLED = 0.7
_ALPHA = 0.2


def plot_prevalence(
    found: TopicPrevalence,
    topics: Sequence[int] | None = None,
    *,
    along: Any = None,
    labels: Sequence[str] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw prevalences or differences of them with their intervals.

    Points with intervals, a line a row of covariates; with `along`, a line with a band over a
    continuous covariate. Differences have a line at zero.

    Parameters
    ----------
    found : TopicPrevalence
        What :func:`polyabayes.topics.prevalence` or ``contrast`` gave.
    topics : sequence of int, optional
        Topics to draw; by default the eight of largest mean, or largest difference.
    along : array of shape (n_rows,), optional
        Values of a continuous covariate at the rows.
    labels : sequence of str, one a topic drawn, optional
        Names of the topics; by default "topic 0" and so on.
    ax : matplotlib Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    InvalidArgumentError, InvalidTypeError
        If `found` is something else, there is no such topic, or lengths disagree.
    MissingDependencyError
        If Matplotlib is not installed.

    Examples
    --------
    >>> import polyabayes as pb
    >>> corpus = pb.Corpus([[4, 0], [3, 1], [0, 4], [1, 3]] * 5)
    >>> corpus = corpus.with_metadata({"year": [0, 0, 1, 1] * 5})
    >>> lda = pb.LatentDirichletAllocation(2, formula="~ year", max_iter=2000, random_state=0)
    >>> found = pb.topics.prevalence(lda.fit(corpus), at={"year": [0, 1]})
    >>> ax = pb.plotting.plot_prevalence(found)
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['year=0', 'year=1']
    """
    if not isinstance(found, TopicPrevalence):
        raise InvalidTypeError(
            f"{argument('found')} must be a TopicPrevalence, got {type(found).__name__}"
        )
    means, (lower, upper) = found.mean, found.interval()
    n_rows, n_topics = means.shape
    if topics is None:
        shown = np.sort(np.argsort(-np.abs(means).max(axis=0), kind="stable")[:8])
    else:
        shown = np.array([checks.whole_number("topics", k, 0, n_topics - 1) for k in topics])
    names = [f"topic {k}" for k in shown] if labels is None else list(labels)
    if len(names) != len(shown):
        raise InvalidArgumentError(
            f"{argument('labels')} has {len(names)} names for {len(shown)} topics"
        )
    if along is None:
        ax = _points(axes_or_new(ax, 6, 1.2 + 0.25 * n_rows * len(shown)), found, shown, names)
    else:
        ax = axes_or_new(ax, 6, 4)
        x = checks.vector("along", along, n_rows)
        order = np.argsort(x, kind="stable")
        for k, name in zip(shown, names, strict=True):
            (line,) = ax.plot(x[order], means[order, k], label=name)
            ends = lower[order, k], upper[order, k]
            ax.fill_between(x[order], *ends, alpha=_ALPHA, color=line.get_color())
        ax.set_ylabel(_quantity(found))
        if found.event == "difference":
            ax.axhline(0, color="grey", linewidth=0.8)
    ax.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), fontsize="small")
    return ax


def _points(ax: Axes, found: TopicPrevalence, shown: Any, names: list[str]) -> Axes:
    """Points with intervals, rows one below the other."""
    means, (lower, upper) = found.mean, found.interval()
    places = np.arange(len(means))
    for i, (k, name) in enumerate(zip(shown, names, strict=True)):
        ends = np.stack([means[:, k] - lower[:, k], upper[:, k] - means[:, k]]).clip(0)
        at = places + _FILLED * ((i + 0.5) / len(shown) - 0.5)
        ax.errorbar(means[:, k], at, xerr=ends, fmt="o", markersize=4, label=name)
    ax.set_yticks(places, found.rows)
    ax.invert_yaxis()
    ax.set_xlabel(_quantity(found))
    if found.event == "difference":
        ax.axvline(0, color="grey", linewidth=0.8)
    return ax


def _quantity(found: TopicPrevalence) -> str:
    return "difference in prevalence" if found.event == "difference" else "expected prevalence"
