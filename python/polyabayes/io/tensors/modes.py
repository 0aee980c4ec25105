"""The axes of a tensor file, in JSON: names, sizes and, if there are any, labels."""

from __future__ import annotations

import json
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NamedTuple

from polyabayes._support.files import STANDARD_INPUT, beside, open_binary, reading, sibling
from polyabayes.data.tensors.tensor import CountTensor
from polyabayes.exceptions import FileFormatError


class Modes(NamedTuple):
    """Names, sizes and labels of the axes, as in the file; one entry per axis."""

    names: list[str]
    shape: tuple[int, ...]
    labels: list[list[str] | None]


def modes_path(path: Path) -> Path:
    """The file of the axes of a tensor file."""
    return sibling(path, ".modes.json")


def read_modes(path: Path) -> Modes | None:
    """Axes of a tensor; None if there is no such file.

    The content is ``{"modes": [{"name": str, "size": int, "labels": [str, ...]}, ...]}``;
    ``labels`` may be missing or null.
    """
    with reading(path):
        if path == modes_path(STANDARD_INPUT) or not path.is_file():
            return None
    with open_binary(path) as stream, reading(path):
        content = json.load(stream)
    modes = content.get("modes") if isinstance(content, dict) else None
    if not isinstance(modes, list) or not modes:
        raise FileFormatError(f'{path} must hold {{"modes": [...]}}, an entry for each axis')
    for number, mode in enumerate(modes, start=1):
        mistake = _mistake(mode)
        if mistake:
            raise FileFormatError(f"{path}, mode {number}: {mistake}")
    return Modes(
        [mode["name"] for mode in modes],
        tuple(mode["size"] for mode in modes),
        [mode.get("labels") for mode in modes],
    )


def _mistake(mode: Any) -> str | None:
    if not isinstance(mode, dict) or not isinstance(mode.get("name"), str):
        return "it has no name; a mode is {name, size, labels}"
    name, size, labels = mode["name"], mode.get("size"), mode.get("labels")
    if isinstance(size, bool) or not isinstance(size, int) or size < 1:
        return f"the size of {name!r} is {size!r}, not a whole number of at least 1"
    if labels is None:
        return None
    if not isinstance(labels, list) or not all(isinstance(label, str) for label in labels):
        return f"the labels of {name!r} are not a list of text"
    if len(labels) != size:
        return f"{name!r} has size {size}, but {len(labels)} labels"
    return None


def modes_beside(tensor: CountTensor, path: Path) -> AbstractContextManager[None]:
    """Context that writes the axes of a tensor next to the counts, which its body writes."""
    modes = []
    for name, size, labels in zip(tensor.axes, tensor.shape, tensor.labels, strict=True):
        mode: dict[str, Any] = {"name": name, "size": size}
        if labels is not None:
            mode["labels"] = labels.tolist()
        modes.append(mode)
    return beside(modes_path(path), json.dumps({"modes": modes}, indent=1).encode() + b"\n")
