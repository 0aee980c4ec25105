"""Output of the command line: tables and pictures, checked before any work, and messages."""

import csv
import errno
import importlib.util
import io
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from polyabayes._support.files import replacing
from polyabayes._support.output.tables import printable
from polyabayes.cli.parser import Given, described
from polyabayes.cli.values import value as read_value
from polyabayes.exceptions import FileAccessError, InvalidArgumentError, MissingDependencyError

# Exit status after Ctrl-C.
INTERRUPTED = 130

# Arguments that name output files.
_OUTPUTS = ("output", "profiles", "save", "plot", "predict")

# First letters of formulas in a spreadsheet; numbers may have them, too.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")

# File name endings in the help of an argument.
_SUFFIX = re.compile(r"\.[a-z]+")


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
    """A folder to write to; where it is missing, one that can be made when there is a result."""
    folder = Path(path)
    refuse_unwritable(next(place for place in (folder, *folder.parents) if place.exists()))
    return folder


def check_outputs(given: Given) -> None:
    """Refuse files that cannot be written: by their names, as the help tells them, and places."""
    parameters = described(given.command).parameters
    for name in _outputs(given):
        path, suffixes = getattr(given, name), tuple(_SUFFIX.findall(parameters[name].wording))
        is_table = ".csv" in suffixes
        if path is None or not suffixes or (is_table and path == "-"):
            continue
        checked_file(path, suffixes, "; '-' is CSV on standard output" if is_table else "")
        if ".png" in suffixes:
            need("matplotlib", "plot", given.command if name == "output" else f"--{name}")
        if path.lower().endswith(".parquet"):
            need("pandas", "frames", "writing Parquet files")
            need("pyarrow", "frames", "writing Parquet files")


def _outputs(given: Given) -> list[str]:
    return [x for x in _OUTPUTS if x in described(given.command).parameters]


def refuse_unwritable(folder: Path, n_bytes: int = 0) -> None:
    """Refuse a folder in which no file can be made, or has no room for so many bytes."""
    what = f"{n_bytes:,} bytes " if n_bytes else ""
    try:
        with tempfile.TemporaryFile(dir=folder) as stream:
            if n_bytes and hasattr(os, "posix_fallocate"):
                os.posix_fallocate(stream.fileno(), 0, n_bytes)
    except OSError as error:
        # Some file systems cannot reserve space.
        if n_bytes and error.errno in (errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS):
            return
        reason = error.strerror or error
        raise FileAccessError(f"cannot write {what}to the folder {folder}: {reason}") from error


def need(module: str, extra: str, purpose: str) -> None:
    """Refuse to go on without an optional dependency."""
    if importlib.util.find_spec(module) is None:
        raise MissingDependencyError(f"{purpose} needs {module}: pip install 'polyabayes[{extra}]'")


def keep(writers: Mapping[Path, Callable[[Path], object]]) -> None:
    """Write results; where a place fails, the error tells in which temporary folder it is."""
    problems = [_problem(path, write) for path, write in writers.items()]
    if any(problems):
        raise FileAccessError("; ".join(filter(None, problems)))


def _problem(path: Path, write: Callable[[Path], object]) -> str:
    """Why a result is not in its place, and where it is; nothing if all is well."""
    try:
        write(path)
    except OSError as error:
        known = isinstance(error, FileAccessError)
        problem = str(error) if known else f"cannot write {path}: {error.strerror or error}"
    else:
        return ""
    folder = None
    try:
        folder = Path(tempfile.mkdtemp(prefix="polyabayes-"))
        write(folder / path.resolve().name)
    except OSError:
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)
        return f"{problem}; the temporary directory did not take it either"
    return f"{problem}; it is kept as {folder / path.resolve().name}"


def say(message: str) -> None:
    """Tell the user, beside the results."""
    print(f"polyabayes: {printable(message)}", file=sys.stderr, flush=True)


def write_table(columns: Mapping[str, Any], output: str) -> None:
    """Write columns as CSV or Parquet; '-' is CSV on standard output."""
    if output == "-":
        _write_csv(columns, sys.stdout)
        sys.stdout.flush()
    else:
        keep({Path(output): table_writer(columns)})


def table_writer(columns: Mapping[str, Any]) -> Callable[[Path], None]:
    """Give what writes columns to a file, for :func:`keep`."""
    return partial(_write_columns, columns)


def _write_columns(columns: Mapping[str, Any], path: Path) -> None:
    with replacing(path) as stream:
        if path.suffix.lower() == ".parquet":
            import pandas as pd

            pd.DataFrame(dict(columns)).to_parquet(stream)
            return
        text = io.TextIOWrapper(stream, encoding="utf-8", newline="")
        _write_csv(columns, text)
        text.detach()


def _write_csv(columns: Mapping[str, Any], stream: TextIO) -> None:
    """One line a row; a value that there is not is left empty, and no text runs as a formula."""
    arrays = [np.asarray(column).tolist() for column in columns.values()]
    cell = partial(_cell, stream.isatty())
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerows(map(cell, row) for row in (columns, *zip(*arrays, strict=True)))
    stream.flush()


def _cell(on_terminal: bool, value: Any) -> Any:
    if isinstance(value, str):
        is_formula = value.startswith(_FORMULA) and isinstance(read_value(value), str)
        value = f"'{value}" if is_formula else value
        # Labels may hold bytes that are no text, or commands to a terminal.
        return printable(value) if on_terminal else value.encode(errors="backslashreplace").decode()
    # NaN is the one value that differs from itself.
    return "" if value != value else value


def refuse_overwriting(arguments: Given) -> None:
    """Refuse outputs that are inputs of the same command, or one another."""
    outputs = _outputs(arguments)
    given = {name: value for name, value in vars(arguments).items() if value is not None}
    written = [Path(given[name]) for name in outputs if given.get(name, "-") != "-"]
    read = [
        Path(text)
        for name, value in given.items()
        if name not in outputs
        for text in (value if isinstance(value, list) else [value])
        if isinstance(text, str) and "\0" not in text and os.path.isfile(text)  # noqa: PTH113
    ]
    for position, path in enumerate(written):
        same = [file for file in read if path.exists() and path.samefile(file)]
        if same:
            raise InvalidArgumentError(
                f"cannot write {path}: it is {same[0]}, which this command reads"
            )
        if any(path.resolve() == other.resolve() for other in written[:position]):
            raise InvalidArgumentError(f"cannot write {path} twice: give another name")
        inside = [file for file in read if file.suffix == ".csv" and _is_in(file, path)]
        if inside:
            raise InvalidArgumentError(
                f"cannot write tables to {path}: it holds {inside[0]}, which this command reads"
            )


def _is_in(file: Path, folder: Path) -> bool:
    return folder.is_dir() and file.resolve().parent == folder.resolve()


def save_picture(ax: Any, output: str) -> None:
    """Write the figure of `ax`, and close it."""
    from matplotlib import pyplot as plt

    path = Path(output)

    def write(place: Path) -> None:
        with replacing(place) as stream:
            ax.figure.savefig(stream, format=path.suffix[1:].lower(), dpi=300)

    keep({path: write})
    plt.close(ax.figure)
    say(f"wrote {output}")
