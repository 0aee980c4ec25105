"""The evidence of a tensor by any method, here or on the workers of an executor."""

import time
from collections.abc import Callable
from concurrent.futures import Executor
from typing import Any

import numpy as np

from polyabayes import _core
from polyabayes._support import checks
from polyabayes._support.output.progress import look
from polyabayes._support.output.tables import counted
from polyabayes._support.warnings import warn
from polyabayes.allocation.evidence.bounds import held_by_bound
from polyabayes.allocation.evidence.result import Estimate, Evidence, as_evidence
from polyabayes.allocation.layout import Layout
from polyabayes.allocation.options import METHODS, Options, Run
from polyabayes.exceptions import (
    Interrupted,
    InvalidArgumentError,
    UnreliableErrorWarning,
    argument,
)
from polyabayes.scale.executors import check_executor, sharing

# Methods whose replicates run as tasks of an executor.
_SAMPLING = ("auto", "smc", "tempered")


def _task(work: tuple[Layout, Options, Any], task: bytes) -> bytes:
    layout, options, run = work
    return _core.run_allocation_task(layout.core, options, task, progress=look.get(), **run)


def _on_workers(
    layout: Layout,
    options: Options,
    run: Run,
    executor: Executor,
    update: Callable[[int], None] | None,
) -> tuple[Any, BaseException | None]:
    """Estimate the evidence on an executor; also returns an interrupt that cut the rounds short."""
    here = _core.AllocationRun(layout.core, options, n_jobs=run.n_jobs)
    n_done = 0
    with sharing(executor, (layout, options, {"seed": run.seed, "n_jobs": run.n_jobs})) as workers:
        try:
            while tasks := here.tasks():
                results = dict(workers.run(_task, zip(tasks), lambda ix: f"task {ix}"))
                n_done += here.add([results[number] for number in range(len(tasks))])
                if update is not None:
                    update(n_done)
        except KeyboardInterrupt as interruption:
            found = here.evidence()
            if found[3] is None or not found[3].rounds:
                raise
            return found, interruption
    return here.evidence(), None


def _sampled(
    layout: Layout, options: Options, run: Run, executor: Executor | None
) -> tuple[str, Estimate]:
    """Estimate the evidence exactly or by replicates; also returns the method used."""
    # The number of rounds of tempering is not known in advance.
    unit = "round" if options.method == "tempered" else "replicate"
    run = run._replace(progress=run.progress and options.method != "exact")
    with run.shown(None, unit) as running:
        if executor is None:
            found, interruption = layout.core.evidence(options, **running)
        else:
            found, interruption = _on_workers(layout, options, run, executor, running["progress"])
    method, estimated, converged, tempering = found
    estimate = Estimate.of(estimated, converged, tempering)
    if estimate.rounds and interruption is None:
        estimate = held_by_bound(layout.core, estimate, run)
        interruption = estimate.interruption
    return method, estimate._replace(interruption=interruption)


def find_evidence(
    layout: Layout, options: Options, run: Run, executor: Executor | None, *, given_total: bool
) -> Evidence:
    """Estimate the evidence of a tensor under a model that is laid out for it."""
    checks.choice("method", options.method, tuple(METHODS))
    options = options.checked(layout.tensor.n_cells)
    executor = check_executor(executor)
    if executor is not None and options.method not in _SAMPLING:
        raise InvalidArgumentError(
            f"{argument('executor')} is for sampling methods ({', '.join(_SAMPLING)}), not for "
            f"{options.method!r}"
        )
    if layout.core.is_stepwise and (options.n_sweeps or "smc" not in options.samplers()):
        raise InvalidArgumentError(
            f"the hidden nodes have too many joint states for Gibbs sweeps, so that they "
            f"are drawn node by node: omit {argument('n_sweeps')}, {argument('n_samples')} and "
            f"{argument('target_std_error')}"
        )
    checks.flag("given_total", given_total)
    n_tokens = layout.tensor.total
    ln_total = np.nan
    if not given_total or layout.model.rate is not None or n_tokens:
        ln_total = layout.ln_total()
    start = time.perf_counter()
    if METHODS[options.method].is_lower_bound:
        with options.ascending(run) as running:
            bound = layout.core.variational("vb", **running).ln_value
        used, estimate = "vb", Estimate(bound, np.nan, np.nan, 0)
    else:
        used, estimate = _sampled(layout, options, run, executor)
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
