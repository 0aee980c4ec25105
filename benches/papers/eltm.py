"""Buntine (2009), estimating likelihoods for topic models."""

import math
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from benches.papers.figure import PARTS, Figure, Row, Settings, mean_and_error, once

import polyabayes as pb

# The methods of the paper by its names.
METHODS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "HM": ("harmonic", "n_samples", {}),
    "MFI (1st order)": ("mean-field", "n_samples", {"order": 1}),
    "MFI (2nd order)": ("mean-field", "n_samples", {"order": 2}),
    "LR": ("left-to-right-particle", "n_particles", {}),
    "LRS": ("left-to-right-sequential", "n_particles", {}),
}
# Methods that the paper does not have, at the same number of samples.
OURS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "left-to-right": ("left-to-right", "n_particles", {}),
    "annealed": ("annealed", "n_samples", {}),
    "smc-lookahead": ("smc-lookahead", "n_particles", {}),
}

# Means of Table 1 by gamma, in the order of the methods; that of LR at 1 as its t of 1.58 has it.
PUBLISHED = {
    0.2: (-0.3357, 0.0018, 0.0016, 0.0032, 0.00072),
    0.5: (-0.210, 0.00131, 0.00624, 0.0128, 0.00002),
    1.0: (-0.109, 0.0181, 0.0261, 0.00796, 0.00457),
    3.0: (-0.0440, 0.0694, 0.0553, 0.00926, 0.00510),
}


def pair(settings: Settings, gamma: float, seed: int) -> tuple[Any, Any, float]:
    """A random model, a document of it, and the exact ln p."""
    data = pb.datasets.make_lda_corpus(
        1,
        settings.words,
        settings.topics,
        document_length=settings.tokens,
        doc_topic_prior=settings.alpha,
        topic_word_prior=gamma,
        random_state=seed,
    )
    model = pb.LatentDirichletAllocation.from_parameters(
        doc_topic_prior=data.doc_topic_prior, topic_word=data.topic_word
    )
    return model, data.corpus, pb.log_likelihood(model, data.corpus, "exact").total


