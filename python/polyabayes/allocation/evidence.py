"""Evidence of a count tensor: what it is, and the methods that find it."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

from polyabayes import _core
from polyabayes._support import checks
from polyabayes._support.progress import progress_bar
from polyabayes._support.random import RandomState, draw_seed
from polyabayes.allocation.layout import Layout
from polyabayes.allocation.memory import (
    LANES,
    MODES,
    check_memory,
    n_chains_of_ladders,
)
from polyabayes.exceptions import (
    BudgetExceededError,
    Interrupted,
    InvalidArgumentError,
    InvalidTypeError,
    UnreliableErrorWarning,
    argument,
)

__all__ = [
    "AUTO_BUDGET",
    "BUDGET",
    "METHODS",
    "PARTICLES",
    "Estimate",
    "Evidence",
    "Filter",
    "Options",
    "Round",
    "Run",
    "find_evidence",
]

# The share of log-normal replicates that is effective when their logs deviate by 1.
_RELIABLE_SHARE = 0.37

# Standard error of one such replicate; a few of them hardly show how far they may be apart.
_RELIABLE_ERROR = math.expm1(1) ** 0.5

# Multiply-adds that an exact sum may take.
BUDGET = 1e9

# The same where it is only tried: a fraction of a second.
AUTO_BUDGET = 1e7

# Of a replicate of a filter, where nothing else is asked for.
PARTICLES = 1000

# Replicates, where nothing else is asked for.
_REPLICATES = 4

# Standard error, in nats, at which tempering ends where nothing else is asked for.
TARGET_STD_ERROR = 0.5

# Particles of a replicate by which a method is chosen, at most.
_PILOT = 256

# Share of the evidence that totals may have without a word.
_LEAST_DOUBTED = 0.01

_LARGEST = 10**9
_RESAMPLING = ("systematic", "stratified", "residual", "multinomial")


class Round(NamedTuple):
    """One round of tempering.

    Attributes
    ----------
    n_scans : int
        Sweeps of every chain.
    values : tuple of float
        ln of the evidence by each replicate.
    sides : tuple of float
        The same by stepping stones from the prior to the posterior, and back: means over the
        replicates. Two estimates, not bounds.
    round_trips : int
        Chains that went from the prior to the posterior and back, in all replicates.
    barrier : float
        Sum of the rejections of all swaps along a ladder.
    """

    n_scans: int
    values: tuple[float, ...]
    sides: tuple[float, float]
    round_trips: int
    barrier: float


@dataclass(frozen=True, repr=False)
class Evidence:
    """Evidence of a count tensor under an allocation model, in nats.

    Attributes
    ----------
    value : float
        ln of the evidence: tables, intensity and hidden nodes are integrated out.
    std_error : float
        Standard error of `value`; 0 where exact, NaN for a bound and for one replicate. By
        ``"smc"`` the larger of two: from the replicates, and from the descent of their particles
        (Lee & Whiteley 2018).
    method : str
        The method that gave it: exact, too, where there is nothing hidden to sum out.
    given_total : bool
        Whether the value is conditional on the total of the tensor.
    log_probability_of_total : float
        ln P(T), which `value` includes unless `given_total`; NaN for an empty tensor under a
        model without a rate, and where cells are missing.
    n_tokens : int
        T, that of the observed cells if others are missing.
    is_unbiased : bool
        Whether the evidence itself is estimated without bias: its ln is then low by half its
        variance.
    is_lower_bound : bool
        Whether the value is a bound: the evidence is at least that.
    n_replicates : int
        Independent replicates behind the error; 0 where there is none.
    n_eff : float
        Effective number of replicates; ``inf`` where exact.
    seconds : float
        Time that it took.
    log_remainder : float
        With missing cells, ln of what totals beyond the last that was summed would add, about (see
        :class:`MissingCells`); ``-inf`` where none was left out.
    rounds : tuple of Round
        Rounds of ``"tempered"``, each twice as long as the one before; the last is the estimate.
    converged : bool
        Whether the sides, the rounds and the replicates of ``"tempered"`` agree within the standard
        error asked for; True by any other method.
    """

    value: float
    std_error: float
    method: str
    given_total: bool
    log_probability_of_total: float
    n_tokens: int
    is_unbiased: bool
    is_lower_bound: bool
    n_replicates: int
    n_eff: float
    seconds: float
    log_remainder: float = -np.inf
    rounds: tuple[Round, ...] = ()
    converged: bool = True

    @property
    def n_rounds(self) -> int:
        """Rounds of tempering; 0 by any other method."""
        return len(self.rounds)

    @property
    def sides(self) -> tuple[float, float] | None:
        """Estimates of the last round in opposite directions, not bounds; None without rounds."""
        return self.rounds[-1].sides if self.rounds else None

    @property
    def round_trips(self) -> int:
        """Ways of chains from the prior to the posterior and back: independent visits, in all."""
        return sum(one.round_trips for one in self.rounds)

    @property
    def barrier(self) -> float:
        """Sum of the rejections along a ladder in the last round; NaN without rounds."""
        return self.rounds[-1].barrier if self.rounds else np.nan

    @property
    def doubt(self) -> str:
        """Why the value or its error cannot be trusted, if so."""
        left = math.exp(min(self.log_remainder - self.value, 0.0))
        if left > _LEAST_DOUBTED:
            return (
                f"totals beyond the last would add about {left:.1%} of the evidence found, or "
                f"more; raise {argument('max_total')}"
            )
        if self.n_replicates == 1:
            return f"one replicate does not say how far it is off; raise {argument('n_replicates')}"
        if self.rounds:
            return "" if self.converged else self._unsettled()
        if not _is_doubtful(self.std_error, self.n_eff, self.n_replicates):
            return ""
        sizes = [name for name in METHODS[self.method].options if name in _SIZES[:2]]
        return (
            f"{self.n_replicates} replicates tell too little for their standard error to be "
            f"trusted; raise {' or '.join(sizes)}"
        )

    def _unsettled(self) -> str:
        """Why the rounds of tempering have not come to an end."""
        forward, backward = self.rounds[-1].sides
        moved = ""
        if self.n_rounds > 1:
            last, before = (np.mean(one.values) for one in self.rounds[:-3:-1])
            moved = f", the last round moved it by {last - before:+.2f}"
        return (
            f"tempering has not settled to the standard error asked for: its sides are "
            f"{forward - backward:+.2f} nats apart{moved}, with {self.round_trips} round trips; "
            f"raise {argument('n_samples')}"
        )

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Interval that holds the true value with probability `level`.

        By Student's law with a degree of freedom less than there are replicates. A lower bound
        has no upper end.
        """
        checks.share("level", level)
        if self.is_lower_bound:
            return self.value, np.inf
        if not self.n_replicates:
            return self.value, self.value
        n_free = max(self.n_replicates - 1, 1)
        half_width = float(stats.t.ppf(0.5 + level / 2, n_free)) * self.std_error
        return self.value - half_width, self.value + half_width

    def __repr__(self) -> str:
        given = ", given the total" if self.given_total else ""
        if self.is_lower_bound:
            return f"<Evidence: at least {self.value:z,.4f} nats ({self.method}{given})>"
        if not self.n_replicates:
            return f"<Evidence: {self.value:z,.6f} nats ({self.method}{given})>"
        if self.n_replicates == 1:
            return f"<Evidence: {self.value:z,.4f} nats ({self.method}, one replicate{given})>"
        return (
            f"<Evidence: {self.value:z,.4f} +- {self.std_error:.2g} nats "
            f"({self.method}, {self.n_replicates} replicates{given})>"
        )


