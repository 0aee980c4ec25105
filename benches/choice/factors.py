"""Rivals for the rank of non-negative factorisations of tables and tensors.

All rest on the same fits: CP decompositions by the multiplicative updates of the Poisson
likelihood (Lee & Seung 2001), of which NMF is the case of two modes.
"""

import math
from functools import partial

import numpy as np
from benches.choice.pieces import Case, Choice, Method, least
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from sklearn.cluster import KMeans
from sklearn.metrics import silhouette_score

from polyabayes._support.arrays import Floats

SWEEPS = 500
RUNS = 8
MASKS = 4
TINY = 1e-12
# SigProfilerExtractor takes the largest rank whose signatures are as stable as that.
STABLE = 0.8
# cNMF drops spectra whose neighbours are further away.
FAR = 0.5


def product(factors: list[Floats]) -> Floats:
    """The tensor of rank one terms summed."""
    letters = "abcdefgh"[: len(factors)]
    terms = ",".join(f"{letter}z" for letter in letters)
    return np.einsum(f"{terms}->{letters}", *factors, optimize=True)


def fitted(
    counts: NDArray[np.int64], rank: int, seed: int, seen: Floats | None = None
) -> list[Floats]:
    """Factors of maximum likelihood, each mode x rank, of the cells that are seen."""
    rng = np.random.default_rng(seed)
    factors = [rng.random((n, rank)) + 0.1 for n in counts.shape]
    weights = np.ones(counts.shape) if seen is None else seen
    letters = "abcdefgh"[: counts.ndim]
    for _ in range(SWEEPS):
        for mode, letter in enumerate(letters):
            others = [factor for other, factor in enumerate(factors) if other != mode]
            terms = ",".join(f"{other}z" for other in letters if other != letter)
            project = partial(np.einsum, f"{letters},{terms}->{letter}z", optimize=True)
            ratio = weights * counts / np.maximum(product(factors), TINY)
            factors[mode] = factors[mode] * (
                project(ratio, *others) / np.maximum(project(weights, *others), TINY)
            )
    return factors


def by_imputation(case: Case) -> dict[str, Choice]:
    """Divergence of a tenth of the cells, held out (MADimput's way)."""

    def loss(rank: int, seed: int) -> float:
        seen = (np.random.default_rng(seed).random(case.data.shape) > 0.1).astype(float)
        rate = np.maximum(product(fitted(case.data, rank, seed, seen)), 1e-3)
        return float(((1 - seen) * (rate - case.data * np.log(rate))).sum())

    costs = {rank: sum(loss(rank, seed) for seed in range(MASKS)) for rank in case.sizes}
    return {"imputation of held-out cells": Choice(least(costs))}


def by_bic(case: Case) -> dict[str, Choice]:
    """The Bayesian information criterion of the cells' multinomial law; the best of some fits."""
    costs = {}
    total = case.data.sum()
    for rank in case.sizes:
        shares = [product(fitted(case.data, rank, seed)) / total for seed in range(MASKS)]
        fit = max(float((case.data * np.log(np.maximum(x, TINY))).sum()) for x in shares)
        n_parameters = rank * sum(n - 1 for n in case.data.shape) + rank - 1
        costs[rank] = n_parameters * math.log(total) / 2 - fit
    return {"BIC": Choice(least(costs))}


def spectra(case: Case, rank: int) -> list[Floats]:
    """Factors of the last mode, rows of length 1, of fits to resampled counts."""
    runs = []
    for seed in range(RUNS):
        resampled = np.random.default_rng(seed).poisson(case.data)
        rows = fitted(resampled, rank, seed)[-1].T
        runs.append(rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), TINY))
    return runs


def matched_silhouette(runs: list[Floats]) -> float:
    """How alike the spectra of several runs are after matching (NMFk, SigProfilerExtractor)."""
    rows = [runs[0]]
    for run in runs[1:]:
        _, order = linear_sum_assignment(-(runs[0] @ run.T))
        rows.append(run[order])
    labels = np.tile(np.arange(len(runs[0])), len(runs))
    return float(silhouette_score(np.vstack(rows), labels, metric="cosine"))


def clustered_silhouette(runs: list[Floats]) -> float:
    """How far apart the clusters of the spectra of several runs are (cNMF)."""
    rows = np.vstack(runs)
    rank = len(runs[0])
    distances = np.linalg.norm(rows[:, None] - rows[None], axis=2)
    neighbours = max(1, round(0.3 * len(runs)))
    density = np.sort(distances, axis=1)[:, 1 : neighbours + 1].mean(axis=1)
    dense = rows[density < FAR]
    if len(dense) <= rank:
        return math.nan
    labels = KMeans(rank, n_init=10, random_state=0).fit_predict(dense)
    return float(silhouette_score(dense, labels)) if len(set(labels)) > 1 else math.nan


def by_stability(case: Case) -> dict[str, Choice]:
    """The rules of NMFk, of SigProfilerExtractor and of cNMF, on the same fits."""
    runs = {rank: spectra(case, rank) for rank in case.sizes if rank > 1}
    matched = {rank: matched_silhouette(found) for rank, found in runs.items()}
    clustered = {rank: -clustered_silhouette(found) for rank, found in runs.items()}
    stable = [rank for rank, value in matched.items() if value >= STABLE]
    most_stable = max(matched, key=matched.__getitem__)
    return {
        "largest silhouette over starts (NMFk)": Choice(most_stable),
        "largest rank with a silhouette of 0.8": Choice(max(stable, default=most_stable)),
        "stability of clusters (cNMF)": Choice(least(clustered)),
    }


METHODS: dict[str, Method] = {"imputation": by_imputation, "bic": by_bic, "stability": by_stability}
