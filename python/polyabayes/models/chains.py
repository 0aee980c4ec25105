"""Several chains of one model: convergence and effective sample sizes."""

from __future__ import annotations

import math
from collections.abc import Collection
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import partial
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from sklearn.base import clone

from polyabayes._support import checks
from polyabayes._support.arrays import Floats, Indices, Integers
from polyabayes._support.docs import shared_docs
from polyabayes._support.output.arviz import import_arviz, inference_data
from polyabayes._support.output.frames import DataFrame
from polyabayes._support.random import RandomState, draw_seed, random_generator
from polyabayes._support.results import Result
from polyabayes._support.warnings import quiet
from polyabayes.data.corpus import Corpus, as_corpus
from polyabayes.exceptions import (
    Interrupted,
    InvalidArgumentError,
    InvalidTypeError,
    UnreliableErrorWarning,
    argument,
)
from polyabayes.models.latent_draws import (
    VARIABLES,
    Variable,
    check_memory,
    check_variables,
    tokens_of,
    variables_of,
)
from polyabayes.models.topic_model import TopicModel
from polyabayes.scale.executors import check_executor, sharing

# Fewest draws: each half of a chain needs two for a variance.
_FEWEST_DRAWS = 4

# Most rounds of matching the topics of draws with their mean; two or three are enough.
_MOST_ALIGNMENTS = 20

# Dimensions of the latent variables after chain and draw.
_DIMS = {"phi": ["topic", "word"], "theta": ["document", "topic"], "z": ["token"]}


