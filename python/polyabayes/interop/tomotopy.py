"""Models of tomotopy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from polyabayes._support import checks
from polyabayes._support.arrays import Floats, Indices
from polyabayes._support.warnings import warn
from polyabayes.exceptions import (
    InvalidArgumentError,
    InvalidTypeError,
    NotFittedError,
    PolyabayesWarning,
    PriorWarning,
)
from polyabayes.interop.shared import attribute, lda_of_priors, places_of
from polyabayes.likelihood.foreign import adapter
from polyabayes.models import DocumentModel, LatentDirichletAllocation
from polyabayes.models.fitted_topics import normalised

_OTHERS = {
    "HLDAModel": "its topics form a tree",
    "PAModel": "its topics have super topics: AllocationModel.pachinko trains and scores such",
    "HPAModel": "its topics have super topics: AllocationModel.pachinko trains and scores such",
    "MGLDAModel": "it has global and local topics",
    "PTModel": "its documents are pooled",
}
_PLAIN = ("LDAModel", "SLDAModel")
_LABELLED = ("LLDAModel", "PLDAModel")
_BY_METADATA = ("DMRModel", "GDMRModel")
_LOGISTIC_NORMAL = ("CTModel", "DTModel")


@adapter("tomotopy")
def from_tomotopy(
    model: Any,
    *,
    metadata: Any = None,
    multi_metadata: Sequence[str] = (),
    numeric_metadata: Any = (),
    labels: Sequence[str] | None = None,
    timepoint: int | None = None,
    eta_variance: float | None = None,
    random_state: Any = None,
) -> LatentDirichletAllocation | DocumentModel:
    """Convert a trained topic model of tomotopy.

    The topics are counts of the last sweep plus their prior, divided by row sums in double
    precision. The prior includes ``set_word_prior``, which tomotopy's own ``get_topic_word_dist``
    ignores. The Dirichlet prior of the weights is ``model.alpha``, which tomotopy learns by
    default. Words are ``used_vocabs``, after pruning.

    Parameters
    ----------
    model : tomotopy LDAModel, SLDAModel, DMRModel, GDMRModel, LLDAModel, PLDAModel, HDPModel, \
