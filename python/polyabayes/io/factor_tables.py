"""Tables of factors in CSV and Parquet files: a column an axis, and perhaps one of counts."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from polyabayes._support.files import content_of, open_binary, reading, replacing
from polyabayes.data.factors import row_place
from polyabayes.data.tensor import CountTensor
from polyabayes.exceptions import FileFormatError, InvalidArgumentError, InvalidCountsError
from polyabayes.io.tables import check_options, load_pandas, read_parquet_frame

if TYPE_CHECKING:
    import pandas as pd

_COUNTS = "count"


def read_factor_csv(
    path: Path, axes: Sequence[str] | None = None, *, counts: str | None = None, **options: Any
) -> CountTensor:
    """Read a CSV file of factors, plain or gzipped.

    Parameters
    ----------
    path : Path
        The file, with a header. A line is an observation, or a kind of observation and how
        often it occurs. Labels are kept as they are written; they are sorted, by value if all
        of an axis are numbers. Levels that do not occur are not known.
    axes : sequence of str, optional
        The columns that are axes; otherwise all but that of the counts.
    counts : str, optional
        The column of counts; otherwise the one called ``count``, if there is one that is not
        an axis, else each line counts once.
    **options
        Passed to ``pandas.read_csv``.

    Returns
    -------
    CountTensor
        The counts.
    """
    pandas = load_pandas("CSV")
    # As text, since neither "01" as a label nor a large count survives a guess of its type.
    # Blank lines are kept so that rows can be told by their line.
    settings = {"keep_default_na": False, "na_values": [""], "skip_blank_lines": False}
    check_options(pandas.read_csv, options)
    with open_binary(path) as stream, reading(path):
        frame = pandas.read_csv(stream, **{**settings, **options, "dtype": str})
    if not isinstance(frame.index, pandas.RangeIndex):
        raise FileFormatError(f"{path}: the lines have more fields than the header names columns")
    if not options:
        frame.index = pandas.RangeIndex(2, 2 + len(frame), name="line")
    with content_of(path):
        frame = _without_blank_end(frame)
        counts = _column_of_counts(frame, axes, counts)
        return CountTensor.from_frame(_typed(frame, axes, counts), axes, counts)


def read_factor_parquet(
    path: Path, axes: Sequence[str] | None = None, *, counts: str | None = None
) -> CountTensor:
    """Read a Parquet file of factors.

    Parameters
    ----------
    path : Path
        The file, with a table as for :meth:`CountTensor.from_frame`.
    axes : sequence of str, optional
        As for :func:`read_factor_csv`.
    counts : str, optional
        As for :func:`read_factor_csv`.

    Returns
    -------
    CountTensor
        The counts.
    """
    frame = read_parquet_frame(path)
    with content_of(path):
        return CountTensor.from_frame(frame, axes, _column_of_counts(frame, axes, counts))


def write_factor_csv(tensor: CountTensor, path: Path) -> None:
    """Write a line for each cell that is not zero, gzipped if the name ends in ``.gz``.

    Parameters
    ----------
    tensor : CountTensor
        The counts. The sizes of the axes and the order of the labels are not kept; an axis
        without labels is written as its coordinates, counted from 0.
    path : Path
        The file.
    """
    if _COUNTS in tensor.axes:
        raise InvalidArgumentError(
            f"an axis is called {_COUNTS!r} as the column of counts; rename() it or write .npz"
        )
    columns = []
    for axis, levels, labels in zip(tensor.axes, tensor.coordinates.T, tensor.labels, strict=True):
        if labels is not None and "" in labels:
            raise InvalidArgumentError(
                f"axis {axis!r} has an empty label, which a CSV file cannot tell from a missing "
                "value; write .npz instead"
            )
        columns.append((levels if labels is None else labels[levels]).tolist())
    with replacing(path) as handle:
        text = io.TextIOWrapper(handle, encoding="utf-8", newline="")
        lines = csv.writer(text)
        lines.writerow([*tensor.axes, _COUNTS])
        lines.writerows(zip(*columns, tensor.counts.tolist(), strict=True))
        text.detach()


def _without_blank_end(frame: pd.DataFrame) -> pd.DataFrame:
    filled = np.flatnonzero(frame.notna().any(axis=1).to_numpy())
    return frame.iloc[: filled[-1] + 1 if len(filled) else 0]


def _column_of_counts(
    frame: pd.DataFrame, axes: Sequence[str] | None, counts: str | None
) -> str | None:
    if counts is None and _COUNTS in frame.columns and _COUNTS not in (axes or ()):
        return _COUNTS
    return counts


def _typed(frame: pd.DataFrame, axes: Sequence[str] | None, counts: str | None) -> pd.DataFrame:
    """The columns wanted, counts as numbers and all others as categories."""
    wanted = frame.columns if axes is None else {*axes, counts}
    return frame.assign(
        **{
            name: _numbers(frame, name) if name == counts else _levels(frame[name])
            for name in frame.columns
            if name in wanted
        }
    )


def _numbers(frame: pd.DataFrame, name: str) -> pd.Series[Any]:
    pandas = load_pandas("CSV")
    numbers: pd.Series[Any] = pandas.to_numeric(frame[name], errors="coerce")
    is_text = (numbers.isna() & frame[name].notna()).to_numpy()
    if is_text.any():
        position = int(np.argmax(is_text))
        raise InvalidCountsError(
            f"column {name!r} holds {frame[name].iloc[position]!r} at "
            f"{row_place(frame)(position)}, not a count"
        )
    return numbers


def _levels(column: pd.Series[Any]) -> pd.Series[Any]:
    pandas = load_pandas("CSV")
    labels = pandas.Series(sorted(column.dropna().unique()), dtype=object)
    numbers = pandas.to_numeric(labels, errors="coerce")
    if numbers.notna().all():
        labels = labels.iloc[numbers.argsort(kind="stable")]
    return column.astype(pandas.CategoricalDtype(labels))
