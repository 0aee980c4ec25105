"""Coordinates of other data in the levels of a tensor."""

from __future__ import annotations

from typing import Any

import numpy as np

from polyabayes.data.tensors.cells import Integers
from polyabayes.data.tensors.factors import axis_names, checked_frame, known_levels
from polyabayes.data.tensors.tensor import CountTensor
from polyabayes.exceptions import InvalidArgumentError


def known_cells(tensor: CountTensor, data: Any) -> Integers:
    """Coordinates of the rows of a table, or the cells of another tensor, in a tensor.

    Levels are matched by label if axes have labels. A missing value is -1. Axes and levels that
    the tensor does not have are refused.
    """
    if isinstance(data, CountTensor):
        columns = [_levels(tensor, data, axis) for axis in range(tensor.n_axes)]
        return np.stack(columns, axis=1)
    frame = checked_frame(data)
    named = dict(zip(axis_names(frame.columns), frame.columns, strict=True))
    columns = []
    for axis, labels, size in zip(tensor.axes, tensor.labels, tensor.shape, strict=True):
        if axis not in named:
            raise InvalidArgumentError(
                f"there is no column {axis!r}, but the tensor has the axes "
                f"{', '.join(tensor.axes)}; if no row has a value, give a column of missing values"
            )
        known = list(map(str, range(size) if labels is None else labels))
        columns.append(known_levels(frame, named[axis], known))
    return np.stack(columns, axis=1)


def _levels(tensor: CountTensor, other: CountTensor, axis: int) -> Integers:
    """Levels of another tensor on an axis, in the numbers of the tensor."""
    name = tensor.axes[axis]
    if name not in other.axes:
        raise InvalidArgumentError(
            f"the cells have axes {', '.join(other.axes)}, but the tensor "
            f"{', '.join(tensor.axes)}; give them the same names"
        )
    its = other.axes.index(name)
    levels, labels, known = other.coordinates[:, its], other.labels[its], tensor.labels[axis]
    if (known is None) != (labels is None):
        raise InvalidArgumentError(
            f"axis {name!r} has labels in only one of the tensor and the other cells; label "
            "both or neither"
        )
    wanted = levels.tolist() if labels is None else labels[levels].tolist()
    size = range(tensor.shape[axis])
    number = {label: level for level, label in enumerate(size if known is None else known)}
    found = [
        -1 if level < 0 else number.get(label) for level, label in zip(levels, wanted, strict=True)
    ]
    for level, label in zip(found, wanted, strict=True):
        if level is None:
            raise InvalidArgumentError(
                f"a cell has level {label!r} of axis {name!r}, which the tensor does not have; "
                "make the tensor with all levels"
            )
    return np.array(found, dtype=np.int64)
