"""Tables of factors in CSV and Parquet files: a column per axis, and optionally one of counts."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from polyabayes._support.files import content_of, replacing
from polyabayes._support.output.frames import import_pandas
from polyabayes.data.conversion import numbers, roles
from polyabayes.data.tensors.tensor import CountTensor
from polyabayes.exceptions import InvalidArgumentError
from polyabayes.io.tabular.delimited import DelimitedTable, Dialect
from polyabayes.io.tabular.parquet import read_parquet_frame

_COUNTS, _UNNAMED, _WHOLE = "count", ("path", "missing"), re.compile(r"[+-]?\d+\.0*")


def read_factor_csv(
    path: Path,
    axes: Sequence[str] | None = None,
    *,
    counts: str | None = None,
    sep: str | None = None,
    encoding: str = "utf-8",
    skiprows: int = 0,
    columns: Sequence[str] | None = None,
    missing: Sequence[Any] | None = None,
) -> CountTensor:
    """Read a CSV file of factors, plain or gzipped.

    A line is an observation, or a kind of observation and its count. Axes are by default all
    columns but the counts, a column with a name such as ``count`` or ``freq``; without it, each
    line counts once. Labels are kept as text and sorted, by value if all labels of an axis are
    numbers. Levels that do not occur are unknown; those that may mark missing values, such as
    ``NA``, are labels, with a warning, unless they are among `missing`.
    """
    call, pandas = _call("csv", locals()), import_pandas()
    dialect = Dialect(sep, encoding, skiprows, columns)
    table = DelimitedTable(path, dialect, axes=axes, counts=counts)
    with content_of(path):
        counts = roles.count_column(table, axes, counts)
        wanted = [*(axes or table.names), *filter(None, [counts])]
        # CountTensor refuses missing columns, with a list of all columns.
        others = filter(table.are_labels, table.names)
        names = dict.fromkeys([*wanted, *others] if set(wanted) <= {*table.names} else table.names)
        # Labels stay text, since guessing types would change "01" and large counts.
        factors = {x: _levels(table.values(x)) for x in names if x != counts}
        factors |= {x: table.numbers(x) for x in names if x == counts}
        frame = pandas.DataFrame(factors, pandas.Index(table.lines, name="line"))
        frame.attrs |= {"code": table.as_frame, "call": call, "are_texts": True}
        return CountTensor.from_frame(frame, axes, counts, missing=missing)


def read_factor_parquet(
    path: Path, axes: Sequence[str] | None = None, *, counts: str | None = None, missing: Any = None
) -> CountTensor:
    """Read a Parquet file of factors.

    Its table is as for :meth:`CountTensor.from_frame`; `axes` and `counts` are as for
    :func:`read_factor_csv`.
    """
    call, frame = _call("parquet", locals()), read_parquet_frame(path)
    with content_of(path):
        frame.attrs |= {"code": f"pandas.read_parquet({str(path)!r})", "call": call}
        return CountTensor.from_frame(frame, axes, counts, missing=missing)


def _call(name: str, given: Mapping[str, Any]) -> str:
    """Code of the call that reads a file of a format with given options, up to its last argument.

    Others than `missing` are named, unless they are empty.
    """
    told = "".join(f", {x}={own!r}" for x, own in given.items() if own and x not in _UNNAMED)
    return f"polyabayes.read_tensor({str(given['path'])!r}, format={name!r}{told}, "


def write_factor_csv(tensor: CountTensor, path: Path) -> None:
    """Write a line per non-zero cell, gzipped if the name ends in ``.gz``.

    Sizes of the axes and the order of labels are lost. An axis without labels is written as
    coordinates, counted from 0; missing values are empty.
    """
    if _COUNTS in tensor.axes:
        raise InvalidArgumentError(f"an axis is called {_COUNTS!r}: rename() it or write .npz")
    for axis, labels in zip(tensor.axes, tensor.labels, strict=True):
        if labels is not None and "" in labels:
            raise InvalidArgumentError(f"axis {axis!r} has an empty label; write .npz instead")
    with replacing(path) as handle:
        tensor.to_frame(_COUNTS).to_csv(handle, index=False, mode="wb")


def _levels(texts: list[Any]) -> Any:
    """A column of labels, None if missing; those of whole numbers have no decimals."""
    pandas = import_pandas()
    if all(text is None or _WHOLE.fullmatch(text) for text in set(texts)):
        texts = [text and text.partition(".")[0] for text in texts]
    labels = pandas.Index(numbers.label_order(set(texts) - {None}), dtype=object)
    return pandas.Categorical(texts, categories=labels)
