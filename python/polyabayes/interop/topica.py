"""Models of topica."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from polyabayes._support.arrays import Floats
from polyabayes.exceptions import InvalidArgumentError, InvalidTypeError, NotFittedError
from polyabayes.interop.shared import (
    attribute,
    covariate_rows,
    lda_of_priors,
    places_of,
    training_counts,
)
from polyabayes.likelihood.foreign import adapter
from polyabayes.models import DocumentModel, LatentDirichletAllocation
from polyabayes.models.fitted_topics import normalised

_DIRICHLET = ("LDA", "OnlineLDA", "SeededLDA", "SupervisedLDA", "KeyATM", "DMR", "LabeledLDA")
_LOGISTIC_NORMAL = ("CTM", "STM")
_NO_PRIOR = "it does not expose the prior of its topic weights"
_OTHERS = {
    "ETM": _NO_PRIOR,
    "ProdLDA": "it exposes neither its prior nor the loadings of its product of experts",
    "HDP": "it does not expose the weights of its topics",
    **dict.fromkeys(
        ("BERTopic", "Top2Vec", "FASTopic", "LSA", "SemanticSignalSeparation", "TopicGPT"),
        "it has no likelihood of counts",
    ),
}


@adapter("topica")
def from_topica(
    model: Any,
    *,
    covariates: Any = None,
    labels: Sequence[str] | None = None,
    group: str | None = None,
    documents: Any = None,
    random_state: Any = None,
) -> LatentDirichletAllocation | DocumentModel:
    """Convert a fitted topic model of topica.

    Topics are ``topic_word`` (for a KeyATM, over keywords and other words together); a Dirichlet
    prior is ``alpha``. CTM, STM and GSDMM become a DocumentModel: the prior of a CTM is N(mean of
    ``eta_mean``, ``topic_covariance``), that of an STM is N(x ``prevalence_effects``,
    ``topic_covariance``), and a GSDMM is a mixture of Dirichlet-multinomial distributions.

    Parameters
    ----------
    model : topica LDA, OnlineLDA, SeededLDA, SupervisedLDA, KeyATM, DMR, LabeledLDA, CTM, STM or \
