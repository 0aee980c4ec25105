"""Words that describe topics, frequent or telling ones, and passages of texts to quote."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polyabayes._support import checks
from polyabayes._support.arrays import Floats, Indices
from polyabayes._support.results import Result
from polyabayes.models.fitted_topics import (
    TopicModel,
    fitted_model,
    labels_of,
    names,
    orders_of_words,
    probabilities,
)

# Least probability in a logarithm.
_LEAST = 1e-100
# A passage ends at the end of a sentence or a line.
_SENTENCES, _WORDS = re.compile(r"(?<=[.!?])\s+|\n+"), re.compile(r"\w+")


@dataclass(frozen=True, repr=False, eq=False)
class TopicWords(Result):
    """Words of every topic by four orders, as R's stm gives them.

    Attributes
    ----------
    probability, frex, lift, score : ndarray of object, shape (n_components, n_words)
        The first words of every topic by probability; by FREX, the harmonic mean of the ranks of
        frequency and exclusivity; by lift, the probability over that in all topics; and by score,
        φ_kw times ln φ_kw minus its mean over the topics.
    labels : list of str
        Names or numbers of the topics.

    Examples
    --------
    >>> pb.topics.topic_words(lda, n_words=1).frex.shape
    (2, 1)
    """

    probability: NDArray[np.object_]
    frex: NDArray[np.object_]
    lift: NDArray[np.object_]
    score: NDArray[np.object_]
    labels: list[str]

    def _columns(self) -> dict[str, Any]:
        orders = ("probability", "frex", "lift", "score")
        columns = {name: [" ".join(row) for row in getattr(self, name)] for name in orders}
        return {"topic": self.labels, **columns}

    def __repr__(self) -> str:
        n_topics, n_words = self.probability.shape
        return f"<TopicWords: {n_words} of each of {n_topics} topics, by four orders>"


def topic_words(model: Any, n_words: int = 7) -> TopicWords:
    """Words of every topic by probability, FREX, lift and score.

    Parameters
    ----------
    {topics model}
    n_words : int, default=7
        Words of a topic; at most all.

    Returns
    -------
    TopicWords

    Raises
    ------
    InvalidArgumentError, InvalidTypeError, NotFittedError
        If `n_words` is not a positive integer, or `model` is not a fitted topic model.

    References
    ----------
    E. Airoldi and J. Bischof (2016). Improving and evaluating topic models and other models of
    text. JASA 111; their FREX.

    M. Taddy (2012). On estimation and selection for topic models. AISTATS; their lift.

    Examples
    --------
    >>> found = pb.topics.topic_words(lda, n_words=2)
    >>> found.to_frame().columns.tolist()
    ['topic', 'probability', 'frex', 'lift', 'score']
    """
    fitted = fitted_model(model)
    wanted = checks.whole_number("n_words", n_words)
    words = names(fitted)
    best = {
        name: words[np.argsort(-order, axis=1, kind="stable")[:, :wanted]]
        for name, order in orders_of_words(fitted).items()
    }
    return TopicWords(**best, labels=labels_of(fitted, 0))


def passages(
    model: TopicModel, rows: Indices, texts: list[str], weights: Floats
) -> NDArray[np.object_]:
    """The sentence of each document, (n_components, n_documents), that carries its topic most.

    Words belong to the topic by their probability given the weights of the document; those that the
    vocabulary lacks count nothing.
    """
    topics = probabilities(model)
    column_of = {str(word).lower(): column for column, word in enumerate(names(model))}
    found = np.empty(rows.shape, dtype=object)
    for (k, place), row in np.ndenumerate(rows):
        given = weights[row] @ topics
        best, most = "", -1.0
        for sentence in _SENTENCES.split(texts[row]):
            known = [column_of.get(word.lower(), -1) for word in _WORDS.findall(sentence)]
            columns = [column for column in known if column >= 0]
            share = weights[row, k] * topics[k, columns] / np.maximum(given[columns], _LEAST)
            if columns and (carried := float(share.sum() / np.sqrt(len(columns)))) > most:
                best, most = sentence.strip(), carried
        found[k, place] = best
    return found
