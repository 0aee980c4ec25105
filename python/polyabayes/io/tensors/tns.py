"""FROSTT tensors: ``.tns`` and ``.tns.gz``, their axes in a ``.modes.json`` of the same name."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
from scipy import sparse

from polyabayes._support.files import content_of, line_blocks, replacing
from polyabayes.data.corpus import Corpus
from polyabayes.data.counts import Words
from polyabayes.data.tensors.cells import MAX_TOTAL, Integers, checked_sizes
from polyabayes.data.tensors.tensor import CountTensor
from polyabayes.exceptions import FileFormatError, InvalidArgumentError
from polyabayes.io.integers import count_mistake, is_number, read_cells, shown
from polyabayes.io.tensors.modes import modes_beside, modes_path, read_modes
from polyabayes.io.vocabularies import with_vocabulary

Shape = tuple[int, ...]

_COMMENT = re.compile(rb"#[^\n]*")
_CELLS_A_WRITE = 1 << 16


def default_axes(n_axes: int) -> tuple[str, ...]:
    """Names of axes for a file without names."""
    return tuple(f"mode{number}" for number in range(1, n_axes + 1))


def read_tns(
    path: Path, axes: Sequence[str] | None = None, *, shape: Sequence[int] | None = None
) -> CountTensor:
    """Read a FROSTT tensor, plain or gzipped.

    A line holds the coordinates of a cell, counted from 1, and its count; comments start with
    ``#``. Names, sizes and labels of the axes are read from the file of the same name with the
    ending ``.modes.json``. Without it, default names are ``mode1``, ``mode2``, ..., and default
    sizes are the largest coordinates.
    """
    modes = read_modes(modes_path(path))
    if modes is not None:
        if shape is not None:
            raise InvalidArgumentError(
                f"shape={shape!r}, but {modes_path(path)} gives the sizes; omit shape"
            )
        shape, axes = modes.shape, modes.names if axes is None else axes
    table = _read_cells(path, None if shape is None else checked_sizes(shape))
    if axes is None:
        axes = default_axes(table.shape[1] - 1)
    labels = None if modes is None else modes.labels
    with content_of(path):
        return CountTensor.from_coo(table[:, :-1] - 1, table[:, -1], axes, shape, labels)


def read_tns_corpus(path: Path, vocabulary: Words | None = None) -> Corpus:
    """Read a FROSTT tensor of two axes, documents and words, as a corpus.

    If the second axis has labels, the vocabulary sets the order of the columns.
    """
    tensor = read_tns(path)
    if tensor.n_axes != 2:
        raise FileFormatError(
            f"{path} is a tensor of {tensor.n_axes} axes: polyabayes.read_tensor reads it"
        )
    with content_of(path):
        cells = sparse.coo_matrix((tensor.counts, tuple(tensor.coordinates.T)), shape=tensor.shape)
        corpus = Corpus(cells, tensor.labels[1], tensor.labels[0])
    return with_vocabulary(corpus, vocabulary)


def write_tns(tensor: CountTensor, path: Path) -> None:
    """Write a FROSTT tensor, gzipped if it ends in ``.gz``.

    Names, sizes and labels of the axes go to a file of the same name with the ending
    ``.modes.json``.
    """
    if not tensor.is_complete:
        raise InvalidArgumentError(
            "some tokens have missing values, which .tns files have no sign for; write .npz"
        )
    table = np.column_stack([tensor.coordinates + 1, tensor.counts])
    line = " ".join(["%d"] * table.shape[1]) + "\n"
    with modes_beside(tensor, path), replacing(path) as handle:
        for start in range(0, len(table), _CELLS_A_WRITE):
            rows = table[start : start + _CELLS_A_WRITE]
            handle.write((line * len(rows) % tuple(rows.ravel().tolist())).encode())


def _read_cells(path: Path, shape: Shape | None) -> Integers:
    """Coordinates and count of each line, shape (n_lines, n_axes + 1)."""
    tables: list[Integers] = []
    n_axes = None if shape is None else len(shape)
    for first_line, block in line_blocks(path):
        cells = _COMMENT.sub(b"", block)
        if n_axes is None:
            head = cells.lstrip().partition(b"\n")[0].split()
            n_axes = max(1, len(head) - 1) if head else None
        if n_axes is not None:
            limits = [*((1, size) for size in shape or [MAX_TOTAL] * n_axes), (0, MAX_TOTAL)]
            mistake = partial(_mistake, n_axes=n_axes, shape=shape)
            tables.append(read_cells(path, first_line, cells, limits, mistake))
    if n_axes is None:
        raise FileFormatError(f"{path} holds no cells; give the shape of an empty tensor")
    return np.concatenate(tables) if tables else np.empty((0, n_axes + 1), dtype=np.int64)


def _mistake(fields: list[str], n_axes: int, shape: Shape | None) -> str | None:
    if len(fields) != n_axes + 1:
        return (
            f"{len(fields)} numbers; a line is the coordinates of a cell on {n_axes} axes and its "
            "count"
        )
    for column, field in enumerate(fields[:-1]):
        size = None if shape is None else shape[column]
        if not is_number(field) or not 1 <= int(field) <= (size or MAX_TOTAL):
            limit = "counted from 1" if size is None else f"from 1 to {size}"
            return f"coordinate {column + 1} is {shown(field)!r}, not a whole number {limit}"
    return count_mistake(fields[-1], MAX_TOTAL)
