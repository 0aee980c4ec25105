"""LDA-C: one document per line, ``M id:count id:count ...``, with ids counted from 0."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from polyabayes._support.files import STANDARD_INPUT, line_blocks, refuse_announced, replacing
from polyabayes.data.corpus import Corpus
from polyabayes.data.counts import MAX_COUNT, Words
from polyabayes.exceptions import FileFormatError, InvalidArgumentError
from polyabayes.io.integers import POINT_ZERO, checked_lines, is_number, parse_integer_lines, shown
from polyabayes.io.vocabularies import size_of_vocabulary, words_beside

_MAX_ID = 2**31 - 2

# Bytes of a block if memory is limited; its numbers take about twenty times as much.
_STREAMED_BYTES = 2**22


def read_ldac(path: Path, vocabulary: Words | None = None, *, n_words: int | None = None) -> Corpus:
    """Read an LDA-C file, plain or gzipped, or standard input.

    The path "-" is standard input. The default number of words is the largest id plus one. A line
    ``0`` is an empty document.
    """
    size = size_of_vocabulary(vocabulary, n_words)
    parts = list(_rows(path, size))
    if not parts:
        raise FileFormatError(f"{path} holds no documents")
    rows = _Rows(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))
    n_columns = rows.most_words if size is None else size
    refuse_announced(path, len(rows.lengths), n_columns)
    return rows.corpus(n_columns, vocabulary)


def ldac_blocks(path: Path, vocabulary: Words | None = None) -> Iterator[Corpus]:
    """Read the documents of an LDA-C file in blocks, so that it may be larger than memory.

    Without a vocabulary, the file is read twice, first for the largest id; standard input then is
    refused.
    """
    size = size_of_vocabulary(vocabulary, None)
    if size is None:
        if path == STANDARD_INPUT:
            raise InvalidArgumentError(
                "the number of words of standard input is unknown: give the vocabulary"
            )
        size = max((rows.most_words for rows in _rows(path, None, _STREAMED_BYTES)), default=1)
        refuse_announced(path, 1, size)
    for rows in _rows(path, size, _STREAMED_BYTES):
        yield rows.corpus(size, vocabulary)


def write_ldac(corpus: Corpus, path: Path) -> None:
    """Write an LDA-C file, gzipped if it ends in ``.gz``, without ids of documents.

    Words, if any, go to a file of the same name with the ending ``.vocab``.
    """
    counts = corpus.counts
    with words_beside(corpus.vocabulary, path), replacing(path) as handle:
        for start, stop in zip(counts.indptr[:-1], counts.indptr[1:], strict=True):
            words = counts.indices[start:stop].tolist()
            values = counts.data[start:stop].tolist()
            pairs = [f" {word}:{value}" for word, value in zip(words, values, strict=True)]
            handle.write(f"{len(pairs)}{''.join(pairs)}\n".encode())


class _Rows(NamedTuple):
    """Rows of documents: number of distinct words, ids and counts."""

    lengths: NDArray[np.int64]
    ids: NDArray[np.int32]
    counts: NDArray[np.int64]

    @property
    def most_words(self) -> int:
        """The largest id plus one."""
        return int(self.ids.max(initial=0)) + 1

    def corpus(self, n_words: int, vocabulary: Words | None) -> Corpus:
        """The documents over `n_words` words."""
        indptr = np.concatenate(([0], np.cumsum(self.lengths)))
        shape = (len(self.lengths), n_words)
        return Corpus(sparse.csr_matrix((self.counts, self.ids, indptr), shape), vocabulary)


def _rows(path: Path, size: int | None, *n_bytes: int) -> Iterator[_Rows]:
    """Documents of a file, in blocks of about `size` bytes, if given."""
    limit = _MAX_ID + 1 if size is None else size
    for first_line, block in line_blocks(path, *n_bytes):
        rows = _parse(block, limit)
        if rows is None:
            list(checked_lines(path, first_line, block, partial(_line_error, limit=limit)))
            raise FileFormatError(f"{path} is not an LDA-C file")
        yield rows


def _parse(block: bytes, limit: int) -> _Rows | None:
    """The documents of some lines, or None if one is malformed."""
    # Some programs write integers as floats.
    block = POINT_ZERO.sub(b"", block) if b"." in block else block
    lines = parse_integer_lines(block)
    if lines is None or not (lines.per_line % 2 == 1).all():
        return None
    first = np.cumsum(lines.per_line) - lines.per_line
    position = np.arange(len(lines.values)) - np.repeat(first, lines.per_line)
    is_count = (position > 0) & (position % 2 == 0)
    is_id = position % 2 == 1
    lengths = lines.per_line // 2
    ids, counts = lines.values[is_id], lines.values[is_count]
    if (
        not np.array_equal(is_count, lines.after_colon)
        or not np.array_equal(lines.values[first], lengths)
        or ids.max(initial=-1) >= limit
        or counts.min(initial=1) < 1
        or counts.max(initial=1) > MAX_COUNT
    ):
        return None
    return _Rows(lengths, ids.astype(np.int32), counts)


def _line_error(line: str, limit: int) -> str | None:
    head, *pairs = line.split() or [""]
    if not head:
        return "the line is blank; an empty document is written as 0"
    if not is_number(head):
        return f"{shown(head)!r} is not a number of words; a line is 'M id:count id:count ...'"
    for pair in pairs:
        word, colon, count = pair.partition(":")
        count = POINT_ZERO.sub(b"", count.encode()).decode()
        if not (colon and is_number(word) and is_number(count.removeprefix("-"))):
            return f"{shown(pair)!r} is not an id:count pair; a line is 'M id:count id:count ...'"
        if not 1 <= int(count) <= MAX_COUNT:
            return f"the count of {shown(pair)!r} is not a whole number from 1 to {MAX_COUNT}"
        if int(word) >= limit:
            return (
                f"word id {shown(word)} is outside of the vocabulary of {limit} words; ids are "
                "counted from 0"
            )
    if int(head) != len(pairs):
        return f"{head} words are announced, but {len(pairs)} follow; the line may be cut short"
    return None
