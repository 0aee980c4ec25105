"""Models of scikit-learn, alone or at the end of a Pipeline."""

from __future__ import annotations

from copy import copy
from functools import partial
from numbers import Real
from typing import Any, TypeVar

import numpy as np

from polyabayes._support.arrays import Floats
from polyabayes._support.warnings import warn
from polyabayes.data.conversion.documents import ids_of
from polyabayes.data.conversion.frames import FrameTable, frame_of
from polyabayes.data.conversion.roles import NamedColumns, roles_of
from polyabayes.data.conversion.texts import checked_texts, without_missing
from polyabayes.data.corpus import Corpus, as_corpus
from polyabayes.data.counts import Words, words_of
from polyabayes.exceptions import (
    InvalidArgumentError,
    InvalidTypeError,
    NotFittedError,
    PriorWarning,
)
from polyabayes.interop.shared import attribute, lda_of, training_counts
from polyabayes.likelihood.foreign import adapter
from polyabayes.models import LatentDirichletAllocation, PoissonFactorAnalysis
from polyabayes.models.fitted_topics import normalised

_WEIGHTED = ("TfidfTransformer", "TfidfVectorizer", "HashingVectorizer")
Fitted = TypeVar("Fitted", LatentDirichletAllocation, PoissonFactorAnalysis)

_FACTORISATIONS = ("NMF", "MiniBatchNMF")


@adapter("sklearn")
def from_sklearn(
    model: Any,
    vocabulary: Any = None,
    *,
    documents: Any = None,
    shape: Any = None,
    probability: Any = None,
    random_state: Any = None,
) -> LatentDirichletAllocation | PoissonFactorAnalysis:
    """Convert a fitted topic model of scikit-learn.

    LDA: the topics are posterior means, ``components_`` (pseudo-counts that include the prior)
    divided by row sums; the Dirichlet prior is ``doc_topic_prior_``. NMF with the Kullback-Leibler
    loss: ``components_`` are the rates of a gamma-Poisson model. NMF has no prior of the weights:
    give `shape` and `probability`, or `documents` to fit them.

    Parameters
    ----------
    model : sklearn LatentDirichletAllocation, NMF, MiniBatchNMF or Pipeline
        A fitted model, or a pipeline that ends in one. The vectoriser of a pipeline gives the
        vocabulary, and the converted model takes raw documents as the pipeline does.
    vocabulary : sequence of str of length n_words, or fitted vectoriser, optional
        The words of the columns; default: ``feature_names_in_``, if the model has it.
    documents : Corpus, sparse matrix or array of shape (n_documents, n_words), optional
        NMF only: its training documents. A gamma distribution is fitted to their weights by
        moments.
    shape, probability : float or array of shape (n_components,), optional
        NMF only: the gamma distribution of the weights, as in
        :meth:`PoissonFactorAnalysis.from_parameters`.
    {seed of transform}

    Returns
    -------
    LatentDirichletAllocation or PoissonFactorAnalysis

    Raises
    ------
    InvalidTypeError
        If `model` is of another type.
    InvalidArgumentError
        If the pipeline weights its counts (tf-idf), NMF has another loss or no prior, or the
        vocabulary does not fit.
    NotFittedError
        If the model has no topics yet.

    Examples
    --------
    >>> from sklearn.decomposition import LatentDirichletAllocation
    >>> counts = [[2, 1, 0, 0], [3, 1, 0, 0], [0, 0, 2, 2], [0, 0, 1, 3]]
    >>> theirs = LatentDirichletAllocation(2, random_state=0).fit(counts)
    >>> ours = pb.interop.from_sklearn(theirs)
    >>> ours.components_.shape, ours.doc_topic_prior_.tolist()
    ((2, 4), [0.5, 0.5])
    """
    kind = type(model).__name__
    if kind == "Pipeline" and hasattr(model, "steps"):
        return _from_pipeline(
            model,
            vocabulary,
            documents=documents,
            shape=shape,
            probability=probability,
            random_state=random_state,
        )
    if kind not in (*_FACTORISATIONS, "LatentDirichletAllocation"):
        told = "model must be a LatentDirichletAllocation, an NMF or a Pipeline of scikit-learn"
        found = "; give its model.best_estimator_" * hasattr(model, "best_estimator_")
        raise InvalidTypeError(f"{told}, got {kind}{found}")
    if not hasattr(model, "components_"):
        raise NotFittedError(f"this {kind} of scikit-learn is not fitted yet: call its fit")
    if vocabulary is None:
        vocabulary = getattr(model, "feature_names_in_", None)
    words = words_of(vocabulary, np.shape(model.components_)[1], f"the {kind}")
    if kind in _FACTORISATIONS:
        return _from_nmf(model, words, documents, shape, probability, random_state)
    if documents is not None or shape is not None or probability is not None:
        raise InvalidArgumentError(
            "documents, shape and probability are only for NMF: LDA has its own prior"
        )
    alpha = attribute(model, "doc_topic_prior_", "scikit-learn")
    return lda_of(normalised(model.components_, "components_"), alpha, words, random_state)


