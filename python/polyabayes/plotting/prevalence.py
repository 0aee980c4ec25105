"""Plot of topic prevalence by covariates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polyabayes._support import checks
from polyabayes._support.arrays import Indices
from polyabayes.exceptions import InvalidArgumentError, InvalidTypeError, argument
from polyabayes.plotting.axes import Axes, axes_or_new, colours, finish
from polyabayes.topics.groups import TopicsByGroup
from polyabayes.topics.prevalence import TopicPrevalence

# Share of the height of a row for its topics.
_FILLED = 0.7
_ALPHA = 0.2
# Topics that are shown by default, each in a colour of its own; styles of lines of groups.
_MOST_SHOWN, _STYLES = 8, ("-", "--", ":", "-.")


def plot_prevalence(
    found: TopicPrevalence | TopicsByGroup,
    topics: Sequence[int] | None = None,
    *,
    along: Any = None,
    by: Any = None,
    labels: Sequence[str] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Plot prevalences, their differences, or means of groups, with intervals.

    Each row of covariates, or each group, has points with intervals. With `along`, lines with bands
    run over a continuous covariate. Differences have a row for each topic, the largest first, and a
    line at zero.

    Parameters
    ----------
    found : TopicPrevalence or TopicsByGroup
        Result of :func:`polyabayes.topics.prevalence`, ``contrast`` or ``by_group``.
    topics : sequence of int, optional
        Topics to plot; default: the eight with the largest mean or difference.
    along : str or array of shape (n_rows,), optional
        A continuous covariate: a column of the rows, or its values, for example ``groups`` if these
        are years.
    by : str or array of shape (n_rows,), optional
        With `along`: a column of the rows, or values, each of which has lines of its own.
    labels : sequence of str, one per plotted topic, optional
        Names of the topics; default: their names or words.
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
    table: Any = {}
    if isinstance(found, TopicsByGroup):
        means, rows, quantity = found.means, list(map(str, found.groups)), "mean topic weight"
        event = ""
    elif isinstance(found, TopicPrevalence):
        means, rows, event = found.mean, list(found.rows), found.event
        quantity = f"{event} in prevalence" if event == "difference" else "expected prevalence"
        table = table if found.at is None else found.at
    else:
        raise InvalidTypeError(
            f"{argument('found')} must be a TopicPrevalence or TopicsByGroup, got "
            f"{type(found).__name__}"
        )
    if by is not None and along is None:
        raise InvalidArgumentError(
            f"{argument('by')} needs {argument('along')}: each group gets a line"
        )
    n_topics = means.shape[1]
    if topics is None:
        shown = np.sort(np.argsort(-np.abs(means).max(axis=0), kind="stable")[:_MOST_SHOWN])
    else:
        shown = np.array([checks.whole_number("topics", k, 0, n_topics - 1) for k in topics])
    known = found.labels or [f"topic {k}" for k in range(n_topics)]
    names = [known[k] for k in shown] if labels is None else list(labels)
    if len(names) != len(shown):
        raise InvalidArgumentError(
            f"{argument('labels')} has {len(names)} names for {len(shown)} topics"
        )
    if event == "difference" and along is None:
        order = np.argsort(-means[:, shown].mean(axis=0), kind="stable")
        shown, names = shown[order], [names[place] for place in order]
    ends = found.interval()[..., shown]
    means = means[:, shown]
    if along is not None:
        x, groups = _along(table, along, by, rows)
        ax = _lines(axes_or_new(ax, 6, 4), x, groups, (means, *ends), names)
        ax.set_ylabel(quantity)
        if isinstance(along, str):
            ax.set_xlabel(along)
    elif event == "difference":
        ax = _points(ax, (means.T, *ends.swapaxes(1, 2)), names, rows)
        ax.set_xlabel(quantity)
    else:
        ax = _points(ax, (means, *ends), rows, names)
        ax.set_xlabel(quantity)
    if event == "difference":
        (ax.axvline if along is None else ax.axhline)(0, color="grey", linewidth=0.8)
    if event == "difference" and along is None and len(rows) == 1:
        ax.set_title(rows[0], loc="left", size="medium")
    else:
        finish(ax)
    return ax


def _points(ax: Axes | None, values: Sequence[Any], rows: list[str], columns: list[str]) -> Axes:
    """Points with intervals: a row for each row of the values, a colour for each column."""
    means, lower, upper = values
    ax = axes_or_new(ax, 6, 1.2 + 0.25 * means.size)
    places = np.arange(len(rows))
    for i, (name, colour) in enumerate(zip(columns, colours(len(columns)), strict=True)):
        reach = np.stack([means[:, i] - lower[:, i], upper[:, i] - means[:, i]]).clip(0)
        at = places + _FILLED * ((i + 0.5) / len(columns) - 0.5)
        ax.errorbar(means[:, i], at, xerr=reach, fmt="o", ms=4, color=colour, label=name)
    ax.set_yticks(places, rows)
    ax.set_ylim(len(rows) - 0.5, -0.5)
    ax.locator_params(axis="x", nbins=5)
    return ax


def _along(
    table: Any, along: Any, by: Any, rows: list[str]
) -> tuple[NDArray[Any], dict[str, Indices]]:
    """Values along the axis, and the rows of each line by its name."""

    def values_of(name: str, given: Any) -> NDArray[Any]:
        if not isinstance(given, str):
            return np.asarray(given)
        if given not in table:
            known = ", ".join(map(repr, table)) or "none"
            raise InvalidArgumentError(
                f"{name}: the rows have no column {given!r}; they have {known}"
            )
        return np.asarray(table[given])

    x = values_of("along", along)
    if x.dtype.kind != "M":
        x = checks.vector("along", x, len(rows))
    of = np.zeros(len(rows), np.intp) if by is None else values_of("by", by)
    if of.shape != (len(rows),):
        raise InvalidArgumentError(f"{argument('by')} needs one value for each of {len(rows)} rows")
    groups = {str(group): np.flatnonzero(of == group) for group in dict.fromkeys(of.tolist())}
    for at in groups.values():
        if len(np.unique(x[at])) < len(at):
            raise InvalidArgumentError(
                f"{argument('along')}: several rows have the same value, and one line cannot show "
                f"them: {argument('by')} gives each group a line"
            )
    return x, {"" if by is None else name: at[np.argsort(x[at])] for name, at in groups.items()}


def _lines(
    ax: Axes, x: NDArray[Any], groups: dict[str, Indices], values: Sequence[Any], names: list[str]
) -> Axes:
    """Lines with bands; groups of one topic differ by colour, of several by the style of lines."""
    looks = colours(max(len(names), 1 if len(names) > 1 else len(groups)))
    for k, name in enumerate(names):
        for g, (group, at) in enumerate(groups.items()):
            colour = looks[k if len(names) > 1 else g]
            style = _STYLES[g % len(_STYLES)] if len(names) > 1 else "-"
            means, lower, upper = (value[at, k] for value in values)
            label = ", ".join(filter(None, (name, group)))
            ax.plot(x[at], means, label=label, color=colour, linestyle=style)
            ax.fill_between(x[at], lower, upper, alpha=_ALPHA, color=colour, linewidth=0)
    if x.dtype.kind == "M":
        from matplotlib import dates

        shown: Any = dates.ConciseDateFormatter
        ax.xaxis.set_major_formatter(shown(ax.xaxis.get_major_locator()))
    return ax
