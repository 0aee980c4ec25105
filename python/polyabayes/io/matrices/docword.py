"""UCI bag of words: numbers of documents, words and lines, then lines ``document word count``."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from polyabayes._support.files import line_blocks, refuse_announced
from polyabayes.data.corpus import Corpus
from polyabayes.data.counts import MAX_COUNT, Words
from polyabayes.exceptions import FileFormatError
from polyabayes.io.integers import count_mistake, is_number, parse_counts, whole_count

_N_HEADER_LINES = 3


def read_docword(path: Path, vocabulary: Words | None = None) -> Corpus:
    """Read a UCI ``docword`` file, plain or gzipped; its ids are counted from 1.

    The vocabulary has as many words as the header says; documents without a line are empty.
    """
    header: list[int] = []
    tables: list[NDArray[np.int64]] = []
    for first_line, block in line_blocks(path):
        lines = block.split(b"\n", _N_HEADER_LINES) if not header else [block]
        body_line = first_line
        if not header:
            header = _header(path, lines[:_N_HEADER_LINES])
            lines = lines[_N_HEADER_LINES:]
            body_line += _N_HEADER_LINES
        tables.extend(_table(path, body_line, body, header) for body in lines)
    if not header:
        raise FileFormatError(f"{path} holds no documents")
    n_documents, n_words, n_lines = header
    table = np.concatenate(tables) if tables else np.empty((0, 3), dtype=np.int64)
    if len(table) != n_lines:
        raise FileFormatError(
            f"{path}, line 3: {n_lines} lines are announced, but {len(table)} follow; "
            "the file may be cut short"
        )
    if vocabulary is not None and len(vocabulary) != n_words:
        raise FileFormatError(
            f"{path}, line 2: the file has {n_words} words, the vocabulary {len(vocabulary)}"
        )
    documents, words, counts = table.T
    return Corpus(
        sparse.coo_matrix((counts, (documents - 1, words - 1)), shape=(n_documents, n_words)),
        vocabulary,
    )


def _header(path: Path, lines: list[bytes]) -> list[int]:
    for number, line in enumerate(lines, start=1):
        if not is_number(line.strip()):
            raise FileFormatError(
                f"{path}, line {number}: the first three lines are the numbers of documents, "
                f"words and lines, got {line.decode('utf-8', 'replace')!r}"
            )
    header = [int(line) for line in lines]
    if len(header) < _N_HEADER_LINES:
        raise FileFormatError(f"{path} ends before its three header lines are complete")
    refuse_announced(path, header[0], header[1])
    return header


def _table(path: Path, first_line: int, body: bytes, header: list[int]) -> NDArray[np.int64]:
    """Document, word and count of each line, shape (n_lines, 3)."""
    table = parse_counts(body, 3, with_counts=True)
    if table is not None and ((table >= 1) & (table <= [*header[:2], MAX_COUNT])).all():
        return table
    for number, line in enumerate(body.split(b"\n"), start=first_line):
        fields = line.decode("utf-8", "replace").split()
        if len(fields) != 3 or not all(map(is_number, fields[:2])):
            reason = "is not 'document word count'"
        elif not 1 <= int(fields[0]) <= header[0]:
            reason = f"names a document outside of 1 to {header[0]}"
        elif not 1 <= int(fields[1]) <= header[1]:
            reason = f"names a word outside of 1 to {header[1]}"
        elif count_mistake(fields[2]) or not whole_count(fields[2]):
            reason = f"has a count that is no whole number from 1 to {MAX_COUNT}"
        else:
            continue
        text = line.decode("utf-8", "replace").strip()
        raise FileFormatError(f"{path}, line {number}: {text!r} {reason}")
    raise FileFormatError(f"{path} is not a UCI docword file")
