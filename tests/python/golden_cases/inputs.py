"""Inputs of the golden values: ratios of small whole numbers, which every machine divides alike."""

from __future__ import annotations

import numpy as np

import polyabayes as pb


def documents(n_documents: int, n_words: int, most: int) -> np.ndarray:
    """Counts from 0 to `most`, about two thirds of them 0; the last document is empty."""
    row, column = np.indices((n_documents, n_words))
    counts = (7 * row + 11 * column + 3 * row * column) % (3 * most) - 2 * most + 1
    counts[-1] = 0
    return np.maximum(counts, 0)


def topics(n_topics: int, n_words: int) -> np.ndarray:
    row, column = np.indices((n_topics, n_words))
    weights = (5 * row * row + 7 * column + 3 * row * column) % 13 + 1.0
    return weights / weights.sum(axis=1, keepdims=True)


DOCUMENTS = documents(6, 8, 3)
LONG = 9 * documents(3, 8, 3)
TRAINING = documents(20, 12, 4)
WORDS = [f"word{i}" for i in range(12)]


def lda() -> pb.LatentDirichletAllocation:
    return pb.LatentDirichletAllocation.from_parameters(
        doc_topic_prior=[0.25, 0.5, 1.5], topic_word=topics(3, 8), random_state=0
    )


def pfa() -> pb.PoissonFactorAnalysis:
    return pb.PoissonFactorAnalysis.from_parameters(
        topic_word=topics(3, 8),
        shape=[0.25, 1.0, 1.75],
        probability=[0.5, 0.75, 0.875],
        random_state=0,
    )


def wide_lda() -> pb.LatentDirichletAllocation:
    """More topics than fit in one round of lanes."""
    return pb.LatentDirichletAllocation.from_parameters(
        doc_topic_prior=np.full(37, 0.125), topic_word=topics(37, 8), random_state=0
    )


MODELS = {"lda": lda, "pfa": pfa}
