"""Lower bounds that tempering is held against."""

from __future__ import annotations

from polyabayes import _core
from polyabayes.allocation.evidence.result import Estimate
from polyabayes.allocation.options import TOL, Options, Run

# Replicates of the particles.
_REPLICATES = 4

# Starts of the variational bound, and their iterations.
_RESTARTS = 4
_ITERATIONS = 200

# Particles of a replicate, as far as they cost that many weights of states in all, and that many
# marginal counts in memory; fewer than the least tell too little.
_MOST_PARTICLES, _LEAST_PARTICLES = 1_000, 16
_WEIGHTS, _COUNTS = 1e9, 2**26

# An unbiased estimate of the evidence is so many nats too high with probability exp(-5) at most, by
# Markov's inequality.
_MARGIN = 5.0


def lower_bound(
    core: _core.Allocation | _core.IncompleteAllocation, seed: int, n_jobs: int
) -> float:
    """The larger of two bounds of ln of the evidence, given the total of complete data.

    By variational Bayes, and, where all cells were observed, by particles: almost surely.
    """
    found = core.variational(
        "vb", max_iter=_ITERATIONS, tolerance=TOL, n_restarts=_RESTARTS, seed=seed, n_jobs=n_jobs
    )
    if isinstance(core, _core.IncompleteAllocation):
        return found.ln_value
    steps = _REPLICATES * core.n_tokens * core.n_states
    n_particles = int(min(_MOST_PARTICLES, _WEIGHTS / steps, _COUNTS / core.n_marginals))
    if n_particles < _LEAST_PARTICLES:
        return found.ln_value
    options = Options("smc", n_particles=n_particles, n_replicates=_REPLICATES, n_sweeps=0)
    (_, by_particles, *_), interruption = core.evidence(options, seed=seed, n_jobs=n_jobs)
    if interruption is not None:
        raise interruption
    return max(found.ln_value, by_particles.ln_value - _MARGIN)


def held_by_bound(
    core: _core.Allocation | _core.IncompleteAllocation, estimate: Estimate, run: Run
) -> Estimate:
    """The estimate of tempering, with doubt and a larger error where a lower bound is above it.

    Replicates that agree may all be low: the bounds know nothing of them. Ctrl-C leaves the
    estimate as it was.
    """
    try:
        return estimate.held_by(lower_bound(core, run.seed, run.n_jobs))
    except KeyboardInterrupt as error:
        return estimate._replace(interruption=error)
