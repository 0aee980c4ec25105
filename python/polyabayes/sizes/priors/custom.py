"""Any distribution of sizes, given by functions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from polyabayes._support import checks
from polyabayes._support.arrays import Floats, Integers
from polyabayes.exceptions import InvalidArgumentError, InvalidTypeError
from polyabayes.sizes.priors.base import SizePrior, Sizes, UnivariatePrior

# Tolerance for masses that should sum to 1.
_ROUNDING = 1e-9
_SIZES_CHECKED = 20


class Custom(UnivariatePrior):
    """Any distribution of one size, given by two functions.

    Parameters
    ----------
    log_pmf : callable
        ``log_pmf(size)`` is ln P(S = size).
    log_survival : callable
        ``log_survival(size)`` is ln P(S > size), accurate also if this is tiny.
    first : int, default=1
        The smallest size.
    last : int, optional
        The largest size.

    Raises
    ------
    InvalidArgumentError
        If the functions do not sum to 1, or contradict each other, at the first sizes.

    Examples
    --------
    >>> from scipy import stats
    >>> distribution = stats.geom(0.3)
    >>> prior = pb.priors.Custom(distribution.logpmf, distribution.logsf)
    >>> f"{float(prior.log_pmf(1)):.6f}"
    '-1.203973'
    """

    def __init__(
        self,
        log_pmf: Callable[[int], float],
        log_survival: Callable[[int], float],
        *,
        first: int = 1,
        last: int | None = None,
    ) -> None:
        self.first = (checks.whole_number("first", first),)
        self.last = None if last is None else checks.whole_number("last", last, first)
        self._pmf = _LogMass("log_pmf", log_pmf)
        self._survival = _LogMass("log_survival", log_survival)
        above = 0.0
        end = self.first[0] + _SIZES_CHECKED
        for size in range(self.first[0], end if self.last is None else min(end, self.last + 1)):
            together = float(np.logaddexp(self.log_pmf(size), self.log_survival(size)))
            if above > -np.inf and not abs(together - above) <= _ROUNDING:
                raise InvalidArgumentError(
                    f"log_pmf and log_survival do not fit at size {size}: together they give "
                    f"{math.exp(together):.12g}, but the mass from there on is "
                    f"{math.exp(above):.12g}"
                )
            above = float(self.log_survival(size))

    def _log_pmf(self, sizes: Integers) -> Floats:
        return np.array([self._pmf(int(size)) for size in sizes.flat]).reshape(sizes.shape)

    def _log_survival(self, sizes: Integers) -> Floats:
        return np.array([self._survival(int(size)) for size in sizes.flat]).reshape(sizes.shape)

    def __repr__(self) -> str:
        shown = self.log_pmf(self.first[0] + np.arange(_SIZES_CHECKED)).tolist()
        return f"Custom(first={self.first[0]}, last={self.last}, log_pmf={shown})"


class Joint(SizePrior):
    """Any joint distribution of sizes, given by the masses of boxes.

    Parameters
    ----------
    log_box : callable
        ``log_box(low, high)`` is ln P(low <= sizes <= high in every variable), for tuples;
        entries of `high` may be ``math.inf``. It must be accurate also for tiny masses.
    n_variables : int
        Number of sizes.
    first : tuple of int, optional
        The smallest value of each size; default 1.

    Raises
    ------
    InvalidArgumentError
        If the total mass is not 1, or not the sum of two parts.

    Examples
    --------
    >>> distribution = pb.priors.Product(pb.priors.Geometric(0.5), pb.priors.Geometric(0.5))
    >>> prior = pb.priors.Joint(distribution.log_box, 2)
    >>> f"{prior.log_box((1, 1), (1, 1)):.6f}"  # ln 1/4
    '-1.386294'
    """

    def __init__(
        self,
        log_box: Callable[[Sizes, tuple[float, ...]], float],
        n_variables: int,
        *,
        first: Sizes | None = None,
    ) -> None:
        self.n_variables = checks.whole_number("n_variables", n_variables, 1, 1000)
        start = (1,) * self.n_variables if first is None else tuple(first)
        if len(start) != self.n_variables:
            raise InvalidArgumentError(f"first must have {self.n_variables} entries, got {first!r}")
        self.first = tuple(checks.whole_number("first", size) for size in start)
        self._box = _LogMass("log_box", log_box)
        no_end = (math.inf,) * self.n_variables
        parts = [0.0, self.log_box(self.first, no_end)]
        for axis, size in enumerate(self.first):
            high = (*no_end[:axis], float(size), *no_end[axis + 1 :])
            low = (*self.first[:axis], size + 1, *self.first[axis + 1 :])
            two = self.log_box(self.first, high), self.log_box(low, no_end)
            parts.append(float(np.logaddexp(*two)))
        if max(map(abs, parts)) > _ROUNDING:
            raise InvalidArgumentError(
                f"log_box gives all sizes together the masses {np.exp(parts[1:]).tolist()}, whole "
                "and in two parts; all must be 1"
            )

    def log_box(self, low: Sizes, high: tuple[float, ...]) -> float:  # noqa: D102
        return self._box(low, high)

    def next_size(self, axis: int, size: int) -> int | None:  # noqa: D102
        following = max(size + 1, self.first[axis])
        low = (*self.first[:axis], following, *self.first[axis + 1 :])
        has_mass = self.log_box(low, (math.inf,) * self.n_variables) > -math.inf
        return following if has_mass else None

    def __repr__(self) -> str:
        corner = self.log_masses(tuple(size + 2 for size in self.first)).tolist()
        return f"Joint(first={self.first}, log_masses={corner})"


class _LogMass:
    """A function of log masses, with checks and a cache."""

    def __init__(self, name: str, function: Callable[..., float]) -> None:
        if not callable(function):
            raise InvalidTypeError(f"{name} must be a function, got {function!r}")
        self._name, self._function = name, function
        self._known: dict[Any, float] = {}

    def __call__(self, *at: Any) -> float:
        if at not in self._known:
            value = float(self._function(*at))
            if not value <= _ROUNDING:
                where = ", ".join(map(str, at))
                raise InvalidArgumentError(
                    f"{self._name}({where}) is {value}: not a log probability"
                )
            self._known[at] = min(value, 0.0)
        return self._known[at]
