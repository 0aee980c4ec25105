"""Checks of the arguments of an allocation model."""

from collections.abc import Mapping, Sequence
from typing import Any

from polyabayes._support import checks
from polyabayes.allocation.graphs.graph import Graph
from polyabayes.exceptions import InvalidArgumentError, InvalidTypeError, argument

# Largest number of values of a node.
LARGEST_SIZE = 2**32

# Beyond these, products of a few parameters would overflow or underflow.
_LEAST, _MOST = 1e-20, 1e20


def checked_parameter(name: str, value: Any) -> float:
    """Check a parameter of a prior."""
    number = checks.positive_number(name, value)
    if not _LEAST <= number <= _MOST:
        raise InvalidArgumentError(f"{name} must be between {_LEAST} and {_MOST}, got {value!r}")
    return number


def known_nodes(graph: Graph, name: str, nodes: tuple[str, ...]) -> tuple[str, ...]:
    """Return the nodes; refuse names that are not in the graph."""
    for node in nodes:
        if node not in graph.parents:
            raise InvalidArgumentError(
                f"{argument(name)} names {node!r}, which is not a node of the graph "
                f"{graph.to_text()!r}"
            )
    return nodes


def checked_sizes(graph: Graph, sizes: Any) -> dict[str, int | None]:
    """Check the sizes of nodes; None means not known yet."""
    if sizes is None:
        return {}
    if not isinstance(sizes, Mapping):
        raise InvalidTypeError(f"sizes must map names of nodes to numbers, got {sizes!r}")
    known_nodes(graph, "sizes", tuple(sizes))
    return {
        node: None
        if size is None
        else checks.whole_number(f"sizes[{node!r}]", size, 1, LARGEST_SIZE)
        for node, size in sizes.items()
    }


def checked_ties(graph: Graph, tied: Any) -> tuple[tuple[str, ...], ...]:
    """Check groups of two or more tied nodes; no node is in two groups."""
    if isinstance(tied, str) or not isinstance(tied, Sequence):
        raise InvalidTypeError(f"tied must hold groups of nodes, as [('i', 'j')], got {tied!r}")
    ties = []
    seen: set[str] = set()
    for group in tied:
        if isinstance(group, str) or not isinstance(group, Sequence) or len(group) < 2:
            raise InvalidTypeError(
                f"tied must hold groups of two nodes or more, as [('i', 'j')], got {tied!r}"
            )
        nodes = known_nodes(graph, "tied", tuple(group))
        twice = [node for node in nodes if node in seen or nodes.count(node) > 1]
        if twice:
            raise InvalidArgumentError(f"tied names node {twice[0]!r} twice, got {tied!r}")
        seen.update(nodes)
        ties.append(nodes)
    return tuple(ties)


def checked_prior(
    graph: Graph, tied: tuple[tuple[str, ...], ...], prior: Any
) -> str | dict[str, float]:
    """Check a prior: a name, or the Dirichlet parameter of every node's table."""
    if not isinstance(prior, Mapping):
        return checks.choice("prior", prior, ("bdeu", "bdeu-tokens", "flat"))
    known_nodes(graph, "prior", tuple(prior))
    for node in graph.nodes:
        if node not in prior:
            raise InvalidArgumentError(
                f"prior has no entry for node {node!r}; a mapping names every node"
            )
    for tie in tied:
        if len({prior[node] for node in tie}) > 1:
            raise InvalidArgumentError(
                f"prior differs between {', '.join(tie)}, which are tied to one table"
            )
    return {node: checked_parameter(f"prior[{node!r}]", value) for node, value in prior.items()}
