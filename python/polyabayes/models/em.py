"""Variational EM of latent Dirichlet allocation."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from polyabayes import _core
from polyabayes._support import checks
from polyabayes._support.progress import progress_bar
from polyabayes.data.corpus import Corpus
from polyabayes.exceptions import InvalidArgumentError, InvalidTypeError, NotFittedError
from polyabayes.models.fitted.fitted_model import FittedModel
from polyabayes.models.fitting import START_SWEEPS
from polyabayes.models.topic_model import row_normalised
from polyabayes.models.traces import BoundTrace

TOLERANCE = 1e-5

# Dirichlet parameter of an unused topic.
_LEAST_PRIOR = 1e-100


class EmStart(NamedTuple):
    """A fitted model as the start of EM.

    `topic_word` is topics x words; the bound is for the documents, in nats, -inf if unknown.
    """

    topic_word: NDArray[np.float64]
    doc_topic_prior: NDArray[np.float64]
    bound: float


class EmFit(NamedTuple):
    """Result of variational EM.

    `bound` is the lower bound of ln p(words | phi, alpha) in nats; `topic_counts` are expected
    tokens of each topic; `trace` has the bound of each iteration; `interruption` is the exception
    that ended the run, if any.
    """

    topic_word: NDArray[np.float64]
    doc_topic_prior: NDArray[np.float64]
    bound: float
    topic_counts: NDArray[np.float64]
    trace: BoundTrace
    interruption: Any


def start_from(
    init: Any, kind: type[FittedModel], corpus: Corpus, n_components: int, bound: float
) -> EmStart | None:
    """Check the start of a fit, a fitted model of class `kind`.

    `bound` is its known bound of the documents.
    """
    if init is None:
        return None
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
    return EmStart(init.components_, init.doc_topic_prior_, bound)


def first_prior(
    doc_topic_prior: Any, n_components: int, start: EmStart | None
) -> NDArray[np.float64]:
    """Alpha at the start of EM: as given, or from the model to start from."""
    if doc_topic_prior is None and start is None:
        doc_topic_prior = 5.0 / n_components
    elif doc_topic_prior is None and start is not None:
        before = start.doc_topic_prior
        doc_topic_prior = np.full(n_components, before.sum() / n_components)
        shared = before * (len(before) / n_components)
        doc_topic_prior[: len(before)] = np.maximum(shared, _LEAST_PRIOR)
    return checks.positive_vector("doc_topic_prior", doc_topic_prior, n_components)


def fit_em(
    corpus: Corpus,
    alpha: NDArray[np.float64],
    start: EmStart | None,
    *,
    learned: bool,
    topic_word_prior: float,
    max_iter: int,
    tol: float,
    n_init: int,
    seed: int,
    n_jobs: int,
    progress: bool,
) -> EmFit:
    """Fit by variational EM, from the topics of a short run of Gibbs sampling or from `start`."""
    known = None
    if start is not None:
        known = (np.ascontiguousarray(start.topic_word.T), start.doc_topic_prior, start.bound)
    with progress_bar(progress, max_iter, "iteration") as update:
        result = _core.fit_em(
            corpus._core_documents(),
            alpha,
            known,
            learned=learned,
            topic_word_prior=topic_word_prior,
            max_iter=max_iter,
            tolerance=tol,
            start_sweeps=START_SWEEPS,
            n_init=n_init,
            seed=seed,
            n_jobs=n_jobs,
            progress=update,
        )
    return EmFit(
        row_normalised(result.word_topic),
        result.alpha,
        result.bound,
        result.n_tokens,
        BoundTrace(np.arange(len(result.trace)), result.trace),
        result.interruption,
    )
