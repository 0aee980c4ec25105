"""Pictures of allocation models: evidence, posterior odds, tables and graphs."""

from __future__ import annotations

import numbers
from collections.abc import Collection, Mapping
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from polyabayes._support import checks
from polyabayes.allocation.decomposition import Decomposition
from polyabayes.allocation.evidence.result import Evidence
from polyabayes.allocation.graphs.checks import known_nodes
from polyabayes.allocation.histogram import Allocations
from polyabayes.allocation.missing_cells import MissingCells
from polyabayes.allocation.model import AllocationModel
from polyabayes.allocation.posterior import ModelPosterior
from polyabayes.data.counts import checked_labels
from polyabayes.exceptions import InvalidArgumentError, InvalidTypeError
from polyabayes.plotting.axes import axes_or_new
from polyabayes.plotting.rounds import draw_rounds

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_LABELS = 40
# Ranks that stand side by side below a figure of this width.
_MOST_RANKS = 20
# Letters of all labels that fit below a table side by side.
_MOST_LETTERS = 40
# Area of a node of a graph, in square points.
_NODE_SIZE = 1600


def plot_allocations(allocations: Allocations, bins: int = 50, ax: Axes | None = None) -> Axes:
    """Draw how many allocations there are of every log probability.

    Parameters
    ----------
    allocations : Allocations
        What :meth:`polyabayes.AllocationModel.allocations` returns.
    bins : int, default=50
        Number of bins.
    {ax}

    Returns
    -------
    matplotlib Axes
        Numbers of allocations on a logarithmic scale; a line at the log evidence, their sum.

    Raises
    ------
    InvalidArgumentError, InvalidTypeError
        If `bins` is not a positive whole number, or if `allocations` is something else.
    {no Matplotlib}

    Examples
    --------
    >>> counts = [[4, 3, 0], [0, 0, 3], [0, 0, 3]]
    >>> nmf = pb.AllocationModel.nmf(2)
    >>> ax = pb.plotting.plot_allocations(nmf.allocations(counts))
    >>> ax.get_yscale()
    'log'
    """
    if not isinstance(allocations, Allocations):
        raise InvalidTypeError(f"allocations must be Allocations, got {allocations!r}")
    heights, edges = allocations.histogram(bins)
    ax = axes_or_new(ax, 6.4, 4.0)
    ax.stairs(heights, edges, fill=True, color="C0")
    ax.axvline(allocations.log_evidence, color="C1", label="log evidence")
    ax.set_yscale("log")
    ax.set_xlabel("ln π(S | T), nats")
    ax.set_ylabel("allocations")
    ax.legend(frameon=False)
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def plot_evidence(
    evidences: Mapping[int, Evidence] | Evidence,
    level: float = 0.95,
    *,
    xlabel: str = "rank",
    ax: Axes | None = None,
) -> Axes:
    """Draw evidence against rank, with intervals; lower bounds are arrows upwards.

    One evidence by tempering is drawn round by round: the replicates, both sides, and in a corner
    the probability that neighbours on the ladder reject a swap.

    Parameters
    ----------
    evidences : mapping of int to Evidence, or Evidence
        Evidence by rank, or by any other number; or one by ``"tempered"``.
    level : float, default=0.95
        Probability that an interval holds the true value.
    xlabel : str, default="rank"
        What the number is; not of one evidence.
    {ax}

    Returns
    -------
    matplotlib Axes
        The y axis is in nats.

    Raises
    ------
    InvalidArgumentError, InvalidTypeError
        If `evidences` is empty or something else, or `level` is no probability.
    {no Matplotlib}

    Examples
    --------
    >>> counts = [[4, 3, 0], [0, 0, 3], [0, 0, 3]]
    >>> nmf = pb.AllocationModel.nmf(2)
    >>> by_rank = {K: pb.AllocationModel.nmf(K).log_evidence(counts) for K in (1, 2, 3)}
    >>> pb.plotting.plot_evidence(by_rank).get_xlabel()
    'rank'
    >>> one = nmf.log_evidence(counts, "tempered", random_state=0)
    >>> pb.plotting.plot_evidence(one).get_xlabel()
    'sweeps of a round'
    """
    checks.share("level", level)
    if isinstance(evidences, Evidence):
        if not evidences.rounds:
            raise InvalidTypeError(
                "evidences must map numbers to Evidence; of one alone, method='tempered' has "
                f"rounds to draw, got {evidences!r}"
            )
        return draw_rounds(evidences, level, axes_or_new(ax, 6.4, 4.0))
    _check_evidences(evidences)
    ax = axes_or_new(ax, 6.4, 4.0)
    ranks = sorted(evidences)
    values = np.array([evidences[rank].value for rank in ranks])
    ends = np.array([evidences[rank].interval(level) for rank in ranks])
    is_bound = np.array([evidences[rank].is_lower_bound for rank in ranks])
    reach = np.abs(ends - values[:, np.newaxis])[~is_bound].T
    places = np.array(ranks)
    ax.plot(places, values, color="C0", linewidth=0.8, alpha=0.5)
    ax.errorbar(
        places[~is_bound],
        values[~is_bound],
        yerr=reach,
        fmt="o",
        color="C0",
        markersize=4,
        capsize=3,
    )
    ax.plot(places[is_bound], values[is_bound], "^", color="C1", label="lower bound")
    if is_bound.any():
        ax.legend(frameon=False)
    given = any(evidence.given_total for evidence in evidences.values())
    ax.set_xticks(ranks[:: -(-len(ranks) // _MOST_RANKS)])
    ax.set_xlabel(xlabel)
    ax.set_ylabel(f"log evidence{' given the total' if given else ''}, nats")
    ax.spines[["top", "right"]].set_visible(False)
    return ax


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
    """Draw the posterior log odds of models against the best, best on top, with intervals.

    Parameters
    ----------
    posterior : ModelPosterior
        What :func:`polyabayes.posterior_over_models` returns.
    level : float, default=0.95
        Probability that an interval holds the true value, by Student's law.
    ax : matplotlib Axes, optional
        Where to draw; None makes a figure of fitting size.

    Returns
    -------
    matplotlib Axes
        The x axis is in nats; the probability of each model is written beside it.

    Raises
    ------
    InvalidArgumentError, InvalidTypeError
        If `level` is no probability, or if `posterior` is something else.
    {no Matplotlib}

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
        ax.errorbar(value, y, xerr=quantile * std_error, fmt="o", color="C0", capsize=3)
        ax.annotate(f"{probability:.3g}", (1.02, y), xycoords=ax.get_yaxis_transform(), va="center")
    ax.axvline(0.0, color="0.5", linewidth=0.8, linestyle="--", zorder=0)
    ax.set_yticks(range(len(names)), names)
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.set_title("probability", loc="right", size="small")
    ax.set_xlabel(f"posterior log odds against {posterior.best}, nats")
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.tick_params(axis="y", length=0)
    return ax


def plot_table(decomposition: Decomposition, node: str, ax: Axes | None = None) -> Axes:
    """Draw the conditional table of a node: its values downwards, those of its parents across.

    Parameters
    ----------
    decomposition : Decomposition
        What :meth:`polyabayes.AllocationModel.decompose` returns.
    node : str
        The node. A node without parents is drawn as bars.
    {ax}

    Returns
    -------
    matplotlib Axes
        Joint values of several parents stand side by side, the last one varying fastest. Of more
        than 40 values, every second one or fewer have their labels.

    Raises
    ------
    InvalidArgumentError, InvalidTypeError
        If there is no such node, or if `decomposition` is something else.
    {no Matplotlib}

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
    ax = axes_or_new(ax, 5.0, float(np.clip(1.0 + 0.2 * size, 2.5, 9.0)))
    if parents:
        image = ax.imshow(table.reshape(size, -1), aspect="auto", cmap="Blues", vmin=0.0)
        ax.figure.colorbar(image, ax=ax, label="probability")
        ax.set_xlabel(", ".join(parents))
        ax.set_title(f"{node} given {', '.join(parents)}", loc="left", size="medium")
    else:
        ax.barh(range(size), table, color="C0")
        ax.set_ylim(size - 0.5, -0.5)
        ax.set_xlabel("probability")
        ax.set_title(node, loc="left", size="medium")
    ax.set_yticks(*_joint_labels(decomposition, (node,)), size="small")
    if parents:
        places, labels = _joint_labels(decomposition, parents)
        crowded = max(map(len, labels)) * len(labels) > _MOST_LETTERS
        ax.set_xticks(places, labels, size="small", rotation=90 if crowded else 0)
    ax.set_ylabel(node)
    return ax


def _joint_labels(
    decomposition: Decomposition, nodes: tuple[str, ...]
) -> tuple[list[int], list[str]]:
    """Places and labels of the joint values of nodes: every one, or as many as can be read."""
    names = [", ".join(map(str, row)) for row in product(*map(decomposition.level_names, nodes))]
    places = list(range(0, len(names), -(-len(names) // _MOST_LABELS)))
    return places, [names[place] for place in places]


def plot_graph(
    model: AllocationModel, visible: Collection[str] | None = None, ax: Axes | None = None
) -> Axes:
    """Draw the graph of a model, parents left of their children; visible nodes are shaded.

    Parameters
    ----------
    model : AllocationModel
        The model.
    visible : collection of str, optional
        The visible nodes; by default those without a size.
    {ax}

    Returns
    -------
    matplotlib Axes
        Nodes of one table are joined by a tie in the legend below.

    Raises
    ------
    InvalidArgumentError, InvalidTypeError
        If `model` is something else, or `visible` names a node that it does not have.
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
    for layer, nodes in enumerate(nx.topological_generations(graph)):
        for node in nodes:
            graph.nodes[node]["layer"] = layer
    places = nx.multipartite_layout(graph, subset_key="layer")
    colours = ["0.8" if node in shown else "white" for node in graph]
    drawn: dict[str, Any] = {"ax": ax, "node_size": _NODE_SIZE}
    nx.draw_networkx_nodes(graph, places, node_color=colours, edgecolors="black", **drawn)
    nx.draw_networkx_labels(graph, places, ax=ax, font_size=9)
    layer_of = nx.get_node_attributes(graph, "layer")
    # Arrows over more than one layer are bent, or they would pass behind the nodes between.
    for parent, child in graph.edges:
        bend = "arc3,rad=-0.35" if layer_of[child] - layer_of[parent] > 1 else "arc3"
        nx.draw_networkx_edges(
            graph, places, edgelist=[(parent, child)], connectionstyle=bend, **drawn
        )
    sizes = {node: f"{size:,}" if size else "?" for node, size in model.sizes.items()}
    notes = [f"{node}: {size} values" for node, size in sizes.items()]
    notes += [f"one table: {', '.join(tie)}" for tie in model.tied]
    notes += [f"added: {one} - {other}" for one, other in model.added_edges]
    ax.text(0.5, 0.0, "; ".join(notes), transform=ax.transAxes, ha="center", va="top", size="small")
    ax.margins(0.15)
    ax.set_axis_off()
    return ax


def plot_total(found: MissingCells, level: float = 0.95, *, ax: Axes | None = None) -> Axes:
    """Draw the posterior of the total where cells are missing, with standard errors.

    Parameters
    ----------
    found : MissingCells
        What :meth:`AllocationModel.predict_missing` has found.
    level : float, default=0.95
        Posterior probability of the shaded interval.
    {ax}

    Returns
    -------
    matplotlib Axes
        Totals along x, their posterior probabilities along y.

    Raises
    ------
    InvalidArgumentError, InvalidTypeError
        If `found` is something else, or `level` is no probability.
    {no Matplotlib}

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
    ax.axvspan(low - 0.5, high + 0.5, color="C0", alpha=0.15, linewidth=0, label=f"{level:.0%}")
    errors = np.nan_to_num(found.posterior_std_errors)
    ax.errorbar(
        found.totals, found.posterior, yerr=errors, fmt="o-", markersize=3, linewidth=0.8, capsize=2
    )
    ax.axvline(found.expected_total, color="C1", linewidth=0.8, label="mean")
    # Totals far in the tail would hide the others.
    ax.set_xlim(found.totals[0] - 1, max(high + (high - low) // 2, found.totals[0] + 1) + 1)
    ax.set_ylim(bottom=0)
    ax.set_xlabel("total of all cells")
    ax.set_ylabel("posterior probability")
    ax.legend(frameon=False)
    return ax
