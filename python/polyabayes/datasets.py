"""Example corpora: synthetic corpora with known parameters, and a real corpus."""

from __future__ import annotations

import ast
import importlib.util
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.abc import InspectLoader
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from polyabayes._support import checks
from polyabayes._support.arrays import Floats
from polyabayes._support.docs import shared_docs
from polyabayes._support.random import RandomState, random_generator
from polyabayes.data.corpus import Corpus
from polyabayes.exceptions import InvalidArgumentError, MissingDependencyError
from polyabayes.models.simulation import documents_of_topics

__all__ = [
    "SyntheticGammaPoisson",
    "SyntheticLDA",
    "load_python_docs",
    "make_gamma_poisson_corpus",
    "make_lda_corpus",
]

_MIN_DOCSTRING_WORDS = 40
# Bytes while drawing: per token (document, vocabulary, topic, word, two orders, number, count); per
# document and topic (weight, count, indices).
_TOKEN_BYTES, _CELL_BYTES = 64, 40
# Modules whose docstrings are documents.
_MODULES = Path(__file__).with_suffix(".txt").read_text("utf-8").split()


@dataclass(frozen=True, eq=False)
class SyntheticLDA:
    """A corpus drawn from latent Dirichlet allocation, with the true parameters.

    Attributes
    ----------
    corpus : Corpus
        The documents.
    topic_word : ndarray of shape (n_topics, n_words)
        Word probabilities of each topic; rows sum to 1.
    doc_topic_prior : ndarray of shape (n_topics,)
        Dirichlet prior of the topic weights.
    doc_topic : ndarray of shape (n_documents, n_topics)
        Topic weights of each document; rows sum to 1.

    Examples
    --------
    >>> made = pb.datasets.make_lda_corpus(5, 20, 3, random_state=0)
    >>> made.topic_word.shape, made.doc_topic.shape
    ((3, 20), (5, 3))
    """

    corpus: Corpus
    topic_word: Floats
    doc_topic_prior: Floats
    doc_topic: Floats


@dataclass(frozen=True, eq=False)
class SyntheticGammaPoisson:
    """A corpus drawn from a gamma-Poisson model, with the true parameters.

    Attributes
    ----------
    corpus : Corpus
        The documents.
    topic_word : ndarray of shape (n_topics, n_words)
        Word rates of each topic.
    shape : ndarray of shape (n_topics,)
        Gamma shape r of each topic.
    probability : ndarray of shape (n_topics,)
        Probability p of each topic; the gamma scale is p / (1 - p).
    doc_topic : ndarray of shape (n_documents, n_topics)
        Intensity of each topic in each document.

    Examples
    --------
    >>> made = pb.datasets.make_gamma_poisson_corpus(5, 20, 3, random_state=0)
    >>> made.shape.shape, made.doc_topic.shape
    ((3,), (5, 3))
    """

    corpus: Corpus
    topic_word: Floats
    shape: Floats
    probability: Floats
    doc_topic: Floats


