"""Cemgil et al. (2019), Bayesian allocation model."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from benches.papers.figure import DATA, Figure, Row, mean_and_error
from numpy.typing import NDArray
from sklearn.decomposition import NMF

import polyabayes as pb

Model = pb.AllocationModel

# The matrices of Figure 9 and Example 3.4; -1 is the cell that is missing.
X1 = np.array([[2, 1, 1, 0], [0, 0, 1, 2], [0, 0, 1, 1]])
X2 = np.array([[4, 3, 0], [0, 0, 3], [0, 0, 3]])
X3 = np.array([[3, -1], [3, 3]])
X4 = np.array([[4, -1], [4, 1]])


def example34(is_full: bool) -> Iterator[Row]:
    """A 2 x 2 matrix with a missing cell: totals and ranks; a = 4, b = 0.01."""
    for name, matrix in (("X3", X3), ("X4", X4)):
        for rank in (1, 2, 3, 4):
            model = Model.nmf(rank, concentration=4.0, rate=0.01)
            found = model.predict_missing(
                np.ma.masked_equal(matrix, -1), "exact", max_total=60 if is_full else 20
            )
            for total, log_joint in zip(found.totals, found.log_joint, strict=True):
                if total <= 20:
                    yield {"matrix": name, "rank": f"{rank}", "total": total, "ln p": log_joint}


def drawn(model: Model, shape: tuple[int, ...], total: int, seed: int) -> NDArray[np.int64]:
    """Counts from the model's own prior: its urn, token by token, is the same as theta first."""
    rng = np.random.default_rng(seed)
    a, rank = model.concentration, int(next(size for size in model.sizes.values() if size))
    weights = rng.dirichlet(np.full(rank, a / rank))
    factors = [rng.dirichlet(np.full(size, a / rank / size), rank) for size in shape]
    counts = np.zeros(shape, dtype=np.int64)
    for topic in rng.choice(rank, total, p=weights):
        counts[tuple(rng.choice(len(f[topic]), p=f[topic]) for f in factors)] += 1
    return counts


def toys(is_full: bool) -> Iterator[Row]:
    """Evidence of X1 and X2 by rank and concentration: exact, the paper's SMC, bound, tempered."""
    n_runs = 100 if is_full else 10
    exponents = range(-5, 6) if is_full else (-5, -3, 0, 3)
    for name, matrix in (("X1", X1), ("X2", X2)):
        for a in (10.0**e for e in exponents):
            for rank in (1, 2, 3, 4):
                model = Model.nmf(rank, concentration=a)
                exact = model.log_evidence(matrix, "exact", budget=1e10).value
                runs = [
                    model.log_evidence(
                        matrix, "smc", n_particles=500, n_replicates=2, random_state=seed
                    ).value
                    for seed in range(n_runs)
                ]
                mean, error = mean_and_error(runs)
                bound = model.log_evidence(matrix, "vb", random_state=0).value
                tempered = model.log_evidence(matrix, "tempered", random_state=0)
                yield {
                    "matrix": name,
                    "a": a,
                    "rank": rank,
                    "exact": exact,
                    "smc - exact": mean - exact,
                    "error": error,
                    "sd of smc": float(np.std(runs)),
                    "vb - exact": bound - exact,
                    "tempered - exact": tempered.value - exact,
                    "error of tempered": tempered.std_error,
                }


def tensor(is_full: bool) -> Iterator[Row]:
    """A 20 x 25 x 30 tensor of rank 5, T = 500, a = 30: which rank has the most evidence?"""
    counts = drawn(Model.cp(["i", "j", "k"], 5, concentration=30.0), (20, 25, 30), 500, 0)
    for rank in range(1, 16) if is_full else (3, 5, 7):
        model = Model.cp(["i", "j", "k"], rank, concentration=30.0)
        for method, options in (
            ("smc", {"n_particles": 1_000}),
            ("vb", {}),
            ("tempered", {} if is_full else {"target_std_error": 2.0}),
        ):
            found = model.log_evidence(counts, method, given_total=True, random_state=0, **options)
            yield {
                "rank": rank,
                "method": method,
                "ln evidence": found.value,
                "error": found.std_error,
                "seconds": found.seconds,
            }


def times(is_full: bool) -> Iterator[Row]:
    """Seconds of SMC with 100 particles by the side of a cube; T = 500, rank 5."""
    for side in (4, 8, 16, 32, 64, 256) if is_full else (4, 16, 64):
        model = Model.cp(["i", "j", "k"], 5, concentration=30.0)
        rng = np.random.default_rng(side)
        places, counts = np.unique(rng.integers(0, side, (500, 3)), axis=0, return_counts=True)
        data = pb.CountTensor.from_coo(places, counts, ["i", "j", "k"], shape=(side,) * 3)
        for method, options in (("smc", {"n_particles": 100}), ("vb", {"n_restarts": 1})):
            start = time.perf_counter()
            model.log_evidence(data, method, random_state=0, n_jobs=1, **options)
            yield {"side": side, "method": method, "seconds": time.perf_counter() - start}


ABALONE = ["length", "diameter", "height", "whole_weight", "rings"]


