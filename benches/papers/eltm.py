"""Buntine (2009), estimating likelihoods for topic models."""

import math
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from benches.papers.figure import PARTS, Picture, Row, figure, halves, mean_and_error, once
from benches.record import simulated, timed

import polyabayes as pb

# The methods of the paper by its names, and those that it does not have.
METHODS: dict[str, tuple[str, dict[str, int]]] = {
    "HM": ("harmonic", {}),
    "MFI (1st order)": ("mean-field", {"order": 1}),
    "MFI (2nd order)": ("mean-field", {"order": 2}),
    "LR": ("left-to-right-particle", {}),
    "LRS": ("left-to-right-sequential", {}),
}
OURS: dict[str, tuple[str, dict[str, int]]] = {
    name: (name, {}) for name in ("left-to-right", "annealed", "smc-lookahead")
}
eltm = partial(figure, "eltm")
# Every estimate is the mean of two, of half the samples each.
HALVES: dict[str, Any] = {"remarks": {"runs": 1}, "ours": {"runs": 2}}

# Means of Table 1 by gamma, in the order of the methods; that of LR at 1 as its t of 1.58 has it.
PUBLISHED = {
    0.2: (-0.3357, 0.0018, 0.0016, 0.0032, 0.00072),
    0.5: (-0.210, 0.00131, 0.00624, 0.0128, 0.00002),
    1.0: (-0.109, 0.0181, 0.0261, 0.00796, 0.00457),
    3.0: (-0.0440, 0.0694, 0.0553, 0.00926, 0.00510),
}


def pair(
    words: int, topics: int, tokens: int, alpha: float, gamma: float, seed: int
) -> tuple[Any, Any, float]:
    """A random model, a document of it, and the exact ln p."""
    law = {"document_length": tokens, "doc_topic_prior": alpha, "topic_word_prior": gamma}
    model, document = simulated(1, words, topics, random_state=seed, **law)
    return model, document, pb.log_likelihood(model, document, "exact").total


def estimate(method: str, cycles: int, model: Any, document: Any, samples: int, seed: int) -> float:
    """ln p by so many samples."""
    name, options = (METHODS | OURS)[method]
    if name == "mean-field":
        options = {**options, "n_iterations": cycles}
    return halves(model, document, name, samples, options=options, random_state=seed).total


@eltm(
    "table1", "Exact less estimate, bits per token", "4.1, Table 1", **HALVES, small={"pairs": 20}
)
def table1(
    words=1_000,
    alpha=0.1,
    cycles=10,
    tokens=14,
    topics=4,
    gamma=(0.2, 0.5, 1.0, 3.0),
    pairs=100,
    samples=200,
) -> Iterator[Row]:
    """Exact less estimate in bits per token, over pairs of a model and a document."""
    to_bits = 1 / (math.log(2) * tokens)
    for prior in gamma:
        cases = [pair(words, topics, tokens, alpha, prior, seed) for seed in range(pairs)]
        for method in METHODS | OURS:
            found = [
                to_bits * (exact - estimate(method, cycles, *case, samples, seed))
                for seed, (*case, exact) in enumerate(cases)
            ]
            mean, error = mean_and_error(found)
            sd = error * math.sqrt(len(found))
            published = dict(zip(METHODS, PUBLISHED[prior], strict=True)).get(method)
            row = {"gamma": prior, "method": method, "mean": mean, "published mean": published}
            yield row | {"sd": sd, "t": mean / error}


@eltm(
    "fig1",
    "One document of 16 tokens, K = 5",
    "4.1, Figures 1 and 2",
    **HALVES,
    small={"samples": [200, 2_000]},
    picture=Picture("samples", "bits per token", "method"),
)
def figure1(
    words=1_000,
    alpha=0.1,
    cycles=10,
    tokens=16,
    topics=5,
    gamma=0.5,
    samples=(200, 1_000, 2_000, 5_000, 10_000, 15_000, 20_000),
) -> Iterator[Row]:
    """Bits per token of one document under one model, by the number of samples."""
    model, document, exact = pair(words, topics, tokens, alpha, gamma, 0)
    to_bits = -1 / (math.log(2) * tokens)
    for size in samples:
        yield {"method": "exact", "samples": size, "bits per token": to_bits * exact}
    for method in METHODS:
        for size in samples:
            found = estimate(method, cycles, model, document, size, size)
            yield {"method": method, "samples": size, "bits per token": to_bits * found}