@shared_docs
def make_lda_corpus(
    n_documents: int = 1000,
    n_words: int = 500,
    n_topics: int = 10,
    *,
    document_length: int | ArrayLike = 100,
    doc_topic_prior: float | ArrayLike = 0.1,
    topic_word_prior: float = 0.05,
    topic_word: ArrayLike | None = None,
    random_state: RandomState = None,
) -> SyntheticLDA:
    """Draw a corpus from latent Dirichlet allocation.

    Parameters
    ----------
    {sizes of a corpus}
    document_length : int or array of shape (n_documents,), default=100
        Number of tokens of every document, or of each.
    doc_topic_prior : float or array of shape (n_topics,), default=0.1
        Dirichlet prior of the topic weights.
    topic_word_prior : float, default=0.05
        Symmetric Dirichlet prior from which the topics are drawn.
    topic_word : array of shape (n_topics, n_words), optional
        The topics to use; rows sum to 1.
    {seed}

    Returns
    -------
    SyntheticLDA
        The corpus and its truth.

    Raises
    ------
    InvalidArgumentError
        If a size or a prior is not positive, or if an array does not fit.
    BudgetExceededError
        If the corpus would exceed the memory of the machine.

    References
    ----------
    {Blei 2003}

    Examples
    --------
    >>> pb.datasets.make_lda_corpus(100, 50, 4, document_length=30, random_state=0).corpus
    <Corpus: 100 documents, 50 words, 3,000 tokens>
    """
    rng = random_generator(random_state)
    checks.whole_number("n_documents", n_documents)
    topics = _topics(topic_word, n_topics, n_words, topic_word_prior, rng)
    if not np.allclose(topics.sum(axis=1), 1.0, rtol=0.0, atol=1e-8):
        raise InvalidArgumentError("the rows of topic_word must sum to 1; divide each by its sum")
    prior = checks.positive_vector("doc_topic_prior", doc_topic_prior, len(topics))
    lengths = np.asarray(document_length)
    if lengths.dtype.kind not in "iu" or (lengths < 0).any():
        raise InvalidArgumentError(f"document_length must hold integers >= 0, got {lengths!r}")
    if lengths.shape not in ((), (n_documents,)):
        told = f"document_length has shape {lengths.shape}: give an int or one for each of the "
        raise InvalidArgumentError(f"{told}{n_documents:,} documents")
    checks.fits("n_documents", n_documents, _CELL_BYTES * len(prior))
    n_tokens = np.broadcast_to(lengths, n_documents).sum(dtype=np.float64)
    longest = int(lengths.max())
    checks.fits("document_length", longest, _TOKEN_BYTES * n_tokens / max(longest, 1))
    doc_topic = rng.dirichlet(prior, size=n_documents)
    topic_counts = rng.multinomial(np.broadcast_to(lengths, n_documents), doc_topic)
    corpus = Corpus(documents_of_topics(topic_counts, topics, rng)[0])
    return SyntheticLDA(corpus, topics, prior, doc_topic)


@shared_docs
def make_gamma_poisson_corpus(
    n_documents: int = 1000,
    n_words: int = 500,
    n_topics: int = 10,
    *,
    shape: float | ArrayLike = 1.0,
    probability: float | ArrayLike = 0.9,
    topic_word_prior: float = 0.05,
    topic_word: ArrayLike | None = None,
    random_state: RandomState = None,
) -> SyntheticGammaPoisson:
    """Draw a corpus from gamma-Poisson factor analysis.

    Document by document, theta_k ~ Gamma(r_k, scale p_k / (1 - p_k)) and
    y_w ~ Poisson(sum_k theta_k phi_kw).

    Parameters
    ----------
    {sizes of a corpus}
    shape : float or array of shape (n_topics,), default=1.0
        Gamma shape r.
    probability : float or array of shape (n_topics,), default=0.9
        Probability p in (0, 1). The mean length of a document is the sum of r p / (1 - p)
        over the topics, 90 with the defaults.
    topic_word_prior : float, default=0.05
        Symmetric Dirichlet prior from which the topics are drawn.
    topic_word : array of shape (n_topics, n_words), optional
        The word rates phi to use: non-negative, with a positive rate in each row.
    {seed}

    Returns
    -------
    SyntheticGammaPoisson
        The corpus and its truth.

    Raises
    ------
    InvalidArgumentError
        If a size or a parameter is out of its range, or if an array does not fit.
    BudgetExceededError
        If the corpus would exceed the memory of the machine.

    References
    ----------
    {Zhou 2013}

    Examples
    --------
    >>> pb.datasets.make_gamma_poisson_corpus(100, 50, 4, random_state=0).corpus.n_documents
    100
    """
    rng = random_generator(random_state)
    checks.whole_number("n_documents", n_documents)
    topics = _topics(topic_word, n_topics, n_words, topic_word_prior, rng)
    shapes = checks.positive_vector("shape", shape, len(topics))
    probabilities = checks.positive_vector("probability", probability, len(topics))
    if (probabilities >= 1).any():
        raise InvalidArgumentError(f"probability must be in (0, 1), got {probability!r}")
    totals, scales = topics.sum(axis=1), probabilities / (1 - probabilities)
    n_tokens = float((shapes * scales * totals).sum())
    checks.fits("n_documents", n_documents, _CELL_BYTES * len(topics) + _TOKEN_BYTES * n_tokens)
    doc_topic = rng.gamma(shapes, scales, (n_documents, len(topics)))
    topic_counts = rng.poisson(doc_topic * totals)
    corpus = Corpus(documents_of_topics(topic_counts, topics, rng)[0])
    return SyntheticGammaPoisson(corpus, topics, shapes, probabilities, doc_topic)


