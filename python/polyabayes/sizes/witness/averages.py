"""Bounds of averages over sizes with bounded weights."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from polyabayes._support.log_space import log_cumulative_sum

Vector = NDArray[np.float64]


def share_bounds(lower: Vector, upper: Vector, rest: tuple[float, float]) -> tuple[Vector, Vector]:
    """Bounds of ln of each weight's share.

    `rest` bounds the log of one more weight, without a share in the result. A share is smallest if
    its weight is smallest and all others are largest.
    """
    return (
        _shares(lower, _of_others(np.append(upper, rest[1]))),
        _shares(upper, _of_others(np.append(lower, rest[0]))),
    )


def _of_others(logs: Vector) -> Vector:
    """Ln of the sum of all but one, for each but the last, without subtraction."""
    before = log_cumulative_sum(logs)
    after = log_cumulative_sum(logs[::-1])[::-1]
    return np.asarray(np.logaddexp(before[:-2], after[1:-1]))


def _shares(weights: Vector, others: Vector) -> Vector:
    shares = np.full(weights.shape, -np.inf)
    known = weights > -np.inf
    shares[known] = weights[known] - np.logaddexp(weights[known], others[known])
    return shares


def mean_bounds(
    low_values: Vector, high_values: Vector, low_weights: Vector, high_weights: Vector
) -> tuple[float, float]:
    """Bounds of ln of a weighted mean, all in logs, each array of shape (n,).

    The mean is smallest if weights are largest for values below some threshold and smallest above
    it: every threshold is tried. NaN if no weight can be positive.
    """
    upwards, downwards = np.argsort(low_values), np.argsort(-high_values)
    return (
        min(_threshold_means(low_values, low_weights, high_weights, upwards), default=np.nan),
        max(_threshold_means(high_values, low_weights, high_weights, downwards), default=np.nan),
    )


def _threshold_means(
    values: Vector, low_weights: Vector, high_weights: Vector, order: NDArray[np.int64]
) -> list[float]:
    """Means with the first 0, 1, ..., n values in this order at their high weights."""
    values, low, high = values[order], low_weights[order], high_weights[order]

    def sums(low_terms: Vector, high_terms: Vector) -> Vector:
        rest = log_cumulative_sum(low_terms[::-1])[::-1]
        return np.asarray(np.logaddexp(log_cumulative_sum(high_terms), rest))

    totals = sums(low, high)
    defined = totals > -np.inf
    means = sums(low + values, high + values)[defined] - totals[defined]
    return [float(mean) for mean in means]
