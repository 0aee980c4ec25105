"""Hidden values of draws, numbered alike: a posterior does not know the numbers of its groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

Floats = NDArray[np.float64]

# Passes over the hidden nodes; numbers settle after two or three.
_MOST_PASSES = 10


class Numbering:
    """The hidden nodes whose values are numbered together, and how tables change with numbers.

    `families` gives every node its parents. Tied nodes have one table: their values, and those of
    their parents in turn, share numbers.
    """

    def __init__(
        self,
        families: Mapping[str, tuple[str, ...]],
        hidden: Sequence[str],
        tied: Sequence[Sequence[str]],
    ) -> None:
        first = {node: node for node in hidden}
        for nodes in tied:
            for alike in zip(*(families[node] for node in nodes), strict=True):
                if set(alike) <= set(hidden):
                    ones = {first[node] for node in alike}
                    kept = min(ones, key=list(hidden).index)
                    first = {node: kept if one in ones else one for node, one in first.items()}
        self.groups = tuple(dict.fromkeys(first.values()))
        others = {node for nodes in tied for node in nodes[1:]}
        # The group of every axis of a table; tied tables once.
        self.axes = {
            node: tuple(first.get(name, "") for name in family)
            for node, family in families.items()
            if node not in others and any(name in first for name in family)
        }
        self.first = first

    def of(
        self, counts: Mapping[str, Floats], reference: Mapping[str, Floats]
    ) -> dict[str, NDArray[np.intp]]:
        """For every hidden node, the value of a draw that is nearest to each of the reference.

        Groups of nodes take turns: each has the assignment that makes the tables most alike, given
        the numbers of the others, by Σ √(counts of both); at first by the tables of its own alone.
        """
        sizes = {
            group: counts[node].shape[axes.index(group)]
            for node, axes in self.axes.items()
            for group in axes
            if group
        }
        numbers = {group: np.arange(size) for group, size in sizes.items()}
        roots = {node: (np.sqrt(counts[node]), np.sqrt(reference[node])) for node in self.axes}
        for nth in range(_MOST_PASSES):
            before = dict(numbers)
            for group in self.groups:
                alone = {
                    node for node, axes in self.axes.items() if [*filter(None, axes)] == [group]
                }
                nodes = alone if nth == 0 and alone else set(self.axes)
                scores = np.zeros((sizes[group],) * 2)
                for node, axes in self.axes.items():
                    if node in nodes and group in axes:
                        scores += self._likeness(axes, group, numbers, *roots[node])
                numbers[group] = linear_sum_assignment(scores, maximize=True)[1]
            if all((numbers[group] == before[group]).all() for group in self.groups):
                break
        return {node: numbers[group] for node, group in self.first.items()}

    def renumbered(self, axes: Sequence[str], table: Floats, numbers: Mapping[str, Any]) -> Floats:
        """A table, its axes named, whose hidden values have the numbers of the reference."""
        for axis, name in enumerate(axes):
            if name in numbers:
                table = np.take(table, numbers[name], axis=axis)
        return table

    def _likeness(
        self,
        axes: tuple[str, ...],
        group: str,
        numbers: Mapping[str, NDArray[np.intp]],
        draw: Floats,
        reference: Floats,
    ) -> Floats:
        """Scalar products of a table's slices, those of the reference by those of a draw."""
        free = axes.index(group)
        for axis, name in enumerate(axes):
            if name and axis != free:
                draw = np.take(draw, numbers[name], axis=axis)
        one, other = (
            np.moveaxis(table, free, 0).reshape(table.shape[free], -1)
            for table in (reference, draw)
        )
        return one @ other.T
