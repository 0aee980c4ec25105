"""Cemgil et al. (2019), Bayesian allocation model."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from benches.papers.figure import DATA, PARTS, Figure, Row, Size, mean_and_error
from numpy.typing import NDArray
from scipy.special import logsumexp
from scipy.stats import nbinom
from sklearn.decomposition import NMF

import polyabayes as pb

Model = pb.AllocationModel

# The matrices of Figure 9 and Example 3.4; -1 is the cell that is missing.
X1 = np.array([[2, 1, 1, 0], [0, 0, 1, 2], [0, 0, 1, 1]])
X2 = np.array([[4, 3, 0], [0, 0, 3], [0, 0, 3]])
X3 = np.array([[3, -1], [3, 3]])
X4 = np.array([[4, -1], [4, 1]])


def example34(_size: Size) -> Iterator[Row]:
    """A 2 x 2 matrix with a missing cell: totals and ranks; a = 4, b = 0.01."""
    for name, matrix in (("X3", X3), ("X4", X4)):
        for rank in (1, 2, 3, 4):
            model = Model.nmf(rank, concentration=4.0, rate=0.01)
            found = model.predict_missing(np.ma.masked_equal(matrix, -1), "exact", max_total=20)
            for total, log_joint in zip(found.totals, found.log_joint, strict=True):
                yield {"matrix": name, "rank": f"{rank}", "total": total, "ln p": log_joint}


# Graphs over the axes of a matrix and hidden nodes of two values each. The first three have the
# same independences, and so the fourth, whose directions are ours.
GRAPHS = {
    "i <- r -> j": ["r"],
    "i -> r -> j": ["r"],
    "i <- r <- j": ["r"],
    "i - r - j": ["r"],
    "i -> r <- j": ["r"],
    "i <- r -> s -> j": ["r", "s"],
    "i <- r; s -> j; r, s -> t": ["r", "s", "t"],
}


def section3(_size: Size) -> Iterator[Row]:
    """Statements of Section 3, over all 2 x 3 tables of four tokens, a = 1.5, b = 0.5.

    Their probabilities sum to that of the total (a negative binomial law), whatever the graph and
    the prior; graphs of the same independences have the same evidence, under the BDeu prior only.
    """
    a, b, total = 1.5, 0.5, 4
    cuts = itertools.combinations(range(total + 5), 5)
    tables = [np.diff([-1, *cut, total + 5]).reshape(2, 3) - 1 for cut in cuts]
    ln_total = float(nbinom.logpmf(total, a, b / (1 + b)))
    for prior in ("bdeu", "flat"):
        first = None
        for graph, hidden in GRAPHS.items():
            make = Model.from_undirected if " - " in graph else Model
            sizes = dict.fromkeys(hidden, 2)
            model = make(graph, sizes, concentration=a, rate=b, prior=prior, axes=["i", "j"])
            values = np.array([model.log_evidence(table, "exact").value for table in tables])
            first = values if first is None else first
            yield {
                "prior": prior,
                "graph": graph,
                "ln of the sum - ln p(T)": float(logsumexp(values)) - ln_total,
                "largest difference from the first": float(np.abs(values - first).max()),
            }


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


def allocations(_size: Size) -> Iterator[Row]:
    """All allocations of X1, rank 3: how many use d parameters, and their share of the evidence."""
    for a in (10.0, 0.1, 1e-10):
        found = Model.nmf(3, concentration=a).allocations(X1)
        for d in range(found.n_parameters.min(), found.n_parameters.max() + 1):
            group = found.n_parameters == d
            weights = found.log_probabilities[group] - found.log_evidence
            yield {
                "a": a,
                "parameters": d,
                "allocations": int(found.multiplicities[group].sum()),
                "share of the evidence": float(found.multiplicities[group] @ np.exp(weights)),
                "largest ln p(S)": float(found.log_probabilities[group].max()),
            }


def toys(size: Size) -> Iterator[Row]:
    """Evidence of X1 and X2 by rank and concentration: exact, the paper's SMC, bound, tempered."""
    n_runs = size.pick(10, 100)
    exponents = size.pick((-5, -3, 0, 3), tuple(range(-5, 6)))
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
                    "mean of all smc - exact": float(logsumexp(runs) - np.log(n_runs)) - exact,
                    "vb - exact": bound - exact,
                    "tempered - exact": tempered.value - exact,
                    "error of tempered": tempered.std_error,
                }


