"""svmlight and libsvm: ``label word:count word:count ...``; labels are ignored."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from polyabayes._support.files import MAX_WORDS, content_of, line_blocks, refuse_announced
from polyabayes.data.corpus import Corpus
from polyabayes.data.counts import MAX_COUNT, Words
from polyabayes.exceptions import FileFormatError, InvalidArgumentError
from polyabayes.io.integers import (
    checked_lines,
    count_mistake,
    is_number,
    parse_integer_lines,
    whole_count,
)
from polyabayes.io.vocabularies import size_of_vocabulary

_COMMENT = re.compile(rb"#[^\n]*")
# Labels and query numbers, which are ignored.
_BEFORE_WORDS = re.compile(rb"(?m)^[ \t]*[^\s:]+(?=\s|\Z)([ \t]+qid:[^\s]+)?")

_Cells = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]


def read_svmlight(
    path: Path,
    vocabulary: Words | None = None,
    *,
    n_words: int | None = None,
    zero_based: bool | Literal["auto"] = "auto",
) -> Corpus:
    """Read a svmlight file, plain or gzipped.

    The default number of words is the largest index. With "auto", indices start at 1 unless an
    index 0 occurs. Repeated words of a line are summed.
    """
    if zero_based not in (True, False, "auto"):
        raise InvalidArgumentError(f"zero_based must be a bool or 'auto', got {zero_based!r}")
    size = size_of_vocabulary(vocabulary, n_words)
    parts = [_cells(path, line, block) for line, block in line_blocks(path)]
    if not parts or not sum(len(lengths) for lengths, _, _ in parts):
        raise FileFormatError(f"{path} cannot be read: it holds no documents")
    lengths, words, counts = (np.concatenate(column) for column in zip(*parts, strict=True))
    if zero_based is False and not words.all():
        raise FileFormatError(f"{path} names the word 0, but its words are counted from 1")
    first = 0 if zero_based is True or (zero_based == "auto" and not words.all()) else 1
    largest = int(words.max(initial=0)) + 1 - first
    if size is not None and largest > size:
        raise FileFormatError(
            f"{path} names the word {largest - 1 + first}: the vocabulary has {size} words"
        )
    size = max(largest, 1) if size is None else size
    refuse_announced(path, len(lengths), size)
    offsets = np.concatenate(([0], np.cumsum(lengths)))
    with content_of(path):
        matrix = sparse.csr_matrix((counts, words - first, offsets), shape=(len(lengths), size))
        return Corpus(matrix, vocabulary)


def _cells(path: Path, first_line: int, block: bytes) -> _Cells:
    """Number of words of each document, and its words and counts as they are written."""
    plain = _COMMENT.sub(b"", block)
    parsed = parse_integer_lines(_BEFORE_WORDS.sub(b"", plain))
    if parsed is not None:
        values, is_count, per_line = parsed.values, parsed.after_colon, parsed.per_line
        pairs = not (per_line % 2).any() and is_count[1::2].all() and not is_count[::2].any()
        words, counts = values[::2], values[1::2]
        if pairs and words.max(initial=0) <= MAX_WORDS and counts.max(initial=0) <= MAX_COUNT:
            filled = [bool(line.strip()) for line in plain.split(b"\n")]
            return per_line[filled] // 2, words, counts
    lengths: list[int] = []
    cells: list[tuple[int, int]] = []
    for line in checked_lines(path, first_line, plain, _mistake):
        if line.strip():
            fields = [field.split(":") for field in _fields(line)]
            cells += [(int(word), whole_count(count)) for word, count in fields]
            lengths.append(len(fields))
    table = np.array(cells, dtype=np.int64).reshape(-1, 2)
    return np.array(lengths, dtype=np.int64), table[:, 0], table[:, 1]


def _fields(line: str) -> list[str]:
    return _BEFORE_WORDS.sub(b"", line.encode()).decode().split()


def _mistake(line: str) -> str | None:
    for field in _fields(line):
        word, colon, count = field.partition(":")
        if not (colon and is_number(word) and int(word) <= MAX_WORDS):
            return (
                f"{field[:80]!r} is not a pair 'word:count', the word a whole number up to "
                f"{MAX_WORDS}"
            )
        if mistake := count_mistake(count):
            return mistake
    return None
