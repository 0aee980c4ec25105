"""The methods that find the evidence of count tensors, and their options."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np

from polyabayes._support import checks
from polyabayes.exceptions import InvalidArgumentError, InvalidTypeError, argument

__all__ = ["METHODS", "REPLICATES", "RESTARTS", "Options"]

# Replicates of a sampler, and random starts of an ascent.
REPLICATES = 4
RESTARTS = 10

_LARGEST = 10**9
_RESAMPLING = ("systematic", "stratified", "residual", "multinomial")


class Method(NamedTuple):
    """The options that a method takes, and of what kind its value is."""

    options: tuple[str, ...]
    is_lower_bound: bool = False
    is_unbiased: bool = True


_SIZES = ("n_particles", "n_samples", "n_replicates")

_FILTERING = ("n_particles", "n_replicates", "resampling", "resample_below", "order")

METHODS = {
    "auto": Method((*_SIZES, *_FILTERING[2:], "budget", "target_std_error")),
    "exact": Method(("budget",)),
    "smc": Method(_FILTERING),
    "smc-lookahead": Method(_FILTERING),
    "tempered": Method(("n_samples", "n_replicates", "target_std_error"), is_unbiased=False),
    "annealed": Method(_SIZES),
    "vb": Method(("n_samples", "n_replicates"), is_lower_bound=True, is_unbiased=False),
}


@dataclass(frozen=True)
class Options:
    """A method and its options; None, or the value here, leaves the choice to the method."""

    method: str = "auto"
    n_particles: int | None = None
    n_samples: int | None = None
    n_replicates: int | None = None
    resampling: str = "systematic"
    resample_below: float = 0.5
    order: str | Sequence[int] = "random"
    budget: float | None = None
    target_std_error: float | None = None

    def given(self) -> list[str]:
        """Names of the options that are not left to the method."""
        values = [(field, getattr(self, field.name)) for field in fields(self)]
        return [
            field.name
            for field, value in values
            if field.name != "method"
            and not (isinstance(value, type(field.default)) and value == field.default)
        ]

    def samplers(self) -> list[str]:
        """Samplers that take all that is given; the budget is that of an exact sum."""
        wanted = set(self.given()) - {"budget"}
        return [name for name in ("smc", "tempered") if wanted <= set(METHODS[name].options)]

    def checked(self, n_cells: int) -> Options:
        """Refuse values out of range, and options that the method does not take."""
        method, takes = self.method, METHODS[self.method].options
        for name in self.given():
            if name not in takes:
                raise InvalidArgumentError(
                    f"{argument('method')} {method!r} takes no {argument(name)}, which is of "
                    f"{_methods_with(name)}; its options: {', '.join(map(argument, takes))}",
                    argument=name,
                )
        if method == "auto" and not self.samplers():
            told = [f"`{name}` is of {_methods_with(name)}" for name in self.given()]
            raise InvalidArgumentError(
                "method 'auto' chooses from 'smc' and 'tempered', neither of which takes all of "
                f"these options: {'; '.join(told)}"
            )
        for name in ("n_particles", "n_samples", "n_replicates"):
            if getattr(self, name) is not None:
                checks.whole_number(name, getattr(self, name), 1, _LARGEST)
        for name in ("budget", "target_std_error"):
            if getattr(self, name) is not None:
                checks.positive_number(name, getattr(self, name))
        checks.choice("resampling", self.resampling, _RESAMPLING)
        below: Any = self.resample_below
        if isinstance(below, bool) or not isinstance(below, (int, float)):
            raise InvalidTypeError(f"resample_below must be a number, got {below!r}")
        if not 0 <= below <= 1:
            raise InvalidArgumentError(f"resample_below must be between 0 and 1, got {below}")
        return Options(**{**vars(self), "order": _checked_order(self.order, n_cells)})


def _methods_with(option: str) -> str:
    return ", ".join(repr(name) for name, method in METHODS.items() if option in method.options)


def _checked_order(order: Any, n_cells: int) -> str | tuple[int, ...]:
    if isinstance(order, str):
        return checks.choice("order", order, ("random", "sorted"))
    cells = np.asarray(order)
    if cells.ndim != 1 or cells.dtype.kind not in "iu":
        if len(cells.shape) == 1 and not n_cells:
            return ()
        raise InvalidTypeError(
            "order must be 'random', 'sorted' or the numbers of the cells in another order, "
            f"got {order!r}"
        )
    if not np.array_equal(np.sort(cells), np.arange(n_cells)):
        raise InvalidArgumentError(
            f"order must hold each of the {n_cells} cells of the data once, counted from 0"
        )
    return tuple(cells.tolist())
