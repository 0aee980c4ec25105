"""Document completion: probability of held-out tokens, and plug-in perplexity."""

from __future__ import annotations

import math
from collections.abc import Mapping
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from polyabayes._support import checks
from polyabayes._support.docs import shared_docs
from polyabayes._support.output.progress import progress_bar
from polyabayes._support.random import RandomState, draw_seed, random_generator
from polyabayes._support.results import Record
from polyabayes.data.corpus import Corpus, as_corpus
from polyabayes.data.naming import rows_by_name
from polyabayes.exceptions import InvalidArgumentError, InvalidTypeError
from polyabayes.likelihood.blocks import ScoringPlan, distinct, score_corpora
from polyabayes.likelihood.foreign import as_scorable, exposed, of_measured_words, read_documents
from polyabayes.likelihood.methods import check_settings
from polyabayes.likelihood.priors import GivenPriors
from polyabayes.likelihood.reliability import warn_of_caveats
from polyabayes.likelihood.result import LogLikelihood, collect
from polyabayes.likelihood.scoring import EVENTS
from polyabayes.scale.executors import check_executor, threads_of_task

# Largest count of NumPy's hypergeometric distribution; rounding error of share x length.
_LONGEST = 10**9
_ROUNDING = 1e-9


@dataclass(frozen=True, repr=False, eq=False)
class Perplexity(Record):
    """A perplexity and its standard error of estimation.

    Attributes
    ----------
    value : float
        The perplexity.
    std_error : float
        Standard error of estimation.

    Examples
    --------
    >>> found = pb.completion_perplexity(model, [[4, 2, 1, 1]], random_state=0)
    >>> found.value > 1
    True
    """

    value: float
    std_error: float


@shared_docs
def split_tokens(
    documents: Any, held_out: float = 0.5, random_state: RandomState = None
) -> tuple[Corpus, Corpus]:
    """Split the tokens of every document at random into observed and held-out tokens.

    Parameters
    ----------
    {documents}
    held_out : float, default=0.5
        Share of each document's tokens that is held out, rounded down; a single token stays
        observed.
    random_state : None, int, RandomState, Generator or SeedSequence
        Seed.

    Returns
    -------
    observed, held_out : Corpus
        Documents in the same order, over the same vocabulary.

    {raises: bad argument}

    References
    ----------
    {Wallach 2009}

    Examples
    --------
    >>> observed, held_out = pb.split_tokens([[4, 2, 1, 1]], random_state=0)
    >>> observed.n_tokens, held_out.n_tokens
    (4, 4)
    """
    corpus = as_corpus(documents)
    share = checks.share("held_out", held_out)
    rng = random_generator(random_state)
    counts = sparse.csr_matrix(corpus.counts)
    taken = np.zeros_like(counts.data)
    for start, end in zip(counts.indptr[:-1], counts.indptr[1:], strict=True):
        own = counts.data[start:end]
        if own.sum() >= _LONGEST:
            row = int(np.searchsorted(counts.indptr, start, side="right")) - 1
            raise InvalidArgumentError(
                f"document {row} has {own.sum():,} tokens, at most {_LONGEST - 1:,} can be divided"
            )
        if len(own):
            n_taken = math.floor(share * own.sum() + _ROUNDING)
            taken[start:end] = rng.multivariate_hypergeometric(own, n_taken, method="marginals")
    parts = []
    for data in (counts.data - taken, taken):
        part = sparse.csr_matrix((data, counts.indices, counts.indptr), counts.shape, copy=True)
        part.eliminate_zeros()
        parts.append(corpus._replaced(counts=part))
    return parts[0], parts[1]


