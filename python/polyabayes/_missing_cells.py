"""Tensors with cells that were not observed: their evidence, total and expected counts."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from polyabayes import _checks, _core
from polyabayes._allocation_evidence import (
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
from polyabayes._allocation_layout import Described, Layout, lay_out
from polyabayes._allocation_memory import check_memory
from polyabayes._cells import AxisLabels, Integers
from polyabayes._frames import data_frame
from polyabayes._progress import progress_bar
from polyabayes._random import RandomState, draw_seed
from polyabayes.exceptions import (
    BudgetExceededError,
    InvalidArgumentError,
    InvalidCountsError,
    InvalidTypeError,
    UnreliableErrorWarning,
)
from polyabayes.tensor import CountTensor

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["MissingCells", "find_missing", "lay_out_observed", "observed_outside"]

Floats = NDArray[np.float64]

# Missing tokens that may be asked for.
_MOST_MISSING = 10**7

# Probability that the totals listed under a bound may leave out.
_LEFT_BY_BOUND = 1e-9


@dataclass(frozen=True, eq=False, repr=False)
class MissingCells:
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
        _checks.share("level", level)
        below = np.cumsum(self.posterior)
        tail = (1 - level) / 2
        low, high = np.searchsorted(below, [tail, 1 - tail])
        return int(self.totals[low]), int(self.totals[min(high, len(self.totals) - 1)])

    def to_frame(self) -> pd.DataFrame:
        """A row a missing cell: its place, expected count and standard error.

        Raises
        ------
        MissingDependencyError
            If pandas is not installed.
        """
        return data_frame(self._columns())

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
        places = zip(self.axes, self.coordinates.T, self.labels, strict=True)
        named = {axis: x if names is None else names[x] for axis, x, names in places}
        errors = {"expected_count": self.expected_counts, "std_error": self.expected_std_errors}
        return {**named, **errors}

    def __repr__(self) -> str:
        low, high = self.total_interval()
        observed = int(self.totals[0])
        return (
            f"<MissingCells: {len(self.coordinates):,} missing, {observed:,} tokens observed, "
            f"{self.expected_total:,.2f} expected in all ({low:,} to {high:,} with 95 %); "
            f"{self.evidence!r}>"
        )


def lay_out_observed(
    model: Described, data: Any, observed: Any, elimination_order: Sequence[str] | None
) -> tuple[Layout, Integers]:
    """A model laid out for the observed cells, and the coordinates of the others.

    Raises
    ------
    InvalidArgumentError, InvalidCountsError, InvalidTypeError
        If an argument is bad, or model and data do not fit.
    """
    if np.ma.is_masked(data):
        if observed is not None:
            raise InvalidArgumentError(
                "data is a masked array, and observed is given, too; give one of them"
            )
        data, observed = data.filled(0), ~np.ma.getmaskarray(data)
    layout = lay_out(model, data, elimination_order)
    if observed is None:
        return layout, np.empty((0, layout.tensor.n_axes), dtype=np.int64)
    return layout, _unobserved(layout.tensor, observed)


def _unobserved(tensor: CountTensor, observed: Any) -> Integers:
    """Coordinates of the cells that were not observed, in lexicographic order.

    Raises
    ------
    InvalidArgumentError, InvalidCountsError, InvalidTypeError
        If `observed` is not a boolean array of the tensor's shape, or a missing cell has a count.
    """
    mask = np.asarray(observed)
    if mask.dtype != np.bool_:
        raise InvalidTypeError(
            f"observed must be a boolean array, True where a cell was observed, got {mask.dtype}"
        )
    if mask.shape != tensor.shape:
        raise InvalidArgumentError(
            f"observed must have the shape of the data, {tensor.shape}, got {mask.shape}"
        )
    counted = np.flatnonzero(~mask[tuple(tensor.coordinates.T)])
    if len(counted):
        place = tensor.coordinates[counted[0]]
        raise InvalidCountsError(
            f"cell {_place(tensor, place)} is marked as not observed, but has the count "
            f"{tensor.counts[counted[0]]}; set the count to 0, or mark the cell as observed"
        )
    return np.argwhere(~mask)


def observed_outside(tensor: CountTensor, missing: CountTensor) -> NDArray[np.bool_]:
    """Mask of the cells that another tensor leaves empty, levels with labels matched by them.

    Raises
    ------
    InvalidArgumentError
        If the other has other axes or levels, or no cell.
    """
    if missing.axes != tensor.axes:
        raise InvalidArgumentError(
            f"the missing cells have axes {', '.join(missing.axes)}, and the tensor "
            f"{', '.join(tensor.axes)}; call them alike, in one order"
        )
    if not missing.n_cells:
        raise InvalidArgumentError("the missing cells are none; mark each by a count of 1")
    observed = np.ones(tensor.shape, dtype=np.bool_)
    cells = [_levels(tensor, missing, axis) for axis in range(tensor.n_axes)]
    observed[tuple(cells)] = False
    return observed


def _levels(tensor: CountTensor, missing: CountTensor, axis: int) -> Integers:
    """Levels of the missing cells on an axis, by the numbers of the tensor."""
    name, levels = tensor.axes[axis], missing.coordinates[:, axis]
    labels, known = missing.labels[axis], tensor.labels[axis]
    if known is None and labels is None:
        number = {level: level for level in range(tensor.shape[axis])}
        wanted = levels.tolist()
    elif known is None or labels is None:
        raise InvalidArgumentError(
            f"axis {name!r} has labels in the tensor or in the missing cells, not in both"
        )
    else:
        number = {label: level for level, label in enumerate(known.tolist())}
        wanted = labels[levels].tolist()
    for level in wanted:
        if level not in number:
            raise InvalidArgumentError(
                f"a missing cell has level {level!r} of axis {name!r}, which the tensor does not "
                "have; give the tensor all levels"
            )
    return np.array([number[level] for level in wanted], dtype=np.int64)


def _place(tensor: CountTensor, cell: Integers) -> str:
    names = [
        f"{axis} {level if labels is None else repr(labels[level])}"
        for axis, level, labels in zip(tensor.axes, cell.tolist(), tensor.labels, strict=True)
    ]
    return f"({', '.join(names)})"


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
    check_memory(core, min(n_replicates, run.n_jobs), n_particles=n_particles)
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
    # Too many joint states of the hidden nodes are no matter of the budget.
    except (BudgetExceededError, InvalidArgumentError):
        return _smc(core, options, max_total, run)


def _variational(
    core: _core.IncompleteAllocation, options: Options, max_total: int | None, run: Run
) -> tuple[str, _Found]:
    if max_total is not None:
        raise InvalidArgumentError(
            "method 'vb' takes no max_total: its bound is a sum over all totals"
        )
    n_restarts = options.n_replicates or 10
    with progress_bar(run.progress, n_restarts, "restart") as update:
        bound, expected = core.variational(
            max_iter=options.n_samples or 1000,
            tolerance=1e-9,
            n_restarts=n_restarts,
            seed=run.seed,
            n_jobs=run.n_jobs,
            progress=update,
        )
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
    tensor, rate = layout.tensor, layout.model.rate
    if options.n_samples is not None and method != "vb":
        raise InvalidArgumentError(f"method {method!r} takes no n_samples where cells are missing")
    options = options.checked(_checked_method(method), tensor.n_cells)
    if rate is None:
        raise InvalidArgumentError(
            "rate=None is the concentration over the total, which is not known where cells are "
            "missing; give the model a rate, as the concentration over the total you expect"
        )
    if max_total is not None:
        _checks.whole_number("max_total", max_total, tensor.total, tensor.total + _MOST_MISSING)
    core = layout.core.with_missing(missing.ravel(), rate)
    run = Run(draw_seed(random_state), _checks.n_threads(n_jobs), bool(progress))
    start = time.perf_counter()
    used, found = _FINDERS[method](core, options, max_total, run)
    evidence = Evidence(
        value=found.estimate.ln_value,
        std_error=found.estimate.std_error,
        method=used,
        given_total=False,
        log_probability_of_total=np.nan,
        n_tokens=tensor.total,
        is_unbiased=not METHODS[used].is_lower_bound,
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
    if _checks.choice("method", method, tuple(METHODS)) not in _FINDERS:
        known = ", ".join(repr(known) for known in _FINDERS)
        raise InvalidArgumentError(
            f"method {method!r} needs all cells observed; with missing cells it is one of {known}"
        )
    return str(method)
