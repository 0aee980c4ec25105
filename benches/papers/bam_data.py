"""Cemgil et al. (2019), sections 5.2 to 5.4: Abalone, and letters of English."""

import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from benches.papers.figure import Figure, Row, Settings
from benches.record import DATA, letter_shares
from numpy.typing import NDArray
from scipy.special import logsumexp
from sklearn.decomposition import NMF

import polyabayes as pb

Model = pb.AllocationModel

BY_RANK: dict[str, Any] = {"x": "rank", "y": "ln evidence", "series": "method", "error": "error"}


def compared(model: Model, data: Any, settings: Settings) -> Iterator[Row]:
    """Evidence given the total, by each method of the run."""
    for method in settings.methods:
        found = model.log_evidence(
            data, method, given_total=True, random_state=0, **HOW.get(method, {})
        )
        yield {
            "method": method,
            "ln evidence": found.value,
            "error": found.std_error,
            "converged": found.converged,
        }


# Effort of every method that is compared; SMC without the sweeps that Algorithm 3 has not.
HOW: dict[str, dict[str, Any]] = {
    "smc": {"n_particles": 1_000, "n_replicates": 20, "n_sweeps": 0},
    "tempered": {"target_std_error": 2.0, "n_replicates": 2, "n_samples": 256},
}


MEASUREMENTS = ["length", "diameter", "height", "whole_weight", "shucked_weight"]
MEASUREMENTS += ["viscera_weight", "shell_weight"]


def measurements(settings: Settings) -> pb.CountTensor:
    """Seven measurements of Abalone cut into levels by k-means, and the rings as they are."""
    frame = pd.read_csv(DATA / "abalone.csv").head(settings.rows)
    levels = settings.levels
    return pb.discretise(frame, MEASUREMENTS, levels, factors=["rings"], random_state=0)


def abalone(settings: Settings) -> Iterator[Row]:
    """Seven measurements under one hidden cause, against the complete graph; by rank."""
    data = measurements(settings).marginal(*MEASUREMENTS)
    for a in settings.a:
        complete = Model.complete(MEASUREMENTS, concentration=a)
        ln_complete = complete.log_evidence(data, "exact", given_total=True).value
        for rank in settings.ranks:
            for row in compared(Model.cp(MEASUREMENTS, rank, concentration=a), data, settings):
                ahead = row["ln evidence"] - ln_complete
                yield {"a": a, "rank": rank, **row, "ahead of the complete graph": ahead}


def abalone_age(settings: Settings) -> Iterator[Row]:
    """Rings by hidden level of a model in which rings have no part, the youngest level first."""
    data = measurements(settings)
    model = Model.cp(MEASUREMENTS, settings.rank, concentration=settings.a)
    rings = data.labels[data.axes.index("rings")].astype(int)[
        data.coordinates[:, data.axes.index("rings")]
    ]
    for method in settings.methods:
        found = model.decompose(data.marginal(*MEASUREMENTS), method, random_state=0)
        joint = np.log(found.tables["r"])[:, None]
        for name in MEASUREMENTS:
            levels = data.coordinates[:, data.axes.index(name)]
            joint = joint + np.log(found.tables[name])[levels].T
        weights = np.exp(joint - logsumexp(joint, axis=0)) * data.counts
        means = weights @ rings / weights.sum(axis=1)
        for level in np.argsort(means):
            total = weights[level].sum()
            for number in range(1, rings.max() + 1):
                yield {
                    "method": method,
                    "hidden level": f"{means[level]:.1f} rings",
                    "rings": number,
                    "probability": float(weights[level][rings == number].sum() / total),
                }


def letters(n_tokens: int) -> NDArray[np.int64]:
    """Bigrams of English: the mode of the multinomial, found by adding tokens one by one."""
    shares = letter_shares()
    counts = np.floor(n_tokens * shares).astype(np.int64)
    while counts.sum() < n_tokens:
        counts[np.unravel_index(np.argmax(shares / (counts + 1)), counts.shape)] += 1
    return counts


def sparsity(values: NDArray[np.float64]) -> float:
    """Hoyer's measure of a matrix: 0 where all entries are equal, 1 where one is not zero."""
    root = math.sqrt(values.size)
    norm = float(np.linalg.norm(values))
    return (root - values.sum() / norm) / (root - 1) if norm > 0 else 1.0


def figure15(settings: Settings) -> Iterator[Row]:
    """Letter bigrams: evidence by rank, NMF and symmetric NMF."""
    counts = letters(settings.tokens)
    for a, rank in itertools.product(settings.a, settings.ranks):
        for kind, make in (("NMF", Model.nmf), ("symmetric NMF", Model.symmetric_nmf)):
            for row in compared(make(rank, concentration=a), counts, settings):
                line = f"{kind}, {row['method']}"
                yield {"a": a, "rank": rank, "line": line, "model": kind, **row}


