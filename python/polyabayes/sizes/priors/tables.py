"""Any distribution on finitely many sizes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polyabayes._support import checks
from polyabayes._support.arrays import Floats, Integers
from polyabayes.exceptions import InvalidArgumentError, InvalidTypeError
from polyabayes.sizes.priors.base import SizePrior, Sizes, UnivariatePrior

# Tolerance for the sum of the masses of a table, which are then normalised.
_ROUNDING = 1e-9
_LARGEST_TABLE = 10**7


class Table(UnivariatePrior):
    """Any distribution on finitely many sizes.

    Parameters
    ----------
    masses : mapping of int to float, or sequence of float
        Mass of each size; a sequence begins with size 1. The sum must be 1 within 1e-9; masses are
        then normalised.

    {raises: bad parameters}

    Examples
    --------
    >>> prior = pb.priors.Table({2: 0.25, 5: 0.75})
    >>> prior.first, prior.next_size(0, 2)
    ((2,), 5)
    """

    def __init__(self, masses: Mapping[int, float] | Sequence[float] | NDArray[Any]) -> None:
        if isinstance(masses, Mapping):
            table = _dense_table({(size,): mass for size, mass in masses.items()}, 1)
        else:
            table = _checked_masses(masses, 1)
        positive = np.flatnonzero(table) + 1
        self.first, self.last = (int(positive[0]),), int(positive[-1])
        self._masses = table[: self.last]
        self._support = positive
        # Summed from the end, so that small tails keep their digits.
        self._tails = np.append(np.cumsum(self._masses[::-1])[::-1][1:], 0.0)

    def next_size(self, axis: int, size: int) -> int | None:  # noqa: ARG002, D102
        place = int(np.searchsorted(self._support, size, side="right"))
        return int(self._support[place]) if place < len(self._support) else None

    def _log_pmf(self, sizes: Integers) -> Floats:
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self._masses[sizes - 1]))

    def _log_survival(self, sizes: Integers) -> Floats:
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self._tails[sizes - 1]))

    def __repr__(self) -> str:
        masses = {int(size): float(self._masses[size - 1]) for size in self._support}
        return f"Table({masses})"


class JointTable(SizePrior):
    """Any joint distribution on finitely many sizes of several variables.

    Parameters
    ----------
    masses : array, or mapping of tuple of int to float
        ``masses[i, j]`` is the mass of sizes (i + 1, j + 1); the keys of a mapping are sizes. The
        sum must be 1 within 1e-9; masses are then normalised.

    {raises: bad parameters}

    Examples
    --------
    >>> prior = pb.priors.JointTable([[0.5, 0.0], [0.25, 0.25]])
    >>> f"{prior.log_box((2, 1), (2, 2)):.6f}"  # ln 1/2
    '-0.693147'
    """

    def __init__(self, masses: Mapping[Sizes, float] | NDArray[Any] | Sequence[Any]) -> None:
        if isinstance(masses, Mapping):
            n_variables = len(next(iter(masses), ()))
            table = _dense_table(masses, n_variables)
        else:
            table = _checked_masses(masses, max(np.ndim(masses), 1))
        support = np.argwhere(table)
        self._masses = table
        self.n_variables = table.ndim
        self.first = tuple(int(size) for size in support.min(axis=0) + 1)
        self._support = [np.unique(column) + 1 for column in support.T]

    def log_box(self, low: Sizes, high: tuple[float, ...]) -> float:  # noqa: D102
        ends = [None if math.isinf(end) else int(end) for end in high]
        inside = self._masses[tuple(map(slice, (start - 1 for start in low), ends))]
        return math.log(total) if (total := math.fsum(inside.flat)) > 0 else -math.inf

    def next_size(self, axis: int, size: int) -> int | None:  # noqa: D102
        place = int(np.searchsorted(self._support[axis], size, side="right"))
        return int(self._support[axis][place]) if place < len(self._support[axis]) else None

    def __repr__(self) -> str:
        masses = {
            tuple(int(size) for size in at + 1): float(self._masses[tuple(at)])
            for at in np.argwhere(self._masses)
        }
        return f"JointTable({masses})"


def _dense_table(masses: Mapping[Any, float], n_variables: int) -> Floats:
    """Masses by size as an array that starts at size 1."""
    if not masses or not n_variables:
        raise InvalidArgumentError("masses are empty: no size has any mass")
    for sizes in masses:
        if not isinstance(sizes, tuple) or len(sizes) != n_variables:
            raise InvalidTypeError(f"masses: {sizes!r} must be a tuple of {n_variables} sizes")
        for size in sizes:
            checks.whole_number(f"masses: size {sizes[0] if n_variables == 1 else sizes}", size)
    shape = [max(sizes[axis] for sizes in masses) for axis in range(n_variables)]
    if math.prod(shape) > _LARGEST_TABLE:
        raise InvalidArgumentError(
            f"masses reach up to sizes {shape}: more than a table of {_LARGEST_TABLE:,} holds"
        )
    table = np.zeros(shape)
    for sizes, mass in masses.items():
        table[tuple(size - 1 for size in sizes)] = mass
    return _checked_masses(table, n_variables)


def _checked_masses(masses: Any, n_variables: int) -> Floats:
    try:
        table = np.array(masses, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidTypeError(f"masses must hold numbers, got {masses!r}") from error
    if table.ndim != n_variables or not table.size:
        raise InvalidArgumentError(
            f"masses must have {n_variables} dimensions and at least one entry, got shape "
            f"{table.shape}"
        )
    bad = np.argwhere(~(np.isfinite(table) & (table >= 0)))
    if len(bad):
        sizes = tuple(int(size) for size in bad[0] + 1)
        raise InvalidArgumentError(
            f"the mass of size {sizes[0] if n_variables == 1 else sizes} is {table[tuple(bad[0])]}:"
            " masses must be finite and not negative"
        )
    total = math.fsum(table.flat)
    if abs(total - 1.0) > _ROUNDING:
        raise InvalidArgumentError(f"masses sum to {total!r}, not to 1: divide them by their sum")
    return np.asarray(table / total)
