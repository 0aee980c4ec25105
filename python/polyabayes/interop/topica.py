"""Models of topica."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polyabayes._support import checks
from polyabayes.exceptions import InvalidArgumentError, InvalidTypeError, NotFittedError
from polyabayes.interop.shared import attribute, normalised, places_of
from polyabayes.likelihood.foreign import adapter
from polyabayes.models import LatentDirichletAllocation

__all__ = ["from_topica"]

_DIRICHLET = ("LDA", "OnlineLDA", "SeededLDA", "SupervisedLDA", "KeyATM", "DMR", "LabeledLDA")
_LOGISTIC_NORMAL = "its prior is a logistic normal, under which this would score another model"
_NO_PRIOR = "it does not hand out the prior of its topic weights"
_OTHERS = {
    "CTM": _LOGISTIC_NORMAL,
    "STM": _LOGISTIC_NORMAL,
    "ETM": _NO_PRIOR,
    "ProdLDA": "it hands out neither its prior nor the loadings of its product of experts",
    "HDP": "it does not hand out the weights of its topics",
    "GSDMM": "each of its documents has one topic, and it does not hand out their weights",
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
    random_state: Any = None,
) -> LatentDirichletAllocation:
    """Take over a fitted topic model of topica whose documents have a Dirichlet prior.

    Topics are its ``topic_word``, of a KeyATM those of keywords and all other words together; the
    prior is its ``alpha``.

    Parameters
    ----------
    model : topica LDA, OnlineLDA, SeededLDA, SupervisedLDA, KeyATM, DMR or LabeledLDA
        Fitted. Of a SupervisedLDA the words alone are scored.
    covariates : array of shape (n_features,), optional
        DMR, and KeyATM with covariates: the covariates of the documents that will be scored,
        without the intercept. The prior is alpha = exp(λ (1, x)), of a DMR with its
        ``alpha_epsilon`` added, one for each value of the covariates: make a model for each.
    labels : sequence of str, optional
        LabeledLDA: labels of the documents that will be scored, whose topics are the only ones of
        the model. Default: all topics.
    random_state : None, int, RandomState, Generator or SeedSequence
        Seed of ``transform`` and ``score``.

    Returns
    -------
    LatentDirichletAllocation

    Raises
    ------
    InvalidTypeError
        If `model` is of another kind; the message says why.
    InvalidArgumentError
        If covariates or labels are missing, do not fit, or are given to another kind of model.
    NotFittedError
        If it is not fitted.

    References
    ----------
    D. Mimno and A. McCallum (2008). Topic models conditioned on arbitrary features with
    Dirichlet-multinomial regression. UAI.
    S. Eshima, K. Imai and T. Sasaki (2024). Keyword-assisted topic models. AJPS 68.

    Examples
    --------
    >>> import polyabayes as pb
    >>> import topica
    >>> theirs = topica.LDA(2, seed=1)
    >>> _ = theirs.fit([["urn", "ball", "urn"], ["topic", "word"]], iters=20)
    >>> sorted(pb.interop.from_topica(theirs).vocabulary_)
    ['ball', 'topic', 'urn', 'word']
    """
    kind = type(model).__name__
    if kind not in _DIRICHLET:
        reason = _OTHERS.get(kind, f"only {', '.join(_DIRICHLET)} are")
        raise InvalidTypeError(f"a {kind} of topica cannot be taken over: {reason}")
    if labels is not None and kind != "LabeledLDA":
        raise InvalidArgumentError(f"labels are for a LabeledLDA, not for a {kind}")
    topics = normalised(_fitted(model, "topic_word"), f"topic_word of the {kind}")
    kept = list(range(len(topics)))
    if labels is not None:
        kept = places_of(labels, [str(label) for label in _fitted(model, "labels")])
    return LatentDirichletAllocation.from_parameters(
        doc_topic_prior=_alpha(model, kind, covariates)[kept],
        topic_word=topics[kept],
        vocabulary=[str(word) for word in _fitted(model, "vocabulary")],
        random_state=random_state,
    )


def _fitted(model: Any, name: str) -> Any:
    """An attribute that topica has after ``fit`` only."""
    try:
        return attribute(model, name, "topica")
    except RuntimeError as error:
        raise NotFittedError(f"this {type(model).__name__} of topica is not fitted yet") from error


def _alpha(model: Any, kind: str, covariates: Any) -> NDArray[np.float64]:
    """The prior of documents with these covariates."""
    try:
        effects = model.feature_effects if kind in ("DMR", "KeyATM") else None
    except RuntimeError:
        # A KeyATM without covariates.
        effects = None
    if effects is None:
        if covariates is not None:
            raise InvalidArgumentError(f"this {kind} of topica was fitted without covariates")
        return np.asarray(_fitted(model, "alpha"), dtype=np.float64)
    n_features = np.shape(effects)[1] - 1
    row = checks.floats("covariates", () if covariates is None else covariates)
    if row.shape != (n_features,) or not np.isfinite(row).all():
        names = ", ".join(map(str, list(model.feature_names)[1:9]))
        raise InvalidArgumentError(
            f"covariates must be {n_features} finite numbers ({names}), those of the documents "
            f"that will be scored: make a model for each value; got {covariates!r:.100}"
        )
    epsilon = float(model.settings.get("alpha_epsilon", 0.0))
    alpha: NDArray[np.float64] = np.exp(np.asarray(effects) @ np.r_[1.0, row]) + epsilon
    return alpha
