"""Tables of classes: their weights and the probabilities of answers, of one fit or of draws."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Self

import numpy as np
from scipy import special

from polyabayes._support.arrays import Floats, Indices, Integers
from polyabayes._support.random import dirichlet

# Entries of arrays by draw, row and class that are in memory at once.
_CHUNK = 2**22
# Least probability of an answer of which there is a logarithm.
TINY = 1e-300


class ClassTables(NamedTuple):
    """Weights of classes and probabilities of their answers, draw after draw."""

    # Shape (n_draws, n_classes).
    weights: Floats
    # An array of shape (n_draws, n_levels, n_classes) for each item.
    items: tuple[Floats, ...]
    # λ of p(class k | x) ∝ exp(x·λ_k) in place of the weights: (n_draws, n_classes, n_columns).
    coefficients: Floats | None = None

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return int(self.weights.shape[1])

    @property
    def n_parameters(self) -> int:
        """Free parameters: weights but one, and the levels of every item but one by class."""
        free = sum(int(table.shape[1]) - 1 for table in self.items)
        n_columns = 1 if self.coefficients is None else int(self.coefficients.shape[2])
        return (self.n_classes - 1) * n_columns + self.n_classes * free

    def each(self, function: Callable[..., Floats], *others: ClassTables) -> Self:
        """Tables that a function makes of each table, without coefficients."""
        of_items = zip(self.items, *(other.items for other in others), strict=True)
        weights = function(self.weights, *(other.weights for other in others))
        return type(self)(weights, tuple(function(*tables) for tables in of_items))

    def mean(self) -> Self:
        """Means over the draws."""
        return self.each(lambda table: table.mean(axis=0, keepdims=True))

    def quantile(self, share: float) -> Self:
        """Quantiles over the draws."""
        return self.each(lambda table: np.quantile(table, [share], axis=0))

    def take(self, draws: Indices) -> Self:
        """The tables of some draws."""
        coefficients = None if self.coefficients is None else self.coefficients[draws]
        return type(self)(self.weights[draws], tuple(t[draws] for t in self.items), coefficients)

    def by_size(self) -> Indices:
        """Numbers of the classes, the largest first."""
        return np.argsort(-self.weights.mean(axis=0), kind="stable")

    def ordered(self, order: Indices) -> Self:
        """The same tables, with the classes in another order."""
        coefficients = None if self.coefficients is None else self.coefficients[:, order]
        items = tuple(table[:, :, order] for table in self.items)
        return type(self)(self.weights[:, order], items, coefficients)

    def ln_weights(self, covariates: Floats | None) -> Floats:
        """Ln of the class weights, shape (n_draws, n_rows, n_classes); one row if all are alike."""
        if self.coefficients is None or covariates is None:
            with np.errstate(divide="ignore"):
                found: Floats = np.log(self.weights)[:, None]
        else:
            found = special.log_softmax(covariates @ self.coefficients.swapaxes(1, 2), axis=2)
        return found

    def ln_joint(self, levels: Integers, covariates: Floats | None = None) -> Floats:
        """Ln of the probability of a row's answers and each class, shape (n_rows, n_classes).

        The mean of the probability over the draws; missing answers are summed out.
        """
        n_items = levels.shape[1]
        columns = levels if covariates is None else np.column_stack([levels, covariates])
        patterns, rows = np.unique(columns, axis=0, return_inverse=True)
        ln_items = [ln_with_missing(table) for table in self.items]
        found = np.empty((len(patterns), self.n_classes))
        size = max(1, _CHUNK // self.weights.size)
        for start in range(0, len(patterns), size):
            chunk = patterns[start : start + size]
            ln_weights = self.ln_weights(None if covariates is None else chunk[:, n_items:])
            terms = np.repeat(ln_weights, len(chunk) // ln_weights.shape[1], axis=1)
            for table, answers in zip(ln_items, chunk.T[:n_items], strict=True):
                terms += table[:, answers.astype(np.intp)]
            found[start : start + size] = special.logsumexp(terms, axis=0)
        found -= np.log(len(self.weights))
        return found[rows.ravel()]

    def ln_rows(self, levels: Integers, covariates: Floats | None = None) -> Floats:
        """Ln of the probability of each row's answers."""
        return special.logsumexp(self.ln_joint(levels, covariates), axis=1)

    def draw(
        self, generator: np.random.Generator, tables: Integers, covariates: Floats | None = None
    ) -> tuple[Integers, Indices]:
        """Answers of rows and their classes, each from the tables of the draw named for it.

        Rows have covariates where classes depend on them.
        """
        weights = self.weights[tables]
        if self.coefficients is not None and covariates is not None:
            linear = np.einsum("np,nkp->nk", covariates, self.coefficients[tables])
            weights = special.softmax(linear, axis=1)
        classes = drawn_index(generator, weights)
        answers = [drawn_index(generator, table[tables, :, classes]) for table in self.items]
        return np.stack(answers, axis=1), classes


