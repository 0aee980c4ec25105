"""All allocations of a small tensor, and their probabilities."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from polyabayes._support import checks
from polyabayes._support.results import Result
from polyabayes.allocation.layout import Layout

_Counts = NDArray[np.int64]
_Reals = NDArray[np.float64]

# Default budget in marginal counts: a few seconds.
_BUDGET = 1e8


@dataclass(frozen=True, eq=False)
class Allocations(Result):
    """All allocations of a count tensor, grouped by probability and d(S).

    Attributes
    ----------
    log_probabilities : ndarray of shape (n_groups,)
        ln π(S | T) of an allocation of each group, in nats (Cemgil et al. 2019, equation 3.11).
    multiplicities : ndarray of shape (n_groups,)
        Allocations in each group.
    n_parameters : ndarray of shape (n_groups,)
        d(S), the number of parameters that an allocation of each group uses
        (:func:`polyabayes.allocation.n_effective_parameters`).

    References
    ----------
    A. T. Cemgil, M. B. Kurutmaz, S. Yıldırım, M. Barsbey and U. Şimşekli (2019). Bayesian
    allocation model. arXiv:1903.04478.

    Examples
    --------
    >>> found = pb.AllocationModel.nmf(2).allocations(counts)
    >>> int(found.multiplicities.sum())
    320
    """

    log_probabilities: _Reals
    multiplicities: _Reals
    n_parameters: _Counts

    def _columns(self) -> dict[str, Any]:
        return {
            "log_probability": self.log_probabilities,
            "multiplicity": self.multiplicities,
            "n_parameters": self.n_parameters,
        }

    @property
    def n_allocations(self) -> float:
        """Number of allocations; exact up to 2^53."""
        return float(self.multiplicities.sum())

    @property
    def log_evidence(self) -> float:
        """Sum over all allocations: ln of the evidence given the total."""
        return float(logsumexp(self.log_probabilities, b=self.multiplicities))

    def histogram(self, bins: int = 50) -> tuple[_Reals, _Reals]:
        """Histogram of ln π(S | T) over all allocations.

        Parameters
        ----------
        bins : int, default=50
            Number of bins.

        Returns
        -------
        heights : ndarray of shape (bins,)
            Number of allocations.
        edges : ndarray of shape (bins + 1,)
            In nats.

        Raises
        ------
        InvalidArgumentError, InvalidTypeError
            If `bins` is not a positive integer.

        Examples
        --------
        >>> heights, edges = pb.AllocationModel.nmf(2).allocations(counts).histogram(10)
        >>> heights.sum(), len(edges)
        (np.float64(320.0), 11)
        """
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
    """Enumerate all allocations of a tensor under a model that is laid out for it."""
    budget = _BUDGET if budget is None else checks.positive_number("budget", budget)
    return Allocations(*layout.core.allocations(budget))
