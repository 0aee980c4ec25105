"""Mixtures of priors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from polyabayes._support import checks
from polyabayes._support.log_space import log_sum
from polyabayes.exceptions import InvalidArgumentError, InvalidTypeError
from polyabayes.sizes.priors.base import SizePrior, Sizes, Vector


class Mixture(SizePrior):
    """Mixture of priors, for example for an uncertain mean of a Poisson prior.

    Under a mixture, several sizes are dependent even if they are independent in each component. A
    Poisson distribution whose mean has a gamma prior is exactly :class:`NegativeBinomial`; for
    other priors of the mean, use a mixture over the nodes of a quadrature.

    Parameters
    ----------
    priors : sequence of SizePrior
        The components, with the same number of sizes and the same smallest sizes.
    weights : array-like of shape (n_priors,), optional
        Weights of the components, which are normalised; default: equal.

    Attributes
    ----------
    priors : tuple of SizePrior
        The components.
    log_weights : ndarray of shape (n_priors,)
        Ln of their probabilities.

    Raises
    ------
    InvalidArgumentError, InvalidTypeError
        If a component is not a prior of sizes, components do not fit, or a weight is not positive.

    Examples
    --------
    >>> prior = pb.priors.Mixture([pb.priors.Geometric(0.5), pb.priors.Geometric(0.25)])
    >>> f"{prior.log_box((1,), (1,)):.6f}"  # ln 3/8
    '-0.980829'
    """

    def __init__(self, priors: Sequence[SizePrior], weights: Any = None) -> None:
        self.priors = tuple(priors)
        for place, prior in enumerate(self.priors):
            if not isinstance(prior, SizePrior):
                raise InvalidTypeError(f"priors: {place} must be a prior of sizes, got {prior!r}")
        if len({prior.first for prior in self.priors}) != 1:
            begin = ", ".join(str(prior.first) for prior in self.priors) or "none"
            raise InvalidArgumentError(
                f"priors must be one or more that begin at the same sizes, got {begin}"
            )
        self.first, self.n_variables = self.priors[0].first, self.priors[0].n_variables
        size = len(self.priors)
        given = 1.0 if weights is None else weights
        shares = checks.positive_vector("weights", given, size)
        self.log_weights = np.log(shares / shares.sum())

    def log_box(self, low: Sizes, high: tuple[float, ...]) -> float:  # noqa: D102
        return log_sum(self.log_weights + [prior.log_box(low, high) for prior in self.priors])

    def log_masses(self, tops: Sizes) -> Vector:  # noqa: D102
        pairs = zip(self.log_weights, self.priors, strict=True)
        parts = [log_weight + prior.log_masses(tops) for log_weight, prior in pairs]
        return np.asarray(np.logaddexp.reduce(parts, axis=0))

    def next_size(self, axis: int, size: int) -> int | None:  # noqa: D102
        following = [prior.next_size(axis, size) for prior in self.priors]
        return min((size for size in following if size is not None), default=None)

    def __repr__(self) -> str:
        weights = np.exp(self.log_weights).tolist()
        return f"Mixture([{', '.join(map(repr, self.priors))}], {weights})"
