"""Bounds of the evidence from both sides, for simulated data whose allocation is known."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from polyabayes._support import checks
from polyabayes._support.bidirectional import BidirectionalBounds
from polyabayes.allocation.graphs.network import Network
from polyabayes.allocation.layout import lay_out
from polyabayes.allocation.options import Run
from polyabayes.data.tensors.tensor import CountTensor
from polyabayes.exceptions import InvalidArgumentError, InvalidTypeError

_MOST_TOKENS = 10**8


def find_bounds(
    model: Network,
    shape: Mapping[str, int],
    total: int,
    *,
    n_chains: int,
    n_samples: int,
    n_replicates: int,
    run: Run,
) -> BidirectionalBounds:
    """Draw a tensor of the given shape and total, and anneal in both directions."""
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
    with run.shown(n_replicates, "replicate") as running:
        lower, upper = layout.core.bidirectional_bounds(
            total, n_chains=n_chains, n_temperatures=n_samples, n_replicates=n_replicates, **running
        )
    found = (lower.ln_value, lower.std_error, upper.ln_value, upper.std_error, n_samples)
    return BidirectionalBounds(*(np.array([number]) for number in found))
