"""Opening files whatever packs them, and writing whole files or nothing."""

from __future__ import annotations

import gzip
import io
import os
import sys
import uuid
import zipfile
import zlib
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from polyabayes.exceptions import (
    FileAccessError,
    FileFormatError,
    InvalidArgumentError,
    InvalidTypeError,
    PolyabayesError,
)

STANDARD_INPUT = Path("-")
_BLOCK_BYTES = 1 << 24
_CORRUPT = (EOFError, zlib.error, gzip.BadGzipFile, zipfile.BadZipFile)


def checked_path(path: Any, name: str = "path") -> Path:
    """A path, if it is one or the text of one; `name` is that of the argument."""
    if not isinstance(path, (str, os.PathLike)):
        raise InvalidTypeError(f"{name} must be a str or a path, got {path!r}")
    try:
        has_null = b"\0" in os.fsencode(path)
    except UnicodeEncodeError as error:
        raise InvalidArgumentError(
            f"{name} has characters that no file name can have, got {path!r}; leave them out"
        ) from error
    if has_null:
        raise InvalidArgumentError(f"{name} has a null character, got {path!r}; leave it out")
    return Path(path)


@contextmanager
def reading(path: Path) -> Generator[None]:
    """Turn what a library raises about the file into FileAccessError or FileFormatError."""
    try:
        yield
    except PolyabayesError:
        raise
    except _CORRUPT as error:
        raise FileFormatError(f"{path} is damaged or cut short: {error}") from error
    except OSError as error:
        raise FileAccessError(f"cannot read {path}: {error.strerror or error}") from error
    except (ValueError, KeyError, IndexError, OverflowError) as error:
        raise FileFormatError(f"{path} cannot be read: {error}") from error


@contextmanager
def content_of(path: Path) -> Generator[None]:
    """Name the file when its content does not make a corpus or a tensor."""
    try:
        yield
    except (InvalidArgumentError, InvalidTypeError) as error:
        raise FileFormatError(f"{path}: {error}") from error


@contextmanager
def open_binary(path: Path) -> Generator[Any]:
    """Open a file, or standard input for "-", unpacking gzip wherever it is found."""
    with reading(path):
        raw: Any = sys.stdin.buffer if path == STANDARD_INPUT else path.open("rb")
    try:
        stream = raw if isinstance(raw, io.BufferedReader) else io.BufferedReader(raw)
        with reading(path):
            packed = stream.peek(2)[:2] == b"\x1f\x8b"
        if packed:
            with gzip.GzipFile(fileobj=stream) as unpacked:
                yield unpacked
        elif path.suffix == ".gz":
            raise FileFormatError(f"{path} ends in .gz but is not a gzip file")
        else:
            yield stream
    finally:
        if path != STANDARD_INPUT:
            raw.close()


def line_blocks(path: Path) -> Iterator[tuple[int, bytes]]:
    """Blocks of whole lines, each with the number of its first line, counted from 1.

    Blank lines at the end of the file are left out.
    """
    line, pending, ended = 1, bytearray(), False
    with open_binary(path) as stream:
        while not ended:
            try:
                with reading(path):
                    piece = stream.read1(_BLOCK_BYTES)
            except FileFormatError as error:
                complete = line - 1 + pending.count(b"\n")
                raise FileFormatError(f"{error} (after line {complete})") from error
            pending += piece
            ended = not piece
            if not ended and len(pending) < _BLOCK_BYTES:
                continue
            body = bytes(pending if ended else pending[: pending.rfind(b"\n") + 1]).rstrip()
            if body:
                yield line, body
                line += body.count(b"\n") + 1
                pending = pending[len(body) :].partition(b"\n")[2]


def read_lines(path: Path, encoding: str = "utf-8") -> list[str]:
    """All lines of a text file, without their ends."""
    with open_binary(path) as stream, reading(path):
        text = stream.read().decode(encoding)
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    return lines[:-1] if lines[-1] == "" else lines


@contextmanager
def replacing(path: Path) -> Generator[Any]:
    """Open a file that takes its name only when it is complete; `.gz` is packed."""
    unfinished = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        with unfinished.open("xb") as raw:
            if path.suffix == ".gz":
                with gzip.GzipFile("", "wb", compresslevel=6, fileobj=raw, mtime=0) as packed:
                    yield packed
            else:
                yield raw
        unfinished.replace(path)
    except OSError as error:
        raise FileAccessError(f"cannot write {path}: {error.strerror or error}") from error
    finally:
        with suppress(OSError):
            unfinished.unlink()


def sibling(path: Path, suffix: str) -> Path:
    """The file of the same name that has this suffix for its own, ``.gz`` included."""
    counts = path.with_suffix("") if path.suffix == ".gz" else path
    return counts.with_name(f"{counts.stem}{suffix}")
