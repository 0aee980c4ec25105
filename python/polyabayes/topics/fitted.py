"""Topics, words and documents of any fitted model."""

from __future__ import annotations

from copy import copy
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from polyabayes._support import checks
from polyabayes.data.corpus import Corpus, of_layer
from polyabayes.models.fitted_topics import TopicModel, expected_tokens, fitted_model, topic_tokens

__all__ = [
    "TopWords",
    "TopicModel",
    "aligned",
    "expected_tokens",
    "fitted_model",
    "named_by",
    "names",
    "probabilities",
    "top_words",
    "topic_tokens",
]


class TopWords(NamedTuple):
    """The most probable words of every topic.

    `columns` are the columns of the words, most probable first; without a vocabulary, `words` are
    column numbers as text.
    """

    columns: NDArray[np.intp]
    words: NDArray[np.object_]


def probabilities(model: TopicModel) -> NDArray[np.float64]:
    """Topics x words, with rows that sum to 1."""
    topics = model.components_
    rows: NDArray[np.float64] = topics / topics.sum(axis=1, keepdims=True)
    return rows


def names(model: TopicModel) -> NDArray[np.object_]:
    """Words of the columns, or column numbers as text."""
    if model.vocabulary_ is not None:
        return model.vocabulary_
    return np.array([str(column) for column in range(model.n_features_in_)], dtype=object)


def top_words(model: TopicModel, n_words: int) -> TopWords:
    """The most probable words of every topic; ties are in the order of the columns."""
    wanted = checks.whole_number("n_words", n_words)
    columns = np.argsort(-model.components_, axis=1, kind="stable")[:, :wanted]
    return TopWords(columns, names(model)[columns])


def named_by(model: TopicModel, corpus: Corpus) -> TopicModel:
    """Give a model without a vocabulary the words of a corpus with the same columns."""
    if model.vocabulary_ is not None or corpus.vocabulary is None:
        return model
    named = copy(model)
    named.vocabulary_ = corpus.vocabulary
    return named


def aligned(model: TopicModel, documents: Any, layer: str | None = None) -> Corpus:
    """Documents over the words of the model; unknown words are dropped."""
    return model._aligned(of_layer(documents, layer), "documents", "drop")[0]
