"""Tables of results as pandas shows them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any

from polyabayes._support.optional import import_optional

if TYPE_CHECKING:
    from pandas import DataFrame as DataFrame, Series as Series
else:
    # Annotations name them; pandas is imported with the first table.
    DataFrame = Series = Any


def data_frame(data: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> DataFrame:
    """A DataFrame of columns or of rows, where pandas is installed."""
    return import_pandas().DataFrame(data)


def import_pandas() -> ModuleType:
    """Import pandas, or say how to install it."""
    return import_optional("pandas", "tables need pandas", "frames")
