"""Arrays one after the other in a file, each at a place from which it can be mapped."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from polyabayes.exceptions import FileFormatError

__all__ = ["align", "append_arrays", "damaged", "mapped_array", "mapped_arrays"]

# Arrays begin at multiples of these bytes.
_ALIGNMENT = 64


def append_arrays(stream: BinaryIO, arrays: Iterable[NDArray[Any]]) -> None:
    """Write arrays, in the same byte order on all machines."""
    for array in arrays:
        np.save(stream, array.astype(array.dtype.newbyteorder("<"), copy=False), allow_pickle=False)
        align(stream)


def align(stream: BinaryIO) -> None:
    """Fill up to where an array can begin."""
    stream.write(bytes(-stream.tell() % _ALIGNMENT))


def mapped_array(stream: BinaryIO, path: Path) -> NDArray[Any]:
    """The next array of a stream of them, mapped; the stream goes on after it."""
    shape, dtype = _header(stream, path)
    array = np.asarray(np.memmap(path, dtype, "r", stream.tell(), shape)) if shape[0] else None
    found: NDArray[Any] = np.zeros(shape, dtype) if array is None else array
    _pass(stream, found.nbytes)
    return found


def mapped_arrays(path: Path) -> list[NDArray[Any]]:
    """All arrays of a file, mapped once: each map holds a descriptor of the file."""
    arrays: list[NDArray[Any]] = []
    with path.open("rb") as stream:
        n_bytes = path.stat().st_size
        whole = np.memmap(path, np.uint8, "r") if n_bytes else np.zeros(0, np.uint8)
        while stream.tell() < n_bytes:
            shape, dtype = _header(stream, path)
            start = stream.tell()
            size = int(np.prod(shape)) * dtype.itemsize
            arrays.append(np.asarray(whole[start : start + size]).view(dtype).reshape(shape))
            _pass(stream, size)
    return arrays


def _header(stream: BinaryIO, path: Path) -> tuple[tuple[int, ...], np.dtype[Any]]:
    if np.lib.format.read_magic(stream) != (1, 0):
        raise damaged(path)
    shape, _, dtype = np.lib.format.read_array_header_1_0(stream)
    return shape, dtype


def _pass(stream: BinaryIO, n_bytes: int) -> None:
    """Go on after an array."""
    stream.seek(n_bytes, os.SEEK_CUR)
    stream.seek(-stream.tell() % _ALIGNMENT, os.SEEK_CUR)


def damaged(path: Path) -> FileFormatError:
    """The error of a file of the state that is not whole."""
    return FileFormatError(
        f"{path} is damaged, or of other shards: delete the folder {path.parent}, and start again"
    )
