"""Tasks of groups of shards, here or on the workers of an executor, and their sums."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor
from contextlib import contextmanager, suppress
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polyabayes import _core
from polyabayes._support.files import replacing
from polyabayes.exceptions import BudgetExceededError, argument
from polyabayes.scale import exposures as exposure_files
from polyabayes.scale import shard_sweeps
from polyabayes.scale.executors import Workers, n_workers, sharing
from polyabayes.scale.exposures import Exposures, Tokens
from polyabayes.scale.shard_sweeps import Counts, ShardTraining, SweepOrder
from polyabayes.scale.shards import Shards, even_cuts

__all__ = ["ShardTasks", "of_chain", "of_start"]

# Tasks of a sweep for each worker, and in all where it is not known how many there are.
_TASKS_PER_WORKER = 2
_UNKNOWN_TASKS = 32

# Tokens that a count holds.
MOST_COUNTED = 2**32 - 1


class ShardTasks:
    """The shards in groups of about as many tokens, and where tasks of these run.

    Parameters
    ----------
    shards : Shards
        The corpus.
    training : ShardTraining
        What all tasks need.
    executor : Executor or None
        Where they run; None for this process.
    """

    def __init__(self, shards: Shards, training: ShardTraining, executor: Executor | None) -> None:
        self._shards, self._executor = shards, executor
        self.training = training
        self._groups = _groups(shards, executor)
        self._workers: Workers | None = None

    def __len__(self) -> int:
        return len(self._groups)

    @contextmanager
    def sent(self) -> Iterator[None]:
        """Give the workers what all tasks need."""
        if self._executor is None:
            yield
            return
        with sharing(self._executor, self.training) as workers:
            self._workers = workers
            try:
                yield
            finally:
                self._workers = None

    def inspect(self, exposures: Exposures | None, *, lengths: bool) -> NDArray[np.uint32]:
        """Look at all files before the first sweep; lengths of all documents, if asked for."""
        if exposures is not None and self.training.exposures is not None:
            exposure_files.write_exposures(self.training.exposures, exposures)
        with self.sent():
            found = dict(self._numbered(shard_sweeps.inspect_shards, lengths))
        inspected = [found[number] for number in range(len(self._groups))]
        stamps = tuple(stamp for group in inspected for stamp, _ in group)
        self.training = self.training._replace(stamps=stamps)
        of_shards = [of_shard for group in inspected for _, of_shard in group]
        return np.concatenate(of_shards) if lengths else np.zeros(0, np.uint32)

    def run(self, function: Callable[..., Any], *arguments: Any) -> Iterator[Any]:
        """Results of ``function(training, shards, *arguments)``, in the order of their ends."""
        return (result for _, result in self._numbered(function, *arguments))

    def each(
        self,
        function: Callable[..., Any],
        tasks: Iterable[tuple[Any, ...]],
        describe: Callable[[int], str],
    ) -> Iterator[tuple[int, Any]]:
        """Numbers of tasks, and results of ``function(training, *task)``."""
        if self._workers is None:
            return enumerate(function(self.training, *task) for task in tasks)
        return self._workers.run(function, tasks, describe)

    def swept(
        self,
        states: tuple[str, str],
        run: int | None,
        sweep: int,
        source: _core.ShardedChain | _core.ShardedStart,
        urns: tuple[Any, Any, Any],
        *,
        blocked: bool,
        tables: bool,
    ) -> tuple[Counts, NDArray[np.uint64]]:
        """Draw the topics of all tokens: their counts, and the tables of each topic."""
        scale, a, rates = urns
        n_tables = np.zeros(len(a), np.uint64)
        with self.published("weights", states[1], source) as published:
            order = SweepOrder(*states, run, sweep, published, scale, a, rates, blocked, tables)

            def tallied() -> Iterator[Counts]:
                for counts, of_group in self.run(shard_sweeps.sweep_shards, order):
                    np.add(n_tables, of_group, out=n_tables)
                    yield counts

            return self._total(tallied()), n_tables

    def first_topics(self, state: str, topics: _core.FirstTopics, n_topics: int) -> Counts:
        """Draw uniform topics, one token after the other."""
        for shard in self._shards:
            shard_sweeps.draw_first_topics(self.training, shard, state, topics)
        return self.counted(state, n_topics)

    def counted(self, state: str, n_topics: int) -> Counts:
        """Tokens of every word in each topic."""
        return self._total(self.run(shard_sweeps.count_topics, state, n_topics))

    def renumber(self, before: str, after: str, numbers: NDArray[np.uint16]) -> None:
        """Give topics these numbers."""
        for _ in self.run(shard_sweeps.renumber_topics, before, after, numbers):
            pass

    def ln_urns(self, state: str, a: NDArray[np.float64]) -> tuple[int, int]:
        """Exact sums of ln of the urns of documents, and of rising factorials of their lengths."""
        found = list(self.run(shard_sweeps.ln_urns, state, a))
        return sum(urns for urns, _ in found), sum(lengths for _, lengths in found)

    @contextmanager
    def exposed(self, state: str, n_topics: int, *, needed: bool) -> Iterator[list[Tokens]]:
        """Tokens of every topic by exposure, where documents have exposures and it is `needed`."""
        if self.training.exposures is None or not needed:
            yield []
            return
        for _ in self.run(shard_sweeps.tally_exposures, state, n_topics):
            pass
        paths = [shard_sweeps.exposed_path(self.training, shard, state) for shard in self._shards]
        tokens = [part for path in paths for part in exposure_files.read_tokens(path)]
        try:
            yield tokens
        finally:
            # Not every system removes files that are mapped.
            tokens.clear()
            for path in paths:
                path.unlink(missing_ok=True)

    @contextmanager
    def published(
        self, name: str, state: str, source: shard_sweeps.Source
    ) -> Iterator[shard_sweeps.Published]:
        """Topics for all tasks: where they are in this process, as a file for workers."""
        if self._workers is None:
            yield source
            return
        path = self.training.folder / f"{name}.{self.training.name}.{state}.npy"
        with replacing(path) as stream:
            array = source if isinstance(source, np.ndarray) else source.weights()
            np.save(stream, array, allow_pickle=False)
            del array
        try:
            yield path
        finally:
            # A worker that was broken off may still have it mapped, which not every system allows.
            with suppress(OSError):
                path.unlink()

    def _numbered(self, function: Callable[..., Any], *arguments: Any) -> Iterator[tuple[int, Any]]:
        tasks = ((group, *arguments) for group in self._groups)
        return self.each(function, tasks, self._describe)

    def _describe(self, number: int) -> str:
        group = self._groups[number]
        return f"shards {group[0]:,} to {group[-1]:,}"

    def _total(self, parts: Iterator[Counts]) -> Counts:
        """The sum of counts, which itself tells whether one of them has overflown."""
        # Arrays that have travelled may be unaligned, or not for writing.
        totals: Counts = np.require(next(parts), np.uint32, ["C", "A", "W"])
        for counts in parts:
            totals += counts
        if int(totals.sum(dtype=np.uint64)) != self._shards.n_tokens:
            raise BudgetExceededError(
                f"a word has more than {MOST_COUNTED:,} tokens in one topic: leave the most "
                f"frequent words out, or take a larger {argument('n_components')}"
            )
        return totals


def _groups(shards: Shards, executor: Executor | None) -> list[tuple[int, ...]]:
    """Consecutive shards of about as many tokens, a group for each task."""
    n_groups = 1
    if executor is not None:
        workers = n_workers(executor)
        n_groups = _UNKNOWN_TASKS if workers is None else _TASKS_PER_WORKER * workers
    cuts = even_cuts(np.array([shard.n_tokens for shard in shards]), n_groups)
    return [tuple(range(*pair)) for pair in pairwise(cuts)]


def of_chain(n_sweeps: int) -> str:
    """State of a chain after so many sweeps."""
    return f"sweep-{n_sweeps}"


def of_start(run: int, sweep: int | None = None) -> str:
    """State of a start: after a sweep, or at its end, where topics are merged."""
    return f"start-{run}" if sweep is None else f"start-{run}-{sweep}"
