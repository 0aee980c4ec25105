"""Arrays and a header in safetensors files, written completely and with a checksum."""

import hashlib
import json
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save

from polyabayes._support.files import open_regular, reading, replacing
from polyabayes.exceptions import FileFormatError

_FORMAT = "polyabayes 2"
_LENGTH_BYTES = 8
# Types of arrays by their names in a safetensors file.
_TYPES = {
    "BOOL": "?",
    **{f"{kind.upper()}{8 * size}": f"<{kind}{size}" for kind in "iu" for size in (1, 2, 4, 8)},
    **{f"F{8 * size}": f"<f{size}" for size in (2, 4, 8)},
}


def write_arrays(path: Path, header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
    """Write arrays and a JSON header to a file, completely or not at all.

    Equal arrays and headers give equal files. The header is a single entry, since the library
    writes several entries in random order.
    """
    contiguous = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    text = json.dumps(header, default=_plain)
    about = {"format": _FORMAT, "header": text, "sha256": _digest(text, contiguous)}
    with replacing(path) as stream:
        stream.write(save(contiguous, {"polyabayes": json.dumps(about)}))


def read_arrays(path: Path) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Read the header and the arrays of a file that :func:`write_arrays` wrote.

    The file is read, not mapped, since a mapped file that shrinks would crash the process. Arrays
    are views of the bytes; the library's own reader panics or hangs if memory is short.
    """
    with open_regular(path) as stream, reading(path):
        content = np.fromfile(stream, dtype=np.uint8)
        try:
            metadata, arrays = _parsed(content)
        except (AttributeError, KeyError, TypeError, ValueError, RecursionError) as error:
            raise FileFormatError(
                f"{path} is not a whole safetensors file ({error!r:.200}): give the file "
                "of a model, or save it again"
            ) from error
    try:
        about = json.loads(metadata["polyabayes"])
        text, found = about["header"], about.get("format")
    except (KeyError, TypeError, ValueError, RecursionError):
        text, found = None, metadata.get("format")
    if found != _FORMAT:
        raise FileFormatError(
            f"{path} is a safetensors file, but not one of this version of polyabayes "
            f"(format {found!r}, expected {_FORMAT!r})"
        )
    if not isinstance(text, str) or about.get("sha256") != _digest(text, arrays):
        raise FileFormatError(
            f"{path} is damaged: its content has another checksum than when it was written; take "
            "a copy of it, or make it again"
        )
    with reading(path):
        header = json.loads(text)
    if not isinstance(header, dict):
        raise FileFormatError(f"{path} has a damaged header: {header!r}")
    return header, arrays


def _parsed(content: NDArray[np.uint8]) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Metadata and arrays of the bytes of a safetensors file: length, JSON, the arrays in a row.

    Other bytes, or an array elsewhere than the header says, raise AttributeError, KeyError,
    TypeError, ValueError or RecursionError.
    """
    start = _LENGTH_BYTES + int.from_bytes(content[:_LENGTH_BYTES].tobytes(), "little")
    if len(content) < max(start, _LENGTH_BYTES):
        raise ValueError("the header is cut")
    entries = json.loads(content[_LENGTH_BYTES:start].tobytes())
    metadata = entries.pop("__metadata__", None) or {}
    arrays, end = {}, start
    for name, entry in sorted(entries.items(), key=lambda item: item[1]["data_offsets"]):
        first, last = (start + offset for offset in entry["data_offsets"])
        dtype, shape = np.dtype(_TYPES[entry["dtype"]]), tuple(entry["shape"])
        n_bytes = math.prod(shape) * dtype.itemsize
        if first != end or last - first != n_bytes or last > len(content):
            raise ValueError(f"the array {name!r:.50} is not where the header says")
        end = last
        # Files of other programs may begin an array at any byte.
        arrays[name] = np.require(content[first:last].view(dtype).reshape(shape), None, "A")
    if end != len(content):
        raise ValueError("bytes belong to no array")
    return metadata, arrays


def _digest(text: str, arrays: dict[str, NDArray[Any]]) -> str:
    """SHA-256 of a header and of names, types, shapes and bytes of arrays."""
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass"))
    for name, array in sorted(arrays.items()):
        digest.update(repr((name, array.dtype.str, array.shape)).encode("utf-8", "surrogatepass"))
        ordered = array if sys.byteorder == "little" else array.byteswap()
        digest.update(ordered.reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


def _plain(value: Any) -> Any:
    """Parameters as JSON: arrays as lists; a random state that is no number is left out."""
    return np.asarray(value).tolist() if hasattr(value, "__array__") else None
