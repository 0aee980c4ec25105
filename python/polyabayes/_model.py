"""What all topic models share: fitted state, data in and out, scores."""

from __future__ import annotations

import json
import os
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import validate_data

from polyabayes import _checks, _core
from polyabayes._progress import progress_bar
from polyabayes._random import draw_seed
from polyabayes.corpus import Corpus, as_corpus
from polyabayes.exceptions import (
    FileFormatError,
    Interrupted,
    InvalidArgumentError,
    NotFittedError,
)
from polyabayes.likelihood import LogLikelihood, log_likelihood
from polyabayes.storage import read_arrays, write_arrays

# The first sweeps set the topics to their mean: on AP this saves a quarter of the sweeps.
_WARM_UP = 30
_TRANSFORM_SWEEPS = 100
_MOST_SWEEPS = 10**9

# Parameters that belong to the machine a model was trained on, not to the model.
_OF_THE_MACHINE = ("n_jobs", "progress")


class _Schedule(NamedTuple):
    max_iter: int
    burn_in: int
    warm_up: int
    thin: int
    seed: int
    n_jobs: int


class TopicModel(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Base class of the topic models; not made directly."""

    n_components: int
    max_iter: int
    burn_in: int | None
    thin: int
    n_jobs: int | None
    random_state: Any
    progress: bool

    components_: NDArray[np.float64]
    n_features_in_: int
    n_iter_: int
    vocabulary_: NDArray[np.object_] | None
    seed_: int

    _default_event: str
    _conditions_on_length: bool
    _arrays: ClassVar[tuple[str, ...]]
    _classes: ClassVar[dict[str, type[TopicModel]]] = {}

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        TopicModel._classes[cls.__name__] = cls

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: ARG002
        """Train the model by Gibbs sampling.

        Parameters
        ----------
        X : Corpus, sparse matrix, integer array or DataFrame, shape (n_documents, n_words)
            The documents.
        y : ignored
            Present for scikit-learn.

        Returns
        -------
        self

        Raises
        ------
        Interrupted
            On Ctrl-C: a KeyboardInterrupt, raised when the state reached has been stored in the
            model, which is usable.
        """
        corpus = as_corpus(X, "X")
        n_components = _checks.whole_number("n_components", self.n_components, 1, 2**16 - 1)
        schedule = self._schedule()
        if not corpus.n_tokens:
            raise InvalidArgumentError("X holds no tokens: every document is empty")
        train = self._training(corpus, n_components)
        validate_data(self, X, reset=True, skip_check_array=True)
        documents = corpus._core_documents()
        with progress_bar(self.progress, schedule.max_iter, "sweep") as update:
            result = train(documents, schedule=schedule, progress=update)
        self._take_parameters(result, train.keywords)
        self.components_ = _row_normalised(result.word_topic)
        self.n_iter_ = result.n_iter
        self.vocabulary_ = corpus.vocabulary
        self.seed_ = schedule.seed
        if isinstance(result.interruption, KeyboardInterrupt):
            raise Interrupted(f"stopped after {self.n_iter_:,} of {self.max_iter:,} sweeps", self)
        if result.interruption is not None:
            raise result.interruption
        return self

    def transform(self, X: Any) -> NDArray[np.float64]:
        """Posterior mean topic weights of documents.

        Parameters
        ----------
        X : Corpus, sparse matrix, integer array or DataFrame, shape (n_documents, n_words)
            The documents.

        Returns
        -------
        ndarray of shape (n_documents, n_components)
            E[theta | document, model], averaged over Gibbs sweeps of each document: for LDA,
            probabilities; for gamma-Poisson, rates.
        """
        corpus = self._checked(X)
        with progress_bar(self.progress, corpus.n_documents, "document") as update:
            weights: NDArray[np.float64] = _core.transform(
                self._core_model(),
                corpus._core_documents(),
                n_sweeps=_TRANSFORM_SWEEPS,
                seed=self.seed_,
                n_jobs=_checks.n_threads(self.n_jobs),
                progress=update,
            )
        return weights

    def score_samples(self, X: Any) -> NDArray[np.float64]:
        """Log-likelihood of each document in nats, by :func:`log_likelihood` with its defaults.

        Returns
        -------
        ndarray of shape (n_documents,)
        """
        return self._log_likelihood(X).values

    def score(self, X: Any, y: Any = None) -> float:  # noqa: ARG002
        """Mean log-likelihood in nats per token; higher is better.

        Of the event that :func:`log_likelihood` asks the model about by default: the sequence for
        LDA, the counts with their length for gamma-Poisson. To compare the two, use
        :func:`compare`, which asks both the same.
        """
        return self._log_likelihood(X).nats_per_token

    def perplexity(self, X: Any) -> float:
        """``exp(-score(X))``; lower is better, and comparable within one class of models only."""
        return self._log_likelihood(X).perplexity

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to a safetensors file that :func:`polyabayes.load` reads.

        Parameters
        ----------
        path : str or path-like
            The file, by custom ``*.safetensors``; it takes its name only when it is complete.

        Raises
        ------
        FileAccessError
            If the file cannot be written.
        NotFittedError
            If there is nothing to write.
        """
        self._check_fitted()
        parameters = self.get_params()
        header = {
            "class": type(self).__name__,
            "parameters": {k: v for k, v in parameters.items() if k not in _OF_THE_MACHINE},
            "scalars": {"n_iter_": self.n_iter_, "seed_": self.seed_},
        }
        arrays = {name: getattr(self, name) for name in self._arrays}
        if self.vocabulary_ is not None:
            words = json.dumps(self.vocabulary_.tolist(), ensure_ascii=False).encode()
            arrays["vocabulary"] = np.frombuffer(words, dtype=np.uint8)
        write_arrays(Path(path), header, arrays)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        # Of scikit-learn's kinds of input, the one that holds whole numbers.
        tags.input_tags.categorical = True
        return tags

    @property
    def _n_features_out(self) -> int:
        return int(self.components_.shape[0])

    def _log_likelihood(self, X: Any) -> LogLikelihood:
        return log_likelihood(self, self._checked(X), random_state=self.seed_, n_jobs=self.n_jobs)

    def _checked(self, X: Any) -> Corpus:
        """Documents for the estimator's own methods: columns as in ``fit``, if those had names."""
        self._check_fitted()
        if hasattr(self, "feature_names_in_") and hasattr(X, "columns"):
            validate_data(self, X, reset=False, skip_check_array=True)
        return self._aligned(X, "X", "raise")[0]

    def _schedule(self) -> _Schedule:
        max_iter = _checks.whole_number("max_iter", self.max_iter, 1, _MOST_SWEEPS)
        if self.burn_in is None:
            burn_in = max_iter // 2
        else:
            burn_in = _checks.whole_number("burn_in", self.burn_in, 0, max_iter)
        return _Schedule(
            max_iter=max_iter,
            burn_in=burn_in,
            warm_up=min(_WARM_UP, burn_in // 2),
            thin=_checks.whole_number("thin", self.thin, 1, _MOST_SWEEPS),
            seed=draw_seed(self.random_state),
            n_jobs=_checks.n_threads(self.n_jobs),
        )

    def _set_topic_word(
        self, topic_word: Any, vocabulary: Any, random_state: Any, *, normalised: bool
    ) -> None:
        """Take over topics that were made elsewhere."""
        topics = _checks.matrix("topic_word", topic_word)
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
                f"topic_word[{wrong[0]}] sums to {sums[wrong[0]]!r}, not to 1: divide each row by "
                "its sum"
            )
        self.components_ = topics
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
                f"This {type(self).__name__} instance is not fitted yet: call fit, or make it by "
                "from_parameters"
            )

    def _aligned(self, documents: Any, name: str, unseen: str) -> tuple[Corpus, int]:
        """The documents over the model's vocabulary, and the number of tokens dropped."""
        self._check_fitted()
        corpus = as_corpus(documents, name)
        policy = _checks.choice("unseen", unseen, ("raise", "drop"))
        if corpus.vocabulary is not None and self.vocabulary_ is not None:
            return corpus.aligned_to(self.vocabulary_, policy)
        if corpus.n_words != self.n_features_in_:
            raise InvalidArgumentError(
                f"{name} has {corpus.n_words} features, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} features as input: the words of the documents must be "
                "those of the model"
            )
        return corpus, 0

    def _core_model(self) -> _core.Model:
        raise NotImplementedError

    def _training(self, corpus: Corpus, n_components: int) -> partial[_core.FitResult]:
        """Check the parameters; give the sampler, which lacks documents, schedule and progress."""
        raise NotImplementedError

    def _take_parameters(self, result: _core.FitResult, given: dict[str, Any]) -> None:
        """Store what training learned beside the topics."""
        raise NotImplementedError


