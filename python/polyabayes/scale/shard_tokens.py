"""Topics of the tokens of shards, called by the compiled core between sweeps.

Given phi and the pseudo-counts of documents, shards are independent: tasks draw the topics of their
shards' tokens and return counts of words by topic, integers whose sums are exact in any order. The
core draws everything else. The state is written after every sweep, before the next begins, so that
no shard is more than one sweep ahead of it.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor
from contextlib import ExitStack, contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polyabayes import _core
from polyabayes._support.arrays import Floats
from polyabayes._support.files import remove_unfinished, replacing
from polyabayes._support.storage.arrays import read_arrays, write_arrays
from polyabayes._support.storage.state_folder import StateFolder
from polyabayes.exceptions import BudgetExceededError, FileAccessError, FileFormatError, argument
from polyabayes.scale import shard_sweeps
from polyabayes.scale.executors import Workers, n_workers, sharing
from polyabayes.scale.run_state import Position, RunState, read_state, write_state
from polyabayes.scale.scratch import scratch_folder
from polyabayes.scale.shard_sweeps import Counts, ShardTraining, SweepOrder, position_name
from polyabayes.scale.shards import Shards, even_cuts
from polyabayes.scale.token_order import numbered

_STATE = "shards.safetensors"

# Tasks of a sweep per worker, and workers if their number is unknown.
_PER_WORKER = 2
_UNKNOWN_WORKERS = 16

# Largest value of a count.
_MOST_COUNTED = 2**32 - 1


class ShardTokens:
    """Runs sweeps over groups of shards with about equally many tokens, and keeps the state.

    The folder is on storage that all workers share. A run resumes only from a state with the same
    identity. Without an executor, tasks run in this process. `lengths` are set by :meth:`ready`.
    The core sets `stopped`, which says whether to abandon tasks that run elsewhere.
    """

    lengths: NDArray[np.uint32]
    _workers: Workers
    stopped: Callable[[], bool] | None = None

    def __init__(
        self,
        shards: Shards,
        folder: Path,
        identity: dict[str, Any],
        *,
        seed: int,
        n_jobs: int,
        executor: Executor | None,
    ) -> None:
        if shards.longest > _MOST_COUNTED:
            raise BudgetExceededError(
                f"a document has {shards.longest:,} tokens, which is too long: split it"
            )
        # A run under another order of tokens does not go on.
        identity = {**identity, "order of a word's tokens": "most in a document first"}
        text = json.dumps(identity, sort_keys=True, default=str)
        name = hashlib.sha256(text.encode()).hexdigest()[:12]
        self._shards, self._executor, self._identity = shards, executor, identity
        self._path = StateFolder(folder, "training").make(_STATE)
        folder = folder.resolve()
        remove_unfinished(folder, f"*.{name}.*")
        exposures = self.exposure_groups = numbered(shards.exposure)
        n_cells = sum(shard.n_cells for shard in shards.shards)
        sizes = shards.longest, shards.n_tokens, n_cells
        self._training = ShardTraining(shards.shards, folder, name, sizes, seed, n_jobs, exposures)
        self._groups = _groups(shards, executor)
        self._n_kept = 0

    @contextmanager
    def ready(self) -> Iterator[RunState | None]:
        """Check all files, send the workers the data of tasks, and return the state, if any."""
        with self._sent():
            inspected = dict(self._numbered(shard_sweeps.inspect_shards))
        found = [of_shard for number in sorted(inspected) for of_shard in inspected[number]]
        self._training = self._training._replace(stamps=tuple(stamps for stamps, _ in found))
        self.lengths = np.concatenate([lengths for _, lengths in found])
        state = read_state(self._path, self._identity)
        if state is not None and state.n_kept:
            kept = read_arrays(self._kept_path(state.n_kept))[1].get("kept_sum")
            if kept is None:
                raise FileFormatError(f"{self._kept_path(state.n_kept)} is incomplete: delete it")
            state, self._n_kept = state._replace(kept_sum=kept), state.n_kept
        with self._sent():
            yield state

    def draw_first(self, at: Position, topics: _core.FirstTopics) -> None:
        """Draw uniform topics, token by token."""
        for shard in self._shards:
            shard_sweeps.draw_first_topics(self._training, shard, at, topics)

    def count(self, at: Position, n_topics: int) -> Counts:
        """Tokens of every word in each topic."""
        return self._total(self._run(shard_sweeps.count_topics, at, n_topics))

    def sweep(
        self, to: Position, urns: tuple[Any, Any, Any, Any], tables: bool
    ) -> tuple[Counts, NDArray[np.uint64]]:
        """Draw the topics of all tokens; return their counts, and the tables of each topic."""
        n_tables = np.zeros(len(urns[1]), np.uint64)
        with self._published(to, urns[0]) as published:
            order = SweepOrder(to, (published, *urns[1:]), tables)

            def tallied() -> Iterator[Counts]:
                for counts, of_group in self._run(shard_sweeps.sweep_shards, order):
                    np.add(n_tables, of_group, out=n_tables)
                    yield counts

            return self._total(tallied()), n_tables

    def renumber(self, at: Position, to: Position, numbers: NDArray[np.uint16]) -> None:
        """Renumber the topics."""
        for _ in self._run(shard_sweeps.renumber_topics, at, to, numbers):
            pass

    def ln_urns(self, at: Position, a: Floats) -> int:
        """Exact sum of ln of the urns of documents."""
        return sum(self._run(shard_sweeps.ln_urns, at, a))

    def exposed(self, at: Position, n_topics: int) -> list[shard_sweeps.Tokens]:
        """Tokens of every topic by exposure."""
        if self._training.exposures is None:
            return []
        found = self._run(shard_sweeps.tally_exposures, at, n_topics)
        # Unpickled arrays may be unaligned.
        tokens = (part for of_group in found for part in of_group)
        return [tuple(np.require(array, None, ["C", "A"]) for array in part) for part in tokens]

    def commit(
        self,
        at: Position,
        best: tuple[int, float] | None,
        parameters: Floats,
        kept: tuple[int, Floats | None],
    ) -> None:
        """Write the state, and remove files of shards at other positions."""
        n_kept, kept_sum = kept
        if kept_sum is not None:
            # Written next to the sum over fewer sweeps, which belongs to the current state.
            write_arrays(self._kept_path(n_kept), {}, {"kept_sum": kept_sum})
        write_state(self._path, self._identity, RunState(at, best, parameters, n_kept))
        needed = {f"{position_name(at)}.topics", "order"}
        if best is not None:
            needed.add(f"{position_name(('merged', best[0], 0))}.topics")
        self._remove(f"shard-*.{self._training.name}.", needed)
        if n_kept != self._n_kept:
            self._n_kept = n_kept
            self._remove(f"kept.{self._training.name}.", {str(n_kept)})

    def _remove(self, prefix: str, needed: set[str]) -> None:
        folder, name = self._training.folder, f".{self._training.name}."
        try:
            for path in folder.glob(f"{prefix}*"):
                if path.name.partition(name)[2] not in needed:
                    path.unlink(missing_ok=True)
        except OSError as error:
            raise FileAccessError(
                f"cannot remove old files of {folder}: {error.strerror or error}"
            ) from error

    def _kept_path(self, n_kept: int) -> Path:
        return self._training.folder / f"kept.{self._training.name}.{n_kept}"

    @contextmanager
    def _sent(self) -> Iterator[None]:
        """Send the workers the data of all tasks."""
        with sharing(self._executor, self._training) as self._workers:
            yield

    @contextmanager
    def _published(self, to: Position, weights: Floats) -> Iterator[Any]:
        """Weights of topics for all tasks: in memory for this process, as a file for workers."""
        if self._executor is None:
            yield weights
            return
        training = self._training
        path = training.folder / f"weights.{training.name}.{position_name(to)}"
        with replacing(path) as stream:
            stream.write(np.ascontiguousarray(weights, "<f8").data)
        try:
            yield path
        finally:
            # An interrupted worker may still map the file; some systems then refuse to remove it.
            with suppress(OSError):
                path.unlink()

    def _run(self, function: Callable[..., Any], *arguments: Any) -> Iterator[Any]:
        """Results of ``function(training, shards, *arguments)``, in order of completion."""
        return (result for _, result in self._numbered(function, *arguments))

    def _numbered(self, function: Callable[..., Any], *arguments: Any) -> Iterable[Any]:
        tasks = ((group, *arguments) for group in self._groups)
        return self._workers.run(function, tasks, self._describe, self.stopped)

    def _describe(self, number: int) -> str:
        group = self._groups[number]
        return f"shards {group[0]:,} to {group[-1]:,}"

    def _total(self, parts: Iterator[Counts]) -> Counts:
        """The sum of counts; an overflow of any count is detected in the sum."""
        # Unpickled arrays may be unaligned or read-only.
        totals: Counts = np.require(next(parts), np.uint32, ["C", "A", "W"])
        for counts in parts:
            totals += counts
        if int(totals.sum(dtype=np.uint64)) != self._shards.n_tokens:
            raise BudgetExceededError(
                f"a word has more than {_MOST_COUNTED:,} tokens in one topic: drop the most "
                f"frequent words, or use a larger {argument('n_components')}"
            )
        return totals


@contextmanager
def state_folder(shards: Shards, checkpoint: Any) -> Iterator[Path]:
    """The folder of `checkpoint`; by default a temporary folder next to the shards."""
    if checkpoint is not None:
        yield StateFolder(checkpoint, "training").path
        return
    with ExitStack() as stack:
        try:
            folder = stack.enter_context(scratch_folder(shards.folder, "training-"))
        except OSError as error:
            raise FileAccessError(
                f"cannot write next to the shards in {shards.folder} ({error.strerror or error}): "
                f"give a folder as {argument('checkpoint')}"
            ) from error
        yield folder


def _groups(shards: Shards, executor: Executor | None) -> list[tuple[int, ...]]:
    """Groups of consecutive shards with about equally many tokens, one per task."""
    n_groups = 1 if executor is None else _PER_WORKER * (n_workers(executor) or _UNKNOWN_WORKERS)
    cuts = even_cuts(np.array([shard.n_tokens for shard in shards]), n_groups)
    return [tuple(range(*pair)) for pair in pairwise(cuts)]
