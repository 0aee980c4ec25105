"""Tables of results as pandas shows them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any

from polyabayes._support.optional import import_optional

if TYPE_CHECKING:
    import pandas as pd


def data_frame(data: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """A DataFrame of columns or of rows, where pandas is installed."""
    return import_pandas().DataFrame(data)


def import_pandas() -> ModuleType:
    """Import pandas, or say how to install it."""
    return import_optional("pandas", "tables need pandas", "frames")