def load_python_docs() -> Corpus:
    """Load a real corpus that comes with Python: its own documentation.

    The documents are the topics of the interactive help, with ids such as ``topic:if``, and
    docstrings with 40 or more words in a fixed list of modules of the standard library, with dotted
    names as ids. Equal texts count once: docstrings under the first name, topics under the
    shortest.

    Words are lower-case runs of three or more letters, without English stop words, that occur in at
    least 5 documents and in at most half of them.

    Returns
    -------
    Corpus
        The documents; they depend only on the version of Python.

    Raises
    ------
    MissingDependencyError
        If this Python comes without its documentation topics or without its source.

    Examples
    --------
    >>> corpus = pb.datasets.load_python_docs()
    >>> corpus.n_documents > 500, corpus.vocabulary is not None
    (True, True)
    """
    texts: dict[str, str] = {}
    for name, text in (*_help_topics(), *_docstrings()):
        texts.setdefault(text, name)
    kept: dict[str, Any] = {"token_pattern": r"\b[a-z]{3,}\b", "min_df": 5, "max_df": 0.5}
    return Corpus.from_documents([*texts], ids=[*texts.values()], stop_words="english", **kept)


def _topics(
    topic_word: ArrayLike | None,
    n_topics: int,
    n_words: int,
    prior: float,
    rng: np.random.Generator,
) -> Floats:
    if topic_word is None:
        checks.whole_number("n_topics", n_topics)
        checks.whole_number("n_words", n_words)
        checks.fits("n_words", n_words, 8)
        checks.fits("n_topics", n_topics, 8 * n_words)
        prior = checks.positive_number("topic_word_prior", prior)
        return rng.dirichlet(np.full(n_words, prior), size=n_topics)
    topics = checks.matrix("topic_word", topic_word, "(n_topics, n_words)")
    if not np.isfinite(topics).all() or (topics < 0).any() or not topics.any(axis=1).all():
        raise InvalidArgumentError("topic_word must be finite, >= 0, and each topic needs a word")
    return topics


def _help_topics() -> Iterator[tuple[str, str]]:
    try:
        from pydoc_data.topics import topics
    except ImportError as error:
        told = "this Python comes without pydoc_data, the topics of its help; "
        raise MissingDependencyError(f"{told}install the full standard library") from error
    for name in sorted(topics, key=lambda name: (len(name), name)):
        yield f"topic:{name}", topics[name]


def _docstrings() -> Iterator[tuple[str, str]]:
    for module in _MODULES:
        try:
            spec = importlib.util.find_spec(module)
        except ModuleNotFoundError:
            continue
        if spec is None:
            continue
        source = spec.loader.get_source(module) if isinstance(spec.loader, InspectLoader) else None
        if source is None:
            told = f"this Python comes without the source of {module}, so its docstrings cannot "
            raise MissingDependencyError(f"{told}be read; install the full standard library")
        for name, text in _public_docstrings(ast.parse(source), module):
            if len(text.split()) >= _MIN_DOCSTRING_WORDS:
                yield name, text


def _public_docstrings(
    node: ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef, name: str
) -> Iterator[tuple[str, str]]:
    yield name, ast.get_docstring(node) or ""
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    for child in () if isinstance(node, functions) else node.body:
        if isinstance(child, (ast.ClassDef, *functions)) and not child.name.startswith("_"):
            yield from _public_docstrings(child, f"{name}.{child.name}")
