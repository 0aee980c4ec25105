"""Diagnostics of estimates: bounds from both sides, and distances to exact values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from polyabayes import _core
from polyabayes._support import checks
from polyabayes._support.arrays import Floats, Integers
from polyabayes._support.bidirectional import BidirectionalBounds
from polyabayes._support.docs import shared_docs
from polyabayes._support.output.progress import progress_bar
from polyabayes._support.random import RandomState, draw_seed, random_generator
from polyabayes.data.corpus import Corpus
from polyabayes.exceptions import InvalidArgumentError
from polyabayes.likelihood.foreign import as_scorable, exposed
from polyabayes.likelihood.methods import REVERSIBLE, check_settings
from polyabayes.likelihood.result import LogLikelihood
from polyabayes.likelihood.scoring import log_likelihood

__all__ = ["BidirectionalBounds", "bidirectional_bounds", "estimator_divergence"]


@shared_docs
def bidirectional_bounds(
    model: Any,
    method: str = "auto",
    *,
    n_documents: int = 10,
    document_length: int | ArrayLike | None = None,
    exposure: float | ArrayLike | None = None,
    covariates: Any = None,
    n_samples: int | None = None,
    n_particles: int | None = None,
    n_replicates: int | None = None,
    options: Mapping[str, Any] | None = None,
    random_state: RandomState = None,
    n_jobs: int | None = None,
    progress: bool = False,
) -> BidirectionalBounds:
    """Bound the likelihood of simulated documents from both sides, to test an estimator.

    Bidirectional Monte Carlo (Grosse, Ghahramani & Adams 2015) needs no exact value. The topics of
    a simulated document (or the latent coordinates of a logistic normal) are an exact draw from
    their posterior. Annealing backwards from this draw, or a particle filter conditional on it,
    gives unbiased estimates of 1/p. If the gap between the bounds is small, the estimator is
    accurate to within the gap on documents like these.

    Parameters
    ----------
    model : LatentDirichletAllocation, PoissonFactorAnalysis or DocumentModel
        A model that is fitted or made from parameters. For mixtures, both bounds are exact.
    method : {"auto", "annealed", "smc-lookahead", "smc"}, default="auto"
        The estimator. ``"auto"`` is the choice of :func:`log_likelihood` without exact sums.
        Logistic normals have only ``"annealed"``.
    n_documents : int, default=10
        Documents to simulate. A model with a prior for each document needs this number of priors.
    document_length : int or array of shape (n_documents,), default=100
        Tokens per document, in each vocabulary. Gamma-Poisson models draw the lengths.
    exposure : float or array of shape (n_documents,), default=1
        Size of each document, which multiplies its Poisson rates; gamma-Poisson models only.
    covariates : array of shape (n_documents, n_covariates) or DataFrame, optional
        Covariates of the documents, if the prior of the model depends on them.
    n_samples, n_particles, n_replicates, options
        As in :func:`log_likelihood`.
    random_state : None, int, RandomState, Generator or SeedSequence
        Seed of the documents and of the estimates.
    {n_jobs}
    {progress}

    Returns
    -------
    BidirectionalBounds
        Bounds of ln p of each document: of its counts for gamma-Poisson models, else of its
        sequence given its length.

    {raises: bad argument}

    References
    ----------
    {Grosse 2015}

    Examples
    --------
    >>> bounds = pb.bidirectional_bounds(model, document_length=50, random_state=0)
    >>> bool((abs(bounds.gap) < 4 * bounds.gap_std_errors).all())
    True
    """
    model = as_scorable("model", model)
    method = checks.choice("method", method, tuple(REVERSIBLE))
    settings = check_settings(
        method=method,
        event=model._default_event,
        given_length=model._conditions_on_length,
        n_samples=n_samples,
        n_particles=n_particles,
        n_replicates=n_replicates,
        options=options,
    )
    n_threads = checks.n_threads(n_jobs)
    n_documents = checks.whole_number("n_documents", n_documents)
    # Counts of topics in documents, and numbers of each document and topic.
    checks.fits("n_documents", n_documents, 24 * len(getattr(model, "components_", "1")))
    if not hasattr(model, "_draw_documents"):
        raise InvalidArgumentError(f"documents cannot be simulated from {model!r}")
    core_model = model._core_model()
    rng = random_generator(random_state)
    nothing = exposed(model, Corpus(np.zeros((n_documents, 1), dtype=int)), exposure)
    priors = model._priors_of(nothing, covariates)
    sizes: NDArray[Any] | None = nothing.exposure
    if model._conditions_on_length:
        sizes = _lengths(100 if document_length is None else document_length, n_documents)
    elif document_length is not None:
        raise InvalidArgumentError(
            "a gamma-Poisson model draws the lengths itself; omit document_length"
        )
    # Draws are topics of tokens or latent coordinates; None where ln p is a plain sum.
    counts, draws = model._draw_documents(n_documents, sizes, priors, rng)
    corpus = Corpus(counts, exposure=nothing.exposure)._with_priors(priors)
    if draws is None:
        exact = log_likelihood(model, corpus.counts, method, n_jobs=n_threads).values
        none = np.zeros(n_documents)
        return BidirectionalBounds(exact, none, exact, none, none.astype(np.int64), corpus)
    with progress_bar(progress, n_documents, "document") as update:
        lower, lower_errors, upper, upper_errors, sizes = _core.bidirectional(
            core_model,
            corpus._core_documents(),
            draws,
            settings,
            seed=draw_seed(rng),
            n_jobs=n_threads,
            progress=update,
        )
    return BidirectionalBounds(
        lower, lower_errors, upper, upper_errors, sizes.astype(np.int64), corpus
    )


def _lengths(document_length: Any, n_documents: int) -> Integers:
    lengths = np.asarray(document_length)
    fits = lengths.shape in ((), (n_documents,)) and lengths.dtype.kind in "iu"
    if not fits or (lengths < 0).any():
        raise InvalidArgumentError(
            "document_length must be a non-negative int, or one for each of the "
            f"{n_documents:,} documents, got {document_length!r}"
        )
    found = np.broadcast_to(lengths, n_documents).astype(np.int64)
    # Document, topic, word and order of each token.
    checks.fits("document_length", int(found.sum(dtype=object)), 32)
    return found


@shared_docs
def estimator_divergence(exact: ArrayLike | LogLikelihood, estimated: ArrayLike | Any) -> float:
    """Kullback-Leibler divergence of estimated from exact document probabilities.

    KL(P || Q) in nats, with ``P_d = p_d / Σ p`` from the exact and ``Q_d = q_d / Σ q`` from the
    estimated probabilities of the documents, as in Figure 2 of Capdevila et al. (2018). The most
    probable documents dominate.

    Parameters
    ----------
    exact, estimated : LogLikelihood or array of shape (n_documents,)
        ln p of the same documents.

    Returns
    -------
    float
        The divergence, at least 0; infinite if an estimate is zero where the exact value is not.

    Raises
    ------
    InvalidArgumentError
        If the arrays differ in shape, hold NaN, or no document has a positive probability.

    References
    ----------
    {Capdevila 2018}

    Examples
    --------
    >>> pb.estimator_divergence([-1.0, -2.0], [-1.5, -2.5])  # the same shares
    0.0
    """
    p, q = (_normalised(name, x) for name, x in (("exact", exact), ("estimated", estimated)))
    if p.shape != q.shape:
        raise InvalidArgumentError(
            f"exact and estimated must hold the same documents, got shapes {p.shape} and {q.shape}"
        )
    with np.errstate(invalid="ignore"):
        terms = np.where(np.isneginf(p), 0.0, np.exp(p) * (p - q))
    return max(0.0, float(terms.sum()))


def _normalised(name: str, values: Any) -> Floats:
    ln_p = checks.floats(name, values.values if isinstance(values, LogLikelihood) else values)
    if ln_p.ndim != 1 or np.isnan(ln_p).any() or not np.isfinite(ln_p.max(initial=-np.inf)):
        raise InvalidArgumentError(
            f"{name} must hold ln p of each document, without NaN and at least one of them finite"
        )
    return np.asarray(ln_p - special.logsumexp(ln_p))
