"""Base class of the two topic models: training of fitted models."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from functools import partial
from importlib import metadata
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.validation import validate_data

from polyabayes import _core
from polyabayes._support import checks
from polyabayes._support.arrays import Floats, Integers
from polyabayes._support.docs import shared_docs
from polyabayes._support.posterior_draws import n_effective, shortage
from polyabayes._support.random import draw_seed
from polyabayes._support.storage.state_folder import fingerprint_of
from polyabayes._support.warnings import quiet, warn
from polyabayes.data.corpus import Corpus, as_corpus, of_layer
from polyabayes.data.counts import words_of
from polyabayes.exceptions import (
    Interrupted,
    InvalidArgumentError,
    InvalidTypeError,
    UnreliableErrorWarning,
    argument,
)
from polyabayes.likelihood.foreign import exposed
from polyabayes.likelihood.scoring import log_likelihood
from polyabayes.models.bursty_topics import BurstyTopics, check_in_memory, concentration_of
from polyabayes.models.fitted.covariates import learn_design
from polyabayes.models.fitted.topic_table import TopicTable, topic_table
from polyabayes.models.fitting import (
    USUAL_START,
    Checkpoint,
    CheckpointPeriod,
    EvaluationSchedule,
    LastState,
    Schedule,
    StartLength,
    all_or_nothing,
    fingerprint,
    run,
    source_of,
)
from polyabayes.models.latent_draws import TokenTopics
from polyabayes.models.traces import BoundTrace, TrainingTrace
from polyabayes.scale.executors import check_executor, threads_of_task
from polyabayes.scale.shards import Shards

# The first sweeps use the mean of phi, not a draw: on AP this saves a quarter of the sweeps.
WARM_UP = 30
MOST_SWEEPS = 10**9
_MOST_TOPICS = 2**16 - 1

# Fields of the schedule that two runs must share for one to resume the other.
_KEPT_OF_SCHEDULE = ("burn_in", "warm_up", "thin", "start_sweeps", "n_init", "seed")

# Attributes of an earlier training that a new one need not replace.
_OF_A_TRAINING = (
    "topic_names_",
    *("feature_names_in_", "provenance_", "components_std_"),
    *("bound_", "_bound_is_of", "_last"),
    *("_design", "covariate_names_", "coefficients_", "coefficient_draws_"),
    *("topic_concentration_draws_", "_told_of_draws"),
)

# Effort of one evaluation of held-out documents: a trace needs only tenths of a nat per document.
_EVALUATION: dict[str, Any] = {"n_samples": 20, "n_replicates": 16}
_EVALUATION |= {"event": "sequence", "given_length": True}


class PreviousState(NamedTuple):
    """Result of training on earlier documents, for `partial_fit`.

    `topic_priors` are Dirichlet parameters, words x topics; `topic_counts` are tokens of each
    topic.
    """

    topic_priors: Floats
    topic_counts: Integers


@shared_docs
class TopicModel(BurstyTopics):
    """Base class of the topic models; not made directly."""

    # Overrides the model's own start.
    _start: StartLength | None = None
    _optional_arrays = (
        *("topic_counts_", "coefficients_", "coefficient_draws_"),
        *("topic_concentration_", "topic_concentration_draws_"),
    )

    max_iter: int
    burn_in: int | None
    thin: int
    n_init: int
    checkpoint: Any
    checkpoint_every: int | str
    formula: str | None

    topic_counts_: NDArray[Any]
    topic_word_prior_: float
    trace_: TrainingTrace | BoundTrace

    def fit(
        self,
        X: Any,
        y: Any = None,  # noqa: ARG002
        *,
        layer: str | None = None,
        exposure: Any = None,
        covariates: Any = None,
        eval_corpus: Any = None,
        eval_every: int = 10,
        callback: Callable[[Self], Any] | None = None,
        executor: Executor | None = None,
    ) -> Self:
        """Train the model by Gibbs sampling (LDA also by EM, NMF by multiplicative updates).

        Peak memory besides the corpus is about 70 bytes per distinct word of each document, 6 per
        further token, and 22 per topic and word of the vocabulary, or 40 if most words have tokens
        of most topics; `callback` and `eval_corpus` add 30, `checkpoint` adds 45. There is no array
        of documents x topics. If there is no memory for the topics, they are refused before any
        work.

        Documents may be :class:`Shards <polyabayes.scale.Shards>`, larger than memory: Gibbs
        sampling holds about a million of their tokens at a time. The result is the same as in
        memory, bit for bit, for any number of shards and workers. Topics of tokens are kept in
        files in `checkpoint`, or in a temporary folder next to the shards. With `checkpoint`, the
        same call resumes a killed run from its last sweep, for any `checkpoint_every`, on any
        workers.

        Parameters
        ----------
        X : Corpus, Shards, sparse matrix, integer array or DataFrame, shape (n_documents, n_words)
            The documents.
        {y}
        {layer}
        exposure : float, array of shape (n_documents,) or str, optional
            Known sizes of the documents, which multiply their Poisson rates; a column of
            ``metadata``, or ``"total"``, as for :meth:`polyabayes.Corpus.with_exposure`. Default:
            the exposure of the corpus or shards, else 1. LDA is conditional on the lengths of
            documents: it refuses this argument, and ignores exposures of a corpus.
        covariates : DataFrame or array of shape (n_documents, n_covariates), optional
            Covariates of the documents, on which their priors depend. Numbers are used unchanged,
            other columns are coded by levels, with the first as reference; an intercept is added.
            With ``formula``, the table with its columns. Default: ``corpus.metadata`` with a
            ``formula``, else no covariates. Documents must be in memory.
        eval_corpus : like `X`, optional
            Gibbs sampling only: held-out documents (a Corpus, if they have exposures or
            covariates). Their nats per token, from a few short annealing runs per document, are
            recorded in ``trace_``.
        eval_every : int, default=10
            Sweeps between entries of ``trace_`` and between calls of `callback`. Not for EM.
        callback : callable, optional
            Called with the model as training would return it then; True ends training. An exception
            in it ends training and is raised; the model stays usable. In a callback,
            :meth:`posterior_draw` gives topics, topic weights and topics of tokens. Not for EM.
        executor : concurrent.futures.Executor, optional
            Shards only: draws their tokens on its workers, with one thread per task unless `n_jobs`
            is given. Shards and `checkpoint` must be on storage that all workers share. Default:
            this process.

        Returns
        -------
        self

        Raises
        ------
        BudgetExceededError, FileAccessError, FileFormatError, InvalidArgumentError
            If there is no memory for the topics, or `checkpoint` is unreadable or of another run;
            before any work. If shards are damaged or changed, or their files cannot be written.
        InvalidArgumentError, InvalidTypeError, NotFittedError
            If an option has no effect for the fit method or the documents, or `init` is not a valid
            start.
        WorkerError
            If a worker died and its engine did not rerun its tasks: the same call with a new
            executor resumes from `checkpoint`.
        Interrupted
            On Ctrl-C: a KeyboardInterrupt, raised after the current state has been stored in the
            model, which is usable. Before the first sweep, it is a plain KeyboardInterrupt, and the
            model is unchanged.

        References
        ----------
        {Griffiths 2004}

        {Blei 2003}

        M. Zhou and L. Carin (2013). Negative binomial process count and mixture modeling. IEEE
        TPAMI 37(2).

        Examples
        --------
        >>> counts = [[3, 1, 0, 0], [2, 2, 0, 0], [0, 0, 1, 3], [0, 0, 2, 2]]
        >>> pfa = pb.PoissonFactorAnalysis(2, max_iter=20, random_state=0)
        >>> pfa.fit(counts, eval_corpus=counts, eval_every=10).n_iter_
        20
        >>> len(pfa.trace_.to_frame())
        2
        >>> bool(pb.LatentDirichletAllocation(2, fit_method="em").fit(counts).bound_ < 0)
        True
        """
        if check_executor(executor) is not None and not isinstance(X, Shards):
            raise InvalidArgumentError(
                f"{argument('executor')} is for documents from write_shards: training in memory "
                f"uses the threads of {argument('n_jobs')}"
            )
        given = {"covariates": covariates, "eval_corpus": eval_corpus, "callback": callback}
        unasked = {name: (value, None) for name, value in given.items()}
        self._check_arguments(eval_every=(eval_every, 10), **unasked)
        with all_or_nothing(self):
            looks = self._looks(eval_corpus, eval_every, callback)
            return self._fit(of_layer(X, layer), exposure, covariates, looks, executor)

    def fit_transform(
        self,
        X: Any,
        y: Any = None,  # noqa: ARG002
        *,
        layer: str | None = None,
        exposure: Any = None,
        covariates: Any = None,
        **fit_params: Any,
    ) -> Any:
        """Train the model, and return the topic weights of the same documents.

        Parameters
        ----------
        {X}
        {y}
        layer, exposure, covariates : optional
            As for :meth:`fit` and :meth:`transform`.
        **fit_params
            Further arguments of ``fit``.

        Returns
        -------
        ndarray of shape (n_documents, n_components)
            As from ``transform``.

        Raises
        ------
        InvalidArgumentError, InvalidCountsError, InvalidTypeError
            As for ``fit``.

        Examples
        --------
        >>> counts = [[3, 1, 0, 0], [2, 2, 0, 0], [0, 0, 1, 3], [0, 0, 2, 2]]
        >>> pfa = pb.PoissonFactorAnalysis(2, max_iter=20, random_state=0)
        >>> pfa.fit_transform(counts, exposure=[1, 1, 2, 2]).shape
        (4, 2)
        """
        X = of_layer(X, layer)
        known = {"exposure": exposure, "covariates": covariates}
        return self.fit(X, **known, **fit_params).transform(X, **known)

    def _check_arguments(self, **of_fit: tuple[Any, Any]) -> None:
        """Refuse arguments without effect for the fit method, by pairs of value and default."""

    def _fit(
        self,
        X: Any,
        exposure: Any,
        covariates: Any,
        looks: EvaluationSchedule,
        executor: Executor | None,
    ) -> Self:
        self._has_exposure = False
        given: Any = X if isinstance(X, Shards) else as_corpus(X, "X")
        documents: Corpus | Shards = exposed(self, given, exposure)
        n_components = self._n_topics()
        schedule = self._schedule()._replace(n_jobs=threads_of_task(executor, self.n_jobs))
        period = CheckpointPeriod(self.checkpoint_every)
        self._check_tokens(documents)
        train = self._training(documents, n_components)
        concentration = concentration_of(self.topic_concentration, n_components)
        if concentration is not None:
            check_in_memory(documents)
            train = partial(train, topic_concentration=concentration)
        identity = dict(train.keywords)
        design, rows = learn_design(documents, covariates, self.formula)
        if design is not None:
            train = partial(train, covariates=rows)
            identity["covariates"] = fingerprint_of(rows.shape, rows)
        hashed = fingerprint(documents)
        identity = self._identity(hashed, schedule, identity)
        origin = documents, self.checkpoint, identity, period, schedule, executor
        with source_of(*origin) as (tokens, state, checkpoint):
            training = train(tokens, documents.n_words, schedule=schedule, state=state)
            self._begin(X, documents, hashed, schedule.seed)
            if design is not None:
                self._take_design(design)
            self._rows = rows
            take = partial(self._take, documents, None, training)
            return self._sample(training, schedule, looks, take, checkpoint)

    def _begin(self, X: Any, documents: Corpus | Shards, hashed: str, seed: int) -> None:
        """Store properties of the training documents in place of an earlier training."""
        for name in _OF_A_TRAINING:
            self.__dict__.pop(name, None)
        self.n_features_in_, self.vocabulary_ = documents.n_words, documents.vocabulary
        self.topic_concentration_ = np.full(self.n_components, np.inf)
        self._has_exposure = documents.exposure is not None
        self._trained_on, self.seed_ = hashed, seed
        words = None if documents.vocabulary is None else list(documents.vocabulary)
        if hasattr(X, "columns") and list(X.columns) == words:
            validate_data(self, X, reset=True, skip_check_array=True)

    def _check_tokens(self, documents: Corpus | Shards) -> None:
        if not documents.n_tokens:
            raise InvalidArgumentError(f"{argument('X')} holds no tokens: every document is empty")

    def _looks(
        self, eval_corpus: Any, eval_every: int, callback: Callable[[Self], Any] | None
    ) -> EvaluationSchedule:
        """Evaluations during a run, from the arguments of ``fit``."""
        evaluate = None
        if eval_corpus is not None:
            self._check_evaluation()
            evaluate = partial(self._evaluate, as_corpus(eval_corpus, "eval_corpus"))
        if callback is not None and not callable(callback):
            raise InvalidTypeError(f"callback must be a function, got {callback!r:.100}")
        ask = None if callback is None else partial(callback, self)
        return EvaluationSchedule(eval_every, evaluate, ask)

    @property
    def n_active_(self) -> int:
        """K+: topics with at least one token in the last state of ``fit``."""
        return int(np.count_nonzero(self.topic_counts_ >= 1))

    def topic_table(self, n_words: int = 10, vocabulary: Any = None) -> TopicTable:
        """List the topics by their share of the training tokens, largest first.

        Parameters
        ----------
        n_words : int, default=10
            Number of most probable words per topic.
        vocabulary : sequence of str, one per column, or fitted vectoriser, optional
            The words of the columns; default: the words of the training documents. Counts from a
            vectoriser in a Pipeline have no words: use ``pipeline[-1].topic_table(vocabulary=
            pipeline[:-1])``.

        Returns
        -------
        TopicTable
            One row per topic; the first ``n_active_`` topics have tokens.

        Raises
        ------
        InvalidArgumentError
            If the model was not trained here, so that token counts are unknown, or there is not one
            word for each column.
        NotFittedError
            If the model is not fitted.

        Examples
        --------
        >>> counts = [[3, 1, 0, 0], [2, 2, 0, 0], [0, 0, 1, 3], [0, 0, 2, 2]]
        >>> lda = pb.LatentDirichletAllocation(2, max_iter=20, random_state=0).fit(counts)
        >>> len(lda.topic_table(n_words=2).to_frame())
        2
        """
        self._check_fitted()
        checks.whole_number("n_words", n_words)
        if not hasattr(self, "topic_counts_"):
            raise InvalidArgumentError(
                "the model does not know how many tokens its topics have: call fit"
            )
        words = words_of(vocabulary, self.n_features_in_, "the model")
        if words is None:
            words = self.vocabulary_
        names = getattr(self, "topic_names_", None)
        return topic_table(self.components_, self.topic_counts_, words, n_words, names)

    def _sample(
        self,
        training: _core.Training,
        schedule: Schedule,
        looks: EvaluationSchedule,
        take: Callable[..., None],
        checkpoint: Checkpoint | None = None,
    ) -> Self:
        """Run the sampler and store its result, whatever ends it."""
        interruption = run(training, schedule, looks, take, checkpoint, progress=self.progress)
        return self._conclude(partial(take, release=True), looks, interruption)

    def _conclude(
        self,
        take: Callable[[], None],
        looks: EvaluationSchedule,
        interruption: BaseException | None,
    ) -> Self:
        """Store the result of a run; raise the exception that ended it, if any."""
        try:
            take()
        except KeyboardInterrupt as error:
            interruption = error
            take()
        for name in ("_tokens", "_rows"):
            self.__dict__.pop(name, None)
        self.trace_ = looks.trace()
        if isinstance(interruption, KeyboardInterrupt):
            raise Interrupted(f"stopped after {self.n_iter_:,} of {self.max_iter:,} sweeps", self)
        if interruption is not None:
            raise interruption
        self._warn_of_few_draws()
        return self

    def _warn_of_few_draws(self) -> None:
        """Say how long to train, if the draws of coefficients are too few for intervals."""
        draws: Floats = getattr(self, "coefficient_draws_", np.empty(0))
        if len(draws) and (short := shortage(draws)) > 1:
            self._told_of_draws = True
            added = (short - 1) * (self.n_iter_ if self.burn_in is None else len(draws))
            warn(
                f"the {len(draws):,} draws of coefficients are worth {n_effective(draws).min():.0f}"
                " independent ones where fewest, so that intervals of prevalence are too narrow: "
                f"train with max_iter={float(f'{self.n_iter_ + added:.2g}'):.0f} or more",
                UnreliableErrorWarning,
            )

    def _take(
        self,
        documents: Corpus | Shards,
        before: PreviousState | None,
        training: _core.Training,
        *,
        release: bool = False,
    ) -> None:
        """Store the result of a run; `before` is the result of earlier documents, if any.

        The memory of the run is freed first if `release`: the run is over.
        """
        tables = sparse.csr_array(*training.tables())
        topics, self.components_std_, others = training.mean(release)
        parameters, draws = training.parameters(), training.kept_coefficients()
        self.components_ = row_normalised(topics)
        self._seal()
        concentration = concentration_of(self.topic_concentration, len(self.components_))
        if isinstance(concentration, str):
            *ends, draws = self._take_concentrations([others, parameters], draws)
            (others, _), (parameters, last) = ends
            concentration = np.exp(last)
        elif concentration is not None:
            self.topic_concentration_ = concentration
        n_own = self._take_parameters(others)
        if hasattr(self, "_design"):
            self._take_coefficients(others[n_own:-1], draws)
        prior = self._topic_prior(parameters) if before is None else before.topic_priors
        if concentration is None:
            concentration = self.topic_concentration_
        self._last = LastState(tables, prior, parameters, concentration)
        self.topic_counts_ = tables.sum(axis=1)
        assigned = training.assignments()
        if isinstance(documents, Corpus) and assigned is not None:
            self._tokens = TokenTopics(documents, assigned)
            self.topic_counts_ = np.bincount(assigned, minlength=len(topics))
        if before is not None:
            self.topic_counts_ += before.topic_counts
        self.n_iter_ = training.n_sweeps

    def _evaluate(self, held_out: Corpus) -> tuple[float, float]:
        """Nats per token, and their error, from a few short runs."""
        run = {"random_state": self.seed_, "n_jobs": self.n_jobs} | _EVALUATION
        with quiet():
            result = log_likelihood(self, held_out, "annealed", **run)
        return result.nats_per_token, result.nats_per_token_std_error

    def _identity(
        self, corpus: str, schedule: Schedule, parameters: dict[str, Any]
    ) -> dict[str, Any]:
        """Properties that two runs must share for one to resume the other.

        `corpus` is the fingerprint of the documents, `parameters` are the sampler's.
        """
        kept = {name: getattr(schedule, name) for name in _KEPT_OF_SCHEDULE}
        return {
            "model": type(self).__name__,
            "version of polyabayes": metadata.version("polyabayes"),
            "corpus": corpus,
            **{name: _plain(value) for name, value in parameters.items()},
            **kept,
        }

    def _check_parameters(self) -> None:
        """Refuse parameters that are invalid for any documents."""
        concentration_of(self.topic_concentration, self._n_topics())
        self._schedule()
        CheckpointPeriod(self.checkpoint_every)

    def _n_topics(self) -> int:
        return checks.whole_number("n_components", self.n_components, 1, _MOST_TOPICS)

    def _schedule(self) -> Schedule:
        max_iter = checks.whole_number("max_iter", self.max_iter, 1, MOST_SWEEPS)
        if self.burn_in is None:
            burn_in = max_iter // 2
        else:
            burn_in = checks.whole_number("burn_in", self.burn_in, 0, max_iter)
        start = self._start or self._start_length()
        return Schedule(
            max_iter=max_iter,
            burn_in=burn_in,
            warm_up=min(WARM_UP, burn_in // 2),
            thin=checks.whole_number("thin", self.thin, 1, MOST_SWEEPS),
            start_sweeps=start.n_sweeps(burn_in),
            n_init=checks.whole_number("n_init", self.n_init, 1, MOST_SWEEPS),
            seed=draw_seed(self.random_state),
            n_jobs=checks.n_threads(self.n_jobs),
        )

    def _start_length(self) -> StartLength:
        return USUAL_START

    def _samples(self) -> bool:
        """Whether training is by Gibbs sampling."""
        return True

    def _expected_sizes(self) -> Floats:
        """Expected weight of each topic per unit of its prior parameter."""
        return np.ones(len(self.components_))

    def _check_evaluation(self) -> None:
        """Refuse held-out documents if the trained model will have no likelihood."""

    def _training(self, documents: Corpus | Shards, n_components: int) -> partial[_core.Training]:
        """Check the parameters; return the sampler, without documents, schedule and state."""
        raise NotImplementedError

    def _take_parameters(self, others: Floats) -> int:
        """Store learned parameters other than topics and covariates; returns their number."""
        raise NotImplementedError

    def _topic_prior(self, parameters: Floats) -> float:
        """Dirichlet parameter of the topics in a state with these parameters."""
        raise NotImplementedError


def _plain(value: Any) -> Any:
    """Convert arrays and tuples to the types that JSON returns."""
    return np.asarray(value).tolist() if isinstance(value, (np.ndarray, tuple)) else value


def row_normalised(topics: Floats) -> Floats:
    """The same topics x words, divided by their row sums to remove rounding errors."""
    topics /= topics.sum(axis=1, keepdims=True)
    return topics
