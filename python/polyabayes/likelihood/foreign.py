"""Conversion of models of other packages wherever a function takes a model.

Adapters of single packages register themselves here.
"""

import os
from collections.abc import Callable, Collection, Iterator
from typing import Any, Protocol, TypeVar

import numpy as np

from polyabayes import _core
from polyabayes._support import checks
from polyabayes._support.arrays import Floats
from polyabayes._support.output.tables import some
from polyabayes._support.warnings import warn
from polyabayes.data.corpus import Corpus, as_corpus
from polyabayes.exceptions import DataWarning, InvalidArgumentError, InvalidTypeError, argument
from polyabayes.likelihood.core_parts import CoreParts
from polyabayes.scale.shards import Shards

# Policies for words of the model that the documents lack.
MISSING_WORDS = ("zero", "not measured", "raise")
_NONE_YET = "another package (after import polyabayes.interop)"
# Longest text of a value that a message shows.
_MOST_SHOWN = 80

_Exposed = TypeVar("_Exposed", Corpus, Shards)


class Scorable(Protocol):
    """Interface of a fitted model that the estimators need."""

    _default_event: str
    _conditions_on_length: bool
    # Name of the argument that gives priors of documents; empty if there is none.
    _prior_argument: str

    def _aligned(self, documents: Any, name: str, unseen: str) -> tuple[Corpus, int]:
        """Documents over the model's vocabulary, and the number of dropped tokens."""

    def _n_prior_parameters(self) -> int:
        """Number of parameters of the prior of one document."""

    def _has_prior_rows(self) -> bool:
        """Whether the model has a prior for each of a fixed set of documents."""

    def _priors_of(self, documents: Corpus | Shards, covariates: Any) -> Floats | None:
        """Parameters of each document's prior; None if all documents share one."""

    def _core_model(self) -> _core.Model:
        """The model of the compiled core."""

    def _core_parts(self) -> CoreParts:
        """The arrays from which the compiled core makes the model."""


_Adapter = TypeVar("_Adapter", bound=Callable[..., Scorable])
# Functions that convert models of other packages, by package.
_ADAPTERS: dict[str, Callable[..., Scorable]] = {}
# Packages whose models cannot be scored; their functions raise an error that says why.
_REFUSED: set[str] = set()


def adapter(package: str, *, is_refused: bool = False) -> Callable[[_Adapter], _Adapter]:
    """Register the decorated function for models of `package` and classes derived from them."""

    def register(convert: _Adapter) -> _Adapter:
        _ADAPTERS[package] = convert
        if is_refused:
            _REFUSED.add(package)
        return convert

    return register


def as_scorable(name: str, model: Any) -> Scorable:
    """Return a model of this package unchanged; convert a model of another package."""
    if not isinstance(model, type):
        # A tenth of the time of isinstance.
        if hasattr(model, "_core_model"):
            return model
        for base in type(model).__mro__:
            convert = _ADAPTERS.get(base.__module__.partition(".")[0])
            if convert is not None:
                return convert(model)
    raise InvalidTypeError(
        f"{name} must be a LatentDirichletAllocation, a PoissonFactorAnalysis or a DocumentModel, "
        f"or a fitted model of {', '.join(sorted(_ADAPTERS.keys() - _REFUSED)) or _NONE_YET}, "
        f"got {given_instead(model)}"
    )


def with_concentration(model: Any, topic_concentration: Any) -> Scorable:
    """The model with bursty topics of these concentrations."""
    if not hasattr(model, "_with_concentration"):
        raise InvalidArgumentError(
            f"{argument('topic_concentration')}: bursty topics need an LDA or gamma-Poisson model, "
            f"got a {type(model).__name__}"
        )
    return model._with_concentration(topic_concentration)


def given_instead(value: Any) -> str:
    """Description of a value that is no model, with the remedy."""
    if isinstance(value, type):
        return f"the class {value.__name__}: make a model of it, and fit that"
    if isinstance(value, (str, os.PathLike)):
        return f"{value!r:.100}: open the file of a model with polyabayes.load"
    shown = repr(value) if len(repr(value)) <= _MOST_SHOWN else f"a {type(value).__name__}"
    if isinstance(value, Corpus) or hasattr(value, "shape"):
        return f"{shown}: the model comes first, then the documents"
    return f"{shown}: make other models with from_parameters"


