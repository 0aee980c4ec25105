"""Tables of factors in CSV and Parquet files: a column an axis, and perhaps one of counts."""

from __future__ import annotations

import csv
import io
import re
from array import array
from collections.abc import Collection, Sequence
from math import isnan
from pathlib import Path
from typing import Any

import numpy as np

from polyabayes._support.files import content_of, replacing
from polyabayes.data.tensor import CountTensor
from polyabayes.exceptions import FileFormatError, InvalidArgumentError
from polyabayes.io.tabular.delimited import DelimitedFile, Dialect, label_order, number_of
from polyabayes.io.tabular.parquet import load_pandas, read_parquet_frame

_COUNTS = "count"
_MOST_SHOWN = 40
# The longest is beyond any integer of 64 bits; one of thousands of digits takes long to read.
_INTEGER = re.compile(r"\s*[+-]?[0-9]{1,20}\s*")


def read_factor_csv(
    path: Path,
    axes: Sequence[str] | None = None,
    *,
    counts: str | None = None,
    sep: str = ",",
    quotechar: str = '"',
    encoding: str = "utf-8",
    skiprows: int = 0,
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
    sep, quotechar, encoding, skiprows
        As for :class:`Dialect`.

    Returns
    -------
    CountTensor
        The counts.
    """
    pandas = load_pandas("CSV")
    file = DelimitedFile(path, Dialect(sep, quotechar, encoding, skiprows))
    with content_of(path):
        counts = _column_of_counts(file.header, axes, counts)
        wanted = [*axes, *filter(None, [counts])] if axes is not None else file.header
        # A column that is not there is told by CountTensor, which then names all that are.
        is_known = set(wanted) <= set(file.header)
        lines, columns = _columns(file, wanted if is_known else file.header)
        # Labels stay text, since neither "01" nor a large count survives a guess of its type.
        frame = pandas.DataFrame(
            {
                name: _numbers(file, lines, texts, name) if name == counts else _levels(texts)
                for name, texts in columns.items()
            },
            index=pandas.Index(lines, name="line"),
        )
        return CountTensor.from_frame(frame, axes, counts)


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
        return CountTensor.from_frame(frame, axes, _column_of_counts(frame.columns, axes, counts))


def write_factor_csv(tensor: CountTensor, path: Path) -> None:
    """Write a line for each cell that is not zero, gzipped if the name ends in ``.gz``.

    Parameters
    ----------
    tensor : CountTensor
        The counts. The sizes of the axes and the order of the labels are not kept; an axis
        without labels is written as its coordinates, counted from 0, and one that tokens do not
        show is left empty.
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
        named: Any = (levels if labels is None else labels[levels]).astype(object)
        named[levels < 0] = None
        columns.append(named.tolist())
    with replacing(path) as handle:
        text = io.TextIOWrapper(handle, encoding="utf-8", newline="")
        lines = csv.writer(text)
        lines.writerow([*tensor.axes, _COUNTS])
        lines.writerows(zip(*columns, tensor.counts.tolist(), strict=True))
        text.detach()


def _column_of_counts(
    columns: Collection[str], axes: Sequence[str] | None, counts: str | None
) -> str | None:
    if counts is None and _COUNTS in columns and _COUNTS not in (axes or ()):
        return _COUNTS
    return counts


def _columns(file: DelimitedFile, wanted: list[str]) -> tuple[array[int], dict[str, list[str]]]:
    """Lines of the records, and what they hold in the columns wanted; none may be empty.

    Lines may be short where no such column is, and blank at the end of the file.
    """
    places = {name: file.header.index(name) for name in wanted}
    lines, columns = array("q"), {name: list[str]() for name in wanted}
    # Equal labels are one object.
    known: dict[str, str] = {}
    blank = None
    for line, fields in file.records():
        if not any(fields):
            blank = blank or line
            continue
        if len(fields) > len(file.header):
            raise file.refuse(
                line, f"more fields than the header names columns, {len(file.header)}"
            )
        for name, place in places.items():
            text = fields[place] if place < len(fields) and blank is None else ""
            if not text:
                raise FileFormatError(
                    f"{file.path}: column {name!r} has no value at line {blank or line}"
                )
            columns[name].append(known.setdefault(text, text))
        lines.append(line)
    return lines, columns


def _numbers(file: DelimitedFile, lines: array[int], texts: list[str], name: str) -> Any:
    """Counts as integers where all are, else as floats; CountTensor checks their values."""
    values: list[float] = []
    for line, text in zip(lines, texts, strict=True):
        value = number_of(text)
        if value is None or isnan(value):
            raise FileFormatError(
                f"{file.path}: column {name!r} holds {text[:_MOST_SHOWN]!r} at line {line}, not a "
                "count"
            )
        values.append(value)
    if all(_INTEGER.fullmatch(text) for text in texts):
        whole = list(map(int, texts))
        for kind in (np.int64, np.uint64):
            if (
                np.iinfo(kind).min
                <= min(whole, default=0)
                <= max(whole, default=0)
                <= (np.iinfo(kind).max)
            ):
                return np.array(whole, dtype=kind)
    return np.array(values)


def _levels(texts: list[str]) -> Any:
    pandas = load_pandas("CSV")
    labels = pandas.Index(label_order(set(texts)), dtype=object)
    return pandas.Categorical(texts, categories=labels)
