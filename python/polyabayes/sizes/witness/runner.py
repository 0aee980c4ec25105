"""Steps of a search: choose, score, record, until a stopping rule applies.

With an executor, workers score configurations ahead of their turn, but the search takes the same
steps as without: it waits for the score that it has chosen. With one variable, the next sizes are
known. With several, they are a guess that treats unscored configurations as equal to their best
witness; a wrong guess may cost an unneeded score.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Executor
from contextlib import ExitStack
from typing import Any, NamedTuple, Self

from polyabayes._support import checks
from polyabayes._support.progress import progress_bar
from polyabayes._support.state_folder import StateFolder
from polyabayes._support.warnings import warn
from polyabayes.exceptions import InvalidArgumentError, InvalidTypeError, ScoreError, ScoreWarning
from polyabayes.scale.executors import Workers, sharing
from polyabayes.sizes.scores import Record, Score, Sizes, checked_score, named
from polyabayes.sizes.witness.adapters import Scorer
from polyabayes.sizes.witness.search import Search

_MOST_FAILURES_IN_A_ROW = 10

# Errors that would occur for every configuration.
_BAD_ARGUMENTS = (InvalidArgumentError, InvalidTypeError)

_DEFAULT_UNEXPLORED = 1e-6


class StopRules(NamedTuple):
    """Stopping rules; None if not given."""

    max_steps: int | None
    width: float | None
    max_seconds: float | None
    max_unexplored: float | None

    @classmethod
    def checked(cls, max_steps: Any, width: Any, max_seconds: Any, max_unexplored: Any) -> Self:
        """Check the arguments; without any, the unexplored prior mass decides."""
        if max_steps is not None:
            max_steps = checks.whole_number("max_steps", max_steps)
        numbers = {"width": width, "max_seconds": max_seconds, "max_unexplored": max_unexplored}
        for name, value in numbers.items():
            if value is not None:
                numbers[name] = checks.positive_number(name, value)
        rules = cls(max_steps, **numbers)
        if all(rule is None for rule in rules):
            return rules._replace(max_unexplored=_DEFAULT_UNEXPLORED)
        return rules

    def reason(self, search: Search, seconds: float) -> str | None:
        """The rule that ends the search now, or None. There is always one step."""
        if not search.bounds:
            return None
        last = search.bounds[-1]
        if last.log_h == -math.inf:
            return "exhausted"
        if self.max_steps is not None and len(search.records) >= self.max_steps:
            return "max_steps"
        if self.width is not None and last.upper - last.lower <= self.width:
            return "width"
        if self.max_unexplored is not None and last.log_h <= math.log(self.max_unexplored):
            return "max_unexplored"
        if self.max_seconds is not None and seconds >= self.max_seconds:
            return "max_seconds"
        return None


class Outcome(NamedTuple):
    """Result or failure of a score, and its seconds."""

    result: Any
    seconds: float
    error: Exception | None


class Runner:
    """Runs the steps of a search.

    The folder keeps scores; the executor computes `n_in_flight` of them at once.
    """

    def __init__(
        self,
        search: Search,
        scorer: Scorer,
        stops: StopRules,
        folder: StateFolder | None,
        executor: Executor | None,
        n_in_flight: int,
    ) -> None:
        self._search, self._scorer, self._stops = search, scorer, stops
        self._folder, self._executor, self._n_in_flight = folder, executor, n_in_flight
        self._workers: Workers | None = None
        self._asked = list[Sizes]()
        nothing = list[tuple[int, Outcome]]()
        self._arriving: Generator[tuple[int, Outcome]] = (pair for pair in nothing)
        self._known: dict[Sizes, Record] = {}
        self._failed: dict[Sizes, Outcome] = {}

    def run(self, *, progress: bool) -> str:
        """Take steps until a stopping rule applies, and return its name."""
        search, start = self._search, time.perf_counter()
        with ExitStack() as stack:
            if self._executor is not None:
                function = self._scorer.function
                self._workers = stack.enter_context(sharing(self._executor, function))
                # Unneeded scores are cancelled.
                stack.callback(lambda: self._arriving.close())
            update = stack.enter_context(progress_bar(progress, self._stops.max_steps or 0, "step"))
            while True:
                reason = self._stops.reason(search, time.perf_counter() - start)
                choice = None if reason else search.choose()
                if choice is None:
                    break
                search.add(self._record(*choice))
                if update is not None:
                    update(len(search.records))
        if search.records and all(record.score is None for record in search.records):
            raise ScoreError(f"no configuration could be scored: {search.records[-1].failure}")
        return reason or "exhausted"

    def _record(self, sizes: Sizes, witness: Sizes | None) -> Record:
        """The record of a configuration, known or new."""
        if self._is_known(sizes):
            return self._known.pop(sizes)
        if self._workers is None:
            best = self._search.record_of(witness)
            outcome: Outcome | None = _outcome(lambda: self._scorer.score(sizes, best))
        else:
            outcome = self._wait(sizes)
        if outcome is None:
            return self._known.pop(sizes)
        if outcome.error is not None:
            if not self._search.records and isinstance(outcome.error, _BAD_ARGUMENTS):
                raise outcome.error
            self._warn(sizes, outcome.error)
            return self._keep(Record(sizes, None, outcome.seconds, repr(outcome.error)))
        return self._keep(Record(sizes, checked_score(outcome.result, sizes), outcome.seconds))

    def _is_known(self, sizes: Sizes) -> bool:
        """Whether there is a record, from a worker or from the folder."""
        if sizes not in self._known and self._folder is not None:
            record = _read(self._folder, sizes)
            if record is not None and self._scorer.can_resume(record):
                self._known[sizes] = record
        return sizes in self._known

    def _keep(self, record: Record) -> Record:
        if self._folder is not None:
            header = {**vars(record), "score": record.score and list(record.score)}
            self._folder.keep(
                _file(record.sizes), header, {}, f"the score of {named(record.sizes)}"
            )
        return record

    def _wait(self, sizes: Sizes) -> Outcome | None:
        """Wait for the score of a configuration; None if its record is already known."""
        assert self._workers is not None
        while sizes not in self._known and sizes not in self._failed:
            arrived = next(self._arriving, None)
            if arrived is None:
                self._asked.clear()
                self._arriving = self._workers.run(
                    _scored,
                    self._ahead(),
                    lambda number: named(self._asked[number]),
                    n_in_flight=self._n_in_flight,
                )
                continue
            self._take(self._asked[arrived[0]], arrived[1])
        return self._failed.pop(sizes, None)

    def _take(self, sizes: Sizes, outcome: Outcome) -> None:
        """Store the outcome of a worker; errors are raised when its step comes."""
        try:
            if outcome.error is not None:
                raise ScoreError from outcome.error
            record = Record(sizes, checked_score(outcome.result, sizes), outcome.seconds)
        except ScoreError:
            self._failed[sizes] = outcome
        else:
            self._known[sizes] = self._keep(record)

    def _ahead(self) -> Iterator[tuple[Sizes]]:
        """Configurations to score ahead, most likely first."""
        while (wanted := self._likely_next()) is not None:
            if not self._is_known(wanted):
                self._asked.append(wanted)
                yield (wanted,)

    def _likely_next(self) -> Sizes | None:
        """The next unscored choice, if unknown scores equal those of their best witnesses."""
        ahead, asked = self._search.copy(), {*self._asked, *self._failed}
        while self._stops.reason(ahead, 0.0) is None and (choice := ahead.choose()) is not None:
            sizes, witness = choice
            if sizes not in self._known and sizes not in asked:
                return sizes
            like = ahead.record_of(witness) or Record(sizes, Score(-math.inf), 1.0)
            try:
                ahead.add(self._known.get(sizes) or Record(sizes, like.score, like.seconds))
            except ScoreError:
                break
        return None

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
        warn(
            f"{named(sizes)} could not be scored: {error!r}; its prior mass remains unexplored",
            ScoreWarning,
        )


def _scored(function: Callable[..., Any], sizes: Sizes) -> Outcome:
    """Compute a score on a worker."""
    return _outcome(lambda: function(*sizes))


def _outcome(call: Callable[[], Any]) -> Outcome:
    start = time.perf_counter()
    try:
        return Outcome(call(), time.perf_counter() - start, None)
    except Exception as error:
        return Outcome(None, time.perf_counter() - start, error)


def _file(sizes: Sizes) -> str:
    return f"score-{'-'.join(map(str, sizes))}.safetensors"


def _read(folder: StateFolder, sizes: Sizes) -> Record | None:
    """The record of a configuration in a folder, if it exists and is complete."""
    found = folder.read(_file(sizes))
    if found is None:
        return None
    header = found[0]
    try:
        score = None if header["score"] is None else checked_score(tuple(header["score"]), sizes)
        record = Record(sizes, score, float(header["seconds"]), header["failure"])
        is_other = list(sizes) != header["sizes"]
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:
        folder.damaged(f"{folder.path / _file(sizes)} holds no record: {error!r}")
        return None
    return None if is_other else record
