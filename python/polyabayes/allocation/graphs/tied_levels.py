"""Levels of tied axes, which share a table, in one numbering."""

import numpy as np

from polyabayes._support.arrays import Integers
from polyabayes.allocation.graphs.graph import Graph
from polyabayes.data.counts import canonical_cells
from polyabayes.data.tensors.tensor import CountTensor
from polyabayes.exceptions import InvalidArgumentError


def match_levels(
    graph: Graph, tied: tuple[tuple[str, ...], ...], tensor: CountTensor
) -> tuple[CountTensor, dict[int, Integers]]:
    """Match the levels of tied axes by label, over the union of their labels.

    Tied nodes have the same values, and so do their parents, place by place. Axes without labels
    are matched by position. Returned are the tensor and, for each renumbered axis, the new number
    of each old level. Tied axes of which only some have labels are refused.
    """
    labels, shape, numbers = list(tensor.labels), list(tensor.shape), {}
    for nodes in _equal_nodes(graph, tied):
        axes = [axis for axis, name in enumerate(tensor.axes) if name in nodes]
        named = [axis for axis in axes if labels[axis] is not None]
        if not named:
            continue
        if len(named) < len(axes):
            bare = next(axis for axis in axes if axis not in named)
            raise InvalidArgumentError(
                f"axis {tensor.axes[named[0]]!r} has labels and axis {tensor.axes[bare]!r} has "
                "none; levels of tied axes are matched by label: label both axes or neither"
            )
        known = {axis: [str(label) for label in _labels(tensor, axis)] for axis in named}
        union = list(dict.fromkeys(label for axis in named for label in known[axis]))
        number = {label: level for level, label in enumerate(union)}
        for axis in named:
            if known[axis] != union:
                numbers[axis] = np.array([number[label] for label in known[axis]], dtype=np.int64)
                labels[axis], shape[axis] = np.array(union, dtype=object), len(union)
    if not numbers:
        return tensor, numbers
    coordinates = tensor.coordinates.copy()
    for axis, number_of in numbers.items():
        shown = coordinates[:, axis] >= 0
        coordinates[shown, axis] = number_of[coordinates[shown, axis]]
    cells = canonical_cells(coordinates, tensor.counts)
    matched = CountTensor._from_checked(*cells, tuple(shape), tensor.axes, tuple(labels))
    return matched, numbers


def _labels(tensor: CountTensor, axis: int) -> list[str]:
    labels = tensor.labels[axis]
    return [] if labels is None else labels.tolist()


def _equal_nodes(graph: Graph, tied: tuple[tuple[str, ...], ...]) -> list[set[str]]:
    """Groups of nodes with the same values: tied nodes, and their parents place by place."""
    groups: list[set[str]] = []
    for tie in tied:
        for alike in zip(*(graph.family(node) for node in tie), strict=False):
            joined = set(alike)
            for group in [group for group in groups if group & joined]:
                groups.remove(group)
                joined |= group
            groups.append(joined)
    return groups
