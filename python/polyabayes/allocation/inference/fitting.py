"""The methods that decompose a count tensor."""

import time

import numpy as np

from polyabayes import _core
from polyabayes._support import checks
from polyabayes._support.arrays import Floats, Integers
from polyabayes.allocation.inference.decomposition import Decomposition, shares
from polyabayes.allocation.inference.draws import draw_posterior
from polyabayes.allocation.layout import Layout
from polyabayes.allocation.observed_cells import rates_of
from polyabayes.allocation.options import DECOMPOSITIONS, Options, Run
from polyabayes.exceptions import Interrupted, InvalidArgumentError, argument

# Default sweeps of the Gibbs sampler.
_SWEEPS = 1000

# The other methods assign whole tokens, but the number of tokens in missing cells is unknown.
_WITH_MISSING = ("vb", "em", "ml")


def _climb(
    core: _core.Allocation | _core.IncompleteAllocation, options: Options, run: Run
) -> _core.AllocationDecomposition:
    with options.ascending(run) as running:
        return core.variational(options.method, **running)


def _gibbs(core: _core.Allocation, options: Options, run: Run) -> _core.AllocationDecomposition:
    n_sweeps = options.max_iter or _SWEEPS
    burn_in = n_sweeps // 2 if options.burn_in is None else options.burn_in
    if burn_in >= n_sweeps:
        raise InvalidArgumentError(f"burn_in={burn_in} leaves none of max_iter={n_sweeps} sweeps")
    if not core.n_states:  # nothing to draw: the counts are those of the data
        return _climb(core, Options("vb", max_iter=1, tol=1.0, n_restarts=1), run)
    with run.shown(n_sweeps, "sweep") as running:
        return core.gibbs(n_sweeps=n_sweeps, burn_in=burn_in, **running)


def _smc(core: _core.Allocation, options: Options, run: Run) -> _core.AllocationDecomposition:
    return core.best_particle(options, seed=run.seed, n_jobs=run.n_jobs)


_SAMPLED = {"gibbs": _gibbs, "smc": _smc}


def find_decomposition(
    layout: Layout, missing: Integers, options: Options, run: Run
) -> Decomposition:
    """Decompose a tensor by a model that is laid out for its observed cells."""
    method = checks.choice("method", options.method, tuple(DECOMPOSITIONS))
    if len(missing) and method not in _WITH_MISSING:
        raise InvalidArgumentError(
            f"{argument('method', method)} needs all cells observed; use "
            f"{argument('method', 'vb')}, {argument('method', 'em')} or {argument('method', 'ml')}"
        )
    options = options.checked(methods=DECOMPOSITIONS)
    if method == "tempered":
        try:
            return draw_posterior(layout, options, None, run).decomposition()
        except Interrupted as stop:
            raise Interrupted(str(stop), stop.partial.decomposition()) from None
    tensor = layout.tensor
    start = time.perf_counter()
    if len(missing):
        ln_total, rates = np.nan, rates_of(layout).values
        if len(rates) > 1:
            raise InvalidArgumentError(
                "a decomposition with missing cells needs a number as the model's "
                f"{argument('rate')}; only predict_missing takes a prior of it"
            )
        core = _core.IncompleteAllocation(layout.core, missing.ravel(), rates[0])
        found = _climb(core, options, run)
        total = tensor.total + found.expected.sum()
        intensity = (layout.model.concentration + total) / (rates[0] + 1)
    else:
        ln_total = layout.ln_total()
        found = _SAMPLED.get(method, _climb)(layout.core, options, run)
        intensity = layout.intensity()
    counts: dict[str, Floats] = {}
    for flat, table in zip(found.counts, layout.tables, strict=True):
        counts.update(dict.fromkeys(table, flat.reshape(layout.shape(table[0]))))
    if method == "ml":
        intensity = tensor.total + found.expected.sum()
    alphas = dict.fromkeys(layout.sizes, 0.0) if method == "ml" else layout.alphas
    return Decomposition(
        tables={node: shares(counts[node] + alpha, 0) for node, alpha in alphas.items()},
        expected_counts={node: counts[node] for node in layout.sizes},
        families={node: layout.model.graph.family(node) for node in layout.sizes},
        intensity=float(intensity),
        trace=found.trace,
        value=found.ln_value,
        has_converged=found.converged,
        log_probability_of_total=ln_total,
        method=method,
        tensor=tensor,
        missing_cells=missing,
        seconds=time.perf_counter() - start,
    )
