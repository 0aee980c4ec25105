"""Simulation of documents from topics, with the topics of their tokens."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from polyabayes._support.arrays import Floats, Integers


def documents_of_topics(
    topic_counts: Integers,
    topic_word: Floats,
    rng: np.random.Generator,
    vocabularies: Sequence[slice] = (slice(None),),
    concentration: Floats | None = None,
) -> tuple[sparse.csr_matrix, NDArray[np.uint16]]:
    """Draw word counts of documents, given the number of tokens of each topic.

    Bursty topics have a finite `concentration`: a token repeats an earlier one of its document and
    topic, any of them with the same probability, or is a new draw of the topic (Pólya's urn).
    `topic_counts` has shape (n_documents, n_vocabularies, n_topics), or (n_documents, n_topics) for
    one vocabulary. `topic_word` are weights of words, `vocabularies` the columns of each
    vocabulary. The returned topics are those of the tokens, ordered by document and word.
    """
    cells = topic_counts.reshape(len(topic_counts), len(vocabularies), -1)
    indices = np.indices(cells.shape).reshape(3, -1)
    documents, places, topics = (np.repeat(index, cells.ravel()) for index in indices)
    words, n_each = np.empty(len(topics), dtype=np.int64), cells.sum(axis=0)
    of_each = np.split(np.lexsort((topics, places)), np.cumsum(n_each)[:-1])
    for own, (place, topic) in zip(of_each, np.ndindex(n_each.shape), strict=True):
        columns = np.arange(topic_word.shape[1])[vocabularies[place]]
        weights = topic_word[topic, columns]
        if len(own):
            words[own] = rng.choice(columns, size=len(own), p=weights / weights.sum())
    if concentration is not None and np.isfinite(concentration).any():
        words = words[_sources(documents, topics, concentration, rng)]
    # Tokens of a word are shuffled, so that their topics are a draw from the posterior.
    order = np.lexsort((rng.random(len(words)), words, documents))
    ones, shape = np.ones(len(words), dtype=np.int64), (len(topic_counts), topic_word.shape[1])
    counts = sparse.coo_matrix((ones, (documents, words)), shape)
    return counts.tocsr(), topics[order].astype(np.uint16)


def _sources(
    documents: Integers, topics: Integers, concentration: Floats, rng: np.random.Generator
) -> Integers:
    """The token whose draw each token repeats, or its own; tokens stand by document and topic."""
    tokens = np.arange(len(topics))
    is_first = np.r_[True, (np.diff(documents) != 0) | (np.diff(topics) != 0)][: len(topics)]
    place = tokens - np.maximum.accumulate(np.where(is_first, tokens, 0))
    # j / (s + j), also of an infinite s.
    is_repeat = rng.random(len(topics)) < place / (concentration[topics] + place)
    sources = tokens - np.where(is_repeat, 1 + rng.integers(0, np.maximum(place, 1)), 0)
    while (sources[sources] != sources).any():
        sources = sources[sources]
    return sources
