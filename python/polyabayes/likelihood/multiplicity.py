"""p-values adjusted for multiple comparisons of models."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

# Draws of the largest statistic: the error of a p-value of 0.05 is then 0.002.
_N_DRAWS = 10_000


def p_as_good(statistics: Floats, values: Floats, lengths: Floats) -> Floats:
    """Adjusted p-values of "no other model is better", one per model.

    If all models are equal, their differences per token are jointly normal, with the covariance of
    the documents' contributions. The maximum statistic of all pairs is simulated from this
    distribution. A model's p-value is the probability that the maximum exceeds the largest
    statistic by which another model is ahead (single-step maxT, Westfall and Young 1993). It is
    valid under any other hypothesis, too, since then fewer pairs are equal. `statistics` are
    differences of model i to model j over their standard errors, on the normal scale; `values` are
    ln p of each document.
    """
    n_models = len(values)
    observed = statistics.max(axis=0)
    means = values.sum(axis=1) / max(lengths.sum(), 1.0)
    contributions = values - means[:, np.newaxis] * lengths
    covariance = contributions @ contributions.T
    variances = np.diagonal(covariance)
    spread = np.sqrt(variances[:, np.newaxis] + variances - 2 * covariance)
    # Equal models differ only by rounding.
    scale = np.where(spread > 1e-7 * np.sqrt(variances.max(initial=0.0)), spread, np.inf)
    root = np.linalg.eigh(covariance)
    factor = root.eigenvectors * np.sqrt(np.maximum(root.eigenvalues, 0.0))
    draws = np.random.default_rng(0).standard_normal((_N_DRAWS, n_models)) @ factor.T
    largest = np.zeros(_N_DRAWS)
    for model in range(n_models):
        ahead = (draws - draws[:, [model]]) / scale[model]
        largest = np.maximum(largest, ahead.max(axis=1))
    p_values = (largest >= observed[:, np.newaxis]).mean(axis=1)
    # Certain statistics need no draws; without an error there is no probability.
    p_values[observed == np.inf] = 0.0
    return np.where(np.isnan(observed), np.nan, p_values)
