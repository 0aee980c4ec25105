"""A Bayesian network as a model: its graph, sizes of nodes, priors of tables and intensity."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any, Self

from polyabayes._support.output.tables import columns_of, html_table
from polyabayes.allocation.graphs.checks import (
    checked_parameter,
    checked_prior,
    checked_sizes,
    checked_ties,
    known_nodes,
)
from polyabayes.allocation.graphs.graph import Graph, directed
from polyabayes.allocation.graphs.rates import Rate, checked_rate
from polyabayes.data.tensors.cells import checked_axes


class Network:
    """Base class of :class:`AllocationModel`: the network, without data."""

    def __init__(
        self,
        graph: str,
        sizes: Mapping[str, int | None] | None = None,
        concentration: float = 1.0,
        rate: Rate | None = None,
        tied: Sequence[Sequence[str]] = (),
        *,
        prior: str | Mapping[str, float] = "bdeu",
        axes: Sequence[str] | None = None,
    ) -> None:
        self.graph = Graph.parse(graph)
        self.sizes = checked_sizes(self.graph, sizes)
        self.concentration = checked_parameter("concentration", concentration)
        self.rate = checked_rate(rate)
        self.tied = checked_ties(self.graph, tied)
        self.prior = checked_prior(self.graph, self.tied, prior)
        self.axes = self._open_nodes()
        if axes is not None:
            self.axes = known_nodes(self.graph, "axes", checked_axes(axes))
        self.added_edges: tuple[tuple[str, str], ...] = ()

    @classmethod
    def from_undirected(
        cls, graph: str, sizes: Mapping[str, int | None] | None = None, **options: Any
    ) -> Self:
        """Make a decomposable model from a graph that is undirected or has cycles.

        The graph is moralised and triangulated, then directed along a perfect numbering. All
        perfect numberings give Markov-equivalent models.

        Parameters
        ----------
        graph : str
            As for the class, with ``-`` for edges without a direction, as ``"a - b - c - a"``.
        sizes : mapping of str to int, optional
            As for the class.
        **options
            Further parameters of the class.

        Returns
        -------
        AllocationModel
            The model; ``added_edges`` and the repr list the edges that were added.

        Raises
        ------
        InvalidArgumentError, InvalidTypeError
            As for the class.
        MissingDependencyError
            If networkx is not installed.

        Examples
        --------
        >>> pb.AllocationModel.from_undirected("a -> c <- b").added_edges
        (('a', 'b'),)
        """
        network, added = directed(graph)
        model = cls(network.to_text(), sizes, **options)
        model.added_edges = added
        return model

    @property
    def unknown_sizes(self) -> tuple[str, ...]:
        """The nodes whose size is None, in the order of `sizes`."""
        return tuple(node for node, size in self.sizes.items() if size is None)

    def with_sizes(self, **sizes: int) -> Self:
        """Copy the model with other sizes of some nodes.

        Parameters
        ----------
        **sizes : int or None
            Number of values of a node, by its name.

        Returns
        -------
        AllocationModel
            The copy; nodes that are not given keep their sizes.

        Raises
        ------
        InvalidArgumentError, InvalidTypeError
            If the graph has no such node, or a size is not a positive integer.

        Examples
        --------
        >>> pb.AllocationModel.nmf(None).with_sizes(topic=3)
        <AllocationModel: topic -> doc, word; topic 3; concentration 1>
        """
        other = copy(self)
        other.sizes = checked_sizes(self.graph, {**self.sizes, **sizes})
        return other

    def _open_nodes(self) -> tuple[str, ...]:
        nodes = tuple(node for node in self.graph.nodes if node not in self.sizes)
        return ("doc", "word") if set(nodes) == {"doc", "word"} else nodes

    def _repr_html_(self) -> str:
        """Nodes, their parents and sizes, for notebooks."""
        nodes = list(self.graph.nodes)
        columns = {
            "node": nodes,
            "parents": [", ".join(self.graph.parents[node]) for node in nodes],
            "size": [self.sizes.get(node) or "that of the data" for node in nodes],
        }
        return html_table(columns_of(columns), repr(self).strip("<>"))

    def __repr__(self) -> str:
        parts = [self.graph.to_text()]
        sizes = {node: f"{size:,}" if size else "?" for node, size in self.sizes.items()}
        parts += [", ".join(f"{node} {size}" for node, size in sizes.items())]
        parts += [f"concentration {self.concentration:g}"]
        parts += [f"rate {_rate_text(self.rate)}"] if self.rate is not None else []
        parts += [f"tied {', '.join(tie)}" for tie in self.tied]
        parts += [f"prior {self.prior}"] if self.prior != "bdeu" else []
        if self.added_edges:
            parts += ["added " + ", ".join(f"{one} - {other}" for one, other in self.added_edges)]
        return f"<AllocationModel: {'; '.join(part for part in parts if part)}>"


def _rate_text(rate: Rate) -> str:
    if isinstance(rate, tuple):
        return f"gamma({rate[0]:g}, {rate[1]:g})"
    return f"{rate:g}"
