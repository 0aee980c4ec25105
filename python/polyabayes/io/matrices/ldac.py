"""LDA-C: one document per line, ``M id:count id:count ...``, with ids counted from 0."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from polyabayes._support import files
from polyabayes.data.corpus import Corpus
from polyabayes.data.counts import MAX_COUNT, Words
from polyabayes.data.names import say
from polyabayes.exceptions import FileFormatError, InvalidArgumentError
from polyabayes.io.integers import COUNT, check_lines, numbers_of, shown
from polyabayes.io.vocabularies import size_of_vocabulary, words_beside

_DOCUMENT = rb"\d{1,18}+(?:[ \t]++\d{1,18}+:%b)*+" % COUNT

# Bytes of a block if memory is limited; its numbers take about twenty times as much.
_STREAMED_BYTES = 2**22


def read_ldac(path: Path, vocabulary: Words | None = None, *, n_words: int | None = None) -> Corpus:
    """Read an LDA-C file, plain or gzipped, or standard input.

    The path "-" is standard input. The default number of words is the largest id plus one. A line
    ``0`` is an empty document.
    """
    size = size_of_vocabulary(vocabulary, n_words)
    if not (parts := list(_rows(path, size))):
        raise FileFormatError(f"{path} holds no documents")
    rows = Rows.joined(parts)
    n_columns = rows.most_words if size is None else size
    files.refuse_announced(path, len(rows.lengths), n_columns)
    return rows.corpus(n_columns, vocabulary)


def ldac_blocks(path: Path, vocabulary: Words | None = None) -> Iterator[Corpus]:
    """Read the documents of an LDA-C file in blocks, so that it may be larger than memory.

    Without a vocabulary, the file is read twice, first for the largest id; standard input then is
    refused.
    """
    if (size := size_of_vocabulary(vocabulary, None)) is None:
        if path == files.STANDARD_INPUT:
            raise InvalidArgumentError("give the vocabulary: standard input shows no size of it")
        size = max((rows.most_words for rows in _rows(path, None, _STREAMED_BYTES)), default=1)
        files.refuse_announced(path, 1, size)
    for rows in _rows(path, size, _STREAMED_BYTES):
        yield rows.corpus(size, vocabulary)


def write_ldac(corpus: Corpus, path: Path) -> None:
    """Write an LDA-C file, gzipped if it ends in ``.gz``, without ids of documents.

    Words, if any, go to a file of the same name with the ending ``.vocab``.
    """
    counts = corpus.counts
    with words_beside(corpus.vocabulary, path), files.replacing(path) as handle:
        for start, stop in zip(counts.indptr[:-1], counts.indptr[1:], strict=True):
            words, values = counts.indices[start:stop].tolist(), counts.data[start:stop].tolist()
            pairs = [f" {word}:{value}" for word, value in zip(words, values, strict=True)]
            handle.write(f"{len(pairs)}{''.join(pairs)}\n".encode())


class Rows(NamedTuple):
    """Rows of documents: number of distinct words, ids and counts."""

    lengths: NDArray[np.int64]
    ids: NDArray[Any]
    counts: NDArray[np.int64]

    @classmethod
    def joined(cls, parts: "Iterable[Rows]") -> "Rows":
        """All documents of some parts."""
        return cls(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))

    @property
    def most_words(self) -> int:
        """The largest id plus one."""
        return int(self.ids.max(initial=0)) + 1

    def corpus(self, n_words: int, vocabulary: Words | None) -> Corpus:
        """The documents over `n_words` words."""
        indptr = np.concatenate(([0], np.cumsum(self.lengths)))
        shape = (len(self.lengths), n_words)
        return Corpus(sparse.csr_matrix((self.counts, self.ids, indptr), shape), vocabulary)


def _rows(path: Path, size: int | None, *n_bytes: int) -> Iterator[Rows]:
    """Documents of a file, in blocks of about `n_bytes`, if given."""
    limit = files.MAX_WORDS if size is None else size
    for first_line, block in files.line_blocks(path, *n_bytes):
        check_lines(path, block, _DOCUMENT, "'M id:count id:count ...' of numbers", first_line)
        lines = block.split(b"\n")
        lengths = np.array([line.count(b":") for line in lines])
        if blank := [n for n, line in enumerate(lines, first_line) if not line.strip()]:
            raise FileFormatError(f"{path}, line {blank[0]}: it is blank; an empty document is 0")
        values, heads = numbers_of(block), np.cumsum(2 * lengths + 1) - 2 * lengths - 1
        ids, counts = np.delete(values, heads).reshape(-1, 2).T
        are_bad, rows = values[heads] != lengths, np.repeat(np.arange(len(lengths)), lengths)
        are_bad[rows[(ids >= limit) | (counts < 1) | (counts > MAX_COUNT)]] = True
        if are_bad.any():
            row = int(np.argmax(are_bad))
            told = f"{path}, line {first_line + row}: {shown(lines[row].decode())!r}"
            raise FileFormatError(say("ldac", told, limit, MAX_COUNT))
        yield Rows(lengths, ids.astype(np.int32), counts.astype(np.int64))