def abalone(is_full: bool) -> Iterator[Row]:
    """Sex and five measurements of five levels each under one hidden cause: evidence by rank."""
    frame = pd.read_csv(DATA / "abalone.csv").head(4_177 if is_full else 150)
    data = pb.discretise(frame, ABALONE, 5, factors=["sex"], random_state=0)
    axes = ["sex", *ABALONE]
    for a in (1.0, 0.001):
        for rank in range(1, 31) if is_full else (1, 2, 4):
            model = Model.cp(axes, rank, concentration=a)
            for method, options in (
                ("smc", {"n_particles": 1_000 if is_full else 200}),
                ("tempered", {} if is_full else {"target_std_error": 2.0}),
            ):
                found = model.log_evidence(
                    data, method, given_total=True, random_state=0, **options
                )
                yield {
                    "a": a,
                    "rank": rank,
                    "method": method,
                    "ln evidence": found.value,
                    "error": found.std_error,
                    "converged": found.converged,
                }


def abalone_age(is_full: bool) -> Iterator[Row]:
    """Distribution of the rings' level given each hidden level, rank 3."""
    frame = pd.read_csv(DATA / "abalone.csv").head(4_177 if is_full else 300)
    data = pb.discretise(frame, ABALONE, 5, factors=["sex"], random_state=0)
    model = Model.cp(["sex", *ABALONE], 3, concentration=1.0)
    found = model.decompose(data, "vb", random_state=0)
    table = found.tables["rings"]
    labels = data.labels[data.axes.index("rings")]
    for level, column in enumerate(table.reshape(len(labels), -1).T):
        for label, probability in zip(labels, column, strict=True):
            yield {"hidden level": f"{level}", "rings": label, "probability": probability}


def letters(n_tokens: int) -> NDArray[np.int64]:
    """Bigrams drawn by their frequency in English."""
    table = pd.read_csv(DATA / "letter_bigrams.csv", keep_default_na=False)
    shares = table.pivot(index="first", columns="second", values="count").to_numpy(float)
    drawn_counts: NDArray[np.int64] = np.random.default_rng(0).multinomial(
        n_tokens, (shares / shares.sum()).ravel()
    )
    return drawn_counts.reshape(shares.shape)


def figure15(is_full: bool) -> Iterator[Row]:
    """Letter bigrams, T = 2,000: evidence by rank, NMF and symmetric NMF."""
    counts = letters(2_000 if is_full else 120)
    for kind, make in (("NMF", Model.nmf), ("symmetric NMF", Model.symmetric_nmf)):
        for a in (1.0, 0.001):
            for rank in range(1, 51) if is_full else (1, 3, 6):
                for method, options in (
                    ("smc", {"n_particles": 1_000}),
                    ("tempered", {} if is_full else {"target_std_error": 2.0}),
                ):
                    found = make(rank, concentration=a).log_evidence(
                        counts, method, given_total=True, random_state=0, **options
                    )
                    yield {
                        "model": f"{kind}, a = {a:g}",
                        "rank": rank,
                        "method": method,
                        "ln evidence": found.value,
                        "error": found.std_error,
                        "converged": found.converged,
                    }


def figure16(is_full: bool) -> Iterator[Row]:
    """Sparsity and loss of factors by concentration, beside NMF of two losses (scikit-learn)."""
    counts = letters(2_000)
    rank = 10
    total = counts.sum()
    for a in (1e-3, 1e-1, 1.0, 1e1, 1e3) if not is_full else 10.0 ** np.arange(-3, 4):
        found = Model.nmf(rank, concentration=float(a)).decompose(counts, "vb", random_state=0)
        factors = [found.tables[name] for name in ("word", "doc")]
        yield {
            "method": f"VB, a = {a:g}",
            "a": a,
            **quality(counts, np.asarray(found.reconstruction()), factors),
        }
    for loss in ("frobenius", "kullback-leibler"):
        solver: Any = "cd" if loss == "frobenius" else "mu"
        model = NMF(rank, beta_loss=loss, solver=solver, max_iter=2_000, random_state=0)
        weights = model.fit_transform(counts / total)
        yield {
            "method": f"NMF, {loss}",
            "a": None,
            **quality(counts, weights @ model.components_ * total, [weights, model.components_]),
        }


def quality(
    counts: NDArray[np.int64], expected: NDArray[np.float64], factors: list[NDArray[np.float64]]
) -> Row:
    """Squared loss and Kullback-Leibler divergence of shares, and the share of factors near 0."""
    p = counts / counts.sum()
    q = np.maximum(expected / expected.sum(), 1e-300)
    divergence = float((p[p > 0] * np.log(p[p > 0] / q[p > 0])).sum())
    shares = np.concatenate([(f / max(f.max(), 1e-300)).ravel() for f in factors])
    return {
        "squared loss": float(((p - q) ** 2).sum()),
        "KL": divergence,
        "share of factors below 1 %": float((shares < 0.01).mean()),
    }


EVIDENCE: dict[str, Any] = {"x": "rank", "y": "ln evidence", "series": "method", "error": "error"}
FIGURES = [
    Figure(
        "bam",
        "example34",
        "ln p by total, a cell missing",
        example34,
        "total",
        "ln p",
        "rank",
        "matrix",
    ),
    Figure("bam", "fig5-9", "Evidence of the toy matrices", toys),
    Figure("bam", "fig10", "20 x 25 x 30 tensor of rank 5", tensor, **EVIDENCE),
    Figure("bam", "fig10-times", "Seconds by side", times, "side", "seconds", "method", log="xy"),
    Figure("bam", "fig12", "Abalone", abalone, panel="a", **EVIDENCE),
    Figure(
        "bam", "fig13", "Rings by hidden level", abalone_age, "rings", "probability", "hidden level"
    ),
    Figure("bam", "fig15", "Letter bigrams", figure15, panel="model", **EVIDENCE),
    Figure("bam", "fig16", "Sparsity and loss of letter bigrams, rank 10", figure16),
]
