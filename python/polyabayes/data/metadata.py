"""Metadata: a table of properties with a row for each document."""

from collections.abc import Sequence
from typing import Any

from polyabayes._support.output.frames import DataFrame, import_pandas
from polyabayes.data.conversion.frames import frame_of
from polyabayes.data.counts import Words, distinct
from polyabayes.data.names import say
from polyabayes.exceptions import InvalidArgumentError, InvalidTypeError, argument


def checked_metadata(values: Any, n_documents: int, ids: Words | None) -> DataFrame | None:
    """Check metadata: a DataFrame with a row for each document; the index is the ids, if any."""
    if values is None:
        return None
    if (frame := frame_of(values)) is None:
        told = type(values).__name__, "; use metadata.to_frame()" * hasattr(values, "to_frame")
        raise InvalidTypeError(say("no rows", argument("metadata"), *told))
    if len(frame) != n_documents:
        raise InvalidArgumentError(f"metadata has {len(frame)} rows for {n_documents:,} documents")
    names = [str(name) for name in frame.columns]
    distinct(names, f"{argument('metadata')} has the column", "rename one")
    frame = frame.set_axis(names, axis=1).reset_index(drop=True)
    return frame if ids is None else frame.set_axis(import_pandas().Index(ids, name="id"), axis=0)


def joined_metadata(tables: Sequence[Any]) -> DataFrame:
    """Concatenate tables with the same columns."""
    return import_pandas().concat(list(tables), ignore_index=True)
