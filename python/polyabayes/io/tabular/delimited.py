"""Comma- or tab-separated files: their header, and their records with the numbers of their lines.

A quoted field may hold separators, newlines and doubled quotes; nothing is guessed or mended.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import isnan
from pathlib import Path
from typing import NamedTuple

from polyabayes._support.files import line_blocks
from polyabayes.exceptions import FileFormatError, InvalidArgumentError

# Small blocks: arrays of their numbers stay in the cache.
_BLOCK_BYTES = 1 << 18
_MOST_SHOWN = 40
_NO_SEPARATORS = "0123456789+-.eE\r\n"


class Record(NamedTuple):
    """The fields of a line, or of several where a quoted field holds newlines."""

    line: int
    fields: list[str]


@dataclass(frozen=True)
class Dialect:
    """How a file is divided into fields.

    Attributes
    ----------
    sep : str
        The character between two fields.
    quotechar : str
        The character around a field that holds separators, quotes or newlines.
    encoding : str
        The encoding of the text, one in which digits and newlines are those of ASCII.
    skiprows : int
        Lines before the header.
    """

    sep: str = ","
    quotechar: str = '"'
    encoding: str = "utf-8"
    skiprows: int = 0

    def __post_init__(self) -> None:
        for name, value in (("sep", self.sep), ("quotechar", self.quotechar)):
            is_character = isinstance(value, str) and len(value) == 1 and value.isascii()
            if not is_character or value in _NO_SEPARATORS:
                raise InvalidArgumentError(
                    f"{name} must be one character of ASCII that no number holds, got {value!r}"
                )
        if self.sep == self.quotechar:
            raise InvalidArgumentError(f"sep and quotechar must differ, both are {self.sep!r}")
        if isinstance(self.skiprows, bool) or not isinstance(self.skiprows, int):
            raise InvalidArgumentError(f"skiprows must be a number of lines, got {self.skiprows!r}")
        plain = f"{_NO_SEPARATORS}{self.sep}{self.quotechar}"
        try:
            is_like_ascii = plain.encode(self.encoding) == plain.encode()
        except (LookupError, ValueError, TypeError) as error:
            raise InvalidArgumentError(
                f"encoding={self.encoding!r} is not one of text: {error}"
            ) from error
        if not is_like_ascii:
            raise InvalidArgumentError(
                f"encoding={self.encoding!r} writes digits unlike ASCII: store the file as UTF-8"
            )


class DelimitedFile:
    """A file of records, read once from its start to its end.

    Parameters
    ----------
    path : Path
        The file, plain or gzipped.
    dialect : Dialect
        How its lines are divided.

    Attributes
    ----------
    header : list of str
        Names of the columns: the first record.
    """

    def __init__(self, path: Path, dialect: Dialect) -> None:
        self.path, self.dialect = path, dialect
        self._blocks = line_blocks(path, _BLOCK_BYTES, keeps_blanks=True)
        # Lines of the current block, how many of them are read, and the number of its first.
        self._lines: list[bytes] = []
        self._n_read, self._first = 0, 1
        self.header = self._read_header()

    def next_block(self) -> tuple[int, bytes] | None:
        """A block of whole lines as they stand in the file, with the number of the first of them.

        One that holds more than plain fields can be put back, and read by :meth:`records`.
        """
        if not self._has_lines():
            return None
        block = self._first + self._n_read, b"\n".join(self._lines[self._n_read :])
        self._n_read = len(self._lines)
        return block

    def put_back(self, line: int, block: bytes) -> None:
        """Make a block the next to be read."""
        self._lines, self._n_read, self._first = block.split(b"\n"), 0, line

    def records(self) -> Iterator[Record]:
        """The records that are left; blank lines have no fields."""
        while self._has_lines():
            yield self._record()

    def records_of_block(self, n_fields: int) -> list[Record]:
        """The records that begin in the current block, without blank lines.

        Parameters
        ----------
        n_fields : int
            Fields of a record; others are refused.
        """
        records = []
        while self._n_read < len(self._lines):
            record = self._record()
            if record.fields:
                records.append(self.checked(record, n_fields))
        return records

    def checked(self, record: Record, n_fields: int) -> Record:
        """A record, if it has this many fields."""
        if len(record.fields) == n_fields:
            return record
        more = "more" if len(record.fields) > n_fields else "less"
        raise self.refuse(
            record.line, f"{len(record.fields)} fields, {more} than the {n_fields} of the header"
        )

    def refuse(self, line: int, reason: str) -> FileFormatError:
        """The error of a line."""
        return FileFormatError(f"{self.path}, line {line}: {reason}")

    def _has_lines(self) -> bool:
        if self._n_read == len(self._lines):
            for first, block in self._blocks:
                self.put_back(first, block)
                return True
        return self._n_read < len(self._lines)

    def _next_line(self) -> tuple[int, str]:
        number, line = self._first + self._n_read, self._lines[self._n_read]
        self._n_read += 1
        try:
            return number, line.decode(self.dialect.encoding)
        except UnicodeError as error:
            raise self.refuse(number, f"it is no text in {self.dialect.encoding}") from error

    def _record(self) -> Record:
        quote, sep = self.dialect.quotechar, self.dialect.sep
        number, line = self._next_line()
        if quote not in line:
            line = line.removesuffix("\r")
            if "\r" in line:
                raise self.refuse(number, "a carriage return within it; end lines by newlines")
            return Record(number, line.split(sep) if line.strip() else [])
        lines, n_quotes = [line], line.count(quote)
        while n_quotes % 2:
            if not self._has_lines():
                raise self.refuse(number, "a quoted field does not end")
            lines.append(self._next_line()[1])
            n_quotes += lines[-1].count(quote)
        return Record(number, self._quoted(number, "\n".join(lines).removesuffix("\r")))

    def _quoted(self, number: int, text: str) -> list[str]:
        """The fields of a text with quotes; these enclose every second of its parts."""
        quote, sep = self.dialect.quotechar, self.dialect.sep
        parts = text.split(quote)
        fields: list[str] = []
        for place, part in enumerate(parts):
            is_first, is_last = place == 0, place == len(parts) - 1
            if place % 2:
                fields[-1] += part
            elif not part and not (is_first or is_last):
                # Two quotes in a quoted field stand for one.
                fields[-1] += quote
            elif part and not (
                (is_first or part.startswith(sep)) and (is_last or part.endswith(sep))
            ):
                raise self.refuse(number, f"a quote within a field, at {part[:_MOST_SHOWN]!r}")
            else:
                between = part.split(sep)
                fields += between if is_first else between[1:]
        return fields

    def _read_header(self) -> list[str]:
        if self._has_lines():
            self._lines[0] = self._lines[0].removeprefix(codecs.BOM_UTF8)
        for _ in range(self.dialect.skiprows):
            if self._has_lines():
                self._next_line()
        number, fields = next((record for record in self.records() if record.fields), (0, []))
        if not fields:
            raise FileFormatError(f"{self.path} cannot be read: it holds no header")
        seen: set[str] = set()
        for name in fields:
            if name in seen:
                raise self.refuse(number, f"two columns are called {name!r}; rename one")
            seen.add(name)
        return fields


def label_order(labels: Iterable[str]) -> list[str]:
    """Labels in order: by value if all of them are numbers, else by their characters."""
    texts = sorted(labels)
    numbers = [number_of(text) for text in texts]
    if any(number is None or isnan(number) for number in numbers):
        return texts
    return [texts[place] for place in sorted(range(len(texts)), key=lambda k: numbers[k] or 0)]


def number_of(text: str) -> float | None:
    """The number that a text is, or None."""
    try:
        return float(text) if text.isascii() and "_" not in text else None
    except ValueError:
        return None
