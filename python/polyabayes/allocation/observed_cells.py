"""Which cells of a tensor were observed, and cells of other data in the levels of a tensor."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from polyabayes._support.arrays import Flags, Integers
from polyabayes.allocation.graphs.network import Network
from polyabayes.allocation.graphs.rates import RatePoints, rate_points
from polyabayes.allocation.graphs.tied_levels import match_levels
from polyabayes.allocation.layout import Layout, as_tensor, lay_out
from polyabayes.data.conversion.frames import row_place
from polyabayes.data.corpus import Corpus
from polyabayes.data.tensors.factors import axis_names, checked_frame, factor, one_column
from polyabayes.data.tensors.tensor import CountTensor
from polyabayes.exceptions import (
    InvalidArgumentError,
    InvalidCountsError,
    InvalidTypeError,
    argument,
)


def lay_out_observed(
    model: Network,
    data: Any,
    observed: Any,
    elimination_order: Sequence[str] | None,
    method: str | None = None,
    *,
    stepwise: bool = False,
) -> tuple[Layout, Integers]:
    """A model laid out for the observed cells, and the coordinates of the missing cells."""
    if np.ma.is_masked(data):
        if observed is not None:
            raise InvalidArgumentError(
                "data is a masked array and observed is given as well; give only one of them"
            )
        data, observed = data.filled(0), ~np.ma.getmaskarray(data)
    data, observed = _without_nans(data, observed)
    if observed is None:
        layout = lay_out(model, data, elimination_order, method, stepwise=stepwise)
        return layout, np.empty((0, layout.tensor.n_axes), dtype=np.int64)
    tensor = as_tensor(model, _without_hidden(data, observed))
    mask = _checked_mask(tensor, observed)
    if not tensor.is_complete:
        raise InvalidArgumentError(
            "some tokens do not show all axes, so that none of their cells is known to be empty: "
            "observed needs tokens that show all of them"
        )
    seen = mask[tuple(tensor.coordinates.T)]
    if not seen.all():
        tensor = CountTensor._from_checked(
            tensor.coordinates[seen], tensor.counts[seen], tensor.shape, tensor.axes, tensor.labels
        )
    tensor, numbers = match_levels(model.graph, model.tied, tensor)
    missing = np.argwhere(~mask)
    for axis, number_of in numbers.items():
        missing[:, axis] = number_of[missing[:, axis]]
    return lay_out(model, tensor, elimination_order, method), missing


def _without_nans(data: Any, observed: Any) -> tuple[Any, Any]:
    """Replace NaN by zeros, and make the mask of observed cells, if `observed` is "nan".

    Otherwise NaN is refused: pivoted tables have NaN where nothing was counted.
    """
    if isinstance(observed, str) and observed != "nan":
        raise InvalidArgumentError(f"observed must be a boolean array or 'nan', got {observed!r}")
    array = _numbers(data)
    if array is None:
        if isinstance(observed, str):
            raise InvalidTypeError(
                "observed='nan' needs data in an array of numbers, with NaN for what was not "
                f"observed, got {type(data).__name__}; give such an array, or as observed a "
                "boolean array, True where a cell was observed"
            )
        return data, observed
    is_nan = np.isnan(array)
    if isinstance(observed, str):
        return np.where(is_nan, 0, array), ~is_nan
    refused = is_nan
    if observed is not None and np.shape(observed) == array.shape:
        refused = is_nan & np.asarray(observed, dtype=np.bool_)
    if refused.any():
        cell = tuple(np.argwhere(refused)[0].tolist())
        raise InvalidCountsError(
            f"data holds NaN at cell {cell}; if NaN marks the cells that were not observed, give "
            "observed='nan' (or observed=~np.isnan(x)), and if nothing was counted there, write 0"
        )
    return (np.where(is_nan, 0, array), observed) if is_nan.any() else (data, observed)


def _numbers(data: Any) -> NDArray[Any] | None:
    """The data as an array, if it is numeric."""
    if isinstance(data, (CountTensor, Corpus)) or sparse.issparse(data) or hasattr(data, "columns"):
        return None
    try:
        array = np.asarray(data)
    except ValueError:
        return None
    return array if array.dtype.kind in "biuf" else None


def _without_hidden(data: Any, observed: Any) -> Any:
    """The array with zeros in the missing cells."""
    array = _numbers(data)
    mask = np.asarray(observed)
    if array is None or mask.dtype != np.bool_ or mask.shape != array.shape:
        return data
    return np.where(mask, array, 0)


def _checked_mask(tensor: CountTensor, observed: Any) -> Flags:
    mask = np.asarray(observed)
    if mask.dtype != np.bool_:
        raise InvalidTypeError(
            f"observed must be a boolean array, True where a cell was observed, got {mask.dtype}"
        )
    if mask.shape != tensor.shape:
        raise InvalidArgumentError(
            f"observed must have the shape of the data, {tensor.shape}, got {mask.shape}"
        )
    return mask


def rates_of(layout: Layout) -> RatePoints:
    """Rates of the intensity's prior for missing cells, and their weights."""
    model = layout.model
    if model.rate is None:
        raise InvalidArgumentError(
            f"{argument('rate')} must be given if cells are missing: its default, the "
            "concentration over the total, is not known; take the concentration over the total "
            "you expect, or the pair (shape, rate) of a gamma prior of it"
        )
    return rate_points(model.concentration, layout.tensor.total, model.rate, fine=False)


def observed_outside(tensor: CountTensor, missing: CountTensor) -> Flags:
    """Mask of the cells that are empty in another tensor; labelled levels match by label."""
    if missing.axes != tensor.axes:
        raise InvalidArgumentError(
            f"the missing cells have axes {', '.join(missing.axes)}, but the tensor "
            f"{', '.join(tensor.axes)}; use the same names in the same order"
        )
    if not missing.n_cells:
        raise InvalidArgumentError("no missing cells; mark each by a count of 1")
    observed = np.ones(tensor.shape, dtype=np.bool_)
    cells = known_cells(tensor, missing).T
    observed[tuple(cells)] = False
    return observed


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


def known_levels(frame: Any, name: Any, labels: Sequence[str]) -> Integers:
    """Level of each row among known labels, -1 if missing."""
    if not one_column(frame, name).notna().any():
        return np.full(len(frame), -1, dtype=np.int64)
    codes, found = factor(frame, name)
    number = {label: level for level, label in enumerate(labels)}
    used = set(codes.tolist())
    for level, label in enumerate(found):
        if level in used and label not in number:
            place = row_place(frame)(int(np.argmax(codes == level)))
            told = f"column {name!r} has level {label!r} at {place}, which the model has not seen: "
            raise InvalidArgumentError(f"{told}it knows {', '.join(map(repr, labels[:10]))}")
    known = np.array([number.get(label, -1) for label in found] + [-1], dtype=np.int64)
    return known[codes]


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
