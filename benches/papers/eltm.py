"""Buntine (2009), estimating likelihoods for topic models."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from benches.papers.figure import PARTS, Figure, Row, Size, mean_and_error, once
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


def table1(size: Size) -> Iterator[Row]:
    """14 tokens, K = 4, 200 samples, 100 pairs of model and document."""
    for gamma in (0.2, 0.5, 1.0, 3.0):
        for method in METHODS:
            found = errors(method, 200, 14, 4, gamma, size.pick(40, 100))
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

    def compute(size: Size) -> Iterator[Row]:
        samples = size.pick((20, 200), (20, 200, 2_000, 20_000))
        for method in METHODS:
            for n_samples in samples:
                found = errors(method, n_samples, 16, 5, gamma, size.pick(20, 100))
                mean, error = mean_and_error(found)
                rms = float(np.sqrt((found**2).mean()))
                yield {
                    "method": method,
                    "samples": n_samples,
                    "rms": rms,
                    "mean error": mean,
                    "error": error,
                }

    return compute


def choice(size: Size) -> Iterator[Row]:
    """Models of several K trained on data of known K: which K does each method name best?

    Figures 3 to 5: documents of 151 words; trained on so many documents, scored on held-out ones.
    The small form has fewer words and documents. Training that was cut goes on from its folder.
    """
    sets = size.pick([(10, 500)], [(10, 28_251), (10, 5_000), (40, 28_251)])
    trained_on = size.pick((100, 300), (1_000, 4_000, 10_000, 40_000), (1_000, 10_000, 40_000))
    most_sweeps = size.pick(150, 500, 200)
    n_held_out = size.pick(30, 10_000, 100)
    for true, n_words in sets:
        data = pb.datasets.make_lda_corpus(
            trained_on[-1] + n_held_out,
            n_words,
            true,
            document_length=151,
            doc_topic_prior=0.1,
            random_state=1,
        )
        counts = data.corpus.counts
        held_out = counts[trained_on[-1] :]
        for n_train in trained_on:
            n_sweeps = size.pick(
                most_sweeps, most_sweeps, 100 if n_train == 40_000 else most_sweeps
            )
            coarse = (true // 2, true, 2 * true)
            fine = (true // 2, true * 4 // 5, true, true * 5 // 4, 2 * true)
            for n_topics in size.pick(coarse, fine, fine if n_train == 1_000 else coarse):
                name = f"{true}-{n_words}-{n_train}-{n_topics}-{n_sweeps}"
                folder = None if size is Size.SMALL else PARTS / "eltm-fig3-5" / name
                for row in of_model(n_topics, n_sweeps, counts[:n_train], held_out, folder):
                    yield {
                        "set": f"K = {true}, {n_words:,} words",
                        "trained on": n_train,
                        "K": n_topics,
                        "line": f"{row['method']}, {n_train:,} documents",
                        **row,
                    }


def of_model(
    n_topics: int, n_sweeps: int, documents: Any, held_out: Any, folder: Path | None
) -> list[Row]:
    """Train a model and score it; what was done before a break is in the folder."""

    def compute() -> list[Row]:
        lda = pb.LatentDirichletAllocation(
            n_topics,
            learn_priors=True,
            max_iter=n_sweeps,
            random_state=0,
            checkpoint=folder,
            checkpoint_every=50,
        ).fit(documents)
        return [*scores(lda, held_out)]

    return once(None if folder is None else folder.with_suffix(".json"), compute)


def times(size: Size) -> Iterator[Row]:
    """Processor seconds to score documents of 151 words under the ten topics that they have."""
    data = pb.datasets.make_lda_corpus(
        size.pick(30, 10_000, 2_000),
        5_000,
        10,
        document_length=151,
        doc_topic_prior=0.1,
        random_state=1,
    )
    lda = pb.LatentDirichletAllocation.from_parameters(
        doc_topic_prior=data.doc_topic_prior, topic_word=data.topic_word
    )
    yield from scores(lda, data.corpus, ("MFI", "LR", "LRS", "smc-lookahead", "auto"))


def scores(
    lda: pb.LatentDirichletAllocation,
    held_out: Any,
    methods: tuple[str, ...] = ("MFI", "LR", "LRS", "auto"),
) -> Iterator[Row]:
    """Nats a token and processor seconds: the methods of the paper with 40 samples, and ours."""
    for method in methods:
        settings: dict[str, Any] = {}
        if method != "auto":
            settings = {METHODS[method][1]: 20, "n_replicates": 2}
        start = time.process_time()
        name = METHODS[method][0] if method in METHODS else method
        found = pb.log_likelihood(lda, held_out, name, random_state=0, **settings)
        yield {
            "method": method,
            "nats a token": found.nats_per_token,
            "error": found.nats_per_token_std_error,
            "seconds": time.process_time() - start,
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
        "line",
        "set",
        "error",
        middle="trained on 1,000 and 10,000 documents, 200 sweeps, on 40,000, 100; 100 held out",
    ),
    Figure(
        "eltm",
        "times",
        "Seconds to score documents of 151 words",
        times,
        middle="2,000 documents",
    ),
]
