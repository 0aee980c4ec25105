"""Steps of a search: choose, score, record, until a stopping rule applies."""

import math
import time
from typing import Any, NamedTuple, Self

from polyabayes._support import checks
from polyabayes._support.output.progress import progress_bar
from polyabayes._support.storage.state_folder import StateFolder
from polyabayes._support.warnings import warn
from polyabayes.exceptions import InvalidArgumentError, InvalidTypeError, ScoreError, ScoreWarning
from polyabayes.sizes.scores import Record, Sizes, checked_score, named
from polyabayes.sizes.witness.adapters import Scorer
from polyabayes.sizes.witness.search import Search

_MOST_FAILURES = 10

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


class Runner:
    """Runs the steps of a search; the folder keeps scores."""

    def __init__(
        self, search: Search, scorer: Scorer, stops: StopRules, folder: StateFolder | None
    ) -> None:
        self._search, self._scorer, self._stops = search, scorer, stops
        self._folder = folder

    def run(self, *, progress: bool) -> str:
        """Take steps until a stopping rule applies, and return its name."""
        search, start = self._search, time.perf_counter()
        with progress_bar(progress, self._stops.max_steps or 0, "step") as update:
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
        """The record of a configuration, from the folder or new."""
        if (known := self._known(sizes)) is not None:
            return known
        best = self._search.record_of(witness)
        start = time.perf_counter()
        try:
            result = self._scorer.score(sizes, best)
        except Exception as error:
            if not self._search.records and isinstance(error, _BAD_ARGUMENTS):
                raise
            seconds = time.perf_counter() - start
            self._warn(sizes, error)
            return self._keep(Record(sizes, None, seconds, repr(error)))
        seconds = time.perf_counter() - start
        return self._keep(Record(sizes, checked_score(result, sizes), seconds))

    def _known(self, sizes: Sizes) -> Record | None:
        """The record of the folder, if it can go on from there."""
        record = None if self._folder is None else _read(self._folder, sizes)
        return record if record is not None and self._scorer.can_resume(record) else None

    def _keep(self, record: Record) -> Record:
        if self._folder is not None:
            header = {**vars(record), "score": record.score and list(record.score)}
            self._folder.keep(
                _file(record.sizes), header, {}, f"the score of {named(record.sizes)}"
            )
        return record

    def _warn(self, sizes: Sizes, error: Exception) -> None:
        """Warn of a failure; raise after too many in a row."""
        failures = [record.score is None for record in self._search.records]
        if len(failures) + 1 >= _MOST_FAILURES and all(failures[1 - _MOST_FAILURES :]):
            raise ScoreError(
                f"{_MOST_FAILURES} configurations in a row could not be scored, the "
                f"last {named(sizes)}: {error!r}"
            ) from error
        warn(
            f"{named(sizes)} could not be scored: {error!r}; its prior mass remains unexplored",
            ScoreWarning,
        )


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