def planted(rank: int, a: float, total: int, seed: int) -> NDArray[np.int64]:
    """A 20 x 25 x 30 tensor of the paper's Section 6.2."""
    return drawn(Model.cp(["i", "j", "k"], rank, concentration=a), (20, 25, 30), total, seed)


def tensor(size: Size) -> Iterator[Row]:
    """A 20 x 25 x 30 tensor of rank 5: which rank has the most evidence?

    The text has T = 500 and a = 30, the authors' code T = 1,000 and a = 10.
    """
    for total, a in size.pick(((500, 30.0),), ((500, 30.0), (1_000, 10.0))):
        counts = planted(5, a, total, 0)
        for rank in size.pick((3, 5, 7), tuple(range(1, 11))):
            model = Model.cp(["i", "j", "k"], rank, concentration=a)
            for method, options in methods(size, *size.pick((1_000, 4), (1_500, 40))).items():
                at = "fig10", (total, rank), size, counts
                found = scored(*at, model, method=method, **options)
                yield {
                    "tensor": f"T = {total:,}, a = {a:g}",
                    "rank": rank,
                    **evidence_row(method, found),
                    "seconds": found.seconds,
                }


def scored(
    figure: str,
    names: tuple[Any, ...],
    size: Size,
    data: Any,
    model: pb.AllocationModel,
    **how: Any,
) -> pb.Evidence:
    """Evidence given the total; larger forms go on after a break, from a folder of these names."""
    if how["method"] != "vb" and size is not Size.SMALL:
        folder = "-".join(map(str, (*names, how["method"], size))).replace(" ", "-")
        how["checkpoint"] = PARTS / f"bam-{figure}" / folder
    return model.log_evidence(data, given_total=True, random_state=0, **how)


def evidence_row(method: str, found: pb.Evidence) -> Row:
    """Columns of a value of the evidence."""
    return {
        "method": method,
        "ln evidence": found.value,
        "error": found.std_error,
        "converged": found.converged,
    }


def methods(
    size: Size, n_particles: int, n_runs: int = 4, n_sweeps: int | None = None
) -> dict[str, dict[str, Any]]:
    """The published two, and tempering, which small and middle forms stop at larger errors.

    The middle form of large data bounds its sweeps, too.
    """
    short = {} if n_sweeps is None else {"n_samples": n_sweeps, "n_replicates": 2}
    return {
        "smc": {"n_particles": n_particles, "n_replicates": n_runs},
        "vb": {},
        "tempered": size.pick(
            {"target_std_error": 2.0},
            {"target_std_error": 0.5},
            {"target_std_error": 2.0, **short},
        ),
    }


def confusion(size: Size) -> Iterator[Row]:
    """Which rank do the methods name, for tensors of rank 1 to 8? T = 1,000, a = 10 and 0.1."""
    ranks = size.pick((1, 2, 3), tuple(range(1, 9)))
    n_draws = size.pick(1, 15, 2)
    for a, true, draw in itertools.product((10.0, 0.1), ranks, range(n_draws)):
        counts = planted(true, a, size.pick(100, 1_000), 100 * draw + true)
        for method, options in methods(size, 1_000, 20, 128).items():
            values = [
                scored(
                    *("fig10-ranks", (a, true, draw, rank), size, counts),
                    Model.cp(["i", "j", "k"], rank, concentration=a),
                    method=method,
                    **options,
                ).value
                for rank in ranks
            ]
            yield {
                "a": a,
                "true rank": true,
                "method": method,
                "rank": ranks[int(np.argmax(values))],
                "ahead of the true one": max(values) - values[ranks.index(true)],
            }


