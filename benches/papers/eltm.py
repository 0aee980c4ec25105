"""Buntine (2009), estimating likelihoods for topic models."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from benches.papers.figure import Figure, Row, mean_and_error
from numpy.typing import NDArray

import polyabayes as pb

# The methods of the paper by its names, and ours.
METHODS: dict[str, tuple[str, str]] = {
    "HM": ("harmonic", "n_samples"),
    "MFI": ("mean-field", "n_samples"),
    "LR": ("left-to-right-particle", "n_particles"),
    "LRS": ("left-to-right-sequential", "n_particles"),
    "left-to-right": ("left-to-right", "n_particles"),
    "l2r": ("l2r", "n_particles"),
    "annealed": ("annealed", "n_samples"),
    "chib": ("chib", "n_samples"),
    "smc": ("smc", "n_particles"),
    "smc-lookahead": ("smc-lookahead", "n_particles"),
    "direct": ("direct", "n_samples"),
}


def errors(
    method: str, n_samples: int, length: int, n_topics: int, gamma: float, n_pairs: int
) -> NDArray[np.float64]:
    """Errors of ln p for pairs of a random model and a document of it, in two replicates.

    Topics are drawn from Dirichlet(gamma) over 100 words, topic weights from Dirichlet(0.5): the
    paper names neither the words nor the prior of the weights.
    """
    name, size = METHODS[method]
    found = np.empty(n_pairs)
    for pair in range(n_pairs):
        data = pb.datasets.make_lda_corpus(
            1,
            100,
            n_topics,
            document_length=length,
            doc_topic_prior=0.5,
            topic_word_prior=gamma,
            random_state=pair,
        )
        model = pb.LatentDirichletAllocation.from_parameters(
            doc_topic_prior=data.doc_topic_prior, topic_word=data.topic_word
        )
        exact = pb.log_likelihood(model, data.corpus, "exact").total
        sizes = {size: n_samples // 2, "n_replicates": 2}
        found[pair] = pb.log_likelihood(model, data.corpus, name, random_state=pair, **sizes).total
        found[pair] -= exact
    return found


def table1(is_full: bool) -> Iterator[Row]:
    """14 tokens, K = 4, 200 samples, 100 pairs of model and document."""
    for gamma in (0.2, 0.5, 1.0, 3.0):
        for method in METHODS:
            found = errors(method, 200, 14, 4, gamma, 100 if is_full else 40)
            mean, error = mean_and_error(found)
            bias, bias_error = mean_and_error(np.expm1(found))
            yield {
                "gamma": gamma,
                "method": method,
                "mean error": mean,
                "sd": found.std(ddof=1),
                "t": mean / error,
                "t of p̂/p - 1": bias / bias_error,
            }


def figure_of(gamma: float) -> Any:
    """Error against the number of samples; L = 16, K = 5."""

    def compute(is_full: bool) -> Iterator[Row]:
        sizes = (20, 200, 2_000, 20_000) if is_full else (20, 200)
        for method in METHODS:
            for size in sizes:
                found = errors(method, size, 16, 5, gamma, 100 if is_full else 20)
                mean, error = mean_and_error(found)
                rms = float(np.sqrt((found**2).mean()))
                yield {
                    "method": method,
                    "samples": size,
                    "rms": rms,
                    "mean error": mean,
                    "error": error,
                }

    return compute


def choice(is_full: bool) -> Iterator[Row]:
    """Models of several K trained on data of known K: which K does each method name best?

    Figures 3 to 5: documents of 151 words; trained on so many documents, scored on held-out ones.
    The small form has a tenth of the words and fewer documents.
    """
    sets = (
        [(10, 28_251, 40_000), (10, 5_000, 40_000), (40, 28_251, 40_000)]
        if is_full
        else [(10, 500, 300)]
    )
    n_held_out = 10_000 if is_full else 30
    for true, n_words, n_documents in sets:
        data = pb.datasets.make_lda_corpus(
            n_documents + n_held_out,
            n_words,
            true,
            document_length=151,
            doc_topic_prior=0.1,
            random_state=1,
        )
        counts = data.corpus.counts
        for n_train in (1_000, 4_000, 10_000, 40_000) if is_full else (100, 300):
            for size in (true // 2, true, 2 * true):
                lda = pb.LatentDirichletAllocation(
                    size, learn_priors=True, max_iter=500 if is_full else 150, random_state=0
                ).fit(counts[:n_train])
                held_out = counts[n_documents:]
                for method in ("MFI", "LR", "LRS", "auto"):
                    start = time.perf_counter()
                    settings: dict[str, Any] = {}
                    if method != "auto":
                        settings = {METHODS[method][1]: 20, "n_replicates": 2}
                    name = METHODS[method][0] if method in METHODS else method
                    found = pb.log_likelihood(lda, held_out, name, random_state=0, **settings)
                    yield {
                        "set": f"K = {true}, {n_words:,} words",
                        "trained on": n_train,
                        "K": size,
                        "method": method,
                        "nats a token": found.nats_per_token,
                        "error": found.nats_per_token_std_error,
                        "seconds": time.perf_counter() - start,
                    }


FIGURES = [
    Figure("eltm", "table1", "Errors of ln p, 14 tokens, K = 4", table1),
    Figure(
        "eltm",
        "fig1",
        "RMS error of ln p, 16 tokens, K = 5, gamma = 0.2",
        figure_of(0.2),
        "samples",
        "rms",
        "method",
        log="xy",
    ),
    Figure(
        "eltm",
        "fig2",
        "RMS error of ln p, 16 tokens, K = 5, gamma = 3",
        figure_of(3.0),
        "samples",
        "rms",
        "method",
        log="xy",
    ),
    Figure(
        "eltm",
        "fig3-5",
        "Held-out nats a token by number of topics",
        choice,
        "K",
        "nats a token",
        "method",
        "trained on",
        "error",
    ),
]
