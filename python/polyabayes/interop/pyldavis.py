"""Models and corpora for pyLDAvis."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.spatial.distance import pdist, squareform

from polyabayes._support.arrays import Floats
from polyabayes._support.optional import import_optional
from polyabayes.exceptions import InvalidArgumentError
from polyabayes.models.fitted_topics import expected_tokens, fitted_model, principal_coordinates


def pyldavis_arguments(model: Any, corpus: Any) -> dict[str, Any]:
    """Make the arguments of ``pyLDAvis.prepare`` for a model and a corpus.

    Parameters
    ----------
    model : LatentDirichletAllocation, PoissonFactorAnalysis or foreign model
        Fitted, or made by ``from_parameters``.
    corpus : Corpus, sparse matrix, integer array or DataFrame, shape (n_documents, n_words)
        The documents, usually those of the training.

    Returns
    -------
    dict
        ``topic_term_dists`` of shape (n_components, n_shown); ``doc_topic_dists`` of shape
        (n_documents, n_components), the shares of topics in the expected tokens, with rows that sum
        to 1; ``doc_lengths``, ``vocab`` and ``term_frequency``. Only the n_shown words that occur
        in `corpus` are included, since pyLDAvis divides by their frequency.

    Raises
    ------
    InvalidTypeError, NotFittedError
        If `model` is of another type, or not fitted.
    InvalidArgumentError
        If `corpus` holds no tokens, or none of the words of a topic.

    References
    ----------
    Sievert & Shirley (2014). LDAvis: a method for visualizing and interpreting topics.

    Examples
    --------
    >>> found = pb.interop.pyldavis_arguments(lda, [[9, 1], [2, 8]])
    >>> found["doc_lengths"].tolist(), found["vocab"], found["doc_topic_dists"].shape
    ([10, 10], ['0', '1'], (2, 2))
    """
    model = fitted_model(model)
    documents, _ = model._aligned(corpus, "corpus", "raise")
    if not documents.n_tokens:
        raise InvalidArgumentError("corpus holds no tokens: every document is empty")
    frequency = np.asarray(documents.counts.sum(axis=0)).ravel()
    shown = np.flatnonzero(frequency)
    topics = model.components_[:, shown]
    tokens = expected_tokens(model, documents)
    # A document without tokens gets the shares of all documents together.
    shares = np.where(tokens.sum(axis=1, keepdims=True) > 0, tokens, tokens.sum(axis=0))
    totals = topics.sum(axis=1, keepdims=True)
    if not totals.all():
        raise InvalidArgumentError(
            f"topic {np.flatnonzero(totals == 0)[0]} has no word of corpus: show a larger corpus"
        )
    words = model.vocabulary_ if model.vocabulary_ is not None else documents.vocabulary
    return {
        "topic_term_dists": topics / totals,
        "doc_topic_dists": shares / shares.sum(axis=1, keepdims=True),
        "doc_lengths": documents._lengths(),
        "vocab": [str(column) if words is None else words[column] for column in shown],
        "term_frequency": frequency[shown],
    }


def to_pyldavis(model: Any, corpus: Any, **options: Any) -> Any:
    """Prepare a model for the interactive plot of pyLDAvis (Sievert & Shirley 2014).

    Parameters
    ----------
    model : LatentDirichletAllocation, PoissonFactorAnalysis or foreign model
        Fitted, or made by ``from_parameters``.
    corpus : Corpus, sparse matrix, integer array or DataFrame, shape (n_documents, n_words)
        The documents, usually those of the training.
    **options
        Options of ``pyLDAvis.prepare``, such as ``sort_topics=False``. The default of `mds` is
        ``js_PCoA`` with real coordinates, which also works for a single topic.

    Returns
    -------
    pyLDAvis.PreparedData
        For ``pyLDAvis.save_html`` or ``pyLDAvis.display``.

    Raises
    ------
    MissingDependencyError
        If pyLDAvis is not installed.
    InvalidTypeError, InvalidArgumentError, NotFittedError
        As for :func:`pyldavis_arguments`.

    References
    ----------
    Sievert & Shirley (2014). LDAvis: a method for visualizing and interpreting topics.

    Examples
    --------
    >>> lda = pb.LatentDirichletAllocation.from_parameters(
    ...     doc_topic_prior=0.5,
    ...     topic_word=[[0.7, 0.1, 0.1, 0.1], [0.1, 0.7, 0.1, 0.1], [0.1, 0.1, 0.4, 0.4]],
    ... )
    >>> shown = pb.interop.to_pyldavis(lda, [[7, 1, 0, 1], [1, 8, 1, 0], [0, 1, 4, 5]], n_jobs=1)
    >>> len(shown.topic_order)
    3
    """
    arguments = pyldavis_arguments(model, corpus)
    pyldavis = import_optional("pyLDAvis", "to_pyldavis needs pyLDAvis")
    # pyLDAvis's own default uses a general eigenvalue solver, which gives complex coordinates.
    return pyldavis.prepare(**arguments, **{"mds": _by_jensen_shannon, **options})


def _by_jensen_shannon(topics: Any) -> Floats:
    """Coordinates of topics as in ``js_PCoA`` of pyLDAvis, for any number of topics."""
    roots = squareform(pdist(np.asarray(topics, dtype=np.float64), "jensenshannon"))
    return principal_coordinates(roots**4)
