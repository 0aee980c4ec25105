"""Tables of pandas, polars, pyarrow and Hugging Face."""

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from datetime import date
from itertools import pairwise
from numbers import Real
from typing import Any

import numpy as np

from polyabayes._support import checks
from polyabayes._support.optional import import_optional
from polyabayes._support.output.frames import DataFrame, Series
from polyabayes._support.output.tables import some
from polyabayes.data.conversion.numbers import is_cell
from polyabayes.data.conversion.table import Kind, Table, kind_of_strings
from polyabayes.data.counts import CountMatrix, checked_counts, checked_words, values_of_frame
from polyabayes.data.names import refusal
from polyabayes.exceptions import InvalidArgumentError, InvalidCountsError, InvalidTypeError

# Kinds of types, and rows among which the names of columns stand under a title.
_NUMERIC_KINDS, _TIME_KINDS, _ROWS_LOOKED_AT = "biufc", "mM", 20


def frame_of(table: Any) -> DataFrame | None:
    """Convert a table of pandas, polars, pyarrow or Hugging Face to pandas; None for other types.

    Tables are read through the Arrow C stream, datasets of Hugging Face with their selected rows;
    neither package is imported. Several datasets and streamed datasets are refused.
    """
    # A DataArray of xarray, whose axes go by place where they have no coordinates.
    if getattr(table, "ndim", 0) == 2 and hasattr(table, "xindexes"):
        table = table.to_pandas()
    if isinstance(table, np.ndarray) or not len(getattr(table, "coords", "named")):
        return None
    if (loaded := sys.modules.get("pandas")) and isinstance(table, loaded.DataFrame):
        _refuse_titles(table)
        return table
    names = {base.__name__: base.__module__.partition(".")[0] for base in type(table).__mro__}
    kind = next((name for name in names if names[name] == "datasets" and "Dataset" in name), "")
    if not kind and not hasattr(table, "__arrow_c_stream__"):
        return None
    if kind in ("DatasetDict", "IterableDatasetDict", "IterableDataset"):
        remedy = "count its tokens by Corpus.from_documents(row['text'].split() for row in dataset)"
        if kind.endswith("Dict"):
            remedy = f"take one of {some(list(table))}, as datasets[{next(iter(table), '')!r}]"
        raise InvalidTypeError(f"a {kind} is not one table: {remedy}")
    why = f"reading a {type(table).__name__} needs pandas and pyarrow"
    pandas, pyarrow = (import_optional(name, why, "frames") for name in ("pandas", "pyarrow"))
    try:
        # The Arrow table of a dataset ignores its selections, shuffles and splits; its rows do not.
        found = table.with_format("arrow")[:] if kind else pyarrow.table(table)
    except pyarrow.ArrowInvalid as error:
        raise InvalidTypeError(f"a {type(table).__name__} is no table: give a list") from error
    if not any(map(pyarrow.types.is_nested, found.schema.types)):
        return found.to_pandas()
    # pandas cannot hold some list types of Arrow, such as polars' lists of string views.
    columns = [pandas.Series(column.to_pylist()) for column in found.columns]
    return pandas.concat(columns, axis=1, keys=found.column_names)


def _refuse_titles(frame: DataFrame) -> None:
    """Refuse a table under a title, or with two lines of names: pandas numbers blank ones."""
    names = [str(column) for column in frame.columns]
    if frame.columns.nlevels == 2 and any("Unnamed: " in name for name in names):
        known = [" ".join(str(x) for x in y if "Unnamed: " not in str(x)) for y in frame.columns]
        raise InvalidArgumentError(f"names in two lines: use frame.set_axis({known}, axis=1)")
    are_numbered = [name.startswith("Unnamed: ") for name in names]
    head = frame.head(_ROWS_LOOKED_AT if any(are_numbered[1:]) else 0)
    for row, (own, below) in enumerate(pairwise(head.itertuples(index=False))):
        above = any(isinstance(x, str) and _is_number(y) for x, y in zip(own, below, strict=True))
        is_title = above and len({*own}) == len(names)
        is_title = is_title or sum(are_numbered) > max(1, len(are_numbered) - 2)
        is_title = is_title or (all(are_numbered[1:]) and any(map(is_year, own)))
        # The first column may have no name.
        is_bare = all(are_numbered[1:]) and bool(head.iloc[row, :1].isna().all())
        if is_title and all(isinstance(x, str) or is_year(x) for x in own[is_bare:]):
            raise refusal("title", row=row, start=row + 1)
        if row == 0 and above and not any(map(_is_number, own)):
            raise InvalidArgumentError("names in two lines: read the file with header=[0, 1]")


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and value == value


def is_year(value: Any) -> bool:
    """Whether a value is a number like those of years."""
    return _is_number(value) and value in range(1900, 2101)


def row_names(rows: Any) -> list[str] | None:
    """Names of the rows of a pandas object: its index, unless it is the default one."""
    index = checks.index_of(rows)
    if index is None or index.equals(rows.reset_index(drop=True).index):
        return None
    what, code = "rows", "table[table.index.notna()]"
    if rows.ndim > 1 and rows.iloc[1:, -1:].isna().all(axis=None):
        # pandas takes the first fields for names if the first line has one more than the header.
        what += " (of a line with a field more than the header)"
        code = "table.iloc[1:].reset_index().iloc[:, :-1].set_axis([*table.columns], axis=1)"
    refuse_missing_names(index, what, code)
    return [name_of(label) for label in index]


