"""Arrays and a header in safetensors files: no code, and never half a file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from polyabayes._support.files import reading, replacing
from polyabayes.exceptions import FileFormatError

_FORMAT = "polyabayes 1"


def write_arrays(path: Path, header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
    """Write arrays beside a JSON header; the file takes its name only when it is complete."""
    metadata = {"format": _FORMAT, "header": json.dumps(header, default=_plain)}
    contiguous = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    with replacing(path) as stream:
        stream.write(save(contiguous, metadata))


def read_arrays(path: Path) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Read the header and the arrays of a file that :func:`write_arrays` wrote."""
    with reading(path):
        path.open("rb").close()
        try:
            with safe_open(path, framework="numpy") as content:
                metadata = content.metadata() or {}
                arrays = {key: content.get_tensor(key) for key in content.keys()}  # noqa: SIM118
        except SafetensorError as error:
            raise FileFormatError(
                f"{path} is not a whole safetensors file ({error}); save the model again"
            ) from error
    if metadata.get("format") != _FORMAT:
        raise FileFormatError(
            f"{path} is a safetensors file, but not one of this version of polyabayes "
            f"(format {metadata.get('format')!r}, expected {_FORMAT!r})"
        )
    try:
        header = json.loads(metadata["header"])
    except (KeyError, ValueError) as error:
        raise FileFormatError(f"{path} has a damaged header: {error!r}") from error
    if not isinstance(header, dict):
        raise FileFormatError(f"{path} has a damaged header: {header!r}")
    return header, arrays


def _plain(value: Any) -> Any:
    """Parameters as JSON: arrays as lists; a random state that is no number is left out."""
    return np.asarray(value).tolist() if hasattr(value, "__array__") else None