def load(path: str | os.PathLike[str]) -> TopicModel:
    """Read a model that ``save`` wrote.

    Parameters
    ----------
    path : str or path-like
        The file.

    Returns
    -------
    LatentDirichletAllocation or PoissonFactorAnalysis
        The fitted model.

    Raises
    ------
    FileAccessError
        If the file is missing or unreadable.
    FileFormatError
        If it is not a whole polyabayes model.
    """
    header, arrays = read_arrays(Path(path))
    try:
        model = TopicModel._classes[header["class"]](**header["parameters"])
        words = arrays.pop("vocabulary", None)
        vocabulary = None if words is None else json.loads(words.tobytes().decode())
        normalised = model._conditions_on_length
        model._set_topic_word(arrays["components_"], vocabulary, None, normalised=normalised)
        for name in model._arrays:
            setattr(model, name, arrays[name])
        scalars = header["scalars"]
        model.n_iter_ = _checks.whole_number("n_iter_", scalars["n_iter_"], 0)
        model.seed_ = _checks.whole_number("seed_", scalars["seed_"], 0, 2**64 - 1)
        model._core_model()
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise FileFormatError(f"{path} does not hold a whole model: {error!r}") from error
    return model


def _row_normalised(word_topic: NDArray[np.float64]) -> NDArray[np.float64]:
    """Topics x words; the sums of rows, 1 but for rounding, are made exact."""
    topics = np.ascontiguousarray(word_topic.T)
    topics /= topics.sum(axis=1, keepdims=True)
    return topics
