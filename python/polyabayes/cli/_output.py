"""What the command line writes: tables and pictures, checked before any work, and messages."""

from __future__ import annotations

import csv
import importlib.util
import io
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from polyabayes.exceptions import (
    FileAccessError,
    InvalidArgumentError,
    MissingDependencyError,
)
from polyabayes.io._files import replacing

# Exit status after Ctrl-C.
INTERRUPTED = 130

_PICTURE_SUFFIXES = (".png", ".pdf", ".svg")


def checked_file(path: str, suffixes: tuple[str, ...], also: str = "") -> Path:
    """Path of a file to write; refuse what cannot be written before any work is done."""
    file = Path(path)
    if not file.name.lower().endswith(suffixes):
        raise InvalidArgumentError(
            f"cannot write {path}: its name must end in {' or '.join(suffixes)}{also}"
        )
    if file.is_dir():
        raise FileAccessError(f"cannot write {path}: it is a folder")
    refuse_unwritable(file.parent)
    return file


def checked_folder(path: str) -> Path:
    """A folder to write to, made where it is missing."""
    folder = Path(path)
    folder.mkdir(parents=True, exist_ok=True)
    refuse_unwritable(folder)
    return folder


def checked_picture(path: str | None) -> Path | None:
    """Path of a picture to draw, if there shall be one."""
    if path is None:
        return None
    file = checked_file(path, _PICTURE_SUFFIXES)
    need("matplotlib", "plot", "--plot")
    return file


def check_table(output: str) -> None:
    """Refuse a table that cannot be written."""
    if output == "-":
        return
    path = checked_file(output, (".csv", ".parquet"), "; '-' is CSV on standard output")
    if path.suffix.lower() == ".parquet":
        need("pandas", "frames", "writing Parquet files")
        need("pyarrow", "frames", "writing Parquet files")


def refuse_unwritable(folder: Path) -> None:
    """Refuse a folder in which no file can be made."""
    try:
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        reason = error.strerror or error
        raise FileAccessError(f"cannot write to the folder {folder}: {reason}") from error


def need(module: str, extra: str, purpose: str) -> None:
    """Refuse to go on without an optional dependency."""
    if importlib.util.find_spec(module) is None:
        raise MissingDependencyError(f"{purpose} needs {module}: pip install 'polyabayes[{extra}]'")


def write_table(columns: Mapping[str, Any], output: str | Path) -> None:
    """Write columns as CSV or Parquet; '-' is CSV on standard output."""
    if output == "-":
        _write_csv(columns, sys.stdout)
        sys.stdout.flush()
        return
    path = Path(output)
    with replacing(path) as stream:
        if path.suffix.lower() == ".parquet":
            import pandas as pd

            pd.DataFrame(dict(columns)).to_parquet(stream)
            return
        text = io.TextIOWrapper(stream, encoding="utf-8", newline="")
        _write_csv(columns, text)
        text.detach()


def _write_csv(columns: Mapping[str, Any], stream: TextIO) -> None:
    """One line a row; a value that there is not is left empty."""
    arrays = [np.asarray(column).tolist() for column in columns.values()]
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(columns)
    for row in zip(*arrays, strict=True):
        # NaN is the one value that differs from itself.
        writer.writerow("" if value != value else value for value in row)
    stream.flush()


def save_picture(ax: Any, path: Path) -> None:
    """Write the figure of `ax`."""
    with replacing(path) as stream:
        ax.figure.savefig(stream, format=path.suffix[1:].lower(), dpi=150)


def say(message: str) -> None:
    """Tell the user, beside the results."""
    print(f"polyabayes: {message}", file=sys.stderr, flush=True)
