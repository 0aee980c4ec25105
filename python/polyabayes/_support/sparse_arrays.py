"""Checks of the index arrays of a sparse matrix before compiled code uses them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from polyabayes.exceptions import InvalidArgumentError, InvalidCountsError, InvalidTypeError

_COMPRESSED = ("csr", "csc", "bsr")
_FLOAT_BYTES = 8


def checked_sparse(matrix: Any, name: str) -> Any:
    """Check a CSR, CSC, BSR or COO matrix: every index must lie within its shape.

    SciPy's conversions and sums trust these arrays: an invalid index reads or writes other memory
    of the process, and SciPy's own check misses cases, such as ``indptr`` ending in 0 or -1. SciPy
    sums equal entries in the type of the counts, so narrow types are widened against overflow.
    """
    if matrix.dtype.kind not in "biufc":
        raise InvalidTypeError(f"{name} must hold counts, got a sparse matrix of {matrix.dtype}")
    if matrix.format in _COMPRESSED:
        _check_compressed(matrix, name)
        parts = (_widened(matrix.data), _native(matrix.indices), _native(matrix.indptr))
        return type(matrix)(parts, shape=matrix.shape)
    if matrix.format == "lil":
        indices = [index for row in matrix.rows for index in row]
        for row, (columns, values) in enumerate(zip(matrix.rows, matrix.data, strict=True)):
            if len(columns) != len(values):
                raise _broken(name, f"row {row} has {len(columns)} indices, {len(values)} counts")
        _check_indices(np.array(indices or np.zeros(0, int)), len(indices), matrix.shape[1], name)
    if matrix.format == "dia":
        matrix = type(matrix)((_native(matrix.data), matrix.offsets), shape=matrix.shape)
    matrix = matrix.tocoo()
    # Older releases of SciPy have only two dimensions, and no `coords`.
    coordinates = getattr(matrix, "coords", None) or (matrix.row, matrix.col)
    for size, axis in zip(matrix.shape, coordinates, strict=True):
        _check_indices(axis, len(matrix.data), size, name)
    return type(matrix)((_widened(matrix.data), tuple(coordinates)), shape=matrix.shape)


def _widened(counts: Any) -> NDArray[Any]:
    """Counts in a type that holds the sum of any array that fits into memory."""
    stored = _native(counts)
    if stored.dtype.kind in "bi" or stored.dtype in (np.uint8, np.uint16, np.uint32):
        return stored.astype(np.int64, copy=False)
    is_narrow = stored.dtype.kind == "f" and stored.dtype.itemsize < _FLOAT_BYTES
    return stored.astype(np.float64) if is_narrow else stored


def _native(array: Any) -> NDArray[Any]:
    stored: NDArray[Any] = np.asarray(array)
    return stored.astype(stored.dtype.newbyteorder("="), copy=False)


def _check_compressed(matrix: Any, name: str) -> None:
    if len(matrix.shape) != 2:
        raise InvalidArgumentError(f"{name} is a sparse array of {len(matrix.shape)} axes, not two")
    n_rows, n_columns = matrix.shape
    if matrix.format == "bsr":
        height, width = matrix.blocksize
        n_rows, n_columns = n_rows // height, n_columns // width
    n_major, n_minor = (n_columns, n_rows) if matrix.format == "csc" else (n_rows, n_columns)
    offsets, n_stored = np.asarray(matrix.indptr), len(matrix.data)
    are_offsets = offsets.dtype.kind in "iu" and offsets.shape == (n_major + 1,)
    is_rising = are_offsets and offsets[0] == 0 and (offsets[1:] >= offsets[:-1]).all()
    if not (is_rising and offsets[-1] <= n_stored):
        raise _broken(name, f"indptr must be {n_major + 1} integers that rise from 0 to {n_stored}")
    _check_indices(matrix.indices, n_stored, n_minor, name)


def _check_indices(indices: Any, n_stored: int, size: int, name: str) -> None:
    indices = np.asarray(indices)
    if indices.dtype.kind not in "iu" or indices.shape != (n_stored,):
        raise _broken(name, f"{indices.size} indices of {indices.dtype} for {n_stored} counts")
    if n_stored and not (indices.min() >= 0 and indices.max() < size):
        position = int(np.argmax((indices < 0) | (indices >= size)))
        raise _broken(name, f"index {indices[position]} of entry {position} is not below {size}")


def _broken(name: str, reason: str) -> InvalidCountsError:
    return InvalidCountsError(f"{name} is not a valid sparse matrix: {reason}; build it again")