@shared_docs
def log_completion(
    model: Any,
    observed: Any,
    held_out: Any,
    method: str = "auto",
    *,
    n_samples: int | None = None,
    n_particles: int | None = None,
    n_replicates: int | None = None,
    event: str = "sequence",
    exposure: Any = None,
    doc_topic_prior: Any = None,
    shape: Any = None,
    covariates: Any = None,
    unseen: str = "raise",
    missing_words: str | None = None,
    budget: float | None = None,
    random_state: RandomState = None,
    n_jobs: int | None = None,
    executor: Executor | None = None,
    progress: bool = False,
    options: Mapping[str, Any] | None = None,
) -> LogLikelihood:
    """Log-probability of the held-out tokens of documents given their observed tokens.

    The value is ln of a ratio, conditional on the numbers of observed and held-out tokens:
    p(observed and held-out tokens) / p(observed tokens). Numerator and denominator are estimated
    independently; the ratio is consistent but not unbiased.

    Parameters
    ----------
    model : LatentDirichletAllocation, PoissonFactorAnalysis or DocumentModel
        A model that is fitted or made from parameters.
    {observed, held_out}
    method : str, default="auto"
        As in :func:`log_likelihood`.
    n_samples, n_particles, n_replicates, budget, options
        As in :func:`log_likelihood`.
    event : {"sequence", "counts"}, default="sequence"
        The held-out tokens in order, or their bag with its multiplicity.
    {exposure}
    doc_topic_prior, shape, covariates : array, optional
        As in :func:`log_likelihood`: priors of the documents, or covariates that determine them.
    {unseen}
    {missing words}
    {seed}
    n_jobs : int, optional
        Threads; None means all cores, or one for each task of an `executor`.
    executor : concurrent.futures.Executor, optional
        As in :func:`log_likelihood`.
    {progress}

    Returns
    -------
    LogLikelihood
        ln p of the held-out tokens of each document, in nats; 0 without held-out tokens, NaN if
        the observed tokens are impossible under the model.

    Raises
    ------
    BudgetExceededError
        If an exact request would cost more than `budget`; before any work.
    {bad argument}
    Interrupted
        A KeyboardInterrupt whose ``partial`` is the result so far.

    References
    ----------
    {Wallach 2009}

    Examples
    --------
    >>> found = pb.log_completion(model, [[2, 1, 0, 0]], [[1, 0, 0, 1]], random_state=0)
    >>> bool(found.values[0] < 0)
    True
    """
    model = as_scorable("model", model)
    settings = check_settings(
        method=method,
        event=checks.choice("event", event, EVENTS),
        given_length=True,
        n_samples=n_samples,
        n_particles=n_particles,
        n_replicates=n_replicates,
        budget=budget,
        options=options,
    )
    n_threads = threads_of_task(check_executor(executor), n_jobs)
    if isinstance(held_out, (int, float, str)):
        raise InvalidTypeError(
            f"held_out must be documents, got {held_out!r:.100}: split_tokens makes observed and "
            "held_out of a share"
        )
    model, first, second, n_unseen = _aligned(model, observed, held_out, missing_words, unseen)
    first = exposed(model, first, exposure)
    priors = GivenPriors(doc_topic_prior, shape, covariates).rows(model, first)
    first = first._with_priors(priors)
    second = second.with_exposure(first.exposure)._with_priors(priors)
    plan = ScoringPlan(model, settings, draw_seed(random_state), n_threads)
    with progress_bar(progress, first.n_documents, "document") as update:
        scores = score_corpora(plan, executor, [first, second], update)
    result = collect(
        scores,
        settings,
        n_tokens=second.counts.sum(axis=1),
        n_unseen_tokens=n_unseen,
        ids=second.ids,
        groups=distinct(first._core_documents(), second._core_documents()),
        is_ratio=True,
    )
    warn_of_caveats(result)
    return result


@shared_docs
def completion_perplexity(
    model: Any,
    documents: Any,
    method: str = "auto",
    *,
    held_out: float = 0.5,
    random_state: RandomState = None,
    **scoring: Any,
) -> Perplexity:
    """Perplexity of a random part of every document, given the rest.

    Parameters
    ----------
    model : LatentDirichletAllocation or PoissonFactorAnalysis
        A model that is fitted or made by ``from_parameters``.
    documents : Corpus, sparse matrix, integer array or DataFrame, shape (n_documents, n_words)
        The documents, divided by :func:`split_tokens`.
    method : str, default="auto"
        As in :func:`log_likelihood`.
    held_out : float, default=0.5
        Share of the tokens that is held out.
    random_state : None, int, RandomState, Generator or SeedSequence
        Seed of the split and of the estimates.
    **scoring
        Further arguments of :func:`log_completion`: `executor`, `n_jobs` and others.

    Returns
    -------
    Perplexity
        ``exp(-log_completion / held-out tokens)`` and its standard error of estimation for this
        split; NaN without held-out tokens.

    {raises: bad argument}

    References
    ----------
    {Wallach 2009}

    Examples
    --------
    >>> found = pb.completion_perplexity(model, [[4, 2, 1, 1]], random_state=0)
    >>> 1 < found.value < 10
    True
    """
    rng = random_generator(random_state)
    observed, rest = split_tokens(documents, held_out, rng)
    result = log_completion(model, observed, rest, method, random_state=rng, **scoring)
    value = result.perplexity
    return Perplexity(value, value * result.nats_per_token_std_error)


