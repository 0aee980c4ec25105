"""Standard distributions of one size."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import special

from polyabayes._support import checks
from polyabayes._support.arrays import Floats, Integers
from polyabayes.exceptions import InvalidArgumentError
from polyabayes.sizes.priors.base import Sizes, UnivariatePrior

# Below this, the incomplete gamma and beta functions lose digits and then underflow.
_UNDERFLOW = 1e-280
_EPSILON = float(np.finfo(np.float64).eps)


class _CountPrior(UnivariatePrior):
    """A distribution of counts from 0 on, shifted by `shift` or conditioned on not being 0."""

    shift: int | None
    truncate: bool
    _offset: int
    _log_norm: float

    def _place(self) -> None:
        if checks.flag("truncate", self.truncate) and self.shift is not None:
            raise InvalidArgumentError("give either shift or truncate=True, not both")
        if not self.truncate:
            shift = 1 if self.shift is None else checks.whole_number("shift", self.shift, 0)
            if shift == 0:
                raise InvalidArgumentError(
                    "shift=0 leaves mass at size 0, and there is no model of size 0: use shift=1, "
                    "or truncate=True for the distribution given that it is not 0"
                )
            object.__setattr__(self, "shift", shift)
        object.__setattr__(self, "_offset", 0 if self.truncate else self.shift)
        object.__setattr__(self, "first", (1 if self.truncate else self._offset,))
        log_norm = float(self._log_count_tail(np.array(0))) if self.truncate else 0.0
        object.__setattr__(self, "_log_norm", log_norm)

    def _log_pmf(self, sizes: Integers) -> Floats:
        return self._log_count_pmf(sizes - self._offset) - self._log_norm

    def _log_survival(self, sizes: Integers) -> Floats:
        return self._log_count_tail(sizes - self._offset) - self._log_norm

    def _log_count_pmf(self, counts: Integers) -> Floats:
        raise NotImplementedError

    def _log_count_tail(self, counts: Integers) -> Floats:
        """Ln P(count > counts), for counts from 0 on."""
        raise NotImplementedError


@dataclass(frozen=True)
class Poisson(_CountPrior):
    """Poisson distribution, shifted to start at 1, or zero-truncated.

    Parameters
    ----------
    mean : float
        Mean of the Poisson distribution before shift or truncation.
    shift : int, optional
        The size is `shift` plus a Poisson count; default 1 unless `truncate`.
    truncate : bool, default=False
        Whether the size is a Poisson count given that it is not 0.

    {raises: bad parameters}

    Examples
    --------
    >>> f"{float(pb.priors.Poisson(10).log_pmf(1)):.1f}"  # 1 plus a count of 0
    '-10.0'
    """

    mean: float
    shift: int | None = field(default=None, kw_only=True)
    truncate: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "mean", checks.positive_number("mean", self.mean))
        self._place()

    def _log_count_pmf(self, counts: Integers) -> Floats:
        return np.asarray(counts * math.log(self.mean) - self.mean - special.gammaln(counts + 1.0))

    def _log_count_tail(self, counts: Integers) -> Floats:
        # P(N > n) = P(n + 1, mean), the regularised incomplete gamma function.
        mean = self.mean

        def far(n: int) -> float:
            first = float(self._log_count_pmf(np.array(n + 1)))
            return first + _log_series(lambda j: mean / (n + 2 + j), 0.0)

        tail, body = special.gammainc(counts + 1.0, mean), special.gammaincc(counts + 1.0, mean)
        return _log_tail(counts, tail, body, far)


@dataclass(frozen=True)
class NegativeBinomial(_CountPrior):
    """Negative binomial distribution, shifted to start at 1, or zero-truncated.

    Parameters
    ----------
    mean : float
        Mean of the distribution before shift or truncation.
    shape : float
        Shape; the variance is ``mean + mean**2 / shape``.
    shift : int, optional
        The size is `shift` plus a count of this distribution; default 1 unless `truncate`.
    truncate : bool, default=False
        Whether the size is a count given that it is not 0.

    {raises: bad parameters}

    Examples
    --------
    >>> f"{float(pb.priors.NegativeBinomial(10, 2).log_pmf(1)):.6f}"  # ln (2/12)^2
    '-3.583519'
    """

    mean: float
    shape: float
    shift: int | None = field(default=None, kw_only=True)
    truncate: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        for name in ("mean", "shape"):
            object.__setattr__(self, name, checks.positive_number(name, getattr(self, name)))
        self._place()

    def _log_count_pmf(self, counts: Integers) -> Floats:
        # special.betaln does not cancel where the difference of two ln Γ would.
        ln_choices = -np.log(counts + self.shape) - special.betaln(counts + 1.0, self.shape)
        ln_success = -math.log1p(self.mean / self.shape)
        ln_failure = -math.log1p(self.shape / self.mean)
        return np.asarray(ln_choices + self.shape * ln_success + counts * ln_failure)

    def _log_count_tail(self, counts: Integers) -> Floats:
        # P(N > n) = I_q(n + 1, shape), q = mean / (mean + shape), the incomplete beta function.
        shape = self.shape
        q, p = self.mean / (self.mean + shape), shape / (self.mean + shape)

        def far(n: int) -> float:
            first = float(self._log_count_pmf(np.array(n + 1)))
            return first + _log_series(lambda j: q * (n + 1 + j + shape) / (n + 2 + j), q)

        tail = special.betainc(counts + 1.0, shape, q)
        return _log_tail(counts, tail, special.betainc(shape, counts + 1.0, p), far)


@dataclass(frozen=True)
class Geometric(UnivariatePrior):
    """P(S = k) = (1 - probability)^(k - 1) probability, k = 1, 2, ...

    Parameters
    ----------
    probability : float
        P(S = 1), strictly between 0 and 1; the mean size is its inverse.

    {raises: bad parameters}

    Examples
    --------
    >>> f"{float(pb.priors.Geometric(0.5).log_pmf(2)):.6f}"  # ln 1/4
    '-1.386294'
    """

    probability: float
    first: Sizes = field(default=(1,), init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "probability", checks.share("probability", self.probability))

    def _log_pmf(self, sizes: Integers) -> Floats:
        return np.asarray((sizes - 1) * math.log1p(-self.probability) + math.log(self.probability))

    def _log_survival(self, sizes: Integers) -> Floats:
        return np.asarray(sizes * math.log1p(-self.probability))


@dataclass(frozen=True)
class Uniform(UnivariatePrior):
    """Equal mass on every size from `low` to `high`, both included.

    Parameters
    ----------
    low, high : int
        The smallest and the largest size.

    {raises: bad parameters}

    Examples
    --------
    >>> f"{float(pb.priors.Uniform(1, 10).log_pmf(3)):.6f}"  # ln 1/10
    '-2.302585'
    """

    low: int
    high: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "low", checks.whole_number("low", self.low))
        object.__setattr__(self, "high", checks.whole_number("high", self.high, self.low))
        object.__setattr__(self, "first", (self.low,))
        object.__setattr__(self, "last", self.high)

    def _log_pmf(self, sizes: Integers) -> Floats:
        return np.full(sizes.shape, -math.log(self.high - self.low + 1))

    def _log_survival(self, sizes: Integers) -> Floats:
        # The maximum avoids ln 0 for the placeholder of sizes outside the range.
        above = np.maximum(self.high - sizes, 1)
        return np.asarray(np.log(above) - math.log(self.high - self.low + 1))


def _log_tail(counts: Integers, tail: Any, body: Any, far: Callable[[int], float]) -> Floats:
    """The log of the tail, from the most accurate of tail, body and series."""
    tail, body = np.asarray(tail, np.float64), np.asarray(body, np.float64)
    log_tail: Floats = np.where(
        tail > 0.5, np.log1p(-np.minimum(body, 0.5)), np.log(np.maximum(tail, _UNDERFLOW))
    )
    for place in np.argwhere(tail < _UNDERFLOW):
        log_tail[tuple(place)] = far(int(counts[tuple(place)]))
    return log_tail


def _log_series(ratio: Callable[[int], float], limit: float) -> float:
    """Ln of 1 + r_0 + r_0 r_1 + ..., where the ratios tend monotonically to `limit` below 1."""
    total = term = 1.0
    for j in range(10**8):
        term *= ratio(j)
        total += term
        bound = max(ratio(j + 1), limit)
        # The remainder is at most a geometric series.
        if bound < 1 and term * bound / (1 - bound) < _EPSILON * total:
            break
    return math.log(total)
