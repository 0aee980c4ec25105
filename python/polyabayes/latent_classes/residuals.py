"""Do classes explain how items go together? Residuals of pairs of items."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from polyabayes._support.arrays import Floats
from polyabayes._support.results import Result
from polyabayes.data.names import CALLS
from polyabayes.latent_classes.answers import Answers, indicators
from polyabayes.latent_classes.tables import ClassTables


@dataclass(frozen=True, eq=False, repr=False)
class PairResiduals(Result):
    """Residuals of the table of each pair of items under latent classes.

    Attributes
    ----------
    pairs : list of tuple of (str, str)
        Names of the items.
    residual : ndarray of shape (n_pairs,)
        Pearson's Σ (observed - expected)² / expected over the cells of the pair's table, divided by
        their number minus one; mean over draws. About 1 if the classes explain the pair.
    p_values : ndarray of shape (n_pairs,)
        Share of data sets drawn from the model whose residual is at least as large: a posterior
        predictive p-value, which is conservative. Small if the classes do not explain the pair.
    p_value : float
        The same for the largest residual of all pairs. Small if this number of classes does not
        fit.

    References
    ----------
    A. Gelman, X.-L. Meng and H. Stern (1996). Posterior predictive assessment of model fitness via
    realized discrepancies. Statistica Sinica 6(4).

    Examples
    --------
    >>> answers = np.repeat([[0, 0, 0], [1, 1, 1], [0, 1, 0]], [20, 20, 4], axis=0)
    >>> one = pb.LatentClassAnalysis(1, random_state=0).fit(answers)
    >>> bool(one.residuals(answers).p_value < 0.01)
    True
    """

    pairs: list[tuple[str, str]]
    residual: Floats
    p_values: Floats
    p_value: float

    def _columns(self) -> dict[str, Any]:
        return {
            "item": [first for first, _ in self.pairs],
            "other": [second for _, second in self.pairs],
            "residual": self.residual,
            "p_value": self.p_values,
        }

    def __repr__(self) -> str:
        worst = int(np.argmax(self.residual))
        largest = self.residual[worst], ", ".join(self.pairs[worst]), self.p_values[worst]
        return CALLS["residuals"].format(len(self.pairs), *largest, self.p_value)


def pair_residuals(
    answers: Answers, tables: ClassTables, generator: np.random.Generator
) -> PairResiduals:
    """Residuals of data against those of data drawn from each draw of the tables.

    Rows drawn lack the answers that the rows of the data lack. Weights count as so many rows.
    """
    pairs = np.transpose(np.triu_indices(len(answers.items), 1))
    totals = _both_answered(answers)
    observed = _pair_table(answers.levels, answers.weights, answers.shape)
    mine, its = np.empty((2, len(tables.weights), len(pairs)))
    for draw in range(len(tables.weights)):
        expected = _expected(answers, tables.take(np.array([draw])), totals)
        mine[draw] = _residuals(observed, expected, pairs, answers.shape)
        numbers = np.full(len(answers.levels), draw)
        levels, _ = tables.draw(generator, numbers, answers.covariates)
        levels[answers.levels < 0] = -1
        drawn = _pair_table(levels, answers.weights, answers.shape)
        its[draw] = _residuals(drawn, expected, pairs, answers.shape)
    names = [(answers.items[first], answers.items[second]) for first, second in pairs]
    largest = (its.max(axis=1) >= mine.max(axis=1)).mean()
    return PairResiduals(names, mine.mean(axis=0), (its >= mine).mean(axis=0), float(largest))


def _pair_table(levels: Any, weights: Floats, shape: tuple[int, ...]) -> Floats:
    """Rows by pairs of answers, shape (answers, answers), the levels of all items one by one."""
    shown = indicators(levels, shape)
    return (shown * weights[:, None]).T @ shown


def _both_answered(answers: Answers) -> Floats:
    """Rows that have both answers of each pair of levels, shape (answers, answers)."""
    shown = (answers.levels >= 0).astype(np.float64)
    items = (shown * answers.weights[:, None]).T @ shown
    number = np.repeat(np.arange(len(answers.items)), answers.shape)
    return items[np.ix_(number, number)]


def _expected(answers: Answers, tables: ClassTables, totals: Floats) -> Floats:
    """Rows by pairs of answers that one draw of the tables expects."""
    stacked = np.concatenate([table[0] for table in tables.items])
    found: Floats
    if answers.covariates is None:
        found = ((stacked * tables.weights[0]) @ stacked.T) * totals
        return found
    found = np.zeros_like(totals)
    shares = np.exp(tables.ln_weights(answers.covariates)[0])
    for share, column in zip(shares.T, stacked.T, strict=True):
        held = answers._replace(weights=answers.weights * share)
        found += _both_answered(held) * np.outer(column, column)
    return found


def _residuals(observed: Floats, expected: Floats, pairs: Any, shape: tuple[int, ...]) -> Floats:
    """Pearson's statistic of each pair over the degrees of freedom of its table."""
    terms = np.zeros_like(expected)
    np.divide((observed - expected) ** 2, expected, out=terms, where=expected > 0)
    starts = np.cumsum((0, *shape[:-1]))
    sums = np.add.reduceat(np.add.reduceat(terms, starts, axis=0), starts, axis=1)
    return np.array([sums[i, j] / (shape[i] * shape[j] - 1) for i, j in pairs])
