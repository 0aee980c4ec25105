"""Concentrations of given topics, learned from documents."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from polyabayes import _core
from polyabayes._support import checks
from polyabayes._support.arrays import Floats
from polyabayes._support.docs import shared_docs
from polyabayes._support.random import RandomState, draw_seed
from polyabayes._support.results import Record
from polyabayes.data.corpus import Corpus
from polyabayes.exceptions import Interrupted, InvalidArgumentError, argument
from polyabayes.likelihood.foreign import Scorable, as_scorable, exposed, of_measured_words
from polyabayes.models.fitting import EvaluationSchedule, Schedule, run
from polyabayes.models.topic_model import MOST_SWEEPS, WARM_UP


@dataclass(frozen=True, repr=False, eq=False)
class TopicConcentration(Record):
    """Concentrations of topics with intervals.

    Attributes
    ----------
    value : float or ndarray of shape (n_components,)
        exp of the posterior mean of ln s: one number for all topics, or one per topic.
    lower, upper : like `value`
        Ends of the equal-tailed posterior interval. Ordinary topics, s = inf, are never inside it:
        large documents show them by a `lower` far above their number of tokens.
    draws : ndarray of shape (n_draws,) or (n_draws, n_components)
        Draws of s after the burn-in, without thinning.
    level : float
        Probability of the interval.

    Examples
    --------
    >>> s = pb.learn_topic_concentration(model, [[9, 0, 0, 0], [0, 7, 1, 0]], random_state=0)
    >>> bool(s.lower < s.value < s.upper)
    True
    """

    value: Any
    lower: Any
    upper: Any
    draws: Floats
    level: float

    def _columns(self) -> dict[str, Any]:
        found = {name: np.atleast_1d(getattr(self, name)) for name in ("value", "lower", "upper")}
        return {"topic": np.arange(len(found["value"])), **found} if np.ndim(self.value) else found


@shared_docs
def learn_topic_concentration(
    model: Any,
    documents: Any,
    *,
    per_topic: bool = False,
    missing_words: str | None = None,
    max_iter: int = 300,
    random_state: RandomState = None,
    n_jobs: int | None = None,
    level: float = 0.95,
    progress: bool = False,
) -> TopicConcentration:
    """Learn how bursty given topics are: the concentration s of Dirichlet(s phi_k).

    In every document, topic k has word probabilities of its own, drawn from Dirichlet(s_k phi_k);
    s = inf is the model as it is. Gibbs sampling draws the topics of all tokens and s, exactly;
    topics phi and the prior of topic weights stay as they are. A priori, s / (s + 100) is uniform:
    the share of new, not repeated, words once a document has 100 tokens of a topic. A sweep costs
    tokens x topics.

    Parameters
    ----------
    model : fitted LDA or gamma-Poisson model
        A LatentDirichletAllocation, a PoissonFactorAnalysis, or a model of another package as for
        :func:`log_likelihood`. All documents must share the prior.
    {documents}
    per_topic : bool, default=False
        Learn one concentration per topic instead of one for all.
    {missing words}
    max_iter : int, default=300
        Gibbs sweeps, of which the first third is left out.
    {seed}
    {n_jobs}
    {level}
    {progress}

    Returns
    -------
    TopicConcentration
        ``value``, ``lower``, ``upper`` and ``draws``.

    Raises
    ------
    InvalidArgumentError, InvalidCountsError, InvalidTypeError
        If the model is no LDA or gamma-Poisson model with one prior for all documents, or a
        document has an exposure, more than 65,535 tokens, or a word with probability zero in all
        topics.
    Interrupted
        On Ctrl-C after the first draw: its ``partial`` has the draws so far.

    References
    ----------
    {Doyle 2009}

    Examples
    --------
    >>> data = pb.datasets.make_lda_corpus(50, 30, 2, random_state=0)
    >>> lda = pb.LatentDirichletAllocation.from_parameters(
    ...     doc_topic_prior=data.doc_topic_prior, topic_word=data.topic_word
    ... )
    >>> found = pb.learn_topic_concentration(lda, data.corpus, max_iter=60, random_state=0)
    >>> bool(found.lower > 100)
    True
    """
    scorable = as_scorable("model", model)
    # The first sweeps take no topic for bursty: tokens leave topics that cannot hold their word.
    max_iter = checks.whole_number("max_iter", max_iter, 12, MOST_SWEEPS)
    level, per_topic = checks.share("level", level), checks.flag("per_topic", per_topic)
    scorable, documents = of_measured_words(
        scorable, documents, "documents", missing_words, "raise"
    )
    prior, topics, factors = _parts(scorable)
    corpus = exposed(scorable, scorable._aligned(documents, "documents", "raise")[0], None)
    _check_documents(corpus, topics)
    burn_in = max_iter // 3
    schedule = Schedule(
        max_iter=max_iter,
        burn_in=burn_in,
        warm_up=min(WARM_UP, burn_in // 2),
        thin=MOST_SWEEPS,
        start_sweeps=0,
        n_init=1,
        seed=draw_seed(random_state),
        n_jobs=checks.n_threads(n_jobs),
    )
    training = _core.Training.known(
        corpus._core_documents(),
        prior=prior,
        topics=np.ascontiguousarray(topics.T),
        factors=factors,
        topic_concentration="per topic" if per_topic else "shared",
        schedule=schedule,
    )
    looks = EvaluationSchedule(max_iter, None, None)
    interruption = run(training, schedule, looks, lambda: None, progress=progress)
    draws = np.exp(training.kept_coefficients().reshape(-1, len(prior)))
    if interruption is not None and not (
        isinstance(interruption, KeyboardInterrupt) and len(draws)
    ):
        raise interruption
    found = _summary(draws if per_topic else draws[:, 0], level)
    if interruption is not None:
        message = f"stopped after {training.n_sweeps:,} of {max_iter:,} sweeps"
        raise Interrupted(message, found)
    return found


def _parts(model: Scorable) -> tuple[Floats, Floats, Floats]:
    """Pseudo-counts, topics whose rows sum to 1, and urn weights of words over these."""
    if model._has_prior_rows() or hasattr(model, "_design"):
        raise InvalidArgumentError(
            f"{argument('model')} has a prior for each document: make one with a shared prior, by "
            "LatentDirichletAllocation.from_parameters"
        )
    kind, arrays = model._core_parts()[:2]
    if kind == "lda":
        prior, topics = arrays[:2]
        return prior, topics, np.ones(len(prior))
    if kind != "gamma_poisson":
        raise InvalidArgumentError(
            f"{argument('model')} must be an LDA or a gamma-Poisson model, whose topics words are "
            f"drawn from one by one, not {kind.replace('_', '-')}"
        )
    prior, probability, weights = arrays[:3]
    sizes = weights.sum(axis=1)
    odds = sizes * probability / (1 - probability)
    return prior, weights / sizes[:, np.newaxis], odds / (1 + odds)


def _check_documents(corpus: Corpus, topics: Floats) -> None:
    if corpus.exposure is not None:
        raise InvalidArgumentError(
            f"{argument('documents')} have exposures, which concentrations do not take: give their "
            "counts alone"
        )
    if not corpus.n_tokens:
        raise InvalidArgumentError(f"{argument('documents')} hold no tokens")
    is_impossible = np.asarray(~(topics > 0).any(axis=0))
    impossible = np.flatnonzero(is_impossible[corpus.counts.indices])
    if len(impossible):
        cell = impossible[0]
        document = int(np.searchsorted(corpus.counts.indptr, cell, side="right")) - 1
        raise InvalidArgumentError(
            f"document {document} has the word {corpus.counts.indices[cell]}, whose probability is "
            f"zero in all topics: leave out such words, or smooth the topics"
        )


def _summary(draws: Floats, level: float) -> TopicConcentration:
    tails = np.quantile(draws, [(1 - level) / 2, (1 + level) / 2], axis=0)
    value = np.exp(np.log(draws).mean(axis=0))
    scalar = float if draws.ndim == 1 else np.asarray
    return TopicConcentration(scalar(value), scalar(tails[0]), scalar(tails[1]), draws, level)
