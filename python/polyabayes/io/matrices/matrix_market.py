"""Matrix Market: ``.mtx`` and ``.mtx.gz``, read in blocks and checked line by line."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.io import mmwrite

from polyabayes._support.files import content_of, line_blocks, refuse_announced, replacing
from polyabayes.data.corpus import Corpus
from polyabayes.data.counts import MAX_COUNT
from polyabayes.exceptions import FileFormatError
from polyabayes.io.integers import count_mistake, is_number, read_cells, shown
from polyabayes.io.vocabularies import words_beside

_BANNER = "%%matrixmarket"
_LAYOUTS = ("coordinate", "array")
_FIELDS = ("integer", "real", "double", "unsigned-integer", "pattern")
_SYMMETRIES = ("general", "symmetric")
_COMMENT = b"%"

Table = NDArray[np.int64]


class _Header(NamedTuple):
    """The header: kind and number of the entries."""

    is_dense: bool
    has_values: bool
    is_symmetric: bool
    n_rows: int
    n_columns: int
    n_entries: int

    @property
    def sizes(self) -> tuple[int, ...]:
        """Largest coordinates on a line."""
        return () if self.is_dense else (self.n_rows, self.n_columns)


def read_matrix_market(path: Path, *, transpose: bool = False) -> Corpus:
    """Read a Matrix Market file of counts.

    Formats are coordinate or array; integer, real or pattern; general or symmetric. Repeated
    entries are summed; entries of a pattern count once. With `transpose`, rows are words (genes)
    and columns are documents (cells).
    """
    header: _Header | None = None
    tables: list[Table] = []
    n_found = 0
    for first_line, block in line_blocks(path):
        line, body = first_line, block
        if header is None:
            header, line, body = _header(path, block)
            sizes = header.n_rows, header.n_columns
            refuse_announced(path, *(sizes[::-1] if transpose else sizes))
        mistake = partial(_mistake, header=header)
        limits = [*((1, size) for size in header.sizes), *[(0, MAX_COUNT)] * header.has_values]
        tables.append(read_cells(path, line, body, limits, mistake))
        n_found += len(tables[-1])
        if n_found > header.n_entries:
            break
    if header is None:
        raise FileFormatError(f"{path} cannot be read: it is empty")
    if n_found != header.n_entries:
        found = "more" if n_found > header.n_entries else f"{n_found:,}"
        raise FileFormatError(
            f"{path}: {header.n_entries:,} entries are announced, but {found} follow; the file may "
            "be cut short"
        )
    matrix = _matrix(header, np.concatenate(tables))
    with content_of(path):
        return Corpus(matrix.T if transpose else matrix)


def write_matrix_market(corpus: Corpus, path: Path) -> None:
    """Write a Matrix Market file, gzipped if it ends in ``.gz``, without ids of documents.

    Words, if any, go to a file of the same name with the ending ``.vocab``.
    """
    with words_beside(corpus.vocabulary, path), replacing(path) as handle:
        mmwrite(handle, corpus.counts, field="integer", symmetry="general")


def _header(path: Path, block: bytes) -> tuple[_Header, int, bytes]:
    """The header, the number of the first line after it, and that line and all after it."""
    banner, _, rest = block.partition(b"\n")
    layout, field, symmetry = _kinds(path, banner.decode("utf-8", "replace"))
    for number in range(2, 3 + block.count(b"\n")):
        line, _, rest = rest.partition(b"\n")
        sizes = line.split()
        if not sizes or line.startswith(_COMMENT):
            continue
        n_sizes = 2 if layout == "array" else 3
        if len(sizes) != n_sizes or not all(map(is_number, sizes)):
            wanted = "rows and columns" if layout == "array" else "rows, columns and entries"
            text = line.decode("utf-8", "replace").strip()
            raise FileFormatError(
                f"{path}, line {number}: {shown(text)!r} is not the numbers of {wanted}"
            )
        n_rows, n_columns, *announced = map(int, sizes)
        is_symmetric = symmetry == "symmetric"
        if is_symmetric and n_rows != n_columns:
            raise FileFormatError(
                f"{path}, line {number}: a symmetric matrix of {n_rows} rows, {n_columns} columns"
            )
        n_dense = n_rows * (n_rows + 1) // 2 if is_symmetric else n_rows * n_columns
        header = _Header(
            layout == "array",
            field != "pattern",
            is_symmetric,
            n_rows,
            n_columns,
            announced[0] if announced else n_dense,
        )
        return header, number + 1, rest
    raise FileFormatError(f"{path} cannot be read: it has no line of sizes")


def _kinds(path: Path, banner: str) -> tuple[str, str, str]:
    words = banner.lower().split()
    if words[:2] != [_BANNER, "matrix"] or len(words) != 5:
        raise FileFormatError(
            f"{path} cannot be read: its first line must be like "
            "'%%MatrixMarket matrix coordinate integer general'"
        )
    for word, known in zip(words[2:], (_LAYOUTS, _FIELDS, _SYMMETRIES), strict=True):
        if word not in known:
            raise FileFormatError(
                f"{path}, line 1: {word!r} is not a kind of counts; known are {', '.join(known)}"
            )
    if words[2] == "array" and words[3] == "pattern":
        raise FileFormatError(f"{path}, line 1: a pattern has no array")
    return words[2], words[3], words[4]


def _mistake(fields: list[str], header: _Header) -> str | None:
    if len(fields) != len(header.sizes) + header.has_values:
        wanted = "row and column" if not header.has_values else "row, column and count"
        return f"{shown(' '.join(fields))!r} is not {wanted if header.sizes else 'a count'}"
    for field, size, kind in zip(fields, header.sizes, ("row", "column"), strict=False):
        if not is_number(field) or not 1 <= int(field) <= size:
            return f"the {kind} is {shown(field)!r}, not a whole number from 1 to {size}"
    return count_mistake(fields[-1]) if header.has_values else None


def _matrix(header: _Header, table: Table) -> sparse.coo_matrix[np.int64]:
    if header.is_dense:
        if header.is_symmetric:
            columns, rows = np.triu_indices(header.n_rows)
        else:
            columns, rows = np.divmod(np.arange(header.n_entries), header.n_rows)
    else:
        rows, columns = table[:, 0] - 1, table[:, 1] - 1
    counts = table[:, -1] if header.has_values else np.ones(len(table), dtype=np.int64)
    if header.is_symmetric:
        beside = rows != columns
        mirrored = columns[beside], rows[beside], counts[beside]
        rows, columns, counts = (
            np.concatenate(pair) for pair in zip((rows, columns, counts), mirrored, strict=True)
        )
    return sparse.coo_matrix((counts, (rows, columns)), shape=(header.n_rows, header.n_columns))