@shared_docs
@dataclass(frozen=True, eq=False)
class Chains(Result):
    """Chains of one model and their draws.

    Topic 3 of one chain is not topic 3 of another, and numbers may switch within a chain. Therefore
    :meth:`summary` compares only quantities that do not depend on the numbering; vectors are sorted
    within each draw. Agreement of these does not prove that the topics agree. The variables
    ``phi``, ``theta`` and ``z``, kept on request, have the numbers of their chain; :meth:`aligned`
    matches them.

    The table has a row per draw of each chain, with every number that does not depend on the
    numbering; in notebooks, without those that each topic has.

    Attributes
    ----------
    models : list
        The fitted models, one per chain, with posterior means, traces and last samples.
    n_iter : ndarray of int, shape (n_draws,)
        Sweeps done at each draw, after burn-in and thinning.
    draws : dict of str to ndarray of shape (n_chains, n_draws, ...)
        Quantities by name:

        * ``log_joint``: ln of the joint density of words, topics of tokens and parameters, in nats,
          up to a constant.
        * ``n_active_topics``: number of topics with tokens.
        * ``topic_share`` (n_components,): shares of the tokens, largest first.
        * Learned parameters: for LDA ``doc_topic_prior_sum`` and ``topic_word_prior``; for
          gamma-Poisson ``shape`` and ``probability`` (n_components,), each sorted, largest first.
        * Requested variables: ``phi`` (n_components, n_words), ``theta`` (n_documents,
          n_components) and ``z`` (n_tokens,), as in
          :meth:`LatentDirichletAllocation.posterior_draw`.
    corpus : Corpus or None
        The documents, if variables were requested.
    topics : ndarray of int, shape (n_chains, n_draws, n_components), or None
        For aligned chains: the topic's number in its chain, by place in a draw.

    Examples
    --------
    >>> corpus = pb.datasets.make_lda_corpus(20, 30, 2, random_state=0).corpus
    >>> lda = pb.LatentDirichletAllocation(2, max_iter=20, thin=1, random_state=0)
    >>> chains = pb.sample_chains(lda, corpus, n_chains=2)
    >>> len(chains.models)
    2
    """

    models: list[TopicModel]
    n_iter: Integers
    draws: dict[str, NDArray[Any]]
    corpus: Corpus | None = None
    topics: Indices | None = None

    def __repr__(self) -> str:
        return f"<Chains: {len(self.models)} chains, {len(self.n_iter):,} draws each>"

    @property
    def best(self) -> TopicModel:
        """The model of the chain with the largest mean log joint density.

        Chains may stay in different modes of the posterior; use this model if you need only one.
        """
        return self.models[int(np.argmax(self.draws["log_joint"].mean(axis=1)))]

    def aligned(self) -> Chains:
        """Renumber topics, so that topic k is the same in all draws.

        Topics of each draw are matched one to one with the mean over draws, maximising the sum of
        cosines, until no number changes; the first mean is that of :attr:`best`. ``phi``, ``theta``
        and ``z`` are renumbered, so that their means and standard deviations over chains and draws
        are meaningful. The models keep their numbers.

        Returns
        -------
        Chains

        Raises
        ------
        InvalidArgumentError
            If ``phi`` was not requested.

        References
        ----------
        M. Stephens (2000). Dealing with label switching in mixture models. JRSS B 62.

        Examples
        --------
        >>> corpus = pb.datasets.make_lda_corpus(40, 30, 2, random_state=0).corpus
        >>> lda = pb.LatentDirichletAllocation(2, max_iter=40, thin=1, random_state=0)
        >>> chains = pb.sample_chains(lda, corpus, n_chains=2, variables="phi").aligned()
        >>> phi = chains.draws["phi"]
        >>> phi.mean(axis=(0, 1)).shape, bool(phi.std(axis=(0, 1)).max() < 0.2)
        ((2, 30), True)
        """
        if "phi" not in self.draws:
            raise InvalidArgumentError(
                "topics are matched by their words: sample_chains keeps these with "
                f"{argument('variables', 'phi')}"
            )
        phi = self.draws["phi"]
        shape, rows = phi.shape[:2], phi.reshape(-1, *phi.shape[2:])
        rows = rows / np.linalg.norm(rows, axis=2, keepdims=True)
        reference, order = self.best.components_, np.zeros(0, np.intp)
        for _ in range(_MOST_ALIGNMENTS):
            unit = reference / np.linalg.norm(reference, axis=1, keepdims=True)
            before = order
            order = np.array([linear_sum_assignment(-unit @ row.T)[1] for row in rows])
            if np.array_equal(order, before):
                break
            reference = np.take_along_axis(rows, order[:, :, np.newaxis], axis=1).mean(axis=0)
        topics = order.reshape(*shape, -1)
        draws = dict(self.draws, phi=np.take_along_axis(phi, topics[..., np.newaxis], axis=2))
        if "theta" in draws:
            draws["theta"] = np.take_along_axis(draws["theta"], topics[:, :, np.newaxis], axis=3)
        if "z" in draws:
            places = np.argsort(topics, axis=2).astype(draws["z"].dtype)
            draws["z"] = np.take_along_axis(places, draws["z"].astype(np.intp), axis=2)
        return replace(self, draws=draws, topics=topics)

    def summary(self) -> DataFrame:
        """Posterior summary and convergence of every quantity except the variables, by ArviZ.

        Returns
        -------
        pandas.DataFrame
            One row per quantity: ``mean`` and ``std`` over all draws; ``mcse_mean``, the Monte
            Carlo error of the mean; ``ess_bulk`` and ``ess_tail``, effective sample sizes; and
            ``r_hat``, the rank-normalised split R-hat (Vehtari et al. 2021), which should be below
            1.01. NaN for constant quantities.

        {raises: no ArviZ}

        References
        ----------
        A. Vehtari et al. (2021). Rank-normalization, folding, and localization: an improved R-hat.
        Bayesian Analysis 16(2).

        Examples
        --------
        >>> corpus = pb.datasets.make_lda_corpus(20, 30, 2, random_state=0).corpus
        >>> lda = pb.LatentDirichletAllocation(2, max_iter=20, thin=1, random_state=0)
        >>> chains = pb.sample_chains(lda, corpus, n_chains=2)
        >>> bool((chains.summary()["ess_bulk"] > 0).any())
        True
        """
        arviz = import_arviz("summary")
        import pandas as pd

        rows = {name: _diagnosed(arviz, draws) for name, draws in self._scalars().items()}
        return pd.DataFrame.from_dict(rows, orient="index")

    def to_inference_data(self) -> Any:
        """Convert the draws for ArviZ.

        Returns
        -------
        arviz.InferenceData, or xarray.DataTree from ArviZ 1.0 on
            A ``posterior`` group with dimensions (chain, draw) and, for values per topic, ``rank``
            (0 is the largest). ``log_joint`` is ``lp`` in ``sample_stats``. ``phi`` has dimensions
            ``topic`` and ``word``; ``theta`` has ``document`` and ``topic``; ``z`` has ``token``,
            with documents and words of tokens in ``constant_data``. Names of words and documents
            are coordinates. R-hat of these variables compares topics by number, so use
            :meth:`aligned` chains. Models with covariates add ``coefficients`` with dimensions
            ``topic`` and ``covariate``.

        {raises: no ArviZ}

        Examples
        --------
        >>> corpus = pb.datasets.make_lda_corpus(20, 30, 2, random_state=0).corpus
        >>> lda = pb.LatentDirichletAllocation(2, max_iter=20, thin=1, random_state=0)
        >>> chains = pb.sample_chains(lda, corpus, n_chains=2)
        >>> data = chains.to_inference_data()
        >>> data.posterior.sizes["chain"]
        2
        """
        posterior = dict(self.draws)
        log_joint = posterior.pop("log_joint")
        kept = [name for name in VARIABLES if name in posterior]
        dims = {name: ["rank"] for name, draws in posterior.items() if draws.ndim == 3}
        dims |= {name: _DIMS[name] for name in kept}
        coords, constant = {}, {}
        if self.corpus is not None:
            labelled = {axis for name in kept for axis in _DIMS[name]}
            coords = {axis: x for axis, x in _names_of(self.corpus).items() if axis in labelled}
        if all(hasattr(model, "coefficient_draws_") for model in self.models):
            # Every sweep after burn-in; the other draws are thinned.
            places = self.n_iter - self.models[0]._schedule().burn_in - 1
            drawn = [model.coefficient_draws_[places] for model in self.models]
            posterior["coefficients"] = np.stack(drawn)
            if self.topics is not None:
                own = self.topics[..., np.newaxis]
                posterior["coefficients"] = np.take_along_axis(posterior["coefficients"], own, 2)
            dims["coefficients"] = ["topic", "covariate"]
            coords["covariate"] = self.models[0].covariate_names_
        if self.corpus is not None and "z" in kept:
            documents, words = tokens_of(self.corpus)
            constant = {"token_document": documents, "token_word": words}
            dims |= {name: ["token"] for name in constant}
        return inference_data(posterior, log_joint, dims, coords, constant)

    def _columns(self) -> dict[str, Any]:
        columns: dict[str, Any] = {
            "chain": np.repeat(np.arange(len(self.models)), len(self.n_iter)),
            "n_iter": np.tile(self.n_iter, len(self.models)),
        }
        return columns | {name: draws.ravel() for name, draws in self._scalars().items()}

    def _repr_html_(self) -> str:
        single = {name: draws for name, draws in self.draws.items() if draws.ndim == 2}
        return Result._repr_html_(replace(self, draws=single))

    def _scalars(self) -> dict[str, Floats]:
        """One array of shape (n_chains, n_draws) per number."""
        scalars: dict[str, Floats] = {}
        for name, draws in self.draws.items():
            if draws.ndim == 2:
                scalars[name] = draws
            elif name not in VARIABLES:
                scalars |= {f"{name}[{i}]": draws[..., i] for i in range(draws.shape[2])}
        return scalars


