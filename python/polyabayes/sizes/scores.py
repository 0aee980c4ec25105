"""Scores of sizes for a choice and a search, their intervals, and what tells computations apart."""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from scipy import special

from polyabayes._support.arrays import Floats, Integers
from polyabayes._support.storage.state_folder import fingerprint_of
from polyabayes.allocation import AllocationModel
from polyabayes.data.tensors.tensor import CountTensor
from polyabayes.exceptions import ScoreError

Sizes: TypeAlias = tuple[int, ...]

_OF_THE_MODEL = ("sizes", "rate", "tied")
# Options that do not change values, or that are separate entries of an identity.
_OF_THE_RUN = ("n_jobs", "executor", "progress", "observed", "random_state")
# Tolerance for rounding: relative in a sum of very many logs, absolute in logs of prior masses.
ROUNDING = 1e-12


class Score(NamedTuple):
    """A score ln p(y | sizes) in nats, with its error.

    The value -inf is valid; the error is 0 if the score is exact; degrees of freedom are of
    Student's t, infinite for the normal distribution.
    """

    value: float
    std_error: float = 0.0
    degrees_of_freedom: float = math.inf


@dataclass(frozen=True)
class Record:
    """A configuration that was tried, with its score or the reason of its failure."""

    sizes: Sizes
    score: Score | None
    seconds: float
    failure: str | None = None


class Intervals(NamedTuple):
    """Bounds of the log scores of records; NaN for failed records."""

    lower: Floats
    upper: Floats

    @classmethod
    def of(cls, records: Sequence[Record], level: float) -> Intervals:
        """Simultaneous intervals for all records, for any number of them.

        The interval of the i-th score with an error may fail with probability alpha 6 / (pi i)^2;
        these sum to alpha = 1 - level, so that the search may stop at any time.
        """
        bounds = np.full((len(records), 2), np.nan)
        n_noisy = 0
        for ix, record in enumerate(records):
            if record.score is not None:
                n_noisy += record.score.std_error > 0
                share = 6.0 / (math.pi * max(n_noisy, 1)) ** 2
                bounds[ix] = interval(record.score, (1.0 - level) * share)
        return cls(bounds[:, 0], bounds[:, 1])


def interval(score: Score, alpha: float) -> tuple[float, float]:
    """Two-sided interval that fails with probability `alpha`, widened for rounding."""
    value, std_error, degrees = score
    if std_error == 0:
        half_width = 0.0
    else:
        normal = math.isinf(degrees)
        quantile = special.ndtri(alpha / 2) if normal else special.stdtrit(degrees, alpha / 2)
        half_width = -float(quantile) * std_error
    if math.isinf(half_width):
        return -math.inf, math.inf
    if math.isinf(value):
        # An inexact estimate of p = 0 has no upper bound.
        return -math.inf, math.inf if half_width else -math.inf
    half_width += ROUNDING * (1.0 + abs(value))
    return value - half_width, value + half_width


def checked_score(result: Any, sizes: Sizes) -> Score:
    """The score that a function returned: a number, or a number and its error."""
    parts = result if isinstance(result, tuple) and 1 <= len(result) <= 3 else (result,)
    for name, part in zip(Score._fields, parts, strict=False):
        if isinstance(part, bool) or not isinstance(part, numbers.Real):
            raise ScoreError(
                f"the score of {named(sizes)} must be a number, or (value, std_error) or (value, "
                f"std_error, degrees_of_freedom); its {name} is {part!r}"
            )
    value, std_error, degrees = Score(*map(float, parts))
    if math.isnan(value) or value == math.inf:
        raise ScoreError(f"the log score of {named(sizes)} is {value}: it must be a number or -inf")
    if not std_error >= 0:
        raise ScoreError(f"the standard error of the score of {named(sizes)} is {std_error}")
    if not degrees > 0:
        raise ScoreError(f"the degrees of freedom of the score of {named(sizes)} are {degrees}")
    return Score(value, std_error, degrees)


def plain(sizes: Sizes) -> int | Sizes:
    """Sizes for users: one size as a number, several as a tuple."""
    return sizes[0] if len(sizes) == 1 else sizes


def named(sizes: Sizes) -> str:
    """Name of a configuration in messages."""
    return f"size {sizes[0]}" if len(sizes) == 1 else f"sizes {sizes}"


def identity_of(
    model: AllocationModel,
    tensor: CountTensor,
    options: Mapping[str, Any],
    missing: Integers | None = None,
) -> dict[str, Any]:
    """Model without its concentration, data, and options of ``log_evidence``.

    `missing` are coordinates of missing cells.
    """
    arrays = [tensor.coordinates, tensor.counts, *([] if missing is None else [missing])]
    return {
        "graph": model.graph.to_text(),
        "prior of the tables": repr(model.prior),
        **{name: repr(getattr(model, name)) for name in _OF_THE_MODEL},
        "data": fingerprint_of((tensor.axes, tensor.shape), *arrays),
        "options": {name: repr(v) for name, v in options.items() if name not in _OF_THE_RUN},
    }
