"""Matrix factorisation on shards: the updates of memory, bit for bit, on any number of workers.

Given the topics, the weights of documents are independent: tasks update those of their shards. The
factors of a word are sums over all documents in order: tasks add them for some words each.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from polyabayes import _core
from polyabayes.models.sharded import ShardedChain, ShardedState, of_chain
from polyabayes.scale import shard_weights

__all__ = ["ShardedUpdates"]


class ShardedUpdates(ShardedChain):
    """Multiplicative updates over shards, and where they are written down.

    Parameters are those of :class:`ShardedChain`.
    """

    _kept_files = "weights"
    _topics: NDArray[np.float64]
    _n_updates = 0

    @property
    def n_sweeps(self) -> int:
        """Updates done."""
        return self._n_updates

    @property
    def state(self) -> ShardedState:
        """State of the updates, without topics of tokens."""
        return ShardedState(self._n_updates, np.zeros(0), sparse.csr_array((0, 0), dtype=np.int64))

    def sweep(self) -> None:
        """One update of the topics, then one of the weights of all documents."""
        states = of_chain(self._n_updates), of_chain(self._n_updates + 1)
        factors, n_jobs = np.zeros_like(self._topics), self._training.n_jobs
        with self._published("topics", states[0], self._topics) as published:
            slices = self._slices()
            tasks = ((words, states[0], published) for words in slices)
            named = [f"words {first:,} to {last:,}" for first, last in slices]
            found = self._tasks(shard_weights.add_factors, tasks, named.__getitem__)
            for number, of_words in found:
                factors[slice(*slices[number])] = of_words
        topics = self._topics.copy()
        _core.nmf_update_topics(topics, factors, n_jobs)
        del factors
        self._topics, before = topics, self._topics
        try:
            with self._published("topics", states[1], self._topics) as published:
                for _ in self._run(shard_weights.update_weights, *states, published):
                    pass
        except BaseException:
            self._topics = before
            raise
        self._n_updates += 1
        self._write_chain()

    def mean(self) -> tuple[NDArray[np.float64], list[NDArray[np.float64]]]:
        """Topics (n_words, n_components), and the sums of the weights of each."""
        return self._topics, [self._sums()[1], np.zeros(0)]

    def ln_joint(self) -> float:
        """Ln of the Poisson likelihood."""
        return self._sums()[0]

    def _sums(self) -> tuple[float, NDArray[np.float64]]:
        state, ln_joint = of_chain(self._n_updates), 0
        n_tokens = [0] * self._topics.shape[1]
        with self._published("topics", state, self._topics) as published:
            for ln_part, of_topics in self._run(shard_weights.sums_of_weights, state, published):
                ln_joint += ln_part
                n_tokens = [sum(pair) for pair in zip(n_tokens, of_topics, strict=True)]
        values = np.array([_core.exact_value(total) for total in n_tokens])
        return _core.exact_value(ln_joint), values

    def _slices(self) -> list[tuple[int, int]]:
        """Words of which tasks add the factors, about as many each."""
        n_words, n_tasks = len(self._topics), min(len(self._groups), len(self._topics))
        ends = [number * n_words // n_tasks for number in range(n_tasks + 1)]
        return list(pairwise(ends))

    def _begin(self, counts: NDArray[np.uint32]) -> None:
        """Weights and topics by the topics of tokens."""
        start = of_chain(0)
        for _ in self._run(shard_weights.start_weights, start, start, counts.shape[1]):
            pass
        self._topics = _core.nmf_start_topics(counts)
        self._write_chain()

    def _go_on(self, header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        self._topics, self._n_updates = arrays["topics"], header["sweep"]

    def _write_chain(self) -> None:
        header = {"phase": "chain", "run": 0, "sweep": self._n_updates, "n_kept": 0}
        state = of_chain(self._n_updates)
        self._write(header, {"topics": self._topics}, {f"{state}.{self._kept_files}"})
