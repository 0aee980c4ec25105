"""Plots of allocation models: evidence, posterior odds, tables and graphs."""

from __future__ import annotations

import numbers
from collections.abc import Collection, Mapping
from itertools import product
from typing import Any

import numpy as np

from polyabayes._support import checks
from polyabayes.allocation.evidence.result import Evidence
from polyabayes.allocation.graphs.checks import known_nodes
from polyabayes.allocation.inference.decomposition import Decomposition
from polyabayes.allocation.missing_cells import MissingCells
from polyabayes.allocation.model import AllocationModel
from polyabayes.allocation.posterior import ModelPosterior
from polyabayes.data.counts import checked_labels
from polyabayes.exceptions import InvalidArgumentError, InvalidTypeError
from polyabayes.plotting.axes import (
    BLUE,
    VERMILION,
    Axes,
    axes_or_new,
    finish,
    foreground,
    heat_map,
)

_MOST_LABELS = 40
# Most ranks that fit side by side below a figure of this width.
_MOST_RANKS = 20
# Most letters of all labels that fit side by side below a table.
_MOST_LETTERS = 40
# Most cells of a table with numbers.
_MOST_NUMBERS = 50
# Area of a node of a graph, in square points.
_NODE_SIZE = 1600


def plot_evidence(
    evidences: Mapping[int, Evidence],
    level: float = 0.95,
    *,
    xlabel: str = "rank",
    ax: Axes | None = None,
) -> Axes:
    """Plot evidence against rank, with intervals; lower bounds are arrows upwards.

    Parameters
    ----------
    evidences : mapping of int to Evidence
        Evidence by rank or another number.
    level : float, default=0.95
        Confidence level of the intervals.
    xlabel : str, default="rank"
        Name of the number.
    {ax}

    Returns
    -------
    matplotlib Axes
        The y axis is in nats.

    {raises: bad plot}

    Examples
    --------
    >>> counts = [[4, 3, 0], [0, 0, 3], [0, 0, 3]]
    >>> by_rank = {K: pb.AllocationModel.nmf(K).log_evidence(counts) for K in (1, 2, 3)}
    >>> pb.plotting.plot_evidence(by_rank).get_xlabel()
    'rank'
    """
    checks.share("level", level)
    _check_evidences(evidences)
    ax = axes_or_new(ax, 6.4, 4.0)
    ranks = sorted(evidences)
    values = np.array([evidences[rank].value for rank in ranks])
    ends = np.array([evidences[rank].interval(level) for rank in ranks])
    is_bound = np.array([evidences[rank].is_lower_bound for rank in ranks])
    reach = np.abs(ends - values[:, np.newaxis])[~is_bound].T
    places = np.array(ranks)
    ax.plot(places, values, color=BLUE, linewidth=0.8, alpha=0.5)
    style: Any = {"fmt": "o", "color": BLUE, "markersize": 4, "capsize": 3}
    ax.errorbar(places[~is_bound], values[~is_bound], yerr=reach, **style)
    if is_bound.any():
        ax.plot(places[is_bound], values[is_bound], "^", color=VERMILION, label="lower bound")
    given = any(evidence.given_total for evidence in evidences.values())
    ax.set_xticks(ranks[:: -(-len(ranks) // _MOST_RANKS)])
    ax.set_xlabel(xlabel)
    ax.set_ylabel(f"log evidence{' given the total' if given else ''} (nats)")
    return finish(ax)


def _check_evidences(evidences: Any) -> None:
    if isinstance(evidences, ModelPosterior):
        raise InvalidTypeError(
            "evidences must map numbers to Evidence, got a ModelPosterior: plot_posterior draws "
            "that, and its `evidences` are by name"
        )
    if not isinstance(evidences, Mapping) or not all(
        isinstance(rank, numbers.Real) and isinstance(evidence, Evidence)
        for rank, evidence in evidences.items()
    ):
        raise InvalidTypeError(f"evidences must map numbers to Evidence, got {evidences!r}")
    if not evidences:
        raise InvalidArgumentError("evidences is empty; give at least one")


def plot_posterior(posterior: ModelPosterior, level: float = 0.95, ax: Axes | None = None) -> Axes:
    """Plot the posterior log odds of models against the best, best on top, with intervals.

    Parameters
    ----------
    posterior : ModelPosterior
        Result of :func:`polyabayes.posterior_over_models`.
    level : float, default=0.95
        Confidence level of the intervals, by Student's t.
    {ax}

    Returns
    -------
    matplotlib Axes
        The x axis is in nats; labels show the probability of each model.

    {raises: bad plot}

    Examples
    --------
    >>> counts = [[4, 3, 0], [0, 0, 3], [0, 0, 3]]
    >>> nmf = pb.AllocationModel.nmf(2)
    >>> models = {str(K): pb.AllocationModel.nmf(K) for K in (1, 2)}
    >>> ax = pb.plotting.plot_posterior(pb.posterior_over_models(models, counts))
    >>> len(ax.get_yticklabels())
    2
    """
    if not isinstance(posterior, ModelPosterior):
        raise InvalidTypeError(f"posterior must be a ModelPosterior, got {posterior!r}")
    quantile = posterior.quantile(checks.share("level", level))
    names = list(posterior.evidences)
    ax = axes_or_new(ax, 6.4, 1.2 + 0.42 * len(names))
    for y, (name, probability) in enumerate(posterior.probabilities.items()):
        value, std_error = posterior.log_odds(name, posterior.best)
        ax.errorbar(value, y, xerr=quantile * std_error, fmt="o", color=BLUE, capsize=3)
        ax.annotate(f"{probability:.3g}", (1.02, y), xycoords=ax.get_yaxis_transform(), va="center")
    ax.axvline(0.0, color="0.5", linewidth=0.8, linestyle="--", zorder=0)
    ax.set_yticks(range(len(names)), names)
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.set_title("probability", loc="right", size="small")
    ax.set_xlabel(f"posterior log odds against {posterior.best} (nats)")
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.tick_params(axis="y", length=0)
    return ax


def plot_table(decomposition: Decomposition, node: str, ax: Axes | None = None) -> Axes:
    """Plot the conditional table of a node: its values as rows, its parents' values as columns.

    A table of transitions, whose parent has the same values, has rows "from" and columns "to".

    Parameters
    ----------
    decomposition : Decomposition
        Result of :meth:`polyabayes.AllocationModel.decompose`.
    node : str
        The node. A node without parents is plotted as bars.
    {ax}

    Returns
    -------
    matplotlib Axes
        Joint values of the parents are in order; the last parent varies fastest. With more than 40
        values, only some have labels; tables of up to 50 cells have numbers.

    {raises: bad plot}

    Examples
    --------
    >>> counts = [[4, 3, 0], [0, 0, 3], [0, 0, 3]]
    >>> nmf = pb.AllocationModel.nmf(2)
    >>> ax = pb.plotting.plot_table(nmf.decompose(counts, random_state=0), "word")
    >>> len(ax.images)
    1
    """
    if not isinstance(decomposition, Decomposition):
        raise InvalidTypeError(f"decomposition must be a Decomposition, got {decomposition!r}")
    table = decomposition._table(node)
    parents = decomposition.families[node][1:]
    size = table.shape[0]
    table = table.reshape(size, -1) if parents else table
    below, beside = parents, (node,)
    visible, names_of = decomposition.tensor.axes, decomposition.level_names
    kinds = {(name in visible, *names_of(name)) for name in decomposition.families[node]}
    if len(parents) == 1 and len(kinds) == 1:
        table, below, beside = table.T, beside, parents
    ax = axes_or_new(ax, 5.0, float(np.clip(1.0 + 0.2 * size, 2.5, 9.0)))
    if parents:
        shown = table.flat if table.size <= _MOST_NUMBERS else ()
        heat_map(ax, table, "probability", [f"{share:.2f}" for share in shown], aspect="auto")
        ax.set_xlabel(", ".join(below))
        ax.set_title(f"{node} given {', '.join(parents)}", loc="left", size="medium")
    else:
        ax.barh(range(size), table, color=BLUE)
        ax.set_ylim(size - 0.5, -0.5)
        ax.set_xlabel("probability")
        ax.set_title(node, loc="left", size="medium")
    ax.set_yticks(*_joint_labels(decomposition, beside), size="small")
    if parents:
        places, labels = _joint_labels(decomposition, below)
        crowded = max(map(len, labels)) * len(labels) > _MOST_LETTERS
        ax.set_xticks(places, labels, size="small", rotation=90 if crowded else 0)
    ax.set_ylabel(", ".join(beside))
    return ax


def _joint_labels(
    decomposition: Decomposition, nodes: tuple[str, ...]
) -> tuple[list[int], list[str]]:
    """Positions and labels of the joint values of nodes: all, or as many as are readable."""
    names = [", ".join(map(str, row)) for row in product(*map(decomposition.level_names, nodes))]
    places = list(range(0, len(names), -(-len(names) // _MOST_LABELS)))
    return places, [names[place] for place in places]


def plot_graph(
    model: AllocationModel, visible: Collection[str] | None = None, ax: Axes | None = None
) -> Axes:
    """Plot the graph of a model, parents left of their children; visible nodes are shaded.

    Parameters
    ----------
    model : AllocationModel
        The model.
    visible : collection of str, optional
        The visible nodes; default: the nodes without a size.
    {ax}

    Returns
    -------
    matplotlib Axes
        The legend below lists tied nodes, which share a table.

    Raises
    ------
    InvalidArgumentError, InvalidTypeError
        If `model` has another type, or `visible` names an unknown node.
    MissingDependencyError
        If Matplotlib or networkx is not installed.

    Examples
    --------
    >>> counts = [[4, 3, 0], [0, 0, 3], [0, 0, 3]]
    >>> nmf = pb.AllocationModel.nmf(2)
    >>> ax = pb.plotting.plot_graph(nmf)
    >>> sorted(text.get_text() for text in ax.texts if text.get_text() in nmf.graph.nodes)
    ['doc', 'topic', 'word']
    """
    if not isinstance(model, AllocationModel):
        raise InvalidTypeError(f"model must be an AllocationModel, got {model!r}")
    shown = model.axes
    if visible is not None:
        shown = known_nodes(model.graph, "visible", tuple(checked_labels(visible, "visible")))
    graph: Any = model.graph.to_networkx()
    import networkx as nx

    ax = axes_or_new(ax, 6.0, 4.0)
    layers = dict(enumerate(nx.topological_generations(graph)))
    layer_of = {node: layer for layer, nodes in layers.items() for node in nodes}
    places = nx.multipartite_layout(graph, subset_key=layers)
    drawn: dict[str, Any] = {"ax": ax, "node_size": _NODE_SIZE}
    ink = foreground()
    shades = [(ink, 0.2 if node in shown else 0.0) for node in graph]
    nx.draw_networkx_nodes(graph, places, node_color=shades, edgecolors=ink, **drawn)
    nx.draw_networkx_labels(graph, places, ax=ax, font_size=9, font_color=ink)
    # Arrows over more than one layer are bent around the nodes between.
    for parent, child in graph.edges:
        bend = "arc3,rad=-0.35" if layer_of[child] - layer_of[parent] > 1 else "arc3"
        nx.draw_networkx_edges(
            graph, places, edgelist=[(parent, child)], connectionstyle=bend, edge_color=ink, **drawn
        )
    sizes = {node: f"{size:,}" if size else "?" for node, size in model.sizes.items()}
    notes = [f"{node}: {size} values" for node, size in sizes.items()]
    notes += [f"one table: {', '.join(tie)}" for tie in model.tied]
    ax.text(0.5, 0.0, "; ".join(notes), transform=ax.transAxes, ha="center", va="top", size="small")
    ax.margins(0.15)
    ax.set_axis_off()
    return ax


def plot_total(found: MissingCells, level: float = 0.95, *, ax: Axes | None = None) -> Axes:
    """Plot the posterior of the total with missing cells, with standard errors.

    Parameters
    ----------
    found : MissingCells
        Result of :meth:`AllocationModel.predict_missing`.
    level : float, default=0.95
        Posterior probability of the shaded interval.
    {ax}

    Returns
    -------
    matplotlib Axes
        Totals on the x axis, posterior probabilities on the y axis.

    {raises: bad plot}

    Examples
    --------
    >>> model = pb.AllocationModel.nmf(1, concentration=4.0, rate=0.01)
    >>> found = model.predict_missing(np.ma.masked_equal([[-1, 3], [3, 3]], -1))
    >>> ax = pb.plotting.plot_total(found)
    >>> len(ax.lines) + len(ax.patches) > 0
    True
    """
    if not isinstance(found, MissingCells):
        raise InvalidTypeError(f"found must be MissingCells, got {found!r}")
    low, high = found.total_interval(level)
    ax = axes_or_new(ax, 6.4, 4.0)
    ax.axvspan(low - 0.5, high + 0.5, color=BLUE, alpha=0.15, linewidth=0, label=f"{level:.0%}")
    errors = np.nan_to_num(found.posterior_std_errors)
    ax.errorbar(
        found.totals, found.posterior, yerr=errors, fmt="o-", markersize=3, linewidth=0.8, capsize=2
    )
    ax.axvline(found.expected_total, color=VERMILION, linewidth=0.8, label="mean")
    # Totals far in the tail would squeeze the others.
    ax.set_xlim(found.totals[0] - 1, max(high + (high - low) // 2, found.totals[0] + 1) + 1)
    ax.set_ylim(bottom=0)
    ax.set_xlabel("total of all cells")
    ax.set_ylabel("posterior probability")
    return finish(ax)
