"""Arrays of ``.npz`` files, checked against the size of the file before memory is allocated."""

import math
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from polyabayes._support.files import open_binary, reading
from polyabayes._support.machine import memory_of_machine
from polyabayes.data.names import say
from polyabayes.exceptions import FileFormatError

_LONGEST_HEADER, _LAST_LETTER = 10_000, 0x10FFFF
_HEADERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}


def read_archive(path: Path, wanted: Sequence[str], prefix: str = "") -> dict[str, NDArray[Any]]:
    """Read the arrays of a ``.npz`` file; others than `wanted` and those of `prefix` are refused.

    The first of `wanted` tells that the file is of this kind.

    Nothing in the file is executed, and no more memory is allocated than its members need.
    """
    arrays, unknown = dict[str, NDArray[Any]](), list[str]()
    with open_binary(path) as stream, reading(path):
        if not zipfile.is_zipfile(stream):
            raise FileFormatError(f"{path} is no .npz archive: damaged, or a single array")
        archive = zipfile.ZipFile(stream)
        for member in archive.infolist():
            name = member.filename.removesuffix(".npy")
            if name not in wanted and not (prefix and name.startswith(prefix)):
                unknown.append(name)
                continue
            if name in arrays:
                raise FileFormatError(f"{path} holds the array {name!r} twice")
            if member.flag_bits & 1:
                raise FileFormatError(f"{path}: {member.filename!r} is encrypted; decrypt it first")
            with archive.open(member) as held:
                arrays[name] = _read_array(f"{path}: {member.filename!r}", held, member.file_size)
    if unknown and not arrays:
        raise FileFormatError(say("npz", str(path), unknown[0]))
    if unknown and wanted[0] in arrays:
        raise FileFormatError(say("later", path, unknown[0]))
    return arrays


def _read_array(name: str, stream: Any, n_bytes_there: int) -> NDArray[Any]:
    if (read_header := _HEADERS.get(npy.read_magic(stream))) is None:
        raise FileFormatError(f"{name} is of another version of NumPy")
    shape, is_fortran, dtype = read_header(stream, _LONGEST_HEADER)
    if dtype.kind not in "biufUS" or dtype.hasobject:
        raise FileFormatError(f"{name} holds {dtype}, not numbers or text")
    n_bytes = math.prod(shape) * dtype.itemsize
    if min(shape, default=0) < 0 or n_bytes != n_bytes_there - stream.tell():
        raise FileFormatError(f"{name} announces the shape {shape}, but is not as long")
    if n_bytes > memory_of_machine():
        raise FileFormatError(f"{name} is larger than the memory")
    if (content := stream.read(n_bytes)) and dtype.kind == "U":
        letters = np.frombuffer(content, dtype=np.dtype("u4").newbyteorder(dtype.byteorder))
        if (letters > _LAST_LETTER).any() or ((letters >= 0xD800) & (letters <= 0xDFFF)).any():
            raise FileFormatError(f"{name} holds codes that are no letters")
    return np.frombuffer(content, dtype).copy().reshape(shape, order="F" if is_fortran else "C")
