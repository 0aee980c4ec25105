"""Label switching: hidden values of posterior draws are numbered alike."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from polyabayes._support.arrays import Floats, Indices

# Passes over the hidden nodes; numbers converge after two or three.
_MOST_PASSES = 10


class Numbering:
    """Groups of hidden nodes whose values are renumbered together.

    `families` gives every node its parents. Tied nodes have one table, so they share numbers, and
    so do their parents, place by place.
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

    @property
    def is_single(self) -> bool:
        """Whether every table has one hidden axis, of the only group."""
        return len(self.groups) == 1 and all(
            len([*filter(None, axes)]) == 1 for axes in self.axes.values()
        )

    def of_draws(
        self, counts: Mapping[str, Floats], reference: Mapping[str, Floats]
    ) -> list[dict[str, Indices]]:
        """What :meth:`of` finds for every draw; draws are the first axis of the counts."""
        n_draws = len(next(iter(counts.values())))
        if not self.is_single:
            return [
                self.of({node: table[draw] for node, table in counts.items()}, reference)
                for draw in range(n_draws)
            ]
        scores: Any = 0.0
        for node, axes in self.axes.items():
            free = axes.index(self.groups[0])
            one, other = (
                np.moveaxis(np.sqrt(table), free - len(axes), -1)
                for table in (reference[node], counts[node])
            )
            one, other = one.reshape(-1, one.shape[-1]), other.reshape(n_draws, -1, one.shape[-1])
            scores = scores + one.T @ other
        matched = [linear_sum_assignment(of_draw, maximize=True)[1] for of_draw in scores]
        return [dict.fromkeys(self.first, numbers) for numbers in matched]

    def of(
        self, counts: Mapping[str, Floats], reference: Mapping[str, Floats]
    ) -> dict[str, Indices]:
        """For every hidden node, the value in a draw that matches each value of the reference.

        Groups of nodes take turns: each gets the assignment that maximises Σ √(counts of draw and
        reference) given the numbers of the other groups; the first pass uses its own tables only.
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
        """Renumber the hidden values of a table as in the reference."""
        for axis, name in enumerate(axes):
            if name in numbers:
                table = np.take(table, numbers[name], axis=axis)
        return table

    def _likeness(
        self,
        axes: tuple[str, ...],
        group: str,
        numbers: Mapping[str, Indices],
        draw: Floats,
        reference: Floats,
    ) -> Floats:
        """Scalar products of table slices: reference (rows) by draw (columns)."""
        free = axes.index(group)
        for axis, name in enumerate(axes):
            if name and axis != free:
                draw = np.take(draw, numbers[name], axis=axis)
        one, other = (
            np.moveaxis(table, free, 0).reshape(table.shape[free], -1)
            for table in (reference, draw)
        )
        return one @ other.T
