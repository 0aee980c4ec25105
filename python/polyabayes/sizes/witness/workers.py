"""Scores by the workers of an executor, ahead of their turn.

The search itself stays as it is: it waits for the score that it has chosen, and takes its steps in
the order that it would without workers. Meanwhile those that are likely to come next are scored,
which is every size in turn where there is one variable. With several it is a guess: whatever is not
scored yet counts as high as its best witness. A wrong guess costs a score that the search may come
to later, or not at all.
"""

from __future__ import annotations

import math
import pickle
import time
from collections.abc import Callable, Mapping
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    CancelledError,
    Future,
    ProcessPoolExecutor,
    wait,
)
from typing import Any, TypeAlias

from polyabayes._support import checks
from polyabayes.exceptions import InvalidArgumentError, InvalidTypeError, ScoreError
from polyabayes.scale.executors import check_executor
from polyabayes.sizes.witness.adapters import Scorer
from polyabayes.sizes.witness.scores import Record, Score, Sizes, checked_score, named
from polyabayes.sizes.witness.search import Search
from polyabayes.sizes.witness.stopping import StopRules

Timed: TypeAlias = tuple[Any, float]


class Workers:
    """Scores that an executor was asked for.

    Parameters
    ----------
    executor : concurrent.futures.Executor
        It is never shut down.
    n_in_flight : int, optional
        Scores that are asked for at once; as many as there are cores by default.
    scorer : Scorer
        What gives the scores.
    """

    def __init__(self, executor: Any, n_in_flight: int | None, scorer: Scorer) -> None:
        check_executor(executor)
        if scorer.function is None:
            raise InvalidArgumentError(
                "executor scores several sizes at once, but an estimator trains each size from the "
                "one before: leave it out, n_jobs of the estimator gives the threads of each size, "
                "and cross_validate takes an executor for its folds"
            )
        self._executor, self._function = executor, scorer.function
        self._n_in_flight = (
            checks.n_threads(None)
            if n_in_flight is None
            else checks.whole_number("n_in_flight", n_in_flight)
        )
        self._futures: dict[Sizes, Future[Timed]] = {}
        if isinstance(executor, ProcessPoolExecutor):
            _check_pickles(self._function)

    def finished(
        self,
        sizes: Sizes,
        search: Search,
        stops: StopRules,
        known: Mapping[Sizes, Record],
        keep: Callable[[Record], None],
    ) -> Future[Timed]:
        """Wait for a configuration, and have those scored that are likely to follow.

        Parameters
        ----------
        sizes : tuple of int
            What the search has chosen.
        search, stops
            The search so far, and when it stops.
        known : mapping of tuple of int to Record
            Scores whose turn has not come.
        keep : callable
            What takes a score that is finished before its turn.
        """
        self._submit(sizes)
        while not self._futures[sizes].done():
            failed = self._keep_finished(sizes, keep)
            self._look_ahead(search, stops, known)
            # Scores that finished since the look are among them, so that nothing sleeps over one.
            waiting = [future for other, future in self._futures.items() if other not in failed]
            wait(waiting, return_when=FIRST_COMPLETED)
        return self._futures.pop(sizes)

    def cancel(self) -> None:
        """Ask for nothing more; what is running runs out."""
        for future in self._futures.values():
            future.cancel()
        self._futures.clear()

    def _keep_finished(self, sizes: Sizes, keep: Callable[[Record], None]) -> set[Sizes]:
        """Hand on the scores that are there before their turn; give the sizes that failed."""
        failed = set[Sizes]()
        for early in [other for other in self._futures if other != sizes]:
            if not self._futures[early].done():
                continue
            record = _record_of(early, self._futures[early])
            if record is None:
                failed.add(early)
            else:
                del self._futures[early]
                keep(record)
        return failed

    def _look_ahead(self, search: Search, stops: StopRules, known: Mapping[Sizes, Record]) -> None:
        """Fill up what is in flight."""
        n_free = self._n_in_flight - sum(not future.done() for future in self._futures.values())
        if n_free <= 0:
            return
        for sizes in likely_next(search, stops, known, self._n_in_flight):
            if n_free > 0 and sizes not in self._futures and sizes not in known:
                self._submit(sizes)
                n_free -= 1

    def _submit(self, sizes: Sizes) -> None:
        if sizes in self._futures:
            return
        try:
            self._futures[sizes] = self._executor.submit(timed, self._function, sizes)
        except RuntimeError as error:
            raise broken(sizes, error) from error


def likely_next(
    search: Search, stops: StopRules, known: Mapping[Sizes, Record], most: int
) -> list[Sizes]:
    """The next choices, if every score that is not known is that of its best witness."""
    ahead = search.copy()
    found: list[Sizes] = []
    while len(found) < most and stops.reason(ahead, 0.0) is None:
        choice = ahead.choose()
        if choice is None:
            break
        sizes, witness = choice
        found.append(sizes)
        like = next((record for record in ahead.records if record.sizes == witness), None)
        if like is None:
            like = Record(sizes, Score(-math.inf), 1.0)
        try:
            ahead.add(known.get(sizes) or Record(sizes, like.score, like.seconds))
        except ScoreError:
            break
    return found


def timed(function: Callable[..., Any], sizes: Sizes) -> Timed:
    """A score, and the seconds that it took where it was made."""
    start = time.perf_counter()
    return function(*sizes), time.perf_counter() - start


def broken(sizes: Sizes, error: BaseException) -> ScoreError:
    """Exception to raise where the executor, and not a score, has failed."""
    return ScoreError(
        f"the executor broke down over {named(sizes)}: {error!r}; fit again with another one: what "
        "the folder of `checkpoint` holds is not scored again"
    )


BREAKDOWNS = (BrokenExecutor, CancelledError)


def _record_of(sizes: Sizes, future: Future[Timed]) -> Record | None:
    """The score of what is over; None for failures, told in their turn."""
    if future.cancelled() or future.exception() is not None:
        return None
    result, seconds = future.result()
    try:
        return Record(sizes, checked_score(result, sizes), seconds)
    except ScoreError:
        return None


def _check_pickles(function: Callable[..., Any]) -> None:
    try:
        pickle.dumps(function)
    except Exception as error:
        raise InvalidTypeError(
            f"score cannot be sent to processes ({error}): use a function of a module, not one "
            "made inside another or a lambda, or a ThreadPoolExecutor"
        ) from error
