"""Errors and warnings of polyabayes.

Every error derives from :class:`PolyabayesError` and from the built-in class
that a caller would catch anyway (``ValueError``, ``TypeError``, ``OSError``).
A message names the argument, the place and the remedy.
"""

from typing import Any

from sklearn.exceptions import NotFittedError as _SklearnNotFittedError

__all__ = [
    "BudgetExceededError",
    "CheckpointWarning",
    "FileAccessError",
    "FileFormatError",
    "ImpossibleDocumentWarning",
    "InternalError",
    "Interrupted",
    "InvalidArgumentError",
    "InvalidCountsError",
    "InvalidTypeError",
    "MissingDependencyError",
    "NotFittedError",
    "PolyabayesError",
    "PolyabayesWarning",
    "PriorWarning",
    "ScoreError",
    "ScoreWarning",
    "UnreliableErrorWarning",
]


class PolyabayesError(Exception):
    """Base class of all errors raised on purpose by polyabayes."""


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


class NotFittedError(PolyabayesError, _SklearnNotFittedError):  # type: ignore[misc]
    """An estimator is used before ``fit`` or ``from_parameters``."""


class ScoreError(PolyabayesError, ValueError):
    """The score of a configuration is no log probability, or breaks what its kind promises."""


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


class PolyabayesWarning(UserWarning):
    """Base class of the warnings of polyabayes."""


class ImpossibleDocumentWarning(PolyabayesWarning):
    """A document holds a word that no topic can produce: its log-likelihood is ``-inf``."""


class CheckpointWarning(PolyabayesWarning):
    """A checkpoint could not be written; the work goes on, the last good one stays."""


class PriorWarning(PolyabayesWarning):
    """A model brings no prior of its topic weights; one was fitted, and likelihoods rest on it."""


class ScoreWarning(PolyabayesWarning):
    """A configuration could not be scored; the search goes on, its prior mass stays unexplored."""


class UnreliableErrorWarning(PolyabayesWarning):
    """A standard error rests on too few effective replicates to be trusted."""
