"""Variational EM of latent Dirichlet allocation, from random starts or from another model."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from polyabayes import _core
from polyabayes._support import checks
from polyabayes._support.arrays import Floats
from polyabayes._support.output.progress import progress_bar
from polyabayes.data.corpus import Corpus, as_corpus
from polyabayes.exceptions import (
    Interrupted,
    InvalidArgumentError,
    InvalidTypeError,
    NotFittedError,
    argument,
)
from polyabayes.likelihood.foreign import exposed
from polyabayes.models.fitting import START_SWEEPS, fingerprint
from polyabayes.models.topic_model import TopicModel, row_normalised
from polyabayes.models.traces import BoundTrace
from polyabayes.scale.shards import Shards

# Dirichlet parameter of an unused topic, or of a topic and word whose expected count underflows.
LEAST_PRIOR = 1e-100


class TrainedByEM(TopicModel):
    """Base class of latent Dirichlet allocation: training by EM."""

    doc_topic_prior: Any
    topic_word_prior: float | None
    learn_priors: bool | None
    fit_method: str
    init: TrainedByEM | None
    tol: float

    doc_topic_prior_: Floats
    topic_word_prior_: float
    bound_: float
    # Fingerprint of the documents of `bound_`.
    _bound_is_of: str

    def _fit_em(self, X: Any, exposure: Any) -> Self:
        if isinstance(X, Shards):
            raise InvalidArgumentError(
                f"training on shards needs Gibbs sampling: omit {argument('fit_method')}"
            )
        corpus = exposed(self, as_corpus(X, "X"), exposure)
        n_components = self._n_topics()
        schedule = self._schedule()
        tol = checks.not_negative_number("tol", self.tol)
        pseudo_count = 0.1 if self.topic_word_prior is None else self.topic_word_prior
        pseudo_count = checks.not_negative_number("topic_word_prior", pseudo_count)
        learned = self._learns_priors()
        self._check_tokens(corpus)
        init, hashed, start = self.init, fingerprint(corpus), None
        if init is not None:
            _check_start(init, corpus, n_components)
            topics = np.ascontiguousarray(init.components_.T)
            known = init.bound_ if getattr(init, "_bound_is_of", None) == hashed else -np.inf
            start = topics, init.doc_topic_prior_, known
        alpha = _first_prior(self.doc_topic_prior, n_components, init)
        self._begin(X, corpus, hashed, schedule.seed)
        with progress_bar(self.progress, schedule.max_iter, "iteration") as update:
            fitted = _core.fit_em(
                corpus._core_documents(),
                alpha,
                start,
                learned=learned,
                topic_word_prior=pseudo_count,
                max_iter=schedule.max_iter,
                tolerance=tol,
                start_sweeps=START_SWEEPS,
                n_init=schedule.n_init,
                seed=schedule.seed,
                n_jobs=schedule.n_jobs,
                progress=update,
            )
        self.components_ = row_normalised(np.ascontiguousarray(fitted.word_topic.T))
        self.doc_topic_prior_ = fitted.alpha
        self._seal()
        self.topic_word_prior_, self.topic_counts_ = pseudo_count, fitted.n_tokens
        self.bound_, self._bound_is_of = fitted.bound, hashed
        self.trace_ = BoundTrace(np.arange(len(fitted.trace)), fitted.trace)
        self.n_iter_ = len(fitted.trace) - 1
        if isinstance(fitted.interruption, KeyboardInterrupt):
            message = f"stopped after {self.n_iter_:,} of {schedule.max_iter:,} iterations"
            raise Interrupted(message, self)
        if fitted.interruption is not None:
            raise fitted.interruption
        return self

    def _learns_priors(self) -> bool:
        """Whether the priors are learned; for EM, the prior of the documents."""
        if self.learn_priors is None:
            of_topics = None if self.fit_method == "em" else self.topic_word_prior
            return self.doc_topic_prior is None and of_topics is None
        return checks.flag("learn_priors", self.learn_priors)


def _check_start(init: Any, corpus: Corpus, n_components: int) -> None:
    if not isinstance(init, TrainedByEM):
        raise InvalidTypeError(
            f"init must be a fitted LatentDirichletAllocation or None, got {init!r}"
        )
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


def _first_prior(doc_topic_prior: Any, n_components: int, init: Any) -> Floats:
    """Alpha at the start of EM: as given, or from the model to start from."""
    if doc_topic_prior is None and init is None:
        doc_topic_prior = 5.0 / n_components
    elif doc_topic_prior is None:
        before = init.doc_topic_prior_
        doc_topic_prior = np.full(n_components, before.sum() / n_components)
        shared = before * (len(before) / n_components)
        doc_topic_prior[: len(before)] = np.maximum(shared, LEAST_PRIOR)
    return checks.positive_vector("doc_topic_prior", doc_topic_prior, n_components)
