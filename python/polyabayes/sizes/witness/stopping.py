"""When a search stops."""

from __future__ import annotations

import math
from typing import Any, NamedTuple, Self

from polyabayes._support import checks
from polyabayes.sizes.witness.search import Search

_DEFAULT_UNEXPLORED = 1e-6


class StopRules(NamedTuple):
    """The rules that were given; None for the others."""

    max_steps: int | None
    width: float | None
    max_seconds: float | None
    max_unexplored: float | None

    @classmethod
    def checked(cls, max_steps: Any, width: Any, max_seconds: Any, max_unexplored: Any) -> Self:
        """Check the arguments; without any, the prior mass left decides."""
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
        """The rule that ends the search here; None to go on. One step is always taken."""
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
