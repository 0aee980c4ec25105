"""Models of gensim."""

from __future__ import annotations

from typing import Any

import numpy as np

from polyabayes._support.optional import import_optional
from polyabayes.data.conversion.sources import words_by_id
from polyabayes.exceptions import InvalidTypeError, NotFittedError
from polyabayes.interop.shared import attribute, lda_of
from polyabayes.likelihood.foreign import adapter
from polyabayes.models import LatentDirichletAllocation
from polyabayes.models.fitted_topics import normalised

_OTHERS = {
    "EnsembleLda": "convert it by its generate_gensim_representation()",
    "LdaSeqModel": "its topics change with time: take one slice by from_parameters",
    "AuthorTopicModel": "its documents share the weights of their authors, which is another model",
}


@adapter("gensim")
def from_gensim(model: Any, *, random_state: Any = None) -> LatentDirichletAllocation:
    """Convert a trained LDA of gensim.

    The topics are posterior means: lambda (which includes eta) divided by its row sums, in double
    precision. The Dirichlet prior is ``model.alpha``. An HdpModel becomes the LDA of its
    ``hdp_to_lda()``; the state of its ``suggested_lda_model()`` has other topics.

    Parameters
    ----------
    model : gensim LdaModel, LdaMulticore or HdpModel
        Trained on at least one document.
    {seed of transform}

    Returns
    -------
    LatentDirichletAllocation
        Its vocabulary is ``id2word``; ids without a word are called ``#id``. Without a dictionary
        there is no vocabulary. The model also takes documents as lists of (id, count).

    Raises
    ------
    InvalidTypeError
        If `model` is of another type; the message says how to convert it, if possible.
    NotFittedError
        If the model has seen no documents.

    Examples
    --------
    >>> from gensim.corpora import Dictionary
    >>> from gensim.models import LdaModel
    >>> texts = [["urn", "ball", "urn"], ["topic", "word"], ["ball", "urn"], ["word", "topic"]]
    >>> dictionary = Dictionary(texts)
    >>> theirs = LdaModel([dictionary.doc2bow(text) for text in texts], 2, dictionary)
    >>> pb.interop.from_gensim(theirs).vocabulary_.tolist()
    ['ball', 'urn', 'topic', 'word']
    """
    kinds = [base.__name__ for base in type(model).__mro__]
    for kind in kinds:
        if kind in _OTHERS:
            raise InvalidTypeError(f"a {kind} of gensim is not a plain LDA: {_OTHERS[kind]}")
    if "HdpModel" in kinds:
        alpha, weights = attribute(model, "hdp_to_lda", "gensim")()
    elif "LdaModel" in kinds:
        alpha, weights = attribute(model, "alpha", "gensim"), _pseudo_counts(model)
    else:
        raise InvalidTypeError(f"model must be an LdaModel of gensim, got {model!r:.200}")
    topics = normalised(weights, f"the topics of the {type(model).__name__}")
    # gensim makes a FakeDict if there is no dictionary; its words are the ids.
    dictionary = getattr(model, "id2word", None)
    has_words = dictionary is not None and type(dictionary).__name__ != "FakeDict"
    words = words_by_id(dictionary, topics.shape[1]) if has_words else None
    return lda_of(topics, np.asarray(alpha, dtype=np.float64), words, random_state)


def to_gensim(model: LatentDirichletAllocation) -> Any:
    """Convert a fitted LDA to gensim, for example for its coherence or pyLDAvis.

    Parameters
    ----------
    model : LatentDirichletAllocation
        Fitted or made by ``from_parameters``.

    Returns
    -------
    gensim.models.LdaModel
        The model in single precision, as usual in gensim. ``id2word`` are the words, or the column
        numbers. Training tokens of topics, if known, become sufficient statistics.

    Raises
    ------
    InvalidTypeError
        If `model` is not a LatentDirichletAllocation of polyabayes.
    MissingDependencyError
        If gensim is not installed.

    Examples
    --------
    >>> ours = pb.LatentDirichletAllocation.from_parameters(
    ...     doc_topic_prior=[0.5, 0.1], topic_word=[[0.5, 0.5, 0.0], [0.0, 0.5, 0.5]]
    ... )
    >>> pb.interop.to_gensim(ours).get_topics().round(3).tolist()
    [[0.5, 0.5, 0.0], [0.0, 0.5, 0.5]]
    """
    if not isinstance(model, LatentDirichletAllocation):
        raise InvalidTypeError(
            f"model must be a LatentDirichletAllocation of polyabayes, got {type(model).__name__}"
        )
    model._check_fitted()
    gensim = import_optional("gensim.models", "to_gensim needs gensim")
    n_topics, n_words = model.components_.shape
    words = range(n_words) if model.vocabulary_ is None else model.vocabulary_.tolist()
    eta = float(getattr(model, "topic_word_prior_", 0.0)) or 1e-6
    theirs = gensim.LdaModel(
        num_topics=n_topics,
        id2word={column: str(word) for column, word in enumerate(words)},
        alpha=np.asarray(model.doc_topic_prior_, dtype=np.float32),
        eta=eta,
        random_state=model.seed_ % 2**32,
    )
    tokens = getattr(model, "topic_counts_", None)
    totals = np.full(n_topics, 1e6) if tokens is None else np.asarray(tokens, dtype=np.float64)
    # lambda = eta + statistics is proportional to the topics up to single precision.
    scale = np.maximum(totals + n_words * eta, 1.0)
    theirs.state.sstats[...] = np.maximum(model.components_ * scale[:, None] - eta, 0.0)
    theirs.state.numdocs = 1
    theirs.sync_state()
    return theirs


def _pseudo_counts(model: Any) -> Any:
    """Lambda of a trained LdaModel, (n_components, n_words)."""
    state = attribute(model, "state", "gensim")
    if not getattr(state, "numdocs", 0):
        raise NotFittedError(
            "this LdaModel of gensim has seen no documents: call its update; if it came from an "
            "HdpModel, give the HdpModel, whose topics are not in its state"
        )
    return state.get_lambda()
