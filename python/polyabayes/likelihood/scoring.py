"""How probable documents are under a model: exact or unbiased, with standard errors."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from concurrent.futures import Executor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polyabayes import _core
from polyabayes._support import checks
from polyabayes._support.docs import shared_docs
from polyabayes._support.progress import progress_bar
from polyabayes._support.random import RandomState, draw_seed
from polyabayes._support.warnings import warn
from polyabayes.data.corpus import of_layer
from polyabayes.exceptions import InvalidArgumentError, InvalidTypeError, TargetWarning, argument
from polyabayes.likelihood.blocks import BlockScores, ScoringPlan
from polyabayes.likelihood.foreign import Scorable, as_scorable
from polyabayes.likelihood.methods import check_settings
from polyabayes.likelihood.priors import GivenPriors
from polyabayes.likelihood.reliability import warn_of_caveats
from polyabayes.likelihood.result import LogLikelihood, collect, interrupted
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
    unseen: str = "raise",
    budget: float | None = None,
    random_state: RandomState = None,
    n_jobs: int | None = None,
    executor: Executor | None = None,
    progress: bool = False,
    trace: bool = False,
    options: Mapping[str, Any] | None = None,
) -> LogLikelihood:
    """Log-likelihood of documents under a topic model, topic weights integrated out.

    Parameters
    ----------
    model : LatentDirichletAllocation, PoissonFactorAnalysis, DocumentModel or foreign model
        A model that is fitted or made by ``from_parameters``, a document model of any prior, or a
        fitted one of scikit-learn (or a Pipeline that ends in one), gensim, tomotopy or pycisTopic:
        see :mod:`polyabayes.interop`.
    documents : Corpus, Shards, sparse matrix, integer array, DataFrame or iterator of these
        The documents, shape (n_documents, n_words). Equal documents are scored once. Those of
        :class:`Shards <polyabayes.scale.Shards>` may be larger than memory: block by block. So may
        blocks of an iterator, each scored before the next is asked for; exposures, metadata and
        ids come with them. All are gathered where the effort is for a total, or arguments have a
        row for each document.
    method : str, default="auto"
        ==============================  =========================================  =============
        method                          what it does                               cost
        ==============================  =========================================  =============
        ``"auto"``                      exact up to 10^7 multiply-adds, else       as chosen
                                        ``"annealed"``, and a smaller run beside:
                                        their drift counts as error
        ``"exact"``                     the cheapest of two dynamic programmes,    K C(N+K-1, K)
                                        over topic totals or partial documents,    or
                                        and set power series over the latter;      Π C(y_w+2, 2) or
                                        relative error near 1e-12                  N² Π(y_w+1) / 2
        ``"annealed"``                  annealed importance sampling (Neal 2001)   S N K
                                        along urns, S temperatures; draws of
                                        topic weights where chains would be
                                        slow, see below; unbiased
        ``"smc-lookahead"``             particle filter that expects the tokens    P N K
                                        to come by their mean field; unbiased
        ``"smc"``                       particle filter, locally optimal           P N K
                                        proposal, adaptive systematic
                                        resampling; unbiased
        ``"left-to-right"``             mean over P particles of the product over  P N² K
                                        positions; unbiased
        ``"left-to-right-particle"``    product over positions of the mean over P  P N² K
                                        particles (Wallach 2008, MALLET); biased
                                        however large P
        ``"left-to-right-sequential"``  one chain, P sweeps a position (Buntine    P N² K
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
                                        not to be trusted, for comparison only
        ``"recursive"``                 deterministic screen (Scott & Baldridge);  N K
                                        no error known
        ==============================  =========================================  =============

        The cost is that of a replicate of one document: N tokens, W distinct words, K topics, S
        samples, P particles.

        Annealing chooses by document, and ``methods`` of the result names what ran: chains, or,
        without the option ``"start"``, ``"population-monte-carlo"`` (S draws of topic weights from
        a mixture that is fitted to their posterior, S (W + 160) K; Cappé et al. 2004) for 64 tokens
        and more of few words or of similar topics, and ``"stratified-importance"`` (S draws of
        topic weights, S (W + 16) K) where no topic is twice as likely to give a word as another.

        ``"auto"`` estimates a document again, with more samples, where its replicates differ too
        much for their error to be trusted. Since the first estimate decides that, the mean of such
        documents' estimates is near p and not p itself; methods that are named make one estimate,
        and accept it.
    n_samples : int, optional
        S; at least 2000 for population Monte Carlo, and 64 to 2000 for stratified draws. Default:
        by document for ``"annealed"``, 1000 for ``"direct"`` and ``"mean-field"``, 200
        for ``"harmonic"``, 50 for ``"chib"``.
    n_particles : int, optional
        P. Default: 10 for left-to-right and l2r; by document for the filters. By document means as
        many particles (50 to 5000) or temperatures (100 to 5000) as bring the standard deviation of
        ln p in one replicate down to about 0.4, which a pilot predicts. With fewer, long documents
        come out low, and their errors too small. With ``"auto"``, a number of particles asks for
        ``"smc-lookahead"`` wherever exact is too expensive.
    n_replicates : int, default=16
        Independent replicates; their mean is the estimate, their spread its standard error.
    target_std_error : float, optional
        Sample size of each document at which pilots reach this standard error, or have spent
        `budget`. The estimate itself is made afresh and accepted whatever its error is, so that
        it stays unbiased; ``reached`` tells in which documents no pilot got there.
    total_std_error, nats_per_token_std_error : float, optional
        Standard error to reach in the sum over all documents, or in that sum per token: much
        cheaper than good values of all documents, which are then for sums only. All documents take
        short annealing runs, and ever smaller random samples longer ones, which tell what the
        shorter ones leave out (multilevel Monte Carlo, Giles 2008). Lengths and samples make the
        whole cheapest; they depend on the content of the corpus, and on no chunking. Totals are
        low by a part of their error.
        With method "auto", no other size, and ``reached`` tells whether the total got there; a
        TargetWarning says where it did not.
    event : {"sequence", "counts"}, optional
        The ordered tokens (default for LDA), or the bag of words with its multiplicity
        (default for gamma-Poisson).
    given_length : bool, optional
        Condition on the document's length. LDA always does; gamma-Poisson does not by default.
    {layer}
    exposure : float, array of shape (n_documents,) or str, optional
        Known size of each document (depth of a cell, time, area), which multiplies its Poisson
        rates; gamma-Poisson only. Default: the exposure of the corpus, else 1, which is the same
        bits as none. Documents of equal counts and different exposures are different documents.
    doc_topic_prior : array of shape (n_documents, n_components), optional
        Dirichlet parameters of each document, in place of the model's; topics of 0 drop out of the
        document. For LDA and mixtures (there: weights of the components).
    shape : array of shape (n_documents, n_components), optional
        Gamma shapes of each document, likewise, for gamma-Poisson models.
    covariates : array of shape (n_documents, n_covariates) or DataFrame, optional
        Covariates of the documents, for models whose prior depends on them.
    unseen : {"raise", "drop"}, default="raise"
        What to do with words that the model's vocabulary lacks, where model and documents both
        have one. Dropped tokens are counted in the result.
    budget : float, optional
        Multiply-adds that one document may cost. Default: 1e9 (about a second) exactly or on the
        way to a target, 1e11 by a method of given size. To ``"auto"`` without a target it only says
        how far to be exact.
    random_state : None, int, RandomState, Generator or SeedSequence
        Equal seeds give equal bits, for any number of threads and any order of documents.
    n_jobs : int, optional
        Threads; None means all cores, or one for each task of an `executor`.
    executor : concurrent.futures.Executor, optional
        Scores blocks of documents on its workers: processes, or a cluster's, as those of Dask
        (``client.get_executor()``). The model is sent once. The same bits as without.
    {progress}
    trace : bool, default=False
        Keep the estimates on the way: after some of the samples of every replicate, or, for the
        filters, annealing and Chib, whose replicates are one piece, after some of the replicates.
    options : mapping, optional
        ``{"order": 1 or 2, "n_iterations": 20}`` for ``"mean-field"``: the order of its update and
        their number. ``{"n_conditional_samples": 10}`` for ``"l2r"``: conditionals by as many draws
        from a multinomial (eq. 20) in place of exact ones. ``{"start": ...}`` for ``"annealed"``:
        chains in every document, from ``"mean-field"``, from it by way of raised pseudo-counts
        (``"lowered"``: finds topics of tiny priors), or by the weights of words from the
        ``"prior"``, far worse, for comparison.

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
    target = checked_target(
        total_std_error,
        nats_per_token_std_error,
        {
            "method": settings.method != "auto",
            "n_samples": n_samples is not None,
            "n_particles": n_particles is not None,
            "n_replicates": n_replicates is not None,
            "target_std_error": target_std_error is not None,
            "trace": trace,
        },
    )
    n_threads = threads_of_task(check_executor(executor), n_jobs)
    priors = GivenPriors(doc_topic_prior, shape, covariates)
    documents = of_layer(documents, layer)
    corpus = documents_of(model, documents, unseen, exposure, priors, is_total=target is not None)
    seed = draw_seed(random_state)
    plan = ScoringPlan(model, settings, seed, n_threads)

    def score(rows: NDArray[np.int64] | None = None, **effort: Any) -> _core.Scores | BlockScores:
        n_documents = corpus.n_documents if rows is None else len(rows)
        # The number of documents of a stream is not known before they are read.
        with progress_bar(progress, n_documents or None, "document") as update:
            return corpus.score(plan, executor, update, rows=rows, **effort)

    def result_of(
        scores: _core.Scores | BlockScores, correction: float | None = None
    ) -> LogLikelihood:
        found = collect(
            scores,
            settings,
            n_tokens=corpus.n_tokens,
            n_unseen_tokens=corpus.n_unseen,
            ids=corpus.ids,
            groups=corpus.groups,
            correction_std_error=correction,
        )
        if scores.interruption is not None:
            raise interrupted(scores.interruption, found)
        return found

    wanted = np.inf if target is None else target(int(corpus.n_tokens.sum()))
    if target is None:
        result = result_of(score())
    else:
        population = Population(corpus.groups, corpus.n_tokens, corpus.uniforms(seed))
        result = result_of(*score_to_target(score, population, wanted))
    _LOG.debug("%s documents scored", len(result.values))
    warn_of_caveats(result)
    if result.total_std_error > wanted:
        warn(
            f"the total has a standard error of {result.total_std_error:.3g} nats, not the "
            f"{wanted:.3g} asked for: ask for less, or score documents one by one with "
            f"{argument('target_std_error')}",
            TargetWarning,
        )
    return result


def conditions_on_length(model: Scorable, given_length: bool | None) -> bool:
    """Whether to condition on the length: as asked for, or as the model does by default."""
    if given_length is None:
        return model._conditions_on_length
    if not isinstance(given_length, (bool, np.bool_)):
        raise InvalidTypeError(f"given_length must be a bool or None, got {given_length!r}")
    if model._conditions_on_length and not given_length:
        raise InvalidArgumentError(
            f"{argument('given_length', False)}: LDA has no law of the document's length and "
            "always conditions on it; leave given_length out, or set it for the gamma-Poisson "
            "model instead"
        )
    return bool(given_length)
