"""Latent Dirichlet allocation as a scikit-learn estimator."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from polyabayes import _checks, _core
from polyabayes._fitting import Looks
from polyabayes._model import Before, TopicModel
from polyabayes._random import draw_seed
from polyabayes.corpus import Corpus
from polyabayes.exceptions import InvalidArgumentError, InvalidTypeError

__all__ = ["LatentDirichletAllocation"]

# Sweeps between two entries of the trace of partial_fit.
_LOOK_EVERY = 10
# Of a topic and word, where its expected tokens have underflown.
_LEAST_PRIOR = 1e-100


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
    """

    topic_word: NDArray[np.float64]
    doc_topic_prior: NDArray[np.float64]
    topic_word_prior: float


class LatentDirichletAllocation(TopicModel):
    """Latent Dirichlet allocation, trained by Gibbs sampling.

    theta_d ~ Dirichlet(doc_topic_prior), phi_k ~ Dirichlet(topic_word_prior); a token's topic is
    drawn from theta_d, its word from that topic's phi. Training alternates the topics of all
    tokens given phi (theta integrated out, documents in parallel) and phi given those topics: an
    exact sampler, the same bits for any number of threads. A sweep costs tokens x topics.

    Parameters
    ----------
    n_components : int, default=10
        Number of topics K.
    doc_topic_prior : float or array of shape (n_components,), optional
        Dirichlet parameter of the topic weights; None means 5 / n_components.
    topic_word_prior : float, optional
        Dirichlet parameter of the topics; None means 0.1.
    learn_priors : bool, default=False
        Learn both priors, one doc_topic_prior a topic and one topic_word_prior for all: they get
        exponential priors whose means are the values above.
    max_iter : int, default=200
        Gibbs sweeps.
    burn_in : int, optional
        Sweeps that are not averaged over; None means half of `max_iter`.
    thin : int, default=5
        Average over one sweep in this many.
    n_jobs : int, optional
        Threads; None means all cores.
    random_state : None, int, RandomState, Generator or SeedSequence
        Equal seeds give equal bits.
    progress : bool, default=False
        Show a progress bar (needs tqdm).
    checkpoint : path-like, optional
        Folder for the state of the run, replaced whole every `checkpoint_every` sweeps and at the
        end. Where it holds the state of a run of the same corpus, model and schedule, ``fit`` goes
        on from there and ends bit-equal to a run without a break; that of another run is refused.
    checkpoint_every : int, default=100
        Sweeps between two checkpoints.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_words)
        phi: posterior mean word probabilities of each topic; rows sum to 1.
    doc_topic_prior_ : ndarray of shape (n_components,)
        The prior used, or its posterior mean where it is learned.
    topic_word_prior_ : float
        The same; after ``fit`` only.
    n_iter_ : int
        Sweeps completed.
    topic_counts_ : ndarray of int, shape (n_components,)
        Tokens of each topic in the last state, those of documents before ``partial_fit`` included.
    trace_ : TrainingTrace
        ln of the joint density, and the held-out nats per token, every ``eval_every`` sweeps.
    last_sample_ : LdaSample
        The last state of the chain beside the means; made when asked for.
    n_features_in_ : int
        Size of the vocabulary.
    vocabulary_ : ndarray of str or None
        The words, where the training data named them.
    seed_ : int
        Seed that the random state gave; it also serves ``transform`` and ``score``.

    Examples
    --------
    >>> import polyabayes as pb
    >>> data = pb.datasets.make_lda_corpus(200, 50, 3, random_state=0)
    >>> lda = pb.LatentDirichletAllocation(3, max_iter=50, random_state=0).fit(data.corpus)
    >>> lda.components_.shape
    (3, 50)
    """

    _default_event = "sequence"
    _conditions_on_length = True
    _arrays = ("components_", "doc_topic_prior_")

    doc_topic_prior_: NDArray[np.float64]
    topic_word_prior_: float

    def __init__(
        self,
        n_components: int = 10,
        *,
        doc_topic_prior: Any = None,
        topic_word_prior: float | None = None,
        learn_priors: bool = False,
        max_iter: int = 200,
        burn_in: int | None = None,
        thin: int = 5,
        n_jobs: int | None = None,
        random_state: Any = None,
        progress: bool = False,
        checkpoint: Any = None,
        checkpoint_every: int = 100,
    ) -> None:
        self.n_components = n_components
        self.doc_topic_prior = doc_topic_prior
        self.topic_word_prior = topic_word_prior
        self.learn_priors = learn_priors
        self.max_iter = max_iter
        self.burn_in = burn_in
        self.thin = thin
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.progress = progress
        self.checkpoint = checkpoint
        self.checkpoint_every = checkpoint_every

    @classmethod
    def from_parameters(
        cls,
        *,
        doc_topic_prior: Any,
        topic_word: Any,
        vocabulary: Any = None,
        random_state: Any = None,
    ) -> Self:
        """Make a fitted model from known parameters.

        Parameters
        ----------
        doc_topic_prior : float or array of shape (n_components,)
            Dirichlet parameter alpha of the topic weights; positive.
        topic_word : array of shape (n_components, n_words)
            Word probabilities of each topic; rows sum to 1.
        vocabulary : sequence of str of length n_words, optional
            The words.
        random_state : None, int, RandomState, Generator or SeedSequence
            Seed of ``transform`` and ``score``.

        Returns
        -------
        LatentDirichletAllocation
        """
        n_components = len(_checks.matrix("topic_word", topic_word))
        model = cls(n_components, doc_topic_prior=doc_topic_prior, random_state=random_state)
        prior = _checks.positive_vector("doc_topic_prior", doc_topic_prior, n_components)
        model._set_topic_word(topic_word, vocabulary, random_state, normalised=True)
        model.doc_topic_prior_ = prior
        return model

    def partial_fit(self, X: Any, y: Any = None) -> Self:  # noqa: ARG002
        """Learn from more documents, without those seen before.

        A model that is not fitted is trained as by ``fit``. For one that is, Gibbs sampling runs
        over the new documents alone, ``max_iter`` sweeps of it, and the old ones enter through the
        prior of the topics: phi_k ~ Dirichlet((n_words topic_word_prior_ + topic_counts_k)
        components_k). That is assumed-density filtering: a topic's posterior is replaced by the
        Dirichlet of its mean that is as sharp as if the topics of all old tokens were known. So
        it is too sure: old tokens keep their topics whatever the new ones tell, a poor mode of the
        first documents stays, and a new theme shares its component with an old one where none has
        few tokens. The order of the documents matters. Where all documents fit into memory,
        ``fit`` is better.

        The priors of documents and topics stay as they are, learned ones too; words must be those
        of the first documents. Memory beside that of ``fit``: 16 bytes a topic and word.

        Parameters
        ----------
        X : Corpus, sparse matrix, integer array or DataFrame, shape (n_documents, n_words)
            The new documents.
        y : ignored
            Present for scikit-learn.

        Returns
        -------
        self
            ``components_`` rest on all documents so far, ``topic_counts_`` are of all of them;
            ``n_iter_``, ``trace_`` and ``last_sample_`` are of this call. Checkpoints are of
            ``fit`` only.

        Raises
        ------
        InvalidArgumentError
            If `X` holds no tokens or other words than the model's, or if it is not known on how
            many tokens the topics rest: those of ``from_parameters``.
        Interrupted
            On Ctrl-C, as in ``fit``.
        """
        if not hasattr(self, "components_"):
            return self.fit(X)
        if not (hasattr(self, "topic_counts_") and hasattr(self, "topic_word_prior_")):
            raise InvalidArgumentError(
                "partial_fit cannot weigh the model's topics against new documents: they were not "
                "learned here, so the number of tokens they rest on is not known; call fit"
            )
        corpus = self._checked(X)
        if not corpus.n_tokens:
            raise InvalidArgumentError("X holds no tokens: every document is empty")
        # A stream of its own for every batch, whose number of tokens before it tells it apart.
        batch = np.random.SeedSequence([self.seed_, int(self.topic_counts_.sum())])
        schedule = self._schedule()._replace(seed=draw_seed(batch))
        before = self._before()
        train = partial(
            _core.fit_lda,
            alpha=self.doc_topic_prior_,
            beta=self.topic_word_prior_,
            learned=False,
            topic_priors=before.topic_priors,
        )
        looks = Looks(_LOOK_EVERY, partial(self._take, corpus, before), None, None)
        return self._sample(corpus, train, schedule, looks)

    @property
    def last_sample_(self) -> LdaSample:
        """The state in which training ended, beside the posterior means; not part of a saved model.

        phi is integrated out: ``topic_word`` is its mean given the topics of all tokens in that
        state, made anew at each call.
        """
        last = self._last_state()
        alpha, beta = last.parameters[:-1].copy(), float(last.parameters[-1])
        return LdaSample(last.topic_word(), alpha, beta)

    def _core_model(self) -> _core.Model:
        return _core.Model.lda(self.doc_topic_prior_, self.components_)

    def _training(
        self,
        corpus: Corpus,  # noqa: ARG002
        n_components: int,
    ) -> partial[_core.FitResult]:
        alpha = 5.0 / n_components if self.doc_topic_prior is None else self.doc_topic_prior
        beta = 0.1 if self.topic_word_prior is None else self.topic_word_prior
        if not isinstance(self.learn_priors, bool):
            raise InvalidTypeError(f"learn_priors must be a bool, got {self.learn_priors!r}")
        return partial(
            _core.fit_lda,
            alpha=_checks.positive_vector("doc_topic_prior", alpha, n_components),
            beta=_checks.positive_number("topic_word_prior", beta),
            learned=self.learn_priors,
        )

    def _before(self) -> Before:
        """The topics so far as a Dirichlet prior."""
        tokens = self.components_.shape[1] * self.topic_word_prior_ + self.topic_counts_
        priors = np.ascontiguousarray((self.components_ * tokens[:, np.newaxis]).T)
        return Before(np.maximum(priors, _LEAST_PRIOR, out=priors), self.topic_counts_)

    def _take_parameters(self, result: _core.FitResult) -> None:
        self.doc_topic_prior_, beta = result.others
        self.topic_word_prior_ = float(beta[0])

    def _topic_prior(self, state: _core.FitState) -> float:
        return float(state.parameters[-1])

    def _learned_state(self) -> dict[str, Any]:
        if not self.learn_priors:
            return {}
        *alpha, beta = self._last.parameters
        return {"doc_topic_prior_sum": sum(alpha), "topic_word_prior": beta}
