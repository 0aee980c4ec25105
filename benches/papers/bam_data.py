"""Cemgil et al. (2019), sections 5.2 to 5.4: Abalone, and letters of English."""

import itertools
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from benches.papers.allocation import BY_RANK, Model, bam, compared
from benches.papers.figure import Picture, Row
from benches.record import DATA, letter_shares
from scipy.special import logsumexp
from sklearn.cluster import KMeans
from sklearn.decomposition import NMF

import polyabayes as pb
from polyabayes._support.arrays import Floats, Integers
from polyabayes.allocation.inference.decomposition import hoyer

# The sample that the authors' program takes; their text draws it.
DRAWN, LETTERS = {"letters": "drawn"}, {"letters": "the mode"}


def letters(n_tokens: int) -> Integers:
    """Bigrams of English: the mode of the multinomial, found by adding tokens one by one."""
    shares = letter_shares()
    counts = np.floor(n_tokens * shares).astype(np.int64)
    while counts.sum() < n_tokens:
        counts[np.unravel_index(np.argmax(shares / (counts + 1)), counts.shape)] += 1
    return counts


def factors(tables: Any, tokens: int) -> tuple[Floats, Floats]:
    """W = theta(i|k) and H = T theta(j|k) theta(k)."""
    second = np.asarray(tables["doc"]) * tables["topic"]
    return np.asarray(tables["word"]), tokens * second.T


def quality(counts: Integers, first: Floats, second: Floats) -> Row:
    """Mean sparsity of two matrices, squared loss and KL divergence of their product."""
    words_by_documents = counts.T
    expected = first @ second
    p = words_by_documents[words_by_documents > 0]
    q = np.maximum(expected, 1e-300)[words_by_documents > 0]
    return {
        "sparsity": (hoyer(first.ravel()) + hoyer(second.ravel())) / 2,
        "loss": float(np.linalg.norm(words_by_documents - expected)),
        "KL": float((p * np.log(p / q)).sum() - counts.sum() + expected.sum()),
    }


# Each method of Table 1: an expectation or a mode of the allocation and of the parameters, and the
# quantity that it climbs.
MODES = {
    "vb": ("expectation", "expectation", "bound of ln p(X)"),
    "em": ("expectation", "mode", "ln p(X, θ)"),
    "dual-em": ("mode", "expectation", "ln p(S)"),
    "icm": ("mode", "mode", "ln p(S, θ)"),
}


@bam("table1", "VB, EM, dual EM and ICM")
def table1(tokens=2_000, rank=3, a=1.0) -> Iterator[Row]:
    """Letter bigrams decomposed by the four methods of Table 1, the best of ten starts each."""
    counts = letters(tokens)
    model = Model.nmf(rank, concentration=a)
    for method, (of_s, of_theta, objective) in MODES.items():
        found = model.decompose(counts, method, random_state=0)
        row = {"method": method, "S": of_s, "λ, θ": of_theta, "climbs": objective}
        row |= {"reached": found.value, "iterations": len(found.trace)}
        yield row | quality(counts, *factors(found.tables, tokens))


MEASUREMENTS = ["length", "diameter", "height", "whole_weight", "shucked_weight"]
MEASUREMENTS += ["viscera_weight", "shell_weight"]


def measurements(rows: int, levels: int) -> pb.CountTensor:
    """Seven measurements of Abalone cut into levels by k-means, and the rings as they are."""
    frame = pd.read_csv(DATA / "abalone.csv").head(rows)
    table, rng = {"rings": frame["rings"]}, np.random.default_rng(0)
    for name in MEASUREMENTS:
        seed = int(rng.integers(2**31))
        means = KMeans(levels, n_init=10, random_state=seed).fit(frame[[name]].to_numpy())
        centres = np.sort(means.cluster_centers_.ravel())
        bounds = (centres[1:] + centres[:-1]) / 2
        table[name] = np.searchsorted(bounds, frame[name], side="right")
    return pb.CountTensor.from_frame(pd.DataFrame(table))


