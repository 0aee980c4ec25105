"""Methods of allocation models, and their options."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

import numpy as np

from polyabayes._support import checks
from polyabayes._support.output.progress import progress_bar
from polyabayes._support.random import RandomState, draw_seed
from polyabayes.exceptions import InvalidArgumentError, InvalidTypeError, argument
from polyabayes.scale.executors import threads_of_task

# Defaults of an ascent: random starts, and the relative gain at convergence.
_RESTARTS = 10
TOL = 1e-9

_LARGEST = 10**9
# Integer options, by their least value.
_POSITIVE = ("n_particles", "n_samples", "n_replicates", "max_iter", "n_restarts")
_COUNTS = dict.fromkeys(_POSITIVE, 1) | {"burn_in": 0, "n_sweeps": 0}
_RESAMPLING = ("systematic", "stratified", "residual", "multinomial")


class Method(NamedTuple):
    """Options of a method, and properties of its value."""

    options: tuple[str, ...]
    is_lower_bound: bool = False
    is_unbiased: bool = True


_FILTERING = ("n_particles", "n_replicates", "resampling", "resample_below", "order")

METHODS = {
    "auto": Method(("n_samples", *_FILTERING, "n_sweeps", "budget", "target_std_error")),
    "exact": Method(("budget",)),
    "smc": Method((*_FILTERING, "n_sweeps")),
    "tempered": Method(("n_samples", "n_replicates", "target_std_error"), is_unbiased=False),
    "vb": Method(("max_iter", "tol", "n_restarts"), is_lower_bound=True, is_unbiased=False),
}


# Methods that decompose a tensor.
_ASCENT = ("max_iter", "tol", "n_restarts")
DECOMPOSITIONS = {
    "vb": Method(_ASCENT, is_lower_bound=True),
    "em": Method(_ASCENT),
    "dual-em": Method(_ASCENT),
    "icm": Method(_ASCENT),
    "ml": Method(_ASCENT),
    "gibbs": Method(("max_iter", "burn_in")),
    "smc": Method(("n_particles",)),
    "tempered": METHODS["tempered"],
}


class Run(NamedTuple):
    """Seed, threads and progress of a run."""

    seed: int
    n_jobs: int
    progress: bool

    @classmethod
    def of(
        cls, random_state: RandomState, n_jobs: int | None, progress: bool, executor: Any = None
    ) -> Run:
        """Make a run from the arguments of a public function."""
        shows = checks.flag("progress", progress)
        return cls(draw_seed(random_state), threads_of_task(executor, n_jobs), shows)

    @contextmanager
    def shown(self, total: int | None, unit: str) -> Iterator[dict[str, Any]]:
        """Keywords of the compiled core, with a progress bar if requested."""
        with progress_bar(self.progress, total, unit) as update:
            yield {"seed": self.seed, "n_jobs": self.n_jobs, "progress": update}


@dataclass(frozen=True)
class Options:
    """A method and its options; a default value leaves the choice to the method."""

    method: str = "auto"
    n_particles: int | None = None
    n_samples: int | None = None
    n_replicates: int | None = None
    budget: float | None = None
    max_iter: int | None = None
    tol: float | None = None
    n_restarts: int | None = None
    burn_in: int | None = None
    resampling: str = "systematic"
    resample_below: float = 0.5
    order: str | Sequence[int] = "random"
    n_sweeps: int | None = None
    target_std_error: float | None = None

    @classmethod
    def of(cls, **given: Any) -> Options:
        """Make options by name; None means the method's default; unknown names are refused."""
        known = cls.names()
        for name in given:
            if name not in ("method", *known):
                raise InvalidTypeError(
                    f"no method has an option {name!r}; the options are {', '.join(known)}"
                )
        if "method" in given:
            checks.text("method", given["method"])
        return cls(**{name: value for name, value in given.items() if value is not None})

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """Names of all options."""
        return tuple(field.name for field in fields(cls)[1:])

    def given(self) -> list[str]:
        """Names of the options that differ from their defaults."""
        values = [(field, getattr(self, field.name)) for field in fields(self)[1:]]
        return [
            field.name
            for field, value in values
            if not (isinstance(value, type(field.default)) and value == field.default)
        ]

    @contextmanager
    def ascending(self, run: Run) -> Iterator[dict[str, Any]]:
        """Keywords of the compiled core for an ascent, and a progress bar."""
        n_restarts = self.n_restarts or _RESTARTS
        with run.shown(n_restarts, "restart") as running:
            limits = {"max_iter": self.max_iter or sys.maxsize, "tolerance": self.tol or TOL}
            yield {**limits, "n_restarts": n_restarts, **running}

    def samplers(self) -> list[str]:
        """Samplers that take all given options; the budget is for exact sums only."""
        wanted = set(self.given()) - {"budget"}
        return [name for name in ("smc", "tempered") if wanted <= set(METHODS[name].options)]

    def checked(self, n_cells: int = 0, methods: Mapping[str, Method] | None = None) -> Options:
        """Refuse values out of range, and options that the method does not take.

        `order` may be a permutation of `n_cells` cells. `methods` are by default those of the
        evidence.
        """
        known = METHODS if methods is None else methods
        method, takes = self.method, known[self.method].options
        for name in self.given():
            if name not in takes:
                others = [repr(other) for other, found in known.items() if name in found.options]
                raise InvalidArgumentError(
                    f"{argument('method')} {method!r} takes no {argument(name)}, which is for "
                    f"{', '.join(others) or 'no method here'}; its options: "
                    f"{', '.join(map(argument, takes))}",
                    argument=name,
                )
        if known is METHODS and method == "auto" and not self.samplers():
            methods_with = {
                name: ", ".join(repr(n) for n, m in METHODS.items() if name in m.options)
                for name in self.given()
            }
            told = [f"`{name}` is of {methods_with[name]}" for name in self.given()]
            raise InvalidArgumentError(
                "method 'auto' chooses from 'smc' and 'tempered', neither of which takes all of "
                f"these options: {'; '.join(told)}"
            )
        for name, least in _COUNTS.items():
            if getattr(self, name) is not None:
                checks.whole_number(name, getattr(self, name), least, _LARGEST)
        for name in ("budget", "tol", "target_std_error"):
            if getattr(self, name) is not None:
                checks.positive_number(name, getattr(self, name))
        checks.choice("resampling", self.resampling, _RESAMPLING)
        below = checks.number("resample_below", self.resample_below)
        if not 0 <= below <= 1:
            raise InvalidArgumentError(f"resample_below must be between 0 and 1, got {below}")
        return replace(self, order=_checked_order(self.order, n_cells))


def _checked_order(order: Any, n_cells: int) -> str | tuple[int, ...]:
    if isinstance(order, str):
        return checks.choice("order", order, ("random", "sorted"))
    cells = np.asarray(order)
    if cells.ndim != 1 or cells.dtype.kind not in "iu":
        if len(cells.shape) == 1 and not n_cells:
            return ()
        raise InvalidTypeError(
            "order must be 'random', 'sorted' or a permutation of the numbers of the cells, "
            f"got {order!r}"
        )
    if not np.array_equal(np.sort(cells), np.arange(n_cells)):
        raise InvalidArgumentError(
            f"order must hold each of the {n_cells} cells of the data once, counted from 0"
        )
    return tuple(cells.tolist())
