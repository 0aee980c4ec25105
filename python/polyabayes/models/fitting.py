"""Training in parts: checkpoints, traces and callbacks between them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import fields
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import clone

from polyabayes import _core
from polyabayes._support import checks
from polyabayes._support.progress import progress_bar
from polyabayes._support.state_folder import StateFolder, fingerprint_of, refuse_other
from polyabayes._support.storage import read_arrays, write_arrays
from polyabayes.data.corpus import Corpus
from polyabayes.exceptions import (
    FileFormatError,
    Interrupted,
    InvalidArgumentError,
)
from polyabayes.models.traces import TrainingTrace

_CHECKPOINT = "checkpoint.safetensors"

# Sweeps with more topics than asked for, which are then merged: in 20 of 20 starts on simulated
# documents every topic was found.
START_SWEEPS = 20

# Tokens counted in one go: bounds the memory of counting.
_TOKENS_AT_ONCE = 2**20


class Schedule(NamedTuple):
    """How long to sample and what to keep, as the compiled core reads it."""

    max_iter: int
    burn_in: int
    warm_up: int
    thin: int
    start_sweeps: int
    n_init: int
    seed: int
    n_jobs: int


class StartLength(NamedTuple):
    """How long a run begins with more topics than asked for.

    Attributes
    ----------
    most : int
        Sweeps at most.
    share : float
        Share of the burn-in that they are at most.
    """

    most: int
    share: float

    def n_sweeps(self, burn_in: int) -> int:
        """Sweeps of the start of a run."""
        return min(self.most, int(self.share * burn_in))


# Either start adds at most a third to the time of training with the default burn-in.
USUAL_START = StartLength(START_SWEEPS, 0.4)
# Chains that learn their priors keep to the mode of their start. Fixed priors gain nothing by it.
LEARNED_START = StartLength(40, 0.4)
# On corpora made of 50 topics, training 50 merges two to seven of them after the usual start, and
# none or two after this one; training 54 after this one keeps all 50 apart.
LONG_START = StartLength(60, 0.6)


# Starts of a fit that is compared with fits of other sizes; the best of them goes on.
_STARTS = 2


def comparable(model: Any, size: int, seed: int) -> Any:
    """A clone of so many topics that begins with long starts.

    A fit that merges two topics scores below as many topics well found, so that larger sizes win.
    """
    made = clone(model).set_params(n_components=size, random_state=seed)
    made.set_params(n_init=max(made.n_init, _STARTS))
    made._longer_start = LONG_START
    return made


def comparable_sweeps(model: Any) -> int:
    """Sweeps of a fit by :func:`comparable`, those of its starts included."""
    burn_in = model.max_iter // 2 if model.burn_in is None else model.burn_in
    n_sweeps: int = model.max_iter + max(model.n_init, _STARTS) * LONG_START.n_sweeps(burn_in)
    return n_sweeps


class Checkpoint:
    """The state of a run in a folder, whole or not at all.

    Parameters
    ----------
    folder : path
        Made where it is missing.
    identity : dict
        What a run must agree on to go on from the state, by the names that a message uses.
    """

    def __init__(self, folder: Any, identity: dict[str, Any]) -> None:
        self._folder = StateFolder(folder, "training")
        self._path = self._folder.path / _CHECKPOINT
        self._identity = identity

    def read(self) -> _core.FitState | None:
        """Read the state, if there is one; refuse that of another run and name the difference."""
        if not self._folder.make(_CHECKPOINT).exists():
            return None
        header, arrays = read_arrays(self._path)
        for name, expected in self._identity.items():
            refuse_other(self._path, "run", name, header.get(name), expected)
        try:
            return _core.FitState(
                header["n_sweeps"],
                header["n_kept"],
                arrays["assignments"],
                arrays["parameters"],
                arrays.get("kept_sum"),
            )
        except (LookupError, TypeError, OverflowError) as error:
            raise FileFormatError(f"{self._path} does not hold a whole state: {error!r}") from error

    def write(self, state: _core.FitState) -> None:
        """Replace the state; where it cannot be written, warn once and leave the last one."""
        arrays: dict[str, NDArray[Any]] = {
            "assignments": state.assignments,
            "parameters": state.parameters,
        }
        if state.kept_sum is not None:
            arrays["kept_sum"] = state.kept_sum
        header = {**self._identity, "n_sweeps": state.n_sweeps, "n_kept": state.n_kept}
        self._folder.put(
            partial(write_arrays, self._path, header, arrays),
            f"the state after {state.n_sweeps:,} sweeps",
        )


def fingerprint(corpus: Corpus) -> str:
    """Hash of the counts, and of the exposures where there are any."""
    counts = corpus.counts
    parts = [np.asarray(x, np.int64) for x in (counts.indptr, counts.indices, counts.data)]
    exposure = [] if corpus.exposure is None else [corpus.exposure]
    return fingerprint_of(counts.shape, *parts, *exposure)


class LastState(NamedTuple):
    """Last state of a chain, from which its last sample is made.

    Attributes
    ----------
    counts : csr_array of shape (n_components, n_words)
        Tokens of each topic and word.
    prior : float or ndarray of shape (n_words, n_components)
        Dirichlet parameter of the topics.
    parameters : ndarray
        The sampler's other parameters, as the compiled core orders them.
    """

    counts: sparse.csr_array
    prior: float | NDArray[np.float64]
    parameters: NDArray[np.float64]

    def topic_word_parameters(self) -> NDArray[np.float64]:
        """Dirichlet parameters of phi given the topics of all tokens, (n_components, n_words)."""
        found: NDArray[np.float64] = self.counts.toarray() + np.transpose(self.prior)
        return found

    def topic_word(self) -> NDArray[np.float64]:
        """E[phi | topics of all tokens], shape (n_components, n_words)."""
        topics = self.topic_word_parameters()
        topics /= topics.sum(axis=1, keepdims=True)
        return topics


def topic_word_counts(
    corpus: Corpus, assignments: NDArray[np.uint16], n_topics: int
) -> sparse.csr_array:
    """Count the tokens of each topic and word, shape (n_topics, n_words).

    `assignments` are the topics of all tokens, cell after cell, document after document.
    """
    words, repeats = corpus.counts.indices, corpus.counts.data
    ends = np.cumsum(repeats)
    counts = sparse.csr_array((n_topics, corpus.n_words), dtype=np.int64)
    cell = token = 0
    while cell < len(words):
        stop = max(int(np.searchsorted(ends, token + _TOKENS_AT_ONCE, "right")), cell + 1)
        part = assignments[token : ends[stop - 1]]
        # Sorted places are the order of a sparse matrix; sorting numbers takes less than pairs.
        places = np.repeat(words[cell:stop], repeats[cell:stop]) + part * np.int64(corpus.n_words)
        cells, n = np.unique(places, return_counts=True)
        starts = np.searchsorted(cells, np.arange(n_topics + 1) * corpus.n_words)
        counts = counts + sparse.csr_array((n, cells % corpus.n_words, starts), shape=counts.shape)
        cell, token = stop, int(ends[stop - 1])
    return counts


class EvaluationSchedule:
    """Looks at a run: entries of the trace, and the user's callback.

    `take` makes the model what training would return, `evaluate` gives its nats per token and
    their standard error, `callback` may end the run by returning True. A run without these two
    need not stop for a look.
    """

    def __init__(
        self,
        every: Any,
        take: Callable[[Any], None],
        evaluate: Callable[[], tuple[float, float]] | None,
        callback: Callable[[], Any] | None,
    ) -> None:
        self.every = checks.whole_number("eval_every", every)
        self.take, self._evaluate, self._callback = take, evaluate, callback
        self._rows: list[tuple[float, ...]] = []

    @property
    def stops(self) -> bool:
        """Whether a run must stop for every look."""
        return self._evaluate is not None or self._callback is not None

    def look(self, result: Any, looks: Iterable[tuple[int, float, float]]) -> bool:
        """Look at the result of a run, of the core or on shards; whether it shall end.

        `looks` are sweeps, the last of them the result's, with the log joint densities after them
        and the seconds until then.
        """
        held_out = (np.nan, np.nan)
        if self.stops:
            self.take(result)
        if self._evaluate is not None:
            held_out = self._evaluate()
        self.note(looks, held_out)
        return self._callback is not None and self._callback() is True

    def note(
        self,
        looks: Iterable[tuple[int, float, float]],
        held_out: tuple[float, float] = (np.nan, np.nan),
    ) -> None:
        """Enter looks into the trace."""
        self._rows.extend((sweep, ln_joint, *held_out, end) for sweep, ln_joint, end in looks)

    def trace(self) -> TrainingTrace:
        """Columns of all looks."""
        columns = np.array(self._rows, dtype=float).reshape(-1, len(fields(TrainingTrace))).T
        return TrainingTrace(columns[0].astype(np.int64), *columns[1:])


@contextmanager
def all_or_nothing(model: Any) -> Iterator[None]:
    """Leave a model as it was where Ctrl-C comes before training has anything to keep."""
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
    train: partial[_core.FitResult],
    documents: _core.Documents,
    schedule: Schedule,
    looks: EvaluationSchedule,
    checkpoint: Checkpoint | None,
    checkpoint_every: int,
    *,
    progress: bool,
) -> tuple[_core.FitResult, BaseException | None]:
    """Sample to the end of the schedule, or to where a look or an interruption ends it.

    Returns the last result, and the exception that cut the run short, if any.
    """
    state = None if checkpoint is None else checkpoint.read()
    n_iter = 0 if state is None else state.n_sweeps
    if n_iter > schedule.max_iter:
        raise InvalidArgumentError(
            f"the checkpoint has {n_iter:,} sweeps, max_iter is {schedule.max_iter:,}"
        )
    periods = [looks.every] if looks.stops else []
    if checkpoint is not None:
        periods.append(checkpoint_every)
    result: _core.FitResult | None = None
    seconds = 0.0
    with progress_bar(progress, schedule.max_iter, "sweep") as update:
        try:
            while True:
                start = time.perf_counter()
                result = train(
                    documents,
                    schedule=schedule,
                    until=min([schedule.max_iter, *((n_iter // n + 1) * n for n in periods)]),
                    look_every=looks.every,
                    state=state,
                    progress=update and partial(_advance, update, n_iter),
                )
                seen = [(sweep, value, seconds + end) for sweep, value, end in result.looks]
                seconds += time.perf_counter() - start
                if result.interruption is not None:
                    looks.note(seen)
                    return result, result.interruption
                state, n_iter = result.state, result.state.n_sweeps
                done = n_iter >= schedule.max_iter
                if done and not seen:
                    # The checkpoint was at the end already.
                    seen = [(n_iter, result.ln_joint, seconds)]
                if checkpoint is not None and (done or n_iter % checkpoint_every == 0):
                    checkpoint.write(state)
                if seen and looks.look(result, seen):
                    return result, None
                if done:
                    return result, None
        except BaseException as error:
            # From a callback, or Ctrl-C between two parts: the last whole part is the result.
            if result is None:
                raise
            return result, error


def _advance(update: Callable[[int], None], before: int, done: int) -> None:
    update(before + done)
