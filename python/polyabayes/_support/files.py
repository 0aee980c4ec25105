"""Reading of plain and compressed files, and writing of files completely or not at all."""

import codecs
import errno
import fnmatch
import gzip
import io
import os
import re
import stat
import sys
import uuid
import zipfile
import zlib
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from polyabayes._support.machine import memory_of_machine
from polyabayes.exceptions import (
    FileAccessError,
    FileFormatError,
    InvalidArgumentError,
    InvalidTypeError,
    PolyabayesError,
    argument,
)

STANDARD_INPUT = Path("-")
_BLOCK_BYTES = 1 << 24
# Longest line in bytes; its numbers may take twenty times as much memory.
_LONGEST_LINE = 1 << 26
MAX_WORDS = 2**31 - 1
# Flags with which a pipe opens at once, without waiting for a writer.
_AT_ONCE = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)
_WRITABLE = stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH
# Error numbers of parsers that meet an invalid offset; no operating system gives them for a file.
_OF_THE_CONTENT = (None, errno.EINVAL)
BOMS_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
# Encodings of files of Western, Central and Eastern Europe, of Macs, of Japan, China and Korea.
_ENCODINGS = ("cp1252", "cp1250", "cp1251", "mac_roman", "cp932", "gb18030", "cp949")
_BYTES_TRIED = 1 << 16
_LETTERS_SHOWN = 30
_CORRUPT = (EOFError, zlib.error, gzip.BadGzipFile, zipfile.BadZipFile)


def checked_path(path: Any, name: str = "path") -> Path:
    """A path, if it is one or the text of one; `name` is that of the argument."""
    if not isinstance(path, (str, os.PathLike)):
        raise InvalidTypeError(f"{name} must be a str or a path, got {path!r}")
    try:
        has_null = b"\0" in os.fsencode(path)
    except UnicodeEncodeError as error:
        remedy = "remove them" + " or set PYTHONUTF8=1" * (error.encoding != "utf-8")
        raise InvalidArgumentError(
            f"{name} has characters that no file name can have in {error.encoding}, got {path!r}; "
            f"{remedy}"
        ) from error
    if has_null:
        raise InvalidArgumentError(f"{name} has a null character, got {path!r}; remove it")
    return Path(path)


@contextmanager
def reading(path: Path) -> Generator[None]:
    """Convert errors about a file into FileAccessError or FileFormatError.

    Parsers of other packages raise many types of errors for invalid files.
    """
    try:
        yield
    except PolyabayesError:
        raise
    except _CORRUPT as error:
        raise FileFormatError(f"{path} is damaged or cut short: {error}") from error
    except OSError as error:
        if error.errno in _OF_THE_CONTENT:
            raise FileFormatError(f"{path} cannot be read: {error}") from error
        raise FileAccessError(f"cannot read {path}: {error.strerror or error}") from error
    except MemoryError as error:
        raise _too_large(path) from error
    except Exception as error:
        reason = str(error) or type(error).__name__
        raise FileFormatError(f"{path} cannot be read: {reason}") from error


@contextmanager
def writing(path: Path) -> Generator[None]:
    """Convert errors about writing a file into FileAccessError."""
    try:
        yield
    except FileAccessError:
        raise
    except OSError as error:
        raise FileAccessError(f"cannot write {path}: {error.strerror or error}") from error


def is_there(path: Path) -> bool:
    """Whether a file exists; a file without permission is an error."""
    with reading(path):
        try:
            path.stat()
        except (FileNotFoundError, NotADirectoryError):
            return False
    return True


def open_regular(path: Path) -> io.BufferedReader:
    """Open a regular file to read; pipes and devices are refused, never waited for."""
    with reading(path):
        stream = open(path, "rb", opener=lambda name, flags: os.open(name, flags | _AT_ONCE))  # noqa: SIM115
        try:
            _refuse_special(path, os.fstat(stream.fileno()).st_mode, "read")
        except FileAccessError:
            stream.close()
            raise
        return stream


def _refuse_special(path: Path, mode: int, verb: str) -> None:
    if not stat.S_ISREG(mode):
        kind = "a folder" if stat.S_ISDIR(mode) else "a device, pipe or socket, not a regular file"
        raise FileAccessError(f"cannot {verb} {path}: it is {kind}")


