"""Tables of classes: their weights and the probabilities of answers, of one fit or of draws."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy import special

from polyabayes._support.random import dirichlet
from polyabayes.data.cells import Integers

Floats = NDArray[np.float64]

# Entries of arrays by draw, row and class that are in memory at once.
_CHUNK = 2**22


class ClassTables(NamedTuple):
    """Weights of classes and probabilities of their answers, draw after draw.

    Attributes
    ----------
    weights : ndarray of shape (n_draws, n_classes)
        They sum to 1 over the classes.
    items : tuple of ndarray, shape (n_draws, n_levels, n_classes)
        One an item; they sum to 1 over the levels.
    """

    weights: Floats
    items: tuple[Floats, ...]

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return int(self.weights.shape[1])

    @property
    def n_parameters(self) -> int:
        """Free parameters: weights but one, and the levels of every item but one by class."""
        free = sum(int(table.shape[1]) - 1 for table in self.items)
        return self.n_classes - 1 + self.n_classes * free

    def mean(self) -> Self:
        """Means over the draws."""
        weights = self.weights.mean(axis=0, keepdims=True)
        return type(self)(weights, tuple(t.mean(axis=0, keepdims=True) for t in self.items))

    def take(self, draws: NDArray[np.intp]) -> Self:
        """The tables of some draws."""
        return type(self)(self.weights[draws], tuple(table[draws] for table in self.items))

    def by_size(self) -> NDArray[np.intp]:
        """Numbers of the classes, the largest first."""
        return np.argsort(-self.weights.mean(axis=0), kind="stable")

    def ordered(self, order: NDArray[np.intp]) -> Self:
        """The same tables, with the classes in another order."""
        return type(self)(self.weights[:, order], tuple(t[:, :, order] for t in self.items))

    def ln_joint(self, levels: Integers) -> Floats:
        """Ln of the probability of a row's answers and each class, shape (n_rows, n_classes).

        The mean of the probability over the draws; missing answers are summed out.
        """
        patterns, rows = np.unique(levels, axis=0, return_inverse=True)
        with np.errstate(divide="ignore"):
            ln_weights = np.log(self.weights)[:, None]
            # A row of zeros at the end is that of a missing answer, -1.
            ln_items = [np.pad(np.log(t), ((0, 0), (0, 1), (0, 0))) for t in self.items]
        found = np.empty((len(patterns), self.n_classes))
        size = max(1, _CHUNK // self.weights.size)
        for start in range(0, len(patterns), size):
            chunk = patterns[start : start + size]
            terms = np.repeat(ln_weights, len(chunk), axis=1)
            for table, answers in zip(ln_items, chunk.T, strict=True):
                terms += table[:, answers]
            found[start : start + size] = special.logsumexp(terms, axis=0)
        found -= np.log(len(self.weights))
        return found[rows.ravel()]

    def draw(
        self, generator: np.random.Generator, tables: Integers
    ) -> tuple[Integers, NDArray[np.intp]]:
        """Rows from the model: each from the tables of the draw that is named for it.

        Returns
        -------
        levels : ndarray of int, shape (n_rows, n_items)
            Answers.
        classes : ndarray of int, shape (n_rows,)
            Their classes.
        """
        classes = _drawn(generator, self.weights[tables])
        answers = [_drawn(generator, table[tables, :, classes]) for table in self.items]
        return np.stack(answers, axis=1), classes


class ClassCounts(NamedTuple):
    """Rows of each class and of its answers, draw after draw, and the prior's pseudo-counts.

    Attributes
    ----------
    classes : ndarray of shape (n_draws, n_classes)
        Rows of each class.
    items : tuple of ndarray, shape (n_draws, n_levels, n_classes)
        Answers of the rows of each class, one array an item.
    alphas : sequence of float
        Dirichlet parameters of the weights and of each item.
    """

    classes: Floats
    items: tuple[Floats, ...]
    alphas: Sequence[float]

    def expected(self) -> ClassTables:
        """Tables that each draw of the counts expects: they predict the next row."""
        first, *others = self._parameters()
        items = tuple(table / table.sum(axis=1, keepdims=True) for table in others)
        return ClassTables(first / first.sum(axis=1, keepdims=True), items)

    def drawn(self, generator: np.random.Generator) -> ClassTables:
        """Tables from their posterior, one for each draw of the counts."""
        first, *others = (dirichlet(generator, table, axis=1) for table in self._parameters())
        return ClassTables(first, tuple(others))

    def ordered(self, order: NDArray[np.intp]) -> ClassCounts:
        """The same counts, with the classes in another order."""
        items = tuple(table[:, :, order] for table in self.items)
        return ClassCounts(self.classes[:, order], items, self.alphas)

    def n_occupied(self) -> NDArray[np.int64]:
        """Number of classes that hold a row, by draw."""
        found: NDArray[np.int64] = (self.classes > 0).sum(axis=1)
        return found

    def _parameters(self) -> list[Floats]:
        counts = (self.classes, *self.items)
        return [table + alpha for table, alpha in zip(counts, self.alphas, strict=True)]


def _drawn(generator: np.random.Generator, probabilities: Floats) -> NDArray[np.intp]:
    """An index for each row of probabilities."""
    ends = np.cumsum(probabilities, axis=1)
    points = generator.random((len(ends), 1)) * ends[:, -1:]
    found: NDArray[np.intp] = (points >= ends[:, :-1]).sum(axis=1)
    return found
