"""Models of other packages, wherever a model is asked for.

Nothing here knows a package: whoever can convert models registers a converter. The room that has
one is loaded when a model is not ours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any, Protocol, runtime_checkable

from polyabayes import _core
from polyabayes.data.corpus import Corpus, as_corpus
from polyabayes.exceptions import InvalidTypeError

__all__ = ["Scorable", "as_scorable", "read_documents", "register_converter"]


@runtime_checkable
class Scorable(Protocol):
    """A fitted model whose document likelihood is an urn sum: what the estimators need of it."""

    _default_event: str
    _conditions_on_length: bool

    def _aligned(self, documents: Any, name: str, unseen: str) -> tuple[Corpus, int]:
        """The documents over the model's vocabulary, and the number of tokens dropped."""

    def _core_model(self) -> _core.Model:
        """The model as the compiled core reads it."""


# Registers a converter when it is imported. It stands above this room, so that it is named here as a
# plug-in, and not imported by the module.
_PLUG_IN = "polyabayes.interop"

# Each gives a model of ours for one that it knows, and None for any other.
_converters: list[Callable[[Any], Scorable | None]] = []


def register_converter(converter: Callable[[Any], Scorable | None]) -> None:
    """Have `converter` asked about models that are not ours."""
    _converters.append(converter)


def as_scorable(name: str, model: Any) -> Scorable:
    """A model of ours as it is, one of another package converted.

    Raises
    ------
    InvalidTypeError
        If nobody knows it; `name` is that of the argument.
    """
    if not isinstance(model, type):
        if isinstance(model, Scorable):
            return model
        import_module(_PLUG_IN)
        for converter in _converters:
            converted = converter(model)
            if converted is not None:
                return converted
    raise InvalidTypeError(
        f"{name} must be a LatentDirichletAllocation or a PoissonFactorAnalysis, or a fitted model "
        f"of scikit-learn, gensim, tomotopy or pycisTopic, got {model!r:.200}; bring other models "
        "in by from_parameters"
    )


def read_documents(models: Iterable[Scorable], documents: Any, name: str = "documents") -> Corpus:
    """Documents as counts, through the first model that reads raw ones (the end of a Pipeline)."""
    for model in models:
        vectorise = getattr(model, "_vectorise", None)
        if vectorise is not None:
            return as_corpus(vectorise(documents, name), name)
    return as_corpus(documents, name)
