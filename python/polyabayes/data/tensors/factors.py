"""Columns of a table as factors, with a level for each distinct value."""

import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from polyabayes._support.arrays import Integers
from polyabayes._support.checks import is_name
from polyabayes._support.output.frames import DataFrame, Series, import_pandas
from polyabayes.data.conversion import frames, numbers, roles
from polyabayes.data.names import refusal, say
from polyabayes.exceptions import InvalidTypeError


def checked_frame(frame: Any) -> DataFrame:
    """A table of pandas, polars, pyarrow or Hugging Face as a DataFrame of pandas."""
    if (table := frames.frame_of(frame)) is None:
        raise InvalidTypeError(say("no table", type(frame).__name__))
    return table


def axis_names(columns: Iterable[Any]) -> list[str]:
    """Names of axes for columns, with ``_`` for characters that are not allowed in a graph."""
    texts = [str(column) for column in columns]
    return [text if is_name(text) else re.sub(r"\W", "_", text.strip()) for text in texts]


def counts_of_frame(frame: DataFrame, axes: Any, counts: Any) -> Any:
    """The column of counts, by name or by its header; None if each row counts once."""
    if None not in (axes, counts) or not frame.columns.is_unique or not len(frame):
        return counts
    table, named = frames.FrameTable(frame, code="frame"), axes and [*map(frames.name_of, axes)]
    return table.keys.get(roles.count_column(table, named, counts)) if counts is None else counts


def one_column(frame: DataFrame, name: Any) -> "Series[Any]":
    """The column of this name, which must exist once."""
    if (n_found := int((frame.columns == name).sum())) != 1:
        raise refusal("one column", n_found or "no", name, ", ".join(map(str, frame.columns)))
    return frame[name]


def complete_column(frame: DataFrame, name: Any) -> "Series[Any]":
    """The column of this name, which must exist once and have no missing values."""
    column = one_column(frame, name)
    if (are_na := column.isna()).any():
        raise refusal("no value there", name, frames.row_place(frame)(are_na.argmax()), [name])
    return column


def factor(frame: DataFrame, name: Any) -> tuple[Integers, list[str]]:
    """Level of each row, -1 if missing, and the labels.

    Categories keep their order; other values are sorted. Labels of whole numbers have no decimals.
    """
    column: Any = one_column(frame, name)
    if hasattr(column, "cat"):
        codes, values = column.cat.codes.to_numpy(), column.cat.categories
    else:
        try:
            codes, values = column.factorize(sort=True)
        except TypeError as error:
            raise InvalidTypeError(f"column {name!r} cannot be sorted: make it text") from error
    if not len(values):
        raise refusal("no value", name)
    is_whole = column.dtype.kind == "f" and all(float(value).is_integer() for value in values)
    return codes.astype(np.int64), [str(int(x)) if is_whole else str(x) for x in values]


def useful(codes: Sequence[Any], labels: Sequence[Any], names: Sequence[Any]) -> list[Any]:
    """Names of columns with several levels: one of those that say the same, and no names of rows.

    Columns with another level in each row are such names, if the others tell the rows apart, too.
    """
    copies = {x for own in alike(codes, labels, names) for x in own[1:]}
    held = {x: own for x, own in zip(names, codes, strict=True) if x not in copies}
    n_levels, n_rows = {x: len(np.unique(own)) for x, own in held.items()}, len(codes[0])
    kept = [x for x, n in n_levels.items() if 1 < n < n_rows]
    are_told_apart = kept and np.unique([held[x] for x in kept], axis=1).shape[1] == n_rows
    return kept if are_told_apart else [x for x, n in n_levels.items() if n > 1]


def alike(codes: Iterable[Any], labels: Iterable[Any], names: Sequence[Any]) -> list[list[Any]]:
    """Names of columns that say the same in every row, in other words or codes, which come last."""
    # Large tables have long codes: only their hashes are kept.
    found: dict[int, list[tuple[bool, Any]]] = {}
    for own, known, name in zip(codes, labels, names, strict=True):
        are_codes = all(numbers.number_of(str(x)) is not None for x in known)
        are_codes |= str(name).lower().endswith("code")
        if (places := import_pandas().factorize(own)[0]).any():
            found.setdefault(hash(places.tobytes()), []).append((are_codes, name))
    return [[x for _, x in sorted(own, key=lambda x: x[0])] for own in found.values() if own[1:]]
