"""Arrays and a header in safetensors files: no code, never half a file, no bit out of place."""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load, save

from polyabayes._support.files import reading, replacing
from polyabayes.exceptions import FileFormatError

_FORMAT = "polyabayes 2"
_LENGTH_BYTES = 8


def write_arrays(path: Path, header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
    """Write arrays beside a JSON header; the file takes its name only when it is complete.

    Equal arrays and headers make equal files: all that is not an array is one entry, since the
    library writes several in an order of chance.
    """
    contiguous = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    text = json.dumps(header, default=_plain)
    about = {"format": _FORMAT, "header": text, "sha256": _digest(text, contiguous)}
    with replacing(path) as stream:
        stream.write(save(contiguous, {"polyabayes": json.dumps(about)}))


def read_arrays(path: Path) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Read the header and the arrays of a file that :func:`write_arrays` wrote.

    The bytes are read, not mapped: a file that shrinks meanwhile would take the process down.
    """
    with reading(path):
        content = path.read_bytes()
        try:
            arrays = load(content)
        except SafetensorError as error:
            raise FileFormatError(
                f"{path} is not a whole safetensors file ({error}); save the model again"
            ) from error
        length = int.from_bytes(content[:_LENGTH_BYTES], "little")
        entries = json.loads(content[_LENGTH_BYTES : _LENGTH_BYTES + length])
        metadata = entries.get("__metadata__") or {}
    try:
        about = json.loads(metadata["polyabayes"])
        text = about["header"]
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise FileFormatError(
            f"{path} is a safetensors file, but not one of this version of polyabayes "
            f"(format {metadata.get('format')!r}, expected {_FORMAT!r})"
        ) from error
    if about.get("format") != _FORMAT:
        raise FileFormatError(
            f"{path} is a safetensors file, but not one of this version of polyabayes "
            f"(format {about.get('format')!r}, expected {_FORMAT!r})"
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


def _digest(text: str, arrays: dict[str, NDArray[Any]]) -> str:
    """SHA-256 of a header and of names, types, shapes and bytes of arrays."""
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass"))
    for name, array in sorted(arrays.items()):
        digest.update(repr((name, array.dtype.str, array.shape)).encode("utf-8", "surrogatepass"))
        ordered = array if sys.byteorder == "little" else array.byteswap()
        digest.update(ordered.tobytes())
    return digest.hexdigest()


def _plain(value: Any) -> Any:
    """Parameters as JSON: arrays as lists; a random state that is no number is left out."""
    return np.asarray(value).tolist() if hasattr(value, "__array__") else None
