"""Base class of results: a table, in pandas and in notebooks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from polyabayes._support.frames import data_frame
from polyabayes._support.tables import columns_of, html_table

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Record", "Result"]

_ROWS_SHOWN = 20


class Result:
    """Base class of results, whose columns :meth:`_columns` gives.

    Results are equal only to themselves: they hold arrays, and how long they took.
    """

    def to_frame(self) -> pd.DataFrame:
        """The result as a table.

        Returns
        -------
        pandas.DataFrame
            The columns that the class names.

        Raises
        ------
        MissingDependencyError
            If pandas is not installed.

        Examples
        --------
        >>> import polyabayes as pb
        >>> lda = pb.LatentDirichletAllocation.from_parameters(
        ...     doc_topic_prior=0.5, topic_word=[[0.9, 0.1], [0.2, 0.8]]
        ... )
        >>> found = pb.log_likelihood(lda, [[2, 1], [0, 3]], random_state=0)
        >>> found.to_frame().shape[0], found.to_frame()["n_tokens"].tolist()
        (2, [3, 3])
        """
        return data_frame(self._columns())

    def _columns(self) -> dict[str, Any]:
        """Columns of equal length by name."""
        raise NotImplementedError

    def _repr_html_(self) -> str:
        """The first rows, for notebooks."""
        columns = self._columns()
        n_rows = len(next(iter(columns.values())))
        caption = repr(self).partition("\n")[0].strip("<>")
        if n_rows > _ROWS_SHOWN:
            caption += f"; the first {_ROWS_SHOWN} of {n_rows:,} rows"
        return html_table(columns_of(columns, _ROWS_SHOWN), caption)


@dataclass(frozen=True, repr=False, eq=False)
class Record(Result):
    """A result of a few fields, which are its columns; it unpacks in their order."""

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
