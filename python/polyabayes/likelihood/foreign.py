"""Models of other packages, wherever a model is asked for.

Nothing here knows a package.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from polyabayes import _core
from polyabayes._support.warnings import warn
from polyabayes.data.corpus import Corpus, as_corpus
from polyabayes.exceptions import DataWarning, InvalidArgumentError, InvalidTypeError, argument
from polyabayes.likelihood.core_parts import CoreParts
from polyabayes.scale.shards import Shards

_Exposed = TypeVar("_Exposed", Corpus, Shards)


@runtime_checkable
class Scorable(Protocol):
    """A fitted model whose document likelihood is an urn sum: what the estimators need of it."""

    _default_event: str
    _conditions_on_length: bool
    # The argument by which a call gives the priors of documents; empty where none does.
    _prior_argument: str

    def _aligned(self, documents: Any, name: str, unseen: str) -> tuple[Corpus, int]:
        """The documents over the model's vocabulary, and the number of tokens dropped."""

    def _n_prior_parameters(self) -> int:
        """Parameters of the prior of one document."""

    def _has_prior_rows(self) -> bool:
        """Whether the model has a prior for each of certain documents."""

    def _priors_of(self, documents: Corpus | Shards, covariates: Any) -> NDArray[np.float64] | None:
        """Parameters of each document's prior; None where all share the model's."""

    def _core_model(self) -> _core.Model:
        """The model as the compiled core reads it."""

    def _core_parts(self) -> CoreParts:
        """The arrays of which the compiled core makes the model."""


_Adapter = TypeVar("_Adapter", bound=Callable[..., Scorable])
# What makes a model of ours of one of another package, by the package that its class is from.
_ADAPTERS: dict[str, Callable[..., Scorable]] = {}
# Packages of which no model can be scored: their functions tell why.
_REFUSED: set[str] = set()


def adapter(package: str, *, is_refused: bool = False) -> Callable[[_Adapter], _Adapter]:
    """Take models of `package`, or of classes derived from its own, by the function decorated."""

    def register(convert: _Adapter) -> _Adapter:
        _ADAPTERS[package] = convert
        if is_refused:
            _REFUSED.add(package)
        return convert

    return register


def as_scorable(name: str, model: Any) -> Scorable:
    """A model of ours as it is, one of another package converted."""
    if not isinstance(model, type):
        if isinstance(model, Scorable):
            return model
        for base in type(model).__mro__:
            convert = _ADAPTERS.get(base.__module__.partition(".")[0])
            if convert is not None:
                return convert(model)
    raise InvalidTypeError(
        f"{name} must be a LatentDirichletAllocation, a PoissonFactorAnalysis or a DocumentModel, "
        f"or a fitted model of {', '.join(sorted(_ADAPTERS.keys() - _REFUSED))}, "
        f"got {model!r:.200}; bring other models in by from_parameters"
    )


def read_documents(models: Iterable[Scorable], documents: Any, name: str = "documents") -> Corpus:
    """Documents as counts; raw ones through a model that reads them (the end of a Pipeline).

    Of several such models it is the one that finds the most tokens: what others know no words of is
    then seen to be missing there.
    """
    readers = [model._vectorise for model in models if getattr(model, "_vectorise", None)]  # type: ignore[attr-defined]
    if not readers:
        return as_corpus(documents, name)
    if len(readers) > 1 and isinstance(documents, Iterator):
        documents = list(documents)
    found = [as_corpus(read(documents, name), name) for read in readers]
    return max(found, key=lambda corpus: corpus.n_tokens)


def exposed(model: Any, corpus: _Exposed, exposure: Any) -> _Exposed:
    """The documents with the exposure that the model takes into account.

    The model need not be fitted. `exposure` takes the place of the corpus's own; LDA refuses it. A
    warning says where a model that was trained with exposures meets documents without.
    """
    if not model._conditions_on_length:
        sized = corpus if exposure is None else corpus.with_exposure(exposure)
        if sized.exposure is None and getattr(model, "_has_exposure", False):
            warn(
                "the model was trained on documents with exposures, and these have none: each is "
                f"taken to have exposure 1; give theirs by {argument('exposure')}",
                DataWarning,
            )
        return sized
    if exposure is not None:
        raise InvalidArgumentError(
            f"{argument('exposure')}: LDA takes the lengths of the documents as given, so that "
            "their size has no bearing on it; leave exposure out, or take a gamma-Poisson model"
        )
    # The probability of words given the length is the same at any exposure.
    return corpus if corpus.exposure is None else corpus.with_exposure(None)
