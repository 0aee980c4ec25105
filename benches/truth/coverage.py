"""Share of 95 % intervals that hold the exact value, by method and kind of data.

``python -m benches.truth.coverage`` takes some six minutes of processor time and keeps the records
of ``docs/coverage.md``: documents drawn from random models, small enough to be summed.
``python -m benches.truth.coverage rare`` keeps that of tiny pseudo-counts only.
"""

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np
from benches.record import Table, holds, main, save
from numpy.typing import NDArray

import polyabayes as pb
from polyabayes.likelihood.blocks import has_error, unreliable

COMMAND = "python -m benches.truth.coverage"
N_DOCUMENTS, N_WORDS = 200, 30
# Beyond so many standard errors an estimate counts as a miss that no interval explains.
FAR = 4.0
# Tiny pseudo-counts, and multiply-adds up to which such documents are summed: as the truth, and by
# "auto", so that it estimates nearly all of them.
RARE, SUMMED, SAMPLED = (1e-8, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2), 1e9, 1e4
COLUMNS = {
    "data": "s",
    "method": "s",
    "estimates": ",",
    "coverage of 95 % intervals": ".1%",
    "beyond 4 errors": "d",
    "of them without a warning": "d",
    "median ±, nats": ".2g",
}
# Methods with a standard error that are asked for by name; "auto" would sum these documents.
DOCUMENT_METHODS = ("annealed", "smc", "smc-lookahead", "left-to-right-sequential", "chib")


def models() -> Iterator[tuple[str, Any, NDArray[np.int64]]]:
    """Models of several kinds with documents that are drawn from them."""
    rng = np.random.default_rng(0)
    for name, n_topics, alpha, n_tokens in (
        ("LDA, 3 topics, 12 tokens", 3, 0.5, 12),
        ("LDA, 5 topics, 30 tokens", 5, 0.2, 30),
        ("LDA, pseudo-counts of 0.01", 4, 0.01, 20),
    ):
        topics = rng.dirichlet(np.full(N_WORDS, 0.1), n_topics)
        weights = rng.dirichlet(np.full(n_topics, alpha), N_DOCUMENTS)
        model = pb.LatentDirichletAllocation.from_parameters(
            doc_topic_prior=alpha, topic_word=topics
        )
        yield name, model, drawn(rng, weights @ topics, n_tokens)


def drawn(rng: np.random.Generator, words: NDArray[np.float64], n_tokens: int) -> Any:
    """Documents with these probabilities of words."""
    return np.array([rng.multinomial(n_tokens, row / row.sum()) for row in words])


def add(
    table: Table, name: str, method: str, result: Any, truth: NDArray[np.float64], chosen: Any = ...
) -> None:
    """A row of all documents, or of those chosen."""
    distance, error = (result.values - truth)[chosen], result.std_errors[chosen]
    far = np.abs(distance) > FAR * np.maximum(error, 1e-9)
    table.add(
        *(name, method, len(error), holds(result, truth)[chosen].mean()),
        *(far.sum(), (far & ~doubted(result)[chosen]).sum(), np.median(error)),
    )


def doubted(result: Any) -> NDArray[np.bool_]:
    """Documents whose error the package reports as untrustworthy."""
    few = np.isin(np.arange(len(result.values)), unreliable(result, result.n_replicates))
    return few | (np.isnan(result.n_effs) & has_error(result))


def documents() -> None:
    """Estimates of documents against sums over all topics of their tokens."""
    rests_on = [f"lda, {method}" for method in ("exact", "annealed", "smc", "smc-lookahead")]
    table = Table("coverage-documents", COMMAND, COLUMNS, [*rests_on, "lda, chib"])
    for name, model, counts in models():
        truth = pb.log_likelihood(model, counts, "exact", n_jobs=1).values
        for method in DOCUMENT_METHODS:
            result = pb.log_likelihood(model, counts, method, n_jobs=1, random_state=1)
            add(table, name, method, result, truth)
    save(table)


def open_rare_topics() -> Iterator[tuple[str, Any, NDArray[np.int64]]]:
    """Ten topics of 0.3, forty of a tiny pseudo-count, and documents that use some of the forty."""
    rng = np.random.default_rng(2)
    for rare in RARE:
        topics = np.maximum(rng.dirichlet(np.full(200, 0.05), 50), 1e-12)
        topics /= topics.sum(axis=1, keepdims=True)
        alpha = np.repeat([0.3, rare], [10, 40])
        lda = pb.LatentDirichletAllocation.from_parameters(doc_topic_prior=alpha, topic_word=topics)
        gamma_poisson = pb.PoissonFactorAnalysis.from_parameters(
            topic_word=topics, shape=alpha, probability=rng.uniform(0.3, 0.9, 50)
        )
        counts = []
        for _ in range(N_DOCUMENTS):
            n_rare = rng.integers(1, 5)
            used = [
                *rng.choice(10, 2, replace=False),
                *(10 + rng.choice(40, n_rare, replace=False)),
            ]
            words = rng.dirichlet(np.ones(len(used))) @ topics[used]
            counts.append(drawn(rng, words[None], rng.integers(12, 24))[0])
        yield f"LDA, 40 of 50 topics of {rare:g}", lda, np.array(counts)
        yield f"gamma-Poisson, 40 of 50 topics of {rare:g}", gamma_poisson, np.array(counts)


def sums(model: Any, counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Exact values; NaN where they would cost more than a second or so."""
    found = np.full(len(counts), np.nan)
    for row, document in enumerate(counts):
        with contextlib.suppress(pb.exceptions.BudgetExceededError):
            found[row] = pb.log_likelihood(model, [document], "exact", budget=SUMMED).total
    return found


def rare() -> None:
    """`auto` as it is, its estimates alone, and estimates where it may not sum."""
    rests_on = ["lda, auto", "lda, annealed", "pfa, annealed"]
    table = Table("coverage-rare", f"{COMMAND} rare", COLUMNS, rests_on)
    for name, model, counts in open_rare_topics():
        truth = sums(model, counts)
        counts, truth = counts[~np.isnan(truth)], truth[~np.isnan(truth)]
        own = pb.log_likelihood(model, counts, n_jobs=1, random_state=1)
        refused = pb.log_likelihood(model, counts, n_jobs=1, random_state=1, budget=SAMPLED)
        add(table, name, "auto", own, truth)
        for method, result in (("auto, estimates", own), ("auto, sums refused", refused)):
            add(table, name, method, result, truth, result.methods != "exact")
    save(table)


if __name__ == "__main__":
    main(documents, rare)