# Bytes of a fitted model without its topics, from its pickle with four draws.
_MODEL_BYTES = 1_500


@shared_docs
def sample_chains(
    estimator: TopicModel,
    X: Any,
    n_chains: int = 4,
    *,
    variables: str | Collection[str] = (),
    random_state: RandomState = None,
    executor: Executor | None = None,
) -> Chains:
    """Train a model several times from independent starts, and record the draws.

    Parameters
    ----------
    estimator : LatentDirichletAllocation or PoissonFactorAnalysis
        The model to train; it is copied. Its ``max_iter``, ``burn_in`` and ``thin`` determine which
        sweeps are draws; its ``random_state`` is ignored.
    {X}
    n_chains : int, default=4
        Number of chains, at least 2; without an executor, they run one after another.
    variables : collection of {"phi", "theta", "z"}, default=()
        Variables whose draws are kept: word probabilities of topics, topic weights of documents,
        topics of tokens. A value takes 8 bytes (``z``: 2); ``thin`` of the estimator limits the
        number of draws.
    random_state : None, int, RandomState, Generator or SeedSequence
        Seed of all chains. The same seed gives the same result, bit for bit; a chain does not
        depend on the number of later chains.
    executor : concurrent.futures.Executor, optional
        Runs the chains, each on ``n_jobs`` threads of the estimator or one, on processes or the
        workers of a cluster. Results are the same, bit for bit.

    Returns
    -------
    Chains

    Raises
    ------
    InvalidArgumentError
        If the schedule leaves fewer than four draws, `estimator` is not trained by Gibbs sampling
        or has a ``checkpoint`` (a resumed run has lost earlier draws), or there is no such
        variable.
    BudgetExceededError
        If the machine cannot hold the draws of the variables; before any work.
    Interrupted
        On Ctrl-C; ``partial`` holds the complete chains.
    WorkerError
        If a worker died and its engine did not rerun its chain.

    References
    ----------
    {Griffiths 2004}

    Examples
    --------
    >>> data = pb.datasets.make_lda_corpus(100, 50, 3, random_state=0)
    >>> lda = pb.LatentDirichletAllocation(3, max_iter=60, thin=2)
    >>> chains = pb.sample_chains(lda, data.corpus, 2, variables=("phi", "z"), random_state=0)
    >>> chains
    <Chains: 2 chains, 15 draws each>
    >>> chains.draws["phi"].shape
    (2, 15, 3, 50)
    """
    if not isinstance(estimator, TopicModel):
        raise InvalidTypeError(f"estimator must be a topic model, got {type(estimator).__name__}")
    if not estimator._samples():
        raise InvalidArgumentError(
            f"estimator must be trained by Gibbs sampling: {estimator!r} is not"
        )
    if estimator.checkpoint is not None:
        raise InvalidArgumentError("estimator must have checkpoint=None: chains record every draw")
    corpus = as_corpus(X, "X")
    checks.whole_number("n_chains", n_chains, 2)
    schedule = estimator._schedule()
    n_iter = range(schedule.burn_in + schedule.thin, schedule.max_iter + 1, schedule.thin)
    if len(n_iter) < _FEWEST_DRAWS:
        raise InvalidArgumentError(
            f"max_iter, burn_in and thin leave {len(n_iter)} draws per chain, too few to assess "
            f"convergence: leave at least {_FEWEST_DRAWS}"
        )
    names = check_variables(variables)
    topic_bytes = 8 * estimator._n_topics() * corpus.n_words
    checks.fits("n_chains", n_chains, _MODEL_BYTES + topic_bytes)
    kept = variables_of(corpus, estimator._n_topics(), names)
    check_memory(kept, n_chains, len(n_iter))
    generator = random_generator(random_state)
    seeds = [draw_seed(generator) for _ in range(n_chains)]
    executor, threads = check_executor(executor), estimator.n_jobs
    if executor is not None and threads is None:
        estimator = clone(estimator).set_params(n_jobs=1)
    plan = _Plan(estimator, corpus, n_iter, math.gcd(schedule.burn_in, schedule.thin), kept)
    tasks, done = [(seed,) for seed in seeds], dict[int, _Chain]()
    try:
        with sharing(executor, plan) as workers:
            for chain, (model, draws) in workers.run(
                _run_chain, tasks, lambda chain: f"chain {chain + 1}"
            ):
                done[chain] = _Chain(model.set_params(n_jobs=threads), draws)
    except KeyboardInterrupt as interruption:
        where = f"in chain {len(done) + 1}" if executor is None else f"after {len(done)} chains"
        message = f"stopped {where} of {n_chains}"
        raise Interrupted(message, _chains(done, plan)) from interruption
    return _chains(done, plan)


