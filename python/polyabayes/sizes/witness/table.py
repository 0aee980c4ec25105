"""Tables: named columns of equal length."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from polyabayes._support.frames import data_frame
from polyabayes._support.tables import columns_of, html_table, text_table

if TYPE_CHECKING:
    import pandas as pd

_ROWS_SHOWN = 12


class ResultTable(Mapping[str, NDArray[Any]]):
    """Columns by name, as arrays of shape (n_rows,); ``to_frame`` makes a DataFrame of them.

    Parameters
    ----------
    names : sequence of str
        Names of the columns.
    rows : sequence of sequences
        Values of each row, in the order of `names`.

    Examples
    --------
    >>> import polyabayes as pb
    >>> search = pb.WitnessSearch(lambda k: -3.0 - 4.0 / k, pb.priors.Uniform(1, 3)).fit()
    >>> search.bounds_["log_score"].round(3).tolist(), search.bounds_.n_rows
    ([-7.0, -5.0, -4.333], 3)
    """

    def __init__(self, names: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        self._columns = {name: _column([row[ix] for row in rows]) for ix, name in enumerate(names)}
        self._n_rows = len(rows)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self._n_rows

    def row(self, ix: int) -> dict[str, Any]:
        """One row, by the names of the columns.

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
        >>> import polyabayes as pb
        >>> search = pb.WitnessSearch(lambda k: -3.0 - 4.0 / k, pb.priors.Uniform(1, 3)).fit()
        >>> print(f"{search.bounds_.row(-1)['log_score']:.3f}")
        -4.333
        """
        return {name: column[ix] for name, column in self._columns.items()}

    def to_frame(self) -> pd.DataFrame:
        """The table as a DataFrame.

        Returns
        -------
        pandas.DataFrame
            The same columns and rows.

        Raises
        ------
        MissingDependencyError
            If pandas is not installed.

        Examples
        --------
        >>> import polyabayes as pb
        >>> search = pb.WitnessSearch(lambda k: -3.0 - 4.0 / k, pb.priors.Uniform(1, 3)).fit()
        >>> search.bounds_.to_frame().shape[0]
        3
        """
        return data_frame(self._columns)

    def __getitem__(self, name: str) -> NDArray[Any]:
        return self._columns[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    def __repr__(self) -> str:
        first = max(self._n_rows - _ROWS_SHOWN, 0)
        shown = {name: column[first:] for name, column in self._columns.items()}
        text = text_table(columns_of(shown))
        if not first:
            return text
        title, _, rows = text.partition("\n")
        return f"{title}\n... {first:,} rows ...\n{rows}"

    def _repr_html_(self) -> str:
        return html_table(columns_of(self._columns))


def _column(cells: list[Any]) -> NDArray[Any]:
    if any(isinstance(cell, (tuple, str)) or cell is None for cell in cells):
        column = np.empty(len(cells), dtype=object)
        column[:] = cells
        return column
    return np.array(cells)
