"""Delimited files such as CSV and TSV, parsed by Python's csv module."""

from __future__ import annotations

import csv
import io
import re
import sys
from array import array
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from polyabayes._support.files import BOMS_UTF16, open_binary, reading
from polyabayes._support.output.frames import import_pandas
from polyabayes._support.warnings import quiet
from polyabayes.data.conversion.documents import source_of_table
from polyabayes.data.conversion.tables import (
    DOCUMENT_NAMES,
    Kind,
    Table,
    kind_of_strings,
    number_of,
)
from polyabayes.data.counts import MAX_COUNT, CountMatrix, checked_labels
from polyabayes.exceptions import (
    DataWarning,
    FileFormatError,
    InvalidArgumentError,
    PolyabayesError,
    argument,
)
from polyabayes.io.integers import count_mistake, is_number, whole_count

if TYPE_CHECKING:
    import pandas as pd

# A line, or the first of several where a quoted field holds newlines, and its fields.
Record: TypeAlias = "tuple[int, list[str]]"

LINES_LOOKED_AT = 20
# Characters of a line.
_LONGEST_LINE = 1 << 26
# Fields per read, so that numbers stay in the cache.
_BLOCK_FIELDS = 1 << 17
# Fewer lists than trigger Python's garbage collector.
_BLOCK_ROWS = 512
# Narrower tables are kept as columns of text.
_LEAST_WIDTH = 4
_LONGEST_FIELD = 1 << 30
_MOST_SHOWN = 40
_SEPARATORS = ",\t;|"
_NO_SEPARATORS = "0123456789+-.eE\r\n"
# Numbers in canonical form; longer ones cannot be counts.
_WHOLE = re.compile(r"(?:(?:0|[1-9][0-9]{0,9}),)*(?:0|[1-9][0-9]{0,9})")
_DECIMAL_COMMA = re.compile(r"-?[0-9]+,[0-9]+")
_POINT_ZERO = re.compile(r"\.0+(?=,|$)")
# The first line of a spreadsheet's file that names its separator.
_SAID = re.compile(r"\"?sep=(.)\"?", re.IGNORECASE)
_INTEGER = re.compile(r"\s*[+-]?[0-9]{1,20}\s*")


@dataclass(frozen=True)
class Dialect:
    """How a file is divided into fields.

    `sep` None means the most frequent separator of the header. `quotechar` encloses fields with
    separators, quotes or newlines.
    `skiprows` lines come before the header. `columns` are names for a file without a header. Fields
    that are among `missing` are read as empty.
    """

    sep: str | None = None
    quotechar: str = '"'
    encoding: str = "utf-8"
    skiprows: int = 0
    columns: Sequence[str] | None = None
    missing: Collection[str] = ()

    def __post_init__(self) -> None:
        if self.sep == r"\t":  # The command line passes escapes such as \t unchanged.
            object.__setattr__(self, "sep", "\t")
        for name, value in (("sep", self.sep or ","), ("quotechar", self.quotechar)):
            is_character = isinstance(value, str) and len(value) == 1 and value.isascii()
            if not is_character or value in _NO_SEPARATORS:
                raise InvalidArgumentError(
                    f"{argument(name)} must be one ASCII character that cannot be part of a "
                    f"number, got {value!r}"
                )
        if self.sep == self.quotechar:
            raise InvalidArgumentError(f"sep and quotechar must differ, both are {self.sep!r}")
        if isinstance(self.skiprows, bool) or not (
            isinstance(self.skiprows, int) and 0 <= self.skiprows <= sys.maxsize
        ):
            raise InvalidArgumentError(
                f"{argument('skiprows')} must be a number of lines, got {self.skiprows!r}"
            )
        try:
            "".encode(self.encoding)
        except (LookupError, ValueError, TypeError) as error:
            raise InvalidArgumentError(
                f"encoding={self.encoding!r} is not one of text: {error}"
            ) from error


