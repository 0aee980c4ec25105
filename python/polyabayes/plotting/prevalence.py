"""Plot of topic prevalence by covariates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from polyabayes._support import checks
from polyabayes.exceptions import InvalidArgumentError, InvalidTypeError, argument
from polyabayes.plotting.axes import axes_or_new
from polyabayes.topics.groups import TopicsByGroup
from polyabayes.topics.prevalence import TopicPrevalence

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Share of the height of a row for its topics.
_FILLED = 0.7
_ALPHA = 0.2

Floats = NDArray[np.float64]


def plot_prevalence(
    found: TopicPrevalence | TopicsByGroup,
    topics: Sequence[int] | None = None,
    *,
    along: Any = None,
    labels: Sequence[str] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Plot prevalences, their differences, or means of groups, with intervals.

    Each row of covariates, or each group, has points with intervals. With `along`, lines with bands
    run over a continuous covariate. Differences have a line at zero.

    Parameters
    ----------
    found : TopicPrevalence or TopicsByGroup
        Result of :func:`polyabayes.topics.prevalence`, ``contrast`` or ``by_group``.
    topics : sequence of int, optional
        Topics to plot; default: the eight with the largest mean or difference.
    along : array of shape (n_rows,), optional
        Values of a continuous covariate at the rows, for example ``groups`` if these are years.
    labels : sequence of str, one per plotted topic, optional
        Names of the topics; default: "topic 0" and so on.
    {ax}

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    InvalidArgumentError, InvalidTypeError
        If `found` has another type, there is no such topic, or lengths differ.
    {no Matplotlib}

    Examples
    --------
    >>> corpus = pb.Corpus([[4, 0], [3, 1], [0, 4], [1, 3]] * 5)
    >>> corpus = corpus.with_metadata({"year": [0, 0, 1, 1] * 5})
    >>> lda = pb.LatentDirichletAllocation(2, formula="~ year", max_iter=2000, random_state=0)
    >>> found = pb.topics.prevalence(lda.fit(corpus), at={"year": [0, 1]})
    >>> ax = pb.plotting.plot_prevalence(found)
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['year=0', 'year=1']
    """
    drawn = _drawn(found)
    means, (lower, upper) = drawn.means, drawn.intervals
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
        ax = _points(axes_or_new(ax, 6, 1.2 + 0.25 * n_rows * len(shown)), drawn, shown, names)
    else:
        ax = axes_or_new(ax, 6, 4)
        x = checks.vector("along", along, n_rows)
        order = np.argsort(x, kind="stable")
        for k, name in zip(shown, names, strict=True):
            (line,) = ax.plot(x[order], means[order, k], label=name)
            ends = lower[order, k], upper[order, k]
            ax.fill_between(x[order], *ends, alpha=_ALPHA, color=line.get_color())
        ax.set_ylabel(drawn.quantity)
        if drawn.is_difference:
            ax.axhline(0, color="grey", linewidth=0.8)
    ax.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), fontsize="small")
    return ax


class _Drawn(NamedTuple):
    """Data of the plot: means of shape (n_rows, n_topics), lower and upper ends, and names."""

    means: Floats
    intervals: Floats
    rows: Sequence[str]
    quantity: str
    is_difference: bool = False


def _drawn(found: Any) -> _Drawn:
    if isinstance(found, TopicsByGroup):
        names = [str(group) for group in found.groups]
        return _Drawn(found.means, found.interval(), names, "mean topic weight")
    if not isinstance(found, TopicPrevalence):
        raise InvalidTypeError(
            f"{argument('found')} must be a TopicPrevalence or TopicsByGroup, got "
            f"{type(found).__name__}"
        )
    is_difference = found.event == "difference"
    quantity = "difference in prevalence" if is_difference else "expected prevalence"
    return _Drawn(found.mean, found.interval(), found.rows, quantity, is_difference)


def _points(ax: Axes, drawn: _Drawn, shown: Any, names: list[str]) -> Axes:
    means, (lower, upper) = drawn.means, drawn.intervals
    places = np.arange(len(means))
    for i, (k, name) in enumerate(zip(shown, names, strict=True)):
        ends = np.stack([means[:, k] - lower[:, k], upper[:, k] - means[:, k]]).clip(0)
        at = places + _FILLED * ((i + 0.5) / len(shown) - 0.5)
        ax.errorbar(means[:, k], at, xerr=ends, fmt="o", markersize=4, label=name)
    ax.set_yticks(places, drawn.rows)
    ax.set_ylim(len(places) - 0.5, -0.5)
    ax.set_xlabel(drawn.quantity)
    if drawn.is_difference:
        ax.axvline(0, color="grey", linewidth=0.8)
    return ax
