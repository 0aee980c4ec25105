"""Evidence from below and from above, where the allocation is known."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from polyabayes._support import checks
from polyabayes._support.bidirectional import BidirectionalBounds
from polyabayes._support.progress import progress_bar
from polyabayes._support.random import RandomState, draw_seed
from polyabayes.allocation.layout import HasGraph, lay_out
from polyabayes.data.tensor import CountTensor
from polyabayes.exceptions import InvalidArgumentError, InvalidTypeError

_MOST_TOKENS = 10**8


def find_bounds(
    model: HasGraph,
    shape: Mapping[str, int],
    total: int,
    *,
    n_chains: int,
    n_samples: int,
    n_replicates: int,
    random_state: RandomState,
    n_jobs: int | None,
    progress: bool,
) -> BidirectionalBounds:
    """Draw a tensor of the given shape and total, and anneal from both sides."""
    if not isinstance(shape, Mapping) or not shape:
        raise InvalidTypeError(f"shape must map the axes to their sizes, got {shape!r}")
    checks.whole_number("total", total, 1, _MOST_TOKENS)
    sizes = {"n_chains": n_chains, "n_samples": n_samples, "n_replicates": n_replicates}
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
    seed, n_threads = draw_seed(random_state), checks.n_threads(n_jobs)
    with progress_bar(progress, n_replicates, "replicate") as update:
        lower, upper = layout.core.bidirectional_bounds(
            total,
            n_chains=n_chains,
            n_temperatures=n_samples,
            n_replicates=n_replicates,
            seed=seed,
            n_jobs=n_threads,
            progress=update,
        )
    return BidirectionalBounds(
        lower=np.array([lower.ln_value]),
        lower_std_errors=np.array([lower.std_error]),
        upper=np.array([upper.ln_value]),
        upper_std_errors=np.array([upper.std_error]),
        sizes=np.array([n_samples]),
    )
