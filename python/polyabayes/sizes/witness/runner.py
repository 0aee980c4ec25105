"""The steps of a search: choose, score, record, until a rule says stop."""

from __future__ import annotations

import time
import warnings

from polyabayes._support.progress import progress_bar
from polyabayes.exceptions import (
    InvalidArgumentError,
    InvalidTypeError,
    ScoreError,
    ScoreWarning,
)
from polyabayes.sizes.witness.adapters import Scorer
from polyabayes.sizes.witness.records import RecordFile
from polyabayes.sizes.witness.scores import Record, Sizes, checked_score, named
from polyabayes.sizes.witness.search import Search
from polyabayes.sizes.witness.stopping import StopRules
from polyabayes.sizes.witness.workers import BREAKDOWNS, Timed, Workers, broken

_MOST_FAILURES_IN_A_ROW = 10

# Errors that every configuration would meet.
_BAD_ARGUMENTS = (InvalidArgumentError, InvalidTypeError)


class Runner:
    """Takes the steps of a search.

    Parameters
    ----------
    search : Search
        Where steps are added.
    scorer : Scorer
        What gives the scores.
    stops : StopRules
        When to stop.
    file : RecordFile, optional
        Where scores are kept.
    workers : Workers, optional
        What gives the scores instead, several at once.
    """

    def __init__(
        self,
        search: Search,
        scorer: Scorer,
        stops: StopRules,
        file: RecordFile | None,
        workers: Workers | None,
    ) -> None:
        self._search, self._scorer, self._stops = search, scorer, stops
        self._file, self._workers = file, workers
        self._known: dict[Sizes, Record] = {}

    def replay(self, records: list[Record]) -> None:
        """Take the steps whose scores are known already, without a look at the rules."""
        self._known = {record.sizes: record for record in records}
        while self._known:
            choice = self._search.choose()
            if choice is None or choice[0] not in self._known:
                break
            self._search.add(self._known.pop(choice[0]))

    def run(self, *, progress: bool) -> str:
        """Take steps until a rule says stop, and say which."""
        search, start = self._search, time.perf_counter()
        try:
            with progress_bar(progress, self._stops.max_steps or 0, "step") as update:
                while True:
                    reason = self._stops.reason(search, time.perf_counter() - start)
                    choice = None if reason else search.choose()
                    if choice is None:
                        break
                    record = self._known.pop(choice[0], None) or self._scored(*choice)
                    search.add(record)
                    if self._file is not None:
                        self._file.append(record)
                    if update is not None:
                        update(len(search.records))
        finally:
            if self._workers is not None:
                self._workers.cancel()
        if search.records and all(record.score is None for record in search.records):
            raise ScoreError(f"no configuration could be scored: {search.records[-1].failure}")
        return reason or "exhausted"

    def _scored(self, sizes: Sizes, witness: Sizes | None) -> Record:
        """Score a configuration; where that fails, say so and go on."""
        start = time.perf_counter()
        future = None
        if self._workers is not None:
            future = self._workers.finished(
                sizes, self._search, self._stops, self._known, self._keep
            )
        try:
            result, seconds = self._score(sizes, witness) if future is None else future.result()
        except BREAKDOWNS as error:
            raise broken(sizes, error) from error
        except Exception as error:
            if not self._search.records and isinstance(error, _BAD_ARGUMENTS):
                raise
            self._warn(sizes, error)
            return Record(sizes, None, time.perf_counter() - start, repr(error))
        return Record(sizes, checked_score(result, sizes), seconds)

    def _score(self, sizes: Sizes, witness: Sizes | None) -> Timed:
        start = time.perf_counter()
        best = next((record for record in self._search.records if record.sizes == witness), None)
        return self._scorer.score(sizes, best), time.perf_counter() - start

    def _keep(self, record: Record) -> None:
        """Take a score before its turn."""
        self._known[record.sizes] = record
        if self._file is not None:
            self._file.append(record)

    def _warn(self, sizes: Sizes, error: Exception) -> None:
        """Warn of a failure; raise after too many in a row."""
        failures = [record.score is None for record in self._search.records]
        if len(failures) + 1 >= _MOST_FAILURES_IN_A_ROW and all(
            failures[1 - _MOST_FAILURES_IN_A_ROW :]
        ):
            raise ScoreError(
                f"{_MOST_FAILURES_IN_A_ROW} configurations in a row could not be scored, the "
                f"last {named(sizes)}: {error!r}"
            ) from error
        warnings.warn(
            f"{named(sizes)} could not be scored: {error!r}; its prior mass stays unexplored",
            ScoreWarning,
            stacklevel=5,
        )
