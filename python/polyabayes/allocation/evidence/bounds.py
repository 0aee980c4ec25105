"""Bounds of the evidence: lower ones that check tempering, and both sides of simulated data."""

from collections.abc import Mapping

import numpy as np

from polyabayes import _core
from polyabayes._support import checks
from polyabayes._support.bidirectional import BidirectionalBounds
from polyabayes.allocation.evidence.result import Estimate
from polyabayes.allocation.graphs.network import Network
from polyabayes.allocation.layout import lay_out
from polyabayes.allocation.options import TOL, Options, Run
from polyabayes.data.tensors.tensor import CountTensor
from polyabayes.exceptions import InvalidArgumentError, InvalidTypeError

# Replicates of the particle filter.
_REPLICATES = 4

# Random starts of the variational bound, and iterations of each.
_RESTARTS = 4
_ITERATIONS = 200

# Least and most particles per replicate; most weights of states in all, and marginal counts in
# memory. With fewer particles than the least, the bound is too loose.
_MOST_PARTICLES, _LEAST_PARTICLES = 1_000, 16
_WEIGHTS, _COUNTS = 1e9, 2**26

# By Markov's inequality, an unbiased estimate of the evidence is this many nats too high with
# probability exp(-5) at most.
_MARGIN = 5.0


def lower_bound(core: _core.Allocation, seed: int, n_jobs: int) -> float:
    """The larger of two lower bounds of ln of the evidence, given the total.

    One is variational. The other is from particles: a bound with high probability.
    """
    found = core.variational(
        "vb", max_iter=_ITERATIONS, tolerance=TOL, n_restarts=_RESTARTS, seed=seed, n_jobs=n_jobs
    )
    steps = _REPLICATES * core.n_tokens * core.n_states
    n_particles = int(min(_MOST_PARTICLES, _WEIGHTS / steps, _COUNTS / core.n_marginals))
    if n_particles < _LEAST_PARTICLES:
        return found.ln_value
    options = Options("smc", n_particles=n_particles, n_replicates=_REPLICATES, n_sweeps=0)
    (_, by_particles, *_), interruption = core.evidence(options, seed=seed, n_jobs=n_jobs)
    if interruption is not None:
        raise interruption
    return max(found.ln_value, by_particles.ln_value - _MARGIN)


def held_by_bound(core: _core.Allocation, estimate: Estimate, run: Run) -> Estimate:
    """Check an estimate by tempering against lower bounds.

    If a bound is above the estimate, the error grows and the estimate counts as not converged:
    replicates that agree may all miss the same modes. On Ctrl-C the estimate stays unchecked.
    """
    try:
        return estimate.held_by(lower_bound(core, run.seed, run.n_jobs))
    except KeyboardInterrupt as error:
        return estimate._replace(interruption=error)


# Most tokens of simulated data.
_MOST_TOKENS = 10**8


def find_bounds(
    model: Network, shape: Mapping[str, int], total: int, sizes: Mapping[str, int], run: Run
) -> BidirectionalBounds:
    """Draw a tensor of the given shape and total, and anneal in both directions."""
    if not isinstance(shape, Mapping) or not shape:
        raise InvalidTypeError(f"shape must map the axes to their sizes, got {shape!r}")
    checks.whole_number("total", total, 1, _MOST_TOKENS)
    for name, size in sizes.items():
        checks.whole_number(name, size, 1, 10**9)
    empty = CountTensor.from_coo(
        np.empty((0, len(shape)), dtype=np.int64), [], list(shape), list(shape.values())
    )
    layout = lay_out(model, empty)
    if not layout.hidden:
        raise InvalidArgumentError(
            f"graph {model.graph.to_text()!r} has no hidden nodes: its evidence is exact"
        )
    n_chains, n_samples, n_replicates = sizes.values()
    with run.shown(n_replicates, "replicate") as running:
        lower, upper = layout.core.bidirectional_bounds(
            total, n_chains=n_chains, n_temperatures=n_samples, n_replicates=n_replicates, **running
        )
    found = (lower.ln_value, lower.std_error, upper.ln_value, upper.std_error, n_samples)
    return BidirectionalBounds(*(np.array([number]) for number in found))
