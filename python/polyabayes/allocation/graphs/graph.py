"""Graphs as text: chains of arrows between the names of nodes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise, product
from types import ModuleType
from typing import TYPE_CHECKING, NoReturn

from polyabayes._support.checks import is_name
from polyabayes._support.optional import import_optional
from polyabayes.exceptions import InvalidArgumentError, InvalidTypeError

if TYPE_CHECKING:
    import networkx as nx

_TOKEN = re.compile(r"(?P<link>->|<-|-)|(?P<mark>[,;])|(?P<name>[^\s,;<>-]+)|(?P<other>\S)")


class Graph:
    """A directed acyclic graph.

    Attributes
    ----------
    parents : dict of str to tuple of str
        The parents of every node, in the order in which the text names them; the nodes are in
        the order of their first appearance.

    Examples
    --------
    >>> graph = Graph.parse("i <- r -> j; r -> k")
    >>> graph.nodes
    ('i', 'r', 'j', 'k')
    >>> graph.to_text()
    'r -> i, j, k'
    """

    __slots__ = ("parents",)

    def __init__(self, parents: Mapping[str, Iterable[str]]) -> None:
        if not isinstance(parents, Mapping):
            raise InvalidTypeError(f"parents must map nodes to nodes, got {parents!r:.100}")
        self.parents = {node: tuple(parents) for node, parents in parents.items()}

    @classmethod
    def parse(cls, text: str) -> Graph:
        """Read statements such as ``"t, s -> r -> i; j <- r"``.

        Parameters
        ----------
        text : str
            The graph, as for :class:`AllocationModel`.

        Returns
        -------
        Graph
            The nodes in the order of their first appearance.

        Raises
        ------
        InvalidArgumentError
            If the text is not a graph, or the graph has a cycle, an edge twice, or a node that
            is its own parent.
        InvalidTypeError
            If `text` is not a str.

        Examples
        --------
        >>> Graph.parse("t, s -> r -> i; j <- r").parents["r"]
        ('t', 's')
        """
        parents = _read_parents(text)
        try:
            TopologicalSorter(parents).prepare()
        except CycleError as error:
            raise InvalidArgumentError(
                f"graph {text!r} has the cycle {' -> '.join(error.args[1])}; turn an arrow round"
            ) from None
        return cls(parents)

    @property
    def nodes(self) -> tuple[str, ...]:
        """The names of the nodes."""
        return tuple(self.parents)

    @property
    def order(self) -> tuple[str, ...]:
        """The nodes, each after its parents."""
        return tuple(TopologicalSorter(self.parents).static_order())

    def family(self, node: str) -> tuple[str, ...]:
        """The node, then its parents: the dimensions of its table.

        Parameters
        ----------
        node : str
            Name of a node.

        Returns
        -------
        tuple of str
            Their names.

        Raises
        ------
        KeyError
            If the graph has no such node.

        Examples
        --------
        >>> graph = pb.AllocationModel("i <- r -> j; r -> k", {"r": 2}).graph
        >>> graph.family("j")
        ('j', 'r')
        """
        return (node, *self.parents[node])

    def to_text(self) -> str:
        """Write the graph as text that :meth:`parse` reads.

        Returns
        -------
        str
            Statements separated by semicolons, one for all nodes with the same parents.

        Examples
        --------
        >>> graph = pb.AllocationModel("i <- r -> j; r -> k", {"r": 2}).graph
        >>> graph.to_text()
        'r -> i, j, k'
        """
        children: dict[tuple[str, ...], list[str]] = {}
        for node, parents in self.parents.items():
            children.setdefault(parents, []).append(node)
        named = {node for parents in children for node in parents}
        statements = [
            f"{', '.join(parents)} -> {', '.join(nodes)}"
            for parents, nodes in children.items()
            if parents
        ]
        alone = [node for node in children.get((), []) if node not in named]
        return "; ".join([*statements, *alone])

    def to_networkx(self) -> nx.DiGraph[str]:
        """Convert the graph to networkx.

        Returns
        -------
        networkx.DiGraph
            The nodes by name, an edge from every parent to its child.

        Raises
        ------
        MissingDependencyError
            If networkx is not installed.

        Examples
        --------
        >>> graph = pb.AllocationModel("i <- r -> j; r -> k", {"r": 2}).graph
        >>> sorted(graph.to_networkx().edges)
        [('r', 'i'), ('r', 'j'), ('r', 'k')]
        """
        graph: nx.DiGraph[str] = import_networkx().DiGraph()
        graph.add_nodes_from(self.parents)
        graph.add_edges_from((tail, head) for head in self.parents for tail in self.parents[head])
        return graph

    def __eq__(self, other: object) -> bool:
        """Whether nodes and families are the same, in any order of the nodes."""
        return self.parents == other.parents if isinstance(other, Graph) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<Graph: {self.to_text()}>"


def import_networkx() -> ModuleType:
    """Import networkx; if it is missing, the error says how to install it."""
    why = "pictures of graphs need networkx"
    return import_optional("networkx", why, "graph")


def _read_parents(text: str) -> dict[str, list[str]]:
    """Read nodes, in the order of their first appearance, and their parents.

    Invalid text, an edge from a node to itself and a repeated edge are refused.
    """
    if not isinstance(text, str):
        raise InvalidTypeError(f"graph must be a str such as 'doc -> topic -> word', got {text!r}")
    parents: dict[str, list[str]] = {}
    for statement in _statements(text):
        for group, _ in statement:
            for name, _ in group:
                parents.setdefault(name, [])
        for (left, link), (right, _) in pairwise(statement):
            for (first, _), (second, place) in product(left, right):
                if first == second:
                    _refuse(text, place, f"node {first!r} is linked to itself")
                if link == "-":
                    _refuse(text, place, "'-' has no direction; write '->' or '<-'")
                tail, head = (second, first) if link == "<-" else (first, second)
                if tail in parents[head]:
                    _refuse(
                        text, place, f"the edge between {first!r} and {second!r} is there twice"
                    )
                parents[head].append(tail)
    return parents


_Name = tuple[str, int]
_Statement = list[tuple[list[_Name], str]]


def _statements(text: str) -> Iterator[_Statement]:
    """Groups of nodes, each with the link after it."""
    tokens = [(str(match.lastgroup), match[0], match.start()) for match in _TOKEN.finditer(text)]
    if not tokens:
        raise InvalidArgumentError(
            f"graph {text!r} has no nodes; write a graph such as 'doc -> topic -> word'"
        )
    if tokens[-1][1] != ";":
        tokens.append(("mark", ";", len(text)))
    statement: _Statement = []
    group: list[_Name] = []
    name_expected = True
    for kind, token, place in tokens:
        if kind == "other" or (kind == "name") != name_expected:
            expected = "the name of a node" if name_expected else "'->', '<-', ',' or ';'"
            found = repr(token) if place < len(text) else "the end"
            _refuse(text, place, f"expected {expected}, found {found}")
        if kind == "name" and not is_name(token):
            _refuse(
                text, place, f"{token!r} is not a valid name: use letters, digits and underscores"
            )
        name_expected = kind != "name"
        if kind == "name":
            group.append((token, place))
        elif token != ",":
            statement.append((group, token))
            group = []
        if token == ";":
            yield statement
            statement = []


def _refuse(text: str, place: int, problem: str) -> NoReturn:
    raise InvalidArgumentError(f"graph {text[:place] + '[HERE]' + text[place:]!r}: {problem}")