def to_sklearn(model: LatentDirichletAllocation) -> Any:
    """Convert a fitted LDA to scikit-learn, for tools that need its class.

    Parameters
    ----------
    model : LatentDirichletAllocation
        Fitted or made by ``from_parameters``, with the same `doc_topic_prior_` for all topics, as
        scikit-learn requires.

    Returns
    -------
    sklearn.decomposition.LatentDirichletAllocation
        ``components_`` are pseudo-counts: topics times (training tokens + prior) if known, else
        times 10^6. ``transform`` gives scikit-learn's variational weights.

    Raises
    ------
    InvalidArgumentError
        If the prior differs between topics.
    InvalidTypeError
        If `model` is not a LatentDirichletAllocation of polyabayes.

    Examples
    --------
    >>> ours = pb.LatentDirichletAllocation.from_parameters(
    ...     doc_topic_prior=0.5, topic_word=[[0.5, 0.5, 0.0], [0.0, 0.5, 0.5]]
    ... )
    >>> pb.interop.to_sklearn(ours).transform([[9, 1, 0]]).round(2).tolist()
    [[0.95, 0.05]]
    """
    from sklearn.decomposition import LatentDirichletAllocation as Theirs
    from sklearn.decomposition._online_lda_fast import _dirichlet_expectation_2d

    if not isinstance(model, LatentDirichletAllocation):
        raise InvalidTypeError(
            f"model must be a LatentDirichletAllocation of polyabayes, got {type(model).__name__}"
        )
    model._check_fitted()
    alpha = model.doc_topic_prior_
    if not np.all(alpha == alpha[0]):
        raise InvalidArgumentError(
            "scikit-learn's LDA has one prior for all topics, this model has different ones: train "
            "with a symmetric doc_topic_prior, or score it here"
        )
    theirs = Theirs(len(alpha), doc_topic_prior=float(alpha[0]))
    theirs.components_ = model.components_ * _pseudo_counts(model)[:, None]
    # The expected logarithm under a Dirichlet distribution needs positive parameters.
    theirs.components_ = np.maximum(theirs.components_, np.finfo(np.float64).tiny)
    theirs.exp_dirichlet_component_ = np.exp(_dirichlet_expectation_2d(theirs.components_))
    theirs.doc_topic_prior_ = float(alpha[0])
    theirs.topic_word_prior_ = float(getattr(model, "topic_word_prior_", 1 / len(alpha)))
    theirs.n_features_in_ = model.n_features_in_
    if model.vocabulary_ is not None:
        theirs.feature_names_in_ = model.vocabulary_
    theirs.n_batch_iter_, theirs.n_iter_, theirs.bound_ = 1, model.n_iter_, np.nan
    theirs.random_state_ = np.random.RandomState(model.seed_ % 2**32)
    return theirs


def _pseudo_counts(model: LatentDirichletAllocation) -> Floats:
    """Tokens of each topic plus its prior, or a million if unknown."""
    if not hasattr(model, "topic_counts_"):
        return np.full(len(model.components_), 1e6)
    prior = model.n_features_in_ * getattr(model, "topic_word_prior_", 0.0)
    return np.maximum(np.asarray(model.topic_counts_, dtype=np.float64) + prior, 1e-3)


def _from_pipeline(
    pipeline: Any, vocabulary: Any, **prior: Any
) -> LatentDirichletAllocation | PoissonFactorAnalysis:
    """The model at the end, over the words of the steps before it."""
    steps = [step for _, step in pipeline.steps if step not in (None, "passthrough")]
    weighted = [type(step).__name__ for step in steps if type(step).__name__ in _WEIGHTED]
    if weighted:
        raise InvalidArgumentError(
            f"the pipeline weights its counts by {weighted[0]}: likelihoods need counts, so "
            "train it with a CountVectorizer"
        )
    if len(steps) == 1:
        return from_sklearn(steps[-1], vocabulary, **prior)
    before = pipeline[:-1]
    if isinstance(steps[-1], (LatentDirichletAllocation, PoissonFactorAnalysis)):
        return _named(steps[-1], before)
    if vocabulary is None:
        vocabulary = before
    if prior["documents"] is not None:
        prior["documents"] = _counted(before, prior["documents"], "documents")
    model = from_sklearn(steps[-1], vocabulary, **prior)
    model._vectorise = partial(_counted, before)
    return model