def read_documents(models: Collection[Scorable], documents: Any, name: str = "documents") -> Corpus:
    """Documents as counts; raw documents go through a model that reads them (a Pipeline).

    With several such models, the one that finds the most tokens reads the documents; words that
    another model lacks then count as unseen there. Words need a vocabulary to be found in.
    """
    readers = [model._vectorise for model in models if getattr(model, "_vectorise", None)]  # type: ignore[attr-defined]
    if isinstance(documents, Iterator):
        documents = list(documents)
    if not readers:
        are_words = isinstance(documents, (list, tuple)) and any(map(_has_words, documents[:1]))
        if are_words and any(getattr(model, "vocabulary_", ()) is None for model in models):
            raise InvalidArgumentError(
                f"{name} has words, but the model has no vocabulary to find them in: give counts "
                "over the columns of its training, or make the model with words: fit a Corpus with "
                "vocabulary=, or from_parameters(..., vocabulary=)"
            )
        return as_corpus(documents, name)
    found = [as_corpus(read(documents, name), name) for read in readers]
    return max(found, key=lambda corpus: corpus.n_tokens)


def of_measured_words(
    model: Any, documents: Any, name: str, missing_words: str | None, unseen: str
) -> tuple[Any, Any]:
    """The model and the documents, of which both know the words; see `missing_words`.

    By default, words that documents with given words lack count as zero, with a warning, and those
    that an AnnData or a file of cells lacks as not measured.
    """
    if missing_words is not None:
        checks.choice("missing_words", missing_words, MISSING_WORDS)
    words = getattr(model, "vocabulary_", None)
    is_stream = isinstance(documents, Iterator)
    if is_stream and missing_words not in (None, "zero"):
        raise InvalidArgumentError(
            f"{argument('missing_words', missing_words)}: the words of a stream are known only at "
            "its end; give a Corpus or Shards"
        )
    if is_stream or words is None or hasattr(model, "vocabulary_sizes_"):
        return model, documents
    if not isinstance(documents, Shards):
        documents = read_documents([model], documents, name)
    found = documents.vocabulary
    kept = getattr(documents, "_words_are", "given")
    if found is None or (missing_words is None and kept == "gathered"):
        return model, documents
    if np.array_equal(found, words):
        return model, documents
    known = set(found)
    is_measured = np.array([word in known for word in words], dtype=bool)
    if is_measured.all() or not is_measured.any():
        return model, documents
    shares = model.components_ / model.components_.sum(axis=1, keepdims=True)
    lost = words[~is_measured]
    told = (
        f"{len(lost):,} of the {len(words):,} words of the model, with "
        f"{shares[:, ~is_measured].sum(axis=1).mean():.1%} of the mean mass of its topics, are not "
        f"among the words of {argument(name)} ({some(lost.tolist())})"
    )
    remedy = f"say which by {argument('missing_words')}: " + ", ".join(map(repr, MISSING_WORDS))
    policy = missing_words or ("not measured" if kept == "measured" else "zero")
    if policy == "raise":
        raise InvalidArgumentError(f"{told}; {argument('missing_words', 'zero')} counts them as 0")
    if not isinstance(documents, Shards):
        model._aligned(documents, name, unseen)  # An error comes before the warning.
    if missing_words is None:
        warn(f"{told}, and count as {policy}: {remedy}", DataWarning)
    return (model if policy == "zero" else model._of_words(is_measured)), documents


def _has_words(document: Any) -> bool:
    return isinstance(document, str) or (
        isinstance(document, (list, tuple)) and any(isinstance(x, str) for x in document[:1])
    )


def exposed(model: Any, corpus: _Exposed, exposure: Any) -> _Exposed:
    """The documents with the exposure that the model uses.

    The model need not be fitted. `exposure` replaces the exposure of the corpus; LDA refuses it.
    Documents without exposures are refused by a model that was trained with them.
    """
    if not model._conditions_on_length:
        sized = corpus if exposure is None else corpus.with_exposure(exposure)
        if sized.exposure is None and getattr(model, "_has_exposure", False):
            raise InvalidArgumentError(
                "the model was trained on documents with exposures, but these have none: give "
                f"{argument('exposure')}, as in training (1 for documents of the typical size)"
            )
        return sized
    if exposure is not None:
        raise InvalidArgumentError(
            f"{argument('exposure')}: LDA takes the lengths of the documents as given, so that "
            "their size has no effect; omit exposure, or use a gamma-Poisson model"
        )
    # Given the length, the probability of words does not depend on the exposure.
    return corpus if corpus.exposure is None else corpus.with_exposure(None)
