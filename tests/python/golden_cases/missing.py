"""Golden values of tensors with cells that were not observed."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import polyabayes as pb
from golden_cases.allocation import table
from golden_cases.public_api import Case, decomposition, evidence, missing

WITH_RATE: dict[str, tuple[Callable[[], pb.AllocationModel], tuple[int, ...]]] = {
    "nmf": (lambda: pb.AllocationModel.nmf(2, concentration=1.5, rate=0.5), (3, 4)),
    "cp": (lambda: pb.AllocationModel.cp(["i", "j", "k"], 2, rate=0.5), (2, 3, 2)),
    "tucker": (lambda: pb.AllocationModel.tucker(["i", "j"], [2, 3], rate=0.5), (3, 4)),
    "blockmodel": (lambda: pb.AllocationModel.blockmodel(2, 2, rate=0.5), (3, 3, 2)),
    "hidden markov tied": (
        lambda: pb.AllocationModel.hidden_markov(3, 2, tied=True, rate=0.5),
        (2, 2, 2),
    ),
}


def holes(shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Counts, and where they were observed: all but two cells."""
    observed = np.ones(math.prod(shape), bool)
    observed[[1, math.prod(shape) - 2]] = False
    observed = observed.reshape(shape)
    return np.where(observed, table(shape, 6), 0), observed


def missing_cases() -> Iterator[tuple[str, Case]]:
    sizes: dict[str, dict[str, Any]] = {
        "exact": {"max_total": 8},
        "auto": {"max_total": 12},
        "smc": {"max_total": 14, "particles": 16},
        "vb": {"samples": 50, "replicates": 4},
    }
    for (name, (model, shape)), (method, size) in itertools.product(
        WITH_RATE.items(), sizes.items()
    ):
        yield (
            f"{name} {method}",
            lambda m=model, s=shape, how=method, z=size: missing(
                m(), holes(s)[0], how, observed=holes(s)[1], **z
            ),
        )
    for name, method in itertools.product(("nmf", "cp", "tucker"), ("vb", "em")):
        model, shape = WITH_RATE[name]
        yield (
            f"{name} decomposed by {method}",
            lambda m=model, s=shape, how=method: decomposition(
                m(), holes(s)[0], how, observed=holes(s)[1], iterations=30, n_restarts=2
            ),
        )
    nmf, shape = WITH_RATE["nmf"]
    yield (
        "nmf evidence",
        lambda: evidence(
            nmf(), holes(shape)[0], "smc", observed=holes(shape)[1], max_total=14, particles=16
        ),
    )
