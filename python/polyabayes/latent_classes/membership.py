"""Class membership that depends on covariates: draws of its coefficients and of the classes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special

from polyabayes import _core
from polyabayes._support.progress import progress_bar
from polyabayes._support.random import dirichlet
from polyabayes.allocation.options import Run
from polyabayes.latent_classes.answers import Answers
from polyabayes.latent_classes.tables import (
    ClassCounts,
    Floats,
    drawn_index,
    ln_with_missing,
    profiles,
)

Integers = NDArray[np.intp]

# Chains, their sweeps before the first draw, their draws, and sweeps from one draw to the next.
N_CHAINS, _BURN_IN, _N_DRAWS, _BETWEEN = 4, 200, 100, 4


class MembershipChain:
    """A Gibbs chain over coefficients, probabilities of answers and the classes of rows.

    p(class k | x) ∝ exp(x·λ_k). Exponential variables of rate Σ_k exp(x·λ_k), one a row, make the
    λ_k independent, each with the density of a Poisson regression. exp of each intercept, at the
    mean of the covariates, has a gamma prior, so that without slopes the weights are Dirichlet.
    Rows count in proportion to `row_weights`: with fractions, draws are of the pseudo-posterior, in
    which the answers and classes of a row have the power of its weight. Weights and items, of shape
    (n_levels, n_classes) each, are those of the start; `alphas` are Dirichlet parameters of the
    weights and of each item; items that do not tell have one profile in all classes.
    """

    def __init__(
        self,
        levels: NDArray[np.int64],
        covariates: Floats,
        row_weights: Floats,
        weights: Floats,
        items: list[Floats],
        alphas: list[float],
        tells: tuple[bool, ...],
        seed: int,
    ) -> None:
        self._levels, self._alphas, self._row_weights = levels, alphas, row_weights
        self._tells = tells
        self._shapes = [table.shape for table in items]
        self._generator = np.random.default_rng(seed)
        slopes = np.ascontiguousarray(covariates[:, 1:])
        self._regression = _core.ClassRegression(slopes, weights, alphas[0], seed)
        self._groups = self._regression.groups.astype(np.intp)
        self._n_groups = int(self._groups.max()) + 1
        self._n_sweeps = 0
        self.classes = self._drawn_classes(items)

    @property
    def coefficients(self) -> Floats:
        """λ of every class, shape (n_classes, n_columns)."""
        n_classes = self._shapes[0][1]
        found: Floats = self._regression.parameters[:-1].reshape(n_classes, -1)
        return found

    def sweep(self) -> None:
        """One draw of everything."""
        n_classes, groups = self._shapes[0][1], self._groups
        items = [
            dirichlet(self._generator, table + alpha, axis=0)
            for table, alpha in zip(
                map(profiles, self.counts(), self._tells), self._alphas[1:], strict=True
            )
        ]
        cells = groups * n_classes + self.classes
        n_rows = _sums(cells, self._row_weights, self._n_groups * n_classes)
        rates, of_groups = self._weights().sum(axis=1), n_rows.reshape(-1, n_classes).sum(axis=1)
        exposures = self._generator.standard_gamma(of_groups) / rates
        self._regression.draw(n_rows, exposures, self._n_sweeps)
        self._n_sweeps += 1
        self.classes = self._drawn_classes(items)

    def counts(self) -> Iterator[Floats]:
        """Answers of the rows of each class, a table of shape (n_levels, n_classes) an item."""
        for column, (n_levels, n_classes) in zip(self._levels.T, self._shapes, strict=True):
            shown = column >= 0
            cells = column[shown] * n_classes + self.classes[shown]
            counts = _sums(cells, self._row_weights[shown], n_levels * n_classes)
            yield counts.reshape(n_levels, n_classes)

    def _weights(self) -> Floats:
        """exp(x·λ) of every group of equal covariates, shape (n_groups, n_classes)."""
        return np.reshape(self._regression.weights, (self._n_groups, -1))

    def _drawn_classes(self, items: list[Floats]) -> Integers:
        terms = np.log(self._weights())[self._groups]
        for column, table in zip(self._levels.T, items, strict=True):
            terms += ln_with_missing(table)[column]
        return drawn_index(self._generator, special.softmax(terms, axis=1))


def _sums(cells: Integers, weights: Floats, n_cells: int) -> Floats:
    found: Floats = np.bincount(cells, weights, n_cells).astype(np.float64, copy=False)
    return found


def draw_memberships(
    answers: Answers, counts: ClassCounts, run: Run
) -> tuple[ClassCounts, NDArray[np.intp]]:
    """Draws of counts and coefficients, and the chain of each; chains start from given draws.

    Rows without covariates have the intercept alone. Classes of a draw are numbered as those of the
    start that hold the same rows, as nearly as an assignment gets.
    """
    levels, row_weights = answers.levels, answers.weights
    covariates = answers.covariates
    if covariates is None:
        covariates = np.ones((len(levels), 1))
    tables = counts.expected()
    known = special.softmax(tables.ln_joint(levels), axis=1)
    n_classes = tables.n_classes
    generator = np.random.default_rng([run.seed, n_classes])
    found: list[tuple[Floats, list[Floats], Floats]] = []
    with progress_bar(run.progress, N_CHAINS * _N_DRAWS, "draw") as tell:
        for at in np.linspace(0, len(tables.weights) - 1, N_CHAINS).astype(int):
            items, seed = [table[at] for table in tables.items], int(generator.integers(2**63))
            start = (tables.weights[at], items, list(counts.alphas), counts.tells, seed)
            chain = MembershipChain(levels, covariates, row_weights, *start)
            for sweep in range(_BURN_IN + _N_DRAWS * _BETWEEN):
                chain.sweep()
                if sweep >= _BURN_IN and (sweep + 1 - _BURN_IN) % _BETWEEN == 0:
                    shown = np.eye(n_classes)[chain.classes]
                    order = optimize.linear_sum_assignment(known.T @ shown, maximize=True)[1]
                    parts = [table[:, order] for table in chain.counts()]
                    found.append(((row_weights @ shown)[order], parts, chain.coefficients[order]))
                    if tell is not None:
                        tell(len(found))
    sizes, items_of_draws, coefficients = zip(*found, strict=True)
    drawn = tuple(np.stack(part) for part in zip(*items_of_draws, strict=True))
    chains = np.repeat(np.arange(N_CHAINS), _N_DRAWS)
    of_covariates = None if answers.covariates is None else np.stack(coefficients)
    found_counts = counts._replace(classes=np.stack(sizes), items=drawn, coefficients=of_covariates)
    return found_counts, chains