@contextmanager
def content_of(path: Path) -> Generator[None]:
    """Name the file when its content does not make a corpus or a tensor."""
    try:
        yield
    except (FileFormatError, FileAccessError):
        raise
    except (InvalidArgumentError, InvalidTypeError) as error:
        # args[0] keeps the references to arguments, which the text of the error replaces.
        raise FileFormatError(f"{path}: {error.args[0]}") from error
    except MemoryError as error:
        raise _too_large(path) from error
    except (ValueError, TypeError, LookupError, ArithmeticError) as error:
        raise FileFormatError(f"{path} cannot be read: {error}") from error


@contextmanager
def within_memory(path: Path) -> Generator[None]:
    """Name the file when its content, or what is made of it, does not fit into memory."""
    try:
        yield
    except MemoryError as error:
        raise _too_large(path) from error


def _too_large(path: Path) -> FileFormatError:
    return FileFormatError(f"{path} holds or announces more than fits into memory")


def refuse_announced(path: Path, n_documents: int, n_words: int) -> None:
    """Refuse sizes that a few bytes of a file can claim, and that no memory can hold."""
    if not n_documents or not n_words:
        raise FileFormatError(f"{path} holds no documents or no words")
    needed, there_are = 8 * (n_documents + n_words), memory_of_machine()
    if n_words > MAX_WORDS or needed > there_are:
        raise FileFormatError(
            f"{path} announces {n_documents:,} documents and {n_words:,} words: at most "
            f"{MAX_WORDS:,} words can be, and numbers of {needed / 2**30:,.1f} GiB in memory of "
            f"{there_are / 2**30:,.1f}"
        )


@contextmanager
def open_binary(path: Path) -> Generator[Any]:
    """Open a file, or standard input for "-"; gzip is detected and unpacked."""
    with reading(path):
        raw: Any = sys.stdin.buffer if path == STANDARD_INPUT else open_regular(path)
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


def line_blocks(path: Path, n_bytes: int = _BLOCK_BYTES) -> Iterator[tuple[int, bytes]]:
    """Blocks of whole lines, each with the number of its first line, counted from 1.

    Blank space at the end of a block is left out, and blank lines at the end of the file.
    """
    line, pending, ended = 1, bytearray(), False
    with open_binary(path) as stream:
        while not ended:
            try:
                with reading(path):
                    piece = stream.read1(n_bytes)
                    pending += piece
            except FileFormatError as error:
                complete = line - 1 + pending.count(b"\n")
                raise FileFormatError(f"{error} (after line {complete})") from error
            ended = not piece
            if not ended and len(pending) < n_bytes:
                continue
            if not ended and b"\n" not in pending:
                if len(pending) > _LONGEST_LINE:
                    raise FileFormatError(f"{path}, line {line}: the line has no end in 64 MiB")
                continue
            whole = bytes(pending if ended else pending[: pending.rfind(b"\n") + 1])
            body = whole.rstrip()
            # Blank lines begin the next block, unless there is nothing else.
            pending = pending[len(body) if body else len(whole) :]
            if not body:
                line += whole.count(b"\n")
            else:
                pending = pending.partition(b"\n")[2]
                found = body.removeprefix(codecs.BOM_UTF8) if line == 1 else body
                if b"\r" in found:
                    found = found.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
                yield line, found
                line += found.count(b"\n") + 1


def check_encoding(encoding: str) -> None:
    """Refuse what is no encoding of text."""
    try:
        "a".encode(encoding)
    except (LookupError, ValueError, TypeError) as error:
        raise InvalidArgumentError(f"encoding={encoding!r} is not one of text: {error}") from error


def _encodings_of(content: bytes) -> str:
    """Options that read bytes that are not UTF-8, each with the first words that it makes of them.

    Most bytes are letters in several encodings, so that only the reader knows the right one.
    """
    if content[:2] in BOMS_UTF16:
        return argument("encoding", "utf-16")
    told = []
    for name in _ENCODINGS:
        text = content[:_BYTES_TRIED].decode(name, "replace")
        words = " ".join(dict.fromkeys(re.findall(r"\w*[^\x00-\x7f\s]\w*", text)))
        # The last character may be cut.
        if text.count("\ufffd") < 2:
            told.append(f"{argument('encoding', name)} ({words[:_LETTERS_SHOWN]!r})")
    return f"{', '.join(told)} or another, whichever reads its words right"