def _named(model: Fitted, before: Any) -> Fitted:
    """A model of this package at the end of a pipeline, with the words of the steps before it."""
    model._check_fitted()
    named = copy(model)
    if model.vocabulary_ is None:
        named.vocabulary_ = words_of(before, model.n_features_in_, "the model")
    named._vectorise = partial(_counted, before)
    return named


def _counted(before: Any, documents: Any, name: str) -> Corpus:
    """Documents through the steps before the model, unless they are counts already."""
    found = None if isinstance(documents, Corpus) else _texts_of(documents)
    if found is None and not _are_raw(documents):
        return as_corpus(documents, name)
    raw, ids = (documents, None) if found is None else found
    if isinstance(raw, (list, tuple)) and any(isinstance(text, str) for text in raw):
        raw = checked_texts(raw)
    try:
        counted = before.transform(raw)
    except (AttributeError, TypeError) as error:
        raise InvalidTypeError(
            f"the vectoriser of the pipeline cannot read {name} ({error}): give texts if it was "
            "trained on texts, lists of tokens if it was trained on these"
        ) from error
    counts = as_corpus(counted, name)
    return Corpus(counts.counts, [str(word) for word in before.get_feature_names_out()], ids)


def _are_raw(documents: Any) -> bool:
    """Whether documents are what a vectoriser reads: texts, files or tokens, not counts."""
    if hasattr(documents, "dtype"):
        return getattr(documents.dtype, "kind", "O") not in "biuf"
    if isinstance(documents, Corpus) or hasattr(documents, "shape") or hasattr(documents, "X"):
        return False
    first = next(iter(documents), None) if isinstance(documents, (list, tuple)) else None
    is_row = isinstance(first, (list, tuple, np.ndarray))
    return not (is_row and all(isinstance(x, (Real, np.bool_)) for x in first))  # type: ignore[union-attr]


def _from_nmf(
    model: Any, words: Words | None, documents: Any, shape: Any, probability: Any, random_state: Any
) -> PoissonFactorAnalysis:
    """Rates from the components; the gamma distribution of the weights is given or fitted."""
    if model.beta_loss not in ("kullback-leibler", 1, 1.0):
        raise InvalidArgumentError(
            f"this NMF was trained with beta_loss={model.beta_loss!r}, which is not a Poisson "
            "likelihood: train it with beta_loss='kullback-leibler', solver='mu'"
        )
    if (shape is None) != (probability is None):
        raise InvalidArgumentError(
            "give both shape and probability of the gamma distribution, or neither"
        )
    if shape is None:
        if documents is None:
            told = "NMF has no distribution of the topic weights: one is fitted to its training "
            told += "documents X by polyabayes.interop.from_sklearn(model, documents=X), or give "
            raise InvalidArgumentError(f"{told}its shape and probability")
        weights = np.asarray(model.transform(training_counts(documents, words)), dtype=np.float64)
        shape, probability = _gamma_moments(weights)
        warn(
            "NMF has no distribution of the topic weights: likelihoods use a gamma distribution "
            "fitted to the weights of the documents by moments",
            PriorWarning,
        )
    return PoissonFactorAnalysis.from_parameters(
        topic_word=np.asarray(model.components_, dtype=np.float64),
        shape=shape,
        probability=probability,
        vocabulary=words,
        random_state=random_state,
    )


def _gamma_moments(weights: Floats) -> tuple[Floats, Floats]:
    """Shape and probability of gamma distributions with the moments of the columns."""
    mean, variance = weights.mean(axis=0), weights.var(axis=0)
    if not (mean > 0).all() or not (variance > 0).all():
        topic = int(np.argmin((mean > 0) & (variance > 0)))
        raise InvalidArgumentError(
            f"the weights of topic {topic} are equal in all documents, so no gamma distribution "
            "can be fitted to them: give shape and probability"
        )
    scale = variance / mean
    return mean / scale, scale / (1 + scale)


def _texts_of(table: Any) -> tuple[list[str], list[str] | None] | None:
    """Texts of a table and the names of its documents, uncounted; None for anything else."""
    frame = frame_of(table)
    if frame is None:
        return None
    found = FrameTable(frame)
    roles = roles_of(found, NamedColumns())
    if roles.layout != "texts":
        return None
    return without_missing(found, roles.columns[0], None), ids_of(found, roles)
