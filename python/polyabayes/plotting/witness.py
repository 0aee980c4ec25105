"""Plots of searches over sizes: bounds, posteriors and predictions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from polyabayes.allocation.model import AllocationModel
from polyabayes.exceptions import InvalidArgumentError, InvalidTypeError
from polyabayes.plotting.axes import Axes, axes_or_new, colours, finish
from polyabayes.sizes.witness import WitnessSearch


def plot_size_bounds(
    searches: WitnessSearch | Mapping[str, WitnessSearch], ax: Axes | None = None
) -> Axes:
    """Plot the bounds of ln p(y) as sizes are explored.

    Parameters
    ----------
    searches : WitnessSearch, or mapping of name to WitnessSearch
        Fitted searches, for example under several priors (see ``WitnessSearch.under``).
    {ax}

    Returns
    -------
    matplotlib Axes
        One band per search, between the lower and upper bound in nats, against the size scored
        last, or against the step if there are several sizes.

    {raises: bad plot}

    Examples
    --------
    >>> prior = pb.priors.Geometric(0.5)
    >>> search = pb.WitnessSearch(lambda k: -10.0 - 2.0 / k, prior, max_steps=6).fit()
    >>> ax = pb.plotting.plot_size_bounds(search)
    >>> "nats" in ax.get_ylabel()
    True
    """
    named = _named(searches)
    tables = {name: search.bounds_ for name, search in named.items()}
    of_one_size = all(search.prior.n_variables == 1 for search in named.values())
    ax = axes_or_new(ax, 7.0, 4.2, len(named))
    for name, table in tables.items():
        x = table["size"] if of_one_size else np.arange(1, table.n_rows + 1)
        lower = np.where(np.isfinite(table["lower"]), table["lower"], np.nan)
        (line,) = ax.plot(x, lower, marker=".", markersize=3, label=name or None)
        colour = line.get_color()
        ax.plot(x, table["upper"], marker=".", markersize=3, color=colour)
        ax.fill_between(x, lower, table["upper"], color=colour, alpha=0.15, linewidth=0)
    largest = f"largest {_shared_label(named)} explored"
    ax.set_xlabel(largest if of_one_size else "configurations explored")
    ax.locator_params(axis="x", integer=True)
    ax.set_ylabel("bounds on ln p(y) (nats)")
    return _finished(ax)


def plot_size_posterior(
    searches: WitnessSearch | Mapping[str, WitnessSearch], ax: Axes | None = None
) -> Axes:
    """Plot the bounds of the posterior probability of every size.

    Parameters
    ----------
    searches : WitnessSearch, or mapping of name to WitnessSearch
        Fitted searches of one size.
    {ax}

    Returns
    -------
    matplotlib Axes
        One bar per size, filled up to the lower bound and hatched up to the upper bound.

    {raises: bad plot}

    Examples
    --------
    >>> prior = pb.priors.Geometric(0.5)
    >>> search = pb.WitnessSearch(lambda k: -10.0 - 2.0 / k, prior, max_steps=6).fit()
    >>> ax = pb.plotting.plot_size_posterior(search)
    >>> "size" in ax.get_xlabel()
    True
    """
    named = _named(searches)
    for search in named.values():
        if search.prior.n_variables != 1:
            raise InvalidArgumentError("plot_size_posterior draws searches of one size")
    ax = axes_or_new(ax, 7.0, 4.2)
    width, looks = 0.8 / len(named), colours(len(named))
    for place, (name, search) in enumerate(named.items()):
        table = search.posterior_bounds_
        x = table["size"] + width * (place - (len(named) - 1) / 2)
        open_part = table["upper"] - table["lower"]
        colour = looks[place]
        ax.bar(x, table["lower"], width, color=colour, label=name or "at least")
        hollow: Any = {"facecolor": "none", "edgecolor": colour, "hatch": "////", "linewidth": 0.8}
        label = None if any(named) else "at most"
        ax.bar(x, open_part, width, bottom=table["lower"], label=label, **hollow)
    ax.set_ylim(0, None)
    ax.locator_params(axis="x", integer=True)
    ax.set_xlabel(_shared_label(named))
    ax.set_ylabel("bounds on the posterior probability")
    return _finished(ax, "filled: at least;\nhatched: at most" if any(named) else None)


def _size_labels(search: WitnessSearch) -> list[str]:
    """Labels of the size axes."""
    if isinstance(search.estimator, AllocationModel):
        return [f"size of {node}" for node in search.estimator.unknown_sizes]
    return ["size"] if search.prior.n_variables == 1 else ["first size", "second size"]


def _shared_label(searches: Mapping[str, WitnessSearch]) -> str:
    labels = {_size_labels(search)[0] for search in searches.values()}
    return labels.pop() if len(labels) == 1 else "size"


def _named(searches: Any) -> dict[str, WitnessSearch]:
    named = {"": searches} if isinstance(searches, WitnessSearch) else searches
    if not isinstance(named, Mapping) or not named:
        raise InvalidTypeError(f"searches must be fitted WitnessSearches, got {searches!r}")
    for search in named.values():
        if not isinstance(search, WitnessSearch):
            raise InvalidTypeError(f"searches must be fitted WitnessSearches, got {search!r}")
    return dict(named)


def _finished(ax: Axes, title: str | None = None) -> Axes:
    ax.ticklabel_format(axis="y", useOffset=False)
    return finish(ax, title)
