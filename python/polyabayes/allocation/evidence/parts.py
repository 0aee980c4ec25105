"""Evidence by replicates one by one: on the workers of an executor, and from a checkpoint.

The replicates of a filter are tasks, and of tempering the rounds of each ladder, long ones in parts
of some ten seconds. Ladders go in and out as bytes, generators included, so that the bits are those
of one process wherever and in whatever parts they run. Whether there is another round is decided
here, by all rounds from the first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import nullcontext
from dataclasses import replace
from typing import Any, NamedTuple

from polyabayes import _core
from polyabayes._support.progress import progress_bar
from polyabayes.allocation.evidence.bounds import lower_bound
from polyabayes.allocation.evidence.folder import Chosen, EvidenceFolder, Replicate
from polyabayes.allocation.evidence.result import Estimate
from polyabayes.allocation.layout import Layout
from polyabayes.allocation.options import REPLICATES, Options, Run
from polyabayes.scale.executors import Workers, sharing

__all__ = ["sampled_in_parts"]


class _Work(NamedTuple):
    """What all tasks need."""

    layout: Layout
    options: Options
    seed: int
    n_jobs: int

    def core(self, method: str) -> _core.AllocationParts:
        options = replace(self.options, method=method)
        return _core.AllocationParts(self.layout.core, options, seed=self.seed)


def _choose(work: _Work) -> tuple[str, Estimate | None]:
    method, found = work.core(work.options.method).choose(n_jobs=work.n_jobs)
    return method, None if found is None else Estimate.of(found)


def _reference(work: _Work) -> float:
    return work.core("tempered").reference(n_jobs=work.n_jobs)


def _filtered(work: _Work, method: str, replicates: list[int]) -> list[tuple[float, float]]:
    return work.core(method).filtered(replicates, n_jobs=work.n_jobs)


def _ladders(work: _Work, kappa: float, replicates: list[int]) -> list[bytes]:
    return work.core("tempered").ladders(kappa, replicates, n_jobs=work.n_jobs)


def _ladder_parts(
    work: _Work, kappa: float, n_scans: int, ladders: list[bytes]
) -> list[tuple[bytes, bytes | None]]:
    return work.core("tempered").ladder_parts(kappa, ladders, n_scans, n_jobs=work.n_jobs)


def _finish(work: _Work, rounds: list[list[bytes]]) -> Estimate:
    found, tempering = work.core("tempered").finish(rounds, n_jobs=work.n_jobs)
    return Estimate.of(found).with_rounds(tempering)


def _bound(work: _Work) -> float:
    return lower_bound(work.layout.core, work.seed, work.n_jobs)


def sampled_in_parts(
    layout: Layout, options: Options, run: Run, executor: Executor | None, checkpoint: Any
) -> tuple[str, Estimate]:
    """By replicates that are tasks, and the method that it came to; exact where that is quick."""
    folder = None
    if checkpoint is not None:
        folder = EvidenceFolder(checkpoint, layout, options, run.seed)
    work = _Work(layout, options, run.seed, run.n_jobs)
    with sharing(executor, work) if executor is not None else nullcontext() as workers:
        return _Parts(work, workers, folder).estimate(progress=run.progress)


class _Parts:
    """The replicates, and where they run and are kept."""

    def __init__(self, work: _Work, workers: Workers | None, folder: EvidenceFolder | None) -> None:
        self._work, self._workers, self._folder = work, workers, folder
        self._n_replicates = work.options.n_replicates or REPLICATES

    def estimate(self, *, progress: bool) -> tuple[str, Estimate]:
        chosen = None if self._folder is None else self._folder.chosen
        if chosen is None:
            method, known = self._one(_choose, "the choice of a method")
            if known is not None:
                return method, known
            kappa = self._one(_reference, "the reference") if method == "tempered" else None
            chosen = Chosen(method, kappa)
            if self._folder is not None:
                self._folder.choose(chosen)
        is_tempered = chosen.kappa is not None
        total, unit = (None, "round") if is_tempered else (self._n_replicates, "replicate")
        with progress_bar(progress, total, unit) as update:
            if chosen.kappa is None:
                return chosen.method, self._by_filter(chosen.method, update)
            return chosen.method, self._by_tempering(chosen.kappa, update)

    def _by_filter(self, method: str, update: Callable[[int], None] | None) -> Estimate:
        replicates = self._read()
        missing = [number for number, one in enumerate(replicates) if one.run is None]
        n_done = len(replicates) - len(missing)
        for index, run in self._each(_filtered, (method,), missing, missing):
            self._keep(missing[index], replicates, run=run)
            n_done += 1
            if update is not None:
                update(n_done)
        runs = [one.run for one in replicates if one.run is not None]
        return Estimate.of(self._work.core(method).of_runs(runs))

    def _by_tempering(self, kappa: float, update: Callable[[int], None] | None) -> Estimate:
        """Rounds until they agree; where Ctrl-C comes after the first, those that are done."""
        estimate = None
        try:
            replicates = self._read()
            missing = [number for number, one in enumerate(replicates) if one.ladder is None]
            for index, ladder in self._each(_ladders, (kappa,), missing, missing):
                self._keep(missing[index], replicates, ladder=ladder)
            n_rounds = 0
            while True:
                estimate, n_scans = self._course(replicates, n_rounds)
                if update is not None:
                    update(n_rounds)
                if n_scans is None:
                    rounds = self._found(replicates, n_rounds)
                    finished: Estimate = self._one(_finish, "the other path", rounds)
                    return finished.held_by(self._one(_bound, "the lower bound"))
                self._round(kappa, n_rounds, n_scans, replicates)
                n_rounds += 1
        except KeyboardInterrupt as error:
            if estimate is None or not estimate.rounds:
                raise
            return estimate._replace(interruption=error)

    def _course(self, replicates: list[Replicate], n_rounds: int) -> tuple[Estimate, int | None]:
        """The estimate by the first rounds, and the scans of the next one."""
        rounds = self._found(replicates, n_rounds)
        found, tempering, n_scans = self._work.core("tempered").course(rounds)
        return Estimate.of(found).with_rounds(tempering), n_scans

    @staticmethod
    def _found(replicates: list[Replicate], n_rounds: int) -> list[list[bytes]]:
        return [[one.found[index] for one in replicates] for index in range(n_rounds)]

    def _round(self, kappa: float, index: int, n_scans: int, replicates: list[Replicate]) -> None:
        """One round of all ladders that have not done it, part by part."""
        while left := [number for number, one in enumerate(replicates) if len(one.found) <= index]:
            ladders = [replicates[number].ladder for number in left]
            for nth, (ladder, found) in self._each(_ladder_parts, (kappa, n_scans), ladders, left):
                done = replicates[left[nth]].found
                if found is not None:
                    done = [*done, found]
                self._keep(left[nth], replicates, ladder=ladder, found=done)

    def _one(self, function: Callable[..., Any], name: str, *arguments: Any) -> Any:
        """The result of ``function(work, *arguments)``."""
        if self._workers is None:
            return function(self._work, *arguments)
        ((_, result),) = self._workers.run(function, [arguments], lambda _: name)
        return result

    def _each(
        self,
        function: Callable[..., Any],
        fixed: tuple[Any, ...],
        items: Sequence[Any],
        replicates: Sequence[int],
    ) -> Iterator[tuple[int, Any]]:
        """Numbers of items and what ``function(work, *fixed, items)`` gives for each of them."""
        if self._workers is not None:
            tasks = ((*fixed, [item]) for item in items)
            found = self._workers.run(function, tasks, lambda ix: f"replicate {replicates[ix]}")
            yield from ((number, result) for number, (result,) in found)
            return
        # As many at a time as there are threads, so that no more than these are lost.
        size = self._work.n_jobs
        for first in range(0, len(items), size):
            part = items[first : first + size]
            yield from enumerate(function(self._work, *fixed, part), first)

    def _read(self) -> list[Replicate]:
        if self._folder is None:
            return [Replicate() for _ in range(self._n_replicates)]
        return [self._folder.read(number) for number in range(self._n_replicates)]

    def _keep(self, number: int, replicates: list[Replicate], **news: Any) -> None:
        replicates[number] = replace(replicates[number], **news)
        if self._folder is not None:
            self._folder.keep(number, replicates[number])