CTModel or DTModel
        A model trained with ``TermWeight.ONE``. For an SLDAModel, only words are scored. An
        HDPModel becomes the LDA of its ``convert_to_lda()``, truncated to its live topics. CTModel
        and DTModel have a logistic normal prior and become a DocumentModel.
    metadata : str or sequence of str, optional
        DMRModel and GDMRModel: metadata of the documents to score, with `multi_metadata` and
        `numeric_metadata` as in their ``make_doc``. The prior is
        alpha = exp(lambda x) + alpha_epsilon. A sequence with a value for each document gives a
        DocumentModel with a prior for each.
    multi_metadata : sequence of str, default=()
        As `multi_metadata` of ``make_doc``.
    numeric_metadata : sequence of float or array of shape (n_documents, n_numbers), default=()
        GDMRModel: one number for each entry of its ``degrees``, or a row of them per document.
    labels : sequence of str, optional
        LLDAModel and PLDAModel: labels of the documents to score. The converted model has only the
        topics of these labels, and the latent topics of a PLDAModel. Default: all topics.
    timepoint : int, optional
        DTModel: time slice of the documents to score.
    eta_variance : float, optional
        DTModel: its ``eta_var``, which cannot be read from the model.
    {seed of transform}

    Returns
    -------
    LatentDirichletAllocation or DocumentModel

    Raises
    ------
    InvalidTypeError
        If `model` is of another type; the message says why it cannot be converted.
    InvalidArgumentError
        If terms are weighted, or metadata or labels are missing, unknown to the model, or given for
        another type of model.
    NotFittedError
        If the model is not trained.

    References
    ----------
    D. Mimno and A. McCallum (2008). Topic models conditioned on arbitrary features with
    Dirichlet-multinomial regression. UAI.
    M. Lee and M. Song (2020). Incorporating citation impact into analysis of research trends
    (generalised DMR). Scientometrics 124.
    D. Ramage et al. (2009). Labeled LDA. EMNLP.

    Examples
    --------
    >>> import tomotopy
    >>> theirs = tomotopy.LDAModel(k=2, seed=1)
    >>> for text in [["urn", "ball", "urn"], ["topic", "word"]]:
    ...     _ = theirs.add_doc(text)
    >>> theirs.train(10, workers=1)
    >>> sorted(pb.interop.from_tomotopy(theirs).vocabulary_)
    ['ball', 'topic', 'urn', 'word']
    """
    kind = type(model).__name__
    if kind in _OTHERS:
        raise InvalidTypeError(f"a {kind} of tomotopy is not a plain LDA: {_OTHERS[kind]}")
    if kind not in (*_PLAIN, *_LABELLED, *_BY_METADATA, *_LOGISTIC_NORMAL, "HDPModel"):
        raise InvalidTypeError(f"model must be a topic model of tomotopy, got {model!r:.200}")
    given = metadata is not None or len(multi_metadata) or len(numeric_metadata)
    if given and kind not in _BY_METADATA:
        raise InvalidArgumentError(f"metadata are for a DMRModel or GDMRModel, not for a {kind}")
    if labels is not None and kind not in _LABELLED:
        raise InvalidArgumentError(f"labels are for an LLDAModel or PLDAModel, not for a {kind}")
    if (timepoint is not None or eta_variance is not None) and kind != "DTModel":
        raise InvalidArgumentError(f"timepoint and eta_variance are for a DTModel, not a {kind}")
    weighting = int(attribute(model, "tw", "tomotopy"))
    if weighting != 0:
        raise InvalidArgumentError(
            f"the terms of this {kind} are weighted (idf or pmi), but likelihoods need counts: "
            "train it with tw=tomotopy.TermWeight.ONE"
        )
    words = [str(word) for word in attribute(model, "used_vocabs", "tomotopy")]
    if not words:
        raise NotFittedError(f"this {kind} of tomotopy is not trained yet: call its train")
    if kind == "HDPModel":
        model = _cut_off(model)
    elif not attribute(model, "global_step", "tomotopy"):
        # After train(0) topics are random, after convert_to_lda they are those of the HDP; the
        # models look the same.
        warn(
            f"this {kind} of tomotopy reports no sweeps: unless it comes from convert_to_lda, its "
            "topics are random; call its train",
            PolyabayesWarning,
        )
    if kind in _LOGISTIC_NORMAL:
        return _logistic_normal(model, words, timepoint, eta_variance, random_state)
    if kind in _BY_METADATA:
        alpha = _alpha(model, metadata, multi_metadata, numeric_metadata)
    else:
        alpha = np.asarray(model.alpha, dtype=np.float64) * np.ones(model.k)
    topics = normalised(_pseudo_counts(model, words), f"the {kind}")
    kept = np.arange(model.k) if labels is None else _topics_of(model, labels)
    return lda_of_priors(topics[kept], alpha[..., kept], words, random_state)


def _cut_off(model: Any) -> Any:
    """The LDA of the live topics of an HDP."""
    lda, _ = attribute(model, "convert_to_lda", "tomotopy")()
    warn(
        f"an HDP has infinitely many topics: it is scored as the LDA of its {lda.k} live topics, "
        "with alpha from tomotopy's convert_to_lda",
        PriorWarning,
    )
    return lda


def _alpha(model: Any, metadata: Any, several: Any, numbers: Any) -> Floats:
    """The prior of all documents, or a row per document if metadata are given for each."""
    is_list = metadata is not None and not isinstance(metadata, str)
    values = checks.floats("numeric_metadata", numbers)
    if not is_list and values.ndim < 2:
        return _alpha_of(model, metadata, several, numbers)
    n_documents = len(metadata) if is_list else len(values)
    levels = [str(level) for level in metadata] if is_list else [metadata] * n_documents
    rows = values if values.ndim == 2 else np.tile(values, (n_documents, 1))
    if len(rows) != n_documents:
        raise InvalidArgumentError(
            f"metadata are for {n_documents} documents, numeric_metadata for {len(rows)}: give as "
            "many of each"
        )
    pairs = list(zip(levels, map(tuple, rows.tolist()), strict=True))
    # Few combinations of covariates are distinct.
    known = {pair: _alpha_of(model, pair[0], several, pair[1]) for pair in set(pairs)}
    return np.array([known[pair] for pair in pairs])


def _alpha_of(model: Any, metadata: Any, several: Any, numbers: Any) -> Floats:
    """The prior of documents with these metadata; tomotopy ends the process for unknown ones."""
    one, values = "" if metadata is None else metadata, checks.floats("numeric_metadata", numbers)
    known, known_several = list(model.metadata_dict), list(model.multi_metadata_dict)
    if known and one not in known:
        raise InvalidArgumentError(
            f"metadata must be one of {', '.join(map(repr, known[:8]))}"
            f"{' and others' * (len(known) > 8)}, which the model was trained with, got "
            f"{metadata!r:.100}; a list has the value of each document"
        )
    unknown = [name for name in several if name not in known_several]
    if unknown or (not known and one):
        raise InvalidArgumentError(
            f"the model was not trained with the metadata {(unknown or [one])[0]!r:.100}"
        )
    if not hasattr(model, "degrees"):
        if values.size:
            raise InvalidArgumentError("numeric_metadata are for a GDMRModel")
        return np.asarray(model.get_topic_prior(one, list(several)), dtype=np.float64)
    if values.shape != (len(model.degrees),) or not np.isfinite(values).all():
        raise InvalidArgumentError(
            f"numeric_metadata must be {len(model.degrees)} finite numbers, or a row of them for "
            f"each document, got {numbers!r:.100}"
        )
    ln_alpha = model.tdf(values.tolist(), one, list(several), normalize=False)
    return np.exp(np.asarray(ln_alpha, dtype=np.float64)) + float(model.alpha_epsilon)


def _logistic_normal(
    model: Any, words: list[str], timepoint: Any, variance: Any, random_state: Any
) -> DocumentModel:
    """A CTModel with its prior, or a DTModel at one of its slices."""
    if type(model).__name__ == "CTModel":
        topics = normalised(_pseudo_counts(model, words), "the CTModel")
        mean, covariance = model.prior_mean, np.asarray(model.prior_cov, dtype=np.float64)
    else:
        if timepoint is None or variance is None:
            raise InvalidArgumentError(
                "a DTModel has topics and a prior at each slice: give timepoint, and eta_variance, "
                "the eta_var that the model was made with"
            )
        slice_ = checks.whole_number("timepoint", timepoint, 0, model.num_timepoints - 1)
        rows = [model.get_topic_word_dist(topic, timepoint=slice_) for topic in range(model.k)]
        topics = normalised(np.array(rows, dtype=np.float64), "the DTModel")
        mean = model.get_alpha(slice_)
        covariance = checks.positive_number("eta_variance", variance) * np.eye(model.k)
    return DocumentModel.logistic_normal(
        topics,
        np.asarray(mean, dtype=np.float64),
        covariance,
        vocabulary=words,
        random_state=random_state,
    )


def _topics_of(model: Any, labels: Any) -> Indices:
    """Topics that documents with these labels may have."""
    known = list(model.topic_label_dict)
    width = int(getattr(model, "topics_per_label", 1))
    of_labels = [place * width + np.arange(width) for place in places_of(labels, known)]
    return np.concatenate([*of_labels, np.arange(len(known) * width, model.k)])


def _pseudo_counts(model: Any, words: list[str]) -> Floats:
    """Counts of the last sweep and the prior of every word in every topic."""
    rows = [model.get_topic_word_dist(topic, normalize=False) for topic in range(model.k)]
    # Every entry includes the scalar prior, also for words with another prior.
    counts = np.rint(np.array(rows, dtype=np.float64) - float(model.eta))
    # Empty unless a word has its own prior.
    if not len(model.get_word_prior(words[0])):
        return counts + float(model.eta)
    priors = [model.get_word_prior(word) for word in words]
    return counts + np.array(priors, dtype=np.float64).T
