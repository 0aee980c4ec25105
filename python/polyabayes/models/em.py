"""Variational EM of latent Dirichlet allocation: the checks of its options, and the fit itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import validate_data

from polyabayes import _core
from polyabayes._support import checks
from polyabayes._support.progress import progress_bar
from polyabayes._support.random import draw_seed
from polyabayes.data.corpus import Corpus, as_corpus
from polyabayes.exceptions import (
    Interrupted,
    InvalidArgumentError,
    InvalidTypeError,
    NotFittedError,
    argument,
)
from polyabayes.models.fitting import BoundTrace, fingerprint
from polyabayes.models.topic_model import TopicModel, _row_normalised

if TYPE_CHECKING:
    from polyabayes.models.lda import LatentDirichletAllocation

TOLERANCE = 1e-5

# What each way of fitting has no use for, and the values that ask for nothing.
_UNUSED: dict[str, dict[str, Any]] = {
    "em": {"burn_in": None, "thin": 5, "checkpoint": None, "checkpoint_every": 100},
    "gibbs": {"init": None, "tol": TOLERANCE},
}
_MOST_ITERATIONS = 10**9
# Of a topic that no document uses.
_LEAST_PRIOR = 1e-100


def refuse_unused(model: LatentDirichletAllocation, method: str, **of_fit: Any) -> None:
    """Refuse options that this way of fitting would ignore.

    `of_fit` holds pairs of value and default of arguments of ``fit``.
    """
    options = {name: (getattr(model, name), default) for name, default in _UNUSED[method].items()}
    for name, (value, default) in (options | of_fit).items():
        if value is not default and not (type(value) is type(default) and value == default):
            raise InvalidArgumentError(
                f"{argument(name)} means nothing to {argument('fit_method', method)}: leave it out"
            )


def fit_em(model: LatentDirichletAllocation, X: Any) -> None:
    """Fit `model` to the documents `X` by variational EM, from ``model.init`` if it is given."""
    corpus = as_corpus(X, "X")
    n_components = checks.whole_number("n_components", model.n_components, 1, 2**16 - 1)
    max_iter = checks.whole_number("max_iter", model.max_iter, 1, _MOST_ITERATIONS)
    tolerance = checks.not_negative_number("tol", model.tol)
    pseudo_count = 0.1 if model.topic_word_prior is None else model.topic_word_prior
    pseudo_count = checks.not_negative_number("topic_word_prior", pseudo_count)
    if not isinstance(model.learn_priors, bool):
        raise InvalidTypeError(f"learn_priors must be a bool, got {model.learn_priors!r}")
    n_jobs = checks.n_threads(model.n_jobs)
    seed = draw_seed(model.random_state)
    if not corpus.n_tokens:
        raise InvalidArgumentError(f"{argument('X')} holds no tokens: every document is empty")
    identity = fingerprint(corpus)
    alpha, start = _start(model, corpus, n_components, identity)
    validate_data(model, X, reset=True, skip_check_array=True)
    with progress_bar(model.progress, max_iter, "iteration") as update:
        result = _core.fit_em(
            corpus._core_documents(),
            alpha,
            start,
            learned=model.learn_priors,
            topic_word_prior=pseudo_count,
            max_iter=max_iter,
            tolerance=tolerance,
            seed=seed,
            n_jobs=n_jobs,
            progress=update,
        )
    model.__dict__.pop("_last", None)
    model.components_ = _row_normalised(result.word_topic)
    model.doc_topic_prior_, model.topic_word_prior_ = result.alpha, pseudo_count
    model.bound_, model.topic_counts_ = result.bound, result.n_tokens
    model.n_iter_ = len(result.trace) - 1
    model.trace_ = BoundTrace(np.arange(len(result.trace)), result.trace)
    model.vocabulary_, model.seed_ = corpus.vocabulary, seed
    model._bound_is_of = identity
    if isinstance(result.interruption, KeyboardInterrupt):
        raise Interrupted(f"stopped after {model.n_iter_:,} of {max_iter:,} iterations", model)
    if result.interruption is not None:
        raise result.interruption


def _start(
    model: LatentDirichletAllocation, corpus: Corpus, n_components: int, identity: str
) -> tuple[NDArray[np.float64], tuple[NDArray[np.float64], NDArray[np.float64], float] | None]:
    """Where alpha starts; and topics, alpha and known bound of ``model.init``."""
    init, alpha = model.init, model.doc_topic_prior
    if init is None:
        alpha = 5.0 / n_components if alpha is None else alpha
        return checks.positive_vector("doc_topic_prior", alpha, n_components), None
    _check_init(model, corpus, n_components)
    if alpha is None:
        before = init.doc_topic_prior_
        alpha = np.full(n_components, before.sum() / n_components)
        shared = before * (len(before) / n_components)
        alpha[: len(before)] = np.maximum(shared, _LEAST_PRIOR)
    alpha = checks.positive_vector("doc_topic_prior", alpha, n_components)
    known = init.bound_ if getattr(init, "_bound_is_of", None) == identity else -np.inf
    return alpha, (np.ascontiguousarray(init.components_.T), init.doc_topic_prior_, known)


def _check_init(model: LatentDirichletAllocation, corpus: Corpus, n_components: int) -> None:
    init = model.init
    if not isinstance(init, type(model)) or not isinstance(init, TopicModel):
        raise InvalidTypeError(
            f"init must be a fitted LatentDirichletAllocation or None, got {init!r}"
        )
    if not hasattr(init, "components_"):
        raise NotFittedError(
            "init is not fitted: fit it first, and set it after clone, which copies no fit"
        )
    n_old, n_words = init.components_.shape
    if n_old > n_components:
        raise InvalidArgumentError(
            f"init has {n_old} topics, more than n_components={n_components}: topics can be added, "
            "not taken away"
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