GSDMM
        A fitted model. For a SupervisedLDA, only words are scored. For an STM with prevalence,
        ``covariates=`` of ``log_likelihood`` are rows of its design matrix, with the intercept.
    covariates : array of shape (n_features,) or (n_documents, n_features), optional
        DMR, and KeyATM with covariates: covariates of the documents to score, without the
        intercept. The prior is alpha = exp(λ (1, x)), plus ``alpha_epsilon`` for a DMR. A row for
        each document gives a DocumentModel with a prior for each. topica does not keep an
        ``offset`` or ``prior_offset`` of its fit: give such priors to
        :meth:`DocumentModel.dirichlet <polyabayes.DocumentModel.dirichlet>`.
    labels : sequence of str, optional
        LabeledLDA: labels of the documents to score. The converted model has only their topics.
        Default: all topics.
    group : str, optional
        STM with content: group of the documents to score.
    documents : Corpus, sparse matrix or array of shape (n_documents, n_words), optional
        GSDMM: its training documents, over its ``vocabulary``, since it does not keep their counts.
    {seed of transform}

    Returns
    -------
    LatentDirichletAllocation or DocumentModel

    Raises
    ------
    InvalidTypeError
        If `model` is of another type; the message says why it cannot be converted.
    InvalidArgumentError
        If covariates or labels are missing, do not fit, or are given for another type of model.
    NotFittedError
        If the model is not fitted.

    References
    ----------
    D. Mimno and A. McCallum (2008). Topic models conditioned on arbitrary features with
    Dirichlet-multinomial regression. UAI.
    S. Eshima, K. Imai and T. Sasaki (2024). Keyword-assisted topic models. AJPS 68.

    Examples
    --------
    >>> import topica
    >>> theirs = topica.LDA(2, seed=1)
    >>> _ = theirs.fit([["urn", "ball", "urn"], ["topic", "word"]], iters=20)
    >>> sorted(pb.interop.from_topica(theirs).vocabulary_)
    ['ball', 'topic', 'urn', 'word']
    """
    kind = type(model).__name__
    if kind not in (*_DIRICHLET, *_LOGISTIC_NORMAL, "GSDMM"):
        reason = _OTHERS.get(kind, f"only {', '.join((*_DIRICHLET, *_LOGISTIC_NORMAL))} are")
        raise InvalidTypeError(f"a {kind} of topica cannot be converted: {reason}")
    if labels is not None and kind != "LabeledLDA":
        raise InvalidArgumentError(f"labels are for a LabeledLDA, not for a {kind}")
    if (group is not None and kind != "STM") or (documents is not None and kind != "GSDMM"):
        raise InvalidArgumentError(
            f"group is for an STM and documents are for a GSDMM, not for a {kind}"
        )
    vocabulary = [str(word) for word in _fitted(model, "vocabulary")]
    if kind == "GSDMM":
        return _mixture(model, documents, vocabulary, random_state)
    if kind in _LOGISTIC_NORMAL:
        return _logistic_normal(model, group, vocabulary, random_state)
    topics = normalised(_fitted(model, "topic_word"), f"topic_word of the {kind}")
    kept = list(range(len(topics)))
    if labels is not None:
        kept = places_of(labels, [str(label) for label in _fitted(model, "labels")])
    alpha = _alpha(model, kind, covariates)[..., kept]
    return lda_of_priors(topics[kept], alpha, vocabulary, random_state)


def _fitted(model: Any, name: str) -> Any:
    """An attribute that topica has only after ``fit``."""
    try:
        return attribute(model, name, "topica")
    except RuntimeError as error:
        raise NotFittedError(f"this {type(model).__name__} of topica is not fitted yet") from error


def _logistic_normal(
    model: Any, group: str | None, vocabulary: list[str], random_state: Any
) -> DocumentModel:
    topics, prior = _fitted(model, "topic_word"), dict[str, Any]()
    if type(model).__name__ == "CTM":
        prior["mean"] = np.asarray(_fitted(model, "eta_mean"), dtype=np.float64).mean(axis=0)
    else:
        groups = [str(known) for known in model.groups or ()] if _has(model, "groups") else []
        if groups and group not in groups:
            raise InvalidArgumentError(
                f"group must be one of {', '.join(groups[:8])}: topics have words of their own in "
                f"each; got {group!r:.100}"
            )
        if groups:
            topics = np.asarray(model.topic_word_by_group)[:, groups.index(str(group))]
        elif group is not None:
            raise InvalidArgumentError("this STM was fitted without content: it has no groups")
        prior["coefficients"] = np.asarray(model.prevalence_effects, dtype=np.float64).T
        prior["covariate_names"] = [str(name) for name in model.feature_names]
    return DocumentModel.logistic_normal(
        normalised(topics, "topic_word"),
        covariance=np.asarray(_fitted(model, "topic_covariance"), dtype=np.float64),
        vocabulary=vocabulary,
        random_state=random_state,
        **prior,
    )


def _mixture(model: Any, documents: Any, vocabulary: list[str], random_state: Any) -> DocumentModel:
    """Convert a GSDMM: counts of words and of documents in its clusters are added to the priors."""
    clusters = np.asarray(_fitted(model, "doc_cluster"), dtype=np.int64)
    if documents is None:
        raise InvalidArgumentError(
            "documents must be given: a GSDMM does not keep the counts of its training documents"
        )
    found = training_counts(documents, np.array(vocabulary, dtype=object))
    if found.shape != (len(clusters), len(vocabulary)):
        raise InvalidArgumentError(
            f"documents have shape {found.shape}, the model was fitted to "
            f"{(len(clusters), len(vocabulary))}"
        )
    settings = model.settings
    counts = np.full((settings["num_topics"], len(vocabulary)), float(settings["beta"]))
    sizes = np.full(settings["num_topics"], float(settings["alpha"]))
    np.add.at(counts, clusters, found.toarray())
    np.add.at(sizes, clusters, 1.0)
    return DocumentModel.mixture(
        counts, sizes, is_dirichlet=True, vocabulary=vocabulary, random_state=random_state
    )


def _has(model: Any, name: str) -> bool:
    try:
        getattr(model, name)
    except (AttributeError, RuntimeError):
        return False
    return True


def _alpha(model: Any, kind: str, covariates: Any) -> Floats:
    """The prior of documents with these covariates."""
    if kind == "KeyATM" and _has(model, "time_prevalence"):
        raise InvalidTypeError(
            "this KeyATM of topica was fitted with times, and topica does not expose the prior of "
            "its states: fit it without, or with covariates of time"
        )
    try:
        effects = model.feature_effects if kind in ("DMR", "KeyATM") else None
    except RuntimeError:
        # A KeyATM without covariates.
        effects = None
    if effects is None:
        if covariates is not None:
            raise InvalidArgumentError(f"this {kind} of topica was fitted without covariates")
        return np.asarray(_fitted(model, "alpha"), dtype=np.float64)
    names = ", ".join(map(str, list(model.feature_names)[1:9]))
    rows = covariate_rows(covariates, np.shape(effects)[1] - 1, names)
    intercept, *slopes = np.asarray(effects, dtype=np.float64).T
    epsilon = float(model.settings.get("alpha_epsilon", 0.0))
    return np.exp(intercept + rows @ np.array(slopes)) + epsilon
