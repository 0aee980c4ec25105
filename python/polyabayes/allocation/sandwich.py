"""Evidence from below and from above, where the allocation is known."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from polyabayes._support import checks
from polyabayes._support.progress import progress_bar
from polyabayes._support.random import RandomState, draw_seed
from polyabayes.allocation.evidence import Evidence
from polyabayes.allocation.layout import Described, lay_out
from polyabayes.allocation.memory import LANES, MODES, check_memory
from polyabayes.data.tensor import CountTensor
from polyabayes.exceptions import InvalidArgumentError, InvalidTypeError

__all__ = ["Sandwich", "find_sandwich"]

_MOST_TOKENS = 10**8


class Sandwich(NamedTuple):
    """Evidence of a tensor drawn from the model, given its total, from both sides.

    Attributes
    ----------
    lower : Evidence
        By annealing forwards: low in expectation.
    upper : Evidence
        By annealing backwards from the allocation that was drawn: high in expectation.
    """

    lower: Evidence
    upper: Evidence

    @property
    def gap(self) -> float:
        """Nats between the two: how far annealing of this size may be from the truth."""
        return self.upper.value - self.lower.value


def find_sandwich(
    model: Described,
    shape: Mapping[str, int],
    total: int,
    *,
    n_particles: int,
    n_samples: int,
    n_replicates: int,
    random_state: RandomState,
    n_jobs: int | None,
    progress: bool,
) -> Sandwich:
    """Draw a tensor of the given shape and total, and anneal from both sides."""
    if not isinstance(shape, Mapping) or not shape:
        raise InvalidTypeError(f"shape must map the axes to their sizes, got {shape!r}")
    checks.whole_number("total", total, 1, _MOST_TOKENS)
    sizes = {"n_chains": n_particles, "n_temperatures": n_samples, "n_replicates": n_replicates}
    for name, size in zip(
        ("n_particles", "n_samples", "n_replicates"), sizes.values(), strict=True
    ):
        checks.whole_number(name, size, 1, 10**9)
    empty = CountTensor.from_coo(
        np.empty((0, len(shape)), dtype=np.int64), [], list(shape), list(shape.values())
    )
    layout = lay_out(model, empty)
    if not layout.hidden:
        raise InvalidArgumentError(
            f"graph {model.graph.to_text()!r} has no hidden nodes: its evidence is exact"
        )
    check_memory(layout.core, 1, n_chains=max(n_particles, MODES * LANES), n_tokens=total)
    seed, n_threads = draw_seed(random_state), checks.n_threads(n_jobs)
    start = time.perf_counter()
    with progress_bar(progress, n_replicates, "replicate") as update:
        sides: Any = layout.core.sandwich(
            total,
            n_chains=n_particles,
            n_temperatures=n_samples,
            n_replicates=n_replicates,
            seed=seed,
            n_jobs=n_threads,
            progress=update,
        )
    seconds = time.perf_counter() - start
    lower, upper = (
        Evidence(
            value=side.ln_value,
            std_error=side.std_error,
            method="annealed",
            given_total=True,
            log_probability_of_total=np.nan,
            n_tokens=total,
            is_unbiased=is_unbiased,
            is_lower_bound=False,
            n_replicates=side.n_replicates,
            n_eff=side.n_eff,
            seconds=seconds,
        )
        for side, is_unbiased in zip(sides, (True, False), strict=True)
    )
    return Sandwich(lower, upper)