# Settings of the small form of Figures 3 to 5, and of that of the pages.
SMALL = {"sets": [[10, 500]], "K": [[5, 10, 20]], "trained": [100, 300], "held_out": 30}
MIDDLE = {"sets": [[10, 5_000]], "K": [[8, 9, 10, 11]], "trained": [1_000, 5_000], "held_out": 100}


@eltm(
    "fig3-5",
    "Held-out nats per token by number of topics",
    "4.2, Figures 3 to 5",
    small={**SMALL, "samples": [40, 40], "sweeps": 100},
    middle={**MIDDLE, "sweeps": 200},
    picture=Picture("K", "nats per token", "line", panel="set", error="error"),
)
def choice(
    sets=((10, 28_251), (10, 5_000), (40, 28_251)),
    K=(*((5, 8, 9, 10, 11, 12, 20, 40),) * 2, (20, 32, 35, 38, 40, 45, 50, 60)),
    trained=(1_000, 2_500, 5_000, 10_000, 20_000, 30_000, 40_000),
    held_out=10_000,
    tokens=151,
    samples=(200, 100),
    sweeps=500,
) -> Iterator[Row]:
    """Models of several K trained on data of known K: which K does each method name best?

    Training that was cut goes on from its folder.
    """
    for (true, n_words), sizes in zip(sets, K, strict=True):
        counts = drawn(trained[-1] + held_out, n_words, true, tokens)[1].counts
        for n_train, n_topics in ((n, k) for n in trained for k in sizes):
            folder = PARTS / "eltm-fig3-5" / f"{true}-{n_words}-{n_train}-{n_topics}"
            run = {"max_iter": sweeps, "random_state": 0, "checkpoint": folder}
            lda = pb.LatentDirichletAllocation(n_topics, **run)
            train = partial(scores, lda, counts[trained[-1] :], samples, documents=counts[:n_train])
            of = {"set": f"K = {true}, {n_words:,} words", "trained on": n_train, "K": n_topics}
            for row in once(folder.with_suffix(".json"), train):
                yield {**of, "line": f"{row['method']}, {n_train:,} documents", **row}


def drawn(n_documents: int, words: int, topics: int, tokens: int) -> tuple[Any, pb.Corpus]:
    """A model, and documents drawn from it."""
    law = {"document_length": tokens, "doc_topic_prior": 0.1, "random_state": 1}
    return simulated(n_documents, words, topics, **law)


@eltm(
    "times",
    "Seconds to score documents",
    "4.2",
    remarks={"LRS also": 2_000},
    small={"held_out": 10},
    middle={"held_out": 100},
)
def times(words=28_251, tokens=151, held_out=10_000, samples=(200, 100)) -> list[Row]:
    """Processor seconds to score documents under the ten topics that they have."""
    lda, documents = drawn(held_out, words, 10, tokens)
    return scores(lda, documents, samples, more_of_lrs=(2_000,))


def scores(
    lda: Any,
    held_out: Any,
    samples: Sequence[int],
    more_of_lrs: Sequence[int] = (),
    documents: Any = None,
) -> list[Row]:
    """Nats per token and processor seconds of the paper's methods and ours.

    The model is first trained on `documents`, where they are given.
    """
    if documents is not None:
        lda.fit(documents)
    n_mfi, n_lr = samples
    lrs = [("LRS", "left-to-right-sequential", n) for n in (n_lr, *more_of_lrs)]
    rows = []
    for name, method, n_samples in (
        ("MFI", "mean-field", n_mfi),
        ("LR", "left-to-right-particle", n_lr),
        *lrs,
        ("smc-lookahead", "smc-lookahead", n_lr),
    ):
        found, seconds = timed(halves, lda, held_out, method, n_samples, random_state=0, n_jobs=1)
        nats = {"nats per token": found.nats_per_token, "error": found.nats_per_token_std_error}
        rows.append({"method": name, "samples": n_samples, **nats, "seconds": seconds})
    return rows
