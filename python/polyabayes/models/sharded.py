"""Gibbs sampling on shards: the chain of memory, bit for bit, on any number of workers.

Given phi and the pseudo-counts of documents, these are independent: tasks draw the topics of their
shards' tokens and give back counts of words by topic, whole numbers whose sums are exact in any
order. All else is drawn here. The state of the chain is written after every sweep, before the next
one begins, so that no shard is ever ahead of it by more than one sweep.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from polyabayes import _core
from polyabayes._support.files import replacing
from polyabayes._support.state_folder import StateFolder, refuse_other
from polyabayes._support.storage import read_arrays, write_arrays
from polyabayes.exceptions import (
    BudgetExceededError,
    FileAccessError,
    FileFormatError,
    InvalidArgumentError,
    argument,
)
from polyabayes.models.fitting import Schedule
from polyabayes.scale import exposures as exposure_files
from polyabayes.scale import shard_sweeps
from polyabayes.scale.executors import Workers, n_workers, sharing
from polyabayes.scale.exposures import Exposures, Tokens
from polyabayes.scale.shard_sweeps import ShardTraining, SweepOrder
from polyabayes.scale.shards import Shards, even_cuts

_STATE = "shards.safetensors"

# Tasks of a sweep for each worker, and in all where it is not known how many there are.
_TASKS_PER_WORKER = 2
_UNKNOWN_TASKS = 32

_MOST_COUNTED = 2**32 - 1

Counts = NDArray[np.uint32]


class ShardedModel(NamedTuple):
    """A model to train on shards.

    Attributes
    ----------
    alpha : ndarray of shape (n_components,)
        Pseudo-counts of documents from which to start.
    beta : float
        Dirichlet parameter of the topics from which to start.
    blocked : bool
        Whether topics are drawn given weights of their document, which are drawn first.
    tables, lengths, exposed : bool
        Whether the parameters need tables of topics, lengths of documents, and, where these have
        exposures, the tokens of every topic by exposure.
    exposures : Exposures or None
        Exposures of documents.
    chain : callable or None
        Gives the chain for ``counts`` of words by topic, and for a ``state`` of it or None; None
        where there is no chain, but updates.
    """

    alpha: NDArray[np.float64]
    beta: float
    blocked: bool
    tables: bool
    lengths: bool
    exposed: bool
    exposures: Exposures | None
    chain: Callable[..., _core.ShardedChain] | None


class ShardedState(NamedTuple):
    """State of a chain on shards.

    Attributes
    ----------
    n_sweeps : int
        Sweeps done.
    parameters : ndarray
        Those of the sampler beside phi, as the compiled core orders them.
    counts : csr_array of shape (n_components, n_words)
        Tokens of each topic and word.
    """

    n_sweeps: int
    parameters: NDArray[np.float64]
    counts: sparse.csr_array


class BestStart(NamedTuple):
    """The best of the starts so far.

    Attributes
    ----------
    run : int
        Its number.
    value : float
        ln of its joint density.
    counts : ndarray of uint32, shape (n_words, n_components)
        Tokens of every word in each topic.
    """

    run: int
    value: float
    counts: Counts


class ShardedChain:
    """A chain over shards, and where it is written down.

    Parameters
    ----------
    shards : Shards
        The corpus.
    folder : Path
        For the state, on storage that all workers share.
    model : ShardedModel
        What is trained.
    schedule : Schedule
        How long to sample, and what to keep.
    identity : dict
        What a run must agree on to go on from the state, by the names that a message uses.
    executor : Executor or None
        Where tasks run; None for this process.
    n_jobs : int
        Threads of a task.
    """

    def __init__(
        self,
        shards: Shards,
        folder: Path,
        model: ShardedModel,
        schedule: Schedule,
        identity: dict[str, Any],
        executor: Executor | None,
        n_jobs: int,
    ) -> None:
        if shards.longest > _MOST_COUNTED:
            raise BudgetExceededError(f"a document has {shards.longest:,} tokens: divide it")
        self._shards, self._model, self._schedule = shards, model, schedule
        self._executor, self._identity = executor, identity
        text = json.dumps(identity, sort_keys=True, default=str)
        name = hashlib.sha256(text.encode()).hexdigest()[:12]
        self._path = StateFolder(folder, "training").make(_STATE)
        folder = folder.resolve()
        exposures = None if model.exposures is None else folder / f"exposures.{name}"
        self._training = ShardTraining(
            shards.shards, folder, name, shards.longest, schedule.seed, n_jobs, exposures
        )
        self._groups = _groups(shards, executor)
        self._lengths = np.zeros(0, np.uint32)
        self._workers: Workers | None = None
        self._chain: _core.ShardedChain | None = None
        self._counts: Counts = np.zeros((0, 0), np.uint32)
        self._n_kept = 0

    @contextmanager
    def ready(self) -> Iterator[int]:
        """Bring the chain to where it was written down, or to its start; give the sweeps done."""
        if self._model.exposures is not None and self._training.exposures is not None:
            exposure_files.write_exposures(self._training.exposures, self._model.exposures)
        with self._sent(self._training):
            found = dict(self._numbered(shard_sweeps.inspect_shards, self._model.lengths))
        inspected = [found[number] for number in range(len(self._groups))]
        stamps = tuple(stamp for group in inspected for stamp, _ in group)
        self._training = self._training._replace(stamps=stamps)
        if self._model.lengths:
            self._lengths = np.concatenate([lengths for group in inspected for _, lengths in group])
        with self._sent(self._training):
            self._take_up()
            yield self.n_sweeps

    @property
    def n_sweeps(self) -> int:
        """Sweeps done."""
        return self._sampler.n_sweeps

    @property
    def parameters(self) -> NDArray[np.float64]:
        """Parameters of the current state beside phi."""
        return self._sampler.parameters

    @property
    def state(self) -> ShardedState:
        """The current state."""
        counts = sparse.csr_array(sparse.csr_matrix(self._counts.T, dtype=np.int64))
        return ShardedState(self.n_sweeps, self.parameters, counts)

    def sweep(self) -> None:
        """One sweep over all tokens and parameters."""
        n_sweeps = self.n_sweeps
        states = of_chain(n_sweeps), of_chain(n_sweeps + 1)
        sampler = self._sampler
        counts, n_tables = self._swept(states, None, n_sweeps + 1, sampler, sampler.urns())
        with self._exposed(states[1], self._model.exposed) as exposed:
            interruption = self._sampler.advance(counts, n_tables, self._lengths, exposed)
        self._counts = counts
        self._write_chain()
        if interruption is not None:
            raise interruption

    def mean(self) -> tuple[NDArray[np.float64], list[NDArray[np.float64]]]:
        """Posterior means of phi (n_words, n_components), and of the other parameters."""
        return self._sampler.mean(self._counts)

    def ln_joint(self) -> float:
        """Ln of the joint density of the current state."""
        state = of_chain(self.n_sweeps)
        sums = self._ln_urns(state, self._sampler.pseudo_counts)
        with self._exposed(state, True) as exposed:
            return self._sampler.ln_joint(self._counts, *sums, exposed)

    @property
    def _sampler(self) -> _core.ShardedChain:
        assert self._chain is not None
        return self._chain

    @contextmanager
    def _sent(self, training: ShardTraining) -> Iterator[None]:
        """Give the workers what all tasks need."""
        if self._executor is None:
            yield
            return
        with sharing(self._executor, training) as workers:
            self._workers = workers
            try:
                yield
            finally:
                self._workers = None

    def _numbered(self, function: Callable[..., Any], *arguments: Any) -> Iterator[tuple[int, Any]]:
        """Results of ``function(training, shards, *arguments)`` for all groups of shards."""
        return self._tasks(function, ((group, *arguments) for group in self._groups))

    def _tasks(
        self,
        function: Callable[..., Any],
        tasks: Iterable[tuple[Any, ...]],
        describe: Callable[[int], str] | None = None,
    ) -> Iterator[tuple[int, Any]]:
        """Numbers of tasks, and results of ``function(training, *task)``."""
        if self._workers is None:
            return enumerate(function(self._training, *task) for task in tasks)
        return self._workers.run(function, tasks, describe or self._describe)

    def _run(self, function: Callable[..., Any], *arguments: Any) -> Iterator[Any]:
        """The results alone, in the order in which tasks end."""
        return (result for _, result in self._numbered(function, *arguments))

    def _describe(self, number: int) -> str:
        group = self._groups[number]
        return f"shards {group[0]:,} to {group[-1]:,}"

    def _swept(
        self,
        states: tuple[str, str],
        run: int | None,
        sweep: int,
        source: _core.ShardedChain | _core.ShardedStart,
        urns: tuple[Any, Any, Any],
    ) -> tuple[Counts, NDArray[np.uint64]]:
        """Draw the topics of all tokens: their counts, and the tables of each topic."""
        scale, a, rates = urns
        tables, blocked = self._model.tables and run is None, self._model.blocked
        n_tables = np.zeros(len(a), np.uint64)
        with self._published("weights", states[1], source) as published:
            order = SweepOrder(*states, run, sweep, published, scale, a, rates, blocked, tables)

            def tallied() -> Iterator[Counts]:
                for counts, of_group in self._run(shard_sweeps.sweep_shards, order):
                    np.add(n_tables, of_group, out=n_tables)
                    yield counts

            return self._total(tallied()), n_tables

    def _counted(self, state: str, n_topics: int) -> Counts:
        return self._total(self._run(shard_sweeps.count_topics, state, n_topics))

    def _total(self, parts: Iterator[Counts]) -> Counts:
        """The sum of counts, which itself tells whether one of them has overflown."""
        # Arrays that have travelled may be unaligned, or not for writing.
        totals: Counts = np.require(next(parts), np.uint32, ["C", "A", "W"])
        for counts in parts:
            totals += counts
        if int(totals.sum(dtype=np.uint64)) != self._shards.n_tokens:
            raise BudgetExceededError(
                f"a word has more than {_MOST_COUNTED:,} tokens in one topic: leave the most "
                f"frequent words out, or take a larger {argument('n_components')}"
            )
        return totals

    def _ln_urns(self, state: str, a: NDArray[np.float64]) -> tuple[int, int]:
        found = list(self._run(shard_sweeps.ln_urns, state, a))
        return sum(urns for urns, _ in found), sum(lengths for _, lengths in found)

    @contextmanager
    def _exposed(self, state: str, needed: bool) -> Iterator[list[Tokens]]:
        """Tokens of every topic by exposure, where documents have exposures and it is `needed`."""
        if self._model.exposures is None or not needed:
            yield []
            return
        n_topics = len(self._model.alpha)
        for _ in self._run(shard_sweeps.tally_exposures, state, n_topics):
            pass
        shards = self._shards
        paths = [shard_sweeps.exposed_path(self._training, shard, state) for shard in shards]
        tokens = [part for path in paths for part in exposure_files.read_tokens(path)]
        try:
            yield tokens
        finally:
            # Not every system removes files that are mapped.
            tokens.clear()
            for path in paths:
                path.unlink(missing_ok=True)

    def _renumber(self, before: str, after: str, numbers: NDArray[np.uint16]) -> None:
        for _ in self._run(shard_sweeps.renumber_topics, before, after, numbers):
            pass

    def _take_up(self) -> None:
        """Go on from the state, or find the topics to start from."""
        header, arrays = self._read()
        if header is None or header["phase"] == "start":
            self._begin(self._start(header))
            return
        if header["sweep"] > self._schedule.max_iter:
            raise InvalidArgumentError(
                f"the checkpoint has {header['sweep']:,} sweeps, max_iter is "
                f"{self._schedule.max_iter:,}"
            )
        self._go_on(header, arrays)

    @contextmanager
    def _published(
        self, name: str, state: str, source: shard_sweeps.Source
    ) -> Iterator[shard_sweeps.Published]:
        """Topics for all tasks: where they are in this process, as a file for workers."""
        if self._workers is None:
            yield source
            return
        path = self._training.folder / f"{name}.{self._training.name}.{state}.npy"
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

    def _begin(self, counts: Counts) -> None:
        """Take up the topics of a start."""
        self._counts = counts
        self._chain = self._new_chain(None)
        self._write_chain()

    def _go_on(self, header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        """Take up what :meth:`_write_chain` wrote."""
        n_kept, kept_sum = header["n_kept"], None
        if n_kept:
            kept_sum = read_arrays(self._kept_path(n_kept))[1]["kept_sum"]
        self._n_kept = n_kept
        state = (header["sweep"], arrays["parameters"].tolist(), n_kept, kept_sum)
        n_topics = len(self._model.alpha)
        self._counts = self._counted(of_chain(header["sweep"]), n_topics)
        self._chain = self._new_chain(state)

    def _new_chain(self, state: Any) -> _core.ShardedChain:
        assert self._model.chain is not None
        return self._model.chain(counts=self._counts, state=state)

    def _start(self, header: dict[str, Any] | None) -> Counts:
        """Find the topics of all tokens from which to train: the counts of the best start."""
        run, sweep, best = 0, None, None
        if header is not None:
            run, sweep = header["run"], header["sweep"]
            if "best_run" in header:
                counts = self._counted(of_start(header["best_run"]), len(self._model.alpha))
                best = BestStart(header["best_run"], header["best_value"], counts)
        for number in range(run, self._schedule.n_init):
            start = self._new_start(number)
            if sweep is None:
                counts, sweep = self._first_topics(start, number), 0
                self._write_start(number, sweep, best)
            else:
                counts = self._counted(of_start(number, sweep), start.n_topics)
            counts = self._sweep_start(start, number, sweep, counts, best)
            best, sweep = self._merged(start, number, counts, best), None
        assert best is not None
        numbers = start.numbers_by_size(best.counts.sum(axis=0, dtype=np.uint64))
        self._renumber(of_start(best.run), of_chain(0), numbers)
        return _renumbered(best.counts, numbers, best.counts.shape[1])

    def _new_start(self, run: int) -> _core.ShardedStart:
        alpha, beta = self._model.alpha, self._model.beta
        return _core.ShardedStart(self._shards.n_words, alpha, beta, self._schedule, run)

    def _first_topics(self, start: _core.ShardedStart, run: int) -> Counts:
        """Draw uniform topics, one token after the other."""
        topics, state = start.first_topics(), of_start(run, 0)
        for shard in self._shards:
            shard_sweeps.draw_first_topics(self._training, shard, state, topics)
        return self._counted(state, start.n_topics)

    def _sweep_start(
        self,
        start: _core.ShardedStart,
        run: int,
        done: int,
        counts: Counts,
        best: BestStart | None,
    ) -> Counts:
        for sweep in range(done + 1, self._schedule.start_sweeps + 1):
            states = of_start(run, sweep - 1), of_start(run, sweep)
            counts = self._swept(states, run, sweep, start, start.prepare(counts, sweep))[0]
            self._write_start(run, sweep, best)
        return counts

    def _merged(
        self, start: _core.ShardedStart, run: int, counts: Counts, best: BestStart | None
    ) -> BestStart:
        """Merge the topics of a start; the better one of it and the best so far."""
        numbers = start.merge(counts)
        self._renumber(of_start(run, self._schedule.start_sweeps), of_start(run), numbers)
        merged = _renumbered(counts, numbers, len(self._model.alpha))
        value = 0.0
        if self._schedule.n_init > 1:
            urns, _ = self._ln_urns(of_start(run), start.pseudo_counts())
            value = start.ln_joint(merged, urns)
        new = BestStart(run, value, merged)
        return new if best is None or new.value > best.value else best

    def _read(self) -> tuple[dict[str, Any] | None, dict[str, NDArray[Any]]]:
        """The state, if there is one; refuse that of another run and name the difference."""
        if not self._path.exists():
            return None, {}
        header, arrays = read_arrays(self._path)
        for name, expected in self._identity.items():
            refuse_other(self._path, "run", name, header.get(name), expected)
        names = {"phase", "run", "sweep", "n_kept"}
        if not names <= header.keys():
            raise FileFormatError(f"{self._path} does not hold a whole state: delete it")
        return header, arrays

    def _write_start(self, run: int, sweep: int, best: BestStart | None) -> None:
        header: dict[str, Any] = {"phase": "start", "run": run, "sweep": sweep, "n_kept": 0}
        kept = {f"{of_start(run, sweep)}.topics"}
        if best is not None:
            header |= {"best_run": best.run, "best_value": best.value}
            kept.add(f"{of_start(best.run)}.topics")
        self._write(header, {}, kept)

    def _write_chain(self) -> None:
        n_kept, before = self._sampler.n_kept, self._n_kept
        if n_kept != before:
            _, kept_sum = self._sampler.kept()
            assert kept_sum is not None
            write_arrays(self._kept_path(n_kept), {}, {"kept_sum": kept_sum})
        header = {"phase": "chain", "run": 0, "sweep": self.n_sweeps, "n_kept": n_kept}
        arrays = {"parameters": self.parameters}
        self._write(header, arrays, {f"{of_chain(self.n_sweeps)}.topics"})
        if n_kept != before:
            self._n_kept = n_kept
            for path in self._training.folder.glob(self._kept_path(0).with_suffix(".*").name):
                if path != self._kept_path(n_kept):
                    path.unlink(missing_ok=True)

    def _kept_path(self, n_kept: int) -> Path:
        """File of the sum over so many kept sweeps."""
        return self._training.folder / f"kept.{self._training.name}.{n_kept}"

    def _write(
        self, header: dict[str, Any], arrays: dict[str, NDArray[Any]], kept: set[str]
    ) -> None:
        """Replace the state; then files of shards in other states are not needed."""
        write_arrays(self._path, {**self._identity, **header}, arrays)
        prefix = f".{self._training.name}."
        try:
            for path in self._training.folder.glob(f"shard-*{prefix}*.*"):
                if path.name.partition(prefix)[2] not in kept:
                    path.unlink(missing_ok=True)
        except OSError as error:
            raise FileAccessError(
                f"cannot remove old files of {self._training.folder}: {error.strerror or error}"
            ) from error


@contextmanager
def state_folder(shards: Shards, checkpoint: Any) -> Iterator[Path]:
    """The folder of `checkpoint`; without one, a folder beside the shards that is removed again."""
    if checkpoint is not None:
        yield StateFolder(checkpoint, "training").path
        return
    try:
        folder = tempfile.TemporaryDirectory(
            prefix="training-", dir=shards.folder, ignore_cleanup_errors=True
        )
    except OSError as error:
        raise FileAccessError(
            f"cannot write beside the shards in {shards.folder} ({error.strerror or error}): give "
            f"a folder as {argument('checkpoint')}"
        ) from error
    with folder as path:
        yield Path(path)


def fingerprint(shards: Shards) -> str:
    """Hash of the counts and of the words, and of how they are divided."""
    words = None if shards.vocabulary is None else shards.vocabulary.tolist()
    digest = hashlib.sha256(json.dumps([shards.n_words, words], ensure_ascii=False).encode())
    if shards.replaced_exposure is not None:
        digest.update(shards.replaced_exposure.tobytes())
    for shard in shards:
        digest.update(json.dumps([shard.n_documents, shard.digests], sort_keys=True).encode())
    return digest.hexdigest()[:16]


def _groups(shards: Shards, executor: Executor | None) -> list[tuple[int, ...]]:
    """Consecutive shards of about as many tokens, a group for each task."""
    n_groups = 1
    if executor is not None:
        workers = n_workers(executor)
        n_groups = _UNKNOWN_TASKS if workers is None else _TASKS_PER_WORKER * workers
    cuts = even_cuts(np.array([shard.n_tokens for shard in shards]), n_groups)
    return [tuple(range(*pair)) for pair in pairwise(cuts)]


def _renumbered(counts: Counts, numbers: NDArray[np.uint16], n_topics: int) -> Counts:
    """The counts of topics that get these numbers."""
    renumbered = np.zeros((len(counts), n_topics), np.uint32)
    for topic, number in enumerate(numbers):
        renumbered[:, number] += counts[:, topic]
    return renumbered


def of_chain(n_sweeps: int) -> str:
    """State of a chain after so many sweeps."""
    return f"sweep-{n_sweeps}"


def of_start(run: int, sweep: int | None = None) -> str:
    """State of a start: after a sweep, or at its end, where topics are merged."""
    return f"start-{run}" if sweep is None else f"start-{run}-{sweep}"
