"""Latent Dirichlet allocation as a scikit-learn estimator."""

from __future__ import annotations

from concurrent.futures import Executor
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.metaestimators import available_if

from polyabayes import _core
from polyabayes._support import checks
from polyabayes._support.docs import shared_docs
from polyabayes._support.random import dirichlet, draw_seed
from polyabayes.data.corpus import Corpus, of_layer
from polyabayes.data.naming import by_topic, topics_by_name
from polyabayes.exceptions import InvalidArgumentError, argument
from polyabayes.likelihood.core_parts import CoreParts
from polyabayes.likelihood.foreign import exposed
from polyabayes.models.em import LEAST_PRIOR, TrainedByEM
from polyabayes.models.fitting import LEARNED_START, EvaluationSchedule, StartLength, all_or_nothing
from polyabayes.models.latent_draws import TokenTopics
from polyabayes.models.simulation import documents_of_topics
from polyabayes.models.topic_model import PreviousState
from polyabayes.scale.shards import Shards

# Sweeps between two entries of the trace of partial_fit.
_LOOK_EVERY = 10

_TOLERANCE = 1e-5

# Options without effect for a fit method, and their defaults.
_UNUSED: dict[str, dict[str, Any]] = {
    "em": {"burn_in": None, "thin": 5, "checkpoint": None, "checkpoint_every": 100}
    | {"formula": None, "topic_concentration": None},
    "gibbs": {"init": None, "tol": _TOLERANCE},
}


def _sampled(model: LatentDirichletAllocation) -> bool:
    if not model._samples():
        raise InvalidArgumentError(
            f"partial_fit needs Gibbs sampling, not fit_method={model.fit_method!r}"
        )
    return True


class LdaSample(NamedTuple):
    """The last sample of a chain.

    Attributes
    ----------
    topic_word : ndarray of shape (n_components, n_words)
        E[phi | topics of all tokens, topic_word_prior].
    doc_topic_prior : ndarray of shape (n_components,)
        alpha.
    topic_word_prior : float
        beta.
    topic_concentration : ndarray of shape (n_components,)
        s; infinite for ordinary topics.

    Examples
    --------
    >>> counts = [[3, 1, 0, 0], [2, 2, 0, 0], [0, 0, 1, 3], [0, 0, 2, 2]]
    >>> lda = pb.LatentDirichletAllocation(2, max_iter=20, random_state=0).fit(counts)
    >>> lda.last_sample_.topic_word.shape, lda.last_sample_.doc_topic_prior.shape
    ((2, 4), (2,))
    """

    topic_word: NDArray[np.float64]
    doc_topic_prior: NDArray[np.float64]
    topic_word_prior: float
    topic_concentration: NDArray[np.float64]


