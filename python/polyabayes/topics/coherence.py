"""Coherence: how often the top words of a topic occur together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse

from polyabayes._support import checks
from polyabayes._support.arrays import Floats
from polyabayes.data.corpus import Corpus, as_corpus, of_layer
from polyabayes.data.counts import checked_labels
from polyabayes.exceptions import InvalidArgumentError
from polyabayes.models.fitted_topics import aligned, fitted_model, names, top_words

# Smallest probability of a pair, as in gensim and in the paper's implementation.
_EPSILON = 1e-12
_MEASURES = ("npmi", "uci", "umass", "c_v")


def coherence(
    model: Any,
    documents: Any,
    measure: str = "npmi",
    *,
    n_words: int = 10,
    layer: str | None = None,
) -> Floats:
    """Coherence of every topic by its top words, over a reference corpus.

    Coherence measures how well the words of a topic go together. To compare models, use
    :func:`log_likelihood`.

    Parameters
    ----------
    model : LatentDirichletAllocation, PoissonFactorAnalysis, foreign model or lists of words
        A fitted model, or the words of every topic, most probable first.
    documents : Corpus, sparse matrix, integer array or DataFrame
        Reference documents; words co-occur if they are in the same document.
    measure : {"npmi", "uci", "umass", "c_v"}, default="npmi"
        ``"npmi"``: mean over pairs of ln(p_ij / (p_i p_j)) / -ln p_ij, between -1 and 1.
        ``"uci"``: mean of ln(p_ij / (p_i p_j)), in nats. ``"umass"``: mean over pairs of
        ln(p_ij / p_j), j the more probable word of the topic, in nats. ``"c_v"``: cosine of the
        NPMI vectors of each word and of all words, between -1 and 1.
    n_words : int, default=10
        Number of top words per topic, at least 2; capped by the vocabulary or the given words.
    {layer}

    Returns
    -------
    ndarray of shape (n_components,)
        Coherence of each topic; NaN if a top word never occurs in the reference, or there is only
        one word.

    Raises
    ------
    InvalidArgumentError
        If an argument is bad, or words are given and the documents have none.

    Notes
    -----
    Definitions are those of gensim's ``CoherenceModel`` (``c_npmi``, ``c_uci``, ``u_mass``,
    ``c_v``) with windows as long as the documents.

    References
    ----------
    Röder, Both & Hinneburg (2015). Exploring the space of topic coherence measures. WSDM.
    Mimno et al. (2011). Optimizing semantic coherence in topic models. EMNLP.

    Examples
    --------
    >>> lda = pb.LatentDirichletAllocation.from_parameters(
    ...     doc_topic_prior=0.5, topic_word=[[0.5, 0.5, 0, 0], [0, 0, 0.5, 0.5]]
    ... )
    >>> documents = [[1, 1, 0, 0], [2, 1, 0, 0], [0, 0, 1, 1], [0, 0, 1, 0]]
    >>> pb.topics.coherence(lda, documents, n_words=2).round(3).tolist()
    [1.0, 0.5]
    >>> corpus = pb.Corpus(documents, vocabulary=["urn", "ball", "gene", "cell"])
    >>> pb.topics.coherence([["urn", "ball"], ["cell", "gene"]], corpus).round(3).tolist()
    [1.0, 0.5]
    """
    checks.choice("measure", measure, _MEASURES)
    documents = of_layer(documents, layer)
    checks.whole_number("n_words", n_words, 2)
    if _are_words(model):
        topics = [_checked_topic(number, topic)[:n_words] for number, topic in enumerate(model)]
        corpus = as_corpus(documents, "documents")
        if corpus.vocabulary is None:
            raise InvalidArgumentError(
                "documents have no words to look the topics up by: give a Corpus with a vocabulary"
            )
    else:
        fitted = fitted_model(model)
        topics = top_words(fitted, n_words).words.tolist()
        corpus = Corpus(aligned(fitted, documents).counts, names(fitted).tolist())
    words = sorted({word for topic in topics for word in topic})
    found = _in_documents(corpus, words)
    place = {word: row for row, word in enumerate(words)}
    return _by_topic(found, [[place[word] for word in topic] for topic in topics], measure)


def _in_documents(corpus: Corpus, words: Sequence[str]) -> Floats:
    """Shares of documents that hold both words of a pair, or a word: unknown words are in none."""
    vocabulary: Any = corpus.vocabulary
    column_of = {word: column for column, word in enumerate(vocabulary)}
    known = [row for row, word in enumerate(words) if word in column_of]
    columns = [column_of[words[row]] for row in known]
    held = sparse.csr_matrix(corpus.counts[:, columns], dtype=np.float64)
    held.data[:] = 1.0
    joint = np.zeros((len(words), len(words)))
    joint[np.ix_(known, known)] = sparse.csr_matrix(held.T @ held).toarray()
    return joint / max(corpus.n_documents, 1)


def _are_words(model: Any) -> bool:
    """Whether lists of words are given, not a model."""
    is_list = isinstance(model, (list, tuple)) and len(model) > 0
    return is_list and all(isinstance(topic, (list, tuple)) for topic in model)


def _checked_topic(number: int, topic: Sequence[Any]) -> list[str]:
    words: list[str] = checked_labels(topic, f"topic {number}").tolist()
    if len(words) < 2 or len(set(words)) < len(words):
        raise InvalidArgumentError(f"topic {number} must have two words or more, each once")
    return words


def _by_topic(joint: Floats, places: list[list[int]], measure: str) -> Floats:
    single = np.diag(joint)
    values = np.full(len(places), np.nan)
    for topic, own in enumerate(places):
        if len(own) > 1 and single[own].all():
            pairs = joint[np.ix_(own, own)]
            values[topic] = _MEASURE_OF[measure](pairs, single[own])
    return values


def _pmi(pairs: Floats, single: Floats) -> Floats:
    return np.log((pairs + _EPSILON) / np.outer(single, single))


def _npmi(pairs: Floats, single: Floats) -> Floats:
    below = -np.log(pairs + _EPSILON)
    # A pair that is in every document has the largest coherence.
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = _pmi(pairs, single) / below
    return np.where(np.abs(below) < _EPSILON * 10, 1.0, ratios)


def _mean_off_diagonal(values: Floats) -> float:
    n = len(values)
    return float((values.sum() - np.trace(values)) / (n * (n - 1)))


def _umass(pairs: Floats, single: Floats) -> float:
    below = np.tril_indices(len(pairs), -1)
    return float(np.log((pairs + _EPSILON) / single)[below].mean())


def _c_v(pairs: Floats, single: Floats) -> float:
    vectors = _npmi(pairs, single)
    whole = vectors.sum(axis=0)
    lengths = np.linalg.norm(vectors, axis=1) * np.linalg.norm(whole)
    return float((vectors @ whole / lengths).mean())


_MEASURE_OF = {
    "npmi": lambda pairs, single: _mean_off_diagonal(_npmi(pairs, single)),
    "uci": lambda pairs, single: _mean_off_diagonal(_pmi(pairs, single)),
    "umass": _umass,
    "c_v": _c_v,
}
