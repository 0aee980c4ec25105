"""Tables and matrices of covariates: numbers, and levels as plain values."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import date
from typing import Any

import numpy as np

from polyabayes._support import checks
from polyabayes._support.arrays import Floats
from polyabayes._support.output.frames import DataFrame, Series, import_pandas
from polyabayes.data.conversion.frames import frame_of
from polyabayes.exceptions import InvalidArgumentError, InvalidTypeError, argument

_ISO, _DAY = re.compile(r"\d{4}-\d\d-\d\d"), 86_400e9


def covariate_frame(covariates: Any) -> DataFrame | None:
    """A table with column names as text; None for other types."""
    if isinstance(covariates, Mapping):
        try:
            covariates = import_pandas().DataFrame(dict(covariates))
        except (TypeError, ValueError) as error:
            raise InvalidArgumentError(
                f"{argument('covariates')} must hold one value for each document in every column: "
                f"{error}"
            ) from error
    frame = frame_of(covariates)
    if frame is None:
        return None
    names = [str(name) for name in frame.columns]
    twice = [name for ix, name in enumerate(names) if name in names[:ix]]
    if twice:
        raise InvalidArgumentError(
            f"{argument('covariates')} has two columns that are called {twice[0]!r}; rename one"
        )
    frame = frame.set_axis(names, axis=1).reset_index(drop=True)
    # Texts as objects: formulaic treats other string types as numbers.
    texts = [
        name for name in names if frame[name].dtype.kind == "O" and not has_levels(frame[name])
    ]
    return frame.astype(dict.fromkeys(texts, object))


def covariate_matrix(covariates: Any) -> Floats:
    """Numbers and flags of a matrix."""
    values = covariates.toarray() if hasattr(covariates, "toarray") else np.asarray(covariates)
    if values.dtype.kind not in "biufO":
        raise InvalidTypeError(
            f"{argument('covariates')} must hold numbers, got {covariates!r:.60}: give a data "
            "frame, whose columns of text are coded by their levels"
        )
    values = values.astype(np.float64) if values.dtype.kind == "b" else values
    return checks.matrix("covariates", values, "(n_documents, n_covariates)")


def with_days(frame: DataFrame, dates: Iterable[str]) -> DataFrame:
    """Dates as days since 1970; other values in their columns are refused."""
    found = {}
    for name in dates:
        try:
            found[name] = as_dates(frame[name]).astype("datetime64[ns]").astype("int64") / _DAY
        except (TypeError, ValueError) as error:
            raise InvalidTypeError(
                f"{argument('covariates')}: column {name!r} holds dates in training: give dates, "
                f"as 2008-01-31; {error}"
            ) from error
    return frame.assign(**found)


def dates_in(frame: DataFrame) -> list[str]:
    """Columns of dates, or of texts that are all dates as 2008-01-31."""
    return [
        name
        for name in frame.columns
        if frame[name].dtype.kind == "M"
        or (frame[name].dtype.kind == "O" and len(frame) and frame[name].map(_is_date).all())
    ]


def as_dates(column: Any) -> Any:
    """A column of dates as pandas has them, without time zone."""
    found = import_pandas().to_datetime(column)
    return found if found.dt.tz is None else found.dt.tz_convert(None)


def _is_date(value: Any) -> bool:
    return isinstance(value, date) or (isinstance(value, str) and bool(_ISO.fullmatch(value)))


def complete(frame: DataFrame) -> DataFrame:
    """The table with plain levels; missing values and columns of durations are refused."""
    frame = frame.copy(deep=False)
    for name in frame.columns:
        column = frame[name]
        missing = np.flatnonzero(column.isna().to_numpy())
        if len(missing):
            raise InvalidArgumentError(
                f"{argument('covariates')}: column {name!r} has no value in row {missing[0]} "
                f"({len(missing):,} in all): drop these rows, or fill them in"
            )
        if column.dtype.kind == "m":
            raise InvalidTypeError(
                f"{argument('covariates')}: column {name!r} holds durations; make it a number, "
                "such as days"
            )
        if column.dtype.kind == "c":
            raise InvalidTypeError(
                f"{argument('covariates')}: column {name!r} holds complex numbers; make it real"
            )
        if has_levels(column):
            used = column.cat.remove_unused_categories()
            frame[name] = used.cat.rename_categories(plain_values(used.cat.categories))
        elif column.dtype.kind == "O":
            values = plain_values(column)
            frame[name] = import_pandas().Series(values, frame.index, dtype=object)
    return frame


def levels_of(column: Series[Any]) -> list[Any]:
    """Levels of a complete column, in the order of a categorical one, else sorted."""
    if has_levels(column):
        return column.cat.categories.tolist()
    return sorted(set(column), key=lambda level: (str(type(level)), level))


def has_levels(column: Series[Any]) -> bool:
    """Whether a column is categorical."""
    return column.dtype.name == "category"


def is_number(column: Series[Any]) -> bool:
    """Whether a column holds numbers or flags."""
    pandas = import_pandas()
    return bool(pandas.api.types.is_numeric_dtype(column.dtype))


def plain_values(levels: Any) -> list[Any]:
    """Levels in a form that a file can hold."""
    return [plain_value(level) for level in levels]


def plain_value(value: Any) -> Any:
    """A level in a form that a file can hold."""
    plain = value.item() if isinstance(value, np.generic) else value
    return plain if isinstance(plain, (bool, int, float, str)) else str(plain)
