"""Folders that keep the state of long computations for resuming."""

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polyabayes._support.files import checked_path, remove_unfinished
from polyabayes._support.storage.arrays import read_arrays, write_arrays
from polyabayes._support.warnings import warn
from polyabayes.exceptions import (
    CheckpointWarning,
    FileAccessError,
    FileFormatError,
    InvalidArgumentError,
    InvalidTypeError,
)

# Largest number of list entries, and of characters of other values, in a message.
_MOST_TOLD, _MOST_CHARACTERS = 8, 200


class StateFolder:
    """A folder of files that can be recomputed.

    A folder claimed by :meth:`claim` holds files of one computation, and each file names it. A file
    that is missing or of another computation is made; a damaged file is made again, with a warning;
    an unreadable file is an error. `work` names the computation in warnings.
    """

    def __init__(self, path: Any, work: str) -> None:
        if not isinstance(path, (str, os.PathLike)):
            raise InvalidTypeError(f"checkpoint must be a folder or None, got {path!r}")
        self.path, self._work = checked_path(path, "checkpoint"), work
        self._has_warned = False
        self._owner = ""

    def header(self, file: str) -> dict[str, Any]:
        """Identity of the computation that owns the folder; empty if unclaimed."""
        head = self.path / file
        return read_arrays(head)[0] if head.exists() else {}

    def claim(self, file: str, of: str, identity: Mapping[str, Any]) -> None:
        """Claim the folder for a computation; refuse a folder of another.

        `of` is the kind of computation, for messages; the identity must be valid JSON.
        """
        text = json.dumps(identity, sort_keys=True)
        head, expected = self.make(file), json.loads(text)
        self._owner = hashlib.sha256(text.encode()).hexdigest()
        found = self.header(file)
        if not found:
            write_arrays(head, expected, {})
            return
        for name in sorted(expected.keys() | found.keys()):
            refuse_other(head, of, name, found.get(name), expected.get(name))

    def read(self, file: str) -> tuple[dict[str, Any], dict[str, NDArray[Any]]] | None:
        """Header and arrays from :meth:`keep`; None if they must be computed.

        A file that exists but cannot be read is a FileAccessError.
        """
        path = self.path / file
        try:
            # A file without permission to read is not missing.
            path.stat()
            header, arrays = read_arrays(path)
        except FileNotFoundError:
            return None
        except OSError as error:
            if isinstance(error, FileAccessError):
                raise
            raise FileAccessError(f"cannot read {path}: {error.strerror or error}") from error
        except FileFormatError as error:
            self.damaged(error)
            return None
        return (header, arrays) if header.get("of") == self._owner else None

    def damaged(self, why: object) -> None:
        """Warn of a file that is made again."""
        warn(f"{why}; it is made again", CheckpointWarning)

    def keep(
        self, file: str, header: Mapping[str, Any], arrays: dict[str, NDArray[Any]], what: str
    ) -> bool:
        """Write a part of the state; returns whether it was written (see :meth:`put`)."""
        content = {**header, "of": self._owner}
        return self.put(partial(write_arrays, self.path / file, content, arrays), what)

    def make(self, file: str) -> Path:
        """Make the folder if it is missing, and return the path of a file in it.

        Unfinished files of killed runs are removed.
        """
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise FileAccessError(f"cannot use {self.path}: {error.strerror or error}") from error
        remove_unfinished(self.path, file)
        return self.path / file

    def remove(self, files: Iterable[Path]) -> None:
        """Remove files of the folder, as far as they are there."""
        try:
            for file in files:
                file.unlink(missing_ok=True)
        except OSError as error:
            raise FileAccessError(f"cannot use {self.path}: {error.strerror or error}") from error

    def put(self, write: Callable[[], object], what: str) -> bool:
        """Write a part of the state; a first failure gives a warning.

        Returns whether it was written.
        """
        try:
            write()
        except OSError as error:
            if self._has_warned:
                return False
            self._has_warned = True
            warn(
                f"{what} is not in the checkpoint: {error}; {self._work} continues; "
                "further failures give no warning",
                CheckpointWarning,
            )
            return False
        return True


def fingerprint_of(about: object, *arrays: NDArray[Any]) -> str:
    """Hash of numeric arrays and of properties of them."""
    digest = hashlib.sha256(repr(about).encode())
    for array in arrays:
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()[:16]


def refuse_other(path: Path, of: str, name: str, found: Any, expected: Any) -> None:
    """Refuse to resume from a file `of` another run or search, whose `name` differs."""
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
