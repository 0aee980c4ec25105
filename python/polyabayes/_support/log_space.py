"""Sums of numbers given by their logs."""

import math

import numpy as np

from polyabayes._support.arrays import Floats


def log_sum(logs: Floats) -> float:
    """Ln of a sum of exponentials; ``-inf`` for none."""
    highest = float(logs.max(initial=-np.inf))
    if not np.isfinite(highest):
        return highest
    return highest + math.log(float(np.exp(logs - highest).sum()))


def log_difference(more: float, less: float) -> float:
    """Ln(e^more - e^less); ``-inf`` if that is not positive."""
    if not less < more:
        return -math.inf
    if math.isinf(more):
        return more
    return more + math.log(-math.expm1(less - more))


def log_cumulative_sum(logs: Floats) -> Floats:
    """Ln of the sums of the first 0, 1, ..., n exponentials; shape (n + 1,)."""
    return np.asarray(np.logaddexp.accumulate(np.append(-np.inf, logs)))
