"""Discretisation: count tensors from tables of measurements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from polyabayes._support.checks import whole_number
from polyabayes._support.random import RandomState, random_generator
from polyabayes.data.counts import checked_labels
from polyabayes.data.tensors.factors import checked_frame, one_column, row_place
from polyabayes.data.tensors.tensor import CountTensor
from polyabayes.exceptions import InvalidArgumentError, InvalidTypeError

if TYPE_CHECKING:
    import pandas as pd

_N_STARTS = 10
_ENOUGH_DIGITS = 17


def discretise(
    frame: pd.DataFrame,
    columns: Sequence[str],
    n_levels: int | Mapping[str, int],
    *,
    factors: Sequence[str] = (),
    random_state: RandomState = None,
) -> CountTensor:
    """Cut the numbers of a table into levels by k-means, and count its rows.

    Parameters
    ----------
    frame : DataFrame
        A row per observation; missing values are allowed.
    columns : sequence of str
        The columns of numbers to cut.
    n_levels : int or mapping of str to int
        Number of levels of each column, at least 2; a mapping names every column.
    factors : sequence of str, optional
        Columns that already hold levels; they become axes unchanged.
    random_state : None, int, RandomState, Generator or SeedSequence, default=None
        Seed; k-means keeps the best of ten starts.

    Returns
    -------
    CountTensor
        The axes are `factors`, then `columns`. Levels are ordered by their centres; their labels
        are intervals that meet half-way between two centres.

    Raises
    ------
    InvalidArgumentError
        If there is no such column, if a value is infinite, or if a column has fewer
        distinct values than levels.
    InvalidTypeError
        If `frame` is not a DataFrame, or if a column of `columns` does not hold numbers.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"sex": ["f", "m", "f", "m"], "length": [0.1, 0.2, 0.8, 1.0]})
    >>> tensor = discretise(frame, ["length"], 2, factors=["sex"], random_state=0)
    >>> tensor
    <CountTensor: sex 2 x length 2, 4 cells, total 4>
    >>> tensor.labels[1].tolist()
    ['[0.1, 0.525)', '[0.525, 1]']
    """
    import pandas as pd

    table = checked_frame(frame)
    names = list(checked_labels(columns, "columns"))
    others = list(checked_labels(factors, "factors"))
    rng = random_generator(random_state)
    axes: dict[str, Any] = {name: one_column(table, name) for name in others}
    numbers = {name: _numbers(table, name) for name in names}
    sizes = {name: _size(n_levels, name, numbers[name]) for name in names}
    for name in names:
        levels, labels = _cut(numbers[name], sizes[name], int(rng.integers(2**31)))
        axes[name] = pd.Categorical.from_codes(levels, categories=pd.Index(labels))
    return CountTensor.from_frame(pd.DataFrame(axes, index=table.index), [*others, *names])


def _numbers(frame: pd.DataFrame, name: str) -> NDArray[np.float64]:
    column = one_column(frame, name)
    if getattr(column.dtype, "kind", "O") not in "iuf":
        raise InvalidTypeError(
            f"column {name!r} holds {column.dtype}, not numbers; name it in factors if its values "
            "are levels already"
        )
    values = column.to_numpy(dtype=np.float64, na_value=np.nan)
    is_infinite = np.isinf(values)
    if is_infinite.any():
        raise InvalidArgumentError(
            f"column {name!r} is infinite at {row_place(frame)(int(np.argmax(is_infinite)))}; "
            "omit the row"
        )
    return values


def _size(n_levels: Any, name: str, values: NDArray[np.float64]) -> int:
    if isinstance(n_levels, Mapping):
        if name not in n_levels:
            raise InvalidArgumentError(f"n_levels has no entry for column {name!r}")
        n_levels = n_levels[name]
    size = whole_number("n_levels", n_levels, least=2)
    n_distinct = len(np.unique(values[~np.isnan(values)]))
    if n_distinct < size:
        raise InvalidArgumentError(
            f"column {name!r} has {n_distinct} distinct values, fewer than n_levels={size}; use "
            "fewer levels or name it in factors"
        )
    return size


def _cut(values: NDArray[np.float64], size: int, seed: int) -> tuple[NDArray[np.int64], list[str]]:
    """Level of each value, -1 if missing, and the interval of each level."""
    # Imported here, since it loads more slowly than all of polyabayes.
    from sklearn.cluster import KMeans

    known = values[~np.isnan(values)]
    means = KMeans(size, n_init=_N_STARTS, random_state=seed).fit(known[:, np.newaxis])
    centres = np.sort(means.cluster_centers_.ravel())
    inner = (centres[1:] + centres[:-1]) / 2
    bounds = [known.min(), *inner, known.max()]
    # The fewest digits at which the bounds differ.
    for digits in range(4, _ENOUGH_DIGITS + 1):
        texts = [f"{bound:.{digits}g}" for bound in bounds]
        if len(set(texts)) == len(texts):
            break
    intervals = [f"[{low}, {high})" for low, high in pairwise(texts)]
    intervals[-1] = intervals[-1][:-1] + "]"
    levels = np.searchsorted(inner, values, side="right")
    return np.where(np.isnan(values), -1, levels), intervals
