"""Chiang & Poole, search for latent variables with unbounded domains."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from benches.papers.figure import DATA, Figure, Row, Size

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

    The published size has 10 folds and sizes to 150; a run that was cut goes on from its folder.
    """
    counts = pb.read_corpus(DATA / "cora.ldac", vocabulary=DATA / "cora.vocab").counts
    if size is Size.SMALL:
        counts = counts[:150, :300]
        counts = counts[np.asarray(counts.sum(axis=1)).ravel() > 0]
    largest = size.pick(6, 150, 12)
    search = pb.WitnessSearch(
        pb.LatentDirichletAllocation(fit_method="em", max_iter=size.pick(20, 100)),
        pb.priors.Poisson(10, shift=1),
        scoring="bound",
        max_steps=largest,
        random_state=0,
    )
    folds = pb.cross_validate(
        search,
        counts,
        n_folds=size.pick(2, 10, 3),
        priors=[pb.priors.Poisson(mean, shift=1) for mean in (5, 40)],
        checkpoint=None if size is Size.SMALL else Path("papers-output") / f"cora-{largest}",
    )
    names = list(folds)
    for i in range(len(folds[names[0]])):
        yield {name: folds[name][i] for name in names}


FIGURES = [
    Figure(
        "witness", "fig1", "Bounds on ln p(y), one size", one_dimension, "step", "ln p(y)", "bound"
    ),
    Figure("witness", "fig2", "Search over two sizes", two_dimensions),
    Figure("witness", "fig3-5", "Cora: bounds of folds", cora, middle="3 folds, sizes to 12"),
]
