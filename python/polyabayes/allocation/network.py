"""What an allocation model is made of: its graph, sizes and priors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any

from polyabayes.allocation.graphs.checks import (
    checked_parameter,
    checked_prior,
    checked_sizes,
    checked_ties,
    known_nodes,
)
from polyabayes.allocation.graphs.graph import Graph
from polyabayes.allocation.graphs.ready_made import ReadyMade
from polyabayes.allocation.graphs.triangulation import directed
from polyabayes.allocation.layout import Cost, lay_out
from polyabayes.data.cells import checked_axes

if TYPE_CHECKING:
    from typing import Self

__all__ = ["Network"]


class Network(ReadyMade):
    """A graph whose tables have Dirichlet priors, before anything is inferred.

    Parameters and attributes are those of :class:`AllocationModel`.
    """

    def __init__(
        self,
        graph: str,
        sizes: Mapping[str, int | None] | None = None,
        concentration: float = 1.0,
        rate: float | None = None,
        tied: Sequence[Sequence[str]] = (),
        *,
        prior: str | Mapping[str, float] = "bdeu",
        axes: Sequence[str] | None = None,
    ) -> None:
        self.graph = Graph.parse(graph)
        self.sizes = checked_sizes(self.graph, sizes)
        self.concentration = checked_parameter("concentration", concentration)
        self.rate = None if rate is None else checked_parameter("rate", rate)
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
        """Make a decomposable model of a graph without directions, or with cycles.

        Parents of arrows are married and directions dropped, cycles get chords, and what is then
        chordal is directed along a perfect numbering; all such directions are equivalent.

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
            The model; its ``added_edges`` and its repr say which edges were added.

        Raises
        ------
        InvalidArgumentError, InvalidTypeError
            As the class.
        MissingDependencyError
            If networkx is not installed.

        Examples
        --------
        >>> from polyabayes import AllocationModel
        >>> AllocationModel.from_undirected("a -> c <- b").added_edges
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
        """The same model with other sizes, by node; those that are not given stay as they are.

        Raises
        ------
        InvalidArgumentError, InvalidTypeError
            If the graph has no such node, or a size is no positive number.

        Examples
        --------
        >>> from polyabayes import AllocationModel
        >>> AllocationModel.nmf(None).with_sizes(topic=3)
        <AllocationModel: topic -> doc, word; topic 3; concentration 1>
        """
        other = copy(self)
        other.sizes = checked_sizes(self.graph, {**self.sizes, **sizes})
        return other

    def cost(self, data: Any, *, elimination_order: Sequence[str] | None = None) -> Cost:
        """What the hidden nodes cost, before anything runs.

        Parameters
        ----------
        data, elimination_order
            As for :meth:`AllocationModel.log_evidence`.

        Returns
        -------
        Cost
            Tokens, cells, joint states a token, marginal counts an allocation.

        Raises
        ------
        InvalidArgumentError, InvalidCountsError, InvalidTypeError
            If model and data do not fit.
        """
        layout = lay_out(self, data, elimination_order)
        tensor, core = layout.tensor, layout.core
        return Cost(tensor.total, tensor.n_cells, core.n_states, core.n_marginals)

    def _open_nodes(self) -> tuple[str, ...]:
        nodes = tuple(node for node in self.graph.nodes if node not in self.sizes)
        return ("doc", "word") if set(nodes) == {"doc", "word"} else nodes

    def __repr__(self) -> str:
        parts = [self.graph.to_text()]
        sizes = {node: f"{size:,}" if size else "?" for node, size in self.sizes.items()}
        parts += [", ".join(f"{node} {size}" for node, size in sizes.items())]
        parts += [f"concentration {self.concentration:g}"]
        parts += [f"rate {self.rate:g}"] if self.rate is not None else []
        parts += [f"tied {', '.join(tie)}" for tie in self.tied]
        parts += [f"prior {self.prior}"] if self.prior != "bdeu" else []
        if self.added_edges:
            parts += ["added " + ", ".join(f"{one} - {other}" for one, other in self.added_edges)]
        return f"<AllocationModel: {'; '.join(part for part in parts if part)}>"
