"""Topics over a vocabulary: given or learned, matched with documents, written to files."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from copy import copy
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from polyabayes import _core
from polyabayes._support import checks
from polyabayes._support.random import draw_seed
from polyabayes.data.corpus import Corpus
from polyabayes.data.counts import kept_columns
from polyabayes.exceptions import InvalidArgumentError, NotFittedError, argument
from polyabayes.likelihood.core_parts import CoreParts, kept_model, seal
from polyabayes.likelihood.foreign import read_documents
from polyabayes.models.fitted.stored_model import OF_THE_MACHINE, StoredModel
from polyabayes.scale.shards import Shards

# Fitted attributes that a file holds if the model has them.
_SCALARS = (
    *("n_iter_", "seed_", "topic_word_prior_", "bound_", "_bound_is_of"),
    *("_trained_on", "_has_exposure"),
)


class StoredTopics(BaseEstimator):  # type: ignore[misc]
    """Base class of models that have topics: their words, documents and files."""

    n_components: int
    n_jobs: int | None
    random_state: Any
    progress: bool

    components_: NDArray[np.float64]
    n_features_in_: int
    n_iter_: int
    vocabulary_: NDArray[np.object_] | None
    seed_: int
    # Hash of the documents behind topic_counts_, and whether they had exposures.
    _trained_on: str
    _has_exposure: bool = False
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
    classes: ClassVar[dict[str, type[StoredTopics]]] = {}
    # Converts raw documents to counts, if the model came from a pipeline that does.
    _vectorise: Callable[[Any, str], Corpus] | None = None

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        StoredTopics.classes[cls.__name__] = cls

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

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        # "Categorical" is scikit-learn's tag for integer input.
        tags.input_tags.categorical = True
        return tags

    def _checked(self, X: Any, unseen: str = "raise") -> Corpus:
        """Check documents; columns must be as in ``fit``, if those had names."""
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

    def _set_topic_word(
        self, topic_word: Any, vocabulary: Any, random_state: Any, *, normalised: bool
    ) -> None:
        """Set given topics."""
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
        if corpus.n_words != self.n_features_in_:
            raise InvalidArgumentError(
                f"{name} has {corpus.n_words} features, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} features as input: the words of the documents must be "
                "those of the model"
            )
        return corpus, 0

    def _of_words(self, are_kept: NDArray[np.bool_]) -> Self:
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
