"""Arrays and a header in safetensors files: no code, and never half a file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from polyabayes.exceptions import FileFormatError, InvalidArgumentError
from polyabayes.io._files import reading, replacing

_FORMAT = "polyabayes 1"

# What a message shows of a list, and of other values.
_MOST_TOLD, _MOST_CHARACTERS = 8, 200


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
    """Where lists of one length differ, however deep."""
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


def _plain(value: Any) -> Any:
    """Parameters as JSON: arrays as lists; a random state that is no number is left out."""
    return np.asarray(value).tolist() if hasattr(value, "__array__") else None
