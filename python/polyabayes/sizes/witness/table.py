"""Tables: named columns of equal length."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from polyabayes._support.frames import data_frame

if TYPE_CHECKING:
    import pandas as pd

_ROWS_SHOWN = 12


class ResultTable(Mapping[str, NDArray[Any]]):
    """Columns by name, as arrays of shape (n_rows,); ``to_frame`` makes a DataFrame of them."""

    def __init__(self, names: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        self._columns = {name: _column([row[ix] for row in rows]) for ix, name in enumerate(names)}
        self._n_rows = len(rows)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self._n_rows

    def row(self, ix: int) -> dict[str, Any]:
        """One row, by the names of the columns."""
        return {name: column[ix] for name, column in self._columns.items()}

    def to_frame(self) -> pd.DataFrame:
        """The table as a DataFrame."""
        return data_frame(self._columns)

    def __getitem__(self, name: str) -> NDArray[Any]:
        return self._columns[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    def __repr__(self) -> str:
        first = max(self._n_rows - _ROWS_SHOWN, 0)
        lines = [list(self._columns)]
        lines += [
            [_text(cell) for cell in self.row(ix).values()] for ix in range(first, self._n_rows)
        ]
        widths = [max(map(len, cells)) for cells in zip(*lines, strict=True)]
        text = ["  ".join(map(str.rjust, cells, widths)) for cells in lines]
        if first:
            text.insert(1, f"... {first:,} rows ...")
        return "\n".join(text)


def _column(cells: list[Any]) -> NDArray[Any]:
    if any(isinstance(cell, (tuple, str)) or cell is None for cell in cells):
        column = np.empty(len(cells), dtype=object)
        column[:] = cells
        return column
    return np.array(cells)


def _text(cell: Any) -> str:
    return f"{cell:.6g}" if isinstance(cell, float) else str(cell)
