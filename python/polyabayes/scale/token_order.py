"""Order of a shard's tokens by word, computed once per run, so that sweeps need no sorting.

Tokens are swept in blocks of consecutive documents, word by word. A file next to the topics of the
tokens holds the documents of the tokens of each word.
"""

from collections.abc import Iterator
from itertools import islice, pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from polyabayes import _core
from polyabayes._support.arrays import Floats, Integers
from polyabayes._support.files import is_there
from polyabayes.scale.sealed import SealedReader, damaged, sealing
from polyabayes.scale.shard import Shard

# Tokens of a block: enough of each word to amortise reading its weights, few enough that counts of
# documents stay in the cache. With large vocabularies, blocks are larger, so that pointers to the
# first tokens of words take less memory than the tokens.
_BLOCK_TOKENS = 2**19
_TOKENS_PER_WORD = 2
# Numbers of documents in a block have 16 bits.
_MOST_DOCUMENTS = 2**16
# Cells per read.
_CELLS = 2**20

# Documents of a block, first tokens of its words, and documents of its tokens.
_Order = tuple[NDArray[np.uint64], NDArray[np.uint32], NDArray[np.uint16]]


class Exposures(NamedTuple):
    """Exposures of all documents.

    `values` are the distinct exposures, increasing; `numbers` has the index of each document.
    """

    values: Floats
    numbers: NDArray[np.uint32]


def numbered(exposure: Floats | None) -> Exposures | None:
    """Exposures by their numbers; None where all are 1, which is the same as none."""
    if exposure is None or (exposure == 1.0).all():
        return None
    values, numbers = np.unique(exposure, return_inverse=True)
    return Exposures(values, numbers.astype(np.uint32))


class Blocks(NamedTuple):
    """Blocks of documents and the order of their tokens, for the compiled core.

    `word_starts` is blocks x (words + 1): the first token of each word, counted from the first of
    the block, and the end. `token_documents` are counted from the first document of the block.
    `documents_before` is the number of earlier documents of the corpus; `sizes` are the tokens
    of its longest document, all its tokens, and its cells that are not zero. `documents` holds
    counts if there are exposures.
    """

    n_documents: NDArray[np.uint64]
    word_starts: NDArray[np.uint32]
    token_documents: NDArray[np.uint16]
    documents_before: int
    sizes: tuple[int, int, int]
    documents: _core.Documents | None


def block_groups(
    path: Path,
    shard: Shard,
    n_blocks: int,
    sizes: tuple[int, int, int],
    exposures: Exposures | None = None,
) -> Iterator[Blocks]:
    """Blocks of a shard, `n_blocks` at a time, in the order from :func:`write_order`."""
    first, blocks = 0, _read(path, shard)
    while group := list(islice(blocks, n_blocks)):
        n_documents, starts, tokens = map(np.concatenate, zip(*group, strict=True))
        last, before = first + int(n_documents.sum()), shard.first_document + first
        documents = None if exposures is None else _rows(shard, first, last, exposures)
        starts = starts.reshape(len(n_documents), -1)
        yield Blocks(n_documents, starts, tokens, before, sizes, documents)
        first = last


def write_order(path: Path, shard: Shard) -> NDArray[np.uint32]:
    """Write the order of a shard's tokens, unless it exists; return the lengths of documents."""
    lengths = np.concatenate([np.zeros(0, np.int64), *_lengths(shard)], dtype=np.int64)
    if is_there(path):
        for _ in _read(path, shard):
            pass
        return lengths.astype(np.uint32)
    cuts = _cuts(lengths, max(_BLOCK_TOKENS, _TOKENS_PER_WORD * shard.n_words))
    with sealing(path) as write:
        for start, stop in pairwise(cuts):
            starts, documents = _core.order_tokens(_rows(shard, start, stop))
            for array in (np.array([stop - start], np.uint64), starts, documents):
                write(array)
    return lengths.astype(np.uint32)


def _read(path: Path, shard: Shard) -> Iterator[_Order]:
    """The order of the tokens of each block."""
    n_documents = n_tokens = 0
    with SealedReader(path) as file:
        while file.n_left:
            size = file.read(1, np.uint64)
            starts = file.read(shard.n_words + 1, np.uint32)
            tokens = file.read(int(starts[-1]), np.uint16)
            n_documents, n_tokens = n_documents + int(size[0]), n_tokens + len(tokens)
            if n_documents > shard.n_documents:
                raise damaged(path)
            yield size, starts, tokens
        file.read(0, np.uint8)
    if (n_documents, n_tokens) != (shard.n_documents, shard.n_tokens):
        raise damaged(path)


def _rows(
    shard: Shard, start: int, stop: int, exposures: Exposures | None = None
) -> _core.Documents:
    """Documents of a shard, with their exposures if given."""
    exposure, before = None, shard.first_document
    if exposures is not None:
        exposure = exposures.values[exposures.numbers[before + start : before + stop]]
    return _core.Documents(shard.n_words, *shard.cells(start, stop), exposure)


def _lengths(shard: Shard) -> Iterator[NDArray[np.uint64]]:
    """Lengths of the documents of a shard, read in parts."""
    offsets = shard.array("indptr")
    start = 0
    while start < shard.n_documents:
        stop = int(np.searchsorted(offsets, offsets[start] + _CELLS, "right")) - 1
        stop = min(max(stop, start + 1), shard.n_documents)
        yield _rows(shard, start, stop).lengths()
        start = stop


def _cuts(lengths: Integers, n_tokens: int) -> list[int]:
    """First documents of blocks of at most `n_tokens` tokens (or one document), and the end."""
    ends = np.cumsum(lengths)
    cuts = [0]
    while cuts[-1] < len(lengths):
        start = cuts[-1]
        before = int(ends[start - 1]) if start else 0
        stop = int(np.searchsorted(ends, before + n_tokens, "right"))
        cuts.append(min(max(stop, start + 1), start + _MOST_DOCUMENTS))
    return cuts
