"""Training in parts, with checkpoints, traces and callbacks in between."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import fields
from functools import partial
from sqlite3 import SQLITE_BUSY, OperationalError, connect
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from polyabayes import _core
from polyabayes._support import checks
from polyabayes._support.arrays import Floats
from polyabayes._support.output.progress import progress_bar
from polyabayes._support.storage.state_folder import StateFolder, fingerprint_of
from polyabayes.data.corpus import Corpus
from polyabayes.exceptions import Interrupted, InvalidArgumentError, argument
from polyabayes.models.traces import TrainingTrace
from polyabayes.scale.run_state import RunState, read_state, write_state
from polyabayes.scale.shard_tokens import ShardTokens, state_folder
from polyabayes.scale.shards import Shards

_LOG = logging.getLogger(__name__)

_CHECKPOINT = "checkpoint.safetensors"
# Seconds per unit of a checkpoint period.
_UNITS = {"s": 1, "min": 60, "h": 3600}

# Sweeps with extra topics, which are then merged: all topics were found in 20 of 20 starts on
# simulated documents.
START_SWEEPS = 20


class Schedule(NamedTuple):
    """Number of sweeps and which to keep, for the compiled core."""

    max_iter: int
    burn_in: int
    warm_up: int
    thin: int
    start_sweeps: int
    n_init: int
    seed: int
    n_jobs: int


class StartLength(NamedTuple):
    """Length of a start with extra topics: most sweeps, and largest share of the burn-in."""

    most: int
    share: float

    def n_sweeps(self, burn_in: int) -> int:
        """Number of sweeps of the start."""
        return min(self.most, int(self.share * burn_in))


# Either start adds at most a third to the time of training with the default burn-in.
USUAL_START = StartLength(START_SWEEPS, 0.4)
# Chains that learn their priors stay in the mode of their start; fixed priors gain nothing.
LEARNED_START = StartLength(40, 0.4)
# On corpora of 50 topics, training with 50 merges two to seven of them after the usual start, and
# none to two after this one; training with 54 after this one keeps all 50 apart.
LONG_START = StartLength(60, 0.6)


class Checkpoint:
    """The state of a run in a folder, written completely or not at all.

    A run resumes only from a state with the same identity, whose names appear in messages.
    """

    def __init__(self, folder: Any, identity: dict[str, Any], period: CheckpointPeriod) -> None:
        self._folder, self._identity = StateFolder(folder, "training"), identity
        self.period = period
        self._path = self._folder.make(_CHECKPOINT)

    def read(self) -> RunState | None:
        """Read the state, if any; refuse the state of another run and name the difference."""
        return read_state(self._path, self._identity)

    def write(self, training: _core.Training) -> None:
        """Replace the state; if it cannot be written, warn once and keep the last one."""
        n_sweeps, kept = training.n_sweeps, training.kept()
        position, topics = ("sweep", 0, n_sweeps), training.assignments()
        coefficients = training.kept_coefficients()
        state = RunState(position, None, training.state_parameters(), *kept, topics, coefficients)
        self._folder.put(
            partial(write_state, self._path, self._identity, state),
            f"the state after {n_sweeps:,} sweeps",
        )
        _LOG.debug("checkpoint of sweep %s in %s", n_sweeps, self._path)


class CheckpointPeriod:
    """Period of checkpoints: a number of sweeps, or a time as ``"10min"``."""

    def __init__(self, every: Any) -> None:
        self._n_sweeps, self._seconds = 1, 0.0
        if isinstance(every, str):
            self._seconds = _seconds_of(every)
        else:
            self._n_sweeps = checks.whole_number("checkpoint_every", every)
        self._written = time.monotonic()

    def until(self, n_iter: int, pace: float) -> int:
        """Sweep at which to check again, if a sweep takes `pace` seconds."""
        if not self._seconds:
            return (n_iter // self._n_sweeps + 1) * self._n_sweeps
        left = self._written + self._seconds - time.monotonic()
        # Timings of few sweeps are unreliable: the number of sweeps at most doubles.
        return n_iter + max(1, min(n_iter, int(left / pace) if pace else 1))

    def is_due(self, n_iter: int) -> bool:
        """Whether to write the state now; True restarts the period."""
        if not self._seconds:
            return n_iter % self._n_sweeps == 0
        now = time.monotonic()
        if now < self._written + self._seconds:
            return False
        self._written = now
        return True


def _seconds_of(text: str) -> float:
    found = re.fullmatch(r"(\d+(?:\.\d+)?) ?(s|min|h)", text)
    if found is None or not float(found[1]):
        raise InvalidArgumentError(
            f"{argument('checkpoint_every')} must be a number of sweeps, or a time as '30s', "
            f"'10min' or '2h', got {text!r:.100}"
        )
    return float(found[1]) * _UNITS[found[2]]


@contextmanager
def source_of(
    documents: Corpus | Shards,
    folder: Any,
    identity: dict[str, Any],
    period: CheckpointPeriod,
    schedule: Schedule,
    executor: Executor | None,
) -> Iterator[tuple[Any, RunState | None, Checkpoint | None]]:
    """Documents for the core, and the state of an earlier run of the same identity in the folder.

    The checkpoint is for documents in memory; shards write their own.
    """
    with _alone(folder):
        if isinstance(documents, Corpus):
            checkpoint = None if folder is None else Checkpoint(folder, identity, period)
            state = _checked(checkpoint.read() if checkpoint else None, schedule)
            yield documents._core_documents(), state, checkpoint
            return
        sizes: dict[str, Any] = {"seed": schedule.seed, "n_jobs": schedule.n_jobs}
        with state_folder(documents, folder) as place:
            tokens = ShardTokens(documents, place, identity, **sizes, executor=executor)
            with tokens.ready() as state:
                yield tokens, _checked(state, schedule), None


@contextmanager
def _alone(folder: Any) -> Iterator[None]:
    """Refuse a folder, if any, that another run uses now; a lock ends with its process.

    Where the file system cannot lock files, runs are not kept apart.
    """
    with ExitStack() as stack:
        try:
            if folder is not None:
                path = StateFolder(folder, "training").make("lock")
                stack.enter_context(closing(connect(path, timeout=0))).execute("BEGIN EXCLUSIVE")
        except OperationalError as error:
            if error.sqlite_errorcode == SQLITE_BUSY:
                raise InvalidArgumentError(
                    f"another run uses {folder}: give each run its own {argument('checkpoint')}"
                ) from error
        yield


def _checked(state: RunState | None, schedule: Schedule) -> RunState | None:
    """Return the state; a state beyond the end of the schedule is refused."""
    if state is not None and state.position[0] == "sweep":
        n_sweeps = state.position[2]
        if n_sweeps > schedule.max_iter:
            raise InvalidArgumentError(
                f"the checkpoint has {n_sweeps:,} sweeps, max_iter is {schedule.max_iter:,}"
            )
    return state


def fingerprint(documents: Corpus | Shards) -> str:
    """Hash of the counts, and of the exposures, if any."""
    if isinstance(documents, Shards):
        return documents.fingerprint()
    counts = documents.counts
    parts = [np.asarray(x, np.int64) for x in (counts.indptr, counts.indices, counts.data)]
    exposure = [] if documents.exposure is None else [documents.exposure]
    return fingerprint_of(counts.shape, *parts, *exposure)


class LastState(NamedTuple):
    """Last state of a chain.

    `counts` are tokens of each topic and word, or those of them that open tables of bursty topics;
    `prior` is the Dirichlet parameter of the topics,
    words x topics if it is not constant; `parameters` are in the order of the core, without the
    `concentration` of each topic.
    """

    counts: sparse.csr_array
    prior: float | Floats
    parameters: Floats
    concentration: Floats

    def topic_word_parameters(self) -> Floats:
        """Dirichlet parameters of phi given the topics of all tokens, (n_components, n_words)."""
        return np.asarray(self.counts.toarray() + np.transpose(self.prior))

    def topic_word(self) -> Floats:
        """E[phi | topics of all tokens], shape (n_components, n_words)."""
        topics = self.topic_word_parameters()
        topics /= topics.sum(axis=1, keepdims=True)
        return topics


class EvaluationSchedule:
    """Evaluations during a run: entries of the trace, and the user's callback.

    `evaluate` gives nats per token of the current model and their standard error; `callback` may
    end the run by returning True. A run without both need not stop, since only they need the model.
    """

    def __init__(
        self,
        every: Any,
        evaluate: Callable[[], tuple[float, float]] | None,
        callback: Callable[[], Any] | None,
    ) -> None:
        self.every = checks.whole_number("eval_every", every, 1, 2**31)
        self._evaluate, self._callback = evaluate, callback
        self._rows: list[tuple[float, ...]] = []

    @property
    def stops(self) -> bool:
        """Whether a run must stop at every evaluation."""
        return self._evaluate is not None or self._callback is not None

    def look(self, looks: Iterable[tuple[int, float, float]]) -> bool:
        """Evaluate the model and call the callback; True ends the run.

        `looks` are the sweeps since the last call, with log joint densities and seconds; the model
        is that of the last sweep.
        """
        held_out = (np.nan, np.nan) if self._evaluate is None else self._evaluate()
        self.note(looks, held_out)
        return self._callback is not None and self._callback() is True

    def note(
        self,
        looks: Iterable[tuple[int, float, float]],
        held_out: tuple[float, float] = (np.nan, np.nan),
    ) -> None:
        """Add entries to the trace."""
        self._rows.extend((sweep, ln_joint, *held_out, end) for sweep, ln_joint, end in looks)

    def trace(self) -> TrainingTrace:
        """Columns of the trace."""
        columns = np.array(self._rows, dtype=float).reshape(-1, len(fields(TrainingTrace))).T
        return TrainingTrace(columns[0].astype(np.int64), *columns[1:])


@contextmanager
def all_or_nothing(model: Any) -> Iterator[None]:
    """Restore a model if Ctrl-C comes before training has a result."""
    before = dict(vars(model))
    try:
        yield
    except Interrupted:
        raise
    except KeyboardInterrupt:
        vars(model).clear()
        vars(model).update(before)
        raise KeyboardInterrupt(
            f"stopped before the first sweep: the {type(model).__name__} is as it was before"
        ) from None


def run(
    training: _core.Training,
    schedule: Schedule,
    looks: EvaluationSchedule,
    take: Callable[[], None],
    checkpoint: Checkpoint | None = None,
    *,
    progress: bool,
) -> BaseException | None:
    """Sample to the end of the schedule, or until a callback or an interrupt ends it.

    `take` updates the model to the current state. Returns the exception that ended the run, if any.
    """
    n_iter, first, seconds = training.n_sweeps, training.n_sweeps, 0.0
    _LOG.info("training from sweep %s to %s", n_iter, schedule.max_iter)
    with progress_bar(progress, schedule.max_iter, "sweep") as update:
        try:
            while True:
                start = time.perf_counter()
                until = schedule.max_iter
                if looks.stops:
                    until = min(until, (n_iter // looks.every + 1) * looks.every)
                if checkpoint is not None:
                    pace = seconds / max(n_iter - first, 1)
                    until = min(until, checkpoint.period.until(n_iter, pace))
                advance = update and partial(_advance, update, n_iter)
                seen, interruption = training.run(until, looks.every, advance)
                seen = [(sweep, value, seconds + end) for sweep, value, end in seen]
                seconds += time.perf_counter() - start
                if interruption is not None:
                    looks.note(seen)
                    raise interruption
                n_iter = training.n_sweeps
                done = n_iter >= schedule.max_iter
                if checkpoint is not None and (done or checkpoint.period.is_due(n_iter)):
                    checkpoint.write(training)
                if seen and looks.stops:
                    take()
                if (seen and looks.look(seen)) or done:
                    _LOG.info("sweep %s: trained in %.1f s", n_iter, seconds)
                    return None
        except BaseException as error:
            # The finished sweeps are the result.
            if training.n_sweeps == 0:
                raise
            return error


def _advance(update: Callable[[int], None], before: int, done: int) -> None:
    update(before + done)
