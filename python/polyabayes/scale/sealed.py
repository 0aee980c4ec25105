"""Files of consecutive arrays that end with a checksum of name and content.

They are read, not mapped: if another process truncates a file, that is an error, not a crash.
"""

import os
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray

from polyabayes._support.files import open_regular, reading, replacing
from polyabayes.exceptions import FileFormatError

_SEAL_BYTES = 4


@contextmanager
def sealing(path: Path) -> Iterator[Callable[[NDArray[Any]], None]]:
    """Open a file that gets its name only once it is complete, sealed and on the disk.

    The function appends an array, without its type and size, in one byte order on all machines.
    """
    checksum = zlib.crc32(path.name.encode())
    with replacing(path) as stream:

        def write(array: NDArray[Any]) -> None:
            nonlocal checksum
            ordered = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
            checksum = zlib.crc32(ordered.data, checksum)
            stream.write(ordered.data)

        yield write
        stream.write(checksum.to_bytes(_SEAL_BYTES, "little"))


class SealedReader:
    """Reads the arrays of a file; the last one only if the checksum is right.

    `n_left` is the number of unread bytes before the checksum.
    """

    def __init__(self, path: Path) -> None:
        self.path, self._checksum = path, zlib.crc32(path.name.encode())
        self._is_checked = False
        self._stream = open_regular(path)
        with reading(path):
            self.n_left = os.fstat(self._stream.fileno()).st_size - _SEAL_BYTES
        if self.n_left < 0:
            self._stream.close()
            raise damaged(path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._stream.close()

    def read(self, size: int, dtype: DTypeLike) -> NDArray[Any]:
        """The next array, of `size` numbers."""
        array = np.empty(size, dtype)
        if array.nbytes > self.n_left:
            raise damaged(self.path)
        with reading(self.path):
            n_bytes = self._stream.readinto(array.data) if size else 0
            self._checksum = zlib.crc32(array.data, self._checksum)
            self.n_left -= array.nbytes
            if self.n_left == 0 and not self._is_checked:
                self._is_checked = True
                seal = int.from_bytes(self._stream.read(_SEAL_BYTES), "little")
                if n_bytes != array.nbytes or seal != self._checksum:
                    raise damaged(self.path)
        if n_bytes != array.nbytes:
            raise damaged(self.path)
        return array if sys.byteorder == "little" else array.byteswap()


def damaged(path: Path) -> FileFormatError:
    """The error of an incomplete file of the state."""
    return FileFormatError(
        f"{path} is damaged, or of other shards: delete the folder {path.parent} and restart"
    )
