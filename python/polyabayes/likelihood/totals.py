"""Scores as exact as the total of a corpus needs, and no more: effort where the error is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from polyabayes import _core
from polyabayes._support import checks
from polyabayes.exceptions import InvalidArgumentError, argument
from polyabayes.likelihood.blocks import BlockScores

__all__ = ["CorrectedScores", "checked_target", "score_to_target"]

# Rounds of growing effort; the estimate is that of the last alone.
_MOST_ROUNDS = 4
# A round aims below the target by this factor, and grows by the other at most.
_AIM, _MOST_GROWTH = 0.8, 16
_HALVINGS = 60
_MOST_TEMPERATURES = 5_000
# Variance of ln of the mean of 16 runs and of its correction, over that of ln of one run: as
# measured on news articles under 50 topics, for variances between 2 and 5.
_VARIANCE_OF_MEAN = 0.55

# Share of the correction by which totals were still low on news articles under 50 topics, or less:
# counted as error. The correction is taken for at least a share of the runs' variances, which is
# about its expectation: a round that happened to draw few differences is no surer for it.
_UNREMOVED, _LEAST_CORRECTION = 0.5, 0.1

Score = Callable[[NDArray[np.int64] | None, int], "_core.Scores | BlockScores"]


class CorrectedScores(NamedTuple):
    """Scores with a smaller bias of ln, the error that its correction brings, and the target.

    Attributes
    ----------
    scores : BlockScores
        The values are corrected: each in proportion to the variance of its runs.
    correction_std_error : float
        Standard error of the sum of the corrections, in nats, with what they leave of the bias.
    """

    scores: BlockScores
    correction_std_error: float


def checked_target(
    total_std_error: Any, nats_per_token_std_error: Any, unused: dict[str, bool]
) -> Callable[[int], float] | None:
    """Standard error of a total to reach, given the number of tokens; None where none is asked for.

    Raises
    ------
    InvalidArgumentError, InvalidTypeError
        If it is no positive number, if both are given, or one beside `unused` arguments.
    """
    if total_std_error is None and nats_per_token_std_error is None:
        return None
    name = "total_std_error" if nats_per_token_std_error is None else "nats_per_token_std_error"
    if total_std_error is not None and nats_per_token_std_error is not None:
        raise InvalidArgumentError(
            f"{argument('total_std_error')} and {argument('nats_per_token_std_error')} ask for one "
            "and the same: give one of them"
        )
    for other, is_given in unused.items():
        if is_given:
            raise InvalidArgumentError(
                f"{argument(other)} means nothing beside {argument(name)}, which chooses the "
                "effort of every document: leave one of them out"
            )
    if nats_per_token_std_error is None:
        total = checks.positive_number(name, total_std_error)
        return lambda _: total
    each = checks.positive_number(name, nats_per_token_std_error)
    return lambda n_tokens: each * n_tokens


def score_to_target(
    score: Score, groups: NDArray[np.int64], n_tokens: NDArray[np.int64], target: float
) -> CorrectedScores:
    """Score until the total has this standard error: rounds from fresh streams.

    The first round takes the shortest runs whose bias can be lessened. If that is not enough, the
    next gives document d temperatures proportional to ``m_d s_d / sqrt(n_d)``: m_d copies, s_d the
    standard deviation of its runs, n_d tokens (Neyman's allocation). Whether a round is enough is
    told by the spread of its runs, not by the corrections that it happened to draw: those that
    draw few look exact, and are low.

    Parameters
    ----------
    score : callable
        Gives scores by the sizes of all documents, or by pilots for None, and the round's number.
    groups : ndarray of shape (n_documents,)
        Which of the different documents each one is.
    n_tokens : ndarray of shape (n_documents,)
        Lengths.
    target : float
        In nats.
    """
    sizes: NDArray[np.int64] | None = None
    for number in range(_MOST_ROUNDS):
        found = score(sizes, number)
        scores = BlockScores.of(found)
        allocation = _Allocation(scores, groups, n_tokens)
        is_last = number + 1 == _MOST_ROUNDS or found.interruption is not None
        if is_last or allocation.squared_error(scores.sizes) <= (_AIM * target) ** 2:
            break
        sizes = allocation.sizes(_AIM * target)
    return _corrected(scores, groups, target)


def _corrected(scores: BlockScores, groups: NDArray[np.int64], target: float) -> CorrectedScores:
    """Scores without their bias, and whether their sum has the error asked for."""
    noise = float((np.bincount(groups, weights=scores.corrections) ** 2).sum())
    variances = float(scores.variances.sum())
    share = float(scores.corrections.sum()) / variances if variances else 0.0
    errors = np.where(np.isfinite(scores.values), scores.std_errors, 0.0)
    squared = float((np.bincount(groups, weights=errors) ** 2).sum())
    # A part of the bias is that of modes which no run has met.
    correction = max(abs(float(scores.corrections.sum())), _LEAST_CORRECTION * variances)
    noise += (_UNREMOVED * correction) ** 2
    corrected = scores._replace(
        values=scores.values + share * scores.variances,
        reached=scores.reached & (squared + noise <= target**2),
    )
    return CorrectedScores(corrected, float(np.sqrt(noise)))


class _Allocation:
    """Temperatures of documents and the error that they should lead to."""

    def __init__(
        self, scores: BlockScores, groups: NDArray[np.int64], n_tokens: NDArray[np.int64]
    ) -> None:
        copies = np.bincount(groups)[groups].astype(np.float64)
        hardness = scores.variances * scores.sizes
        # Each of m equal documents has the m-th part of the square of their m errors.
        self._weights = copies * _VARIANCE_OF_MEAN * hardness
        self._hardness = hardness
        self._shape = copies * np.sqrt(hardness / np.maximum(n_tokens, 1))
        self._least = np.maximum(scores.sizes, 1).astype(np.float64)
        self._most = np.minimum(_MOST_GROWTH * self._least, _MOST_TEMPERATURES)

    def squared_error(self, sizes: NDArray[Any]) -> float:
        """Expected squared error of the total."""
        temperatures = np.maximum(sizes, 1)
        left = _UNREMOVED * _LEAST_CORRECTION * float((self._hardness / temperatures).sum())
        return float((self._weights / temperatures).sum()) + left**2

    def sizes(self, target: float) -> NDArray[np.int64]:
        """Sizes at least as large as those before with which the total should reach the target."""

        def at(scale: float) -> NDArray[np.float64]:
            return np.clip(scale * self._shape, self._least, self._most)

        low, high = 0.0, float((self._most / np.maximum(self._shape, 1e-12)).max(initial=1.0))
        for _ in range(_HALVINGS):
            middle = 0.5 * (low + high)
            if self.squared_error(at(middle)) > target**2:
                low = middle
            else:
                high = middle
        return np.ceil(at(high)).astype(np.int64)
