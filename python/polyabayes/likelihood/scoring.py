"""Log-likelihood of documents under a model, with standard errors."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from concurrent.futures import Executor
from dataclasses import replace
from typing import Any

import numpy as np

from polyabayes._support import checks
from polyabayes._support.arrays import Integers
from polyabayes._support.docs import shared_docs
from polyabayes._support.output.progress import progress_bar
from polyabayes._support.random import RandomState, draw_seed
from polyabayes._support.warnings import warn
from polyabayes.data.corpus import of_layer
from polyabayes.exceptions import InvalidArgumentError, InvalidTypeError, TargetWarning, argument
from polyabayes.likelihood.blocks import BlockScores, ScoringPlan
from polyabayes.likelihood.foreign import (
    Scorable,
    as_scorable,
    of_measured_words,
    with_concentration,
)
from polyabayes.likelihood.methods import check_settings
from polyabayes.likelihood.priors import GivenPriors
from polyabayes.likelihood.reliability import warn_of_caveats
from polyabayes.likelihood.result import LogLikelihood
from polyabayes.likelihood.streams import documents_of
from polyabayes.likelihood.totals import Population, checked_target, score_to_target
from polyabayes.scale.executors import check_executor, threads_of_task

_LOG = logging.getLogger(__name__)

EVENTS = ("sequence", "counts")


@shared_docs
def log_likelihood(
    model: Any,
    documents: Any,
    method: str = "auto",
    *,
    n_samples: int | None = None,
    n_particles: int | None = None,
    n_replicates: int | None = None,
    target_std_error: float | None = None,
    total_std_error: float | None = None,
    nats_per_token_std_error: float | None = None,
    event: str | None = None,
    given_length: bool | None = None,
    layer: str | None = None,
    exposure: Any = None,
    doc_topic_prior: Any = None,
    shape: Any = None,
    covariates: Any = None,
    topic_concentration: Any = None,
    unseen: str = "raise",
    missing_words: str | None = None,
    budget: float | None = None,
    random_state: RandomState = None,
    n_jobs: int | None = None,
    executor: Executor | None = None,
    progress: bool = False,
    trace: bool = False,
    options: Mapping[str, Any] | None = None,
) -> LogLikelihood:
    """Log-likelihood of documents under a topic model, with topic weights integrated out.

    Parameters
    ----------
    model : LatentDirichletAllocation, PoissonFactorAnalysis, DocumentModel or foreign model
        A model that is fitted or made by ``from_parameters``, a document model with any prior, or a
        fitted model of scikit-learn (or a Pipeline that ends in one), gensim, tomotopy or
        pycisTopic: see :mod:`polyabayes.interop`.
    documents : Corpus, Shards, sparse matrix, integer array, DataFrame or iterator of these
        The documents, shape (n_documents, n_words). Equal documents are scored once. An iterator
        yields blocks of documents, with their exposures, metadata and ids. Blocks of an iterator
        and of :class:`Shards <polyabayes.scale.Shards>` are scored one after another, so the
        documents may exceed memory; but all are gathered in memory for a target of the total, or
        if an argument has a row for each document.
    method : str, default="auto"
        ==============================  =========================================  =============
        method                          what it does                               cost
        ==============================  =========================================  =============
        ``"auto"``                      exact up to 10^7 multiply-adds, else       as chosen
                                        ``"annealed"`` and a smaller run, whose
                                        difference counts as error
        ``"exact"``                     the cheapest of a dynamic programme over   K C(N+K-1, K)
                                        topic totals, one over partial documents,  or
                                        and set power series; relative error       Π C(y_w+2, 2) or
                                        near 1e-12                                 N² Π(y_w+1) / 2
        ``"annealed"``                  annealed importance sampling (Neal 2001)   S N K
                                        over topics of tokens, S temperatures;
                                        draws of topic weights where chains would
                                        be slow, see below; unbiased
        ``"smc-lookahead"``             particle filter guided by the mean field   P N K
                                        of the remaining tokens; unbiased
        ``"smc"``                       particle filter, locally optimal           P N K
                                        proposal, adaptive systematic
                                        resampling; unbiased
        ``"left-to-right"``             mean over P particles of the product over  P N² K
                                        positions; unbiased
        ``"left-to-right-particle"``    product over positions of the mean over P  P N² K
                                        particles (Wallach 2008, MALLET); biased
                                        for any P
        ``"left-to-right-sequential"``  one chain, P sweeps per position (Buntine  P N² K
                                        2009, 3.6); biased, consistent
        ``"l2r"``                       left-to-right by word type (Capdevila et   P W N K
                                        al. 2018, alg. 1), exact or sampled
                                        conditionals, mean of products; unbiased
        ``"chib"``                      Chib-style, a chain of S states (Murray &  4 S N K
                                        Salakhutdinov 2009); unbiased
        ``"mean-field"``                importance sampling by the mean field      S N
                                        (Buntine 2009, 3.3); unbiased
        ``"direct"``                    topic weights from their prior (Capdevila  S W K
                                        et al. 2018, eq. 9); unbiased, huge
                                        variance
        ``"harmonic"``                  harmonic mean over S posterior samples     S N K
                                        (Buntine 2009, 3.2); too high, errors
                                        unreliable; for comparison only
        ``"recursive"``                 deterministic approximation (Scott &       N K
                                        Baldridge); no error
        ==============================  =========================================  =============

        The cost is per replicate of one document: N tokens, W distinct words, K topics, S samples,
        P particles.

        ``"annealed"`` chooses by document (see ``methods`` of the result). It runs chains, except
        for two kinds of documents, unless the option ``"start"`` is given. With 64 or more tokens
        of few words or similar topics, it is ``"population-monte-carlo"``: S draws of topic weights
        from a mixture fitted to their posterior, at cost S (W + 160) K (Cappé et al. 2004). If no
        topic gives any word twice the probability that another gives it, it is
        ``"stratified-importance"``: S draws of topic weights, at cost S (W + 16) K.

        ``"auto"`` scores a document again, with more samples, if its replicates differ too much for
        a reliable error. This choice depends on the first estimate, so that estimates of such
        documents are slightly biased. Named methods make one estimate and keep it.
    n_samples : int, optional
        S; at least 2000 for population Monte Carlo, and 64 to 2000 for stratified draws. Default:
        by document for ``"annealed"``, 1000 for ``"direct"`` and ``"mean-field"``, 200
        for ``"harmonic"``, 50 for ``"chib"``.
    n_particles : int, optional
        P. Default: 10 for left-to-right and l2r; by document for the filters. "By document" means
        that a pilot chooses the particles (50 to 5000) or temperatures (100 to 5000) for a standard
        deviation of ln p of about 0.4 in one replicate. With fewer, long documents come out too
        low, with errors too small. With ``"auto"``, giving `n_particles` selects
        ``"smc-lookahead"`` wherever exact is too expensive.
    n_replicates : int, default=16
        Independent replicates; their mean is the estimate, and their spread its standard error.
        Where a document may need topics of tiny pseudo-counts, each replicate of ``"auto"`` is the
        mean of up to four runs.
    target_std_error : float, optional
        Standard error to aim at in each document. Pilots choose the sample size, until they reach
        the target or have spent `budget`. The final estimate is independent of the pilots, so that
        it stays unbiased; its own error can be above the target. ``reached`` marks the documents
        in which it is not, and a TargetWarning counts the others.
    total_std_error, nats_per_token_std_error : float, optional
        Standard error to reach in the sum over all documents, or in that sum per token. This is
        much cheaper than accurate values of all documents, which then serve for sums only. All
        documents get short annealing runs; ever smaller random samples get longer runs, which
        correct the short ones (multilevel Monte Carlo, Giles 2008). The error includes an upper
        limit of the bias that the longest runs leave. Needs method ``"auto"`` and no other sample
        size. If the target is not reached, ``reached`` is False, and there is a TargetWarning.
    event : {"sequence", "counts"}, optional
        The ordered tokens (default for LDA), or the bag of words with its multiplicity
        (default for gamma-Poisson).
    given_length : bool, optional
        Condition on the document's length. LDA always does; gamma-Poisson does not by default.
    {layer}
    exposure : float, array of shape (n_documents,) or str, optional
        Known size of each document (depth of a cell, time, area), which multiplies its Poisson
        rates; gamma-Poisson only. Default: the exposure of the corpus, else 1.
    doc_topic_prior : array of shape (n_documents, n_components), optional
        Dirichlet parameters of each document, in place of the model's; 0 excludes a topic from a
        document. For LDA, and for mixtures as weights of the components.
    shape : array of shape (n_documents, n_components), optional
        Gamma shapes of each document, in place of the model's; gamma-Poisson only.
    covariates : array of shape (n_documents, n_covariates) or DataFrame, optional
        Covariates of the documents, for models whose prior depends on them.
    topic_concentration : float or array of shape (n_components,), optional
        Concentrations s of bursty topics, in place of the model's: each document draws its own
        version of topic k, phi_dk ~ Dirichlet(s_k phi_k) (Doyle & Elkan 2009). Infinite ones are
        topics of LDA. For LDA and gamma-Poisson models, of other packages too;
        :func:`learn_topic_concentration` learns s.
    unseen : {"raise", "drop"}, default="raise"
        Whether words outside the model's vocabulary are refused or dropped, if model and documents
        both have a vocabulary. The result counts the dropped tokens.
    {missing words}
    budget : float, optional
        Most multiply-adds per document. Default: 1e9 (about a second) for exact sums and for
        targets, 1e11 for a method of given size. For ``"auto"`` without a target, it limits only
        the exact sums.
    random_state : None, int, RandomState, Generator or SeedSequence
        The same seed gives the same result, bit for bit, for any number of threads and any order of
        documents.
    n_jobs : int, optional
        Threads; None means all cores, or one for each task of an `executor`.
    executor : concurrent.futures.Executor, optional
        Scores blocks of documents on its workers: processes, or a cluster such as Dask's
        (``client.get_executor()``). The model is sent once. Results are the same, bit for bit.
    {progress}
    trace : bool, default=False
        Keep running estimates: after some of the samples of every replicate, or (filters,
        annealing and Chib) after some of the replicates.
    options : mapping, optional
        Options of single methods.

        * ``"mean-field"``: ``{"order": 1 or 2, "n_iterations": 20}``, order and number of its
          updates.
        * ``"l2r"``: ``{"n_conditional_samples": 10}`` estimates conditionals by that many
          multinomial draws (eq. 20) in place of exact sums.
        * ``"annealed"``: ``{"start": ...}`` runs chains in every document, from ``"mean-field"``,
          from ``"lowered"`` (mean field with raised pseudo-counts; finds topics with tiny priors),
          from ``"softened"`` (the same, and flatter words; where such topics share words)
          or from the ``"prior"`` (far worse, for comparison).

    Returns
    -------
    LogLikelihood
        Values and standard errors by document, and their total, in nats.

    Raises
    ------
    BudgetExceededError
        If a request would cost more than `budget`; before any work.
    WorkerError
        If a worker of the `executor` died and its engine did not run its task again.
    {bad argument}
    Interrupted
        A KeyboardInterrupt whose ``partial`` is the result so far.

    References
    ----------
    W. Buntine (2009). Estimating likelihoods for topic models. ACML.

    G. Doyle and C. Elkan (2009). Accounting for burstiness in topic models. ICML.

    {Wallach 2009}

    {Capdevila 2018}

    I. Murray and R. Salakhutdinov (2009). Evaluating probabilities under high-dimensional latent
    variable models. NIPS.

    M. Giles (2008). Multilevel Monte Carlo path simulation. Operations Research 56.

    R. Neal (2001). Annealed importance sampling. Statistics and Computing 11.

    O. Cappé, A. Guillin, J.-M. Marin and C. Robert (2004). Population Monte Carlo. Journal of
    Computational and Graphical Statistics 13.

    Examples
    --------
    >>> result = pb.log_likelihood(model, [[1, 1, 1, 0]])
    >>> print(f"{result.total:.12f} {result.methods[0]}")
    -4.474050553487 exact

    The total of a corpus, as exact as asked for:

    >>> data = pb.datasets.make_lda_corpus(50, 100, 10, random_state=0)
    >>> model = pb.LatentDirichletAllocation.from_parameters(
    ...     doc_topic_prior=0.5, topic_word=data.topic_word
    ... )
    >>> found = pb.log_likelihood(model, data.corpus, total_std_error=20.0, random_state=0)
    >>> found.total_std_error < 20
    True
    """
    model = as_scorable("model", model)
    if topic_concentration is not None:
        model = with_concentration(model, topic_concentration)
    event = model._default_event if event is None else checks.choice("event", event, EVENTS)
    settings = check_settings(
        method=method,
        event=event,
        given_length=conditions_on_length(model, given_length),
        n_samples=n_samples,
        n_particles=n_particles,
        n_replicates=n_replicates,
        target_std_error=target_std_error,
        budget=budget,
        trace=trace,
        options=options,
    )
    target = checked_target(total_std_error, nats_per_token_std_error, settings)
    n_threads = threads_of_task(check_executor(executor), n_jobs)
    priors = GivenPriors(doc_topic_prior, shape, covariates)
    model, documents = of_measured_words(
        model, of_layer(documents, layer), "documents", missing_words, unseen
    )
    corpus = documents_of(model, documents, unseen, exposure, priors, is_total=target is not None)
    seed = draw_seed(random_state)
    plan = ScoringPlan(model, settings, seed, n_threads)

    def score(rows: Integers | None = None, **effort: Any) -> BlockScores:
        n_documents = corpus.n_documents if rows is None else len(rows)
        # The number of documents of a stream is not known in advance.
        with progress_bar(progress, n_documents or None, "document") as update:
            return corpus.score(plan, executor, update, rows=rows, **effort)

    wanted = np.inf if target is None else target(int(corpus.n_tokens.sum()))
    if target is None:
        result = corpus.result(score(), settings)
    else:
        population = Population(corpus.groups, corpus.n_tokens, corpus.uniforms(seed))
        scores, shared, _ = score_to_target(score, population, wanted)
        result = corpus.result(scores, settings, shared)
        is_close = result.total_std_error <= wanted
        result = replace(result, reached=result.reached & is_close)
    _LOG.debug("%s documents scored", len(result.values))
    warn_of_caveats(result)
    if target is not None and not result.reached.all():
        warn(
            f"the total has a standard error of {result.total_std_error:.3g} nats, not the "
            f"{wanted:.3g} asked for: raise the target, or score documents one by one with "
            f"{argument('target_std_error')}",
            TargetWarning,
        )
    return result


def conditions_on_length(model: Scorable, given_length: bool | None) -> bool:
    """Whether to condition on the length: as given, or by default of the model."""
    if given_length is None:
        return model._conditions_on_length
    if not isinstance(given_length, (bool, np.bool_)):
        raise InvalidTypeError(f"given_length must be a bool or None, got {given_length!r}")
    if model._conditions_on_length and not given_length:
        raise InvalidArgumentError(
            f"{argument('given_length', False)}: LDA has no distribution of the document's length "
            "and always conditions on it; omit given_length, or use True for the gamma-Poisson "
            "model"
        )
    return bool(given_length)
