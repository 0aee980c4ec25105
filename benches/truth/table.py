"""Estimates against the truth, in standard errors, one row a kind."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from benches.record import Table
from benches.truth.coverage import FAR

COLUMNS = {
    "kind": "s", "n": "d", "mean z": "+.2f", "sd": ".2f", "within 1.96": ".1%",
    "beyond 4": "d", "without a warning": "d", "worst z": "+.1f", "median ±": ".3g", "s": ".0f",
}  # fmt: skip


class Outcome(NamedTuple):
    """An estimate minus the truth, the error of both together, and whether the package warned."""

    gap: float
    error: float
    warned: bool = False

    @property
    def z(self) -> float:
        """Distance in errors; exact values, without any, may differ by rounding."""
        return self.gap / max(self.error, 1e-9)


# Draws so many problems, solves them, and tells how far the answers are from the truth.
Simulator = Callable[[np.random.Generator, int], Iterator[Outcome]]


def add(table: Table, kind: str, outcomes: list[Outcome], seconds: float) -> None:
    """A row of one kind."""
    z = np.array([outcome.z for outcome in outcomes])
    is_far = np.abs(z) > FAR
    warned = np.array([outcome.warned for outcome in outcomes])
    table.add(
        *(kind, len(z), z.mean(), z.std(), (np.abs(z) < 1.96).mean(), is_far.sum()),
        *((is_far & ~warned).sum(), z[np.abs(z).argmax()]),
        *(np.median([outcome.error for outcome in outcomes]), seconds),
    )