def text_lines(path: Path, encoding: str = "utf-8") -> Iterator[str]:
    """The lines of a text file with their ends, CR, LF or both, and without a byte order mark."""
    check_encoding(encoding)
    number, own = 1, "utf-8-sig" if encoding == "utf-8" else encoding
    with open_binary(path) as stream, reading(path):
        text = io.TextIOWrapper(stream, own, newline="")
        try:
            while line := text.readline(_LONGEST_LINE):
                if len(line) == _LONGEST_LINE:
                    raise FileFormatError(f"{path}, line {number}: the line has no end in 64 MiB")
                yield line.removeprefix("\ufeff") if number == 1 else line
                number += 1
        except UnicodeDecodeError as error:
            number += error.object[: error.start].count(b"\n")
            start = error.object.rfind(b"\n", 0, error.start) + 1
            other = _encodings_of(error.object[start:] + stream.read(_BYTES_TRIED))
            told = f"the file is not valid {encoding}; try {other}"
            raise FileFormatError(f"{path}, line {number}: {told}") from error


def read_lines(path: Path, encoding: str = "utf-8") -> list[str]:
    """All lines of a text file, without their ends and without a byte order mark."""
    return [line.rstrip("\r\n") for line in text_lines(path, encoding)]


@contextmanager
def replacing(path: Path) -> Generator[Any]:
    """Open a file that gets its name only once it is complete and on the disk; `.gz` is compressed.

    A replaced file keeps its mode, also while it is unfinished. Anything but a writable file is
    refused.
    """
    unfinished: Path | None = None
    try:
        with writing(path):
            target = Path(os.path.realpath(path))
            mode = _mode_to_keep(path, target)
            hidden = target.with_name(f".{target.name}.{uuid.uuid4().hex}")
            with open(
                hidden, "xb", opener=partial(os.open, mode=0o666 if mode is None else mode)
            ) as raw:
                unfinished = hidden
                if path.suffix == ".gz":
                    with gzip.GzipFile("", "wb", compresslevel=6, fileobj=raw, mtime=0) as packed:
                        yield packed
                else:
                    yield raw
                raw.flush()
                os.fsync(raw.fileno())
            if mode is not None:
                hidden.chmod(mode)
            hidden.replace(target)
            unfinished = None
            _sync_folder(target.parent)
    finally:
        if unfinished is not None:
            with suppress(OSError):
                unfinished.unlink()


@contextmanager
def beside(path: Path, content: bytes) -> Generator[None]:
    """Context that writes a small file after the larger file that its body writes.

    If either cannot be written, both stay unchanged.
    """
    with replacing(path) as handle:
        handle.write(content)
        handle.flush()
        yield


def remove_unfinished(folder: Path, names: str) -> None:
    """Remove what :func:`replacing` of killed processes left of files whose names match."""
    for path in folder.glob(f".{names}.*"):
        is_left = re.fullmatch(r"\.[0-9a-f]{32}", path.suffix) is not None
        if is_left and fnmatch.fnmatchcase(path.stem, f".{names}"):
            with suppress(OSError):
                path.unlink()


def _mode_to_keep(path: Path, target: Path) -> int | None:
    """Mode of the file that is there; None where there is none."""
    try:
        found = target.stat().st_mode
    except FileNotFoundError:
        return None
    _refuse_special(path, found, "write")
    if not found & _WRITABLE or not os.access(target, os.W_OK):
        raise FileAccessError(f"cannot write {path}: it is read-only; delete it or change its mode")
    return stat.S_IMODE(found)


def _sync_folder(folder: Path) -> None:
    """Flush the entries of a folder to the disk, if the system can."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def sibling(path: Path, suffix: str) -> Path:
    """The file of the same name with this suffix in place of its own, including ``.gz``."""
    counts = path.with_suffix("") if path.suffix == ".gz" else path
    return counts.with_name(f"{counts.stem}{suffix}")
