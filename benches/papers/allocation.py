"""Cemgil et al. (2019), Bayesian allocation model."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from benches.papers.figure import Picture, Row, figure, mean_and_error
from benches.record import timed
from scipy.special import gammaln, logsumexp
from scipy.stats import nbinom

import polyabayes as pb

Model = pb.AllocationModel
bam = partial(figure, "bam")

# The matrices of Figure 9 and Example 3.4; -1 is the cell that is missing.
X1 = np.array([[2, 1, 1, 0], [0, 0, 1, 2], [0, 0, 1, 1]])
X2 = np.array([[4, 3, 0], [0, 0, 3], [0, 0, 3]])
X3 = np.array([[3, -1], [3, 3]])
X4 = np.array([[4, -1], [4, 1]])


# Graphs over the axes of a matrix and hidden nodes of two values each. The first three have the
# same independences, and so the fourth, whose directions are ours.
GRAPHS = dict.fromkeys(("i <- r -> j", "i -> r -> j", "i <- r <- j", "i -> r <- j"), ("r",))
GRAPHS |= {"i <- r -> s -> j": ("r", "s"), "i <- r; s -> j; r, s -> t": ("r", "s", "t")}


@bam("section3", "Statements of Section 3, by enumeration")
def section3() -> Iterator[Row]:
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
            sizes = dict.fromkeys(hidden, 2)
            model = Model(graph, sizes, concentration=a, rate=b, prior=prior, axes=["i", "j"])
            values = np.array([model.log_evidence(table, "exact").value for table in tables])
            first = values if first is None else first
            off = float(logsumexp(values)) - ln_total
            row = {"prior": prior, "graph": graph, "ln of the sum - ln p(T)": off}
            yield row | {"largest difference from the first": float(np.abs(values - first).max())}


@bam("example32", "Four tokens under three graphs", "3.1, Example 3.2")
def example32(a=1.0, b=1.0) -> Iterator[Row]:
    """Two binary variables, four tokens: independent, and with an arrow in each direction."""
    for name, prior in (("BDeu", "bdeu"), ("a / 4 in every cell", {"i": a / 4, "j": a / 4})):
        for graph in ("i, j", "i -> j", "j -> i"):
            model = Model(graph, concentration=a, rate=b, prior=prior, axes=["i", "j"])
            found = model.log_evidence([[2, 1], [0, 1]], "exact")
            yield {"prior": name, "graph": graph, "ln evidence": found.value}


@bam(
    "example34",
    "ln p by total, a cell missing",
    "authors' files of Example 3.4",
    picture=Picture("total", "ln p", "rank", panel="matrix"),
)
def example34(a=4.0, b=0.01, ranks=(1, 2, 3, 4)) -> Iterator[Row]:
    """A 2 x 2 matrix with a missing cell: totals and ranks."""
    for name, matrix in (("X3", X3), ("X4", X4)):
        for rank in ranks:
            model = Model.nmf(rank, concentration=a, rate=b)
            found = model.predict_missing(np.ma.masked_equal(matrix, -1), "exact", max_total=20)
            for total, log_joint in zip(found.totals, found.log_joint, strict=True):
                yield {"matrix": name, "rank": f"{rank}", "total": total, "ln p": log_joint}


@bam(
    "fig5-6",
    "Allocations of X1 by parameters in use",
    "authors' files of Figures 5 and 6",
    picture=Picture("parameters", "share of the evidence", "a"),
)
def allocations(rank=3, a=(10.0, 0.1, 1e-10)) -> Iterator[Row]:
    """All allocations of X1: how many use d parameters, and their share of the evidence."""
    counts, cells = X1[X1 > 0], np.argwhere(X1 > 0)
    ways = ([way for way in np.ndindex(*[n + 1] * rank) if sum(way) == n] for n in counts)
    every = np.array([*itertools.product(*ways)])
    topics = every.sum(axis=1)
    tables = [
        np.stack([every[:, cells[:, axis] == i].sum(axis=1) for i in range(size)], axis=1)
        for axis, size in enumerate(X1.shape)
    ]
    n_parameters = sum(np.count_nonzero(table, axis=(1, 2)) for table in tables) - 1
    n_parameters -= np.count_nonzero(topics, axis=1)

    def rising(x, n):
        terms = gammaln(x + n) - gammaln(x)
        return terms.reshape(len(every), -1).sum(axis=1)

    for concentration in a:
        # Equation 3.11.
        ln_p = gammaln(X1.sum() + 1) - gammaln(every + 1).sum(axis=(1, 2))
        ln_p += gammaln(concentration) - gammaln(concentration + X1.sum())
        ln_p -= rising(concentration / rank, topics)
        for table in tables:
            ln_p += rising(concentration / table[0].size, table)
        for d in np.unique(n_parameters):
            group = ln_p[n_parameters == d]
            share = float(np.exp(group - logsumexp(ln_p)).sum())
            row = {"a": concentration, "parameters": int(d), "allocations": len(group)}
            yield row | {"share of the evidence": share, "largest ln p(S)": float(group.max())}


@bam(
    "fig9",
    "Evidence of the toy matrices",
    "5.1.1, Figure 9",
    small={"exponents": [-5, 0], "runs": 10},
)
def toys(exponents=range(-5, 6), ranks=(1, 2, 3, 4), particles=1_000, runs=100) -> Iterator[Row]:
    """Evidence of X1 and X2 by rank and concentration: exact, SMC, VB, and tempering."""
    cases = itertools.product((("X1", X1), ("X2", X2)), exponents, ranks)
    for (name, matrix), exponent, rank in cases:
        model = Model.nmf(rank, concentration=10.0**exponent)
        exact = model.log_evidence(matrix, "exact", budget=1e10).value
        smc = {"n_particles": particles // 2, "n_replicates": 2, "n_sweeps": 0}
        values = [
            model.log_evidence(matrix, "smc", random_state=seed, **smc).value
            for seed in range(runs)
        ]
        mean, error = mean_and_error(values)
        bound = model.log_evidence(matrix, "vb", n_restarts=runs, random_state=0).value
        tempered = model.log_evidence(matrix, "tempered", random_state=0)
        row = {"matrix": name, "a": model.concentration, "rank": rank, "exact": exact}
        row |= {"smc - exact": mean - exact, "error": error, "sd of smc": float(np.std(values))}
        row |= {"mean of all smc - exact": float(logsumexp(values) - np.log(runs)) - exact}
        row |= {"vb - exact": bound - exact, "tempered - exact": tempered.value - exact}
        yield row | {"error of tempered": tempered.std_error}


# Effort of every method that is compared; SMC without the sweeps that Algorithm 3 has not.
HOW: dict[str, dict[str, Any]] = {
    "smc": {"n_particles": 1_000, "n_replicates": 20, "n_sweeps": 0},
    "tempered": {"target_std_error": 2.0, "n_replicates": 2, "n_samples": 256},
}


def compared(model: Model, data: Any, methods: Sequence[str]) -> Iterator[Row]:
    """Evidence given the total, by each method."""
    for method in methods:
        options = {"given_total": True, "random_state": 0} | HOW.get(method, {})
        found = model.log_evidence(data, method, **options)
        row = {"method": method, "ln evidence": found.value, "error": found.std_error}
        yield row | {"converged": found.converged}


BY_RANK = Picture("rank", "ln evidence", "method", error="error")


@bam(
    "fig10",
    "20 x 25 x 30 tensor of rank 5",
    "5.1.2, Figure 10a",
    small={"ranks": [4, 5, 6], "methods": ["smc", "vb"]},
    middle={"methods": ["smc", "vb", "tempered"]},
    picture=replace(BY_RANK, panel="tensor"),
)
def tensor(
    shape=(20, 25, 30), rank=5, tensors=((500, 30.0),), ranks=range(1, 11), methods=("smc", "vb")
) -> Iterator[Row]:
    """A tensor drawn from CP: which rank has the most evidence?"""
    for total, a in tensors:
        true = Model.cp(["i", "j", "k"], rank, concentration=a)
        counts = true.simulate(dict(zip("ijk", shape, strict=True)), total, random_state=0).tensor
        for tried in ranks:
            for row in compared(Model.cp(["i", "j", "k"], tried, concentration=a), counts, methods):
                yield {"tensor": f"T = {total:,}, a = {a:g}", "rank": tried, **row}


@bam(
    "fig10-times",
    "Seconds by side",
    "5.1.2, Figure 10b",
    small={"sides": [4, 32], "repeats": 1},
    picture=Picture("side", "seconds", "method", log="xy"),
)
def times(sides=range(4, 65, 4), tokens=1_000, rank=5, repeats=10) -> Iterator[Row]:
    """Processor seconds by the side of a cube drawn from CP; VB until it converges."""
    model = Model.cp(["i", "j", "k"], rank, concentration=30.0)
    efforts = {"smc": {"n_particles": 500, "n_sweeps": 0}, "vb": {"n_restarts": 1}}
    for side in sides:
        seconds: dict[str, list[float]] = {"smc": [], "vb": []}
        n_iterations = []
        one = {"random_state": 0, "n_jobs": 1}
        for seed in range(repeats):
            shape = dict.fromkeys("ijk", side)
            counts = model.simulate(shape, tokens, random_state=seed).tensor
            for method, effort in efforts.items():
                _, spent = timed(model.log_evidence, counts, method, **one, **effort)
                seconds[method].append(spent)
            n_iterations.append(len(model.decompose(counts, n_restarts=1, **one).trace))
        for method, found in seconds.items():
            row = {"side": side, "method": method, "seconds": float(np.mean(found))}
            yield row | {"iterations": float(np.mean(n_iterations)) if method == "vb" else None}
