"""Matrix factorisation on shards: the updates of memory, bit for bit, on any number of workers.

Given the topics, the weights of documents are independent: tasks update those of their shards. The
factors of a word are sums over all documents in order: tasks add them for some words each.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from polyabayes import _core
from polyabayes.models.sharded.chain import ShardedChain
from polyabayes.models.sharded.model import ShardedState
from polyabayes.models.sharded.tasks import of_chain
from polyabayes.scale import shard_weights

__all__ = ["ShardedUpdates"]


class _Position(NamedTuple):
    """Where the updates are; one object, which an interruption finds whole, or the one before."""

    n_updates: int
    topics: NDArray[np.float64]
    n_tokens: list[int]
    """Exact sums of the weights of each topic."""


class ShardedUpdates(ShardedChain):
    """Multiplicative updates over shards, and where they are written down.

    Parameters are those of :class:`ShardedChain`.
    """

    _kept_files = "weights"
    _position = _Position(0, np.zeros((0, 0)), [])

    @property
    def n_sweeps(self) -> int:
        """Updates done."""
        return self._position.n_updates

    @property
    def state(self) -> ShardedState:
        """State of the updates, without topics of tokens."""
        return ShardedState(self.n_sweeps, np.zeros(0), sparse.csr_array((0, 0), dtype=np.int64))

    def sweep(self) -> None:
        """One update of the topics, then one of the weights of all documents."""
        n_updates, before, _ = self._position
        states = of_chain(n_updates), of_chain(n_updates + 1)
        factors, n_jobs = np.zeros_like(before), self._tasks.training.n_jobs
        with self._tasks.published("topics", states[0], before) as published:
            slices = self._slices()
            tasks = ((words, states[0], published) for words in slices)
            named = [f"words {first:,} to {last:,}" for first, last in slices]
            found = self._tasks.each(shard_weights.add_factors, tasks, named.__getitem__)
            for number, of_words in found:
                factors[slice(*slices[number])] = of_words
        topics = before.copy()
        _core.nmf_update_topics(topics, factors, n_jobs)
        del factors
        n_tokens = [0] * topics.shape[1]
        with self._tasks.published("topics", states[1], topics) as published:
            for of_shards in self._tasks.run(shard_weights.update_weights, *states, published):
                n_tokens = [sum(pair) for pair in zip(n_tokens, of_shards, strict=True)]
        self._position = _Position(n_updates + 1, topics, n_tokens)
        self._write_chain()

    def mean(self) -> tuple[NDArray[np.float64], list[NDArray[np.float64]]]:
        """Topics (n_words, n_components), and the sums of the weights of each."""
        _, topics, n_tokens = self._position
        sums = np.array([_core.exact_value(total) for total in n_tokens])
        return topics, [sums, np.zeros(0)]

    def ln_joint(self) -> float:
        """Ln of the Poisson likelihood."""
        state, topics = of_chain(self.n_sweeps), self._position.topics
        with self._tasks.published("topics", state, topics) as published:
            return _core.exact_value(
                sum(self._tasks.run(shard_weights.ln_documents, state, published))
            )

    def _slices(self) -> list[tuple[int, int]]:
        """Words of which tasks add the factors, about as many each."""
        n_words = len(self._position.topics)
        n_tasks = min(len(self._tasks), n_words)
        ends = [number * n_words // n_tasks for number in range(n_tasks + 1)]
        return list(pairwise(ends))

    def _begin(self, counts: NDArray[np.uint32]) -> None:
        """Weights and topics by the topics of tokens."""
        start = of_chain(0)
        for _ in self._tasks.run(shard_weights.start_weights, start, start, counts.shape[1]):
            pass
        self._position = _Position(0, _core.nmf_start_topics(counts), [])
        self._write_chain()

    def _go_on(self, header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        self._position = _Position(header["sweep"], arrays["topics"], header["n_tokens"])

    def _write_chain(self) -> None:
        n_updates, topics, n_tokens = self._position
        header = {"phase": "chain", "run": 0, "sweep": n_updates, "n_kept": 0, "n_tokens": n_tokens}
        self._files.write(header, {"topics": topics}, {f"{of_chain(n_updates)}.{self._kept_files}"})
