"""FROSTT tensors: ``.tns`` and ``.tns.gz``, their axes in a ``.modes.json`` of the same name."""

import json
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from polyabayes._support import files
from polyabayes.data.corpus import Corpus
from polyabayes.data.names import say
from polyabayes.data.tensors import cells as _cells
from polyabayes.data.tensors.tensor import CountTensor
from polyabayes.exceptions import FileFormatError, InvalidArgumentError
from polyabayes.io.integers import COMMENT, COUNT, PLACE, check_lines, numbers_of

_CELLS_A_WRITE, _MOST_AXES = 1 << 16, 10_000


def default_axes(n_axes: int) -> tuple[str, ...]:
    """Names of axes for a file without names."""
    return tuple(f"mode{number}" for number in range(1, n_axes + 1))


def read_tns(path: Path, axes: Sequence[str] | None = None, *, shape: Any = None) -> CountTensor:
    """Read a FROSTT tensor, plain or gzipped.

    A line holds the coordinates of a cell, counted from 1, and its count; comments start with
    ``#``. Names, sizes and labels of the axes are read from the file of the same name with the
    ending ``.modes.json``. Without it, default names are ``mode1``, ``mode2``, ..., and default
    sizes are the largest coordinates.
    """
    if (modes := _read_modes(_modes_path(path))) is not None and shape is not None:
        raise InvalidArgumentError(f"omit shape: {_modes_path(path)} gives the sizes")
    names, shape, labels = modes or (None, shape, None)
    table = _read_cells(path, None if shape is None else _cells.checked_sizes(shape))
    axes = (names or default_axes(table.shape[1] - 1)) if axes is None else axes
    with files.content_of(path):
        return CountTensor.from_coo(table[:, :-1] - 1, table[:, -1], axes, shape, labels)


def read_tns_corpus(path: Path) -> Corpus:
    """Read a FROSTT tensor of two axes, documents and words, as a corpus."""
    if (tensor := read_tns(path)).n_axes != 2:
        raise FileFormatError(f"{path} has {tensor.n_axes} axes: polyabayes.read_tensor reads it")
    with files.content_of(path):
        cells = sparse.coo_matrix((tensor.counts, tuple(tensor.coordinates.T)), shape=tensor.shape)
        return Corpus(cells, tensor.labels[1], tensor.labels[0])


def write_tns(tensor: CountTensor, path: Path) -> None:
    """Write a FROSTT tensor, gzipped if it ends in ``.gz``.

    Names, sizes and labels of the axes go to a file of the same name with the ending
    ``.modes.json``.
    """
    if not tensor.is_complete:
        raise InvalidArgumentError("no .tns file holds missing values: write .npz")
    table = np.column_stack([tensor.coordinates + 1, tensor.counts])
    line = " ".join(["%d"] * table.shape[1]) + "\n"
    held = zip(tensor.axes, tensor.shape, tensor.labels, strict=True)
    modes = [{"name": x, "size": n, "labels": y if y is None else y.tolist()} for x, n, y in held]
    content = json.dumps({"modes": modes}, indent=1).encode() + b"\n"
    with files.beside(_modes_path(path), content), files.replacing(path) as handle:
        for start in range(0, len(table), _CELLS_A_WRITE):
            rows = table[start : start + _CELLS_A_WRITE]
            handle.write((line * len(rows) % tuple(rows.ravel().tolist())).encode())


def _read_cells(path: Path, shape: _cells.Shape | None) -> NDArray[np.uint64]:
    """Coordinates and count of each line, shape (n_lines, n_axes + 1)."""
    tables: list[NDArray[np.uint64]] = []
    n_axes = None if shape is None else len(shape)
    for first_line, block in files.line_blocks(path):
        cells = COMMENT.sub(b"", block)
        if n_axes is None:
            head = cells.lstrip().partition(b"\n")[0].split()
            n_axes = max(1, len(head) - 1) if head else None
            if n_axes is not None and n_axes > _MOST_AXES:
                raise FileFormatError(f"{path}, line {first_line}: more than {_MOST_AXES:,} axes")
        if n_axes is not None:
            what = f"the coordinates of a cell on {n_axes} axes and its count"
            check_lines(path, cells, rb"[ \t]++".join([PLACE] * n_axes + [COUNT]), what, first_line)
            table = numbers_of(cells).reshape(-1, n_axes + 1)
            outside = np.argwhere(table[:, :-1] > np.array(shape or _cells.MAX_TOTAL, np.uint64))
            if len(outside):
                row, axis = outside[0]
                filled = (n for n, line in enumerate(cells.split(b"\n")) if line.strip())
                told = first_line + next(islice(filled, int(row), None)), axis + 1, table[row, axis]
                raise FileFormatError(say("no coordinate", path, *told))
            tables.append(table)
    if n_axes is None:
        raise FileFormatError(f"{path} holds no cells; give the shape of an empty tensor")
    return np.concatenate(tables) if tables else np.empty((0, n_axes + 1), np.uint64)


def _modes_path(path: Path) -> Path:
    return files.sibling(path, ".modes.json")


def _read_modes(path: Path) -> tuple[_cells.Axes, _cells.Shape, _cells.AxisLabels] | None:
    """Names, sizes and labels of the axes; None if there is no such file.

    The content is ``{"modes": [{"name": str, "size": int, "labels": [str, ...]}, ...]}``;
    ``labels`` may be missing or null.
    """
    with files.reading(path):
        if path == _modes_path(files.STANDARD_INPUT) or not path.is_file():
            return None
    with files.open_binary(path) as stream, files.reading(path):
        content = json.load(stream)
    modes = content.get("modes") if isinstance(content, dict) else None
    are_named = isinstance(modes, list) and all(isinstance(mode, dict) for mode in modes)
    if not modes or not are_named or not all({"name", "size"} <= mode.keys() for mode in modes):
        raise FileFormatError(say("modes", path))
    with files.content_of(path):
        axes = _cells.checked_axes([mode["name"] for mode in modes])
        labels = _cells.checked_axis_labels([mode.get("labels") for mode in modes], axes)
        sizes, none = [mode["size"] for mode in modes], np.empty((0, len(axes)), np.int64)
        return axes, _cells.checked_shape(sizes, none, axes, labels), labels
