"""Training on shards by a schedule: parts, looks and interruptions as in memory."""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from polyabayes._support.progress import progress_bar
from polyabayes.models.fitting import EvaluationSchedule, Schedule
from polyabayes.models.sharded.chain import ShardedChain
from polyabayes.models.sharded.model import ShardedState

__all__ = ["ShardedResult", "run_sharded"]


class ShardedResult(NamedTuple):
    """What a run has come to, by the names of a result of the compiled core."""

    word_topic: NDArray[np.float64]
    others: list[NDArray[np.float64]]
    ln_joint: float
    state: ShardedState


def run_sharded(
    chain: ShardedChain, schedule: Schedule, looks: EvaluationSchedule, *, progress: bool
) -> tuple[ShardedResult, BaseException | None]:
    """Sample to the end of the schedule, or to where a look or an interruption ends it.

    Returns the last result, and the exception that cut the run short, if any.
    """
    n_iter, seconds = chain.n_sweeps, 0.0
    with progress_bar(progress, schedule.max_iter, "sweep") as update:
        try:
            while True:
                start = time.perf_counter()
                until = min(schedule.max_iter, (n_iter // looks.every + 1) * looks.every)
                while n_iter < until:
                    chain.sweep()
                    n_iter = chain.n_sweeps
                    if update is not None:
                        update(n_iter)
                ln_joint = chain.ln_joint()
                seconds += time.perf_counter() - start
                result = _result(chain, ln_joint)
                if looks.look(result, [(n_iter, ln_joint, seconds)]) or n_iter >= schedule.max_iter:
                    return result, None
        except BaseException as error:
            if chain.n_sweeps == 0:
                raise
            return _result(chain, np.nan), error


def _result(chain: ShardedChain, ln_joint: float) -> ShardedResult:
    phi, others = chain.mean()
    return ShardedResult(phi, others, ln_joint, chain.state)
