"""Simulation of documents from topics, with the topics of their tokens."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import sparse


def documents_of_topics(
    topic_counts: NDArray[np.int64],
    topic_word: NDArray[np.float64],
    rng: np.random.Generator,
    vocabularies: Sequence[slice] = (slice(None),),
    concentration: NDArray[np.float64] | None = None,
) -> tuple[sparse.csr_matrix, NDArray[np.uint16]]:
    """Draw word counts of documents, given the number of tokens of each topic.

    Bursty topics have a finite `concentration`: a token repeats an earlier one of its document and
    topic, any of them with the same probability, or is a new draw of the topic (Pólya's urn).
    `topic_counts` has shape (n_documents, n_vocabularies, n_topics), or (n_documents, n_topics) for
    one vocabulary. `topic_word` are weights of words, `vocabularies` the columns of each
    vocabulary. The returned topics are those of the tokens, ordered by document and word.
    """
    n_documents, n_words = len(topic_counts), topic_word.shape[1]
    cells = topic_counts.reshape(n_documents, len(vocabularies), -1)
    documents, places, topics = (
        np.repeat(index, cells.ravel()) for index in np.indices(cells.shape).reshape(3, -1)
    )
    words = np.empty(len(topics), dtype=np.int64)
    for place, columns in enumerate(vocabularies):
        own_words = np.arange(n_words)[columns]
        for topic, row in enumerate(topic_word[:, columns]):
            own = np.flatnonzero((topics == topic) & (places == place))
            if len(own):
                words[own] = rng.choice(own_words, size=len(own), p=row / row.sum())
    if concentration is not None and np.isfinite(concentration).any():
        words = words[_sources(documents, topics, concentration, rng)]
    # Tokens of a word are shuffled, so that their topics are a draw from the posterior.
    order = np.lexsort((rng.random(len(words)), words, documents))
    ones = np.ones(len(words), dtype=np.int64)
    counts = sparse.coo_matrix((ones, (documents, words)), (n_documents, n_words))
    return counts.tocsr(), topics[order].astype(np.uint16)


def _sources(
    documents: NDArray[np.int64],
    topics: NDArray[np.int64],
    concentration: NDArray[np.float64],
    rng: np.random.Generator,
) -> NDArray[np.int64]:
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
