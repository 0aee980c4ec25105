"""Errors of paired differences per token, for new documents or new groups of documents."""

from typing import NamedTuple

import numpy as np

from polyabayes._support.arrays import Floats, Integers


class Difference(NamedTuple):
    """A difference in nats per token.

    Errors are NaN for a single unit; degrees of freedom are for Student's t.
    """

    mean: float
    std_error: float
    degrees_of_freedom: float


def paired_difference(
    ahead: Floats, n_tokens: Floats, groups: Integers | None = None
) -> Difference:
    """Total difference over total length, with the error of a delete-one jackknife.

    The jackknife leaves out one document, or one group, at a time (Efron & Stein 1981); with
    groups, the error is for new groups. The degrees of freedom are (sum n)^2 / sum n^2 - 1 for
    units of n tokens. Differences are in nats.
    """
    if groups is not None:
        ahead, n_tokens = totals_of(groups, ahead, n_tokens)
    total, n_units = float(n_tokens.sum()), len(ahead)
    if not total:
        return Difference(0.0, 0.0, 1.0)
    mean = float(ahead.sum()) / total
    with np.errstate(divide="ignore", invalid="ignore"):
        left_out = (ahead.sum() - ahead) / (total - n_tokens)
        variance = float(((left_out - left_out.mean()) ** 2).sum()) * (n_units - 1) / n_units
    # Tokens that are all in one unit give no estimate of the spread.
    std_error = float(np.sqrt(variance)) if np.isfinite(variance) and n_units > 1 else np.nan
    freedom = total**2 / float((n_tokens**2).sum()) - 1
    return Difference(mean, std_error, max(freedom, 1.0))


def totals_of(groups: Integers, *rows: Floats) -> list[Floats]:
    """Sums of every row of values over the documents of each group."""
    _, places = np.unique(groups, return_inverse=True)
    return [np.bincount(places, row).astype(np.float64) for row in rows]