@shared_docs
def plug_in_perplexity(
    model: Any,
    observed: Any,
    held_out: Any,
    *,
    exposure: Any = None,
    missing_words: str | None = None,
) -> float:
    """Perplexity of held-out entries under point estimates of the topic weights.

    ``exp(-Σ x ln λ / Σ x)`` over the held-out counts x, with word probabilities
    ``λ_w = Σ_k φ_kw θ_k / Σ_w Σ_k φ_kw θ_k``. θ is the posterior mean of the topic weights given
    the observed tokens (Zhou & Carin 2013). This is *not* the perplexity of a likelihood, since θ
    is plugged in, not integrated out. Use it to compare with published figures, and
    :func:`completion_perplexity` for the probability of the same tokens.

    Parameters
    ----------
    model : LatentDirichletAllocation or PoissonFactorAnalysis
        A model that is fitted or made by ``from_parameters``.
    {observed, held_out}
    {exposure}
    {missing words}

    Returns
    -------
    float
        The perplexity; infinite if a held-out word has rate zero, NaN without held-out tokens.

    {raises: bad argument}

    References
    ----------
    {Zhou 2013}

    Examples
    --------
    >>> 1 < pb.plug_in_perplexity(model, [[2, 1, 0, 0]], [[1, 0, 0, 1]]) < 10
    True
    """
    model = as_scorable("model", model)
    if not (hasattr(model, "transform") and hasattr(model, "components_")):
        raise InvalidTypeError(f"model has no transform: {model!r}")
    model, first, second, _ = _aligned(model, observed, held_out, missing_words, "raise")
    documents = Corpus(first.counts, exposure=first.exposure, metadata=first.metadata)
    theta = np.array(model.transform(exposed(model, documents, exposure)))
    theta /= theta @ model.components_.sum(axis=1, keepdims=True)
    cells = sparse.coo_matrix(second.counts)
    rates = np.einsum("ik,ki->i", theta[cells.row], model.components_[:, cells.col])
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        return float(np.exp(-np.sum(cells.data * np.log(rates)) / cells.data.sum()))


def _aligned(
    model: Any, observed: Any, held_out: Any, missing_words: str | None, unseen: str
) -> tuple[Any, Corpus, Corpus, int]:
    """The model and both parts over the words that it and they have, and the tokens dropped."""
    observed, held_out = (
        read_documents([model], part, name)
        for name, part in (("observed", observed), ("held_out", held_out))
    )
    if not (observed.vocabulary is None or held_out.vocabulary is None):
        # The words of the documents are those of both parts.
        words = list(dict.fromkeys([*observed.vocabulary, *held_out.vocabulary]))
        observed, held_out = (part.aligned_to(words)[0] for part in (observed, held_out))
    model, _ = of_measured_words(model, observed, "observed", missing_words, unseen)
    first, n_first = model._aligned(observed, "observed", unseen)
    second, n_second = model._aligned(held_out, "held_out", unseen)
    return model, first, _of_the_same_documents(first, second), n_first + n_second


def _of_the_same_documents(observed: Corpus, held_out: Corpus) -> Corpus:
    """The held-out parts in the order of the observed ones, by their ids if both have them."""
    held_out = rows_by_name("held_out", held_out, observed.ids)
    if observed.n_documents != held_out.n_documents:
        raise InvalidArgumentError(
            f"observed and held_out must hold the same documents, got {observed.n_documents:,} and "
            f"{held_out.n_documents:,}"
        )
    if (
        observed.exposure is not None
        and held_out.exposure is not None
        and (observed.exposure != held_out.exposure).any()
    ):
        document = int(np.argmax(observed.exposure != held_out.exposure))
        raise InvalidArgumentError(
            f"observed and held_out must hold the same documents, but the exposures of document "
            f"{document} are {observed.exposure[document]} and {held_out.exposure[document]}"
        )
    return held_out
