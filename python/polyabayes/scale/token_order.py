"""The order of a shard's tokens by word, found once for a run: sweeps over them sort nothing.

Tokens are swept in blocks of consecutive documents, word after word. A file beside the topics of
the tokens tells which documents the tokens of each word belong to.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from polyabayes import _core
from polyabayes._support.files import reading, replacing
from polyabayes.scale.array_files import align, append_arrays, damaged, mapped_array
from polyabayes.scale.exposures import Exposures
from polyabayes.scale.shards import ARRAYS, HEADERS, Shard

__all__ = ["Blocks", "TokenOrder", "rows", "write_order"]

# Tokens of a block: enough of each word to make up for reading its weights, few enough for the
# counts of their documents to stay in the cache; more where the vocabulary is so large that the
# first tokens of its words would take more memory than the tokens.
_BLOCK_TOKENS = 2**19
_TOKENS_PER_WORD = 2
# Their numbers take 16 bits.
_MOST_DOCUMENTS = 2**16
# Cells that are read at once.
_CELLS = 2**20
_CHECKSUM_BYTES = 4


class Blocks(NamedTuple):
    """Blocks of documents and the order of their tokens, as the compiled core reads them.

    Attributes
    ----------
    n_documents : ndarray of uint64, shape (n_blocks,)
        Documents of each block.
    word_starts : ndarray of uint32, shape (n_blocks, n_words + 1)
        First token of each word, counted from the block's first, and the end.
    token_documents : ndarray of uint16, shape (n_tokens,)
        Document of each token, counted from the block's first.
    documents_before : int
        Documents of the corpus before them.
    longest : int
        Tokens of the longest document of the corpus.
    documents : Documents or None
        Their counts, where these are read.
    """

    n_documents: NDArray[np.uint64]
    word_starts: NDArray[np.uint32]
    token_documents: NDArray[np.uint16]
    documents_before: int
    longest: int
    documents: _core.Documents | None


class TokenOrder:
    """The order of a shard's tokens in a file, mapped."""

    def __init__(self, path: Path, shard: Shard) -> None:
        self._shard, self._path = shard, path
        with reading(path), HEADERS, path.open("rb") as stream:
            self._tokens: NDArray[np.uint16] = mapped_array(stream, path)
            self._starts: NDArray[np.uint32] = mapped_array(stream, path)
            self._n_documents: NDArray[np.uint64] = mapped_array(stream, path)
            self._checksum = int.from_bytes(stream.read(_CHECKSUM_BYTES), "little")
        shape = (len(self._n_documents), shard.n_words + 1)
        if self._starts.shape != shape or self._tokens.shape != (shard.n_tokens,):
            raise damaged(path)
        ends = int(self._n_documents.sum()), int(self._starts[:, -1].sum(dtype=np.int64))
        if ends != (shard.n_documents, shard.n_tokens):
            raise damaged(path)

    def verify(self) -> Self:
        """Compare the file with its checksum."""
        checksum = 0
        for part in (self._tokens, self._starts, self._n_documents):
            checksum = zlib.crc32(np.ascontiguousarray(part).data, checksum)
        if checksum != self._checksum:
            raise damaged(self._path)
        return self

    def groups(
        self,
        n_blocks: int,
        longest: int,
        *,
        counts: bool = False,
        exposures: Exposures | None = None,
    ) -> Iterator[Blocks]:
        """All blocks, so many at a time; with the documents themselves where `counts` is set."""
        shard, first_document, first = self._shard, 0, 0
        for start in range(0, len(self._n_documents), n_blocks):
            chosen = slice(start, start + n_blocks)
            n_documents, starts = self._n_documents[chosen], self._starts[chosen]
            last_document = first_document + int(n_documents.sum())
            last = first + int(starts[:, -1].sum(dtype=np.int64))
            yield Blocks(
                n_documents,
                starts,
                self._tokens[first:last],
                shard.first_document + first_document,
                longest,
                rows(shard, first_document, last_document, exposures) if counts else None,
            )
            first_document, first = last_document, last


def write_order(path: Path, shard: Shard) -> NDArray[np.uint32]:
    """Find the order of a shard's tokens, unless it is there; give the lengths of documents."""
    lengths = np.concatenate([np.zeros(0, np.int64), *_lengths(shard)], dtype=np.int64)
    if path.exists():
        TokenOrder(path, shard).verify()
        return lengths.astype(np.uint32)
    starts = [np.zeros((0, shard.n_words + 1), np.uint32)]
    with replacing(path) as stream:
        head = {"descr": "<u2", "fortran_order": False, "shape": (shard.n_tokens,)}
        np.lib.format.write_array_header_1_0(stream, head)
        cuts = _cuts(lengths, max(_BLOCK_TOKENS, _TOKENS_PER_WORD * shard.n_words))
        n_documents = np.diff(cuts).astype("<u8")
        checksum = 0
        for start, stop in pairwise(cuts):
            of_words, documents = _core.order_tokens(rows(shard, start, stop))
            starts.append(of_words[np.newaxis])
            content = documents.astype("<u2", copy=False).data
            checksum = zlib.crc32(content, checksum)
            stream.write(content)
        align(stream)
        arrays = np.concatenate(starts).astype("<u4", copy=False), n_documents
        for array in arrays:
            checksum = zlib.crc32(array.data, checksum)
        append_arrays(stream, arrays)
        stream.write(checksum.to_bytes(_CHECKSUM_BYTES, "little"))
    return lengths.astype(np.uint32)


def rows(
    shard: Shard, start: int, stop: int, exposures: Exposures | None = None
) -> _core.Documents:
    """Documents of a shard, in memory, with their exposures where those of all are given."""
    indptr, indices, data = (np.asarray(shard.array(name)) for name in ARRAYS)
    cells = slice(int(indptr[start]), int(indptr[stop]))
    offsets = indptr[start : stop + 1] - indptr[start]
    before = shard.first_document
    exposure = None if exposures is None else exposures.of(before + start, before + stop)
    return _core.Documents.narrow(shard.n_words, offsets, indices[cells], data[cells], exposure)


def _lengths(shard: Shard) -> Iterator[NDArray[np.uint64]]:
    """Tokens of the documents of a shard, some documents at a time."""
    indptr = np.asarray(shard.array("indptr"))
    start = 0
    while start < shard.n_documents:
        stop = int(np.searchsorted(indptr, indptr[start] + _CELLS, "right")) - 1
        stop = min(max(stop, start + 1), shard.n_documents)
        yield rows(shard, start, stop).lengths()
        start = stop


def _cuts(lengths: NDArray[np.int64], n_tokens: int) -> list[int]:
    """First documents of blocks of at most so many tokens or one document, and the end."""
    ends = np.cumsum(lengths)
    cuts = [0]
    while cuts[-1] < len(lengths):
        start = cuts[-1]
        before = int(ends[start - 1]) if start else 0
        stop = int(np.searchsorted(ends, before + n_tokens, "right"))
        cuts.append(min(max(stop, start + 1), start + _MOST_DOCUMENTS))
    return cuts