@bam(
    "fig12",
    "Seven measurements of Abalone",
    "5.2, Figure 12",
    small={"rows": 300, "ranks": [1, 3]},
    middle={"ranks": [1, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30]},
    picture=replace(BY_RANK, y="ahead of the complete graph", panel="a"),
)
def abalone(
    rows=4_177, levels=5, a=(1.0, 0.001), ranks=range(1, 31), methods=("smc", "vb")
) -> Iterator[Row]:
    """Seven measurements under one hidden cause, against the complete graph; by rank."""
    data = measurements(rows, levels).marginal(*MEASUREMENTS)
    for size in a:
        complete = Model.complete(MEASUREMENTS, concentration=size)
        ln_complete = complete.log_evidence(data, "exact", given_total=True).value
        for rank in ranks:
            for row in compared(Model.cp(MEASUREMENTS, rank, concentration=size), data, methods):
                ahead = row["ln evidence"] - ln_complete
                yield {"a": size, "rank": rank, **row, "ahead of the complete graph": ahead}


@bam(
    "fig13",
    "Rings by hidden level",
    "5.2, Figure 13",
    remarks={"levels by": "the most probable particle"},
    ours={"levels by": "expected tables"},
    small={"rows": 300},
    middle={"methods": ["smc", "vb"]},
    picture=Picture("rings", "probability", "hidden level", panel="method"),
)
def abalone_age(rows=4_177, levels=5, a=1.0, rank=3, methods=("smc",)) -> Iterator[Row]:
    """Rings by hidden level of a model in which rings have no part, the youngest level first."""
    data = measurements(rows, levels)
    model = Model.cp(MEASUREMENTS, rank, concentration=a)
    axis = data.axes.index("rings")
    rings = data.labels[axis].astype(int)[data.coordinates[:, axis]]
    for method in methods:
        found = model.decompose(data.marginal(*MEASUREMENTS), method, random_state=0)
        joint = np.log(found.tables["r"])[:, None]
        for name in MEASUREMENTS:
            own = data.coordinates[:, data.axes.index(name)]
            joint = joint + np.log(found.tables[name])[own].T
        weights = np.exp(joint - logsumexp(joint, axis=0)) * data.counts
        means = weights @ rings / weights.sum(axis=1)
        for level in np.argsort(means):
            total = weights[level].sum()
            row = {"method": method, "hidden level": f"{means[level]:.1f} rings"}
            for number in range(1, rings.max() + 1):
                share = float(weights[level][rings == number].sum() / total)
                yield row | {"rings": number, "probability": share}


@bam(
    "fig15",
    "Letter bigrams",
    "5.3, Figure 15",
    remarks=DRAWN,
    ours=LETTERS,
    small={"tokens": 120, "ranks": [1, 3]},
    middle={"ranks": [1, 2, 3, 4, 6, 10]},
    picture=replace(BY_RANK, series="line", panel="a"),
)
def figure15(
    tokens=2_000, a=(1.0, 0.001), ranks=range(1, 51), methods=("smc", "vb")
) -> Iterator[Row]:
    """Letter bigrams: evidence by rank, NMF and symmetric NMF."""
    counts = letters(tokens)
    for size, rank in itertools.product(a, ranks):
        for kind, make in (("NMF", Model.nmf), ("symmetric NMF", Model.symmetric_nmf)):
            for row in compared(make(rank, concentration=size), counts, methods):
                line = f"{kind}, {row['method']}"
                yield {"a": size, "rank": rank, "line": line, "model": kind, **row}


@bam(
    "fig16",
    "Sparsity and losses of letter bigrams",
    "5.4, Figure 16",
    remarks={**DRAWN, "least squares": "ALS-PGD"},
    ours={**LETTERS, "least squares": "coordinate descent"},
    small={"tokens": 120, "exponents": [-3, 3]},
)
def figure16(tokens=2_000, rank=3, exponents=range(-3, 4)) -> Iterator[Row]:
    """Sparsity and losses of the factors W and H."""
    counts = letters(tokens)
    for exponent, method in itertools.product(exponents, ("smc", "vb")):
        options = {"n_particles": 1_000} if method == "smc" else {}
        model = Model.nmf(rank, concentration=10.0**exponent)
        tables = model.decompose(counts, method, random_state=0, **options).tables
        found = quality(counts, *factors(tables, tokens))
        yield {"method": method.upper(), "a": model.concentration, **found}
    least = NMF(rank, solver="cd", max_iter=2_000, random_state=0)
    found = quality(counts, least.fit_transform(counts.T.astype(float)), least.components_)
    for exponent in exponents:
        yield {"method": "least squares", "a": 10.0**exponent, **found}
