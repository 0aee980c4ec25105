"""Base class of fitted topic models: topics, their documents, scores and files."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import estimator_html_repr
from sklearn.utils.validation import validate_data

from polyabayes import _core
from polyabayes._support import checks
from polyabayes._support.arrays import Flags, Floats
from polyabayes._support.docs import shared_docs
from polyabayes._support.random import draw_seed
from polyabayes._support.warnings import quiet
from polyabayes.data.corpus import Corpus, of_layer
from polyabayes.data.counts import checked_labels
from polyabayes.data.naming import topics_by_name
from polyabayes.exceptions import InvalidArgumentError, NotFittedError, argument
from polyabayes.likelihood.core_parts import CoreParts, kept_model, seal
from polyabayes.likelihood.foreign import exposed, of_measured_words, read_documents
from polyabayes.likelihood.reliability import warn_of_caveats
from polyabayes.likelihood.result import LogLikelihood
from polyabayes.likelihood.scoring import log_likelihood
from polyabayes.likelihood.totals import enough_for
from polyabayes.models.fitted.kept_columns import kept_columns
from polyabayes.models.fitted.stored_model import OF_THE_MACHINE, StoredModel
from polyabayes.models.fitted.topic_table import topics_html
from polyabayes.scale.shards import Shards

# Fitted attributes that a file holds if the model has them.
_SCALARS = (
    *("n_iter_", "seed_", "topic_word_prior_", "bound_", "_bound_is_of"),
    *("_trained_on", "_has_exposure", "topic_names_"),
)


@shared_docs
class FittedModel(BaseEstimator):  # type: ignore[misc]
    """Base class of fitted topic models."""

    n_components: int
    n_jobs: int | None
    random_state: Any
    progress: bool

    components_: Floats
    n_features_in_: int
    n_iter_: int
    vocabulary_: NDArray[np.object_] | None
    seed_: int
    # Hash of the documents behind topic_counts_, and whether they had exposures.
    _trained_on: str
    _has_exposure: bool = False
    topic_names_: list[str]
    # Version of the package, date and notes, of a model from a file.
    provenance_: Mapping[str, Any]

    _default_event: str
    _conditions_on_length: bool
    _prior_argument: str
    # Remedy for a model that is not fitted.
    _makers: ClassVar[str] = "call fit, or make it by from_parameters"
    # Arrays in a file of the model: required and optional.
    _arrays: ClassVar[tuple[str, ...]]
    _optional_arrays: ClassVar[tuple[str, ...]] = ("topic_counts_",)
    # Fitted attributes whose last axis is the vocabulary.
    _of_each_word: ClassVar = ("components_", "vocabulary_", "word_prior_", "bias_")
    # Subclasses by name, for files of models.
    classes: ClassVar[dict[str, type[FittedModel]]] = {}
    # Converts raw documents to counts, if the model came from a pipeline that does.
    _vectorise: Callable[[Any, str], Corpus] | None = None

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        FittedModel.classes[cls.__name__] = cls

    def score_samples(
        self,
        X: Any,
        *,
        layer: str | None = None,
        exposure: Any = None,
        covariates: Any = None,
        missing_words: str | None = None,
    ) -> Floats:
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
        model, corpus = self._measured(of_layer(X, layer), missing_words=missing_words)
        return model._log_likelihood(corpus, exposure, covariates).values

    def score(
        self,
        X: Any,
        y: Any = None,  # noqa: ARG002
        *,
        layer: str | None = None,
        exposure: Any = None,
        covariates: Any = None,
        missing_words: str | None = None,
    ) -> float:
        """Mean log-likelihood in nats per token; higher is better.

        The standard error is at most 0.001; of n < 1000 documents, 0.001 sqrt(1000 / n) or 0.002,
        since the error for new documents is larger, too. :func:`log_likelihood` takes any target.

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
        model, corpus = self._measured(of_layer(X, layer), missing_words=missing_words)
        return model._total(corpus, exposure, covariates).nats_per_token

    def perplexity(
        self,
        X: Any,
        *,
        layer: str | None = None,
        exposure: Any = None,
        covariates: Any = None,
        missing_words: str | None = None,
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
        model, corpus = self._measured(of_layer(X, layer), missing_words=missing_words)
        return model._total(corpus, exposure, covariates, **event).perplexity

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
        return np.array(getattr(self, "topic_names_", names), dtype=object)

    def name_topics(self, names: Sequence[str] | Mapping[int, str]) -> Self:
        """Give the topics names, which tables, pictures and files of the model keep.

        Parameters
        ----------
        names : sequence of str, shape (n_components,), or mapping of int to str
            Names of the topics, or of some of them; the others are called "topic 3" and so on. A
            new fit drops them.

        Returns
        -------
        self

        Raises
        ------
        InvalidArgumentError, InvalidTypeError
            If there is not one name for each topic, a name is given twice, or there is no such
            topic.

        Examples
        --------
        >>> named = pb.LatentDirichletAllocation.from_parameters(
        ...     doc_topic_prior=0.1, topic_word=[[0.5, 0.5], [0.1, 0.9]]
        ... ).name_topics({1: "war"})
        >>> named.topic_names_
        ['topic 0', 'war']
        """
        self._check_fitted()
        known = [f"topic {topic}" for topic in range(len(self.components_))]
        if isinstance(names, Mapping):
            for topic in names:
                checks.whole_number("names", topic, 0, len(known) - 1)
            names = [names.get(topic, name) for topic, name in enumerate(known)]
        found: list[str] = checked_labels(names, "names").tolist()
        if len(found) != len(known) or len(set(found)) < len(found):
            raise InvalidArgumentError(
                f"{argument('names')} must have one name for each of {len(known)} topics, all "
                f"different, got {found!r:.100}"
            )
        self.topic_names_ = found
        return self

    def save(self, path: str | os.PathLike[str], *, notes: Mapping[str, Any] | None = None) -> None:
        """Write the fitted model to a safetensors file that :func:`polyabayes.load` reads.

        The file has everything for scoring, ``transform`` and ``partial_fit``, but not the trace of
        the training or its last sample. The version of the package, the date and `notes` become
        ``provenance_`` of the loaded model.

        Parameters
        ----------
        path : str or path-like
            The file, usually ``*.safetensors``; it is written completely or not at all. Endings of
            other formats, such as ``.pkl`` or ``.gz``, are refused.
        notes : mapping of str to text, number, list or mapping, optional
            Your own notes, for example ``{"corpus": "reviews of May"}``.

        Raises
        ------
        FileAccessError
            If the file cannot be written.
        InvalidArgumentError, InvalidTypeError
            If the ending belongs to another format, or the notes are not valid JSON.
        NotFittedError
            If the model is not fitted.

        Examples
        --------
        >>> file = folder / "model.safetensors"
        >>> model.save(file, notes={"corpus": "reviews"})
        >>> pb.load(file).provenance_["notes"]
        {'corpus': 'reviews'}
        """
        self._check_fitted()
        self._to_store().write(path, notes)

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

    def _total(self, corpus: Corpus, exposure: Any, covariates: Any, **event: Any) -> LogLikelihood:
        """Scores whose mean per token has just the needed accuracy."""
        target = {"nats_per_token_std_error": enough_for(corpus.n_documents)}
        if not corpus.n_tokens:
            raise InvalidArgumentError(
                "X holds no tokens, so there is no mean over them: score_samples gives the "
                "log-likelihood of empty documents"
            )
        return self._log_likelihood(corpus, exposure, covariates, **target, **event)

    def _log_likelihood(
        self, corpus: Corpus, exposure: Any, covariates: Any, **options: Any
    ) -> LogLikelihood:
        """Scores of documents; warnings name the function that takes the remedy."""
        with quiet():
            result = log_likelihood(
                self,
                exposed(self, corpus, exposure),
                covariates=covariates,
                random_state=self.seed_,
                n_jobs=self.n_jobs,
                **options,
            )
        warn_of_caveats(result, "polyabayes.log_likelihood(model, X, {})")
        return result

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        # "Categorical" is scikit-learn's tag for integer input.
        tags.input_tags.categorical = True
        return tags

    def _measured(
        self, X: Any, unseen: str = "raise", missing_words: str | None = None
    ) -> tuple[Self, Corpus]:
        """The model of the words that the documents show, and the documents over these."""
        self._check_columns(X)
        model, documents = of_measured_words(self, X, "X", missing_words, unseen)
        return model, model._aligned(documents, "X", unseen)[0]

    def _check_columns(self, X: Any) -> None:
        """Columns of a frame must be as in ``fit``, if those had names."""
        self._check_fitted()
        if hasattr(self, "feature_names_in_") and hasattr(X, "columns"):
            try:
                validate_data(self, X, reset=False, skip_check_array=True)
            except ValueError as error:
                raise InvalidArgumentError(
                    f"{str(error).rstrip()}\nX[model.feature_names_in_] has them in that order; a "
                    "polyabayes.Corpus, as Corpus(X), is matched by the names"
                ) from error

    def _set_topic_word(
        self, topic_word: Any, vocabulary: Any, random_state: Any, *, normalised: bool
    ) -> None:
        given = topic_word
        topic_word, vocabulary = topics_by_name("topic_word", topic_word, vocabulary)
        topics = checks.matrix("topic_word", topic_word)
        sums = topics.sum(axis=1)
        # Sums find infinite and missing weights without an array of flags.
        are_fine = np.isfinite(sums).all() and topics.min() >= 0
        bad = np.argwhere(~(np.isfinite(topics) & (topics >= 0))) if not are_fine else topics[:0]
        if len(bad):
            topic, word = bad[0]
            raise InvalidArgumentError(
                f"topic_word[{topic}, {word}] is {topics[topic, word]}: weights must be finite "
                "and not negative"
            )
        wrong = np.flatnonzero(~np.isclose(sums, 1.0, rtol=0, atol=1e-6))
        if normalised and len(wrong):
            found = float(sums[wrong[0]])
            rule = f"[{wrong[0]}] sums to {found}, not to 1: divide each row by its sum"
            raise checks.wrong("topic_word", found, rule, 1.0)
        self.components_ = topics.copy()
        self._seal()
        self.n_features_in_ = topics.shape[1]
        self.n_iter_ = 0
        self.seed_ = draw_seed(random_state)
        words = None
        if vocabulary is not None:
            words = Corpus(np.ones((1, topics.shape[1]), dtype=np.int64), vocabulary).vocabulary
        self.vocabulary_ = words
        self._name_rows(given)

    def _name_rows(self, topic_word: Any) -> None:
        """Keep the names of the topics that a frame of them has."""
        index = checks.index_of(topic_word)
        if index is not None and index.is_unique and all(isinstance(name, str) for name in index):
            self.name_topics(list(index))

    def _check_fitted(self) -> None:
        if not hasattr(self, "components_"):
            raise NotFittedError(
                f"This {type(self).__name__} instance is not fitted yet: {self._makers}"
            )

    def _aligned(self, documents: Any, name: str, unseen: str) -> tuple[Corpus, int]:
        """Documents over the model's vocabulary, and the number of dropped tokens."""
        self._check_fitted()
        corpus = read_documents([self], documents, name)._widened_to(self.n_features_in_)
        policy = checks.choice("unseen", unseen, ("raise", "drop"))
        if corpus.vocabulary is not None and self.vocabulary_ is not None:
            return corpus._matched(*kept_columns(self, self.vocabulary_), policy)
        if corpus._has_open_width and corpus.n_words > self.n_features_in_:
            raise InvalidArgumentError(
                f"{name} holds the id {corpus.n_words - 1}, but the model has "
                f"{self.n_features_in_:,} words: make the bags by the dictionary that the model "
                "was trained with"
            )
        if corpus.n_words != self.n_features_in_:
            raise InvalidArgumentError(
                f"{name} has {corpus.n_words} features, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} features as input: the words of the documents must be "
                "those of the model"
            )
        return corpus, 0

    def _of_words(self, are_kept: Flags) -> Self:
        """Restrict the model to some words: rates stay, probabilities are renormalised."""
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
    ) -> Floats | None:
        if covariates is not None:
            raise InvalidArgumentError(
                f"{argument('covariates')}: the prior of this {type(self).__name__} depends on none"
            )
        return None

    def _has_likelihood(self) -> bool:
        return True

    def _stored(self) -> tuple[str, ...]:
        """Names of the arrays in a file of the model."""
        return self._arrays

    def _to_store(self) -> StoredModel:
        """The part of the model that a file holds."""
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
        """Make large arrays read-only, so that the compiled model stays valid without checks."""
        for name in ("components_", "word_prior_"):
            if hasattr(self, name):
                seal(getattr(self, name))

    def __setstate__(self, state: Any) -> None:
        super().__setstate__(state)
        self._seal()

    def _core_parts(self) -> CoreParts:
        """The arrays from which the compiled core makes the model."""
        raise NotImplementedError
