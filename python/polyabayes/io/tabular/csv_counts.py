"""Corpora in CSV files, wide (a row a document) or long (document, word, count).

No parser of another package reads the file: counts are parsed by blocks of plain lines, which keeps
the memory flat, and field by field where a line holds quotes or a mistake.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from math import isnan, nan
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from polyabayes._support.files import content_of
from polyabayes.data.corpus import Corpus
from polyabayes.data.counts import MAX_COUNT, Words
from polyabayes.data.frames import LONG_COLUMNS, counted_texts, texts_of
from polyabayes.exceptions import FileFormatError, InvalidArgumentError
from polyabayes.io.integers import (
    count_mistake,
    fields_per_line,
    is_number,
    parse_fields,
    whole_count,
)
from polyabayes.io.tabular.delimited import DelimitedFile, Dialect, Record, label_order, number_of
from polyabayes.io.tabular.parquet import load_pandas
from polyabayes.io.vocabularies import with_vocabulary

Layout = Literal["auto", "wide", "long"]
Counts = NDArray[np.int64]

_MOST_SHOWN = 40
# Names of a first column that never holds counts; R and pandas leave that of row names empty.
_UNCOUNTED = ("document", "")


def read_csv(
    path: Path,
    vocabulary: Words | None = None,
    *,
    layout: Layout = "auto",
    exposure: str | None = None,
    sep: str = ",",
    quotechar: str = '"',
    encoding: str = "utf-8",
    skiprows: int = 0,
) -> Corpus:
    """Read a CSV file, plain or gzipped.

    Parameters
    ----------
    path : Path
        The file. A long table has the columns ``document``, ``word`` and ``count``, one line
        for each non-zero count; a wide one has a row a document and a column a word, and its
        first column holds the ids of the documents if that is text, has no name or is called
        ``document``. A column of texts, as of :meth:`Corpus.from_table`, is counted.
    vocabulary : ndarray of str, shape (n_words,), optional
        The words in the order wanted.
    layout : {"auto", "wide", "long"}, default="auto"
        "auto" takes the table for long if it has exactly those three columns.
    exposure : str, optional
        A further column that holds the known size of the document: the same in all lines of a
        document of a long table.
    sep, quotechar, encoding, skiprows
        As for :class:`Dialect`.

    Returns
    -------
    Corpus
        Documents in order of appearance; the words of a long table are sorted.
    """
    if layout not in ("auto", "wide", "long"):
        raise InvalidArgumentError(f"layout must be 'auto', 'wide' or 'long', got {layout!r}")
    dialect = Dialect(sep, quotechar, encoding, skiprows)
    file = DelimitedFile(path, dialect)
    if exposure is not None and exposure not in file.header:
        raise FileFormatError(f"{path} has no column {exposure!r} of exposures, and no such file")
    names = [name for name in file.header if name != exposure]
    is_long = set(names) == set(LONG_COLUMNS)
    if layout == "long" and not is_long:
        raise FileFormatError(
            f"{path} has the columns {', '.join(names[:6])}; a long table has the columns "
            "document, word and count"
        )
    with content_of(path):
        if is_long and layout != "wide":
            corpus = _LongReader(file, exposure).read()
        else:
            corpus = _WideReader(file, exposure).read()
    return with_vocabulary(corpus, vocabulary)


class _WideReader:
    """Reads rows of counts by blocks; the first column is kept as text until all of it is known."""

    def __init__(self, file: DelimitedFile, exposure: str | None) -> None:
        self.file, self.exposure = file, exposure
        self.names = [name for name in file.header if name != exposure]
        self.place = None if exposure is None else file.header.index(exposure)
        self.n_fields = len(file.header)
        self.parts: list[sparse.csr_matrix[np.int64]] = []
        self.first: list[str] = []
        self.lines, self.sizes = array("q"), array("d")

    def read(self) -> Corpus:
        """Read the rows that are left."""
        start = next((record for record in self.file.records() if record.fields), None)
        if start is None:
            raise FileFormatError(f"{self.file.path} holds no documents")
        if len(start.fields) == self.n_fields + 1:
            # R does not name the column of the row names.
            self.names.insert(0, "")
            self.n_fields += 1
            self.place = None if self.place is None else self.place + 1
        elif any(text.strip() and number_of(text) is None for text in start.fields[1:]):
            corpus = _read_texts(self.file, self.exposure)
            if corpus is not None:
                return corpus
        self._take_records([self.file.checked(start, self.n_fields)])
        while (block := self.file.next_block()) is not None:
            if not self._take_plain(*block):
                self.file.put_back(*block)
                self._take_records(self.file.records_of_block(self.n_fields))
        return self._corpus()

    def _take_plain(self, line: int, block: bytes) -> bool:
        """Take a block in if its lines hold an id and plain counts."""
        width, dialect = len(self.names) - 1, self.file.dialect
        if self.exposure is not None or not width or not _is_plain(block, dialect):
            return False
        sep = dialect.sep.encode()
        rows = [row.partition(sep) for row in block.replace(b"\r\n", b"\n").split(b"\n")]
        counts = parse_fields(b"\n".join([row[2] for row in rows]), width, sep)
        first = _decoded(b"\n".join([row[0] for row in rows]))
        if counts is None or first is None:
            return False
        self._take(range(line, line + len(rows)), first.split("\n"), counts)
        return True

    def _take_records(self, records: list[Record]) -> None:
        if self.place is not None:
            for line, fields in records:
                self.sizes.append(_size(self.file, line, fields.pop(self.place)))
        sep, width = self.file.dialect.sep, len(self.names) - 1
        text = "\n".join([sep.join(fields[1:]) for _, fields in records])
        counts = parse_fields(text.encode(), width, sep.encode()) if width else None
        # Fields that hold separators or newlines make more of them.
        if counts is None or len(counts) != len(records):
            counts = self._located(records)
        self._take([line for line, _ in records], [fields[0] for _, fields in records], counts)

    def _located(self, records: list[Record]) -> Counts:
        """Counts of records, field by field."""
        names = self.names[1:]
        rows = [
            [
                _count(self.file, line, text, name)
                for name, text in zip(names, fields[1:], strict=True)
            ]
            for line, fields in records
        ]
        return np.array(rows, dtype=np.int64).reshape(len(records), len(names))

    def _take(self, lines: Iterable[int], first: list[str], counts: Counts) -> None:
        self.lines.extend(lines)
        self.first += first
        self.parts.append(sparse.csr_matrix(counts))

    def _corpus(self) -> Corpus:
        counts = sparse.vstack(self.parts, format="csr")
        sizes = None if self.exposure is None else np.array(self.sizes)
        is_named = self.names[0] in _UNCOUNTED
        if is_named or any(text.strip() and number_of(text) is None for text in self.first):
            for line, text in zip(self.lines, self.first, strict=True):
                if not text.strip():
                    raise self.file.refuse(line, "the document has no name")
            return Corpus(counts, self.names[1:], self.first, sizes)
        column = [
            _count(self.file, line, text, self.names[0])
            for line, text in zip(self.lines, self.first, strict=True)
        ]
        first = sparse.csr_matrix(np.array(column, dtype=np.int64)[:, None])
        both = sparse.hstack([first, counts], format="csr")
        return Corpus(both, self.names, None, sizes)


class _LongReader:
    """Reads lines of a document, a word and a count by blocks."""

    def __init__(self, file: DelimitedFile, exposure: str | None) -> None:
        self.file, self.exposure = file, exposure
        self.places = [file.header.index(name) for name in LONG_COLUMNS]
        self.place = None if exposure is None else file.header.index(exposure)
        self.documents, self.words = _Numbers(), _Numbers()
        self.rows, self.columns, self.counts = array("q"), array("q"), array("q")
        self.sizes = array("d")

    def read(self) -> Corpus:
        """Sum the lines of each document and word up."""
        n_fields = len(self.file.header)
        while (block := self.file.next_block()) is not None:
            if not self._take_plain(*block):
                self.file.put_back(*block)
                records = self.file.records_of_block(n_fields)
                columns = [
                    list(column) for column in zip(*(r.fields for r in records), strict=True)
                ]
                if records:
                    self._take([record.line for record in records], columns)
        if not self.documents:
            raise FileFormatError(f"{self.file.path} holds no documents")
        words = label_order(self.words)
        place_of = np.empty(len(words), dtype=np.int64)
        place_of[[self.words[word] for word in words]] = np.arange(len(words))
        places = np.array(self.rows), place_of[np.array(self.columns)]
        shape = len(self.documents), len(words)
        matrix = sparse.coo_matrix((np.array(self.counts), places), shape=shape)
        sizes = None if self.exposure is None else self.sizes
        return Corpus(matrix, words, list(self.documents), sizes)

    def _take_plain(self, line: int, block: bytes) -> bool:
        """Take a block in if none of its fields is in quotes and no line is blank or short."""
        dialect, n_fields = self.file.dialect, len(self.file.header)
        block = block.replace(b"\r\n", b"\n")
        text = _decoded(block) if _is_plain(block, dialect) else None
        if text is None or (fields_per_line(block, dialect.sep.encode()) != n_fields).any():
            return False
        # One list of all fields: many small ones would keep the collector of garbage busy.
        fields = text.replace("\n", dialect.sep).split(dialect.sep)
        columns = [fields[place::n_fields] for place in range(n_fields)]
        self._take(range(line, line + len(columns[0])), columns)
        return True

    def _take(self, lines: Sequence[int], columns: list[list[str]]) -> None:
        documents, words, texts = (columns[place] for place in self.places)
        for name, column in zip(LONG_COLUMNS, (documents, words, texts), strict=True):
            if not all(map(str.strip, column)):
                missing = [bool(text.strip()) for text in column].index(False)
                raise self.file.refuse(lines[missing], f"no {name} is given")
        rows = array("q", map(self.documents.__getitem__, documents))
        self.rows.extend(rows)
        self.columns.extend(map(self.words.__getitem__, words))
        if self.place is not None:
            self.sizes.extend([nan] * (len(self.documents) - len(self.sizes)))
            for line, row, text in zip(lines, rows, columns[self.place], strict=True):
                self._take_size(line, row, text)
        counts = parse_fields("\n".join(texts).encode(), 1, self.file.dialect.sep.encode())
        if counts is not None and len(counts) == len(texts):
            self.counts.frombytes(counts.tobytes())
        else:
            name = LONG_COLUMNS[2]
            found = zip(lines, texts, strict=True)
            self.counts.extend([_count(self.file, line, text, name) for line, text in found])

    def _take_size(self, line: int, document: int, text: str) -> None:
        size = _size(self.file, line, text)
        if isnan(self.sizes[document]):
            self.sizes[document] = size
        elif size != self.sizes[document]:
            raise self.file.refuse(
                line,
                f"the lines of document {list(self.documents)[document]!r} have different "
                "exposures; give all lines of a document the same",
            )


class _Numbers(dict[str, int]):
    """A number for each label, in order of appearance."""

    def __missing__(self, label: str) -> int:
        self[label] = number = len(self)
        return number


def _is_plain(block: bytes, dialect: Dialect) -> bool:
    """Whether the lines of a block can be split at separators as bytes of UTF-8."""
    return dialect.encoding == "utf-8" and dialect.quotechar.encode() not in block


def _decoded(block: bytes) -> str | None:
    try:
        return block.decode()
    except UnicodeDecodeError:
        return None


def _read_texts(file: DelimitedFile, exposure: str | None) -> Corpus | None:
    """Count a column of texts of a file that is read anew; None if there is none."""
    pandas = load_pandas("CSV of texts")
    anew = DelimitedFile(file.path, file.dialect)
    n_fields = len(anew.header)
    records = [anew.checked(record, n_fields) for record in anew.records() if record.fields]
    columns: dict[str, Any] = {}
    for place, name in enumerate(anew.header):
        texts = [fields[place] for _, fields in records]
        numbers = [number_of(text) for text in texts]
        are_numbers = None not in numbers and place > 0
        columns[name] = numbers if are_numbers else [text or None for text in texts]
    sizes = None
    if exposure is not None:
        place = anew.header.index(exposure)
        sizes = [_size(anew, line, fields[place]) for line, fields in records]
        del columns[exposure]
    frame = pandas.DataFrame(columns)
    first = next(iter(columns))
    if first in (*_UNCOUNTED, "id") or any(number_of(text or "0") is None for text in frame[first]):
        frame = frame.set_index(first)
    found = texts_of(frame)
    return None if found is None else Corpus(*counted_texts(found), exposure=sizes)


def _count(file: DelimitedFile, line: int, text: str, column: str) -> int:
    """The count of a field."""
    if is_number(text) and (count := int(text)) <= MAX_COUNT:
        return count
    text = text.strip()
    if not text:
        raise file.refuse(line, f"column {column!r} has no count; write 0 where there is none")
    mistake = count_mistake(text)
    if mistake:
        raise file.refuse(line, f"column {column!r}: {mistake}")
    return whole_count(text)


def _size(file: DelimitedFile, line: int, text: str) -> float:
    """The exposure of a field."""
    size = number_of(text)
    if size is None:
        raise file.refuse(line, f"the exposure {text[:_MOST_SHOWN]!r} is no number")
    return size
