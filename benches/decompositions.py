"""Decompositions of a block of political events, beside pyttb's CP-APR.

    pip install pyttb
    python benches/decompositions.py [--seeds N]

The block has the senders, receivers and actions with most events of ICEWS 2014; rank 10. Half the
tokens are for training, half are held out. Likelihoods are Poisson without constants, held-out ones
a token; cells that a method gives no chance count as 1e-9 of the total, and are told. Times are
processor seconds of one thread. Without pyttb its rows are left out. Real data are read from the
folder POLYABAYES_DATA, or from ../shared/data beside the repository.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from recorded import Table, save

import polyabayes as pb

DATA = Path(
    os.environ.get("POLYABAYES_DATA", Path(__file__).resolve().parents[2] / "shared" / "data")
)
SHAPE = (40, 40, 20)
RANK = 10
FLOOR = 1e-9

Array = NDArray[Any]


def block() -> Array:
    """Counts of the senders, receivers and actions with most events."""
    tensor = pb.read_tensor(DATA / "icews14.tns.gz")
    coordinates, counts = tensor.coordinates, tensor.counts
    found = np.zeros(SHAPE, dtype=np.int64)
    levels = []
    for axis, size in enumerate(SHAPE):
        totals = np.bincount(coordinates[:, axis], weights=counts)
        kept = np.argsort(-totals, kind="stable")[:size]
        numbers = np.full(len(totals), -1)
        numbers[kept] = np.arange(size)
        levels.append(numbers[coordinates[:, axis]])
    places = np.array(levels)
    inside = (places >= 0).all(axis=0)
    np.add.at(found, tuple(places[:, inside]), counts[inside])
    return found


def by_model(method: str, **options: Any) -> Callable[[Array, int], Array]:
    """Expected counts by a method of ours."""

    def run(counts: Array, seed: int) -> Array:
        model = pb.AllocationModel.cp(["sender", "receiver", "action"], RANK)
        found = model.decompose(counts, method, random_state=seed, n_jobs=1, **options)
        return found.reconstruction()

    return run


def by_cp_apr(algorithm: str) -> Callable[[Array, int], Array]:
    """Expected counts by pyttb."""
    import pyttb

    def run(counts: Array, seed: int) -> Array:
        np.random.seed(seed)  # noqa: NPY002 - pyttb draws its start from this
        data = pyttb.tensor(counts.astype(np.float64)).to_sptensor()
        found, _, _ = pyttb.cp_apr(data, RANK, algorithm=algorithm, printitn=0)
        return np.asarray(found.full().data)

    return run


def methods() -> dict[str, Callable[[Array, int], Array]]:
    """All methods by name."""
    found = {
        "ml, one start": by_model("ml", n_restarts=1),
        "ml": by_model("ml"),
        "em": by_model("em"),
        "vb": by_model("vb"),
        "gibbs": by_model("gibbs"),
    }
    try:
        found |= {f"pyttb cp_apr, {name}": by_cp_apr(name) for name in ("mu", "pdnr")}
    except ImportError:
        print("pyttb is not installed: no rows of it")
    return found


def ln_likelihood(counts: Array, expected: Array) -> float:
    """Σ X ln X̂ - X̂: the Poisson likelihood without its constants, in nats."""
    seen = counts > 0
    return float((counts[seen] * np.log(expected[seen])).sum() - expected.sum())


def main() -> None:
    parser = argparse.ArgumentParser(description="Decompositions beside pyttb's CP-APR.")
    parser.add_argument("--seeds", type=int, default=3)
    n_seeds = parser.parse_args().seeds
    counts = block()
    train = np.random.default_rng(0).binomial(counts, 0.5)
    test = counts - train
    table = Table(
        "decompositions",
        f"python benches/decompositions.py --seeds {n_seeds}",
        {
            "method": "s",
            "training, worst seed": ",.0f",
            "best seed": ",.0f",
            "held out, nats a token": ".3f",
            "tokens without a chance": ".2%",
            "seconds": ".2f",
        },
    )
    for name, run in methods().items():
        start = time.process_time()
        values = [ln_likelihood(counts, run(counts, seed)) for seed in range(n_seeds)]
        seconds = (time.process_time() - start) / n_seeds
        held_out, hopeless = [], []
        for seed in range(n_seeds):
            expected = run(train, seed)
            shares = expected / expected.sum()
            held_out.append((test * np.log(np.maximum(shares, FLOOR))).sum() / test.sum())
            hopeless.append(test[shares < FLOOR].sum() / test.sum())
        table.add(name, min(values), max(values), np.mean(held_out), np.mean(hopeless), seconds)
    save(table)


if __name__ == "__main__":
    main()
