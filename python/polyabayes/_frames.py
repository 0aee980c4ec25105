"""Tables of results as pandas shows them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from polyabayes.exceptions import MissingDependencyError

if TYPE_CHECKING:
    import pandas as pd


def data_frame(data: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """A DataFrame of columns or of rows, where pandas is installed."""
    try:
        import pandas as pd
    except ImportError as error:
        raise MissingDependencyError(
            "to_frame needs pandas: pip install 'polyabayes[frames]'"
        ) from error
    return pd.DataFrame(data)
