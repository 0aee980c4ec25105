"""Plot of topic prevalence by covariates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

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

    {raises: bad plot}

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
    is_difference = False
    if isinstance(found, TopicsByGroup):
        means, rows, quantity = found.means, list(map(str, found.groups)), "mean topic weight"
    elif isinstance(found, TopicPrevalence):
        is_difference = found.event == "difference"
        means, rows = found.mean, list(found.rows)
        quantity = "difference in prevalence" if is_difference else "expected prevalence"
    else:
        raise InvalidTypeError(
            f"{argument('found')} must be a TopicPrevalence or TopicsByGroup, got "
            f"{type(found).__name__}"
        )
    lower, upper = found.interval()
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
        ax = axes_or_new(ax, 6, 1.2 + 0.25 * n_rows * len(shown))
        places = np.arange(n_rows)
        for i, (k, name) in enumerate(zip(shown, names, strict=True)):
            ends = np.stack([means[:, k] - lower[:, k], upper[:, k] - means[:, k]]).clip(0)
            at = places + _FILLED * ((i + 0.5) / len(shown) - 0.5)
            ax.errorbar(means[:, k], at, xerr=ends, fmt="o", markersize=4, label=name)
        ax.set_yticks(places, rows)
        ax.set_ylim(n_rows - 0.5, -0.5)
        ax.set_xlabel(quantity)
    else:
        x = checks.vector("along", along, n_rows)
        ax = axes_or_new(ax, 6, 4)
        order = np.argsort(x, kind="stable")
        for k, name in zip(shown, names, strict=True):
            (line,) = ax.plot(x[order], means[order, k], label=name)
            band = lower[order, k], upper[order, k]
            ax.fill_between(x[order], *band, alpha=_ALPHA, color=line.get_color())
        ax.set_ylabel(quantity)
    if is_difference:
        (ax.axvline if along is None else ax.axhline)(0, color="grey", linewidth=0.8)
    ax.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), fontsize="small")
    return ax