def _is_doubtful(std_error: float, n_eff: float, n_replicates: int) -> bool:
    few = n_eff < _RELIABLE_SHARE * n_replicates
    return few or std_error > _RELIABLE_ERROR / max(n_replicates, 1) ** 0.5


@dataclass(frozen=True)
class Options:
    """Options of the methods; None, or the value here, leaves the choice to the method."""

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
            if not (isinstance(value, type(field.default)) and value == field.default)
        ]

    def samplers(self) -> list[str]:
        """The methods that ``"auto"`` chooses from where an exact sum is not quick.

        They take all that is given; the budget is that of the exact sum.
        """
        wanted = set(self.given()) - {"budget"}
        return [name for name in ("smc", "tempered") if wanted <= set(METHODS[name].options)]

    def checked(self, method: str, n_cells: int) -> Options:
        """Refuse values out of range, and options that `method` does not take."""
        takes = METHODS[method].options
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


class Filter(NamedTuple):
    """Options of the particle filter, as the compiled core reads them."""

    n_particles: int
    threshold: float
    resampling: str
    order: str | Sequence[int]


class Run(NamedTuple):
    """What a method needs beside its options."""

    seed: int
    n_jobs: int
    progress: bool


class Estimate(NamedTuple):
    """ln of a probability given the total, and how well it is known."""

    ln_value: float
    std_error: float
    n_eff: float
    n_replicates: int
    rounds: tuple[Round, ...] = ()
    converged: bool = True
    interruption: BaseException | None = None

    @property
    def is_doubtful(self) -> bool:
        """Whether its replicates tell too little for their standard error to be trusted."""
        return _is_doubtful(self.std_error, self.n_eff, self.n_replicates)

    @classmethod
    def of(cls, found: _core.AllocationEstimate) -> Estimate:
        """What the compiled core has found; one replicate does not say how far it is off."""
        std_error = np.nan if found.n_replicates == 1 else found.std_error
        return cls(found.ln_value, std_error, found.n_eff, found.n_replicates)


