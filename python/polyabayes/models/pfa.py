"""Poisson factor analysis as a scikit-learn estimator."""

from __future__ import annotations

import time
from concurrent.futures import Executor
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.metaestimators import available_if

from polyabayes import _core
from polyabayes._support import checks
from polyabayes._support.arrays import Floats
from polyabayes._support.docs import shared_docs
from polyabayes._support.output.progress import progress_bar
from polyabayes._support.warnings import warn
from polyabayes.data.corpus import Corpus, as_corpus
from polyabayes.data.naming import by_topic, topics_by_name
from polyabayes.exceptions import ImpossibleDocumentWarning, InvalidArgumentError, argument
from polyabayes.likelihood.core_parts import CoreParts
from polyabayes.likelihood.foreign import exposed
from polyabayes.models.fitting import EvaluationSchedule, fingerprint
from polyabayes.models.latent_draws import TokenTopics
from polyabayes.models.nmf import Factors, factorise, weights_of
from polyabayes.models.simulation import documents_of_topics
from polyabayes.models.topic_model import TopicModel
from polyabayes.scale.shards import Shards

PRIORS = ("nmf", "gap", "gamma", "beta-gamma", "beta-gamma-gamma")
SAMPLERS = ("collapsed",)

_NO_LIKELIHOOD = (
    "prior='nmf' has no prior of the topic weights, so that new documents have no "
    "likelihood: train with prior='gamma' or another, or give the weights a prior by "
    "PoissonFactorAnalysis.from_parameters(topic_word=model.components_, shape=..., "
    "probability=...); plug_in_perplexity needs none"
)


def _scores(model: PoissonFactorAnalysis) -> bool:
    if not model._has_likelihood():
        raise InvalidArgumentError(_NO_LIKELIHOOD)
    return True


class PfaSample(NamedTuple):
    """The last sample of a chain.

    Attributes
    ----------
    topic_word : ndarray of shape (n_components, n_words)
        E[phi | topics of all tokens].
    shape : ndarray of shape (n_components,)
        r.
    probability : ndarray of shape (n_components,)
        p.
    topic_concentration : ndarray of shape (n_components,)
        s; infinite for ordinary topics.

    Examples
    --------
    >>> counts = [[3, 1, 0, 0], [2, 2, 0, 0], [0, 0, 1, 3], [0, 0, 2, 2]]
    >>> pfa = pb.PoissonFactorAnalysis(2, max_iter=20, random_state=0).fit(counts)
    >>> pfa.last_sample_.shape.shape, pfa.last_sample_.topic_word.shape
    ((2,), (2, 4))
    """

    topic_word: Floats
    shape: Floats
    probability: Floats
    topic_concentration: Floats


