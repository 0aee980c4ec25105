"""Base class of results: a table, in pandas and in notebooks."""

from __future__ import annotations

import inspect
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from polyabayes._support.docs import shared_docs
from polyabayes._support.output.frames import DataFrame, data_frame
from polyabayes._support.output.tables import columns_of, html_table, text_table
from polyabayes.exceptions import PolyabayesError

_ROWS_SHOWN = 20
# Number of last rows in the text of a table.
_LAST_ROWS = 12


@shared_docs
class Result:
    """Base class of results with a table from :meth:`_columns`.

    Results compare equal only to themselves, since they hold arrays and run times.
    """

    # Name of the column that labels the rows; empty if there is none.
    _index: ClassVar[str] = ""

    def to_frame(self) -> DataFrame:
        """Give the result as a DataFrame.

        Returns
        -------
        pandas.DataFrame
            The table of the result.

        {raises: no pandas}

        Examples
        --------
        >>> lda = pb.LatentDirichletAllocation.from_parameters(
        ...     doc_topic_prior=0.5, topic_word=[[0.9, 0.1], [0.2, 0.8]]
        ... )
        >>> found = pb.log_likelihood(lda, [[2, 1], [0, 3]], random_state=0)
        >>> found.to_frame().shape[0], found.to_frame()["n_tokens"].tolist()
        (2, [3, 3])
        """
        frame = data_frame(self._columns())
        return frame.set_index(self._index) if self._index else frame

    def to_json(self) -> str:
        """Give the result as JSON.

        Returns
        -------
        str
            An object with the ``kind`` of result, its numbers and texts by name, and ``rows``, the
            table of :meth:`to_frame`. NaN is null; infinite numbers are the texts ``"Infinity"``
            and ``"-Infinity"``.

        Examples
        --------
        >>> import json
        >>> lda = pb.LatentDirichletAllocation.from_parameters(
        ...     doc_topic_prior=0.5, topic_word=[[0.9, 0.1], [0.2, 0.8]]
        ... )
        >>> found = json.loads(pb.log_likelihood(lda, [[2, 1], [0, 3]]).to_json())
        >>> found["kind"], found["method"], [row["n_tokens"] for row in found["rows"]]
        ('LogLikelihood', 'exact', [3, 3])
        """
        columns = {name: _plain(values) for name, values in self._columns().items()}
        rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
        about: dict[str, Any] = {"kind": type(self).__name__}
        own = [name for name in vars(self) if not name.startswith("_")]
        for name in own + [x for x, _ in inspect.getmembers(type(self), inspect.isdatadescriptor)]:
            with suppress(PolyabayesError):
                value = getattr(self, name)
                if not name.startswith("_") and isinstance(value, _PLAIN):
                    about[name] = _plain(value)
        return json.dumps({**about, "rows": rows}, allow_nan=False, ensure_ascii=False)

    def _rows(self) -> list[dict[str, Any]]:
        """Rows as values by name, where a result has these."""
        raise NotImplementedError

    def _columns(self) -> dict[str, Any]:
        """Columns of equal length by name."""
        rows = self._rows()
        return {name: [row[name] for row in rows] for name in rows[0]}

    def _repr_html_(self) -> str:
        """The first rows, for notebooks."""
        columns = self._columns()
        n_rows = len(next(iter(columns.values())))
        caption = repr(self).partition("\n")[0].strip("<>")
        if n_rows > _ROWS_SHOWN:
            caption += f"; the first {_ROWS_SHOWN} of {n_rows:,} rows"
        return html_table(columns_of(columns, _ROWS_SHOWN), caption)


_PLAIN = (str, int, float, np.generic, type(None))


def _plain(value: Any) -> Any:
    """A value of JSON."""
    if isinstance(value, np.ndarray | np.generic):
        value = (value.astype(str) if value.dtype.kind == "M" else value).tolist()
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else f"{'-' if value < 0 else ''}Infinity"
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    return value if isinstance(value, _PLAIN) else str(value)


@dataclass(frozen=True, repr=False, eq=False)
class Record(Result):
    """A result with a few fields as its columns; it unpacks in their order."""

    def __iter__(self) -> Iterator[Any]:
        return (getattr(self, field.name) for field in fields(self))

    def __repr__(self) -> str:
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        shown = (f"{name}={_brief(value)}" for name, value in values.items())
        return f"<{type(self).__name__}: {', '.join(shown)}>"

    def _columns(self) -> dict[str, Any]:
        return {field.name: np.atleast_1d(getattr(self, field.name)) for field in fields(self)}


def _brief(value: Any) -> str:
    """A number, or the shape of an array."""
    return f"array{value.shape}" if np.ndim(value) else f"{value:.6g}"


class ResultTable(Result, Mapping[str, NDArray[Any]]):
    """A table with columns by name, each an array of shape (n_rows,).

    Parameters
    ----------
    names : sequence of str
        Names of the columns.
    rows : sequence of sequences
        Values of each row, in the order of `names`.

    Examples
    --------
    >>> search = pb.WitnessSearch(lambda k: -3.0 - 4.0 / k, pb.priors.Uniform(1, 3)).fit()
    >>> search.bounds_["log_score"].round(3).tolist(), search.bounds_.n_rows
    ([-7.0, -5.0, -4.333], 3)
    """

    def __init__(self, names: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        self._table = {name: _column([row[ix] for row in rows]) for ix, name in enumerate(names)}
        self._n_rows = len(rows)

    @classmethod
    def of_columns(cls, columns: Mapping[str, Sequence[Any]]) -> ResultTable:
        """Make a table from columns of equal length.

        Parameters
        ----------
        columns : mapping of str to sequence
            Values by name.

        Returns
        -------
        ResultTable

        Examples
        --------
        >>> type(pb.results.ResultTable.of_columns({"size": [1, 2]})).__name__
        'ResultTable'
        """
        return cls([*columns], [*zip(*columns.values(), strict=True)])

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self._n_rows

    def row(self, ix: int) -> dict[str, Any]:
        """One row as a dict by column.

        Parameters
        ----------
        ix : int
            Number of the row; negative numbers count from the end.

        Returns
        -------
        dict
            Value of each column.

        Raises
        ------
        IndexError
            If there is no such row.

        Examples
        --------
        >>> search = pb.WitnessSearch(lambda k: -3.0 - 4.0 / k, pb.priors.Uniform(1, 3)).fit()
        >>> print(f"{search.bounds_.row(-1)['log_score']:.3f}")
        -4.333
        """
        return {name: column[ix] for name, column in self._table.items()}

    def _columns(self) -> dict[str, Any]:
        return self._table

    def __getitem__(self, name: str) -> NDArray[Any]:
        return self._table[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._table)

    def __len__(self) -> int:
        return len(self._table)

    def _repr_html_(self) -> str:
        return html_table(columns_of(self._table))

    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        return self is other

    def __repr__(self) -> str:
        first = max(self._n_rows - _LAST_ROWS, 0)
        shown = {name: column[first:] for name, column in self._table.items()}
        text = text_table(columns_of(shown))
        if not first:
            return text
        title, _, rows = text.partition("\n")
        return f"{title}\n... {first:,} rows ...\n{rows}"


def _column(cells: list[Any]) -> NDArray[Any]:
    if any(isinstance(cell, (tuple, str)) or cell is None for cell in cells):
        column = np.empty(len(cells), dtype=object)
        column[:] = cells
        return column
    return np.array(cells)