class Method(NamedTuple):
    """A method by its function, which also names the method that it came to, and its options."""

    find: Callable[[_core.Allocation, Options, Run], tuple[str, Estimate]]
    options: tuple[str, ...]
    is_lower_bound: bool = False
    is_unbiased: bool = True


def _exact(core: _core.Allocation, options: Options, _run: Run) -> tuple[str, Estimate]:
    return "exact", Estimate.of(core.exact(budget=options.budget or BUDGET))


def _smc(
    core: _core.Allocation, options: Options, run: Run, *, lookahead: bool = False
) -> tuple[str, Estimate]:
    if lookahead and core.n_cliques > 1:
        raise InvalidArgumentError(
            "method 'smc-lookahead' needs all hidden nodes in one clique, and those of the graph "
            f"are summed out in {core.n_cliques}; use {argument('method', 'tempered')}"
        )
    n_replicates, n_particles = (
        options.n_replicates or _REPLICATES,
        options.n_particles or PARTICLES,
    )
    check_memory(
        core,
        min(n_replicates, run.n_jobs),
        n_particles=n_particles,
        n_chains=LANES if lookahead else 0,
        n_shares=LANES * core.n_cells * core.n_states if lookahead else 0,
    )
    with progress_bar(run.progress, n_replicates, "replicate") as update:
        found = core.smc(
            Filter(
                n_particles=n_particles,
                threshold=options.resample_below,
                resampling=options.resampling,
                order=options.order,
            ),
            lookahead=lookahead,
            n_replicates=n_replicates,
            seed=run.seed,
            n_jobs=run.n_jobs,
            progress=update,
        )
    return "smc-lookahead" if lookahead else "smc", Estimate.of(found)


def _tempered(core: _core.Allocation, options: Options, run: Run) -> tuple[str, Estimate]:
    if not (core.n_states and core.n_tokens):
        return _exact(core, Options(), run)
    n_replicates = options.n_replicates or _REPLICATES
    check_memory(core, n_replicates, n_chains=LANES)
    with progress_bar(run.progress, None, "round") as update:
        found, interruption = core.tempered(
            n_replicates=n_replicates,
            target_std_error=options.target_std_error or TARGET_STD_ERROR,
            max_scans=options.n_samples,
            max_chains=n_chains_of_ladders(core, n_replicates),
            seed=run.seed,
            n_jobs=run.n_jobs,
            progress=update,
        )
    rounds = tuple(
        Round(n_scans, tuple(values), sides, n_trips, barrier)
        for n_scans, values, sides, n_trips, barrier in found.rounds
    )
    std_error = np.nan if n_replicates == 1 else found.std_error
    return "tempered", Estimate(
        found.ln_value,
        std_error,
        n_replicates,
        n_replicates,
        rounds,
        found.converged,
        interruption,
    )


def _annealed(core: _core.Allocation, options: Options, run: Run) -> tuple[str, Estimate]:
    n_replicates, n_chains = options.n_replicates or _REPLICATES, options.n_particles or LANES
    check_memory(
        core,
        min(n_replicates, run.n_jobs),
        n_chains=max(n_chains, MODES * LANES),
        n_shares=MODES * core.n_cells * core.n_states,
    )
    with progress_bar(run.progress, n_replicates, "replicate") as update:
        found = core.annealed(
            n_chains=n_chains,
            n_temperatures=options.n_samples or 1000,
            n_replicates=n_replicates,
            seed=run.seed,
            n_jobs=run.n_jobs,
            progress=update,
        )
    return "annealed", Estimate.of(found)


def _variational(core: _core.Allocation, options: Options, run: Run) -> tuple[str, Estimate]:
    n_restarts = options.n_replicates or 10
    with progress_bar(run.progress, n_restarts, "restart") as update:
        found = core.variational(
            "vb",
            max_iter=options.n_samples or 1000,
            tolerance=1e-9,
            n_restarts=n_restarts,
            seed=run.seed,
            n_jobs=run.n_jobs,
            progress=update,
        )
    return "vb", Estimate(found.ln_value, np.nan, np.nan, 0)


