"""Tensors with cells that were not observed: their evidence, total and expected counts."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from polyabayes import _core
from polyabayes._support import checks
from polyabayes._support.frames import data_frame
from polyabayes._support.progress import progress_bar
from polyabayes._support.random import RandomState, draw_seed
from polyabayes._support.results import Result
from polyabayes.allocation.evidence import (
    AUTO_BUDGET,
    BUDGET,
    METHODS,
    PARTICLES,
    Estimate,
    Evidence,
    Filter,
    Options,
    Run,
)
from polyabayes.allocation.layout import Layout
from polyabayes.allocation.memory import check_memory
from polyabayes.allocation.observed_cells import incomplete
from polyabayes.data.cells import AxisLabels, Integers, named_cells
from polyabayes.exceptions import (
    BudgetExceededError,
    InvalidArgumentError,
    UnreliableErrorWarning,
    argument,
)

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["MissingCells", "find_missing"]

Floats = NDArray[np.float64]

# Missing tokens that may be asked for.
_MOST_MISSING = 10**7

# Probability that the totals listed under a bound may leave out.
_LEFT_BY_BOUND = 1e-9


@dataclass(frozen=True, eq=False, repr=False)
class MissingCells(Result):
    """What a model says of cells that were not observed, X being the observed ones.

    Attributes
    ----------
    evidence : Evidence
        ln Pr(X), summed over the totals.
    totals : ndarray of int, shape (n_totals,)
        Totals T of all cells, from that of the observed ones on.
    log_joint, std_errors : ndarray of float, shape (n_totals,)
        ln Pr(T, X) in nats, the evidence as a function of the total, and its standard error: 0
        where exact, NaN for ``"vb"``, which shares its bound out by its own law of the total.
    posterior, posterior_std_errors : ndarray of float, shape (n_totals,)
        Pr(T | X) among these totals, and its standard error.
    coordinates : ndarray of int, shape (n_missing, n_axes)
        Where the missing cells are, in lexicographic order.
    axes : tuple of str, length n_axes
        The axes of the tensor.
    labels : tuple of (ndarray of str objects or None), length n_axes
        Names of the levels of each axis.
    expected_counts, expected_std_errors : ndarray of float, shape (n_missing,)
        E[X_c | X] of each missing cell, averaged over the totals, and its standard error.
    log_remainder : float
        ln of what totals beyond the last would add to the evidence, in nats: extrapolated, as if
        every further token raised the intensity of the missing cells as much as in an urn.
        ``-inf`` for ``"vb"``, whose bound leaves none out.
    log_remainder_bound : float
        ln of what they add at most, whatever the tables: the greatest probability of X under any
        times Pr(more tokens). Often far above `log_remainder`.
    """

    evidence: Evidence
    totals: Integers
    log_joint: Floats
    std_errors: Floats
    posterior: Floats
    posterior_std_errors: Floats
    coordinates: Integers
    axes: tuple[str, ...]
    labels: AxisLabels
    expected_counts: Floats
    expected_std_errors: Floats
    log_remainder: float
    log_remainder_bound: float

    @property
    def expected_total(self) -> float:
        """E[T | X]."""
        return float(self.totals @ self.posterior)

    def total_interval(self, level: float = 0.95) -> tuple[int, int]:
        """Central interval that holds the total with posterior probability `level` or more."""
        checks.share("level", level)
        below = np.cumsum(self.posterior)
        tail = (1 - level) / 2
        low, high = np.searchsorted(below, [tail, 1 - tail])
        return int(self.totals[low]), int(self.totals[min(high, len(self.totals) - 1)])

    def totals_to_frame(self) -> pd.DataFrame:
        """A row a total: ln of the joint probability, posterior, and standard errors.

        Raises
        ------
        MissingDependencyError
            If pandas is not installed.
        """
        return data_frame(
            {
                "total": self.totals,
                "log_joint": self.log_joint,
                "std_error": self.std_errors,
                "posterior": self.posterior,
                "posterior_std_error": self.posterior_std_errors,
            }
        )

    def _columns(self) -> dict[str, Any]:
        return {
            **named_cells(self.axes, self.coordinates, self.labels),
            "expected_count": self.expected_counts,
            "std_error": self.expected_std_errors,
        }

    def __repr__(self) -> str:
        low, high = self.total_interval()
        observed = int(self.totals[0])
        return (
            f"<MissingCells: {len(self.coordinates):,} missing, {observed:,} tokens observed, "
            f"{self.expected_total:,.2f} expected in all ({low:,} to {high:,} with 95 %); "
            f"{self.evidence!r}>"
        )


class _Found(NamedTuple):
    """What a method has found; without errors for a bound."""

    estimate: Estimate
    ln_joint: Floats
    ln_joint_errors: Floats
    posterior: Floats
    posterior_errors: Floats
    expected: Floats
    expected_errors: Floats
    ln_remainder: float
    ln_remainder_bound: float

    @classmethod
    def of(cls, found: _core.AllocationCompletion) -> _Found:
        dressed = cls(Estimate.of(found.evidence), *(getattr(found, x) for x in cls._fields[1:]))
        if found.evidence.n_replicates == 1:
            unknown = np.full_like(found.ln_joint_errors, np.nan)
            return dressed._replace(ln_joint_errors=unknown)
        return dressed


_Finder = Callable[
    [_core.IncompleteAllocation, Options, int | None, Run],
    tuple[str, _Found],
]


def _exact(
    core: _core.IncompleteAllocation, options: Options, max_total: int | None, _run: Run
) -> tuple[str, _Found]:
    budget = options.budget or BUDGET
    return "exact", _Found.of(core.exact(max_total=max_total, budget=budget))


def _smc(
    core: _core.IncompleteAllocation, options: Options, max_total: int | None, run: Run
) -> tuple[str, _Found]:
    n_replicates, n_particles = options.n_replicates or 4, options.n_particles or PARTICLES
    n_at_once = min(n_replicates, run.n_jobs)
    check_memory(core, n_at_once, n_particles=n_particles, n_missing=core.n_missing)
    filtering = Filter(n_particles, options.resample_below, options.resampling, options.order)
    with progress_bar(run.progress, n_replicates, "replicate") as update:
        found = core.smc(
            filtering,
            max_total=max_total,
            n_replicates=n_replicates,
            seed=run.seed,
            n_jobs=run.n_jobs,
            progress=update,
        )
    return "smc", _Found.of(found)


def _auto(
    core: _core.IncompleteAllocation, options: Options, max_total: int | None, run: Run
) -> tuple[str, _Found]:
    budget = options.budget or AUTO_BUDGET
    try:
        return _exact(core, replace(options, budget=budget), max_total, run)
    except BudgetExceededError:
        return _smc(core, options, max_total, run)


def _variational(
    core: _core.IncompleteAllocation, options: Options, max_total: int | None, run: Run
) -> tuple[str, _Found]:
    if max_total is not None:
        raise InvalidArgumentError(
            f"{argument('method')} 'vb' takes no {argument('max_total')}: its bound is a sum over "
            "all totals"
        )
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
    bound, expected = found.ln_value, found.expected
    law = stats.poisson(expected.sum())
    counts = np.arange(int(law.isf(_LEFT_BY_BOUND)) + 1)
    unknown = np.full(len(counts), np.nan)
    return "vb", _Found(
        estimate=Estimate(bound, np.nan, np.nan, 0),
        ln_joint=bound + law.logpmf(counts),
        ln_joint_errors=unknown,
        posterior=law.pmf(counts),
        posterior_errors=unknown,
        expected=expected,
        expected_errors=np.full(len(expected), np.nan),
        ln_remainder=-np.inf,
        ln_remainder_bound=-np.inf,
    )


_FINDERS: dict[str, _Finder] = {
    "auto": _auto,
    "exact": _exact,
    "smc": _smc,
    "vb": _variational,
}


def find_missing(
    layout: Layout,
    missing: Integers,
    method: str,
    options: Options,
    max_total: int | None,
    *,
    random_state: RandomState,
    n_jobs: int | None,
    progress: bool,
) -> MissingCells:
    """Sum out cells that were not observed, in a model that is laid out for the others."""
    if not len(missing):
        raise InvalidArgumentError("observed marks no cell as missing; use log_evidence")
    tensor = layout.tensor
    if options.n_samples is not None and method != "vb":
        raise InvalidArgumentError(
            f"{argument('method')} {method!r} takes no {argument('n_samples')} where cells are "
            "missing; it is of 'vb'"
        )
    options = options.checked(_checked_method(method), tensor.n_cells)
    if max_total is not None:
        checks.whole_number("max_total", max_total, tensor.total, tensor.total + _MOST_MISSING)
    run = Run(draw_seed(random_state), checks.n_threads(n_jobs), bool(progress))
    start = time.perf_counter()
    core = incomplete(layout, missing)
    used, found = _FINDERS[method](core, options, max_total, run)
    evidence = Evidence(
        value=found.estimate.ln_value,
        std_error=found.estimate.std_error,
        method=used,
        given_total=False,
        log_probability_of_total=np.nan,
        n_tokens=tensor.total,
        is_unbiased=METHODS[used].is_unbiased,
        is_lower_bound=METHODS[used].is_lower_bound,
        n_replicates=found.estimate.n_replicates,
        n_eff=found.estimate.n_eff,
        seconds=time.perf_counter() - start,
        log_remainder=found.ln_remainder,
    )
    if evidence.doubt:
        warnings.warn(evidence.doubt, UnreliableErrorWarning, stacklevel=3)
    return MissingCells(
        evidence=evidence,
        totals=tensor.total + np.arange(len(found.ln_joint)),
        log_joint=found.ln_joint,
        std_errors=found.ln_joint_errors,
        posterior=found.posterior,
        posterior_std_errors=found.posterior_errors,
        coordinates=missing,
        axes=tensor.axes,
        labels=tensor.labels,
        expected_counts=found.expected,
        expected_std_errors=found.expected_errors,
        log_remainder=found.ln_remainder,
        log_remainder_bound=found.ln_remainder_bound,
    )


def _checked_method(method: Any) -> str:
    if checks.choice("method", method, tuple(METHODS)) not in _FINDERS:
        known = ", ".join(repr(known) for known in _FINDERS)
        raise InvalidArgumentError(
            f"method {method!r} needs all cells observed; with missing cells it is one of {known}"
        )
    return str(method)
