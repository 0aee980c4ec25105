"""Base classes of the priors of sizes: masses of boxes; products and mixtures of them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from polyabayes._support import checks
from polyabayes._support.arrays import Floats, Integers
from polyabayes._support.log_space import log_sum
from polyabayes.exceptions import InvalidArgumentError, InvalidTypeError

Sizes: TypeAlias = tuple[int, ...]


class SizePrior:
    """Base class of priors of one or several sizes.

    Attributes
    ----------
    n_variables : int
        Number of sizes.
    first : tuple of int
        The smallest value of each.

    Examples
    --------
    >>> prior = pb.priors.Poisson(10)
    >>> isinstance(prior, pb.priors.SizePrior), prior.n_variables, prior.first
    (True, 1, (1,))
    """

    n_variables: int
    first: Sizes

    def log_box(self, low: Sizes, high: tuple[float, ...]) -> float:
        """Ln P(low <= sizes <= high) in every variable; `high` may be infinite.

        Parameters
        ----------
        low : tuple of int
            Smallest value of each size.
        high : tuple of float
            Largest value of each; may be ``math.inf``.

        Returns
        -------
        float
            In nats.

        Examples
        --------
        >>> f"{pb.priors.Geometric(0.5).log_box((1,), (2,)):.6f}"  # ln 3/4
        '-0.287682'
        """
        raise NotImplementedError

    def next_size(self, axis: int, size: int) -> int | None:
        """The next value after `size` of a variable that may have mass; None after the last.

        Parameters
        ----------
        axis : int
            Index of the variable.
        size : int
            Its value.

        Returns
        -------
        int or None
            The next value.

        Examples
        --------
        >>> pb.priors.Uniform(1, 3).next_size(0, 2), pb.priors.Uniform(1, 3).next_size(0, 3)
        (3, None)
        """
        raise NotImplementedError

    def log_masses(self, tops: Sizes) -> Floats:
        """Ln of the masses of a grid of disjoint boxes that cover all sizes.

        Parameters
        ----------
        tops : tuple of int
            The largest value of each variable with its own row.

        Returns
        -------
        ndarray of shape (tops[0] - first[0] + 2, ...)
            Along each axis, the values from ``first`` to ``tops``, then all larger values together.

        Examples
        --------
        >>> np.exp(pb.priors.Geometric(0.5).log_masses((2,))).tolist()  # 1, 2, and all above
        [0.5, 0.25, 0.25]
        """
        axes = [
            [*((float(size), float(size)) for size in range(low, top + 1)), (top + 1.0, math.inf)]
            for low, top in zip(self.first, tops, strict=True)
        ]
        cells = [
            self.log_box(tuple(int(low) for low, _ in cell), tuple(high for _, high in cell))
            for cell in itertools.product(*axes)
        ]
        return np.array(cells).reshape([len(axis) for axis in axes])


class UnivariatePrior(SizePrior):
    """Base class of priors of one size, from ``first`` to ``last`` (None: unbounded).

    Attributes
    ----------
    first, last : int or None
        Smallest and largest size.

    Examples
    --------
    >>> pb.priors.Uniform(2, 5).last, pb.priors.Poisson(3).last
    (5, None)
    """

    n_variables = 1
    last: int | None = None

    def log_pmf(self, sizes: Any) -> Floats:
        """Ln P(S = size), for an int or an array of ints.

        Parameters
        ----------
        sizes : int or array of int, shape (n,)
            The sizes.

        Returns
        -------
        ndarray of shape (n,)
            In nats; ``-inf`` where there is no mass.

        Examples
        --------
        >>> np.exp(pb.priors.Geometric(0.5).log_pmf([1, 2])).tolist()
        [0.5, 0.25]
        """
        at = _whole(sizes)
        inside = at >= self.first[0]
        if self.last is not None:
            inside &= at <= self.last
        return np.where(inside, self._log_pmf(np.where(inside, at, self.first[0])), -np.inf)

    def log_survival(self, sizes: Any) -> Floats:
        """Ln P(S > size), for an int or an array of ints.

        Parameters
        ----------
        sizes : int or array of int, shape (n,)
            The sizes.

        Returns
        -------
        ndarray of shape (n,)
            In nats; ``-inf`` where there is no mass.

        Examples
        --------
        >>> np.exp(pb.priors.Geometric(0.5).log_survival([1, 2])).tolist()
        [0.5, 0.25]
        """
        at = _whole(sizes)
        low = at < self.first[0]
        high = np.zeros(at.shape, dtype=bool) if self.last is None else at >= self.last
        inside = np.where(low | high, self.first[0], at)
        return np.where(low, 0.0, np.where(high, -np.inf, self._log_survival(inside)))

    def log_box(self, low: Sizes, high: tuple[float, ...]) -> float:  # noqa: D102
        if math.isinf(high[0]):
            return float(self.log_survival(low[0] - 1))
        return log_sum(self.log_pmf(np.arange(low[0], int(high[0]) + 1)))

    def log_masses(self, tops: Sizes) -> Floats:  # noqa: D102
        points = self.log_pmf(np.arange(self.first[0], tops[0] + 1))
        return np.append(points, self.log_survival(tops[0]))

    def next_size(self, axis: int, size: int) -> int | None:  # noqa: ARG002, D102
        following = max(size + 1, self.first[0])
        return following if self.last is None or following <= self.last else None

    def _log_pmf(self, sizes: Integers) -> Floats:
        raise NotImplementedError

    def _log_survival(self, sizes: Integers) -> Floats:
        raise NotImplementedError


class Product(SizePrior):
    """Independent priors of several sizes.

    Parameters
    ----------
    *priors : UnivariatePrior
        One for each size variable.

    {raises: bad parameters}

    Examples
    --------
    >>> pb.priors.Product(pb.priors.Poisson(4), pb.priors.Geometric(0.5)).n_variables
    2
    """

    def __init__(self, *priors: UnivariatePrior) -> None:
        for place, prior in enumerate(priors):
            if not isinstance(prior, UnivariatePrior):
                raise InvalidTypeError(f"prior {place} must be of one size, got {prior!r}")
        if not priors:
            raise InvalidArgumentError("Product needs at least one prior")
        self._priors = priors
        self.n_variables = len(priors)
        self.first = tuple(prior.first[0] for prior in priors)

    def log_box(self, low: Sizes, high: tuple[float, ...]) -> float:  # noqa: D102
        sides = zip(self._priors, low, high, strict=True)
        return math.fsum(prior.log_box((start,), (end,)) for prior, start, end in sides)

    def log_masses(self, tops: Sizes) -> Floats:  # noqa: D102
        axes = [prior.log_masses((top,)) for prior, top in zip(self._priors, tops, strict=True)]
        return np.asarray(sum(np.ix_(*axes)))

    def next_size(self, axis: int, size: int) -> int | None:  # noqa: D102
        return self._priors[axis].next_size(0, size)

    def __repr__(self) -> str:
        return f"Product({', '.join(map(repr, self._priors))})"


def _whole(sizes: Any) -> Integers:
    """Sizes as whole numbers."""
    found = checks.floats("sizes", sizes)
    if not (np.abs(found) < 2.0**62).all():
        raise checks.wrong("sizes", sizes, f"must be whole numbers, got {sizes!r:.100}")
    return found.astype(np.int64)


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

    {raises: bad parameters}

    Examples
    --------
    >>> prior = pb.priors.Mixture([pb.priors.Geometric(0.5), pb.priors.Geometric(0.25)])
    >>> f"{prior.log_box((1,), (1,)):.6f}"  # ln 3/8
    '-0.980829'
    """

    def __init__(self, priors: Sequence[SizePrior], weights: Any = None) -> None:
        self.priors = tuple(checks.entries("priors", priors))
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

    def log_masses(self, tops: Sizes) -> Floats:  # noqa: D102
        pairs = zip(self.log_weights, self.priors, strict=True)
        parts = [log_weight + prior.log_masses(tops) for log_weight, prior in pairs]
        return np.asarray(np.logaddexp.reduce(parts, axis=0))

    def next_size(self, axis: int, size: int) -> int | None:  # noqa: D102
        following = [prior.next_size(axis, size) for prior in self.priors]
        return min((size for size in following if size is not None), default=None)

    def __repr__(self) -> str:
        weights = np.exp(self.log_weights).tolist()
        return f"Mixture([{', '.join(map(repr, self.priors))}], {weights})"
