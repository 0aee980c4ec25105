"""Starts of a chain on shards: topics of all tokens, the best of which it begins with."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from polyabayes import _core
from polyabayes.models.fitting import Schedule
from polyabayes.models.sharded.files import StateFiles
from polyabayes.models.sharded.model import ShardedModel
from polyabayes.models.sharded.tasks import ShardTasks, of_chain, of_start
from polyabayes.scale.shard_sweeps import Counts

__all__ = ["ShardedStarts"]


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


class ShardedStarts:
    """Starts of some sweeps of more topics than asked for, which are then merged.

    Parameters
    ----------
    tasks : ShardTasks
        Where tokens are drawn.
    files : StateFiles
        Where the state is written after every sweep.
    model : ShardedModel
        What is trained.
    schedule : Schedule
        How many starts, of how many sweeps.
    n_words : int
        Size of the vocabulary.
    """

    def __init__(
        self,
        tasks: ShardTasks,
        files: StateFiles,
        model: ShardedModel,
        schedule: Schedule,
        n_words: int,
    ) -> None:
        self._tasks, self._files = tasks, files
        self._model, self._schedule, self._n_words = model, schedule, n_words

    def best(self, header: dict[str, Any] | None) -> Counts:
        """Counts of the best start, from the state that `header` is of, or from the beginning."""
        run, sweep, best = 0, None, None
        if header is not None:
            run, sweep = header["run"], header["sweep"]
            if "best_run" in header:
                counts = self._tasks.counted(of_start(header["best_run"]), len(self._model.alpha))
                best = BestStart(header["best_run"], header["best_value"], counts)
        for number in range(run, self._schedule.n_init):
            start = self._new_start(number)
            if sweep is None:
                state, topics = of_start(number, 0), start.first_topics()
                counts, sweep = self._tasks.first_topics(state, topics, start.n_topics), 0
                self._write(number, sweep, best)
            else:
                counts = self._tasks.counted(of_start(number, sweep), start.n_topics)
            counts = self._sweep(start, number, sweep, counts, best)
            best, sweep = self._merged(start, number, counts, best), None
        assert best is not None
        numbers = start.numbers_by_size(best.counts.sum(axis=0, dtype=np.uint64))
        self._tasks.renumber(of_start(best.run), of_chain(0), numbers)
        return _renumbered(best.counts, numbers, best.counts.shape[1])

    def _new_start(self, run: int) -> _core.ShardedStart:
        alpha, beta = self._model.alpha, self._model.beta
        return _core.ShardedStart(self._n_words, alpha, beta, self._schedule, run)

    def _sweep(
        self,
        start: _core.ShardedStart,
        run: int,
        done: int,
        counts: Counts,
        best: BestStart | None,
    ) -> Counts:
        for sweep in range(done + 1, self._schedule.start_sweeps + 1):
            states = of_start(run, sweep - 1), of_start(run, sweep)
            urns = start.prepare(counts, sweep)
            counts, _ = self._tasks.swept(
                states, run, sweep, start, urns, blocked=self._model.blocked, tables=False
            )
            self._write(run, sweep, best)
        return counts

    def _merged(
        self, start: _core.ShardedStart, run: int, counts: Counts, best: BestStart | None
    ) -> BestStart:
        """Merge the topics of a start; the better one of it and the best so far."""
        numbers = start.merge(counts)
        self._tasks.renumber(of_start(run, self._schedule.start_sweeps), of_start(run), numbers)
        merged = _renumbered(counts, numbers, len(self._model.alpha))
        value = 0.0
        if self._schedule.n_init > 1:
            urns, _ = self._tasks.ln_urns(of_start(run), start.pseudo_counts())
            value = start.ln_joint(merged, urns)
        new = BestStart(run, value, merged)
        return new if best is None or new.value > best.value else best

    def _write(self, run: int, sweep: int, best: BestStart | None) -> None:
        header: dict[str, Any] = {"phase": "start", "run": run, "sweep": sweep, "n_kept": 0}
        kept = {f"{of_start(run, sweep)}.topics"}
        if best is not None:
            header |= {"best_run": best.run, "best_value": best.value}
            kept.add(f"{of_start(best.run)}.topics")
        self._files.write(header, {}, kept)


def _renumbered(counts: Counts, numbers: NDArray[np.uint16], n_topics: int) -> Counts:
    """The counts of topics that get these numbers."""
    renumbered = np.zeros((len(counts), n_topics), np.uint32)
    for topic, number in enumerate(numbers):
        renumbered[:, number] += counts[:, topic]
    return renumbered
