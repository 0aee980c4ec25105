"""Logs of tail masses, accurate near 0 and near 1."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

Vector = NDArray[np.float64]

# Below this, the incomplete gamma and beta functions lose digits and then underflow.
_UNDERFLOW = 1e-280
_EPSILON = float(np.finfo(np.float64).eps)


def log_poisson_tail(counts: NDArray[np.int64], mean: float) -> Vector:
    """Ln P(N > counts) for a Poisson distribution, counts from 0 on.

    P(N > n) = P(n + 1, mean), the regularised incomplete gamma function.
    """

    def far(n: int) -> float:
        first = (n + 1) * math.log(mean) - mean - math.lgamma(n + 2)
        return first + _log_series(lambda j: mean / (n + 2 + j), 0.0)

    return _log_tail(
        counts, special.gammainc(counts + 1.0, mean), special.gammaincc(counts + 1.0, mean), far
    )


def log_negative_binomial_tail(counts: NDArray[np.int64], mean: float, shape: float) -> Vector:
    """Ln P(N > counts) for a negative binomial distribution, counts from 0 on.

    P(N > n) = I_q(n + 1, shape), q = mean / (mean + shape), the incomplete beta function.
    """
    q, p = mean / (mean + shape), shape / (mean + shape)

    def far(n: int) -> float:
        ln_choices = -math.log(n + 1 + shape) - float(special.betaln(n + 2.0, shape))
        ln_p, ln_q = -math.log1p(mean / shape), -math.log1p(shape / mean)
        first = ln_choices + shape * ln_p + (n + 1) * ln_q
        return first + _log_series(lambda j: q * (n + 1 + j + shape) / (n + 2 + j), q)

    return _log_tail(
        counts,
        special.betainc(counts + 1.0, shape, q),
        special.betainc(shape, counts + 1.0, p),
        far,
    )


def _log_tail(
    counts: NDArray[np.int64], tail: Any, body: Any, far: Callable[[int], float]
) -> Vector:
    """The log of the tail, from the most accurate of tail, body and series."""
    tail, body = np.asarray(tail, np.float64), np.asarray(body, np.float64)
    log_tail: Vector = np.where(
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
