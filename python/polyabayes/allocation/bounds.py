"""The variational bound that tempering is held against."""

from __future__ import annotations

from polyabayes import _core
from polyabayes.allocation.evidence import Estimate
from polyabayes.allocation.options import TOL, Run

__all__ = ["held_by_bound", "lower_bound"]

# Starts of the bound, and their iterations.
_RESTARTS = 4
_ITERATIONS = 200


def lower_bound(
    core: _core.Allocation | _core.IncompleteAllocation, seed: int, n_jobs: int
) -> float:
    """The bound: ln of the evidence is at least that, given the total of complete data."""
    found = core.variational(
        "vb",
        max_iter=_ITERATIONS,
        tolerance=TOL,
        n_restarts=_RESTARTS,
        seed=seed,
        n_jobs=n_jobs,
    )
    return found.ln_value


def held_by_bound(
    core: _core.Allocation | _core.IncompleteAllocation, estimate: Estimate, run: Run
) -> Estimate:
    """The estimate of tempering, with doubt and a larger error where a lower bound is above it.

    Replicates that agree may all be low: the bound of variational Bayes knows nothing of them.
    Ctrl-C leaves the estimate as it was.
    """
    try:
        return estimate.held_by(lower_bound(core, run.seed, run.n_jobs))
    except KeyboardInterrupt as error:
        return estimate._replace(interruption=error)
