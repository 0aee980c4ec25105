"""Checks that bring cells of a count tensor into canonical form."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from polyabayes._support.arrays import Integers
from polyabayes._support.checks import is_name, whole_number
from polyabayes._support.sparse_arrays import checked_sparse
from polyabayes.data.counts import Words, check_values, checked_labels, count_array, distinct
from polyabayes.data.names import CALLS, refusal, say
from polyabayes.exceptions import InvalidArgumentError, InvalidCountsError, InvalidTypeError

Axes: TypeAlias = tuple[str, ...]
Shape: TypeAlias = tuple[int, ...]
AxisLabels: TypeAlias = "tuple[Words | None, ...]"
LabelList: TypeAlias = "Sequence[str] | NDArray[Any]"
LabelsLike: TypeAlias = "Mapping[str, LabelList] | Sequence[LabelList | None] | None"
Place: TypeAlias = Callable[[int], str]

MAX_TOTAL, _LOW_BITS = 2**63 - 1, 32


def checked_axes(axes: Iterable[str]) -> tuple[str, ...]:
    """Check names of axes: valid as nodes of a graph, each once."""
    if not len(names := checked_labels(axes, "axes")):
        raise InvalidArgumentError("axes is empty; give at least one name")
    if odd := [name for name in names if not is_name(name)]:
        raise InvalidArgumentError(f"{odd[0]!r} cannot name an axis; use letters, digits and _")
    return tuple(distinct(names, "axes names", CALLS["own axis"]))


def checked_axis_labels(labels: LabelsLike, axes: tuple[str, ...]) -> AxisLabels:
    """Labels of each axis, in the order of the axes; None for an axis without labels."""
    if labels is None:
        return (None,) * len(axes)
    if isinstance(labels, Mapping):
        if unknown := [name for name in labels if name not in axes]:
            raise refusal("no axis", unknown[0], axes)
        labels = [labels.get(axis) for axis in axes]
    if isinstance(labels, str) or not isinstance(labels, Sequence):
        raise InvalidTypeError(f"labels must map axes to sequences of str, got {labels!r}")
    if len(labels) != len(axes):
        raise InvalidArgumentError(f"labels has {len(labels)} entries for {len(axes)} axes: {axes}")
    of, remedy = [f"labels of axis {axis!r}" for axis in axes], "give each level a label of its own"
    return tuple(
        None if names is None else distinct(checked_labels(names, x), f"{x} holds", remedy)
        for x, names in zip(of, labels, strict=True)
    )


def checked_sizes(shape: Any) -> tuple[int, ...]:
    """The entries of a shape as ints."""
    if not isinstance(shape, (Sequence, np.ndarray)):
        raise InvalidTypeError(f"shape must hold the size of each axis, got {shape!r}")
    return tuple(whole_number("an entry of shape", size, least=0, most=MAX_TOTAL) for size in shape)


def checked_shape(
    shape: Sequence[int] | None, coordinates: Integers, axes: tuple[str, ...], labels: AxisLabels
) -> tuple[int, ...]:
    """Size of each axis: as given, else by its labels, else by its largest coordinate."""
    if shape is None:
        pairs = zip(coordinates.max(axis=0, initial=-1).tolist(), labels, strict=True)
        sizes = tuple(top + 1 if names is None else len(names) for top, names in pairs)
    else:
        sizes = checked_sizes(shape)
    if len(sizes) != len(axes):
        raise InvalidArgumentError(f"shape {sizes} has {len(sizes)} entries for {len(axes)} axes")
    for axis, size, names in zip(axes, sizes, labels, strict=True):
        if names is not None and len(names) != size:
            raise InvalidArgumentError(f"axis {axis!r} has size {size}, but {len(names)} labels")
        if not size:
            raise InvalidArgumentError(f"axis {axis!r} has no levels; give its size or labels")
    return sizes


def checked_coordinates(coordinates: Any, axes: tuple[str, ...]) -> Integers:
    """Coordinates as non-negative integers, one row per cell and one column per axis."""
    if not (array := count_array(coordinates, "coordinates")).size:
        return np.empty((0, len(axes)), dtype=np.int64)
    if array.dtype.kind not in "iu":
        raise InvalidTypeError(f"coordinates must be integers, got dtype {array.dtype}")
    if array.ndim != 2 or array.shape[1] != len(axes):
        raise refusal("cells", len(axes), ", ".join(axes), array.shape)
    if array.dtype == np.uint64:
        array = np.minimum(array, np.uint64(MAX_TOTAL))
    return np.ascontiguousarray(array, dtype=np.int64)


def refuse_outside(coordinates: Integers, shape: Shape, axes: Axes, least: int = 0) -> None:
    """Refuse coordinates that are not within the shape."""
    if (outside := (coordinates < least) | (coordinates >= np.array(shape, dtype=np.int64))).any():
        cell, column = (int(index) for index in np.argwhere(outside)[0])
        told = (cell, coordinates[cell, column], axes[column], shape[column] - 1)
        raise InvalidCountsError(say("outside", *told))


def checked_cell_counts(values: Any, n_cells: int, name: str, place: Place) -> Integers:
    """Non-negative counts of cells as 64-bit integers; `place` describes a position in messages."""
    if (array := count_array(values, name)).shape != (n_cells,):
        raise InvalidArgumentError(f"{name} must have shape ({n_cells},), got {array.shape}")
    check_values(array, name, MAX_TOTAL, place)
    if array.dtype.kind == "f" and (array >= 2 ** (np.finfo(array.dtype).nmant + 1)).any():
        told = array.max(), place(int(array.argmax())), array.dtype, np.finfo(array.dtype).nmant + 1
        raise InvalidCountsError(say("inexact", name, *told))
    counts = array.astype(np.int64)
    # In two halves, since the sum itself may not fit.
    high, low = counts >> _LOW_BITS, counts & (2**_LOW_BITS - 1)
    if (total := (int(high.sum()) << _LOW_BITS) + int(low.sum())) > MAX_TOTAL:
        most = total, counts.max(), place(int(counts.argmax()))
        raise InvalidCountsError(say("too many", name, *most))
    return counts


def named_cells(axes: Axes, coordinates: Integers, labels: AxisLabels) -> dict[str, NDArray[Any]]:
    """Columns of cell positions: labels, or numbers for an axis without labels."""
    places = zip(axes, coordinates.T, labels, strict=True)
    return {axis: x if names is None else names[x] for axis, x, names in places}


def non_zeros(values: Any, name: str = "array") -> tuple[tuple[int, ...], Integers, NDArray[Any]]:
    """Shape, coordinates and unchecked values of the non-zero entries."""
    if not sparse.issparse(values):
        if not (dense := count_array(values, name)).ndim:
            raise InvalidArgumentError(f"{name} is a single number; give an array with axes")
        index = np.nonzero(dense)
        return dense.shape, np.stack(index, axis=1), dense[index]
    cells = checked_sparse(values, name).tocoo()
    # Older releases of SciPy have only two dimensions, and no `coords`.
    index = cells.coords if hasattr(cells, "coords") else (cells.row, cells.col)
    return cells.shape, np.stack(index, axis=1).astype(np.int64), cells.data
