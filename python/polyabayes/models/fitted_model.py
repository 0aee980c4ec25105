"""A fitted topic model: data in and out, scores, files."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import estimator_html_repr
from sklearn.utils.validation import validate_data

from polyabayes import _core
from polyabayes._support import checks
from polyabayes._support.docs import shared_docs
from polyabayes._support.frames import import_pandas
from polyabayes._support.progress import progress_bar
from polyabayes._support.random import draw_seed
from polyabayes._support.results import Result
from polyabayes._support.tables import counted
from polyabayes._support.warnings import quiet, warn
from polyabayes.data.corpus import Corpus, of_layer
from polyabayes.data.counts import kept_columns
from polyabayes.exceptions import InvalidArgumentError, NotFittedError, argument
from polyabayes.likelihood.core_parts import CoreParts, kept_model, seal
from polyabayes.likelihood.foreign import exposed, read_documents
from polyabayes.likelihood.result import LogLikelihood, doubts
from polyabayes.likelihood.scoring import log_likelihood
from polyabayes.models.stored_model import OF_THE_MACHINE, StoredModel
from polyabayes.models.topic_table import topics_html
from polyabayes.scale.shards import Shards

_TRANSFORM_SWEEPS = 100

# Standard error of a mean per token: a tenth of the error with which a thousand documents tell
# models apart, about.
_SCORE_STD_ERROR = 0.001


# Fitted attributes that a file holds where the model has them.
_SCALARS = (
    *("n_iter_", "seed_", "topic_word_prior_", "bound_", "_bound_is_of"),
    *("_trained_on", "_has_exposure"),
)


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
class FittedModel(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Base class of topic models that have topics, trained here or given."""

    n_components: int
    n_jobs: int | None
    random_state: Any
    progress: bool

    components_: NDArray[np.float64]
    n_features_in_: int
    n_iter_: int
    vocabulary_: NDArray[np.object_] | None
    seed_: int
    # Hash of the documents that topic_counts_ are tokens of, and whether those had exposures.
    _trained_on: str
    _has_exposure: bool = False
    # Version of the package, date and notes, of a model from a file.
    provenance_: Mapping[str, Any]

    _default_event: str
    _conditions_on_length: bool
    _prior_argument: str
    # Remedy for a model that is not fitted.
    _makers: ClassVar[str] = "call fit, or make it by from_parameters"
    # Arrays that a file of the model holds: always, and where the model has them.
    _arrays: ClassVar[tuple[str, ...]]
    _optional_arrays: ClassVar[tuple[str, ...]] = ("topic_counts_",)
    # Fitted attributes whose last axis are the words.
    _of_each_word: ClassVar = ("components_", "vocabulary_", "word_prior_", "bias_")
    # Every subclass by its name, for the files of models.
    classes: ClassVar[dict[str, type[FittedModel]]] = {}
    # Makes counts of raw documents, where the model came from a pipeline that does.
    _vectorise: Callable[[Any, str], Corpus] | None = None

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        FittedModel.classes[cls.__name__] = cls

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

    def save(self, path: str | os.PathLike[str], *, notes: Mapping[str, Any] | None = None) -> None:
        """Write the fitted model to a safetensors file that :func:`polyabayes.load` reads.

        It keeps what it takes to score, to transform and to go on by ``partial_fit``; not the
        trace of the training, nor its last sample. The version of the package, the date and
        `notes` are ``provenance_`` of the model that :func:`polyabayes.load` returns.

        Parameters
        ----------
        path : str or path-like
            The file, by custom ``*.safetensors``; it takes its name only when it is complete.
            Names that promise another format, as ``.pkl`` or ``.gz``, are refused.
        notes : mapping of str to text, number, list or mapping, optional
            Whatever you want to know later, as ``{"corpus": "reviews of May"}``.

        Raises
        ------
        FileAccessError
            If the file cannot be written.
        InvalidArgumentError, InvalidTypeError
            If no file of this format can have the name, or the notes are no JSON.
        NotFittedError
            If there is nothing to write.

        Examples
        --------
        >>> file = folder / "model.safetensors"
        >>> model.save(file, notes={"corpus": "reviews"})
        >>> pb.load(file).provenance_["notes"]
        {'corpus': 'reviews'}
        """
        self._check_fitted()
        self._to_store().write(path, notes)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        # "Categorical" is the kind of input of scikit-learn that holds whole numbers.
        tags.input_tags.categorical = True
        return tags

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
        for category, message in doubts(result, "polyabayes.log_likelihood(model, X, {})"):
            warn(message, category)
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

    def _checked(self, X: Any, unseen: str = "raise") -> Corpus:
        """Documents for the estimator's own methods: columns as in ``fit``, if those had names."""
        self._check_fitted()
        if hasattr(self, "feature_names_in_") and hasattr(X, "columns"):
            try:
                validate_data(self, X, reset=False, skip_check_array=True)
            except ValueError as error:
                raise InvalidArgumentError(
                    f"{str(error).rstrip()}\nX[model.feature_names_in_] has them in that order; a "
                    "polyabayes.Corpus, as Corpus(X), is matched by the names"
                ) from error
        return self._aligned(X, "X", unseen)[0]

    def _remember_features(self, X: Any, documents: Corpus | Shards) -> None:
        """Number of words, their names if X is a table with a column for each, and exposures."""
        self.n_features_in_ = documents.n_words
        self._has_exposure = documents.exposure is not None
        for name in ("feature_names_in_", "provenance_", "components_std_"):
            self.__dict__.pop(name, None)
        words = None if documents.vocabulary is None else list(documents.vocabulary)
        if hasattr(X, "columns") and list(X.columns) == words:
            validate_data(self, X, reset=True, skip_check_array=True)

    def _set_topic_word(
        self, topic_word: Any, vocabulary: Any, random_state: Any, *, normalised: bool
    ) -> None:
        """Take over topics that were made elsewhere."""
        topics = checks.matrix("topic_word", topic_word)
        bad = np.argwhere(~(np.isfinite(topics) & (topics >= 0)))
        if len(bad):
            topic, word = bad[0]
            raise InvalidArgumentError(
                f"topic_word[{topic}, {word}] is {topics[topic, word]}: weights must be finite "
                "and not negative"
            )
        sums = topics.sum(axis=1)
        wrong = np.flatnonzero(~np.isclose(sums, 1.0, rtol=0, atol=1e-6))
        if normalised and len(wrong):
            raise InvalidArgumentError(
                f"{argument('topic_word')}[{wrong[0]}] sums to {sums[wrong[0]]}, not to 1: divide "
                "each row by its sum",
                argument="topic_word",
                value=float(sums[wrong[0]]),
                limit=1.0,
            )
        self.components_ = topics.copy()
        self._seal()
        self.n_features_in_ = topics.shape[1]
        self.n_iter_ = 0
        self.seed_ = draw_seed(random_state)
        words = None
        if vocabulary is not None:
            words = Corpus(np.ones((1, topics.shape[1]), dtype=np.int64), vocabulary).vocabulary
        self.vocabulary_ = words

    def _check_fitted(self) -> None:
        if not hasattr(self, "components_"):
            raise NotFittedError(
                f"This {type(self).__name__} instance is not fitted yet: {self._makers}"
            )

    def _aligned(self, documents: Any, name: str, unseen: str) -> tuple[Corpus, int]:
        """The documents over the model's vocabulary, and the number of tokens dropped."""
        self._check_fitted()
        corpus = read_documents([self], documents, name)._widened_to(self.n_features_in_)
        policy = checks.choice("unseen", unseen, ("raise", "drop"))
        if corpus.vocabulary is not None and self.vocabulary_ is not None:
            return corpus._matched(*kept_columns(self, self.vocabulary_), policy)
        if corpus.n_words != self.n_features_in_:
            raise InvalidArgumentError(
                f"{name} has {corpus.n_words} features, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} features as input: the words of the documents must be "
                "those of the model"
            )
        return corpus, 0

    def _of_words(self, are_kept: NDArray[np.bool_]) -> Self:
        """The model of some of its words: rates stay, probabilities are divided by their sums."""
        made = copy(self)
        for name in self._of_each_word:
            if hasattr(self, name):
                setattr(made, name, np.ascontiguousarray(getattr(self, name)[..., are_kept]))
        if self._conditions_on_length and getattr(self, "decoder", "") != "softmax":
            sums = made.components_.sum(axis=1, keepdims=True)
            if not sums.all():
                raise InvalidArgumentError(
                    f"topic {int(np.argmin(sums))} holds none of the {int(are_kept.sum()):,} words "
                    "that all models know: compare models of the same words"
                )
            made.components_ /= sums
        made.n_features_in_ = made.components_.shape[1]
        made._seal()
        return made

    def _n_prior_parameters(self) -> int:
        return len(self.components_)

    def _has_prior_rows(self) -> bool:
        return False

    def _priors_of(
        self,
        documents: Corpus | Shards,  # noqa: ARG002
        covariates: Any,
    ) -> NDArray[np.float64] | None:
        if covariates is not None:
            raise InvalidArgumentError(
                f"{argument('covariates')}: the prior of this {type(self).__name__} depends on none"
            )
        return None

    def _has_likelihood(self) -> bool:
        """Whether new documents have a likelihood."""
        return True

    def _stored(self) -> tuple[str, ...]:
        """Names of the arrays that a file of the model holds."""
        return self._arrays

    def _to_store(self) -> StoredModel:
        """The part of the model that a file keeps."""
        parameters = self.get_params(deep=False)
        optional = (name for name in self._optional_arrays if hasattr(self, name))
        names = [*self._stored(), *optional]
        return StoredModel(
            type(self).__name__,
            {name: x for name, x in parameters.items() if name not in OF_THE_MACHINE},
            {name: getattr(self, name) for name in _SCALARS if hasattr(self, name)},
            {name: getattr(self, name) for name in names},
            None if self.vocabulary_ is None else self.vocabulary_.tolist(),
        )

    def _core_model(self) -> _core.Model:
        return kept_model(self, self._core_parts())

    def _seal(self) -> None:
        """Make large arrays read-only, so that the compiled model can be kept without a look."""
        for name in ("components_", "word_prior_"):
            if hasattr(self, name):
                seal(getattr(self, name))

    def __setstate__(self, state: Any) -> None:
        super().__setstate__(state)
        self._seal()

    def _core_parts(self) -> CoreParts:
        """The arrays of which the compiled core makes the model."""
        raise NotImplementedError


def _framed(
    model: FittedModel, weights: NDArray[np.float64], X: Any, ids: NDArray[np.object_] | None
) -> Any:
    """Topic weights; a data frame with the ids of the documents where scikit-learn makes one."""
    own = getattr(model, "_sklearn_output_config", {})
    wanted = own.get("transform", get_config()["transform_output"])
    if ids is None or wanted != "pandas" or hasattr(X, "columns"):
        return weights
    return import_pandas().DataFrame(weights, index=ids)
