"""Diagnostics of single topics, with names and definitions of MALLET where it has them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from polyabayes._support import checks
from polyabayes._support.arrays import Floats, Indices
from polyabayes._support.results import Result
from polyabayes.data.corpus import Corpus
from polyabayes.data.counts import checked_labels
from polyabayes.exceptions import InvalidArgumentError
from polyabayes.models.fitted_topics import (
    TopicModel,
    aligned,
    expected_tokens,
    fitted_model,
    named_by,
    names,
    names_of,
    probabilities,
    top_words,
    topic_tokens,
)
from polyabayes.topics.coherence import coherence
from polyabayes.topics.words import passages

# Share of a document's tokens above which a topic is its main topic, as in MALLET.
_MAIN_SHARE, _SOME_SHARE = 0.5, 0.02


@dataclass(frozen=True, repr=False, eq=False)
class TopicDiagnostics(Result):
    """Diagnostics of every topic, each an array of shape (n_components,).

    Attributes
    ----------
    tokens : ndarray
        Posterior mean number of tokens of the topic in the documents; for the training documents,
        tokens in the last state of the training, as in ``topic_table``.
    document_entropy : ndarray
        Entropy of the topic's tokens over documents, in nats; low if few documents have the topic.
    word_length : ndarray
        Mean number of letters of the top words; NaN without a vocabulary.
    coherence : ndarray
        UMass coherence of the top words over the documents: mean over pairs, in nats.
    uniform_dist : ndarray
        Kullback-Leibler divergence of the topic from the uniform distribution of words, in nats.
    corpus_dist : ndarray
        Kullback-Leibler divergence of the topic from the word frequencies of the documents, in
        nats, over the words that occur in them.
    eff_num_words : ndarray
        Effective number of words, 1 / sum p².
    rank_1_docs : ndarray
        Share of the documents with the topic in which it is the largest topic.
    allocation_ratio : ndarray
        Number of documents with more than half of their tokens in the topic, divided by the number
        with more than 2 %.
    exclusivity : ndarray
        Mean over the top words w of φ_kw / Σ_j φ_jw.
    words : ndarray of object, shape (n_components, n_words)
        The top words.
    topics : list of str or None
        Names of the topics, if they have some.

    Examples
    --------
    >>> found = pb.topics.diagnostics(lda, [[9, 0], [0, 9]], n_words=2)
    >>> found.words.shape, found.rank_1_docs.tolist()
    ((2, 2), [1.0, 1.0])
    """

    tokens: Floats
    document_entropy: Floats
    word_length: Floats
    coherence: Floats
    uniform_dist: Floats
    corpus_dist: Floats
    eff_num_words: Floats
    rank_1_docs: Floats
    allocation_ratio: Floats
    exclusivity: Floats
    words: NDArray[np.object_]
    topics: list[str] | None = None

    def _columns(self) -> dict[str, Any]:
        figures = {name: x for name, x in vars(self).items() if name != "topics"}
        words = [" ".join(map(str, row)) for row in self.words]
        topics = np.arange(len(words)) if self.topics is None else self.topics
        return {"topic": topics, **figures, "words": words}

    def __repr__(self) -> str:
        return f"<TopicDiagnostics: {len(self.tokens)} topics>"


@dataclass(frozen=True, repr=False, eq=False)
class TopDocuments(Result):
    """Documents with the largest share of each topic.

    Attributes
    ----------
    rows : ndarray of int, shape (n_components, n_documents)
        The documents of every topic, largest share first.
    shares : ndarray of shape (n_components, n_documents)
        Posterior mean share of the topic in the document; 0 for an empty document.
    ids : ndarray of object, shape (n_components, n_documents), or None
        Names of these documents; None if the corpus has none.
    passages : ndarray of object, shape (n_components, n_documents), or None
        The sentence of each document that carries the topic most, if `texts` were given.
    topics : list of str or None
        Names of the topics, if they have some.

    Examples
    --------
    >>> found = pb.topics.top_documents(lda, [[9, 0], [0, 9], [5, 5]], n_documents=2)
    >>> found.shares.shape, found.ids
    ((2, 2), None)
    """

    rows: Indices
    shares: Floats
    ids: NDArray[np.object_] | None
    passages: NDArray[np.object_] | None = None
    topics: list[str] | None = None

    def _columns(self) -> dict[str, Any]:
        topics = np.arange(len(self.rows)) if self.topics is None else self.topics
        columns: dict[str, Any] = {
            "topic": np.repeat(topics, self.rows.shape[1]),
            "document": self.rows.ravel(),
            "share": self.shares.ravel(),
        }
        if self.ids is not None:
            columns["id"] = self.ids.ravel()
        if self.passages is not None:
            columns["passage"] = self.passages.ravel()
        return columns

    def __repr__(self) -> str:
        return f"<TopDocuments: {self.rows.shape[1]} of each of {len(self.rows)} topics>"


def diagnostics(
    model: Any, documents: Any, n_words: int = 10, *, layer: str | None = None
) -> TopicDiagnostics:
    """Figures of every topic over a corpus.

    Parameters
    ----------
    {topics model}
    documents : Corpus, sparse matrix, integer array or DataFrame, shape (n_documents, n_words)
        The documents, usually those of the training; unknown words are dropped.
    n_words : int, default=10
        Top words of a topic, for coherence, exclusivity and the mean length of words; at most the
        size of the vocabulary.
    {layer}

    Returns
    -------
    TopicDiagnostics

    Raises
    ------
    InvalidArgumentError
        If the documents hold no tokens.

    References
    ----------
    MALLET's topic model diagnostics, https://mallet.cs.umass.edu/diagnostics.php; here from
    expected counts in place of one draw, entropies and divergences in nats.

    Examples
    --------
    >>> lda = pb.LatentDirichletAllocation.from_parameters(
    ...     doc_topic_prior=0.1, topic_word=[[0.5, 0.5, 0, 0], [0, 0, 0.5, 0.5]], random_state=0
    ... )
    >>> found = pb.topics.diagnostics(lda, [[9, 9, 0, 0], [0, 0, 9, 9]], n_words=2)
    >>> found.eff_num_words.tolist(), found.exclusivity.tolist()
    ([2.0, 2.0], [1.0, 1.0])
    """
    fitted = fitted_model(model)
    corpus = aligned(fitted, documents, layer=layer)
    fitted = named_by(fitted, corpus)
    lengths = corpus._lengths().astype(np.float64)
    if not lengths.any():
        raise InvalidArgumentError("documents hold no tokens of the model's words")
    topics, top = probabilities(fitted), top_words(fitted, n_words)
    tokens = expected_tokens(fitted, corpus)
    of_document = tokens / np.maximum(lengths, 1)[:, None]
    totals = tokens.sum(axis=0)
    over_documents = tokens / np.maximum(totals, np.finfo(float).tiny)
    frequency = np.asarray(corpus.counts.sum(axis=0)).ravel() / lengths.sum()
    seen = topics[:, frequency > 0]
    seen = seen / np.maximum(seen.sum(axis=1, keepdims=True), np.finfo(float).tiny)
    corpus_dist = (xlogy(seen, seen) - xlogy(seen, frequency[frequency > 0])).sum(axis=1)
    holding = (of_document > _SOME_SHARE) & (lengths > 0)[:, None]
    n_holding = np.maximum(holding.sum(axis=0), 1)
    is_largest = of_document == of_document.max(axis=1, keepdims=True)
    exclusive = topics / np.maximum(topics.sum(axis=0), np.finfo(float).tiny)
    return TopicDiagnostics(
        tokens=topic_tokens(fitted, corpus, tokens),
        document_entropy=-xlogy(over_documents, over_documents).sum(axis=0),
        word_length=_word_length(fitted, top.columns),
        coherence=coherence(fitted, corpus, "umass", n_words=max(n_words, 2)),
        uniform_dist=xlogy(topics, topics).sum(axis=1) + np.log(topics.shape[1]),
        corpus_dist=corpus_dist,
        eff_num_words=1 / (topics**2).sum(axis=1),
        rank_1_docs=(is_largest & holding).sum(axis=0) / n_holding,
        allocation_ratio=((of_document > _MAIN_SHARE) & holding).sum(axis=0) / n_holding,
        exclusivity=np.take_along_axis(exclusive, top.columns, axis=1).mean(axis=1),
        words=top.words,
        topics=names_of(fitted),
    )


def _word_length(model: TopicModel, columns: Indices) -> Floats:
    if model.vocabulary_ is None:
        return np.full(len(columns), np.nan)
    lengths = np.array([len(word) for word in names(model)], dtype=np.float64)
    return lengths[columns].mean(axis=1)


def diversity(model: Any, n_words: int = 25) -> float:
    """Share of distinct words among the top words of all topics.

    Parameters
    ----------
    {topics model}
    n_words : int, default=25
        Number of top words per topic; capped by the vocabulary.

    Returns
    -------
    float
        The share; 1 if no word is in two topics.

    Raises
    ------
    InvalidArgumentError, InvalidTypeError, NotFittedError
        If `n_words` is not a positive integer, or `model` is not a fitted topic model.

    References
    ----------
    Dieng, Ruiz & Blei (2020). Topic modeling in embedding spaces. TACL.

    Examples
    --------
    >>> lda = pb.LatentDirichletAllocation.from_parameters(
    ...     doc_topic_prior=0.1, topic_word=[[0.5, 0.4, 0.1], [0.5, 0.1, 0.4]]
    ... )
    >>> pb.topics.diversity(lda, n_words=2)
    0.75
    """
    fitted = fitted_model(model)
    top = top_words(fitted, n_words)
    return float(len(np.unique(top.columns)) / top.columns.size)


def top_documents(
    model: Any,
    documents: Any,
    n_documents: int = 5,
    *,
    texts: str | Sequence[str] | None = None,
    layer: str | None = None,
) -> TopDocuments:
    """Documents with the largest share of every topic, and passages to quote.

    Parameters
    ----------
    {topics model}
    documents : Corpus, sparse matrix, integer array or DataFrame, shape (n_documents, n_words)
        The documents; unknown words are dropped.
    n_documents : int, default=5
        Documents of a topic; at most all.
    texts : str, or sequence of length n_documents, optional
        Texts of the documents, as a column of the metadata or a sequence. The sentence of each that
        carries the topic most is given with it.
    {layer}

    Returns
    -------
    TopDocuments
        Rows, shares and names of these documents.

    Raises
    ------
    InvalidArgumentError, InvalidTypeError, NotFittedError
        If `n_documents` is not a positive integer, or `model` is not a fitted topic model.

    Examples
    --------
    >>> pb.topics.top_documents(lda, [[9, 0], [0, 9], [5, 5]], n_documents=1).rows.tolist()
    [[0], [1]]
    """
    fitted = fitted_model(model)
    corpus = aligned(fitted, documents, layer=layer)
    wanted = checks.whole_number("n_documents", n_documents)
    lengths = corpus._lengths()[:, np.newaxis]
    found = expected_tokens(fitted, corpus) / np.maximum(lengths, 1)
    rows = np.argsort(-found, axis=0, kind="stable")[:wanted].T
    ids = None if corpus.ids is None else corpus.ids[rows]
    shares, quotes = np.take_along_axis(found.T, rows, axis=1), None
    if (written := texts_of(corpus, texts)) is not None:
        quotes = passages(named_by(fitted, corpus), rows, written, found)
    return TopDocuments(rows, shares, ids, quotes, names_of(fitted))


def texts_of(corpus: Corpus, texts: Any) -> list[str] | None:
    """A text for each document, from a column of the metadata or a sequence; None if not given."""
    written = None if texts is None else corpus._rows("texts", texts)
    return one_each("texts", written, corpus.n_documents, "documents")


def one_each(name: str, values: Any, size: int, things: str) -> list[str] | None:
    """Check texts, one for each topic or document; None if not given."""
    if values is None:
        return None
    found: list[str] = checked_labels(values, name).tolist()
    if len(found) != size:
        raise InvalidArgumentError(f"{name} has {len(found):,} entries for {size:,} {things}")
    return found
