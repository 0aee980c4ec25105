"""Chiang & Poole, search for latent variables with unbounded domains."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from benches.papers.figure import DATA, PARTS, Figure, Row, Size, mean_and_error, once
from scipy.sparse import csr_matrix

import polyabayes as pb


def one_dimension(size: Size) -> Iterator[Row]:
    """Figure 1: bounds of ln p(y) against steps, one size; log-scores rise to a plateau."""
    search = pb.WitnessSearch(
        lambda size: -2.0 - 8.0 / size, pb.priors.Geometric(0.2), max_steps=size.pick(15, 30)
    ).fit()
    for step in range(search.n_steps_):
        row = search.bounds_.row(step)
        for side in ("lower", "upper"):
            yield {"step": step + 1, "ln p(y)": row[side], "bound": side, "size": row["size"]}


def two_dimensions(size: Size) -> Iterator[Row]:
    """Figure 2: the same over two sizes: the configurations tried, and the witnesses."""
    prior = pb.priors.Product(pb.priors.Geometric(0.3), pb.priors.Geometric(0.3))
    search = pb.WitnessSearch(
        lambda first, second: -2.0 - 4.0 / first - 6.0 / second,
        prior,
        max_steps=size.pick(25, 60),
    ).fit()
    for step, trace in enumerate(search.trace_):
        row = search.bounds_.row(step)
        yield {
            "step": step + 1,
            "sizes": " x ".join(map(str, trace.sizes)),
            "witnesses": "; ".join(" x ".join(map(str, w)) for w in trace.witnesses),
            "lower": row["lower"],
            "upper": row["upper"],
        }


def cora(size: Size) -> Iterator[Row]:
    """Figures 3 to 5: bounds on p(y) and on predictions of Cora's folds, Poisson priors of sizes.

    The published size has 10 folds and sizes to 150. A run that was cut goes on from its folder.
    """
    counts = pb.read_corpus(DATA / "cora.ldac", vocabulary=DATA / "cora.vocab").counts
    if size is Size.SMALL:
        counts = counts[:150, :300]
        counts = counts[np.asarray(counts.sum(axis=1)).ravel() > 0]
    n_folds, steps = size.pick((2, (1, 3, 6)), (10, (1, 2, 5, 10, 20, 40, 60, 80, 100, 120, 150)))
    fold_of = np.random.default_rng(0).permutation(counts.shape[0]) % n_folds
    found: dict[tuple[Any, ...], list[float]] = {}
    with TemporaryDirectory() as passing:
        kept = Path(passing) if size is Size.SMALL else PARTS / "witness-fig3-5"
        for n_steps, fold in itertools.product(steps, range(n_folds)):
            train, test = counts[fold_of != fold], counts[fold_of == fold]
            search = partial(bounds_of_fold, train, test, n_steps, kept / f"{fold}")
            for *key, value in once(kept / f"{fold}-{n_steps}.json", search):
                found.setdefault(tuple(key), []).append(value)
    for (mean, n_steps, quantity), values in found.items():
        value, error = mean_and_error(values)
        yield {
            "lambda": mean,
            "steps": n_steps,
            "quantity": quantity,
            "nats a token": value,
            "error": error,
        }


def bounds_of_fold(
    train: csr_matrix, test: csr_matrix, n_steps: int, folder: Path
) -> list[tuple[int, int, str, float]]:
    """Nats a token of a fold after so many steps: our bounds, the paper's, and the best model."""
    found = []
    for kind in ("witness", "paper"):
        search = pb.WitnessSearch(
            pb.LatentDirichletAllocation(
                fit_method="em", learn_priors=False, max_iter=20, random_state=0
            ),
            pb.priors.Poisson(10, shift=1),
            bound=kind,
            scoring="bound",
            scoring_options={"method": "smc-lookahead", "n_particles": 50, "n_replicates": 4},
            max_steps=n_steps,
            random_state=0,
            checkpoint=folder,
        ).fit(train)
        for mean in (5, 10, 40):
            under = search.under(pb.priors.Poisson(mean, shift=1))
            row, predicted = under.bounds_.row(-1), under.predictive_bounds(test)
            for side in ("lower", "upper"):
                value = row[side] / train.sum()
                found.append((mean, n_steps, f"ln p(y), {kind}, {side}", value))
                value = getattr(predicted, side) / test.sum()
                found.append((mean, n_steps, f"ln p(y' given y), {kind}, {side}", value))
            if kind == "witness":
                value = predicted.best / test.sum()
                found.append((mean, n_steps, "ln p(y' given y), best size", value))
    return found


FIGURES = [
    Figure(
        "witness", "fig1", "Bounds on ln p(y), one size", one_dimension, "step", "ln p(y)", "bound"
    ),
    Figure("witness", "fig2", "Search over two sizes", two_dimensions),
    Figure(
        "witness",
        "fig3-5",
        "Cora: bounds of folds",
        cora,
        "steps",
        "nats a token",
        "quantity",
        "lambda",
        "error",
    ),
]