def figure16(settings: Settings) -> Iterator[Row]:
    """Sparsity and losses of the factors W = theta(i|k) and H = T theta(j|k) theta(k)."""
    counts = letters(settings.tokens)
    for exponent, method in itertools.product(settings.exponents, ("smc", "vb")):
        options = {"n_particles": 1_000} if method == "smc" else {}
        model = Model.nmf(settings.rank, concentration=10.0**exponent)
        tables = model.decompose(counts, method, random_state=0, **options).tables
        first, second = np.asarray(tables["word"]), np.asarray(tables["doc"])
        factors = first, settings.tokens * (second * tables["topic"]).T
        yield {"method": method.upper(), "a": model.concentration, **quality(counts, *factors)}
    least = NMF(settings.rank, solver="cd", max_iter=2_000, random_state=0)
    weights = least.fit_transform(counts.T.astype(float))
    for exponent in settings.exponents:
        row = quality(counts, weights, least.components_)
        yield {"method": "least squares", "a": 10.0**exponent, **row}


# Each method of Table 1: an expectation or a mode of the allocation and of the parameters, and the
# quantity that it climbs.
MODES = {
    "vb": ("expectation", "expectation", "bound of ln p(X)"),
    "em": ("expectation", "mode", "ln p(X, θ)"),
    "dual-em": ("mode", "expectation", "ln p(S)"),
    "icm": ("mode", "mode", "ln p(S, θ)"),
}


def table1(settings: Settings) -> Iterator[Row]:
    """Letter bigrams decomposed by the four methods of Table 1, the best of ten starts each."""
    counts = letters(settings.tokens)
    model = Model.nmf(settings.rank, concentration=settings.a)
    for method, (of_s, of_theta, objective) in MODES.items():
        found = model.decompose(counts, method, random_state=0)
        first, second = np.asarray(found.tables["word"]), np.asarray(found.tables["doc"])
        factors = first, settings.tokens * (second * found.tables["topic"]).T
        yield {
            "method": method,
            "S": of_s,
            "λ, θ": of_theta,
            "climbs": objective,
            "reached": found.value,
            "iterations": len(found.trace),
            **quality(counts, *factors),
        }


def quality(
    counts: NDArray[np.int64], first: NDArray[np.float64], second: NDArray[np.float64]
) -> Row:
    """Mean sparsity of two matrices, squared loss and KL divergence of their product."""
    words_by_documents = counts.T
    expected = first @ second
    p = words_by_documents[words_by_documents > 0]
    q = np.maximum(expected, 1e-300)[words_by_documents > 0]
    return {
        "sparsity": (sparsity(first) + sparsity(second)) / 2,
        "loss": float(np.linalg.norm(words_by_documents - expected)),
        "KL": float((p * np.log(p / q)).sum() - counts.sum() + expected.sum()),
    }


# The sample that the authors' program takes; their text draws it.
LETTERS = {"letters": "the mode"}
FIGURES = [
    Figure(
        "bam",
        "table1",
        "VB, EM, dual EM and ICM",
        table1,
        {"in": "", "tokens": 2_000, "rank": 3, "a": 1.0},
    ),
    Figure(
        "bam",
        "fig12",
        "Seven measurements of Abalone",
        abalone,
        {
            "in": "5.2, Figure 12",
            "rows": 4_177,
            "levels": 5,
            "a": [1.0, 0.001],
            "ranks": list(range(1, 31)),
            "methods": ["smc", "vb"],
        },
        small={"rows": 300, "ranks": [1, 3]},
        middle={"ranks": [1, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30]},
        x="rank",
        y="ahead of the complete graph",
        series="method",
        panel="a",
        error="error",
    ),
    Figure(
        "bam",
        "fig13",
        "Rings by hidden level",
        abalone_age,
        {
            "in": "5.2, Figure 13",
            "rows": 4_177,
            "levels": 5,
            "a": 1.0,
            "rank": 3,
            "methods": ["smc"],
            "levels by": "the most probable particle",
        },
        ours={"levels by": "expected tables"},
        small={"rows": 300},
        middle={"methods": ["smc", "vb"]},
        x="rings",
        y="probability",
        series="hidden level",
        panel="method",
    ),
    Figure(
        "bam",
        "fig15",
        "Letter bigrams",
        figure15,
        {
            "in": "5.3, Figure 15",
            "tokens": 2_000,
            "a": [1.0, 0.001],
            "ranks": list(range(1, 51)),
            "methods": ["smc", "vb"],
            "letters": "drawn",
        },
        ours=LETTERS,
        small={"tokens": 120, "ranks": [1, 3]},
        middle={"ranks": [1, 2, 3, 4, 6, 10]},
        panel="a",
        **{**BY_RANK, "series": "line"},
    ),
    Figure(
        "bam",
        "fig16",
        "Sparsity and losses of letter bigrams",
        figure16,
        {
            "in": "5.4, Figure 16",
            "tokens": 2_000,
            "rank": 3,
            "exponents": list(range(-3, 4)),
            "letters": "drawn",
            "least squares": "ALS-PGD",
        },
        ours={**LETTERS, "least squares": "coordinate descent"},
        small={"tokens": 120, "exponents": [-3, 3]},
    ),
]
