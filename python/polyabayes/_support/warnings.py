"""Warnings of the package: one function, which callers can silence.

``warnings.catch_warnings`` changes the filters of the whole process, so that a fit in one thread
would restore filters under another that still runs. A context variable belongs to its thread.
"""

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import FrameType

from polyabayes.exceptions import PolyabayesWarning

# Packages whose frames are not callers: this one, and scikit-learn, which wraps `transform`.
_NO_CALLERS = (__name__.partition(".")[0], "sklearn")
_silenced: ContextVar[tuple[type[PolyabayesWarning], ...]] = ContextVar("silenced", default=())


def warn(message: str, category: type[PolyabayesWarning]) -> None:
    """Warn at the line that called the package."""
    if issubclass(category, _silenced.get()):
        return
    level, frame = 2, sys._getframe(1)
    while frame is not None and _package_of(frame) in _NO_CALLERS:
        level, frame = level + 1, frame.f_back  # type: ignore[assignment]
    warnings.warn(message, category, stacklevel=level)


def _package_of(frame: FrameType) -> str:
    name: str = frame.f_globals.get("__name__", "")
    return name.partition(".")[0]


@contextmanager
def quiet(category: type[PolyabayesWarning] = PolyabayesWarning) -> Iterator[None]:
    """Silence warnings of a category in this thread; the caller reports them."""
    token = _silenced.set((*_silenced.get(), category))
    try:
        yield
    finally:
        _silenced.reset(token)
