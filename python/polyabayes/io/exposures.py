"""Sizes of documents from text files."""

from __future__ import annotations

import os
from typing import Any

from polyabayes._support.files import checked_path, content_of, read_lines
from polyabayes.exceptions import FileFormatError


def resolve_exposure(exposure: Any) -> Any:
    """Read the numbers of a text file, plain or gzipped, one per line.

    Anything but a path is returned unchanged.
    """
    if not isinstance(exposure, (str, os.PathLike)):
        return exposure
    path = checked_path(exposure, "exposure")
    with content_of(path):
        lines = " ".join(read_lines(path)).split()
    values = []
    for number, line in enumerate(lines, 1):
        try:
            values.append(float(line))
        except ValueError as error:
            raise FileFormatError(
                f"{path}, number {number}: {line!r:.50} is not a size of a document; give one "
                "number per line"
            ) from error
    return values
