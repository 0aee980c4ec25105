"""Stochastic lower and upper bounds of the same quantity."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from polyabayes._support.arrays import Floats, Integers
from polyabayes._support.output.tables import measured
from polyabayes._support.results import Result


@dataclass(frozen=True, repr=False, eq=False)
class BidirectionalBounds(Result):
    """Stochastic bounds of ln p of simulated data, in nats (Grosse, Ghahramani & Adams 2015).

    Attributes
    ----------
    lower, upper : ndarray of shape (n_data,)
        Lower bound: ln of an unbiased estimate of p, low in expectation. Upper bound: minus ln of
        an unbiased estimate of 1/p, high in expectation. One entry per document, or one for a
        tensor.
    lower_std_errors, upper_std_errors : ndarray of shape (n_data,)
        Standard errors of the bounds.
    sizes : ndarray of int, shape (n_data,)
        Particles, chains or temperatures of each replicate.
    data : Corpus, CountTensor or None
        The simulated data; None if they were given or are not kept.

    References
    ----------
    R. Grosse, Z. Ghahramani and R. Adams (2015). Sandwiching the marginal likelihood using
    bidirectional Monte Carlo. arXiv:1511.02543.

    Examples
    --------
    >>> model = pb.AllocationModel.nmf(2)
    >>> bounds = model.bidirectional_bounds({"doc": 3, "word": 2}, 20, random_state=0)
    >>> bool(abs(bounds.gap[0]) < 4 * bounds.gap_std_errors[0])
    True
    """

    lower: Floats
    lower_std_errors: Floats
    upper: Floats
    upper_std_errors: Floats
    sizes: Integers
    data: Any = None

    @property
    def gap(self) -> Floats:
        """Upper minus lower bound of each entry.

        In expectation at least the bias of either bound; negative only by chance.
        """
        return self.upper - self.lower

    @property
    def gap_std_errors(self) -> Floats:
        """Standard error of each gap."""
        return np.hypot(self.lower_std_errors, self.upper_std_errors)

    def _columns(self) -> dict[str, Any]:
        return {
            "lower": self.lower,
            "lower_std_error": self.lower_std_errors,
            "upper": self.upper,
            "upper_std_error": self.upper_std_errors,
            "gap": self.gap,
            "gap_std_error": self.gap_std_errors,
            "size": self.sizes,
        }

    def __repr__(self) -> str:
        lower, upper = self.lower.sum(), self.upper.sum()
        error = float(np.sqrt((self.gap_std_errors**2).sum()))
        of = f" of {self.data!r}".replace("<", "").replace(">", "") if self.data is not None else ""
        return (
            f"<BidirectionalBounds{of}: {lower:z,.2f} to {upper:z,.2f} nats, "
            f"gap {measured(upper - lower, error)}>"
        )