def _auto(core: _core.Allocation, options: Options, run: Run) -> tuple[str, Estimate]:
    """Exact up to a small budget, else smc where a short pilot of it is beyond doubt, or tempered.

    The pilot takes a quarter of the draws of smc, and less beside tempering. It is in doubt where
    replicates differ or particles descend from few of the first. Options that one of them does not
    take speak for the other.
    """
    try:
        budget = options.budget or AUTO_BUDGET
        return "exact", Estimate.of(core.exact(budget=budget))
    except BudgetExceededError:
        pass
    samplers = options.samplers()
    if len(samplers) == 1:
        return METHODS[samplers[0]].find(core, options, run)
    n_draws = (options.n_particles or PARTICLES) * (options.n_replicates or _REPLICATES)
    sizes = Options(n_particles=min(_PILOT, -(-n_draws // (4 * _REPLICATES))))
    # A seed of its own, so that the choice does not depend on the estimate that follows.
    quiet = run._replace(progress=False, seed=run.seed ^ 1)
    _, pilot = _smc(core, sizes, quiet)
    return _tempered(core, options, run) if pilot.is_doubtful else _smc(core, options, run)


def _shifted(one: Round, shift: float) -> Round:
    """The round of an estimate that is multiplied by exp of `shift`."""
    forward, backward = one.sides
    values = tuple(value + shift for value in one.values)
    return one._replace(values=values, sides=(forward + shift, backward + shift))


_SIZES = ("n_particles", "n_samples", "n_replicates")

_FILTERING = ("n_particles", "n_replicates", "resampling", "resample_below", "order")

METHODS = {
    "auto": Method(_auto, (*_SIZES, *_FILTERING[2:], "budget", "target_std_error")),
    "exact": Method(_exact, ("budget",)),
    "smc": Method(_smc, _FILTERING),
    "smc-lookahead": Method(partial(_smc, lookahead=True), _FILTERING),
    "tempered": Method(
        _tempered, ("n_samples", "n_replicates", "target_std_error"), is_unbiased=False
    ),
    "annealed": Method(_annealed, _SIZES),
    "vb": Method(
        _variational, ("n_samples", "n_replicates"), is_lower_bound=True, is_unbiased=False
    ),
}


def find_evidence(
    layout: Layout,
    method: str,
    options: Options,
    *,
    given_total: bool,
    random_state: RandomState,
    n_jobs: int | None,
    progress: bool,
) -> Evidence:
    """Evidence of a tensor under a model that is laid out for it."""
    method = checks.choice("method", method, tuple(METHODS))
    options = options.checked(method, layout.tensor.n_cells)
    if not isinstance(given_total, (bool, np.bool_)):
        raise InvalidTypeError(f"given_total must be a bool, got {given_total!r}")
    core, n_tokens = layout.core, layout.tensor.total
    ln_total = np.nan
    if not given_total or layout.model.rate is not None or n_tokens:
        ln_total = core.ln_total(layout.rate())
    run = Run(draw_seed(random_state), checks.n_threads(n_jobs), bool(progress))
    start = time.perf_counter()
    used, estimate = METHODS[method].find(core, options, run)
    if not (estimate.std_error or METHODS[used].is_lower_bound):
        used = "exact"  # no hidden nodes, or no tokens
    shift = 0.0 if given_total else ln_total
    evidence = Evidence(
        value=estimate.ln_value + shift,
        std_error=estimate.std_error,
        method=used,
        given_total=bool(given_total),
        log_probability_of_total=ln_total,
        n_tokens=n_tokens,
        is_unbiased=METHODS[used].is_unbiased,
        is_lower_bound=METHODS[used].is_lower_bound,
        n_replicates=estimate.n_replicates,
        n_eff=estimate.n_eff,
        seconds=time.perf_counter() - start,
        rounds=tuple(_shifted(one, shift) for one in estimate.rounds),
        converged=estimate.converged,
    )
    if isinstance(estimate.interruption, KeyboardInterrupt):
        raise Interrupted(f"stopped after {evidence.n_rounds} rounds of tempering", evidence)
    if estimate.interruption is not None:
        raise estimate.interruption
    if evidence.doubt:
        warnings.warn(evidence.doubt, UnreliableErrorWarning, stacklevel=3)
    return evidence
