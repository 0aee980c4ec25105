"""A fitted topic model: data in and out, scores, files."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.base import TransformerMixin
from sklearn.utils import estimator_html_repr

from polyabayes import _core
from polyabayes._support import checks
from polyabayes._support.docs import shared_docs
from polyabayes._support.frames import import_pandas
from polyabayes._support.progress import progress_bar
from polyabayes._support.results import Result
from polyabayes._support.tables import counted
from polyabayes._support.warnings import quiet
from polyabayes.data.corpus import Corpus, of_layer
from polyabayes.exceptions import InvalidArgumentError
from polyabayes.likelihood.foreign import exposed
from polyabayes.likelihood.reliability import warn_of_caveats
from polyabayes.likelihood.result import LogLikelihood
from polyabayes.likelihood.scoring import log_likelihood
from polyabayes.models.stored_topics import StoredTopics
from polyabayes.models.topic_table import topics_html

_TRANSFORM_SWEEPS = 100

# Standard error of a mean per token: a tenth of the error with which a thousand documents tell
# models apart, about.
_SCORE_STD_ERROR = 0.001


@dataclass(frozen=True, repr=False, eq=False)
class TopicWeights(Result):
    """Posterior of the topic weights theta of documents; it unpacks to mean and std.

    Attributes
    ----------
    mean : ndarray of shape (n_documents, n_components)
        E[theta | document, model].
    std : ndarray of shape (n_documents, n_components)
        Posterior standard deviation of each weight.
    ids : ndarray of str objects, shape (n_documents,), or None
        Names of the documents, where they have some.

    Examples
    --------
    >>> corpus = pb.Corpus([[4, 0, 0, 0]], ids=["a"])
    >>> model.topic_weights(corpus).to_frame()[["document", "topic"]].values.tolist()
    [['a', 0], ['a', 1]]
    """

    mean: NDArray[np.float64]
    std: NDArray[np.float64]
    ids: NDArray[np.object_] | None = None

    def __iter__(self) -> Iterator[NDArray[np.float64]]:
        return iter((self.mean, self.std))

    def __repr__(self) -> str:
        n_documents, n_topics = self.mean.shape
        return f"<TopicWeights: {counted(n_documents, 'document')}, {counted(n_topics, 'topic')}>"

    def _columns(self) -> dict[str, Any]:
        document, topic = np.indices(self.mean.shape).reshape(2, -1)
        names = document if self.ids is None else self.ids[document]
        return {
            "document": names,
            "topic": topic,
            "mean": self.mean.ravel(),
            "std": self.std.ravel(),
        }


@shared_docs
class FittedModel(TransformerMixin, StoredTopics):  # type: ignore[misc]
    """Base class of topic models that have topics, trained here or given."""

    def transform(
        self,
        X: Any,
        *,
        layer: str | None = None,
        exposure: Any = None,
        covariates: Any = None,
        unseen: str = "raise",
    ) -> Any:
        """Posterior mean topic weights of documents.

        Parameters
        ----------
        {X}
        {layer}
        exposure : float or array of shape (n_documents,), optional
            Known sizes of the documents, which multiply their Poisson rates; gamma-Poisson models
            only. Default: those of the corpus, else 1.
        {covariates}
        {unseen}

        Returns
        -------
        ndarray of shape (n_documents, n_components)
            E[theta | document, model], averaged over Gibbs sweeps of each document: for LDA,
            probabilities; for gamma-Poisson, rates at exposure 1. Of NMF the weights that 200 of
            scikit-learn's updates reach from equal ones; words that no topic can produce are left
            out, with an ImpossibleDocumentWarning. After ``set_output(transform="pandas")`` a
            data frame whose index are the ids.

        {raises: bad documents}

        Examples
        --------
        >>> weights = model.transform([[9, 1, 0, 0]])
        >>> bool(weights[0, 0] > weights[0, 1])
        True
        """
        corpus = self._checked(of_layer(X, layer), unseen)
        weights = self._mean_weights(corpus, exposure, covariates)
        return _framed(self, weights, X, corpus.ids)

    def topic_weights(
        self,
        X: Any,
        *,
        layer: str | None = None,
        exposure: Any = None,
        covariates: Any = None,
        unseen: str = "raise",
    ) -> TopicWeights:
        """Posterior mean topic weights of documents, and how uncertain they are.

        Parameters
        ----------
        {X}
        {as of transform}
        {unseen}

        Returns
        -------
        TopicWeights
            ``mean``, bit by bit what ``transform`` gives, and ``std``, the posterior standard
            deviation of every weight given the document and the model: by the law of total
            variance, from the closed-form moments of theta given the topics of the tokens, over
            the same Gibbs sweeps; of a mixture sqrt(p (1 - p)), p the probability of a component.
            It leaves out the uncertainty about the model itself. Each has shape (n_documents,
            n_components). Its table names documents by their ids.

        {raises: bad documents}

        Examples
        --------
        >>> bool((model.topic_weights([[9, 1, 0, 0]]).std > 0).all())
        True
        """
        corpus = self._checked(of_layer(X, layer), unseen)
        weights = self._topic_weights(corpus, exposure, covariates, spread=True)
        return TopicWeights(weights[:, 0], weights[:, 1], corpus.ids)

    def score_samples(
        self, X: Any, *, layer: str | None = None, exposure: Any = None, covariates: Any = None
    ) -> NDArray[np.float64]:
        """Log-likelihood of each document in nats, by :func:`log_likelihood` with its defaults.

        Parameters
        ----------
        {X}
        {as of transform}

        Returns
        -------
        ndarray of shape (n_documents,)

        {raises: bad documents}

        Examples
        --------
        >>> model.score_samples([[1, 1, 1, 0]]).round(6).tolist()
        [-4.474051]
        """
        return self._log_likelihood(of_layer(X, layer), exposure, covariates).values

    def score(
        self,
        X: Any,
        y: Any = None,  # noqa: ARG002
        *,
        layer: str | None = None,
        exposure: Any = None,
        covariates: Any = None,
    ) -> float:
        """Mean log-likelihood in nats per token, to a standard error of 0.001; higher is better.

        Of the event that :func:`log_likelihood` asks the model about by default: the sequence for
        LDA, the counts with their length for gamma-Poisson. To compare the two, use
        :func:`compare`, which asks both the same.

        Parameters
        ----------
        {X}
        {y}
        {as of transform}

        Returns
        -------
        float
            Nats per token.

        {raises: no tokens}

        Examples
        --------
        >>> round(model.score([[1, 1, 1, 0]]), 6)
        -1.49135
        """
        return self._total(of_layer(X, layer), exposure, covariates).nats_per_token

    def perplexity(
        self, X: Any, *, layer: str | None = None, exposure: Any = None, covariates: Any = None
    ) -> float:
        """``exp`` of minus the mean log probability of a token, given the lengths; lower is better.

        The words are taken in order, whatever event ``score`` is of: the probability of a bag of
        words has no perplexity.

        Parameters
        ----------
        {X}
        {as of transform}

        Returns
        -------
        float
            At least 1 for LDA.

        {raises: no tokens}

        Examples
        --------
        >>> round(model.perplexity([[1, 1, 1, 0]]), 4)
        4.4431
        """
        event = {"event": "sequence", "given_length": True}
        return self._total(of_layer(X, layer), exposure, covariates, **event).perplexity

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:  # noqa: ARG002
        """Names of the columns of ``transform``: topic0, topic1, and so on.

        Parameters
        ----------
        input_features : ignored
            Present for scikit-learn.

        Returns
        -------
        ndarray of str objects, shape (n_components,)

        Raises
        ------
        NotFittedError
            If the model has no topics.

        Examples
        --------
        >>> model = pb.LatentDirichletAllocation.from_parameters(
        ...     doc_topic_prior=0.1, topic_word=[[0.5, 0.5], [0.1, 0.9]]
        ... )
        >>> model.get_feature_names_out().tolist()
        ['topic0', 'topic1']
        """
        self._check_fitted()
        names = [f"topic{topic}" for topic in range(len(self.components_))]
        return np.array(names, dtype=object)

    def _repr_mimebundle_(self, **options: Any) -> dict[str, Any]:
        bundle: dict[str, Any] = super()._repr_mimebundle_(**options)
        return {**bundle, "text/html": self._repr_html_inner()} if "text/html" in bundle else bundle

    def _repr_html_inner(self) -> str:
        """scikit-learn's diagram and, once there are topics, their words, for notebooks."""
        diagram: str = estimator_html_repr(self)
        if not hasattr(self, "components_"):
            return diagram
        n_topics, n_words = self.components_.shape
        caption = f"{type(self).__name__}: {n_topics:,} topics of {n_words:,} words"
        return diagram + topics_html(self.components_, self.vocabulary_, caption)

    def _mean_weights(self, corpus: Corpus, exposure: Any, covariates: Any) -> NDArray[np.float64]:
        """Posterior mean topic weights."""
        return self._topic_weights(corpus, exposure, covariates, spread=False)[:, 0]

    def _topic_weights(
        self, corpus: Corpus, exposure: Any, covariates: Any, *, spread: bool
    ) -> NDArray[np.float64]:
        """Moments of the topic weights, (n_documents, 1 or 2, n_components)."""
        corpus = exposed(self, corpus, exposure)
        corpus = corpus._with_priors(self._priors_of(corpus, covariates))
        with progress_bar(self.progress, corpus.n_documents, "document") as update:
            return _core.transform(
                self._core_model(),
                corpus._core_documents(),
                spread=spread,
                n_sweeps=_TRANSFORM_SWEEPS,
                seed=self.seed_,
                n_jobs=checks.n_threads(self.n_jobs),
                progress=update,
            )

    def _total(self, X: Any, exposure: Any, covariates: Any, **event: Any) -> LogLikelihood:
        """Scores whose mean over tokens is known well enough, and no better."""
        corpus, target = self._with_tokens(X), {"nats_per_token_std_error": _SCORE_STD_ERROR}
        return self._log_likelihood(corpus, exposure, covariates, **target, **event)

    def _log_likelihood(
        self, X: Any, exposure: Any, covariates: Any, **options: Any
    ) -> LogLikelihood:
        """Scores of documents; warnings name the function that takes what would help."""
        corpus = exposed(self, self._checked(X), exposure)
        with quiet():
            result = log_likelihood(
                self,
                corpus,
                covariates=covariates,
                random_state=self.seed_,
                n_jobs=self.n_jobs,
                **options,
            )
        warn_of_caveats(result, "polyabayes.log_likelihood(model, X, {})")
        return result

    def _with_tokens(self, X: Any) -> Corpus:
        """Documents that a mean over tokens can be taken of."""
        corpus = self._checked(X)
        if not corpus.n_tokens:
            raise InvalidArgumentError(
                "X holds no tokens, so there is no mean over them: score_samples gives the "
                "log-likelihood of empty documents"
            )
        return corpus


def _framed(
    model: FittedModel, weights: NDArray[np.float64], X: Any, ids: NDArray[np.object_] | None
) -> Any:
    """Topic weights; a data frame with the ids of the documents where scikit-learn makes one."""
    own = getattr(model, "_sklearn_output_config", {})
    wanted = own.get("transform", get_config()["transform_output"])
    if ids is None or wanted != "pandas" or hasattr(X, "columns"):
        return weights
    return import_pandas().DataFrame(weights, index=ids)
