"""Share of 95 % intervals that hold the exact value, by method and kind of data.

``python -m benches.truth.coverage`` takes some minutes of processor time and keeps the record
of ``docs/coverage.md``: documents drawn from random models, small enough to be summed.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from benches.record import Table, holds, main, save
from numpy.typing import NDArray

import polyabayes as pb
from polyabayes._support.arrays import Floats, Integers
from polyabayes.likelihood.blocks import has_error, unreliable

COMMAND = "python -m benches.truth.coverage"
N_DOCUMENTS, N_WORDS = 200, 30
# Beyond so many standard errors an estimate counts as a miss that no interval explains.
FAR = 4.0
# Multiply-adds up to which "auto" may sum a document, so that it estimates nearly all of them.
SAMPLED = 1e4
COLUMNS = {"data": "s", "method": "s", "estimates": ",", "coverage of 95 % intervals": ".1%"}
COLUMNS |= {"beyond 4 errors": "d", "of them without a warning": "d", "median ±, nats": ".2g"}
# Methods with a standard error that are asked for by name; "auto" would sum these documents.
DOCUMENT_METHODS = ("annealed", "smc", "smc-lookahead", "left-to-right-sequential", "chib")


def models() -> Iterator[tuple[str, Any, Integers]]:
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


def drawn(rng: np.random.Generator, words: Floats, n_tokens: int) -> Any:
    """Documents with these probabilities of words."""
    return np.array([rng.multinomial(n_tokens, row / row.sum()) for row in words])


def add(table: Table, name: str, method: str, result: Any, truth: Floats) -> None:
    """A row of all documents."""
    distance, error = result.values - truth, result.std_errors
    far = np.abs(distance) > FAR * np.maximum(error, 1e-9)
    table.add(
        *(name, method, len(error), holds(result, truth).mean()),
        *(far.sum(), (far & ~doubted(result)).sum(), np.median(error)),
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


if __name__ == "__main__":
    main(documents)
