"""UCI bag of words: numbers of documents, words and lines, then lines ``document word count``."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from polyabayes._support.files import line_blocks, refuse_announced
from polyabayes.data.corpus import Corpus
from polyabayes.data.counts import MAX_COUNT, Words
from polyabayes.exceptions import FileFormatError
from polyabayes.io.integers import count_mistake, is_number, read_cells, shown, whole_count

_N_HEADER_LINES = 3


def read_docword(path: Path, vocabulary: Words | None = None) -> Corpus:
    """Read a UCI ``docword`` file, plain or gzipped; its ids are counted from 1.

    The vocabulary has as many words as the header says; documents without a line are empty.
    """
    header: list[int] = []
    tables: list[NDArray[np.int64]] = []
    for first_line, block in line_blocks(path):
        line, body = first_line, block
        if not header:
            *head, body = [*block.split(b"\n", _N_HEADER_LINES), b""][: _N_HEADER_LINES + 1]
            header = _header(path, head)
            line += _N_HEADER_LINES
        mistake = partial(_mistake, header=header)
        limits = [(1, header[0]), (1, header[1]), (1, MAX_COUNT)]
        tables.append(read_cells(path, line, body, limits, mistake))
    if not header:
        raise FileFormatError(f"{path} holds no documents")
    n_documents, n_words, n_lines = header
    table = np.concatenate(tables)
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
                f"words and lines, got {shown(line.decode('utf-8', 'replace'))!r}"
            )
    header = [int(line) for line in lines]
    if len(header) < _N_HEADER_LINES:
        raise FileFormatError(f"{path} ends before its three header lines are complete")
    refuse_announced(path, header[0], header[1])
    return header


def _mistake(fields: list[str], header: list[int]) -> str | None:
    if len(fields) != 3 or not all(map(is_number, fields[:2])):
        reason = "is not 'document word count'"
    elif not 1 <= int(fields[0]) <= header[0]:
        reason = f"names a document outside of 1 to {header[0]}"
    elif not 1 <= int(fields[1]) <= header[1]:
        reason = f"names a word outside of 1 to {header[1]}"
    elif count_mistake(fields[2]) or not whole_count(fields[2]):
        reason = f"has a count that is no whole number from 1 to {MAX_COUNT}"
    else:
        return None
    return f"{shown(' '.join(fields))!r} {reason}"
