"""A chain of Gibbs sampling on shards, between two sweeps of its tasks."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from polyabayes import _core
from polyabayes.exceptions import BudgetExceededError, InvalidArgumentError
from polyabayes.models.fitting import Schedule
from polyabayes.models.sharded.files import StateFiles
from polyabayes.models.sharded.model import ShardedModel, ShardedState
from polyabayes.models.sharded.starts import ShardedStarts
from polyabayes.models.sharded.tasks import MOST_COUNTED, ShardTasks, of_chain
from polyabayes.scale.shard_sweeps import Counts, ShardTraining
from polyabayes.scale.shards import Shards

__all__ = ["ShardedChain"]


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
        if shards.longest > MOST_COUNTED:
            raise BudgetExceededError(f"a document has {shards.longest:,} tokens: divide it")
        self._model, self._schedule = model, schedule
        self._files = files = StateFiles(folder, identity)
        exposures = None if model.exposures is None else files.folder / f"exposures.{files.name}"
        names, seed = (files.folder, files.name), schedule.seed
        training = ShardTraining(shards.shards, *names, shards.longest, seed, n_jobs, exposures)
        self._tasks = ShardTasks(shards, training, executor)
        self._starts = ShardedStarts(self._tasks, files, model, schedule, shards.n_words)
        self._lengths = np.zeros(0, np.uint32)
        self._chain: _core.ShardedChain | None = None
        self._counts: Counts = np.zeros((0, 0), np.uint32)
        self._n_kept = 0

    @contextmanager
    def ready(self) -> Iterator[int]:
        """Bring the chain to where it was written down, or to its start; give the sweeps done."""
        self._lengths = self._tasks.inspect(self._model.exposures, lengths=self._model.lengths)
        with self._tasks.sent():
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
        n_sweeps, sampler, model = self.n_sweeps, self._sampler, self._model
        states = of_chain(n_sweeps), of_chain(n_sweeps + 1)
        counts, n_tables = self._tasks.swept(
            states,
            None,
            n_sweeps + 1,
            sampler,
            sampler.urns(),
            blocked=model.blocked,
            tables=model.tables,
        )
        with self._tasks.exposed(states[1], len(model.alpha), needed=model.exposed) as exposed:
            interruption = sampler.advance(counts, n_tables, self._lengths, exposed)
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
        sums = self._tasks.ln_urns(state, self._sampler.pseudo_counts)
        with self._tasks.exposed(state, len(self._model.alpha), needed=True) as exposed:
            return self._sampler.ln_joint(self._counts, *sums, exposed)

    @property
    def _sampler(self) -> _core.ShardedChain:
        assert self._chain is not None
        return self._chain

    def _take_up(self) -> None:
        """Go on from the state, or find the topics to start from."""
        header, arrays = self._files.read()
        if header is None or header["phase"] == "start":
            self._begin(self._starts.best(header))
            return
        if header["sweep"] > self._schedule.max_iter:
            raise InvalidArgumentError(
                f"the checkpoint has {header['sweep']:,} sweeps, max_iter is "
                f"{self._schedule.max_iter:,}"
            )
        self._go_on(header, arrays)

    def _begin(self, counts: Counts) -> None:
        """Take up the topics of a start."""
        self._counts = counts
        self._chain = self._new_chain(None)
        self._write_chain()

    def _go_on(self, header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        """Take up what :meth:`_write_chain` wrote."""
        self._n_kept = n_kept = header["n_kept"]
        kept_sum = self._files.read_kept(n_kept) if n_kept else None
        state = (header["sweep"], arrays["parameters"].tolist(), n_kept, kept_sum)
        n_topics = len(self._model.alpha)
        self._counts = self._tasks.counted(of_chain(header["sweep"]), n_topics)
        self._chain = self._new_chain(state)

    def _new_chain(self, state: Any) -> _core.ShardedChain:
        assert self._model.chain is not None
        return self._model.chain(counts=self._counts, state=state)

    def _write_chain(self) -> None:
        n_kept, before = self._sampler.n_kept, self._n_kept
        if n_kept != before:
            _, kept_sum = self._sampler.kept()
            assert kept_sum is not None
            self._files.write_kept(n_kept, kept_sum)
        header = {"phase": "chain", "run": 0, "sweep": self.n_sweeps, "n_kept": n_kept}
        arrays = {"parameters": self.parameters}
        self._files.write(header, arrays, {f"{of_chain(self.n_sweeps)}.topics"})
        if n_kept != before:
            self._n_kept = n_kept
            self._files.remove_kept_but(n_kept)
