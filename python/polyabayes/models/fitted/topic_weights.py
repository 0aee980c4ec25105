"""Posterior of the topic weights of documents under a fitted model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.base import TransformerMixin

from polyabayes import _core
from polyabayes._support import checks
from polyabayes._support.arrays import Floats
from polyabayes._support.docs import shared_docs
from polyabayes._support.output.frames import import_pandas
from polyabayes._support.output.progress import progress_bar
from polyabayes._support.output.tables import counted, topic_columns
from polyabayes._support.results import Result
from polyabayes._support.storage.state_folder import fingerprint_of
from polyabayes.data.corpus import Corpus, of_layer
from polyabayes.likelihood.foreign import exposed
from polyabayes.models.fitted.fitted_model import FittedModel

_TRANSFORM_SWEEPS = 128
# The last topic weights of each living model, if there are not too many: the model and a hash of
# the documents. They are kept outside of models, so that pickles and copies do not hold them.
_MOST_KEPT = 2_000_000
_kept: WeakKeyDictionary[TopicTransformer, tuple[_core.Model, str, Floats]]
_kept = WeakKeyDictionary()


@dataclass(frozen=True, repr=False, eq=False)
class TopicWeights(Result):
    """Posterior of the topic weights theta of documents; unpacks to mean and std.

    Attributes
    ----------
    mean : ndarray of shape (n_documents, n_components)
        E[theta | document, model].
    std : ndarray of shape (n_documents, n_components)
        Posterior standard deviation of each weight.
    std_errors : ndarray of shape (n_documents, n_components)
        Standard error of each mean, by the spread of 16 chains from different starts; larger where
        the means of the chains correlate with these, as they do if topics are nearly alike.
    ids : ndarray of str objects, shape (n_documents,), or None
        Names of the documents, if any.
    topics : list of str or None
        Names of the topics, if they have some.

    Examples
    --------
    >>> corpus = pb.Corpus([[4, 0, 0, 0]], ids=["a"])
    >>> model.topic_weights(corpus).to_frame()[["document", "topic"]].values.tolist()
    [['a', 0], ['a', 1]]
    """

    mean: Floats
    std: Floats
    std_errors: Floats
    ids: NDArray[np.object_] | None = None
    topics: list[str] | None = None

    def __iter__(self) -> Iterator[Floats]:
        return iter((self.mean, self.std))

    def __repr__(self) -> str:
        n_documents, n_topics = self.mean.shape
        return f"<TopicWeights: {counted(n_documents, 'document')}, {counted(n_topics, 'topic')}>"

    def _columns(self) -> dict[str, Any]:
        names = np.arange(len(self.mean)) if self.ids is None else self.ids
        tables = {"mean": self.mean, "std": self.std, "std_error": self.std_errors}
        return topic_columns({"document": names}, tables, self.topics)


@shared_docs
class TopicTransformer(TransformerMixin, FittedModel):  # type: ignore[misc]
    """Base class of fitted models with topic weights of documents."""

    def transform(
        self,
        X: Any,
        *,
        layer: str | None = None,
        exposure: Any = None,
        covariates: Any = None,
        unseen: str = "raise",
        missing_words: str | None = None,
    ) -> Any:
        """Posterior mean topic weights of documents.

        Parameters
        ----------
        {X}
        {layer}
        exposure : float or array of shape (n_documents,), optional
            Known sizes of the documents, which multiply their Poisson rates; gamma-Poisson models
            only. Default: the exposure of the corpus, else 1 unless training had exposures.
        {covariates}
        {unseen}
        {missing words}

        Returns
        -------
        ndarray of shape (n_documents, n_components)
            E[theta | document, model], averaged over Gibbs sweeps of each document: probabilities
            for LDA, rates at exposure 1 for gamma-Poisson. The average of 128 sweeps, eight of
            each of 16 chains, is itself uncertain, most of all in weights of less than a token:
            the ``std_errors`` of ``topic_weights`` tell by how much. For NMF, weights after 200 of
            scikit-learn's updates from equal weights; words that no topic can produce are ignored,
            with an ImpossibleDocumentWarning. After ``set_output(transform="pandas")``, a DataFrame
            with the ids as index.

        {raises: bad documents}

        Examples
        --------
        >>> weights = model.transform([[9, 1, 0, 0]])
        >>> bool(weights[0, 0] > weights[0, 1])
        True
        """
        model, corpus = self._measured(of_layer(X, layer), unseen, missing_words)
        weights = model._mean_weights(corpus, exposure, covariates)
        return _framed(self, weights, X, corpus.ids)

    def topic_weights(
        self,
        X: Any,
        *,
        layer: str | None = None,
        exposure: Any = None,
        covariates: Any = None,
        unseen: str = "raise",
        missing_words: str | None = None,
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
            ``mean``, equal to the result of ``transform``, ``std``, the posterior standard
            deviation of every weight given document and model, and ``std_errors``, the errors of
            the means; all of shape (n_documents, n_components). ``std`` follows from the
            closed-form moments of theta given the topics of tokens, over the same Gibbs sweeps (law
            of total variance). For a mixture it is sqrt(p (1 - p)), with p the probability of a
            component. Uncertainty of the model is not included.

        {raises: bad documents}

        Examples
        --------
        >>> bool((model.topic_weights([[9, 1, 0, 0]]).std > 0).all())
        True
        """
        model, corpus = self._measured(of_layer(X, layer), unseen, missing_words)
        weights = model._topic_weights(corpus, exposure, covariates, spread=True)
        mean, std, std_errors = np.moveaxis(weights, 1, 0)
        return TopicWeights(mean, std, std_errors, corpus.ids, getattr(model, "topic_names_", None))

    def _mean_weights(self, corpus: Corpus, exposure: Any, covariates: Any) -> Floats:
        return self._topic_weights(corpus, exposure, covariates, spread=False)[:, 0]

    def _topic_weights(
        self, corpus: Corpus, exposure: Any, covariates: Any, *, spread: bool
    ) -> Floats:
        """Moments of the topic weights, (n_documents, 1 or 3, n_components).

        Those of the last documents are kept, since tables, files and pictures ask for the same.
        """
        corpus = exposed(self, corpus, exposure)
        priors, counts = self._priors_of(corpus, covariates), corpus.counts
        core = self._core_model()
        corpus = corpus._with_priors(priors)
        size = corpus.n_documents * len(self.components_)
        if size > _MOST_KEPT:
            return self._computed_weights(core, corpus, spread=spread)
        arrays: dict[str, Any] = {"exposure": corpus.exposure, "priors": priors}
        given = [name for name, array in arrays.items() if array is not None]
        parts = counts.indptr, counts.indices, counts.data, *(arrays[name] for name in given)
        key = fingerprint_of((counts.shape, self.seed_, given), *parts)
        of_model, of_documents, found = _kept.get(self, (None, None, None))
        if found is None or of_model is not core or of_documents != key:
            found = self._computed_weights(core, corpus, spread=True)
            _kept[self] = core, key, found
        return found.copy()

    def _computed_weights(self, core: _core.Model, corpus: Corpus, *, spread: bool) -> Floats:
        with progress_bar(self.progress, corpus.n_documents, "document") as update:
            return _core.transform(
                core,
                corpus._core_documents(),
                spread=spread,
                n_sweeps=_TRANSFORM_SWEEPS,
                seed=self.seed_,
                n_jobs=checks.n_threads(self.n_jobs),
                progress=update,
            )


def _framed(
    model: TopicTransformer, weights: Floats, X: Any, ids: NDArray[np.object_] | None
) -> Any:
    """Topic weights; if scikit-learn gives a DataFrame, with the ids of the documents."""
    own = getattr(model, "_sklearn_output_config", {})
    wanted = own.get("transform", get_config()["transform_output"])
    if ids is None or wanted != "pandas" or hasattr(X, "columns"):
        return weights
    return import_pandas().DataFrame(weights, index=ids)