def estimate(
    method: str, settings: Settings, model: Any, document: Any, samples: int, seed: int
) -> float:
    """ln p by so many samples, in two runs of half of them."""
    name, size, options = (METHODS | OURS)[method]
    if name == "mean-field":
        options = {**options, "n_iterations": settings.cycles}
    how = {size: samples // settings.runs, "options": options, "n_replicates": settings.runs}
    return float(pb.log_likelihood(model, document, name, random_state=seed, **how).total)


def table1(settings: Settings) -> Iterator[Row]:
    """Exact less estimate in bits per token, over pairs of a model and a document."""
    to_bits = 1 / (math.log(2) * settings.tokens)
    for gamma in settings.gamma:
        pairs = [pair(settings, gamma, seed) for seed in range(settings.pairs)]
        for method in METHODS | OURS:
            found = [
                to_bits * (exact - estimate(method, settings, *case, settings.samples, seed))
                for seed, (*case, exact) in enumerate(pairs)
            ]
            mean, error = mean_and_error(found)
            sd = error * math.sqrt(len(found))
            published = dict(zip(METHODS, PUBLISHED[gamma], strict=True)).get(method)
            yield {
                "gamma": gamma,
                "method": method,
                "mean": mean,
                "published mean": published,
                "sd": sd,
                "t": mean / error,
            }


def figure1(settings: Settings) -> Iterator[Row]:
    """Bits per token of one document under one model, by the number of samples."""
    model, document, exact = pair(settings, settings.gamma, 0)
    to_bits = -1 / (math.log(2) * settings.tokens)
    for samples in settings.samples:
        yield {"method": "exact", "samples": samples, "bits per token": to_bits * exact}
    for method in METHODS:
        for samples in settings.samples:
            found = estimate(method, settings, model, document, samples, samples)
            yield {"method": method, "samples": samples, "bits per token": to_bits * found}


def choice(settings: Settings) -> Iterator[Row]:
    """Models of several K trained on data of known K: which K does each method name best?

    Training that was cut goes on from its folder.
    """
    for (true, n_words), sizes in zip(settings.sets, settings.K, strict=True):
        data = pb.datasets.make_lda_corpus(
            settings.trained[-1] + settings.held_out,
            n_words,
            true,
            document_length=settings.tokens,
            doc_topic_prior=0.1,
            random_state=1,
        )
        counts = data.corpus.counts
        held_out = counts[settings.trained[-1] :]
        for n_train, n_topics in ((n, k) for n in settings.trained for k in sizes):
            folder = PARTS / "eltm-fig3-5" / f"{true}-{n_words}-{n_train}-{n_topics}"
            train = partial(trained, n_topics, counts[:n_train], held_out, settings, folder)
            for row in once(folder.with_suffix(".json"), train):
                yield {
                    "set": f"K = {true}, {n_words:,} words",
                    "trained on": n_train,
                    "K": n_topics,
                    "line": f"{row['method']}, {n_train:,} documents",
                    **row,
                }


def trained(
    n_topics: int, documents: Any, held_out: Any, settings: Settings, folder: Path
) -> list[Row]:
    """Train a model, going on from the folder, and score it."""
    lda = pb.LatentDirichletAllocation(
        n_topics, max_iter=settings.sweeps, random_state=0, checkpoint=folder
    ).fit(documents)
    return [*scores(lda, held_out, settings)]


def times(settings: Settings) -> Iterator[Row]:
    """Processor seconds to score documents under the ten topics that they have."""
    data = pb.datasets.make_lda_corpus(
        settings.held_out,
        settings.words,
        10,
        document_length=settings.tokens,
        doc_topic_prior=0.1,
        random_state=1,
    )
    lda = pb.LatentDirichletAllocation.from_parameters(
        doc_topic_prior=data.doc_topic_prior, topic_word=data.topic_word
    )
    yield from scores(lda, data.corpus, settings)


def scores(lda: Any, held_out: Any, settings: Settings) -> Iterator[Row]:
    """Nats per token and processor seconds: MFI, LR and LRS with their samples, and ours."""
    n_mfi, n_lr = settings.samples
    for method, name, size, n_samples in (
        ("MFI", "mean-field", "n_samples", n_mfi),
        ("LR", "left-to-right-particle", "n_particles", n_lr),
        ("LRS", "left-to-right-sequential", "n_particles", n_lr),
        ("LRS", "left-to-right-sequential", "n_particles", settings.get("LRS also", 0)),
        ("smc-lookahead", "smc-lookahead", "n_particles", n_lr),
    ):
        if not n_samples:
            continue
        start = time.process_time()
        how = {size: n_samples // 2, "n_replicates": 2, "random_state": 0, "n_jobs": 1}
        found = pb.log_likelihood(lda, held_out, name, **how)
        yield {
            "method": method,
            "samples": n_samples,
            "nats per token": found.nats_per_token,
            "error": found.nats_per_token_std_error,
            "seconds": time.process_time() - start,
        }


EXACT = {"words": 1_000, "alpha": 0.1, "cycles": 10}
# Every estimate is the mean of two, of half the samples each.
HALVES = {"runs": 2}
FIGURES = [
    Figure(
        "eltm",
        "table1",
        "Exact less estimate, bits per token",
        table1,
        {
            "in": "4.1, Table 1",
            **EXACT,
            "tokens": 14,
            "topics": 4,
            "gamma": [0.2, 0.5, 1.0, 3.0],
            "pairs": 100,
            "samples": 200,
            "runs": 1,
        },
        ours=HALVES,
        small={"pairs": 20},
    ),
    Figure(
        "eltm",
        "fig1",
        "One document of 16 tokens, K = 5",
        figure1,
        {
            "in": "4.1, Figures 1 and 2",
            **EXACT,
            "tokens": 16,
            "topics": 5,
            "gamma": 0.5,
            "samples": [200, 1_000, 2_000, 5_000, 10_000, 15_000, 20_000],
            "runs": 1,
        },
        ours=HALVES,
        small={"samples": [200, 2_000]},
        x="samples",
        y="bits per token",
        series="method",
    ),
    Figure(
        "eltm",
        "fig3-5",
        "Held-out nats per token by number of topics",
        choice,
        {
            "in": "4.2, Figures 3 to 5",
            "sets": [[10, 28_251], [10, 5_000], [40, 28_251]],
            "K": [[5, 8, 9, 10, 11, 12, 20, 40]] * 2 + [[20, 32, 35, 38, 40, 45, 50, 60]],
            "trained": [1_000, 2_500, 5_000, 10_000, 20_000, 30_000, 40_000],
            "held_out": 10_000,
            "tokens": 151,
            "samples": [200, 100],
            "sweeps": 500,
        },
        small={
            "sets": [[10, 500]],
            "K": [[5, 10, 20]],
            "trained": [100, 300],
            "held_out": 30,
            "samples": [40, 40],
            "sweeps": 100,
        },
        middle={
            "sets": [[10, 5_000]],
            "K": [[8, 9, 10, 11]],
            "trained": [1_000, 5_000],
            "held_out": 100,
            "sweeps": 200,
        },
        x="K",
        y="nats per token",
        series="line",
        panel="set",
        error="error",
    ),
    Figure(
        "eltm",
        "times",
        "Seconds to score documents",
        times,
        {
            "in": "4.2",
            "words": 28_251,
            "tokens": 151,
            "held_out": 10_000,
            "samples": [200, 100],
            "LRS also": 2_000,
        },
        small={"held_out": 10},
        middle={"held_out": 100},
    ),
]
