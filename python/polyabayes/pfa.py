"""Poisson factor analysis as a scikit-learn estimator."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from polyabayes import _checks, _core
from polyabayes._model import TopicModel
from polyabayes.corpus import Corpus
from polyabayes.exceptions import InvalidArgumentError

__all__ = ["PoissonFactorAnalysis"]

PRIORS = ("gap", "gamma", "beta-gamma", "beta-gamma-gamma")


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
    """

    topic_word: NDArray[np.float64]
    shape: NDArray[np.float64]
    probability: NDArray[np.float64]


class PoissonFactorAnalysis(TopicModel):
    """Gamma-Poisson factor analysis, trained by collapsed Gibbs sampling.

    theta_dk ~ Gamma(shape r_k, scale p_k / (1 - p_k)), phi_k ~ Dirichlet(topic_word_prior),
    y_dw ~ Poisson(sum_k theta_dk phi_kw). Training integrates theta out: the topics of all
    tokens are drawn given phi, p and r (documents in parallel), then phi, p and r given those
    topics (Zhou & Carin 2013). The same bits for any number of threads. A sweep costs
    tokens x topics.

    Parameters
    ----------
    n_components : int, default=10
        Number of topics K.
    prior : {"gap", "gamma", "beta-gamma", "beta-gamma-gamma"}, default="beta-gamma-gamma"
        What is learned beside phi: nothing, r, p, or both. ``"beta-gamma"``, r fixed at 1, is
        the model of Capdevila et al. 2018.
    shape : float or array of shape (n_components,), default=1.0
        r: where it starts, or its fixed value.
    probability : float or array of shape (n_components,), optional
        p: where it starts, or its fixed value. None gives all topics the value at which the
        mean document length is that of the data.
    topic_word_prior : float, default=0.1
        Dirichlet parameter alpha of the topics.
    probability_concentration : float, default=1.0
        c of p_k ~ Beta(c e, c (1 - e)).
    probability_mean : float, optional
        e of p_k ~ Beta(c e, c (1 - e)); None means 1 / n_components.
    shape_concentration : float, default=1.0
        c0 of r_k ~ Gamma(c0 r0, rate c0).
    shape_mean : float, default=1.0
        r0 of r_k ~ Gamma(c0 r0, rate c0).
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
        phi: posterior mean word probabilities of each topic; rows sum to 1 after ``fit``.
    shape_ : ndarray of shape (n_components,)
        r: posterior mean.
    probability_ : ndarray of shape (n_components,)
        p: posterior mean.
    n_iter_ : int
        Sweeps completed.
    topic_counts_ : ndarray of int, shape (n_components,)
        Tokens of each topic in the last state.
    trace_ : TrainingTrace
        ln of the joint density, and the held-out nats per token, every ``eval_every`` sweeps.
    last_sample_ : PfaSample
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
    >>> data = pb.datasets.make_gamma_poisson_corpus(200, 50, 3, random_state=0)
    >>> pfa = pb.PoissonFactorAnalysis(3, max_iter=50, random_state=0).fit(data.corpus)
    >>> pfa.probability_.shape
    (3,)
    """

    _default_event = "counts"
    _conditions_on_length = False
    _arrays = ("components_", "shape_", "probability_")

    shape_: NDArray[np.float64]
    probability_: NDArray[np.float64]

    def __init__(
        self,
        n_components: int = 10,
        *,
        prior: str = "beta-gamma-gamma",
        shape: Any = 1.0,
        probability: Any = None,
        topic_word_prior: float = 0.1,
        probability_concentration: float = 1.0,
        probability_mean: float | None = None,
        shape_concentration: float = 1.0,
        shape_mean: float = 1.0,
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
        self.prior = prior
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
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.progress = progress
        self.checkpoint = checkpoint
        self.checkpoint_every = checkpoint_every

    @classmethod
    def from_parameters(
        cls,
        *,
        topic_word: Any,
        shape: Any,
        probability: Any,
        vocabulary: Any = None,
        random_state: Any = None,
    ) -> Self:
        """Make a fitted model from known parameters.

        Parameters
        ----------
        topic_word : array of shape (n_components, n_words)
            phi: weights of the words in each topic, not negative; rows need not sum to 1.
        shape : float or array of shape (n_components,)
            r: shapes of the gamma prior; positive.
        probability : float or array of shape (n_components,)
            p: the gamma prior's scale is p / (1 - p); strictly between 0 and 1.
        vocabulary : sequence of str of length n_words, optional
            The words.
        random_state : None, int, RandomState, Generator or SeedSequence
            Seed of ``transform`` and ``score``.

        Returns
        -------
        PoissonFactorAnalysis
        """
        n_components = len(_checks.matrix("topic_word", topic_word))
        model = cls(n_components, shape=shape, probability=probability, random_state=random_state)
        r = _checks.positive_vector("shape", shape, n_components)
        p = _probabilities(probability, n_components)
        model._set_topic_word(topic_word, vocabulary, random_state, normalised=False)
        model.shape_, model.probability_ = r, p
        return model

    @property
    def last_sample_(self) -> PfaSample:
        """The state in which training ended, beside the posterior means; not part of a saved model.

        phi is integrated out: ``topic_word`` is its mean given the topics of all tokens in that
        state, made anew at each call.
        """
        last = self._last_state()
        # Followed by ln(1 - p).
        r, p = last.parameters.reshape(3, -1)[:2].copy()
        return PfaSample(last.topic_word(), r, p)

    def _core_model(self) -> _core.Model:
        return _core.Model.gamma_poisson(self.shape_, self.probability_, self.components_)

    def _training(self, corpus: Corpus, n_components: int) -> partial[_core.FitResult]:
        prior = _checks.choice("prior", self.prior, PRIORS)
        r = _checks.positive_vector("shape", self.shape, n_components)
        if self.probability is None:
            mean_length = corpus.n_tokens / corpus.n_documents
            p = np.full(n_components, mean_length / (mean_length + r.sum()))
        else:
            p = _probabilities(self.probability, n_components)
        learns_p, learns_r = _learned(prior)
        return partial(
            _core.fit_pfa,
            shape=r,
            probability=p,
            topic_word_prior=_checks.positive_number("topic_word_prior", self.topic_word_prior),
            probability_prior=self._probability_prior(n_components) if learns_p else None,
            shape_prior=self._shape_prior() if learns_r else None,
        )

    def _take_parameters(self, result: _core.FitResult) -> None:
        self.shape_, self.probability_ = result.others

    def _topic_prior(self, state: _core.FitState) -> float:  # noqa: ARG002
        return float(self.topic_word_prior)

    def _learned_state(self) -> dict[str, Any]:
        r, p, _ = self._last.parameters.reshape(3, -1)
        learns_p, learns_r = _learned(self.prior)
        learned = {"shape": r} if learns_r else {}
        learned |= {"probability": p} if learns_p else {}
        return {name: np.sort(values)[::-1] for name, values in learned.items()}

    def _probability_prior(self, n_components: int) -> tuple[float, float]:
        c = _checks.positive_number("probability_concentration", self.probability_concentration)
        # The mean 1 / K of a single topic would leave the Beta prior no second parameter.
        default = 1.0 / n_components if n_components > 1 else 0.5
        mean = default if self.probability_mean is None else self.probability_mean
        mean = _checks.share("probability_mean", mean)
        return c * mean, c * (1.0 - mean)

    def _shape_prior(self) -> tuple[float, float]:
        rate = _checks.positive_number("shape_concentration", self.shape_concentration)
        return rate * _checks.positive_number("shape_mean", self.shape_mean), rate


def _learned(prior: str) -> tuple[bool, bool]:
    """Whether p is learned, and whether r is."""
    return prior.startswith("beta"), prior in ("gamma", "beta-gamma-gamma")


def _probabilities(value: Any, size: int) -> NDArray[np.float64]:
    array = _checks.vector("probability", value, size)
    bad = np.flatnonzero(~((array > 0) & (array < 1)))
    if len(bad):
        raise InvalidArgumentError(
            f"probability must be strictly between 0 and 1, but entry {bad[0]} is {array[bad[0]]}"
        )
    return array
