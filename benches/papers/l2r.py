"""Capdevila et al. (2018), left-to-right likelihood estimation in gamma-Poisson factor analysis."""

from __future__ import annotations

import csv
import json
import math
import time
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
from benches.papers.figure import DATA, PARTS, Figure, Row, Size, mean_and_error
from numpy.typing import NDArray

import polyabayes as pb

# Table 1 of the paper: words, documents, mean and standard deviation of the lengths.
PUBLISHED = {
    "ap": (10_473, 2_246, 194, 111),
    "20ng": (11_928, 18_846, 123, 247),
    "reuters": (8_843, 19_043, 79, 75),
    "web_snippets": (4_679, 12_309, 9, 3),
    "l2r_nips100": (11_463, 5_811, 1_899, 513),
    "l2r_twitter100": (6_344, 10_523, 25, 4),
}
# Their limit of what could be summed: the terms of the exact sum of a document.
MOST_TERMS = 1e9
# Sweeps of the published models.
N_SWEEPS = 1_000
# Tokens up to which the exact lattice of five topics takes a second a document.
LONGEST_EXACT = 150


@cache
def corpus(name: str) -> pb.Corpus:
    """A collection; 20 Newsgroups with the words of 11 documents or more, as published."""
    read = pb.read_corpus(DATA / f"{name}.ldac.gz", vocabulary=DATA / f"{name}.vocab")
    if name != "20ng":
        return read
    kept = np.asarray((read.counts > 0).sum(axis=0)).ravel() >= 11
    return pb.Corpus(read.counts[:, np.flatnonzero(kept)], vocabulary=read.vocabulary[kept])


def most_frequent(documents: pb.Corpus, n_words: int) -> pb.Corpus:
    """The same documents, cut to their most frequent words."""
    total = np.asarray(documents.counts.sum(axis=0)).ravel()
    return pb.Corpus(documents.counts[:, np.sort(np.argsort(-total, kind="stable")[:n_words])])


@cache
def trained(name: str, n_words: int, n_topics: int, n_sweeps: int) -> pb.PoissonFactorAnalysis:
    """The model of the paper: alpha = 0.1, r = 1, c = 1, eps = 1 / K.

    Those of the published number of sweeps are trained once for all figures, and kept.
    """
    folder = PARTS / "l2r-models" / f"{name}-{n_words}-{n_topics}"
    return pb.PoissonFactorAnalysis(
        n_topics,
        prior="beta-gamma",
        max_iter=n_sweeps,
        random_state=0,
        checkpoint=folder if n_sweeps == N_SWEEPS else None,
    ).fit(most_frequent(corpus(name), n_words))


def n_terms(counts: NDArray[np.int64], n_topics: int) -> float:
    """Terms of the sum over partitions of every word's count, Π C(y + K - 1, K - 1)."""
    present = counts[counts > 0]
    return math.exp(
        sum(math.lgamma(y + n_topics) - math.lgamma(y + 1) - math.lgamma(n_topics) for y in present)
    )


def short_enough(documents: pb.Corpus, n_topics: int, most: int) -> pb.Corpus:
    """The first documents of two words or more whose exact sum the paper could take."""
    dense = documents.counts.toarray()
    chosen = [
        row
        for row in range(len(dense))
        if (dense[row] > 0).sum() > 1 and n_terms(dense[row], n_topics) < MOST_TERMS
    ]
    return pb.Corpus(dense[chosen[:most]])


def table1(_size: Size) -> Iterator[Row]:
    """Sizes of the collections beside the published ones."""
    for name, (n_words, n_documents, mean, deviation) in PUBLISHED.items():
        found = corpus(name).summary()
        yield {
            "corpus": name,
            "documents": found.n_documents,
            "words": found.n_words,
            "mean length": found.mean_length,
            "sd of length": found.sd_length,
            "published documents": n_documents,
            "published words": n_words,
            "published mean": mean,
            "published sd": deviation,
        }


