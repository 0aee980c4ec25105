"""Directed acyclic graphs for models given by undirected or cyclic graphs."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

from polyabayes.allocation.graphs.graph import Graph, import_networkx, read_edges

if TYPE_CHECKING:
    import networkx as nx


def directed(text: str) -> tuple[Graph, tuple[tuple[str, str], ...]]:
    """Moralise and triangulate a graph, and direct it along a perfect numbering.

    Edges are written ``-``. Arrows are allowed, also in cycles: their parents are married, then
    the directions dropped. Returned are a graph with complete families, which has no independence
    that the given graph lacks, and the edges that were added.
    """
    networkx = import_networkx()
    names, edges = read_edges(text)
    # Numbers, not names: sets of integers have the same order in every process.
    number = {name: index for index, name in enumerate(names)}
    given: nx.Graph[int] = networkx.Graph()
    given.add_nodes_from(range(len(names)))
    given.add_edges_from((number[edge.tail], number[edge.head]) for edge in edges)
    parents: dict[int, list[int]] = {node: [] for node in given}
    for edge in edges:
        if edge.is_directed:
            parents[number[edge.head]].append(number[edge.tail])
    moral = given.copy()
    for married in parents.values():
        moral.add_edges_from(combinations(married, 2))
    chordal, _ = networkx.complete_to_chordal_graph(moral)
    numbering = _maximum_cardinality(chordal)
    families = {
        names[node]: [names[other] for other in numbering[:rank] if chordal.has_edge(node, other)]
        for rank, node in enumerate(numbering)
    }
    pairs = sorted((min(pair), max(pair)) for pair in chordal.edges if not given.has_edge(*pair))
    return Graph(families), tuple((names[one], names[other]) for one, other in pairs)


def _maximum_cardinality(chordal: nx.Graph[int]) -> list[int]:
    """Maximum cardinality search: a perfect numbering of a chordal graph."""
    numbering: list[int] = []
    left = set(chordal)
    while left:
        node = max(left, key=lambda node: (len(set(chordal[node]) & set(numbering)), -node))
        numbering.append(node)
        left.remove(node)
    return numbering