def times(size: Size) -> Iterator[Row]:
    """Seconds by the side of a cube: T = 1,000, rank 10, 500 particles; VB of 50 iterations."""
    for side in size.pick((4, 16, 64), (*range(4, 65, 4), 256)):
        model = Model.cp(["i", "j", "k"], 10, concentration=50.0)
        rng = np.random.default_rng(side)
        places, counts = np.unique(rng.integers(0, side, (1_000, 3)), axis=0, return_counts=True)
        data = pb.CountTensor.from_coo(places, counts, ["i", "j", "k"], shape=(side,) * 3)
        for method, options in (
            ("smc", {"n_particles": 500}),
            ("vb", {"n_restarts": 1, "max_iter": 50}),
        ):
            start = time.perf_counter()
            model.log_evidence(data, method, random_state=0, n_jobs=1, **options)
            yield {"side": side, "method": method, "seconds": time.perf_counter() - start}


ABALONE = ["length", "diameter", "height", "whole_weight", "rings"]


def abalone(size: Size) -> Iterator[Row]:
    """Sex and five measurements of five levels each under one hidden cause: evidence by rank."""
    frame = pd.read_csv(DATA / "abalone.csv").head(size.pick(150, 4_177))
    data = pb.discretise(frame, ABALONE, 5, factors=["sex"], random_state=0)
    axes = ["sex", *ABALONE]
    for a in (1.0, 0.001):
        for rank in size.pick((1, 2, 4), tuple(range(1, 31)), (1, 2, 3, 4, 6, 10, 20, 30)):
            model = Model.cp(axes, rank, concentration=a)
            for method, options in methods(size, size.pick(200, 1_000), n_sweeps=64).items():
                at = "fig12", (a, rank), size, data
                found = scored(*at, model, method=method, **options)
                yield {
                    "a": a,
                    "rank": rank,
                    **evidence_row(method, found),
                }


def abalone_age(size: Size) -> Iterator[Row]:
    """Distribution of the rings' level given each hidden level, the largest first; rank 3."""
    frame = pd.read_csv(DATA / "abalone.csv").head(size.pick(300, 4_177))
    data = pb.discretise(frame, ABALONE, 5, factors=["sex"], random_state=0)
    model = Model.cp(["sex", *ABALONE], 3, concentration=1.0)
    labels = data.labels[data.axes.index("rings")]
    for method, options in (("vb", {}), ("tempered", size.pick({"n_samples": 64}, {}))):
        tables = model.decompose(data, method, random_state=0, **options).tables
        largest_first = np.argsort(-tables["r"])
        for level, column in enumerate(tables["rings"][:, largest_first].T):
            for label, probability in zip(labels, column, strict=True):
                yield {
                    "method": method,
                    "hidden level": f"{level}",
                    "rings": label,
                    "probability": probability,
                }


def letters(n_tokens: int) -> NDArray[np.int64]:
    """Bigrams of English: the mode of the multinomial, found by adding tokens one by one."""
    table = pd.read_csv(DATA / "letter_bigrams.csv", keep_default_na=False)
    shares = table.pivot(index="first", columns="second", values="count").to_numpy(float)
    shares /= shares.sum()
    counts = np.floor(n_tokens * shares).astype(np.int64)
    while counts.sum() < n_tokens:
        counts[np.unravel_index(np.argmax(shares / (counts + 1)), counts.shape)] += 1
    return counts


def figure15(size: Size) -> Iterator[Row]:
    """Letter bigrams, T = 2,000: evidence by rank, NMF and symmetric NMF."""
    counts = letters(size.pick(120, 2_000))
    for kind, make in (("NMF", Model.nmf), ("symmetric NMF", Model.symmetric_nmf)):
        for a in (1.0, 0.001):
            for rank in size.pick((1, 3, 6), tuple(range(1, 51)), (1, 2, 3, 4, 6, 10, 20, 50)):
                for method, options in methods(size, 1_000, n_sweeps=128).items():
                    model = make(rank, concentration=a)
                    at = "fig15", (kind, a, rank), size, counts
                    found = scored(*at, model, method=method, **options)
                    yield {
                        "model": f"{kind}, a = {a:g}",
                        "rank": rank,
                        **evidence_row(method, found),
                    }


