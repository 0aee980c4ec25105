"""Columns of a table as factors: a level for each distinct value."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from polyabayes.data.cells import Integers, Place
from polyabayes.exceptions import InvalidArgumentError, InvalidTypeError

if TYPE_CHECKING:
    import pandas as pd


def checked_frame(frame: Any) -> pd.DataFrame:
    """`frame` if it is a pandas DataFrame."""
    pandas = sys.modules.get("pandas")
    if pandas is None or not isinstance(frame, pandas.DataFrame):
        raise InvalidTypeError(
            f"frame must be a pandas DataFrame, got {type(frame).__name__}; arrays go to "
            "CountTensor.from_dense or CountTensor.from_coo"
        )
    checked: pd.DataFrame = frame
    return checked


def row_place(frame: pd.DataFrame) -> Place:
    """Say where a position is by the label of its row."""
    return lambda position: f"{frame.index.name or 'row'} {frame.index[position]}"


def complete_column(frame: pd.DataFrame, name: str) -> pd.Series[Any]:
    """The column of this name, which is there once and has no missing values."""
    n_found = int((frame.columns == name).sum())
    if n_found != 1:
        raise InvalidArgumentError(
            f"frame has {n_found or 'no'} columns called {name!r}; its columns are "
            f"{', '.join(map(str, frame.columns))}"
        )
    column = frame[name]
    is_missing = column.isna().to_numpy()
    if is_missing.any():
        raise InvalidArgumentError(
            f"column {name!r} has no value at {row_place(frame)(int(np.argmax(is_missing)))}; "
            "leave such rows out, as by frame.dropna(), or name the missing value"
        )
    return column


def factor(frame: pd.DataFrame, name: str) -> tuple[Integers, list[str]]:
    """Level of each row, and the labels: categories as they are, other values sorted."""
    column: Any = complete_column(frame, name)
    if hasattr(column, "cat"):
        codes, values = column.cat.codes.to_numpy(), column.cat.categories
    else:
        try:
            codes, values = column.factorize(sort=True)
        except TypeError as error:
            raise InvalidTypeError(
                f"column {name!r} holds values that cannot be sorted: {error}; make them text"
            ) from error
    return codes.astype(np.int64), [str(value) for value in values]