class _Plan(NamedTuple):
    """Inputs shared by all chains."""

    estimator: TopicModel
    corpus: Corpus
    n_iter: range
    # Callbacks run at multiples of their period; this period includes every kept sweep.
    every: int
    variables: dict[str, Variable]


class _Chain(NamedTuple):
    """A complete chain: the model, and its draws by name, shape (n_draws, ...)."""

    model: TopicModel
    draws: dict[str, NDArray[Any]]


def _run_chain(plan: _Plan, seed: int) -> _Chain:
    model = clone(plan.estimator).set_params(random_state=seed)
    kept: list[dict[str, Any]] = []
    variables = {
        name: np.empty((len(plan.n_iter), *variable.shape), dtype=variable.dtype)
        for name, variable in plan.variables.items()
    }
    record = partial(_record, kept, variables, plan.n_iter)
    with quiet(UnreliableErrorWarning):  # chains have diagnostics of their own
        model.fit(plan.corpus, eval_every=plan.every, callback=record)
    joint = dict(zip(model.trace_.n_iter, model.trace_.log_joint, strict=True))
    summaries = {name: np.array([draw[name] for draw in kept]) for name in kept[0]}
    log_joint = np.array([joint[n] for n in plan.n_iter])
    return _Chain(model, {"log_joint": log_joint, **summaries, **variables})


