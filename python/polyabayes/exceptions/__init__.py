"""Errors and warnings of polyabayes.

Every error derives from :class:`PolyabayesError` and from the built-in class
that a caller would catch anyway (``ValueError``, ``TypeError``, ``OSError``).
A message names the argument, the place and the remedy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import lazy_loader

if TYPE_CHECKING:
    from polyabayes.exceptions.not_fitted import NotFittedError as NotFittedError

# The one error that needs scikit-learn, whose import takes longer than that of all the rest.
__getattr__, _, _ = lazy_loader.attach(__name__, submod_attrs={"not_fitted": ["NotFittedError"]})

# Stands before and after the name of an argument in a message.
_MARK = "\x1f"


def argument(name: str, value: Any = None) -> str:
    """A reference to an argument in a message, perhaps with a value.

    The text of the error has it as Python writes it; the command line says its own option instead.

    Examples
    --------
    >>> str(PolyabayesError(f"use {argument('method', 'vb')}"))
    "use method='vb'"
    """
    reference = name if value is None else f"{name}={value!r}"
    return f"{_MARK}{reference}{_MARK}"


class _Message(Exception):  # noqa: N818
    """A message that refers to arguments."""

    def __str__(self) -> str:
        return super().__str__().replace(_MARK, "")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"

    def told(self, said: Callable[[str], str]) -> str:
        """The message, each reference to an argument as `said` puts it."""
        parts = super().__str__().split(_MARK)
        return "".join(said(part) if ix % 2 else part for ix, part in enumerate(parts))


class PolyabayesError(_Message):
    """Base class of all errors raised on purpose by polyabayes.

    Attributes
    ----------
    argument : str or None
        Name of the argument that is wrong, where it is one.
    value : object
        What it is, or what it comes to, as the operations that a computation would take.
    limit : object
        What it may be at most, or at least, or should be.
    """

    argument: str | None = None
    value: Any = None
    limit: Any = None

    def __init__(
        self, *args: Any, argument: str | None = None, value: Any = None, limit: Any = None
    ) -> None:
        super().__init__(*args)
        if argument is not None:
            self.argument, self.value, self.limit = argument, value, limit


class InvalidArgumentError(PolyabayesError, ValueError):
    """An argument has a value that the function cannot work with."""


class InvalidTypeError(PolyabayesError, TypeError):
    """An argument has a type that the function cannot work with."""


class InvalidCountsError(InvalidArgumentError):
    """A count is negative, fractional, NaN, infinite or too large, or an index is out of range."""


class FileFormatError(PolyabayesError, ValueError):
    """A file could be read, but its content is not what its format promises."""


class FileAccessError(PolyabayesError, OSError):
    """A file or folder is missing, unreadable or cannot be written."""


class BudgetExceededError(PolyabayesError, ValueError):
    """A computation would cost more than its budget allows, or more memory than there is."""


class MissingDependencyError(PolyabayesError, ImportError):
    """An optional dependency is not installed; the message names the extra."""


class ScoreError(PolyabayesError, ValueError):
    """The score of a configuration is no log probability, or breaks what its kind promises."""


class WorkerError(PolyabayesError, RuntimeError):
    """A worker of an executor died, and its tasks were not run again."""


class InternalError(PolyabayesError, RuntimeError):
    """The compiled core broke one of its own promises: an error of polyabayes, not of the caller.

    Nothing that the call was given is changed, and other calls work as before.
    """

    def __str__(self) -> str:
        from polyabayes import __version__

        return (
            f"internal error of polyabayes {__version__}: {super().__str__()}. Please report this "
            "line and the call that led to it, with data if you can, to the maintainers of "
            "polyabayes: no argument should come to this"
        )


class Interrupted(KeyboardInterrupt):
    """Ctrl-C during long work; what the work had reached is not lost.

    Attributes
    ----------
    partial : object
        The partial result: the result object of a function, or the estimator itself, usable as
        it is.
    """

    def __init__(self, message: str, partial: Any) -> None:
        super().__init__(message)
        self.partial = partial

    def __reduce__(self) -> tuple[type[Interrupted], tuple[str, Any]]:
        return type(self), (str(self), self.partial)


class PolyabayesWarning(_Message, UserWarning):
    """Base class of the warnings of polyabayes."""


class ImpossibleDocumentWarning(PolyabayesWarning):
    """A document holds a word that no topic can produce: its log-likelihood is ``-inf``."""


class CheckpointWarning(PolyabayesWarning):
    """A checkpoint could not be written; the work goes on, the last good one stays."""


class DataWarning(PolyabayesWarning):
    """Data may not be what they are read as, or a part of them is left out."""


class EdgeWarning(PolyabayesWarning):
    """The best size is the smallest or largest of those tried: a better one may lie beyond."""


class PriorWarning(PolyabayesWarning):
    """A model brings no prior of its topic weights; one was fitted, and likelihoods rest on it."""


class RefusedModelWarning(PolyabayesWarning):
    """A model could not be scored and is left out of a comparison; the message says why."""


class ScoreWarning(PolyabayesWarning):
    """A configuration could not be scored; the search goes on, its prior mass stays unexplored."""


class TargetWarning(PolyabayesWarning):
    """A result falls short of what was asked for: of a total's error, or a number of draws."""


class UnreliableErrorWarning(PolyabayesWarning):
    """A standard error rests on too few effective replicates to be trusted."""
