"""All allocations of a small tensor, and their probabilities."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, logsumexp

from polyabayes._support import checks
from polyabayes.allocation.layout import Layout
from polyabayes.exceptions import BudgetExceededError, argument

__all__ = ["Allocations", "enumerate_allocations"]

_Counts = NDArray[np.int64]
_Reals = NDArray[np.float64]

# Marginal counts that are held at a time: 160 MB.
_BUDGET = 2e7


@dataclass(frozen=True, eq=False)
class Allocations:
    """All allocations of a count tensor, those of equal probability and d(S) together.

    Attributes
    ----------
    log_probabilities : ndarray of shape (n_groups,)
        ln π(S | T) of an allocation of each group, in nats (Cemgil et al. 2019, equation 3.11).
    multiplicities : ndarray of shape (n_groups,)
        Allocations in each group.
    n_parameters : ndarray of shape (n_groups,)
        d(S), the number of parameters that they make use of
        (:func:`polyabayes.allocation.n_effective_parameters`).
    """

    log_probabilities: _Reals
    multiplicities: _Reals
    n_parameters: _Counts

    @property
    def n_allocations(self) -> float:
        """Number of allocations: whole, and exact up to 2^53."""
        return float(self.multiplicities.sum())

    @property
    def log_evidence(self) -> float:
        """The sum over all allocations: ln of the evidence given the total."""
        return float(logsumexp(self.log_probabilities, b=self.multiplicities))

    def histogram(self, bins: int = 50) -> tuple[_Reals, _Reals]:
        """Number of allocations by ln π(S | T): heights, and the `bins` + 1 edges."""
        checks.whole_number("bins", bins, 1, 10**6)
        heights, edges = np.histogram(
            self.log_probabilities, bins=bins, weights=self.multiplicities
        )
        return heights, edges

    def __repr__(self) -> str:
        return (
            f"<Allocations: {self.n_allocations:,.0f} in {len(self.multiplicities):,} groups, "
            f"log evidence {self.log_evidence:z,.6f} nats given the total>"
        )


def enumerate_allocations(layout: Layout, budget: float | None) -> Allocations:
    """Go through the cells of the data, and merge what is the same so far."""
    budget = _BUDGET if budget is None else checks.positive_number("budget", budget)
    tensor = layout.tensor
    shapes = [layout.shape(table[0]) for table in layout.tables]
    n_marginals = sum(math.prod(shape) for shape in shapes)
    n_states = math.prod(layout.sizes[node] for node in layout.hidden)
    margins = np.zeros((1, n_marginals), dtype=np.int64)
    multiplicities, ln_factorials = np.ones(1), np.zeros(1)
    for place, count in zip(tensor.coordinates, tensor.counts, strict=True):
        ln_ways = gammaln(count + n_states) - gammaln(n_states) - gammaln(count + 1.0)
        # e^700 is more than any budget, and can be written.
        n_ways = math.exp(min(ln_ways, 700.0))
        needed = len(margins) * n_ways * (n_marginals + n_states)
        if needed > budget:
            raise BudgetExceededError(
                f"the allocations of {tensor.total:,} tokens would take {needed:.1e} marginal "
                f"counts at a time; the budget is {budget:.1e}: raise {argument('budget')}, or "
                "take a smaller tensor or fewer hidden values",
                argument="budget",
                value=needed,
                limit=budget,
            )
        ways = _compositions(int(count), n_states)
        added = ways @ _increments(layout, shapes, place)
        margins = (margins[:, None] + added).reshape(-1, n_marginals)
        ln_factorials = np.add.outer(ln_factorials, gammaln(ways + 1.0).sum(axis=1)).ravel()
        copies = np.repeat(multiplicities, len(ways))
        first, multiplicities = _merge(ln_factorials, margins, copies)
        margins, ln_factorials = margins[first], ln_factorials[first]
    ln_law, n_parameters = _law(layout, shapes, margins)
    ln_arrangements = gammaln(tensor.total + 1.0) - ln_factorials
    # Hidden values that change places change no probability.
    first, multiplicities = _merge(ln_law + ln_arrangements, n_parameters[:, None], multiplicities)
    return Allocations((ln_law + ln_arrangements)[first], multiplicities, n_parameters[first])


def _merge(values: _Reals, counts: _Counts, multiplicities: _Reals) -> tuple[_Counts, _Reals]:
    """First of each group of equal rows, and its multiplicity.

    Sums of the same terms in another order differ in their last digits: values are equal to 32
    binary places.
    """
    keys = np.column_stack([counts, np.rint(values * 2.0**32)])
    _, first, group = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    merged: _Reals = np.bincount(group.ravel(), multiplicities).astype(np.float64)
    return first, merged


def _compositions(total: int, n_parts: int) -> _Counts:
    """All ways to write a total as an ordered sum, one a row."""
    if n_parts == 1:
        return np.array([[total]])
    bars = itertools.combinations(range(total + n_parts - 1), n_parts - 1)
    n_ways = math.comb(total + n_parts - 1, n_parts - 1)
    places = np.fromiter(itertools.chain.from_iterable(bars), np.int64, n_ways * (n_parts - 1))
    places = places.reshape(n_ways, n_parts - 1)
    edges = [np.full((n_ways, 1), -1), places, np.full((n_ways, 1), total + n_parts - 1)]
    parts: _Counts = np.diff(np.hstack(edges), axis=1) - 1
    return parts


def _increments(layout: Layout, shapes: list[tuple[int, ...]], place: Any) -> _Counts:
    """What a token of a cell adds to all tables, for every joint state of the hidden nodes."""
    hidden = layout.hidden
    shape = tuple(layout.sizes[node] for node in hidden)
    n_states = math.prod(shape)
    states = np.indices(shape).reshape(len(hidden), n_states)
    values = dict(zip(hidden, states, strict=True))
    for axis, value in zip(layout.tensor.axes, place, strict=True):
        values[axis] = np.full(n_states, value)
    tables = []
    for table, shape in zip(layout.tables, shapes, strict=True):
        counts = np.zeros((n_states, math.prod(shape)), dtype=np.int64)
        for node in table:
            family = tuple(values[name] for name in layout.model.graph.family(node))
            counts[np.arange(n_states), np.ravel_multi_index(family, shape)] += 1
        tables.append(counts)
    return np.hstack(tables)


def _law(layout: Layout, shapes: list[tuple[int, ...]], margins: _Counts) -> tuple[_Reals, _Counts]:
    """Law of every group, ln Π_n B_n(α + S) / B_n(α), and its d(S)."""
    ln_law = np.zeros(len(margins))
    n_parameters = np.zeros(len(margins), dtype=np.int64)
    start = 0
    for table, shape in zip(layout.tables, shapes, strict=True):
        alpha, end = layout.alpha(table[0]), start + math.prod(shape)
        families = margins[:, start:end].reshape(len(margins), shape[0], -1)
        parents = families.sum(axis=1)
        ln_law += _ln_rising(alpha, families).sum(axis=(1, 2))
        ln_law -= _ln_rising(alpha * shape[0], parents).sum(axis=1)
        n_parameters += (families > 0).sum(axis=(1, 2)) - (parents > 0).sum(axis=1)
        start = end
    return ln_law, n_parameters


def _ln_rising(alpha: float, counts: _Counts) -> _Reals:
    values: _Reals = gammaln(alpha + counts) - gammaln(alpha)
    return values