def figure16(size: Size) -> Iterator[Row]:
    """Sparsity and loss of factors by concentration and rank, beside NMF of two losses."""
    counts = letters(2_000)
    exponents = size.pick((-3, 0, 3), tuple(range(-4, 5)))
    ranks = size.pick((2, 10), tuple(range(1, 27)))
    cases = [(10, 10.0**e) for e in exponents] + [(rank, 1.0) for rank in ranks]
    for rank, a in cases:
        found = Model.nmf(rank, concentration=a).decompose(counts, "vb", random_state=0)
        factors = [np.asarray(found.tables[name]) for name in ("word", "doc")]
        expected = np.asarray(found.reconstruction())
        yield {"method": "VB", "rank": rank, "a": a, **quality(counts, expected, factors)}
    for loss, solver in (("frobenius", "cd"), ("kullback-leibler", "mu")):
        for rank in ranks:
            model = NMF(rank, beta_loss=loss, solver=solver, max_iter=2_000, random_state=0)
            weights = model.fit_transform(counts.astype(float))
            factors = [weights, model.components_.T]
            yield {
                "method": f"NMF, {loss}",
                "rank": rank,
                "a": None,
                **quality(counts, weights @ model.components_, factors),
            }


def quality(
    counts: NDArray[np.int64], expected: NDArray[np.float64], factors: list[NDArray[np.float64]]
) -> Row:
    """Norm of the residual, Kullback-Leibler divergence, and sparsity of factors (Hoyer 2004)."""
    p = counts[counts > 0]
    q = np.maximum(expected, 1e-300)
    divergence = float((p * np.log(p / q[counts > 0])).sum() - counts.sum() + expected.sum())
    return {
        "residual": float(np.linalg.norm(counts - expected)),
        "KL": divergence,
        "sparsity": float(np.mean([sparsity(column) for f in factors for column in f.T])),
    }


def sparsity(values: NDArray[np.float64]) -> float:
    """Hoyer's measure: 0 where all entries are equal, 1 where one alone is not zero."""
    root = math.sqrt(len(values))
    norm = float(np.linalg.norm(values))
    return (root - values.sum() / norm) / (root - 1) if norm > 0 else 1.0


EVIDENCE: dict[str, Any] = {"x": "rank", "y": "ln evidence", "series": "method", "error": "error"}
FIGURES = [
    Figure("bam", "section3", "Statements of Section 3, by enumeration", section3),
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
    Figure(
        "bam",
        "fig5-6",
        "Allocations of X1 by parameters in use, rank 3",
        allocations,
        "parameters",
        "share of the evidence",
        "a",
    ),
    Figure("bam", "fig9", "Evidence of the toy matrices", toys),
    Figure(
        "bam",
        "fig10",
        "20 x 25 x 30 tensor of rank 5",
        tensor,
        panel="tensor",
        middle="tempering stops at 2 nats",
        **EVIDENCE,
    ),
    Figure(
        "bam",
        "fig10-ranks",
        "Ranks named for tensors of rank 1 to 8",
        confusion,
        middle="two tensors a rank; tempering of 2 replicates of 128 sweeps",
    ),
    Figure("bam", "fig10-times", "Seconds by side", times, "side", "seconds", "method", log="xy"),
    Figure(
        "bam",
        "fig12",
        "Abalone",
        abalone,
        panel="a",
        middle="eight ranks; tempering of 2 replicates of 64 sweeps",
        **EVIDENCE,
    ),
    Figure(
        "bam",
        "fig13",
        "Rings by hidden level",
        abalone_age,
        "rings",
        "probability",
        "hidden level",
        "method",
    ),
    Figure(
        "bam",
        "fig15",
        "Letter bigrams",
        figure15,
        panel="model",
        middle="eight ranks; tempering of 2 replicates of 128 sweeps",
        **EVIDENCE,
    ),
    Figure("bam", "fig16", "Sparsity and loss of letter bigrams", figure16),
]