def name_of(label: Any) -> str:
    """A name of a row or column; names in several levels stand side by side.

    pandas makes whole numbers floats where others are missing.
    """
    if isinstance(label, tuple):
        return " ".join(map(name_of, label)).strip()
    return str(int(label) if isinstance(label, float) and label.is_integer() else label)


def refuse_missing_names(names: Any, what: str, code: str) -> None:
    """Refuse names of rows or columns that are missing; `code` leaves those out."""
    if names.nlevels == 1 and names.hasnans:
        raise refusal("no name", what, int(np.argmax(names.isna())), code)


def row_place(frame: DataFrame) -> Callable[[Any], str]:
    """Describe a position by the label of its row."""
    return lambda position: f"{frame.index.name or 'row'} {frame.index[position]}"


def flat(frame: DataFrame, names: Sequence[Any] = ()) -> DataFrame:
    """Levels of rows as columns, if they stand beside one of numbers or are among the names."""
    levels = set(frame.index.names if frame.index.nlevels > 1 else ())
    are_counted = [dtype.kind in _NUMERIC_KINDS for dtype in frame.dtypes] == [True]
    is_meant = levels and (are_counted or levels.intersection(names))
    return frame.reset_index() if is_meant and levels.isdisjoint(frame.columns) else frame


class FrameTable(Table):
    """A pandas DataFrame as a table; its index, unless default, names the rows."""

    def __init__(
        self, frame: DataFrame, title: str = "the table", taker: str = "", code: str = "table"
    ) -> None:
        self.frame, self.title, self.taker, self.code = flat(frame).copy(False), title, taker, code
        self.has_headers = not hasattr(self.frame.columns, "step")
        refuse_missing_names(self.frame.columns, "columns", "table.loc[:, table.columns.notna()]")
        self.names = checked_words([*map(name_of, self.frame.columns)]).tolist()
        self.keys = dict(zip(self.names, self.frame.columns, strict=True))
        self.frame.columns, self.n_rows = self.names, len(frame)
        self.row_names, self.row_label = row_names(self.frame), str(self.frame.index.name or "")
        self._kinds: dict[str, Kind] = {}

    def kind(self, name: str) -> Kind:
        """Kind of a column, by its type or else its values."""
        if name not in self._kinds:
            self._kinds[name] = _kind_of(self.frame[name])
        return self._kinds[name]

    def values(self, name: str) -> list[Any]:
        """The values of a column; None if missing."""
        series = self.frame[name]
        return list(series.astype(object).where(series.notna(), None))

    def counts(self, names: Sequence[str]) -> CountMatrix:
        """Columns of counts, checked."""
        chosen = self.frame if len(names) == len(self.names) else self.frame[list(names)]
        try:
            return checked_counts(values_of_frame(chosen, self.title), self.title)
        except (InvalidCountsError, InvalidTypeError) as error:
            are_texts = chosen.map(lambda x: isinstance(x, str) and not is_cell(x)).any(axis=1)
            rows = [*chosen.index[are_texts]] if self.row_names else []
            cells = dict.fromkeys((x, str(y)) for x in names for y in self.values(x))
            odd = [own for own in cells if not own[1].removesuffix(".0").isdigit()]
            told: Iterable[str] = (self.remedy(x, None if y == "None" else y) for x, y in odd)
            if 0 < 2 * len(rows) < self.n_rows:
                told = [f"; without {some(rows)}, use {self.call(f'.drop(index={rows})')}"]
            raise type(error)(f"{error.args[0]}{next(filter(None, told), '')}") from error

    def numbers(self, name: str) -> Any:
        """A column of numbers."""
        return self.frame[name].to_numpy()

    def place(self, row: int) -> str:
        """The label of a row."""
        return row_place(self.frame)(row)

    def data_frame(self, names: Sequence[str]) -> DataFrame:
        """Columns, unchanged."""
        return self.frame[list(names)]


def _kind_of(column: "Series[Any]") -> Kind:
    if (dtype_kind := getattr(column.dtype, "kind", "O")) in _NUMERIC_KINDS + _TIME_KINDS:
        return "number" if dtype_kind in _NUMERIC_KINDS else "name"
    held = column.dropna().tolist()
    if held and all(isinstance(value, (str, date)) for value in held):
        return kind_of_strings([*map(str, held)])
    if held and all(isinstance(value, (list, tuple, Set, np.ndarray)) for value in held):
        return "tokens" if all(isinstance(token, str) for row in held for token in row) else "cells"
    if held and all(isinstance(value, Mapping) for value in held):
        counts = (count for row in held for count in row.values() if count is not None)
        return "cells" if all(isinstance(count, Real | list) for count in counts) else "other"
    if hasattr(column, "cat"):
        return "name" if held else "other"
    is_number = held and all(isinstance(value, (Real, np.bool_)) for value in held)
    return "number" if is_number or not held else "other"
