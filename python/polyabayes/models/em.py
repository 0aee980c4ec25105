"""Variational EM of latent Dirichlet allocation."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from polyabayes._support import checks
from polyabayes.data.corpus import Corpus
from polyabayes.exceptions import InvalidArgumentError, InvalidTypeError, NotFittedError
from polyabayes.models.fitted.fitted_model import FittedModel

TOLERANCE = 1e-5

# Dirichlet parameter of an unused topic.
LEAST_PRIOR = 1e-100


def check_start(init: Any, kind: type[FittedModel], corpus: Corpus, n_components: int) -> None:
    """Check the model to start from, a fitted model of class `kind`."""
    if not isinstance(init, kind):
        raise InvalidTypeError(f"init must be a fitted {kind.__name__} or None, got {init!r}")
    if not hasattr(init, "components_"):
        raise NotFittedError("init is not fitted: fit it first")
    n_old, n_words = init.components_.shape
    if n_old > n_components:
        raise InvalidArgumentError(
            f"init has {n_old} topics, more than n_components={n_components}: topics can be added, "
            "not removed"
        )
    if n_words != corpus.n_words:
        raise InvalidArgumentError(
            f"init has a vocabulary of {n_words} words, X one of {corpus.n_words}: both must be "
            "over the same words"
        )
    before, now = init.vocabulary_, corpus.vocabulary
    if before is not None and now is not None and not np.array_equal(before, now):
        raise InvalidArgumentError(
            "the vocabulary of init is not that of X: align the corpus to init.vocabulary_"
        )


def first_prior(doc_topic_prior: Any, n_components: int, init: Any) -> NDArray[np.float64]:
    """Alpha at the start of EM: as given, or from the model to start from."""
    if doc_topic_prior is None and init is None:
        doc_topic_prior = 5.0 / n_components
    elif doc_topic_prior is None:
        before = init.doc_topic_prior_
        doc_topic_prior = np.full(n_components, before.sum() / n_components)
        shared = before * (len(before) / n_components)
        doc_topic_prior[: len(before)] = np.maximum(shared, LEAST_PRIOR)
    return checks.positive_vector("doc_topic_prior", doc_topic_prior, n_components)