class _Block(NamedTuple):
    """Rows as columns of text, or as a first column of text and a matrix of counts."""

    lines: array[int]
    columns: list[list[str]]
    counts: CountMatrix | None


class DelimitedTable(Table):
    """The table of a file; rows of plain counts take little memory."""

    def __init__(self, path: Path, dialect: Dialect, most: int | None = None) -> None:
        self.path = path
        self._blocks: list[_Block] = []
        self._known: dict[str, str] = {}
        self._kinds: dict[str, Kind] = {}
        sep = "" if dialect.sep in (None, ",") else f", sep={dialect.sep!r}"
        self.as_frame = f"pandas.read_csv({str(path)!r}{sep})"
        self._read(islice(records_of(path, dialect), most), dialect)
        self.n_rows = sum(len(block.lines) for block in self._blocks)
        self._starts = np.cumsum([0, *(len(block.lines) for block in self._blocks)])
        self._column = {name: column for column, name in enumerate(self.names)}

    def kind(self, name: str) -> Kind:
        """Kind of the non-empty fields of a column."""
        if name not in self._kinds:
            column, held = self._column[name], list[str]()
            for block in self._blocks:
                if block.counts is None or not column:
                    held += filter(None, block.columns[column])
            self._kinds[name] = kind_of_strings(held)
        return self._kinds[name]

    def values(self, name: str) -> list[Any]:
        """The fields of a column as text; None if empty."""
        column, values = self._column[name], list[Any]()
        for block in self._blocks:
            if block.counts is None or not column:
                values += [text or None for text in block.columns[column]]
            else:
                values += map(str, block.counts[:, column - 1].toarray().ravel().tolist())
        return values

    def counts(self, names: Sequence[str]) -> CountMatrix:
        """Columns of counts; an error names the line and the column."""
        columns = np.array([self._column[name] for name in names])
        parts = []
        for block in self._blocks:
            if block.counts is None:
                fields = [self._counts_of(block, int(column)) for column in columns]
                parts.append(sparse.csr_matrix(np.array(fields, dtype=np.int64).T))
                continue
            table: Any = block.counts[:, columns[columns > 0] - 1]
            if 0 in columns:
                # The first column of the file is also the first of the requested columns.
                first = np.array([self._counts_of(block, 0)], dtype=np.int64).T
                table = sparse.hstack([sparse.csr_matrix(first), table])
            parts.append(table)
        counts: CountMatrix = sparse.vstack(parts, format="csr")
        return counts

    def _counts_of(self, block: _Block, column: int) -> list[int]:
        fields = block.columns[column]
        # Equal fields are checked once.
        mistakes = {field: _mistake_of(field.strip()) for field in set(fields)}
        if any(mistakes.values()):
            row = next(row for row, field in enumerate(fields) if mistakes[field])
            reason = f"column {self.names[column]!r}: {mistakes[fields[row]]}"
            if _DECIMAL_COMMA.fullmatch(fields[row].strip()):
                call = f"{self.as_frame[:-1]}, decimal=',')"
                reason += f"; of decimal commas, polyabayes.Corpus.from_table({call})"
            raise _refused(self.path, block.lines[row], reason)
        counts = {field: whole_count(field.strip()) for field in mistakes}
        return [counts[field] for field in fields]

    def numbers(self, name: str) -> Any:
        """A column of numbers: integers if all are written as such, else floats."""
        texts = self.values(name)
        for row, text in enumerate(texts):
            value = None if text is None else number_of(text)
            if value is None or value != value:
                held = "no value" if text is None else repr(text[:_MOST_SHOWN])
                raise FileFormatError(
                    f"{self.path}: column {name!r} holds {held} at {self.place(row)}, not a number"
                )
        return _array_of(texts)

    def line(self, row: int) -> int:
        """The number of the line where a row begins."""
        block = int(np.searchsorted(self._starts, row, side="right")) - 1
        return self._blocks[block].lines[row - int(self._starts[block])]

    def place(self, row: int) -> str:
        """The line where a row begins."""
        return f"line {self.line(row)}"

    def data_frame(self, names: Sequence[str]) -> pd.DataFrame:
        """Columns as a DataFrame: numbers if all present values are, else text."""
        columns = {name: self.values(name) for name in names}
        numbers = {name: _array_of(columns[name]) for name in names if self.kind(name) == "number"}
        frame: pd.DataFrame = import_pandas().DataFrame(columns | numbers)
        return frame

    def _read(self, records: Iterator[Record], dialect: Dialect) -> None:
        self._header_line, self.names = next(records, (0, []))
        if not self.names:
            raise FileFormatError(f"{self.path} cannot be read: it holds no header")
        if dialect.columns is not None:
            records = chain([(self._header_line, self.names)], records)
            self.names = list(checked_labels(dialect.columns, "columns"))
        twice = [name for name, n in Counter(self.names).items() if n > 1]
        if twice:
            told = f"two columns are called {twice[0]!r}; rename one"
            if twice == [""]:
                told = f"no header: skip it by {argument('skiprows', self._header_line)}"
            raise _refused(self.path, self._header_line, told)
        first = next(records, None)
        if first is None:
            return
        is_longer = len(first[1]) == len(self.names) + 1
        if len(self.names) == 1 < len(first[1]) and " " in self.names[0].strip():
            again = replace(dialect, skiprows=dialect.skiprows + self._header_line)
            raise _refused(
                self.path,
                self._header_line,
                f"{self.names[0]!r:.60} is no header of {len(first[1])} columns: skip it by "
                f"{argument('skiprows', again.skiprows)}"
                f"{next_refusal(DelimitedTable(self.path, again, LINES_LOOKED_AT))}",
            )
        if is_longer and dialect.columns is None and self.names[0].lower() not in DOCUMENT_NAMES:
            # R does not name the column of the row names.
            self.names.insert(0, "")
        if len(self.names) == len(first[1]) == 1:
            self._refuse_blanks(first[1][0])
        records = chain([first], records)
        n_rows = max(1, min(_BLOCK_ROWS, _BLOCK_FIELDS // len(self.names)))
        while rows := list(islice(records, n_rows)):
            self._add(rows)

    def _refuse_blanks(self, first: str) -> None:
        """Refuse a table separated by blanks, which would be read as one column of texts."""
        fields = first.split()
        if len(fields) == len(self.names[0].split()) > 1 and all(map(is_number, fields[1:])):
            raise FileFormatError(
                f"{self.path} looks like a table of {len(fields)} columns with blanks between "
                f"them: read it by {argument('sep', ' ')}"
            )

    def _add(self, rows: list[Record]) -> None:
        """Add rows to the blocks: as numbers if possible, else as columns of text."""
        n_fields = len(self.names)
        for line, fields in rows:
            if len(fields) != n_fields:
                more = "more" if len(fields) > n_fields else "less"
                reason = f"{len(fields)} fields, {more} than the {n_fields} of the header"
                raise _refused(self.path, line, reason)
        lines = array("q", [line for line, _ in rows])
        if n_fields >= _LEAST_WIDTH:
            text = ",".join([",".join(fields[1:]) for _, fields in rows])
            text = _POINT_ZERO.sub("", text) if "." in text else text
            if _WHOLE.fullmatch(text):
                table = np.fromstring(text, dtype=np.int64, sep=",")
                if len(table) == len(rows) * (n_fields - 1) and table.max() <= MAX_COUNT:
                    counts = sparse.csr_matrix(table.reshape(len(rows), -1))
                    first = [fields[0] for _, fields in rows]
                    self._blocks.append(_Block(lines, [first], counts))
                    return
        if not self._blocks or self._blocks[-1].counts is not None:
            self._blocks.append(_Block(array("q"), [[] for _ in self.names], None))
        self._blocks[-1].lines.extend(lines)
        fields_of = zip(*(fields for _, fields in rows), strict=True)
        for column, texts in zip(self._blocks[-1].columns, fields_of, strict=True):
            # Equal fields are one object.
            column += [self._known.setdefault(text, text) for text in texts]


def next_refusal(table: Table) -> str:
    """What stands in the way of counts of a table, to end a message; empty if nothing."""
    try:
        with quiet(DataWarning):
            source_of_table(table)
    except PolyabayesError as error:
        return f"; then {error.args[0]}"
    return ""


def records_of(path: Path, dialect: Dialect) -> Iterator[Record]:
    """The records of a file, without blank lines; the one reader of delimited text."""
    lines, sep, header = _lines(path, dialect.encoding), dialect.sep, ""
    n_skipped = sum(1 for _ in islice(lines, dialect.skiprows)) - 1
    for header in lines:
        n_skipped += 1
        said = _SAID.fullmatch(header.strip("\r\n"))
        if said:  # Spreadsheets write the separator into a first line.
            sep = sep or said[1]
        elif header.strip():
            break
    sep = sep or separator_of(header, dialect.quotechar) or ","
    if sep not in header and dialect.columns is not None:
        sep = " "
    # A limit of the whole process: the parser's default is too short for texts of books.
    csv.field_size_limit(max(csv.field_size_limit(), _LONGEST_FIELD))
    reader = csv.reader(
        chain([header], lines),
        delimiter=sep,
        quotechar=dialect.quotechar,
        skipinitialspace=sep == " ",
        strict=True,
    )
    line = n_skipped + 1
    try:
        for fields in reader:
            if len(fields) > 1 or (fields and fields[0].strip()):
                yield line, _without(fields, dialect.missing) if dialect.missing else fields
            line = n_skipped + reader.line_num + 1
    except csv.Error as error:
        unended = "unexpected end" in str(error)
        reason = "a quoted field does not end" if unended else f"a quote in a field: {error}"
        raise _refused(path, line, reason) from error


def _lines(path: Path, encoding: str) -> Iterator[str]:
    """The lines of a file, with their ends: CR, LF or both."""
    number, own = 1, "utf-8-sig" if encoding == "utf-8" else encoding
    with open_binary(path) as stream, reading(path):
        text = io.TextIOWrapper(stream, own, newline="")
        try:
            while line := text.readline(_LONGEST_LINE):
                if len(line) == _LONGEST_LINE:
                    raise _refused(path, number, "the line has no end in 64 MiB")
                number += 1
                yield line
        except UnicodeDecodeError as error:
            number += error.object[: error.start].count(b"\n")
            is_wide = number == 1 and error.object[:2] in BOMS_UTF16
            remedy = argument("encoding", "utf-16" if is_wide else "latin-1")
            told = f"the file is not valid {encoding}; try {remedy}"
            raise _refused(path, number, told) from error


def _without(fields: list[str], missing: Collection[str]) -> list[str]:
    return ["" if field in missing else field for field in fields]


def _refused(path: Path, line: int, reason: str) -> FileFormatError:
    return FileFormatError(f"{path}, line {line}: {reason}")


def _array_of(texts: list[str | None]) -> NDArray[Any]:
    """Numbers of texts: integers if all are written as such, else floats, NaN if missing."""
    if all(text is not None and _INTEGER.fullmatch(text) for text in texts):
        whole = [int(text or 0) for text in texts]
        for kind in (np.int64, np.uint64):
            limits = np.iinfo(kind)
            if limits.min <= min(whole, default=0) and max(whole, default=0) <= limits.max:
                return np.array(whole, dtype=kind)
    return np.array([np.nan if text is None else number_of(text) for text in texts], dtype=float)


def _mistake_of(text: str) -> str | None:
    return count_mistake(text) if text else "no count; write 0 where there is none"


def separator_of(line: str, quotechar: str = '"') -> str | None:
    """The most frequent separator of a line outside quotes; None if there is none."""
    plain = "".join(line.split(quotechar)[::2])
    sep = max(_SEPARATORS, key=plain.count)
    return sep if sep in plain else None
