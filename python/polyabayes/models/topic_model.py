"""Base class of the two topic models: training, on top of what a fitted model can do."""

from __future__ import annotations

from collections.abc import Callable, Collection
from concurrent.futures import Executor
from functools import partial
from importlib import metadata
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from polyabayes import _core
from polyabayes._support import checks
from polyabayes._support.random import RandomState, dirichlet, draw_seed, random_generator
from polyabayes._support.state_folder import fingerprint_of
from polyabayes._support.warnings import quiet
from polyabayes.data.corpus import Corpus, as_corpus
from polyabayes.data.counts import words_of
from polyabayes.exceptions import (
    Interrupted,
    InvalidArgumentError,
    NotFittedError,
    argument,
)
from polyabayes.likelihood.foreign import exposed
from polyabayes.likelihood.scoring import log_likelihood
from polyabayes.likelihood.simulation import documents_of_topics
from polyabayes.models.covariates import Design
from polyabayes.models.fitted_model import FittedModel
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
from polyabayes.models.latent_draws import VARIABLES, TokenTopics, check_variables
from polyabayes.models.stored_model import StoredModel
from polyabayes.models.topic_table import TopicTable, topic_table
from polyabayes.models.traces import BoundTrace, TrainingTrace
from polyabayes.scale.executors import check_executor, threads_of_task
from polyabayes.scale.shards import Shards
from polyabayes.scale.token_order import Exposures

# The first sweeps set the topics to their mean: on AP this saves a quarter of the sweeps.
_WARM_UP = 30
_MOST_SWEEPS = 10**9
_MOST_TOPICS = 2**16 - 1

# Random numbers of draws of latent variables, apart from those of every other purpose.
_DRAW_KEY = 0x6C6174

# Fields of the schedule that two runs must share for one to resume the other.
_KEPT_OF_SCHEDULE = ("burn_in", "warm_up", "thin", "start_sweeps", "n_init", "seed")

# Bounds of ln of a pseudo-count, as the compiled core has them.
_RANGE = (-100 * np.log(10), 100 * np.log(10))

# Effort of one score of held-out documents: a trace needs no more than tenths of a nat a document.
_EVALUATION_TEMPERATURES = 20
_EVALUATION_RUNS = 16


class PreviousState(NamedTuple):
    """State that training on earlier documents left, where it goes on without them.

    `topic_priors` are Dirichlet parameters, words x topics; `topic_counts` are tokens of each
    topic.
    """

    topic_priors: NDArray[np.float64]
    topic_counts: NDArray[np.int64]


