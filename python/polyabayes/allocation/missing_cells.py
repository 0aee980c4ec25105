"""Tensors with missing cells: evidence, total and expected counts."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from polyabayes import _core
from polyabayes._support import checks
from polyabayes._support.arrays import Floats, Integers
from polyabayes._support.docs import shared_docs
from polyabayes._support.output.frames import DataFrame, data_frame
from polyabayes._support.results import Result
from polyabayes._support.warnings import warn
from polyabayes.allocation.evidence.result import Estimate, Evidence
from polyabayes.allocation.layout import Layout
from polyabayes.allocation.observed_cells import rates_of
from polyabayes.allocation.options import METHODS, Options, Run
from polyabayes.data.tensors.cells import AxisLabels, named_cells
from polyabayes.exceptions import InvalidArgumentError, UnreliableErrorWarning, argument

# Most missing tokens.
_MOST_MISSING = 10**7

# Methods for missing cells.
_METHODS = ("auto", "exact", "smc", "vb")

# Options of moves and of tempering.
_OF_OBSERVED = ("n_sweeps", "n_samples", "target_std_error")


@shared_docs
@dataclass(frozen=True, eq=False, repr=False)
class MissingCells(Result):
    """Predictions of missing cells, given the observed cells X.

    Attributes
    ----------
    evidence : Evidence
        ln Pr(X), summed over the totals.
    totals : ndarray of int, shape (n_totals,)
        Totals T of all cells, from the total of the observed cells on.
    log_joint, std_errors : ndarray of float, shape (n_totals,)
        ln Pr(T, X) in nats, and its standard error: 0 if exact, NaN for ``"vb"``, which divides its
        bound among the totals by its variational distribution of T.
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
        About ln of the evidence in totals beyond the last, in nats, extrapolated by a Pólya urn.
        ``-inf`` for ``"vb"``, whose bound covers all totals.
    log_remainder_bound : float
        Upper bound of ln of the evidence in these totals: max over tables of Pr(X | tables) times
        Pr(more tokens). Often far above `log_remainder`.

    Examples
    --------
    >>> model = pb.AllocationModel.nmf(1, concentration=4.0, rate=0.01)
    >>> found = model.predict_missing(np.ma.masked_equal([[-1, 3], [3, 3]], -1))
    >>> found.coordinates.tolist(), found.expected_counts.shape
    ([[0, 0]], (1,))
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
        """Central interval of the total with posterior probability `level` or more.

        Parameters
        ----------
        level : float, default=0.95
            Probability that the interval holds the total.

        Returns
        -------
        low, high : int
            Both included.

        {raises: bad level}

        Examples
        --------
        >>> model = pb.AllocationModel.nmf(1, concentration=4.0, rate=0.01)
        >>> found = model.predict_missing(np.ma.masked_equal([[-1, 3], [3, 3]], -1))
        >>> found.total_interval(0.5)
        (13, 22)
        """
        checks.share("level", level)
        below = np.cumsum(self.posterior)
        tail = (1 - level) / 2
        low, high = np.searchsorted(below, [tail, 1 - tail])
        return int(self.totals[low]), int(self.totals[min(high, len(self.totals) - 1)])

    def totals_to_frame(self) -> DataFrame:
        """Give the distribution of the total as a DataFrame, a row per total.

        Returns
        -------
        pandas.DataFrame
            Columns `total`, `log_joint`, `std_error`, `posterior` and `posterior_std_error`.

        {raises: no pandas}

        Examples
        --------
        >>> model = pb.AllocationModel.nmf(1, concentration=4.0, rate=0.01)
        >>> found = model.predict_missing(np.ma.masked_equal([[-1, 3], [3, 3]], -1))
        >>> int(found.totals_to_frame()["total"].iloc[0])  # nothing in the missing cell
        9
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
        # The variational distribution of the total is too narrow.
        spread = "" if self.evidence.is_lower_bound else f" ({low:,} to {high:,} with 95 %)"
        observed = int(self.totals[0])
        return (
            f"<MissingCells: {len(self.coordinates):,} missing, {observed:,} tokens observed, "
            f"{self.expected_total:,.2f} expected in all{spread}; {self.evidence!r}>"
        )


def _found_at(
    core: _core.IncompleteAllocation, options: Options, max_total: int | None, run: Run
) -> tuple[str, Estimate, _core.AllocationCompletion]:
    """Method used, evidence, and what the compiled core found at one rate."""
    if options.method == "vb":
        with options.ascending(run) as running:
            found = core.bound(**running)
        return "vb", Estimate.of(found.evidence), found
    run = run._replace(progress=run.progress and options.method != "exact")
    with run.shown(None, "replicate") as running:
        used, found = core.complete(options, max_total=max_total, **running)
    return used, Estimate.of(found.evidence), found


def find_missing(
    layout: Layout, missing: Integers, options: Options, max_total: int | None, run: Run
) -> MissingCells:
    """Sum out missing cells in a model that is laid out for the observed cells.

    Results at several rates are averaged; their errors are added as if fully correlated.
    """
    if not len(missing):
        raise InvalidArgumentError("observed marks no cell as missing; use log_evidence")
    tensor = layout.tensor
    is_bound = options.method == "vb"
    _check_method(options.method)
    options = options.checked(tensor.n_cells)
    for name in _OF_OBSERVED:
        if getattr(options, name) is not None:
            rule = "needs all cells observed: missing tokens make no Gibbs sweeps"
            raise checks.wrong(name, getattr(options, name), rule)
    if max_total is not None:
        checks.whole_number("max_total", max_total, tensor.total, tensor.total + _MOST_MISSING)
        if is_bound:
            raise InvalidArgumentError(
                f"{argument('method')} 'vb' takes no {argument('max_total')}: its bound is a sum "
                "over all totals"
            )
    start = time.perf_counter()
    rates, ln_weights = rates_of(layout)
    cores = (_core.IncompleteAllocation(layout.core, missing.ravel(), b) for b in rates)
    results = [_found_at(core, options, max_total, run) for core in cores]
    used, estimates, found = zip(*results, strict=True)
    shares = special.softmax(ln_weights + np.array([one.ln_value for one in estimates]))

    def stacked(name: str, end: float = 0.0) -> Floats:
        rows = [getattr(one, name) for one in found]
        longest = max(map(len, rows))
        return np.stack([np.append(row, np.full(longest - len(row), end)) for row in rows])

    def added(name: str, parts: Sequence[Any]) -> float:
        return float(special.logsumexp(ln_weights + [getattr(one, name) for one in parts]))

    ln_joint = ln_weights[:, None] + stacked("ln_joint", -np.inf)
    joint_errors = special.softmax(ln_joint, axis=0) * stacked("ln_joint_errors")
    estimate = estimates[int(shares.argmax())]
    if estimate.n_replicates == 1:
        joint_errors[:] = np.nan
    estimate = estimate._replace(
        ln_value=added("ln_value", estimates),
        std_error=float(shares @ [one.std_error for one in estimates]),
        n_eff=min(one.n_eff for one in estimates),
        n_free=max(estimate.n_replicates - 1, 0),
    )
    method = max(used, key=tuple(METHODS).index)
    evidence = Evidence(
        value=estimate.ln_value,
        method=method,
        given_total=False,
        log_probability_of_total=np.nan,
        n_tokens=tensor.total,
        is_unbiased=METHODS[method].is_unbiased,
        is_lower_bound=is_bound,
        seconds=time.perf_counter() - start,
        log_remainder=added("ln_remainder", found),
        **estimate.fields(),
    )
    if evidence.doubt:
        warn(evidence.doubt, UnreliableErrorWarning)
    return MissingCells(
        evidence=evidence,
        totals=tensor.total + np.arange(ln_joint.shape[1]),
        log_joint=special.logsumexp(ln_joint, axis=0),
        std_errors=joint_errors.sum(axis=0),
        posterior=shares @ stacked("posterior"),
        posterior_std_errors=shares @ stacked("posterior_errors"),
        coordinates=missing,
        axes=tensor.axes,
        labels=tensor.labels,
        expected_counts=shares @ stacked("expected"),
        expected_std_errors=shares @ stacked("expected_errors"),
        log_remainder=evidence.log_remainder,
        log_remainder_bound=added("ln_remainder_bound", found),
    )


def _check_method(method: Any) -> None:
    if checks.choice("method", method, tuple(METHODS)) not in _METHODS:
        known = ", ".join(repr(known) for known in _METHODS)
        raise InvalidArgumentError(
            f"method {method!r} needs all cells observed; with missing cells use one of {known}"
        )
