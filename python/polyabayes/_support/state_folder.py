"""The folder in which long work keeps its state, so that it can go on from there."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from polyabayes._support.files import checked_path, is_unfinished
from polyabayes.exceptions import (
    CheckpointWarning,
    FileAccessError,
    InvalidArgumentError,
    InvalidTypeError,
)

# Entries of a list, and characters of another value, that a message shows.
_MOST_TOLD, _MOST_CHARACTERS = 8, 200


class StateFolder:
    """A folder of files that the work itself can do without.

    Parameters
    ----------
    path : path-like
        The argument `checkpoint`.
    work : str
        What goes on where nothing can be written.
    """

    def __init__(self, path: Any, work: str) -> None:
        if not isinstance(path, (str, os.PathLike)):
            raise InvalidTypeError(f"checkpoint must be a folder or None, got {path!r}")
        self.path, self._work = checked_path(path, "checkpoint"), work
        self._has_warned = False

    def make(self, file: str) -> Path:
        """Make the folder where it is missing, and give the path of a file in it.

        What runs that were killed have left of that file is removed.
        """
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise FileAccessError(f"cannot use {self.path}: {error.strerror or error}") from error
        left = [path for path in self.path.glob(f".{file}.*") if is_unfinished(path, file)]
        self.remove(left)
        return self.path / file

    def remove(self, files: Iterable[Path]) -> None:
        """Remove files of the folder, as far as they are there."""
        try:
            for file in files:
                file.unlink(missing_ok=True)
        except OSError as error:
            raise FileAccessError(f"cannot use {self.path}: {error.strerror or error}") from error

    def put(self, write: Callable[[], object], what: str) -> bool:
        """Write a part of the state, or leave it out: the first time with a warning.

        Returns whether it was written.
        """
        try:
            write()
        except OSError as error:
            if self._has_warned:
                return False
            self._has_warned = True
            warnings.warn(
                f"{what} is not in the checkpoint: {error}; {self._work} goes on and keeps there "
                "what can be written, and this is the only warning",
                CheckpointWarning,
                stacklevel=6,
            )
            return False
        return True


def refuse_other(path: Path, of: str, name: str, found: Any, expected: Any) -> None:
    """Refuse to go on from a file `of` another run, or search, whose `name` differs."""
    if found == expected:
        return
    name, found, expected = _first_difference(name, found, expected)
    raise InvalidArgumentError(
        f"{path} is of another {of}: its {name} is {_short(found)}, here it is {_short(expected)}; "
        "give another folder, or delete this file to start again"
    )


def _first_difference(name: str, found: Any, expected: Any) -> tuple[str, Any, Any]:
    """Place of the first difference between lists of one length, however deep."""
    lists = isinstance(found, list) and isinstance(expected, list)
    if not lists or len(found) != len(expected):
        return name, found, expected
    pairs = enumerate(zip(found, expected, strict=True))
    index, (one, other) = next((ix, pair) for ix, pair in pairs if pair[0] != pair[1])
    return _first_difference(f"{name}[{index}]", one, other)


def _short(value: Any) -> str:
    """A value as text, without the middle of a long one."""
    if isinstance(value, list) and len(value) > _MOST_TOLD:
        return f"a list of {len(value):,}"
    text = repr(value)
    return text if len(text) <= _MOST_CHARACTERS else f"{text[:80]} ... {text[-80:]}"