class TopicModel(FittedModel):
    """Base class of the topic models; not made directly."""

    # Length of the start, where it is not the model's own.
    _start: StartLength | None = None
    _optional_arrays = ("topic_counts_", "coefficients_", "coefficient_draws_")

    max_iter: int
    burn_in: int | None
    thin: int
    n_init: int
    checkpoint: Any
    checkpoint_every: int | str
    formula: str | None

    covariate_names_: NDArray[np.object_]
    coefficients_: NDArray[np.float64]
    coefficient_draws_: NDArray[np.float64]
    topic_counts_: NDArray[Any]
    topic_word_prior_: float
    trace_: TrainingTrace | BoundTrace
    _last: LastState
    # Topics of tokens while a callback may ask for them; neither kept nor copied.
    _tokens: TokenTopics
    # Standardised covariates of the same documents.
    _rows: NDArray[np.float64]
    _design: Design

    def fit(
        self,
        X: Any,
        y: Any = None,  # noqa: ARG002
        *,
        exposure: Any = None,
        covariates: Any = None,
        eval_corpus: Any = None,
        eval_every: int = 10,
        callback: Callable[[Self], Any] | None = None,
        executor: Executor | None = None,
    ) -> Self:
        """Train the model: by Gibbs sampling, NMF by multiplicative updates.

        Memory at its peak, beside the corpus: about 70 bytes a distinct word of a document, 6 a
        further token of it, and 40 a topic and word of the vocabulary; there is no array of
        documents x topics. Topics to which the system grants no memory are refused before any
        work.

        Documents may be :class:`Shards <polyabayes.scale.Shards>`, larger than memory: some million
        of their tokens are held at a time. The model is the one of the same documents in memory,
        bit for bit, for any number of shards and of workers. The topics of the tokens are in
        files: in `checkpoint`, or without one in a folder beside the shards that is removed at the
        end. With `checkpoint`, the same call goes on after a kill
        from the last sweep, whatever `checkpoint_every` says, on any workers.

        Parameters
        ----------
        X : Corpus, Shards, sparse matrix, integer array or DataFrame, shape (n_documents, n_words)
            The documents.
        y : ignored
            Present for scikit-learn.
        exposure : float or array of shape (n_documents,), optional
            Known sizes of the documents, which multiply their Poisson rates; gamma-Poisson models
            only. Default: those of the corpus or the shards, else 1.
        covariates : DataFrame or array of shape (n_documents, n_covariates), optional
            Covariates of the documents, on which their priors depend: numbers as they are, other
            columns by their levels, of which the first is the reference; an intercept is added.
            With ``formula``, the table that has its columns. Default: ``corpus.metadata`` where
            there is a ``formula``, else the priors depend on none. Documents must be in memory.
        eval_corpus : like `X`, optional
            Held-out documents, a Corpus where they have exposures or covariates, whose nats
            per token go to ``trace_``, by a few short annealing runs each.
        eval_every : int, default=10
            Sweeps between two looks: entries of ``trace_``, and calls of `callback`.
        callback : callable, optional
            Called with the model as it would be returned then; training ends early where it
            returns True. An exception from it ends training and passes on; the model stays
            usable. :meth:`posterior_draw` gives it topics, topic weights and topics of tokens.
        executor : concurrent.futures.Executor, optional
            Shards only: where their tokens are drawn, on one thread a task unless `n_jobs` says
            otherwise. Shards and `checkpoint` must be on storage that all workers share. Default:
            this process.

        Returns
        -------
        self

        Raises
        ------
        BudgetExceededError, FileAccessError, FileFormatError, InvalidArgumentError
            If there is no memory for the topics, or if `checkpoint` is of another run, or
            unreadable; before any work. If shards are damaged or changed, or what they need cannot
            be written.
        WorkerError
            If a worker died, and its engine did not run its tasks again: the same call with a new
            executor goes on from `checkpoint`.
        Interrupted
            On Ctrl-C: a KeyboardInterrupt, raised when the state reached has been stored in the
            model, which is usable. Before the first sweep it is a plain KeyboardInterrupt, which
            says so, and the model is as it was before.

        References
        ----------
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
        """
        check_executor_for(X, executor)
        with all_or_nothing(self):
            looks = self._looks(eval_corpus, eval_every, callback)
            return self._fit(X, exposure, covariates, looks, executor)

    def _fit(
        self,
        X: Any,
        exposure: Any,
        covariates: Any,
        looks: EvaluationSchedule,
        executor: Executor | None,
    ) -> Self:
        documents: Corpus | Shards
        if isinstance(X, Shards):
            documents = exposed(self, X, exposure)
        else:
            documents = exposed(self, as_corpus(X, "X"), exposure)
        n_components = self._n_topics()
        schedule = self._schedule()._replace(n_jobs=threads_of_task(executor, self.n_jobs))
        period = CheckpointPeriod(self.checkpoint_every)
        self._check_tokens(documents)
        train = self._training(documents, n_components)
        identity = dict(train.keywords)
        design, rows = self._learn_design(documents, covariates)
        if design is not None:
            train = partial(train, covariates=rows)
            identity["covariates"] = fingerprint_of(rows.shape, rows)
        if isinstance(documents, Shards):
            hashed, exposures = documents.fingerprint(), self._exposures(documents)
            corpus = None
        else:
            hashed, exposures, corpus = fingerprint(documents), None, documents
        identity = self._identity(hashed, schedule, identity)
        origin = documents, exposures, self.checkpoint, identity, schedule, executor
        with source_of(*origin) as (tokens, state, checkpoint):
            training = train(tokens, documents.n_words, schedule=schedule, state=state)
            self.vocabulary_, self.seed_ = documents.vocabulary, schedule.seed
            self._take_design(design)
            self._rows = rows
            self._remember_features(X, documents)
            take = partial(self._take, corpus, None, training)
            return self._sample(training, schedule, looks, take, checkpoint, period)

    def _learn_design(
        self, documents: Corpus | Shards, covariates: Any
    ) -> tuple[Design | None, NDArray[np.float64]]:
        """How covariates become numbers, and those of the documents, standardised."""
        name = "formula" if covariates is None else "covariates"
        if covariates is None and self.formula is not None:
            covariates = documents.metadata if isinstance(documents, Corpus) else ()
            if covariates is None:
                raise InvalidArgumentError(
                    f"{argument('formula')} needs columns: give {argument('covariates')}, or "
                    "documents with metadata, by corpus.with_metadata(...)"
                )
        if covariates is None:
            return None, np.empty((documents.n_documents, 0))
        if isinstance(documents, Shards):
            raise InvalidArgumentError(
                f"{argument(name)}: documents with covariates must be in memory; give a Corpus"
            )
        self._check_covariates(name)
        design, rows = Design.learn(covariates, self.formula, documents.n_documents)
        return design, design.standardised(rows)

    def _expected_sizes(self) -> NDArray[np.float64]:
        """Expected weight of each topic by unit of its prior's parameter."""
        return np.ones(len(self.components_))

    def _check_covariates(self, name: str) -> None:
        """Refuse covariates where nothing could depend on them."""

    def _take_design(self, design: Design | None) -> None:
        """Store how covariates become numbers; forget those of an earlier fit."""
        for name in ("_design", "covariate_names_", "coefficients_", "coefficient_draws_"):
            self.__dict__.pop(name, None)
        if design is not None:
            self._design = design
            self.covariate_names_ = np.array(design.names, dtype=object)

    def _priors_of(self, documents: Corpus | Shards, covariates: Any) -> NDArray[np.float64] | None:
        if not hasattr(self, "_design"):
            return super()._priors_of(documents, covariates)
        if covariates is None and self._design.columns is not None:
            covariates = getattr(documents, "metadata", None)
        if covariates is None:
            raise InvalidArgumentError(
                f"{argument('covariates')}: the prior of this {type(self).__name__} depends on "
                "covariates; give those of the documents, a row for each"
            )
        rows = self._design.rows(covariates, documents.n_documents)
        return pseudo_counts(rows @ self.coefficients_.T)

    def _draw_documents(
        self,
        n_documents: int,
        sizes: NDArray[Any] | None,
        priors: NDArray[np.float64] | None,
        rng: np.random.Generator,
    ) -> tuple[sparse.csr_matrix, NDArray[np.uint16]]:
        topic_counts = self._draw_topic_counts(n_documents, sizes, priors, rng)
        return documents_of_topics(topic_counts, self.components_, rng)

    def _draw_topic_counts(
        self,
        n_documents: int,
        sizes: Any,
        priors: NDArray[np.float64] | None,
        rng: np.random.Generator,
    ) -> NDArray[np.int64]:
        """Tokens of each topic in documents of these lengths or exposures."""
        raise NotImplementedError

    def _state_priors(
        self, shared: NDArray[np.float64], others: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Priors of the training documents in a state; `others` are lambda and sigma^2, if any."""
        if not hasattr(self, "_design"):
            return shared
        coefficients = others[:-1].reshape(len(shared), -1)
        return pseudo_counts(coefficients[:, 0] + self._rows @ coefficients[:, 1:].T)

    def _check_tokens(self, documents: Corpus | Shards) -> None:
        if not documents.n_tokens:
            raise InvalidArgumentError(f"{argument('X')} holds no tokens: every document is empty")

    def _looks(
        self, eval_corpus: Any, eval_every: int, callback: Callable[[Self], Any] | None
    ) -> EvaluationSchedule:
        """Looks at a run, by the arguments of ``fit``."""
        evaluate = None
        if eval_corpus is not None:
            self._check_evaluation()
            evaluate = partial(self._evaluate, as_corpus(eval_corpus, "eval_corpus"))
        ask = None if callback is None else partial(callback, self)
        return EvaluationSchedule(eval_every, evaluate, ask)

    @property
    def n_active_(self) -> int:
        """K+: topics with at least one token in the last state of ``fit``."""
        return int(np.count_nonzero(self.topic_counts_ >= 1))

    def posterior_draw(
        self, variables: str | Collection[str] = VARIABLES, random_state: RandomState = None
    ) -> dict[str, NDArray[Any]]:
        """Latent variables drawn from their posterior: the state that the chain is in.

        `z` is the state itself; `phi` and `theta`, which the sampler integrates out or forgets,
        are drawn from their distributions given `z` and the priors of that state. Draws of one
        chain at different sweeps are correlated. Topics have the numbers that they have in the
        chain: these differ between chains, and may change within one.

        Parameters
        ----------
        variables : str or collection of str, default=("phi", "theta", "z")
            What to draw. ``"theta"`` and ``"z"`` are at hand in a `callback` of ``fit``, for
            documents in memory: a model keeps neither topics of tokens nor documents.
            :func:`sample_chains` collects them. ``"phi"`` is there after ``fit``, too, and for
            documents in shards.
        random_state : None, int, RandomState, Generator or SeedSequence
            For `phi` and `theta`. By default their draws depend on the model's seed and the number
            of sweeps only, so that every call in one state gives the same.

        Returns
        -------
        dict of str to ndarray
            ``phi``, shape (n_components, n_words): word probabilities of each topic.
            ``theta``, shape (n_documents, n_components): topic weights, of LDA probabilities, of
            gamma-Poisson rates at exposure 1. ``z``, shape (n_tokens,), dtype uint16: topic of each
            token, in the order of ``np.repeat(corpus.counts.indices, corpus.counts.data)``.

        Raises
        ------
        InvalidArgumentError
            If there is no such variable, or it is not at hand.
        NotFittedError
            If the model was not sampled here.

        References
        ----------
        T. L. Griffiths and M. Steyvers (2004). Finding scientific topics. PNAS 101.

        Examples
        --------
        >>> counts = [[3, 1, 0, 0], [2, 2, 0, 0], [0, 0, 1, 3], [0, 0, 2, 2]]
        >>> weights = []
        >>> def keep(model):
        ...     weights.append(model.posterior_draw("theta")["theta"])
        >>> lda = pb.LatentDirichletAllocation(2, max_iter=20, random_state=0)
        >>> lda = lda.fit(counts, callback=keep, eval_every=5)
        >>> np.shape(weights), lda.posterior_draw("phi")["phi"].shape
        ((4, 4, 2), (2, 4))
        """
        names, last = check_variables(variables), self._last_state()
        if random_state is None:
            # A stream of its own; the tokens tell batches of partial_fit apart.
            words = [self.seed_, self.n_iter_, int(self.topic_counts_.sum())]
            random_state = np.random.SeedSequence(words, spawn_key=(_DRAW_KEY,))
        generator = random_generator(random_state)
        of_phi, of_theta = (np.random.default_rng(draw_seed(generator)) for _ in range(2))
        found: dict[str, NDArray[Any]] = {}
        if "phi" in names:
            found["phi"] = dirichlet(of_phi, last.topic_word_parameters(), axis=1)
        if "theta" in names:
            found["theta"] = self._draw_weights(of_theta, self._token_topics())
        if "z" in names:
            found["z"] = self._token_topics().topics.copy()
        return found

    def _token_topics(self) -> TokenTopics:
        """Topics of all tokens, while a callback looks at a run in memory."""
        if not hasattr(self, "_tokens"):
            raise InvalidArgumentError(
                "theta and z rest on the topics of all tokens, which a model does not keep: take "
                "them by sample_chains, or in a callback of fit, of documents in memory",
                argument="variables",
            )
        return self._tokens

    def _draw_weights(
        self, generator: np.random.Generator, tokens: TokenTopics
    ) -> NDArray[np.float64]:
        """Topic weights drawn given the topics of all tokens, (n_documents, n_components)."""
        raise NotImplementedError

    def __getstate__(self) -> Any:
        return {
            name: x
            for name, x in super().__getstate__().items()
            if name not in ("_tokens", "_rows")
        }

    def topic_table(self, n_words: int = 10, vocabulary: Any = None) -> TopicTable:
        """List the topics by their share of the training tokens, the largest first.

        Parameters
        ----------
        n_words : int, default=10
            Words a topic, the most probable ones.
        vocabulary : sequence of str, one a column, or fitted vectoriser, optional
            The words of the columns; by default those of the training documents, which counts from
            a vectoriser in a Pipeline do not bring: ``pipeline[-1].topic_table(vocabulary=
            pipeline[:-1])``.

        Returns
        -------
        TopicTable
            One row a topic; the first ``n_active_`` are in use.

        Raises
        ------
        InvalidArgumentError
            If the model was not trained here: files hold no counts of tokens. If there is not one
            word for each column.
        NotFittedError
            If there are no topics.

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
        return topic_table(self.components_, self.topic_counts_, words, n_words)

    def _sample(
        self,
        training: _core.Training,
        schedule: Schedule,
        looks: EvaluationSchedule,
        take: Callable[[], None],
        checkpoint: Checkpoint | None = None,
        period: CheckpointPeriod | None = None,
    ) -> Self:
        """Run the sampler and take over what it comes to, whatever ends it."""
        kept = checkpoint, period
        interruption = run(training, schedule, looks, take, *kept, progress=self.progress)
        return self._conclude(take, looks, interruption)

    def _conclude(
        self,
        take: Callable[[], None],
        looks: EvaluationSchedule,
        interruption: BaseException | None,
    ) -> Self:
        """Take over what a run came to; raise what ended it."""
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
        return self

    def _take(
        self, corpus: Corpus | None, before: PreviousState | None, training: _core.Training
    ) -> None:
        """Store what a run has come to; `before` is what it started from, if there was anything."""
        phi, others = training.mean()
        parameters = training.parameters()
        self.components_ = row_normalised(phi)
        self._seal()
        n_own = self._take_parameters(others)
        if hasattr(self, "_design"):
            self._take_coefficients(others[n_own:-1], training.kept_coefficients())
        counts = sparse.csr_array(sparse.csr_matrix(training.counts().T, dtype=np.int64))
        prior = self._topic_prior(parameters) if before is None else before.topic_priors
        self._last = LastState(counts, prior, parameters)
        self.topic_counts_ = counts.sum(axis=1)
        if before is not None:
            self.topic_counts_ += before.topic_counts
        self.n_iter_ = training.n_sweeps
        topics = training.assignments()
        if corpus is not None and topics is not None:
            self._tokens = TokenTopics(corpus, topics)

    def _take_coefficients(self, means: NDArray[np.float64], draws: NDArray[np.float64]) -> None:
        shape = len(self.components_), len(self._design.names)
        self.coefficient_draws_ = self._design.coefficients(draws.reshape(-1, *shape))
        if len(self.coefficient_draws_):
            self.coefficients_ = self.coefficient_draws_.mean(axis=0)
        else:
            self.coefficients_ = self._design.coefficients(means.reshape(shape))

    def _last_state(self) -> LastState:
        """Last state of the chain; refused for models that were not sampled here."""
        if not hasattr(self, "_last"):
            raise NotFittedError(
                f"this {type(self).__name__} has no last sample: it was not sampled by fit here"
            )
        return self._last

    def _evaluate(self, held_out: Corpus) -> tuple[float, float]:
        """Nats per token, and their error, from a few short runs."""
        with quiet():
            result = log_likelihood(
                self,
                held_out,
                "annealed",
                n_samples=_EVALUATION_TEMPERATURES,
                n_replicates=_EVALUATION_RUNS,
                event="sequence",
                given_length=True,
                random_state=self.seed_,
                n_jobs=self.n_jobs,
            )
        return result.nats_per_token, result.nats_per_token_std_error

    def _to_store(self) -> StoredModel:
        stored = super()._to_store()
        if not hasattr(self, "_design"):
            return stored
        return stored._replace(scalars={**stored.scalars, "design": self._design.to_json()})

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
        """Refuse parameters that are wrong whatever the documents."""
        self._n_topics()
        self._schedule()
        CheckpointPeriod(self.checkpoint_every)

    def _n_topics(self) -> int:
        return checks.whole_number("n_components", self.n_components, 1, _MOST_TOPICS)

    def _schedule(self) -> Schedule:
        max_iter = checks.whole_number("max_iter", self.max_iter, 1, _MOST_SWEEPS)
        if self.burn_in is None:
            burn_in = max_iter // 2
        else:
            burn_in = checks.whole_number("burn_in", self.burn_in, 0, max_iter)
        return Schedule(
            max_iter=max_iter,
            burn_in=burn_in,
            warm_up=min(_WARM_UP, burn_in // 2),
            thin=checks.whole_number("thin", self.thin, 1, _MOST_SWEEPS),
            start_sweeps=(self._start or self._start_length()).n_sweeps(burn_in),
            n_init=checks.whole_number("n_init", self.n_init, 1, _MOST_SWEEPS),
            seed=draw_seed(self.random_state),
            n_jobs=checks.n_threads(self.n_jobs),
        )

    def _start_length(self) -> StartLength:
        return USUAL_START

    def _samples(self) -> bool:
        """Whether training is by Gibbs sampling."""
        return True

    def _check_evaluation(self) -> None:
        """Refuse held-out documents where training will give no likelihood."""

    def _training(self, documents: Corpus | Shards, n_components: int) -> partial[_core.Training]:
        """Check the parameters; give the sampler, which lacks documents, schedule and state."""
        raise NotImplementedError

    def _exposures(self, shards: Shards) -> Exposures | None:  # noqa: ARG002
        """Exposures of documents that the model knows."""
        return None

    def _take_parameters(self, others: NDArray[np.float64]) -> int:
        """Store what training learned beside the topics and covariates; how many numbers."""
        raise NotImplementedError

    def _topic_prior(self, parameters: NDArray[np.float64]) -> float:
        """Dirichlet parameter of the topics in a state with these parameters."""
        raise NotImplementedError

    def _learned_state(self) -> dict[str, Any]:
        """Learned parameters of the last state, so that the numbers of topics do not matter."""
        raise NotImplementedError


def check_executor_for(documents: Any, executor: Any) -> None:
    """Refuse what is no executor, and one where there are no shards."""
    check_executor(executor)
    if executor is not None and not isinstance(documents, Shards):
        raise InvalidArgumentError(
            f"{argument('executor')} is for documents that write_shards wrote: those in memory "
            f"are trained on by the threads of {argument('n_jobs')}"
        )


def _plain(value: Any) -> Any:
    """Make of arrays and tuples what JSON gives back."""
    return np.asarray(value).tolist() if isinstance(value, (np.ndarray, tuple)) else value


def pseudo_counts(predicted: NDArray[np.float64]) -> NDArray[np.float64]:
    """Exp of what covariates predict, within the range of parameters of a prior."""
    found: NDArray[np.float64] = np.exp(np.clip(predicted, *_RANGE))
    return found


def row_normalised(word_topic: NDArray[np.float64]) -> NDArray[np.float64]:
    """Topics x words; the sums of rows, 1 but for rounding, are made exact."""
    topics = np.ascontiguousarray(word_topic.T)
    topics /= topics.sum(axis=1, keepdims=True)
    return topics