def _record(
    kept: list[dict[str, Any]], variables: dict[str, NDArray[Any]], n_iter: range, model: TopicModel
) -> None:
    """Record summaries of the state that do not depend on topic numbers, and variables."""
    if model.n_iter_ not in n_iter:
        return
    if variables:
        for name, draw in model.posterior_draw(tuple(variables)).items():
            variables[name][len(kept)] = draw
    counts = model.topic_counts_
    kept.append(
        {
            "n_active_topics": float((counts > 0).sum()),
            "topic_share": np.sort(counts / counts.sum())[::-1],
            **model._learned_state(),
        }
    )


def _chains(done: dict[int, _Chain], plan: _Plan) -> Chains:
    """The complete chains in order; their arrays are freed one by one."""
    chains = [done[chain] for chain in sorted(done)]
    draws: dict[str, NDArray[Any]] = {}
    for name in list(chains[0].draws) if chains else []:
        shape, dtype = chains[0].draws[name].shape, chains[0].draws[name].dtype
        draws[name] = np.empty((len(chains), *shape), dtype=dtype)
        for row, chain in zip(draws[name], chains, strict=True):
            row[...] = chain.draws.pop(name)
    corpus = plan.corpus if plan.variables else None
    return Chains([chain.model for chain in chains], np.array(plan.n_iter), draws, corpus)


def _names_of(corpus: Corpus) -> dict[str, NDArray[Any]]:
    """Names of words and documents, if any, by dimension."""
    named = {"word": corpus.vocabulary, "document": corpus.ids}
    return {name: np.asarray(labels, str) for name, labels in named.items() if labels is not None}


def _diagnosed(arviz: ModuleType, draws: Floats) -> dict[str, float]:
    row = {"mean": float(draws.mean()), "std": float(draws.std(ddof=1))}
    moved = np.ptp(draws) > 0
    measures = {
        "mcse_mean": partial(arviz.mcse, method="mean"),
        "ess_bulk": partial(arviz.ess, method="bulk"),
        "ess_tail": partial(arviz.ess, method="tail", prob=(0.05, 0.95)),
        "r_hat": partial(arviz.rhat, method="rank"),
    }
    return row | {name: float(of(draws)) if moved else np.nan for name, of in measures.items()}