@shared_docs
class PoissonFactorAnalysis(TopicModel):
    """Poisson factor analysis: gamma-Poisson models by Gibbs sampling, and NMF.

    theta_dk ~ Gamma(shape r_k, scale p_k / (1 - p_k)), phi_k ~ Dirichlet(topic_word_prior),
    y_dw ~ Poisson(e_d sum_k theta_dk phi_kw), where e_d is the ``exposure`` of a document, 1 by
    default. theta and the prior of p are per unit of exposure, so choose a unit in which exposures
    are near 1. With exposures, a sweep draws documents one by one, and ``probability_`` is the mean
    of draws, not of conditional means.

    Training integrates theta out: it draws the topics of all tokens given phi, p and r (documents
    in parallel), then phi, p and r given these topics (Zhou & Carin 2013). Results are the same for
    any number of threads, bit for bit. A sweep costs tokens x topics.

    With covariates x_d of the documents, and r learned, r_dk = exp(lambda_k x_d), with exact draws
    of lambda, also with exposures. Slopes of standardised columns are normal with a common, learned
    variance; the exponential of an intercept has the prior of a learned r_k.

    ``prior="nmf"`` is non-negative matrix factorisation without priors: theta and phi maximise the
    Poisson likelihood (minimise the Kullback-Leibler divergence) by scikit-learn's multiplicative
    updates (Lee & Seung 1999; ``NMF(solver="mu", beta_loss="kullback-leibler")``), up to a local
    maximum that depends on the start. An update costs non-zero counts x topics, and uses dense
    arrays of documents x topics. Documents must be in memory, and there are no checkpoints. Without
    a prior of theta, new documents have no likelihood: :func:`log_likelihood` refuses the model,
    and ``score``, ``score_samples`` and ``perplexity`` are absent. Use :func:`plug_in_perplexity`,
    or ``from_parameters`` to make a model with these topics and a prior.

    Parameters
    ----------
    {n_components}
    prior : {"nmf", "gap", "gamma", "beta-gamma", "beta-gamma-gamma"}, default="beta-gamma-gamma"
        What is learned besides phi: nothing (``"gap"``), r (``"gamma"``), p (``"beta-gamma"``) or
        both (``"beta-gamma-gamma"``). ``"beta-gamma"``, with r fixed at 1, is the model of
        Capdevila et al. 2018. ``"nmf"`` has no priors; of the parameters below, it uses `max_iter`
        and those after `thin`.
    sampler : {"collapsed"}, default="collapsed"
        How topics of tokens are drawn: token by token, with theta integrated out.
    shape : float or array of shape (n_components,), default=1.0
        r: start or fixed value.
    probability : float or array of shape (n_components,), optional
        p: start or fixed value. By default, all topics get the value that reproduces the mean
        document length per unit of exposure.
    topic_word_prior : float, optional
        Dirichlet parameter alpha of the topics; default 0.1, as in Capdevila et al. 2018.
    probability_concentration : float, optional
        c of p_k ~ Beta(c e, c (1 - e)); default 1, as in Capdevila et al. 2018.
    probability_mean : float, optional
        e of p_k ~ Beta(c e, c (1 - e)); default 1 / n_components, as in Capdevila et al. 2018, but
        1/2 for a single topic.
    shape_concentration : float, optional
        c0 of r_k ~ Gamma(c0 r0, rate c0); default 1.
    shape_mean : float, optional
        r0 of r_k ~ Gamma(c0 r0, rate c0); default 1.
    max_iter : int, default=200
        Gibbs sweeps, or updates of NMF.
    {burn_in, thin}
    n_init : int, default=1
        Number of starts; the one with the largest joint density is kept. A start takes up to 20
        sweeps (and at most 2/5 of the burn-in) with extra topics, which are then merged. Starts
        come before the sweeps of `max_iter`.
    {n_jobs}
    {seed}
    {progress}
    {checkpoint}
    {formula}
    {topic_concentration}

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_words)
        phi: posterior mean word probabilities of each topic, or the topics of NMF; rows sum to 1
        after ``fit``.
    {components_std_}
    shape_ : ndarray of shape (n_components,)
        r: posterior mean; absent after NMF.
    probability_ : ndarray of shape (n_components,)
        p: posterior mean; absent after NMF.
    n_iter_ : int
        Completed sweeps.
    topic_counts_ : ndarray of int, shape (n_components,)
        Tokens of each topic in the last state; for NMF the sums of theta, which are not integers.
    n_active_ : int
        K+: topics with at least one token in the last state; only after ``fit``.
    trace_ : TrainingTrace
        ln of the joint density and held-out nats per token, every ``eval_every`` sweeps; for NMF,
        the Poisson log-likelihood of the training data.
    coefficients_ : ndarray of shape (n_components, n_columns)
        Only after training with covariates: posterior means of lambda. A document with row x of
        the design has gamma shapes exp(lambda @ x); ``shape_`` is then the mean over the documents.
    {coefficient draws}
    {concentrations}
    last_sample_ : PfaSample
        The last state of the chain; computed on access, absent after NMF.
    {words and seed}

    References
    ----------
    {Zhou 2013}

    {Capdevila 2018}

    {Doyle 2009}

    D. D. Lee and H. S. Seung (1999). Learning the parts of objects by non-negative matrix
    factorization. Nature 401.

    Examples
    --------
    >>> data = pb.datasets.make_gamma_poisson_corpus(200, 50, 3, random_state=0)
    >>> pfa = pb.PoissonFactorAnalysis(3, max_iter=50, random_state=0).fit(data.corpus)
    >>> pfa.probability_.shape
    (3,)
    """

    _default_event = "counts"
    _conditions_on_length = False
    _prior_argument = "shape"
    _arrays = ("components_", "shape_", "probability_")

    shape_: Floats
    probability_: Floats

    def __init__(
        self,
        n_components: int = 10,
        *,
        prior: str = "beta-gamma-gamma",
        sampler: str = "collapsed",
        shape: Any = 1.0,
        probability: Any = None,
        topic_word_prior: float | None = None,
        probability_concentration: float | None = None,
        probability_mean: float | None = None,
        shape_concentration: float | None = None,
        shape_mean: float | None = None,
        max_iter: int = 200,
        burn_in: int | None = None,
        thin: int = 5,
        n_init: int = 1,
        n_jobs: int | None = None,
        random_state: Any = None,
        progress: bool = False,
        checkpoint: Any = None,
        checkpoint_every: int | str = 100,
        formula: str | None = None,
        topic_concentration: Any = None,
    ) -> None:
        self.n_components = n_components
        self.prior = prior
        self.sampler = sampler
        self.shape = shape
        self.probability = probability
        self.topic_word_prior = topic_word_prior
        self.probability_concentration = probability_concentration
        self.probability_mean = probability_mean
        self.shape_concentration = shape_concentration
        self.shape_mean = shape_mean
        self.max_iter = max_iter
        self.burn_in = burn_in
        self.thin = thin
        self.n_init = n_init
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.progress = progress
        self.checkpoint = checkpoint
        self.checkpoint_every = checkpoint_every
        self.formula = formula
        self.topic_concentration = topic_concentration

    @classmethod
    def from_parameters(
        cls,
        *,
        topic_word: Any,
        shape: Any,
        probability: Any,
        topic_concentration: Any = None,
        vocabulary: Any = None,
        random_state: Any = None,
    ) -> Self:
        """Make a fitted model from known parameters.

        Parameters
        ----------
        topic_word : array of shape (n_components, n_words)
            phi: non-negative weights of the words in each topic; rows need not sum to 1.
        shape : float or array of shape (n_components,)
            r: positive shapes of the gamma prior.
        probability : float or array of shape (n_components,)
            p, strictly between 0 and 1; the scale of the gamma prior is p / (1 - p).
        topic_concentration : float or array of shape (n_components,), optional
            Concentrations s of bursty topics, in pseudo-counts: each document draws its own version
            of topic k, phi_dk ~ Dirichlet(s_k phi_k). Rows of `topic_word` then sum to 1. Infinite
            ones are topics without bursts, the default.
        {vocabulary}
        {seed of transform}

        Returns
        -------
        PoissonFactorAnalysis
            Ready to score and to transform.

        Raises
        ------
        InvalidArgumentError, InvalidTypeError
            If `shape` is not positive, `probability` is not between 0 and 1, `topic_word` is
            negative, or shapes do not fit.

        Examples
        --------
        >>> pfa = pb.PoissonFactorAnalysis.from_parameters(
        ...     topic_word=[[0.9, 0.1], [0.2, 0.8]], shape=1.5, probability=0.5
        ... )
        >>> print(f"{pfa.score_samples([[2, 1]])[0]:.6f}")
        -2.909967
        """
        topics, _ = topics_by_name("topic_word", topic_word, vocabulary)
        n_components = len(checks.matrix("topic_word", topics))
        shape = by_topic("shape", shape, topic_word)
        probability = by_topic("probability", probability, topic_word)
        topic_concentration = by_topic("topic_concentration", topic_concentration, topic_word)
        model = cls(n_components, shape=shape, probability=probability, random_state=random_state)
        r = checks.positive_vector("shape", shape, n_components)
        p = _probabilities(probability, n_components)
        model._set_topic_word(topic_word, vocabulary, random_state, normalised=False)
        model.shape_, model.probability_ = r, p
        return model._made_bursty(topic_concentration)

    @property
    def last_sample_(self) -> PfaSample:
        """The last state of training; not saved to files.

        ``topic_word`` is the mean of phi given the topics of all tokens in that state; it is
        computed at each call.
        """
        last = self._last_state()
        r, p, _ = self._of_state(last.parameters)
        return PfaSample(last.topic_word(), r, p, last.concentration)

    # Absent without a likelihood, so that tools can detect this.
    score = available_if(_scores)(TopicModel.score)
    score_samples = available_if(_scores)(TopicModel.score_samples)
    perplexity = available_if(_scores)(TopicModel.perplexity)

    def _mean_weights(self, corpus: Corpus, exposure: Any, covariates: Any) -> Floats:
        if self._has_likelihood():
            return super()._mean_weights(corpus, exposure, covariates)
        corpus = exposed(self, corpus, exposure)
        self._warn_of_impossible(corpus)
        weights = weights_of(corpus, self.components_)
        return weights if corpus.exposure is None else weights / corpus.exposure[:, np.newaxis]

    def _warn_of_impossible(self, corpus: Corpus) -> None:
        """Warn of documents with words that no topic can produce, such as words new to NMF."""
        is_impossible = np.asarray(~(self.components_ > 0).any(axis=0))
        cells = np.flatnonzero(is_impossible[corpus.counts.indices])
        documents = np.unique(np.searchsorted(corpus.counts.indptr, cells, side="right") - 1)
        if len(documents):
            warn(
                "documents that hold a word which no topic can produce: "
                f"{len(documents):,}, document {documents[0]} first; their weights are those of "
                "the other words",
                ImpossibleDocumentWarning,
            )

    def _has_likelihood(self) -> bool:
        fitted = hasattr(self, "components_")
        return hasattr(self, "shape_") if fitted else self.prior != "nmf"

    def _samples(self) -> bool:
        return self.prior != "nmf"

    def _check_evaluation(self) -> None:
        if self.prior == "nmf":
            raise InvalidArgumentError(f"eval_corpus: {_NO_LIKELIHOOD}")

    def _stored(self) -> tuple[str, ...]:
        return self._arrays if self._has_likelihood() else ("components_",)

    def _draw_documents(
        self, n_documents: int, sizes: Any, priors: Floats | None, rng: np.random.Generator
    ) -> tuple[sparse.csr_matrix, NDArray[np.uint16]]:
        p, shapes = self.probability_, self.shape_ if priors is None else priors
        theta = rng.gamma(shapes, p / (1 - p), (n_documents, len(p)))
        if sizes is not None:
            theta *= sizes[:, np.newaxis]
        counts = rng.poisson(theta * self.components_.sum(axis=1))
        return documents_of_topics(
            counts, self.components_, rng, concentration=self.topic_concentration_
        )

    def _draw_weights(self, generator: np.random.Generator, tokens: TokenTopics) -> Floats:
        parameters = self._last.parameters
        r, p, ln_rest = self._of_state(parameters)
        priors = self._state_priors(r, parameters[3 * len(r) :])
        exposure = tokens.corpus.exposure
        sizes = np.ones(1) if exposure is None else exposure
        # theta ~ Gamma(r, rate (1 - p) / p), then n Poisson tokens at exposure e.
        scales = p / (np.exp(ln_rest) + p * sizes[:, np.newaxis])
        shapes = priors + tokens.by_document(len(r))
        return np.asarray(generator.standard_gamma(shapes) * scales)

    def _core_parts(self) -> CoreParts:
        if not self._has_likelihood():
            raise InvalidArgumentError(_NO_LIKELIHOOD)
        arrays = (self.shape_, self.probability_, self.components_, *self._bursts())
        return CoreParts("gamma_poisson", arrays)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        checks.choice("prior", self.prior, PRIORS)
        checks.choice("sampler", self.sampler, SAMPLERS)

    def _training(self, documents: Corpus | Shards, n_components: int) -> partial[_core.Training]:
        self._check_parameters()
        exposure = documents.exposure
        size = documents.n_documents if exposure is None else float(exposure.sum())
        # Tokens per document at exposure 1.
        rate = documents.n_tokens / size
        r = checks.positive_vector("shape", self.shape, n_components)
        if self.probability is None:
            p = np.full(n_components, rate / (rate + r.sum()))
        else:
            p = _probabilities(self.probability, n_components)
        learns_p, learns_r = _learned(self.prior)
        return partial(
            _core.Training.pfa,
            n_documents=documents.n_documents,
            shape=r,
            probability=p,
            topic_word_prior=self._topic_prior(),
            probability_prior=self._probability_prior(n_components) if learns_p else None,
            shape_prior=self._shape_prior() if learns_r else None,
        )

    def _expected_sizes(self) -> Floats:
        return np.asarray(self.probability_ / (1 - self.probability_))

    def _fit(
        self,
        X: Any,
        exposure: Any,
        covariates: Any,
        looks: EvaluationSchedule,
        executor: Executor | None,
    ) -> Self:
        self._check_parameters()
        given = {"covariates": covariates, "formula": self.formula}
        for name, value in given.items():
            if value is not None and not _learned(self.prior)[1]:
                raise InvalidArgumentError(
                    f"{argument(name)} needs learned shapes, but {argument('prior', self.prior)} "
                    "does not learn them: use 'gamma' or 'beta-gamma-gamma'"
                )
        if self.prior != "nmf":
            return super()._fit(X, exposure, covariates, looks, executor)
        unsampled = {"X": isinstance(X, Shards), "checkpoint": self.checkpoint is not None}
        unsampled["topic_concentration"] = self.topic_concentration is not None
        for name, is_given in unsampled.items():
            if is_given:
                raise InvalidArgumentError(
                    f"prior='nmf' is fitted in memory and in one run: use {argument(name)} "
                    "with another prior"
                )
        self._has_exposure = False
        corpus = exposed(self, as_corpus(X, "X"), exposure)
        schedule = self._schedule()
        self._check_tokens(corpus)
        self._begin(X, corpus, fingerprint(corpus), schedule.seed)
        return self._factorise(corpus, looks)

    def _factorise(self, corpus: Corpus, looks: EvaluationSchedule) -> Self:
        """Fit by the updates of scikit-learn, with callbacks and interrupts as for a chain."""
        latest: Factors | None = None
        interruption: BaseException | None = None
        start = time.perf_counter()
        sizes = {"max_iter": self.max_iter, "every": looks.every, "n_init": self.n_init}
        updates = factorise(corpus, self.n_components, **sizes, seed=self.seed_)
        with progress_bar(self.progress, self.max_iter, "update") as update:
            try:
                for latest in updates:
                    self._take_factors(latest)
                    if update is not None:
                        update(latest.n_iter)
                    seconds = time.perf_counter() - start
                    if looks.look([(latest.n_iter, latest.log_likelihood, seconds)]):
                        break
            except BaseException as error:
                if latest is None:
                    raise
                interruption = error
        assert latest is not None
        return self._conclude(partial(self._take_factors, latest), looks, interruption)

    def _take_factors(self, factors: Factors) -> None:
        for name in ("shape_", "probability_"):
            self.__dict__.pop(name, None)
        self.components_, self.n_iter_ = factors.topics, factors.n_iter
        self.topic_counts_ = factors.weights.sum(axis=0)

    def _take_parameters(self, others: Floats) -> int:
        n_own = 2 * len(self.components_)
        self.shape_, self.probability_ = others[:n_own].reshape(2, -1).copy()
        return n_own

    def _topic_prior(self, parameters: Any = None) -> float:  # noqa: ARG002
        return _positive_or("topic_word_prior", self.topic_word_prior, 0.1)

    def _learned_state(self) -> dict[str, Any]:
        r, p, _ = self._of_state(self._last.parameters)
        learns_p, learns_r = _learned(self.prior)
        learned = {"shape": r} if learns_r else {}
        learned |= {"probability": p} if learns_p else {}
        found: dict[str, Any] = {name: np.sort(x)[::-1] for name, x in learned.items()}
        return found | super()._learned_state()

    def _of_state(self, parameters: Floats) -> Floats:
        """r, p and ln(1 - p) of a state."""
        n_own = 3 * len(self.components_)
        return parameters[:n_own].reshape(3, -1).copy()

    def _probability_prior(self, n_components: int) -> tuple[float, float]:
        c = _positive_or("probability_concentration", self.probability_concentration, 1.0)
        default = 1.0 / n_components if n_components > 1 else 0.5
        mean = default if self.probability_mean is None else self.probability_mean
        mean = checks.share("probability_mean", mean)
        return c * mean, c * (1.0 - mean)

    def _shape_prior(self) -> tuple[float, float]:
        rate = _positive_or("shape_concentration", self.shape_concentration, 1.0)
        return rate * _positive_or("shape_mean", self.shape_mean, 1.0), rate


def _positive_or(name: str, value: Any, default: float) -> float:
    return default if value is None else checks.positive_number(name, value)


def _learned(prior: str) -> tuple[bool, bool]:
    """Whether p is learned, and whether r is."""
    return prior.startswith("beta"), prior in ("gamma", "beta-gamma-gamma")


def _probabilities(value: Any, size: int) -> Floats:
    array = checks.vector("probability", value, size)
    bad = np.flatnonzero(~((array > 0) & (array < 1)))
    if len(bad):
        raise InvalidArgumentError(
            f"probability must be strictly between 0 and 1, but entry {bad[0]} is {array[bad[0]]}"
        )
    return array