@shared_docs
class LatentDirichletAllocation(TrainedByEM):
    """Latent Dirichlet allocation, trained by Gibbs sampling or by variational EM.

    theta_d ~ Dirichlet(doc_topic_prior) and phi_k ~ Dirichlet(topic_word_prior); the topic of a
    token is drawn from theta_d, and its word from phi of that topic.

    Gibbs sampling alternates between the topics of all tokens given phi (with theta integrated out,
    documents in parallel) and phi given these topics: an exact sampler. A sweep costs tokens x
    topics; from 256 topics on, tokens x topics that occur in the document.

    Variational EM (Blei, Ng and Jordan 2003, section 5.3) maximises the mean-field lower bound of
    ln p(words | phi, doc_topic_prior); phi is a point estimate. An iteration costs up to 10 x
    distinct words of all documents x topics. Memory is n_documents x n_components x 4 bytes, and 24
    bytes for each entry of `components_`.

    Both give the same result for any number of threads, bit for bit.

    With covariates x_d of the documents (Gibbs sampling only),
    theta_d ~ Dirichlet(exp(lambda x_d)): Dirichlet-multinomial regression (Mimno and McCallum
    2008), with exact draws of lambda. Slopes of standardised columns are normal with a common,
    learned variance; the exponential of an intercept has the prior of a learned `doc_topic_prior`.
    A sweep costs an additional distinct rows of covariates x topics x columns^2.

    Parameters
    ----------
    {n_components}
    doc_topic_prior : float or array of shape (n_components,), optional
        Dirichlet parameter of the topic weights, or its start if it is learned. Default:
        5 / n_components; with `init`, the sum of its parameters, of which new topics get equal
        shares.
    topic_word_prior : float, optional
        Dirichlet parameter of the topics; default 0.1. For EM, it is added to each expected count
        of a word in a topic; 0 is maximum likelihood.
    learn_priors : bool, optional
        Gibbs sampling: learn both priors, a doc_topic_prior per topic and a common
        topic_word_prior, under exponential priors with the values above as means. EM: learn
        doc_topic_prior by maximum likelihood. Default: True unless a prior is given (for EM: unless
        `doc_topic_prior` is given).
    max_iter : int, default=200
        Gibbs sweeps, or most iterations of EM.
    {burn_in, thin}
    n_init : int, default=1
        Number of starts; the one with the largest joint density is kept. A start takes up to 20
        sweeps (40 before Gibbs sampling with learned priors, and at most 2/5 of the burn-in) with
        extra topics, which are then merged. Starts come before the sweeps of `max_iter`, or before
        EM without `init`.
    {n_jobs}
    {seed}
    {progress}
    {checkpoint}
    fit_method : {"gibbs", "em"}, default="gibbs"
        How to train. EM refuses `burn_in`, `thin` and checkpoints, and the arguments of ``fit``
        other than `X`.
    init : LatentDirichletAllocation, optional
        EM only: a fitted model to start from, with at most `n_components` topics over the same
        words. New topics start from the documents that it explains worst. The ``bound_`` of the
        result is never below the bound of `init` (as stored for its EM training documents, else
        after one mean-field pass): if EM ends below it, the result is `init` plus topics with
        prior 1e-100, whatever `doc_topic_prior` is.
    tol : float, default=1e-5
        EM ends when the relative change of the bound is below this.
    {formula}
    {topic_concentration}

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_words)
        phi: posterior mean word probabilities of each topic; rows sum to 1.
    {components_std_}
    doc_topic_prior_ : ndarray of shape (n_components,)
        The prior, or its posterior mean if learned (for EM, its estimate).
    topic_word_prior_ : float
        The prior, or its posterior mean if learned; only after ``fit``.
    n_iter_ : int
        Completed sweeps or iterations.
    topic_counts_ : ndarray of int or float, shape (n_components,)
        Tokens of each topic in the last state, including documents before ``partial_fit``; expected
        tokens for EM.
    n_active_ : int
        K+: topics with at least one token in the last state.
    trace_ : TrainingTrace or BoundTrace
        ln of the joint density and held-out nats per token, every ``eval_every`` sweeps; for EM,
        the bound at the start and after each iteration.
    coefficients_ : ndarray of shape (n_components, n_columns)
        Only after training with covariates: posterior means of lambda. A document with row x of
        the design has Dirichlet parameters exp(lambda @ x); ``doc_topic_prior_`` is then the mean
        over the documents.
    {coefficient draws}
    {concentrations}
    last_sample_ : LdaSample
        The last state of the chain; computed on access.
    bound_ : float
        Only after EM: lower bound of ln p(words | topics, alpha) of the training documents, in
        nats, without the pseudo-counts; -inf if Ctrl-C came before the first iteration. It never
        decreases between iterations if `topic_word_prior` is 0.
    {words and seed}

    References
    ----------
    {Blei 2003}

    {Griffiths 2004}

    {Doyle 2009}

    D. Mimno and A. McCallum (2008). Topic models conditioned on arbitrary features with
    Dirichlet-multinomial regression. UAI.

    Examples
    --------
    >>> data = pb.datasets.make_lda_corpus(200, 50, 3, random_state=0)
    >>> lda = pb.LatentDirichletAllocation(3, max_iter=50, random_state=0).fit(data.corpus)
    >>> lda.components_.shape
    (3, 50)
    """

    _default_event = "sequence"
    _conditions_on_length = True
    _prior_argument = "doc_topic_prior"
    _arrays = ("components_", "doc_topic_prior_")

    def __init__(
        self,
        n_components: int = 10,
        *,
        doc_topic_prior: Any = None,
        topic_word_prior: float | None = None,
        learn_priors: bool | None = None,
        max_iter: int = 200,
        burn_in: int | None = None,
        thin: int = 5,
        n_init: int = 1,
        n_jobs: int | None = None,
        random_state: Any = None,
        progress: bool = False,
        checkpoint: Any = None,
        checkpoint_every: int | str = 100,
        fit_method: str = "gibbs",
        init: LatentDirichletAllocation | None = None,
        tol: float = _TOLERANCE,
        formula: str | None = None,
        topic_concentration: Any = None,
    ) -> None:
        self.n_components = n_components
        self.doc_topic_prior = doc_topic_prior
        self.topic_word_prior = topic_word_prior
        self.learn_priors = learn_priors
        self.max_iter = max_iter
        self.burn_in = burn_in
        self.thin = thin
        self.n_init = n_init
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.progress = progress
        self.checkpoint = checkpoint
        self.checkpoint_every = checkpoint_every
        self.fit_method = fit_method
        self.init = init
        self.tol = tol
        self.formula = formula
        self.topic_concentration = topic_concentration

    def __sklearn_clone__(self) -> Self:
        """Copy the parameters; `init` stays fitted, since it is data."""
        copied: Self = super().__sklearn_clone__()
        copied.init = self.init
        return copied

    def _check_arguments(self, **of_fit: tuple[Any, Any]) -> None:
        """Refuse options and arguments of ``fit`` that its `fit_method` would ignore."""
        method = checks.choice("fit_method", self.fit_method, ("gibbs", "em"))
        options = {name: (getattr(self, name), value) for name, value in _UNUSED[method].items()}
        for name, (value, default) in (options | ({} if method == "gibbs" else of_fit)).items():
            if value is not default and not (type(value) is type(default) and value == default):
                raise InvalidArgumentError(
                    f"{argument(name)} has no effect with {argument('fit_method', method)}: omit it"
                )

    def _fit(
        self,
        X: Any,
        exposure: Any,
        covariates: Any,
        looks: EvaluationSchedule,
        executor: Executor | None,
    ) -> Self:
        if not self._samples():
            return self._fit_em(X, exposure)
        return super()._fit(X, exposure, covariates, looks, executor)

    @classmethod
    def from_parameters(
        cls,
        *,
        doc_topic_prior: Any,
        topic_word: Any,
        topic_concentration: Any = None,
        vocabulary: Any = None,
        random_state: Any = None,
    ) -> Self:
        """Make a fitted model from known parameters.

        Parameters
        ----------
        doc_topic_prior : float or array of shape (n_components,)
            Dirichlet parameter alpha of the topic weights; positive.
        topic_word : array or DataFrame of shape (n_components, n_words)
            Word probabilities of each topic; rows sum to 1. Columns of a DataFrame are words,
            and its index names the topics.
        topic_concentration : float or array of shape (n_components,), optional
            Concentrations s of bursty topics, in pseudo-counts: each document draws its own version
            of topic k, phi_dk ~ Dirichlet(s_k phi_k). Infinite ones are topics of LDA, the default.
        {vocabulary}
        {seed of transform}

        Returns
        -------
        LatentDirichletAllocation
            Ready to score and to transform.

        Raises
        ------
        InvalidArgumentError, InvalidTypeError
            If the prior is not positive, rows of `topic_word` are negative or do not sum to 1, or
            shapes do not fit.

        Examples
        --------
        >>> lda = pb.LatentDirichletAllocation.from_parameters(
        ...     doc_topic_prior=0.5, topic_word=[[0.9, 0.1], [0.2, 0.8]], vocabulary=["urn", "ball"]
        ... )
        >>> round(lda.perplexity([[2, 1]]), 4)
        2.1816
        """
        topics, _ = topics_by_name("topic_word", topic_word, vocabulary)
        n_components = len(checks.matrix("topic_word", topics))
        doc_topic_prior = by_topic("doc_topic_prior", doc_topic_prior, topic_word)
        topic_concentration = by_topic("topic_concentration", topic_concentration, topic_word)
        model = cls(n_components, doc_topic_prior=doc_topic_prior, random_state=random_state)
        prior = checks.positive_vector("doc_topic_prior", doc_topic_prior, n_components)
        model._set_topic_word(topic_word, vocabulary, random_state, normalised=True)
        model.doc_topic_prior_ = prior
        return model._made_bursty(topic_concentration)

    @available_if(_sampled)  # type: ignore[untyped-decorator]
    def partial_fit(
        self,
        X: Any,
        y: Any = None,  # noqa: ARG002
        *,
        layer: str | None = None,
    ) -> Self:
        """Learn from more documents without the earlier ones; Gibbs sampling only.

        A model that is not fitted is trained as by ``fit``. For a fitted model, Gibbs sampling runs
        over the new documents only, for ``max_iter`` sweeps. Earlier documents enter through the
        prior of the topics, phi_k ~ Dirichlet((V beta + n_k) phi'_k), where phi' are the old
        topics, beta their prior and n_k their tokens. This is assumed-density filtering, and it is
        overconfident: it treats the topics of old tokens as known, so that a poor mode of the first
        documents stays, and a new theme may have to share a topic with an old one. The order of the
        documents matters. If all documents fit into memory, ``fit`` is better.

        Priors stay fixed, even if learned; the vocabulary must be that of the first documents. It
        needs 16 bytes per topic and word more than ``fit``.

        Parameters
        ----------
        X : Corpus, sparse matrix, integer array or DataFrame, shape (n_documents, n_words)
            The new documents.
        {y}
        {layer}

        Returns
        -------
        self
            ``components_`` and ``topic_counts_`` include all documents so far; ``n_iter_``,
            ``trace_`` and ``last_sample_`` are for this call. No checkpoints are written.

        Raises
        ------
        InvalidArgumentError
            If `X` holds no tokens, its words differ from the model's, or the model was made by
            ``from_parameters``, so that the tokens behind its topics are unknown.
        Interrupted
            On Ctrl-C, as in ``fit``.

        References
        ----------
        P. S. Maybeck (1982). Stochastic models, estimation and control. Academic Press.

        Examples
        --------
        >>> lda = pb.LatentDirichletAllocation(2, max_iter=20, random_state=0)
        >>> lda = lda.fit([[3, 1, 0, 0], [0, 0, 1, 3]])
        >>> int(lda.partial_fit([[2, 2, 0, 0], [0, 0, 2, 2]]).topic_counts_.sum())
        16
        """
        if self.formula is not None or hasattr(self, "_design"):
            raise InvalidArgumentError(
                "partial_fit takes no covariates: their coefficients rest on all documents; call "
                "fit on all of them"
            )
        if (
            self.topic_concentration is not None
            or np.isfinite(getattr(self, "topic_concentration_", np.inf)).any()
        ):
            raise InvalidArgumentError(
                "partial_fit takes no bursty topics, whose words rest on all documents: omit "
                f"{argument('topic_concentration')}, or call fit on all of them"
            )
        X = of_layer(X, layer)
        if not hasattr(self, "components_"):
            return self.fit(X)
        if not (hasattr(self, "topic_counts_") and hasattr(self, "topic_word_prior_")):
            raise InvalidArgumentError(
                "partial_fit cannot weigh the model's topics against new documents: they were not "
                "learned here, so the number of tokens they rest on is not known; call fit"
            )
        with all_or_nothing(self):
            return self._learn_from(X)

    def _learn_from(self, X: Any) -> Self:
        """Sample the topics of new documents, with earlier results as prior."""
        self._check_columns(X)
        corpus = exposed(self, self._aligned(X, "X", "raise")[0], None)
        self._check_tokens(corpus)
        # A separate stream for every batch, identified by the number of tokens before it.
        batch = np.random.SeedSequence([self.seed_, int(self.topic_counts_.sum())])
        schedule = self._schedule()._replace(seed=draw_seed(batch))
        before = self._before()
        self._trained_on = ""
        training = _core.Training.lda(
            corpus._core_documents(),
            corpus.n_words,
            alpha=self.doc_topic_prior_,
            beta=self.topic_word_prior_,
            learned=False,
            schedule=schedule,
            topic_priors=before.topic_priors,
        )
        looks = EvaluationSchedule(_LOOK_EVERY, None, None)
        take = partial(self._take, corpus, before, training)
        return self._sample(training, schedule, looks, take)

    @property
    def last_sample_(self) -> LdaSample:
        """The last state of training; not saved to files.

        ``topic_word`` is the mean of phi given the topics of all tokens in that state; it is
        computed at each call.
        """
        last = self._last_state()
        n_topics = last.counts.shape[0]
        alpha, beta = last.parameters[:n_topics].copy(), float(last.parameters[n_topics])
        return LdaSample(last.topic_word(), alpha, beta, last.concentration)

    def _start_length(self) -> StartLength:
        learns = self._learns_priors() or self.formula is not None
        return LEARNED_START if learns else super()._start_length()

    def _samples(self) -> bool:
        return self.fit_method == "gibbs"

    def _draw_documents(
        self,
        n_documents: int,
        sizes: Any,
        priors: NDArray[np.float64] | None,
        rng: np.random.Generator,
    ) -> tuple[sparse.csr_matrix, NDArray[np.uint16]]:
        if priors is None:
            weights = rng.dirichlet(self.doc_topic_prior_, size=n_documents)
        else:
            weights = dirichlet(rng, priors, axis=1)
        counts = rng.multinomial(sizes, weights)
        return documents_of_topics(
            counts, self.components_, rng, concentration=self.topic_concentration_
        )

    def _draw_weights(
        self, generator: np.random.Generator, tokens: TokenTopics
    ) -> NDArray[np.float64]:
        n_topics, parameters = len(self.components_), self._last.parameters
        alpha = self._state_priors(parameters[:n_topics], parameters[n_topics + 1 :])
        return dirichlet(generator, alpha + tokens.by_document(n_topics), axis=1)

    def _core_parts(self) -> CoreParts:
        return CoreParts("lda", (self.doc_topic_prior_, self.components_, *self._bursts()))

    def _training(
        self,
        documents: Corpus | Shards,  # noqa: ARG002
        n_components: int,
    ) -> partial[_core.Training]:
        alpha = 5.0 / n_components if self.doc_topic_prior is None else self.doc_topic_prior
        beta = 0.1 if self.topic_word_prior is None else self.topic_word_prior
        alpha = checks.positive_vector("doc_topic_prior", alpha, n_components)
        beta = checks.positive_number("topic_word_prior", beta)
        return partial(_core.Training.lda, alpha=alpha, beta=beta, learned=self._learns_priors())

    def _before(self) -> PreviousState:
        """The topics so far as a Dirichlet prior."""
        tokens = self.components_.shape[1] * self.topic_word_prior_ + self.topic_counts_
        priors = np.ascontiguousarray((self.components_ * tokens[:, np.newaxis]).T)
        return PreviousState(np.maximum(priors, LEAST_PRIOR, out=priors), self.topic_counts_)

    def _take_parameters(self, others: NDArray[np.float64]) -> int:
        n_topics = len(self.components_)
        self.doc_topic_prior_ = others[:n_topics].copy()
        self.topic_word_prior_ = float(others[n_topics])
        return n_topics + 1

    def _topic_prior(self, parameters: NDArray[np.float64]) -> float:
        return float(parameters[len(self.components_)])

    def _learned_state(self) -> dict[str, Any]:
        n_topics, parameters = len(self.components_), self._last.parameters
        found: dict[str, Any] = {}
        if self._learns_priors() or hasattr(self, "_design"):
            found["doc_topic_prior_sum"] = float(parameters[:n_topics].sum())
        if self._learns_priors():
            found["topic_word_prior"] = float(parameters[n_topics])
        return found | super()._learned_state()