class ClassCounts(NamedTuple):
    """Rows of each class and of its answers, of the shapes of :class:`ClassTables`.

    `alphas` are the Dirichlet parameters of the weights and of each item.
    """

    classes: Floats
    items: tuple[Floats, ...]
    alphas: Sequence[float]
    # Whether each item tells the classes apart; the others have one profile in all classes.
    tells: tuple[bool, ...]
    coefficients: Floats | None = None

    @property
    def n_parameters(self) -> int:
        """Free parameters of the tables."""
        of_items = zip(self.items, self.tells, strict=True)
        n_shared = sum(int(table.shape[1]) - 1 for table, tells in of_items if not tells)
        n_classes = int(self.classes.shape[1])
        return self.expected().n_parameters - (n_classes - 1) * n_shared

    def expected(self) -> ClassTables:
        """Tables that each draw of the counts expects: they predict the next row."""
        return self._made(lambda table: table / table.sum(axis=1, keepdims=True))

    def drawn(self, generator: np.random.Generator) -> ClassTables:
        """Tables from their posterior, one for each draw of the counts."""
        return self._made(lambda table: dirichlet(generator, table, axis=1))

    def ordered(self, order: Indices) -> ClassCounts:
        """The same counts, with the classes in another order."""
        coefficients = None if self.coefficients is None else self.coefficients[:, order]
        items = tuple(table[:, :, order] for table in self.items)
        return self._replace(classes=self.classes[:, order], items=items, coefficients=coefficients)

    def _made(self, make: Callable[[Floats], Floats]) -> ClassTables:
        """Tables from the parameters of their posterior."""
        n_classes = self.classes.shape[1]
        counts = (self.classes, *map(profiles, self.items, self.tells))
        first, *others = (make(n + alpha) for n, alpha in zip(counts, self.alphas, strict=True))
        items = tuple(np.repeat(t, n_classes // t.shape[2], axis=2) for t in others)
        return ClassTables(first, items, self.coefficients)


def profiles(counts: Floats, tells: bool) -> Floats:
    """Counts of the answers to an item, shape (..., n_classes); (..., 1) if it tells no classes."""
    return counts if tells else counts.sum(axis=-1, keepdims=True)


def ln_with_missing(table: Floats) -> Floats:
    """Ln of probabilities, shape (..., n_levels, n_classes); at -1, a missing answer, zeros."""
    with np.errstate(divide="ignore"):
        logs = np.log(table)
    return np.concatenate([logs, np.zeros_like(logs[..., :1, :])], axis=-2)


def drawn_index(generator: np.random.Generator, probabilities: Floats) -> Indices:
    """An index for each row of probabilities."""
    ends = np.cumsum(probabilities, axis=1)
    points = generator.random((len(ends), 1)) * ends[:, -1:]
    return (points >= ends[:, :-1]).sum(axis=1)
