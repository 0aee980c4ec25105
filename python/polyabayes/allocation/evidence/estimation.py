"""The evidence of a tensor by any method, here or on the workers of an executor."""

from __future__ import annotations

import time
from concurrent.futures import Executor
from typing import Any

import numpy as np

from polyabayes import _core
from polyabayes._support import checks
from polyabayes._support.progress import progress_bar
from polyabayes._support.random import RandomState, draw_seed
from polyabayes._support.tables import counted
from polyabayes._support.warnings import warn
from polyabayes.allocation.evidence.bounds import held_by_bound
from polyabayes.allocation.evidence.parts import sampled_in_parts
from polyabayes.allocation.evidence.result import Estimate, Evidence, as_evidence
from polyabayes.allocation.layout import Layout
from polyabayes.allocation.options import MAX_ITER, METHODS, REPLICATES, RESTARTS, TOL, Options, Run
from polyabayes.exceptions import (
    Interrupted,
    InvalidArgumentError,
    InvalidTypeError,
    UnreliableErrorWarning,
    argument,
)
from polyabayes.scale.executors import check_executor, threads_of_task

__all__ = ["find_evidence"]

# Methods whose replicates are tasks.
_SAMPLING = ("auto", "smc", "smc-lookahead", "tempered")


def _sampled(core: _core.Allocation, options: Options, run: Run) -> tuple[str, Estimate]:
    """Exact or by replicates, and the method that it came to."""
    n_replicates, show = options.n_replicates or REPLICATES, options.method != "exact"
    # How many rounds tempering needs is not known before.
    is_tempered = options.method == "tempered"
    total, unit = (None, "round") if is_tempered else (n_replicates, "replicate")
    with progress_bar(run.progress and show, total, unit) as update:
        used, found, tempering, interruption = core.evidence(
            options, seed=run.seed, n_jobs=run.n_jobs, progress=update
        )
    estimate = Estimate.of(found).with_rounds(tempering)
    if estimate.rounds and interruption is None:
        estimate = held_by_bound(core, estimate, run)
        interruption = estimate.interruption
    return used, estimate._replace(interruption=interruption)


def _bound(core: _core.Allocation, options: Options, run: Run) -> tuple[str, Estimate]:
    n_restarts = options.n_restarts or RESTARTS
    with progress_bar(run.progress, n_restarts, "restart") as update:
        found = core.variational(
            "vb",
            max_iter=options.max_iter or MAX_ITER,
            tolerance=options.tol or TOL,
            n_restarts=n_restarts,
            seed=run.seed,
            n_jobs=run.n_jobs,
            progress=update,
        )
    return "vb", Estimate(found.ln_value, np.nan, np.nan, 0)


def find_evidence(
    layout: Layout,
    options: Options,
    *,
    given_total: bool,
    random_state: RandomState,
    n_jobs: int | None,
    progress: bool,
    executor: Executor | None = None,
    checkpoint: Any = None,
) -> Evidence:
    """Evidence of a tensor under a model that is laid out for it."""
    checks.choice("method", options.method, tuple(METHODS))
    options = options.checked(layout.tensor.n_cells)
    executor = check_executor(executor)
    in_parts = executor is not None or checkpoint is not None
    if in_parts and options.method not in _SAMPLING:
        raise InvalidArgumentError(
            f"{argument('executor')} and {argument('checkpoint')} are of methods that draw "
            f"({', '.join(_SAMPLING)}), not of {options.method!r}"
        )
    if options.method == "smc-lookahead" and layout.core.n_cliques > 1:
        raise InvalidArgumentError(
            "method 'smc-lookahead' needs all hidden nodes in one clique, and those of the graph "
            f"are summed out in {layout.core.n_cliques}; use {argument('method', 'tempered')}"
        )
    if not isinstance(given_total, (bool, np.bool_)):
        raise InvalidTypeError(f"given_total must be a bool, got {given_total!r}")
    core, n_tokens = layout.core, layout.tensor.total
    ln_total = np.nan
    if not given_total or layout.model.rate is not None or n_tokens:
        ln_total = core.ln_total(layout.rate())
    run = Run(draw_seed(random_state), threads_of_task(executor, n_jobs), bool(progress))
    start = time.perf_counter()
    if in_parts:
        used, estimate = sampled_in_parts(layout, options, run, executor, checkpoint)
    elif METHODS[options.method].is_lower_bound:
        used, estimate = _bound(core, options, run)
    else:
        used, estimate = _sampled(core, options, run)
    evidence = as_evidence(
        layout, used, estimate, given_total=bool(given_total), ln_total=ln_total, start=start
    )
    if isinstance(estimate.interruption, KeyboardInterrupt) and evidence.rounds:
        raise Interrupted(
            f"stopped after {counted(evidence.n_rounds, 'round')} of tempering", evidence
        )
    if estimate.interruption is not None:
        raise estimate.interruption
    if evidence.doubt:
        warn(evidence.doubt, UnreliableErrorWarning)
    return evidence
