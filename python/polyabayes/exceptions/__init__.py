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

# The only error that needs scikit-learn, which imports more slowly than all the rest.
__getattr__, _, _ = lazy_loader.attach(__name__, submod_attrs={"not_fitted": ["NotFittedError"]})

# Enclose the name of an argument in a message, and in a call.
_MARK, _IN_CALL = "\x1f", "\x1e"


def argument(name: str, value: Any = None, call: str = "") -> str:
    """A reference to an argument in a message, optionally with a value, or in a call.

    `call` is code up to the argument. In Python it reads as an argument; the command line shows its
    own option instead.

    Examples
    --------
    >>> str(PolyabayesError(f"use {argument('method', 'vb')}"))
    "use method='vb'"
    """
    reference = name if value is None else f"{name}={value!r}"
    reference = f"{call}{_IN_CALL}{reference}{_IN_CALL})" if call else reference
    return f"{_MARK}{reference}{_MARK}"


class _Message(Exception):  # noqa: N818
    """A message that refers to arguments."""

    def __str__(self) -> str:
        return super().__str__().replace(_MARK, "").replace(_IN_CALL, "")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"

    def told(self, said: Callable[[str], str]) -> str:
        """The message, with each reference to an argument formatted by `said`.

        Blanks, not commas, are between arguments with values, as on the command line.
        """
        parts = super().__str__().split(_MARK)
        own = [part.split(_IN_CALL)[part.count(_IN_CALL) // 2] for part in parts]
        told = [said(part) if ix % 2 else part for ix, part in enumerate(own)]
        for ix in range(2, len(parts) - 1, 2):
            if parts[ix] == ", " and "=" in parts[ix - 1] and "=" in parts[ix + 1]:
                told[ix] = " "
        return "".join(told)


class PolyabayesError(_Message):
    """Base class of all errors raised on purpose by polyabayes.

    Attributes
    ----------
    argument : str or None
        Name of the wrong argument, if there is one.
    value : object
        Its value, or a number that follows from it, such as the operations of a computation.
    limit : object
        The limit that the value breaks.
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
    """An argument has an invalid value."""


class InvalidTypeError(PolyabayesError, TypeError):
    """An argument has an invalid type."""


class InvalidCountsError(InvalidArgumentError):
    """A count is negative, fractional, NaN, infinite or too large, or an index is out of range."""


class FileFormatError(PolyabayesError, ValueError):
    """The content of a file does not match its format."""


class FileAccessError(PolyabayesError, OSError):
    """A file or folder is missing, unreadable or cannot be written."""


class BudgetExceededError(PolyabayesError, ValueError):
    """A computation would exceed its budget or the memory of the machine."""


class MissingDependencyError(PolyabayesError, ImportError):
    """An optional dependency is not installed; the message names the extra."""


class ScoreError(PolyabayesError, ValueError):
    """The score of a configuration is not a log probability, or contradicts its kind."""


class WorkerError(PolyabayesError, RuntimeError):
    """A worker of an executor died, and its tasks were not run again."""


class InternalError(PolyabayesError, RuntimeError):
    """An internal check of the compiled core failed: a bug of polyabayes.

    Arguments of the call are unchanged, and other calls work as before.
    """

    def __str__(self) -> str:
        return (
            f"internal error of polyabayes: {super().__str__()}. This is a bug; please report this "
            "line and the call that led to it, with data if you can, and what "
            "polyabayes.show_versions() prints, to the maintainers: no argument should come to this"
        )


class Interrupted(KeyboardInterrupt):
    """Ctrl-C during a long computation; the partial result is kept.

    Attributes
    ----------
    partial : object
        The partial result: a result object, or the estimator, ready for use.
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
    """A checkpoint could not be written; the run continues, and the last checkpoint stays."""


class DataWarning(PolyabayesWarning):
    """Data are ambiguous, or a part of them is left out."""


class EdgeWarning(PolyabayesWarning):
    """The best size is the smallest or largest tried: a better one may lie beyond."""


class PriorWarning(PolyabayesWarning):
    """A model has no prior of its topic weights, so one was fitted; likelihoods depend on it."""


class RefusedModelWarning(PolyabayesWarning):
    """A model could not be scored and is left out of a comparison; the message says why."""


class ScoreWarning(PolyabayesWarning):
    """A configuration could not be scored; the search continues without its prior mass."""


class TargetWarning(PolyabayesWarning):
    """A result misses its target: the error of a total, or the number of draws."""


class UnreliableErrorWarning(PolyabayesWarning):
    """A standard error rests on too few effective replicates and may be too small."""
