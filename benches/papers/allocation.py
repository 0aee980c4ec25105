"""Cemgil et al. (2019), Bayesian allocation model."""

import itertools
import time
from collections.abc import Iterator

import numpy as np
from benches.papers.bam_data import BY_RANK, FIGURES as ON_DATA, compared
from benches.papers.figure import Figure, Row, Settings, mean_and_error
from scipy.special import logsumexp
from scipy.stats import nbinom

import polyabayes as pb

Model = pb.AllocationModel

# The matrices of Figure 9 and Example 3.4; -1 is the cell that is missing.
X1 = np.array([[2, 1, 1, 0], [0, 0, 1, 2], [0, 0, 1, 1]])
X2 = np.array([[4, 3, 0], [0, 0, 3], [0, 0, 3]])
X3 = np.array([[3, -1], [3, 3]])
X4 = np.array([[4, -1], [4, 1]])


def example32(_: Settings) -> Iterator[Row]:
    """Two binary variables, four tokens: independent, and with an arrow in each direction."""
    for name, prior in (("BDeu", "bdeu"), ("a / 4 in every cell", {"i": 0.25, "j": 0.25})):
        for graph in ("i, j", "i -> j", "j -> i"):
            model = Model(graph, concentration=1.0, rate=1.0, prior=prior, axes=["i", "j"])
            found = model.log_evidence([[2, 1], [0, 1]], "exact")
            yield {"prior": name, "graph": graph, "ln evidence": found.value}


def example34(settings: Settings) -> Iterator[Row]:
    """A 2 x 2 matrix with a missing cell: totals and ranks."""
    for name, matrix in (("X3", X3), ("X4", X4)):
        for rank in settings.ranks:
            model = Model.nmf(rank, concentration=settings.a, rate=settings.b)
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


def section3(_: Settings) -> Iterator[Row]:
    """Statements of Section 3, over all 2 x 3 tables of four tokens, a = 1.5, b = 0.5.

    Their probabilities sum to that of the total (negative binomial), whatever the graph and
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


def allocations(settings: Settings) -> Iterator[Row]:
    """All allocations of X1: how many use d parameters, and their share of the evidence."""
    for a in settings.a:
        found = Model.nmf(settings.rank, concentration=a).allocations(X1)
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


def toys(settings: Settings) -> Iterator[Row]:
    """Evidence of X1 and X2 by rank and concentration: exact, SMC, VB, and tempering."""
    cases = itertools.product((("X1", X1), ("X2", X2)), settings.exponents, settings.ranks)
    for (name, matrix), exponent, rank in cases:
        model = Model.nmf(rank, concentration=10.0**exponent)
        exact = model.log_evidence(matrix, "exact", budget=1e10).value
        smc = {"n_particles": settings.particles // 2, "n_replicates": 2, "n_sweeps": 0}
        runs = [
            model.log_evidence(matrix, "smc", random_state=seed, **smc).value
            for seed in range(settings.runs)
        ]
        mean, error = mean_and_error(runs)
        bound = model.log_evidence(matrix, "vb", n_restarts=settings.runs, random_state=0).value
        tempered = model.log_evidence(matrix, "tempered", random_state=0)
        yield {
            "matrix": name,
            "a": model.concentration,
            "rank": rank,
            "exact": exact,
            "smc - exact": mean - exact,
            "error": error,
            "sd of smc": float(np.std(runs)),
            "mean of all smc - exact": float(logsumexp(runs) - np.log(len(runs))) - exact,
            "vb - exact": bound - exact,
            "tempered - exact": tempered.value - exact,
            "error of tempered": tempered.std_error,
        }


def tensor(settings: Settings) -> Iterator[Row]:
    """A tensor drawn from CP: which rank has the most evidence?"""
    for total, a in settings.tensors:
        true = Model.cp(["i", "j", "k"], settings.rank, concentration=a)
        shape = dict(zip("ijk", settings.shape, strict=True))
        counts = true.simulate(shape, total, random_state=0).tensor
        for rank in settings.ranks:
            for row in compared(Model.cp(["i", "j", "k"], rank, concentration=a), counts, settings):
                yield {"tensor": f"T = {total:,}, a = {a:g}", "rank": rank, **row}


def times(settings: Settings) -> Iterator[Row]:
    """Processor seconds by the side of a cube drawn from CP; VB until it converges."""
    model = Model.cp(["i", "j", "k"], settings.rank, concentration=30.0)
    for side in settings.sides:
        seconds: dict[str, list[float]] = {"smc": [], "vb": []}
        n_iterations = []
        for seed in range(settings.repeats):
            shape = dict.fromkeys("ijk", side)
            counts = model.simulate(shape, settings.tokens, random_state=seed).tensor
            for method, found in seconds.items():
                smc = {"n_particles": 500, "n_sweeps": 0}
                options = smc if method == "smc" else {"n_restarts": 1}
                start = time.process_time()
                model.log_evidence(counts, method, random_state=0, n_jobs=1, **options)
                found.append(time.process_time() - start)
            n_iterations.append(
                len(model.decompose(counts, n_restarts=1, random_state=0, n_jobs=1).trace)
            )
        for method, found in seconds.items():
            yield {
                "side": side,
                "method": method,
                "seconds": float(np.mean(found)),
                "iterations": float(np.mean(n_iterations)) if method == "vb" else None,
            }


FIGURES = [
    Figure("bam", "section3", "Statements of Section 3, by enumeration", section3, {"in": ""}),
    Figure(
        "bam",
        "example32",
        "Four tokens under three graphs",
        example32,
        {"in": "3.1, Example 3.2", "a": 1.0, "b": 1.0},
    ),
    Figure(
        "bam",
        "example34",
        "ln p by total, a cell missing",
        example34,
        {"in": "authors' files of Example 3.4", "a": 4.0, "b": 0.01, "ranks": [1, 2, 3, 4]},
        x="total",
        y="ln p",
        series="rank",
        panel="matrix",
    ),
    Figure(
        "bam",
        "fig5-6",
        "Allocations of X1 by parameters in use",
        allocations,
        {"in": "authors' files of Figures 5 and 6", "rank": 3, "a": [10.0, 0.1, 1e-10]},
        x="parameters",
        y="share of the evidence",
        series="a",
    ),
    Figure(
        "bam",
        "fig9",
        "Evidence of the toy matrices",
        toys,
        {
            "in": "5.1.1, Figure 9",
            "exponents": list(range(-5, 6)),
            "ranks": [1, 2, 3, 4],
            "particles": 1_000,
            "runs": 100,
        },
        small={"exponents": [-5, 0], "runs": 10},
    ),
    Figure(
        "bam",
        "fig10",
        "20 x 25 x 30 tensor of rank 5",
        tensor,
        {
            "in": "5.1.2, Figure 10a",
            "shape": [20, 25, 30],
            "rank": 5,
            "tensors": [[500, 30.0]],
            "ranks": list(range(1, 11)),
            "methods": ["smc", "vb"],
        },
        small={"ranks": [4, 5, 6], "methods": ["smc", "vb"]},
        middle={"methods": ["smc", "vb", "tempered"]},
        panel="tensor",
        **BY_RANK,
    ),
    Figure(
        "bam",
        "fig10-times",
        "Seconds by side",
        times,
        {
            "in": "5.1.2, Figure 10b",
            "sides": list(range(4, 65, 4)),
            "tokens": 1_000,
            "rank": 5,
            "repeats": 10,
        },
        small={"sides": [4, 32], "repeats": 1},
        x="side",
        y="seconds",
        series="method",
        log="xy",
    ),
    *ON_DATA,
]
