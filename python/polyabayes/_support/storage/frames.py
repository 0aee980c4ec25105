"""A data frame as the bytes of an Arrow file."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polyabayes._support.optional import import_optional
from polyabayes.exceptions import FileFormatError, InvalidTypeError, argument

if TYPE_CHECKING:
    import pandas as pd


def frame_bytes(metadata: pd.DataFrame) -> bytes:
    """The table as bytes of an Arrow file, which keeps types, and categories with their order."""
    feather: Any = import_optional("pyarrow.feather", "writing metadata needs pyarrow", "frames")
    stream = io.BytesIO()
    try:
        feather.write_feather(metadata.reset_index(drop=True), stream)
        # Arrow writes categories of intervals and of periods, but cannot read them.
        frame_of_bytes(Path("metadata"), stream.getvalue())
    except Exception as error:
        told = f"a column of {argument('metadata')} cannot be written ({error}): make its values "
        raise InvalidTypeError(f"{told}of one type, or omit it by with_metadata(...)") from error
    return stream.getvalue()


def frame_of_bytes(path: Path, content: Any) -> pd.DataFrame:
    """The table of the bytes of :func:`frame_bytes`; `path` is for messages."""
    feather: Any = import_optional("pyarrow.feather", "reading metadata needs pyarrow", "frames")
    try:
        table = feather.read_table(io.BytesIO(bytes(content)))
        table.validate(full=True)
        return table.to_pandas()
    except Exception as error:
        raise FileFormatError(f"{path}: its metadata cannot be read: {error}") from error
