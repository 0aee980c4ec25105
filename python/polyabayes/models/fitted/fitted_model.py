"""Base class of fitted topic models: transform, scores, files."""

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
from polyabayes._support.output.frames import import_pandas
from polyabayes._support.output.tables import counted, topic_columns
from polyabayes._support.progress import progress_bar
from polyabayes._support.results import Result
from polyabayes._support.warnings import quiet
from polyabayes.data.corpus import Corpus, of_layer
from polyabayes.exceptions import InvalidArgumentError
from polyabayes.likelihood.foreign import exposed
from polyabayes.likelihood.reliability import warn_of_caveats
from polyabayes.likelihood.result import LogLikelihood
from polyabayes.likelihood.scoring import log_likelihood
from polyabayes.models.fitted.stored_topics import StoredTopics
from polyabayes.models.fitted.topic_table import topics_html

_TRANSFORM_SWEEPS = 100

# Standard error of a mean per token: about a tenth of the error of the difference of two models
# over a thousand documents.
_SCORE_STD_ERROR = 0.001


@dataclass(frozen=True, repr=False, eq=False)
class TopicWeights(Result):
    """Posterior of the topic weights theta of documents; unpacks to mean and std.

    Attributes
    ----------
    mean : ndarray of shape (n_documents, n_components)
        E[theta | document, model].
    std : ndarray of shape (n_documents, n_components)
        Posterior standard deviation of each weight.
    ids : ndarray of str objects, shape (n_documents,), or None
        Names of the documents, if any.

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
        names = np.arange(len(self.mean)) if self.ids is None else self.ids
        return topic_columns({"document": names}, {"mean": self.mean, "std": self.std})


@shared_docs
class FittedModel(TransformerMixin, StoredTopics):  # type: ignore[misc]
    """Base class of fitted topic models."""

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
            only. Default: the exposure of the corpus, else 1.
        {covariates}
        {unseen}

        Returns
        -------
        ndarray of shape (n_documents, n_components)
            E[theta | document, model], averaged over Gibbs sweeps of each document: probabilities
            for LDA, rates at exposure 1 for gamma-Poisson. For NMF, weights after 200 of
            scikit-learn's updates from equal weights; words that no topic can produce are ignored,
            with an ImpossibleDocumentWarning. After ``set_output(transform="pandas")``, a
            DataFrame with the ids as index.

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
        """Posterior mean and standard deviation of the topic weights of documents.

        Parameters
        ----------
        {X}
        {as of transform}
        {unseen}

        Returns
        -------
        TopicWeights
            ``mean``, equal to the result of ``transform``, and ``std``, the posterior standard
            deviation of every weight given document and model; both of shape (n_documents,
            n_components). ``std`` follows from the closed-form moments of theta given the topics of
            tokens, over the same Gibbs sweeps (law of total variance). For a mixture it is
            sqrt(p (1 - p)), with p the probability of a component. Uncertainty of the model is not
            included.

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

        The event is the default of :func:`log_likelihood`: the sequence for LDA, the counts with
        their length for gamma-Poisson. To compare different models, use :func:`compare`, which
        uses the same event for all.

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
        """Perplexity: exp(-mean log probability per token), given the lengths; lower is better.

        It is for the ordered tokens, whatever the event of ``score``, since counts have no
        perplexity.

        Parameters
        ----------
        {X}
        {as of transform}

        Returns
        -------
        float
            The perplexity.

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
        """Scores whose mean per token has just the needed accuracy."""
        corpus, target = self._checked(X), {"nats_per_token_std_error": _SCORE_STD_ERROR}
        if not corpus.n_tokens:
            raise InvalidArgumentError(
                "X holds no tokens, so there is no mean over them: score_samples gives the "
                "log-likelihood of empty documents"
            )
        return self._log_likelihood(corpus, exposure, covariates, **target, **event)

    def _log_likelihood(
        self, X: Any, exposure: Any, covariates: Any, **options: Any
    ) -> LogLikelihood:
        """Scores of documents; warnings name the function that takes the remedy."""
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


def _framed(
    model: FittedModel, weights: NDArray[np.float64], X: Any, ids: NDArray[np.object_] | None
) -> Any:
    """Topic weights; if scikit-learn gives a DataFrame, with the ids of the documents."""
    own = getattr(model, "_sklearn_output_config", {})
    wanted = own.get("transform", get_config()["transform_output"])
    if ids is None or wanted != "pandas" or hasattr(X, "columns"):
        return weights
    return import_pandas().DataFrame(weights, index=ids)