# Methods of Figure 2 and ours, by the names of the legend. The published L2R averages word by word
# along one chain, as the sequential form does token by token; `l2r` averages whole runs.
METHODS: dict[str, dict[str, Any]] = {
    "L2R, one draw": {"method": "l2r", "options": {"n_conditional_samples": 1}},
    "L2R, exact conditionals": {"method": "l2r"},
    "L2R, one chain": {"method": "left-to-right-sequential"},
    "direct": {"method": "direct"},
    "harmonic": {"method": "harmonic"},
    "smc-lookahead": {"method": "smc-lookahead"},
    "annealed": {"method": "annealed"},
}
BY_PARTICLES = ("l2r", "left-to-right-sequential", "smc-lookahead")
# Methods whose time grows with the square of the length.
QUADRATIC = ("l2r", "left-to-right-sequential")


def estimate(
    model: Any, documents: pb.Corpus, choice: dict[str, Any], n_samples: int, seed: int
) -> pb.LogLikelihood:
    """A method with so many samples or particles, in two replicates of half of them."""
    size = "n_particles" if choice["method"] in BY_PARTICLES else "n_samples"
    return pb.log_likelihood(
        model, documents, **choice, **{size: n_samples // 2}, n_replicates=2, random_state=seed
    )


def divergences(
    model: Any, documents: pb.Corpus, sizes: list[int], n_repeats: int
) -> Iterator[Row]:
    """KL from exact to estimated, by method and number of samples."""
    exact = pb.log_likelihood(model, documents, "exact", budget=1e12)
    for name, choice in METHODS.items():
        for size in sizes:
            found = [
                estimate(model, documents, choice, size, seed).values for seed in range(n_repeats)
            ]
            mean, error = mean_and_error(pb.estimator_divergence(exact, x) for x in found)
            worst = max(float(np.abs(x - exact.values).max()) for x in found)
            yield {
                "method": name,
                "samples": size,
                "KL": mean,
                "error": error,
                "largest |ln p̂ - ln p|": worst,
                "documents": documents.n_documents,
            }


def figure2(size: Size) -> Iterator[Row]:
    """Vocabulary of 100 words, K = 5, documents whose exact sum has fewer than 1e9 terms."""
    samples = size.pick([10, 100, 1_000], [10, 30, 100, 300, 1_000, 3_000, 10_000])
    for name in size.pick(["ap", "l2r_twitter100"], list(PUBLISHED)):
        documents = most_frequent(corpus(name), 100)
        model = trained(name, 100, 5, size.pick(100, N_SWEEPS))
        chosen = short_enough(documents, 5, size.pick(100, 1_000, 200))
        if chosen.n_documents > 1:
            for row in divergences(model, chosen, samples, size.pick(3, 10)):
                yield {"corpus": name, **row}


def of_every_length(documents: pb.Corpus, most: int) -> pb.Corpus:
    """The first documents of one token or more, and so few that the lattice takes a second."""
    lengths = np.asarray(documents.counts.sum(axis=1)).ravel()
    chosen = np.flatnonzero((lengths > 0) & (lengths <= LONGEST_EXACT))
    return pb.Corpus(documents.counts[chosen[:most]])


def figure2_all(size: Size) -> Iterator[Row]:
    """The same for all documents of up to 150 tokens, whatever their number of terms."""
    for name in size.pick(["ap"], list(PUBLISHED)):
        documents = most_frequent(corpus(name), 100)
        model = trained(name, 100, 5, size.pick(100, N_SWEEPS))
        chosen = of_every_length(documents, size.pick(60, 1_000, 60))
        for row in divergences(model, chosen, [10, 100, 1_000], size.pick(3, 10, 3)):
            yield {"corpus": name, **row}


def every_document(size: Size) -> Iterator[Row]:
    """All documents of all collections, 100 words, K = 5: ln p by auto, and how many are exact."""
    for name in size.pick(["ap", "l2r_twitter100"], list(PUBLISHED)):
        documents = most_frequent(corpus(name), 100)
        model = trained(name, 100, 5, size.pick(100, N_SWEEPS))
        chosen = pb.Corpus(documents.counts[: size.pick(300, documents.n_documents)])
        start = time.process_time()
        found = pb.log_likelihood(model, chosen, random_state=0)
        seconds = time.process_time() - start
        yield {
            "corpus": name,
            "documents": chosen.n_documents,
            "fewer than 1e9 terms": sum(
                n_terms(row, 5) < MOST_TERMS for row in chosen.counts.toarray()
            ),
            "exact": int((found.methods == "exact").sum()),
            "nats a document": found.total / chosen.n_documents,
            "error": found.total_std_error / chosen.n_documents,
            "seconds": seconds,
        }


def figure1(size: Size) -> Iterator[Row]:
    """KL against the mean length of the documents, 100 samples: those of Figure 2, and all."""
    rows = []
    for name in PUBLISHED:
        documents = most_frequent(corpus(name), 100)
        model = trained(name, 100, 5, size.pick(50, N_SWEEPS))
        for which, chosen in (
            ("fewer than 1e9 terms", short_enough(documents, 5, size.pick(60, 1_000, 200))),
            ("up to 150 tokens", of_every_length(documents, size.pick(20, 1_000, 60))),
        ):
            if chosen.n_documents > 1:
                length = chosen.summary().mean_length
                found = divergences(model, chosen, [100], size.pick(3, 10))
                rows += [
                    {"documents of": which, "corpus": name, "mean length": length, **row}
                    for row in found
                ]
    yield from sorted(rows, key=lambda row: (row["documents of"], row["mean length"]))


def figure3(size: Size) -> Iterator[Row]:
    """K = 100, all words: mean ln p of a document by method and number of samples."""
    documents = corpus("ap")
    model = trained("ap", documents.n_words, 100, size.pick(40, N_SWEEPS, 500))
    chosen = pb.Corpus(documents.counts[: size.pick(20, 1_000, 50)])
    long = pb.log_likelihood(model, chosen, "annealed", n_samples=1_000, random_state=0)
    for name, choice in METHODS.items():
        for n_samples in size.pick((10, 100), (10, 100, 1_000)):
            if choice["method"] in QUADRATIC and n_samples > size.pick(100, 1_000, 100):
                continue  # hours
            found = estimate(model, chosen, choice, n_samples, 1)
            yield {
                "method": name,
                "samples": n_samples,
                "mean ln p": found.values.mean(),
                "below long annealing": (long.values - found.values).mean(),
            }


def authors(size: Size) -> Iterator[Row]:
    """The published models: their exact values, and all documents that they left out."""
    for name in ("l2r_twitter100", "l2r_nips100"):
        parts = json.loads((DATA / f"{name}.model.json").read_text())
        model = pb.PoissonFactorAnalysis.from_parameters(
            topic_word=np.array(parts["phi"]), shape=parts["r"], probability=parts["p"]
        )
        documents = corpus(name)
        path = DATA / f"{name}.exact.csv"
        if path.exists():
            with path.open() as lines:
                published = {
                    int(row[0]): float(row[1]) for row in csv.reader(lines) if row[0].isdigit()
                }
            exact = pb.log_likelihood(model, documents.counts[sorted(published)], "exact")
            differences = exact.values - [published[row] for row in sorted(published)]
            yield {
                "corpus": name,
                "quantity": "largest difference from the published exact values",
                "value": np.abs(differences).max(),
                "documents": len(published),
            }
        most = size.pick(500, documents.n_documents)
        found = pb.log_likelihood(model, documents.counts[:most], random_state=0)
        yield {
            "corpus": name,
            "quantity": "nats a document, by auto",
            "value": found.total / most,
            "error": found.total_std_error / most,
            "documents": most,
            "exact": int((found.methods == "exact").sum()),
        }


KL: dict[str, Any] = {"x": "samples", "y": "KL", "series": "method", "error": "error", "log": "xy"}
FIGURES = [
    Figure("l2r", "table1", "Collections", table1),
    Figure(
        "l2r",
        "fig1",
        "KL to exact against length",
        figure1,
        panel="documents of",
        middle="200 documents a collection, 60 where no limit of terms holds",
        **{**KL, "x": "mean length", "log": "y"},
    ),
    Figure(
        "l2r",
        "fig2",
        "KL to exact against samples",
        figure2,
        panel="corpus",
        middle="200 documents a collection",
        **KL,
    ),
    Figure(
        "l2r",
        "fig2-all",
        "The same, documents of up to 150 tokens",
        figure2_all,
        panel="corpus",
        middle="60 documents a collection, 3 repetitions",
        **KL,
    ),
    Figure("l2r", "all", "All documents of all collections", every_document),
    Figure(
        "l2r",
        "fig3",
        "ln p, K = 100",
        figure3,
        "samples",
        "mean ln p",
        "method",
        log="x",
        middle="500 sweeps; 50 documents, L2R of up to 100 samples",
    ),
    Figure("l2r", "authors", "The authors' models and values", authors),
]
