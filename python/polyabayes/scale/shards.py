"""Corpora larger than memory: consecutive documents in folders of arrays that are mapped."""

from __future__ import annotations

import hashlib
import json
import os
import re
import tempfile
import threading
from collections.abc import Container, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from polyabayes._support import checks
from polyabayes._support.files import STANDARD_INPUT, checked_path, reading, replacing, writing
from polyabayes.data import sources
from polyabayes.data.corpus import Corpus, as_corpus
from polyabayes.data.counts import checked_exposure
from polyabayes.exceptions import (
    FileFormatError,
    InvalidArgumentError,
    MissingDependencyError,
    argument,
)
from polyabayes.io.ldac import ldac_blocks
from polyabayes.io.vocabularies import VocabularyLike, resolve_vocabulary

__all__ = ["Shard", "Shards", "read_shards", "write_shards"]

_FORMAT = "polyabayes shards 1"
# Versions that know no exposures must not take such shards for others.
_FORMAT_EXPOSED = "polyabayes shards 2"
_MANIFEST = "manifest.json"
# Arrays of compressed sparse rows, one file each; where documents have exposures, beside these.
ARRAYS = ("indptr", "indices", "data")
_EXPOSURE = "exposure"
_TYPES = {"indptr": "<i8", "indices": "<u4", "data": "<u4", _EXPOSURE: "<f8"}

# Headers of .npy files are Python literals; Python 3.11 fails where two threads parse such at once.
HEADERS = threading.Lock()

_LDAC_SUFFIXES = (".ldac", ".dat", ".lda-c")

# Documents of a block where whole corpora are read in parts, and cells that are copied at once.
_BLOCK_DOCUMENTS = 10_000
_BLOCK_CELLS = 2**22

# Tokens of a shard where no number of shards is asked for: 0.2 GB of arrays at 1.5 tokens a cell.
_TOKENS = 2**25


class Shard(NamedTuple):
    """Consecutive documents of a corpus.

    Attributes
    ----------
    folder : Path
        Where its arrays are.
    first_document, first_token : int
        Documents and tokens of the corpus before it.
    n_documents, n_cells, n_tokens : int
        Size.
    digests : dict of str to str
        SHA-256 of the file of each array.

    Examples
    --------
    >>> import tempfile
    >>> import polyabayes as pb
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     shards = pb.write_shards([[2, 0, 1], [0, 3, 0]], folder, n_shards=2)
    ...     shards[1].corpus().n_tokens
    3
    """

    folder: Path
    first_document: int
    first_token: int
    n_documents: int
    n_cells: int
    n_tokens: int
    n_words: int
    digests: dict[str, str]

    def array(self, name: str) -> NDArray[Any]:
        """One of the arrays of compressed sparse rows, or the exposures, mapped, not read.

        Parameters
        ----------
        name : {"indptr", "indices", "data", "exposure"}
            Which one; exposures where ``"exposure" in shard.digests``.

        Returns
        -------
        ndarray
            A memory map, for reading.

        Raises
        ------
        FileAccessError, FileFormatError
            If its file is missing or of another size than when it was written.

        Examples
        --------
        >>> import tempfile
        >>> import polyabayes as pb
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     shards = pb.write_shards([[2, 0, 1], [0, 3, 0]], folder, n_shards=1)
        ...     shards[0].array("data").tolist()
        [2, 1, 3]
        """
        path = self.folder / f"{name}.npy"
        with reading(path), HEADERS:
            array: NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
        sizes = {"indptr": self.n_documents + 1, _EXPOSURE: self.n_documents}
        size = sizes.get(name, self.n_cells)
        if array.shape != (size,) or array.dtype != np.dtype(_TYPES[name]):
            raise FileFormatError(f"{path} is not the file that was written: shape {array.shape}")
        return array

    def corpus(self) -> Corpus:
        """The documents, in memory.

        Returns
        -------
        Corpus
            Without words and ids.

        Raises
        ------
        FileAccessError, FileFormatError, InvalidCountsError
            If a file is missing or damaged.

        Examples
        --------
        >>> import tempfile
        >>> import polyabayes as pb
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     shards = pb.write_shards([[2, 0, 1], [0, 3, 0]], folder, n_shards=1)
        ...     shards[0].corpus()
        <Corpus: 2 documents, 3 words, 6 tokens>
        """
        indptr, indices, data = (np.array(self.array(name), np.int64) for name in ARRAYS)
        shape = (self.n_documents, self.n_words)
        with reading(self.folder):
            counts = sparse.csr_matrix((data, indices, indptr), shape)
            exposure = np.array(self.array(_EXPOSURE)) if self.is_exposed else None
        return Corpus(counts, exposure=exposure)

    @property
    def is_exposed(self) -> bool:
        """Whether its documents have exposures."""
        return _EXPOSURE in self.digests

    def verify(self) -> None:
        """Compare the files with the checksums of the manifest.

        Raises
        ------
        FileAccessError, FileFormatError
            If a file is missing, or is not the one that was written.

        Examples
        --------
        >>> import tempfile
        >>> import polyabayes as pb
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     shards = pb.write_shards([[2, 0, 1], [0, 3, 0]], folder, n_shards=1)
        ...     shards[0].verify()
        """
        for name, expected in self.digests.items():
            path = self.folder / f"{name}.npy"
            if _digest(path) != expected:
                raise FileFormatError(f"{path} is damaged: its checksum is another; write it again")


@dataclass(frozen=True, repr=False, eq=False)
class Shards:
    """A corpus in a folder, of which no more than a part is in memory.

    Attributes
    ----------
    folder : Path
        Where it is.
    n_documents, n_words, n_tokens : int
        Size of the corpus.
    vocabulary : ndarray of str or None
        The words.
    shards : tuple of Shard
        Its parts, in order.
    longest : int
        Tokens of the longest document.
    replaced_exposure : ndarray of shape (n_documents,) or None
        Exposures that take the place of those in the folder.

    Examples
    --------
    >>> import tempfile
    >>> import polyabayes as pb
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     shards = pb.write_shards([[2, 0, 1], [0, 3, 0]], folder, n_shards=2)
    ...     len(shards), shards.n_tokens
    (2, 6)
    """

    folder: Path
    n_documents: int
    n_words: int
    n_tokens: int
    vocabulary: NDArray[np.object_] | None
    shards: tuple[Shard, ...]
    longest: int
    replaced_exposure: NDArray[np.float64] | None = None

    def __len__(self) -> int:
        return len(self.shards)

    def __iter__(self) -> Iterator[Shard]:
        return iter(self.shards)

    def __getitem__(self, number: int) -> Shard:
        return self.shards[number]

    @property
    def exposure(self) -> NDArray[np.float64] | None:
        """Exposures of all documents, read when they are asked for, or None.

        Examples
        --------
        >>> import tempfile
        >>> import polyabayes as pb
        >>> corpus = pb.Corpus([[2, 0, 1], [0, 3, 0]], exposure=[1.0, 2.5])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     pb.write_shards(corpus, folder).exposure.tolist()
        [1.0, 2.5]
        """
        if self.replaced_exposure is not None:
            return self.replaced_exposure
        if not any(shard.is_exposed for shard in self.shards):
            return None
        return np.concatenate([np.asarray(shard.array(_EXPOSURE)) for shard in self.shards])

    def with_exposure(self, exposure: Any) -> Shards:
        """Give the same documents known sizes, which multiply their Poisson rates.

        Parameters
        ----------
        exposure : float, array of shape (n_documents,), or None
            As of :meth:`Corpus.with_exposure`. The folder stays as it is: so does each
            :class:`Shard` by itself, while :meth:`blocks` and all functions take the new ones.

        Returns
        -------
        Shards

        Raises
        ------
        InvalidArgumentError, InvalidTypeError
            If there is not one positive, finite number for each document.

        Examples
        --------
        >>> import tempfile
        >>> import polyabayes as pb
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     shards = pb.write_shards([[2, 0, 1], [0, 3, 0]], folder)
        ...     shards.with_exposure(2.0).exposure.tolist()
        [2.0, 2.0]
        """
        if exposure is not None:
            checked = checked_exposure(exposure, self.n_documents)
            return replace(self, replaced_exposure=checked)
        digests = ({name: shard.digests[name] for name in ARRAYS} for shard in self.shards)
        pairs = zip(self.shards, digests, strict=True)
        shards = tuple(shard._replace(digests=own) for shard, own in pairs)
        return replace(self, shards=shards, replaced_exposure=None)

    def blocks(self, n_documents: int = _BLOCK_DOCUMENTS) -> Iterator[Corpus]:
        """Consecutive documents, a few in memory at a time.

        Parameters
        ----------
        n_documents : int, default=10000
            Documents of a block at most.

        Returns
        -------
        iterator of Corpus

        Examples
        --------
        >>> import tempfile
        >>> import polyabayes as pb
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     shards = pb.write_shards([[2, 0, 1], [0, 3, 0]], folder, n_shards=1)
        ...     [block.n_tokens for block in shards.blocks(1)]
        [3, 3]
        """
        for shard in self.shards:
            indptr, indices, data = (shard.array(name) for name in ARRAYS)
            for start in range(0, shard.n_documents, n_documents):
                stop = min(start + n_documents, shard.n_documents)
                offsets = np.array(indptr[start : stop + 1], np.int64)
                cells = slice(int(offsets[0]), int(offsets[-1]))
                parts = (np.array(array[cells], np.int64) for array in (data, indices))
                matrix = (*parts, offsets - offsets[0])
                counts = sparse.csr_matrix(matrix, (stop - start, self.n_words))
                exposure = self._exposure(shard, start, stop)
                yield Corpus(counts, self.vocabulary, exposure=exposure)

    def _exposure(self, shard: Shard, start: int, stop: int) -> NDArray[np.float64] | None:
        """Exposures of some documents of a shard."""
        if self.replaced_exposure is not None:
            before = shard.first_document
            return self.replaced_exposure[before + start : before + stop]
        return np.array(shard.array(_EXPOSURE)[start:stop]) if shard.is_exposed else None

    def verify(self) -> None:
        """Compare all files with the checksums of the manifest.

        Raises
        ------
        FileAccessError, FileFormatError
            If one is missing, or is not the one that was written.

        Examples
        --------
        >>> import tempfile
        >>> import polyabayes as pb
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     pb.write_shards([[2, 0, 1], [0, 3, 0]], folder, n_shards=2).verify()
        """
        for shard in self.shards:
            shard.verify()

    def __repr__(self) -> str:
        return (
            f"<Shards: {len(self.shards):,} of {self.n_documents:,} documents, {self.n_words:,} "
            f"words, {self.n_tokens:,} tokens>"
        )


def write_shards(
    corpus: Any,
    folder: str | os.PathLike[str],
    n_shards: int | None = None,
    *,
    layer: str | None = None,
    vocabulary: VocabularyLike | None = None,
) -> Shards:
    """Write a corpus, or a stream of its parts, as shards of about as many tokens.

    A stream is read once, and copied on the disk once: no more than a block of it is in memory.

    Parameters
    ----------
    corpus : Corpus, matrix, AnnData, path or iterable of Corpus or matrix
        The documents, with their exposures where a Corpus has them; or blocks of them in order,
        over the same words; or a file larger than memory: LDA-C, ``.ldac``, ``.dat`` or
        ``.lda-c``, perhaps gzipped; ``.parquet`` with the columns ``document``, ``word`` and
        ``count``, the rows of a document one after another.
    folder : path-like
        Where to write; made where it is missing. What it holds of shards is replaced.
    n_shards : int, optional
        How many; by default of 32 million tokens each.
    layer : str, optional
        Of an AnnData: the layer that holds the counts.
    vocabulary : path or sequence of str, optional
        Of an LDA-C file: the words, as a file with one word a line or as a sequence. Without them
        the file is read twice, the first time for the number of words.

    Returns
    -------
    Shards

    Raises
    ------
    FileAccessError
        If the folder cannot be written, or the file cannot be read. Shards that were in the folder
        stay while the documents are read; no part of the new ones is left.
    FileFormatError
        If the content of the file is not what its name promises; the message names the line.
    InvalidArgumentError, InvalidCountsError, InvalidTypeError
        If there are no documents, blocks differ in their words, or counts are none.

    Examples
    --------
    >>> import tempfile
    >>> import polyabayes as pb
    >>> blocks = ([[2, 0, 1], [0, 3, 0]] for _ in range(3))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     pb.write_shards(blocks, folder, n_shards=2)
    <Shards: 2 of 6 documents, 3 words, 18 tokens>
    """
    path = checked_path(folder, "folder")
    wanted = None if n_shards is None else checks.whole_number("n_shards", n_shards)
    is_new, begun = not path.exists(), False
    with writing(path):
        path.mkdir(parents=True, exist_ok=True)
        scratch = tempfile.TemporaryDirectory(dir=path)
    try:
        with scratch as name:
            spool = _Spool(Path(name))
            for block in _blocks(corpus, layer, vocabulary):
                spool.add(block)
            with writing(path):
                begun = True
                # The folder is no corpus while it has no manifest.
                (path / _MANIFEST).unlink(missing_ok=True)
                return spool.write(path, wanted)
    except BaseException:
        if begun and not (path / _MANIFEST).exists():
            _remove_parts(path)
        if is_new:
            with suppress(OSError):
                path.rmdir()
        raise


def _remove_parts(path: Path, kept: Container[str] = ()) -> None:
    """Remove shards but those of these names, and nothing else that the folder holds."""
    for folder in path.glob("shard-*"):
        if re.fullmatch(r"shard-\d{5,}", folder.name) is None or folder.name in kept:
            continue
        with suppress(OSError):
            for name in (*ARRAYS, _EXPOSURE):
                (folder / f"{name}.npy").unlink(missing_ok=True)
            folder.rmdir()


def read_shards(folder: str | os.PathLike[str]) -> Shards:
    """Open a folder that :func:`write_shards` wrote.

    Parameters
    ----------
    folder : path-like
        The folder. Its arrays are mapped when they are needed.

    Returns
    -------
    Shards

    Raises
    ------
    FileAccessError, FileFormatError
        If there is no manifest, or it is damaged.

    Examples
    --------
    >>> import tempfile
    >>> import polyabayes as pb
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pb.write_shards([[2, 0, 1], [0, 3, 0]], folder)
    ...     pb.read_shards(folder)
    <Shards: 1 of 2 documents, 3 words, 6 tokens>
    """
    path = checked_path(folder, "folder")
    manifest, formats = path / _MANIFEST, (_FORMAT, _FORMAT_EXPOSED)
    with reading(manifest):
        content = json.loads(manifest.read_text(encoding="utf-8"))
        if not isinstance(content, dict) or content.get("format") not in formats:
            raise FileFormatError(f"{manifest} is not of this version of polyabayes")
        n_words, words = int(content["n_words"]), content["vocabulary"]
        shards = tuple(
            Shard(path / one.pop("name"), n_words=n_words, **one) for one in content["shards"]
        )
        vocabulary = None if words is None else np.array(words, dtype=object)
        return Shards(
            path,
            sum(shard.n_documents for shard in shards),
            n_words,
            sum(shard.n_tokens for shard in shards),
            vocabulary,
            shards,
            int(content["longest"]),
        )


def _blocks(corpus: Any, layer: str | None, vocabulary: VocabularyLike | None) -> Iterator[Corpus]:
    """The documents, block by block."""
    is_path = isinstance(corpus, (str, os.PathLike))
    if layer is not None and not sources.is_anndata(corpus):
        raise InvalidArgumentError(f"{argument('layer')} is for an AnnData")
    if vocabulary is not None and not (is_path and _format(Path(corpus)) == "ldac"):
        raise InvalidArgumentError(f"{argument('vocabulary')} is for an LDA-C file")
    if sources.is_anndata(corpus):
        for start in range(0, len(corpus), _BLOCK_DOCUMENTS):
            yield Corpus.from_anndata(corpus[start : start + _BLOCK_DOCUMENTS], layer)
    elif is_path:
        path = checked_path(corpus, "corpus")
        if _format(path) == "ldac":
            yield from ldac_blocks(path, resolve_vocabulary(vocabulary))
        else:
            yield from _parquet_blocks(path)
    elif isinstance(corpus, Iterator):
        for block in corpus:
            yield as_corpus(block, "a block of corpus")
    else:
        yield as_corpus(corpus, "corpus")


def _format(path: Path) -> str:
    """Format of a file that is read block by block, by its name."""
    suffix = Path(path.name.removesuffix(".gz")).suffix
    if suffix in _LDAC_SUFFIXES or path == STANDARD_INPUT:
        return "ldac"
    if path.suffix == ".parquet":
        return "parquet"
    raise InvalidArgumentError(
        f"{path} is not read block by block: {', '.join(_LDAC_SUFFIXES)} and .parquet are; give a "
        "stream of blocks, or read_corpus(path) where the corpus fits into memory"
    )


def _parquet_blocks(path: Path) -> Iterator[Corpus]:
    """Documents of a long table, whose words are found in a first pass."""
    try:
        import pyarrow.parquet as pq
    except ImportError as error:
        raise MissingDependencyError(
            "reading Parquet files needs pyarrow: pip install 'polyabayes[frames]'"
        ) from error
    with reading(path):
        file = pq.ParquetFile(path)
        distinct = (batch[0].unique().to_pylist() for batch in file.iter_batches(columns=["word"]))
        words = sorted({str(word) for some in distinct for word in some})
        column = {word: number for number, word in enumerate(words)}
    vocabulary = np.array(words, dtype=object)
    left: list[tuple[Any, int, int]] = []
    with reading(path):
        for batch in file.iter_batches(columns=["document", "word", "count"]):
            names, counts = batch["document"].to_pylist(), batch["count"].to_pylist()
            numbers = [column[str(word)] for word in batch["word"].to_pylist()]
            left.extend(zip(names, numbers, counts, strict=True))
            # The last document may go on in the next batch.
            last, start = left[-1][0], len(left)
            while start and left[start - 1][0] == last:
                start -= 1
            if start:
                yield _long_block(left[:start], vocabulary)
            left = left[start:]
    if left:
        yield _long_block(left, vocabulary)


def _long_block(cells: list[tuple[Any, int, int]], vocabulary: NDArray[np.object_]) -> Corpus:
    names = [name for name, _, _ in cells]
    rows = np.cumsum([0, *(one != other for one, other in pairwise(names))])
    columns, counts = (np.array([cell[ix] for cell in cells]) for ix in (1, 2))
    shape = (int(rows[-1]) + 1, len(vocabulary))
    return Corpus(sparse.csr_matrix((counts, (rows, columns)), shape), vocabulary)


class _Spool:
    """Rows of a corpus in files without heads, until it is known how to divide them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lengths: list[NDArray[np.int64]] = []
        self._cells: list[NDArray[np.int64]] = []
        self._exposures: list[NDArray[np.float64]] = []
        self._n_words: int | None = None
        self._vocabulary: NDArray[np.object_] | None = None

    def add(self, block: Corpus) -> None:
        """Append documents."""
        if self._n_words is None:
            self._n_words, self._vocabulary = block.n_words, block.vocabulary
        first, other = self._vocabulary, block.vocabulary
        same = first is None or other is None or np.array_equal(first, other)
        if block.n_words != self._n_words or not same:
            raise InvalidArgumentError(
                "blocks of a corpus must have the same words, but one has "
                f"{block.n_words:,} and the first {self._n_words:,}, or others"
            )
        counts = block.counts
        ones = np.ones(block.n_documents)
        self._exposures.append(ones if block.exposure is None else block.exposure)
        self._lengths.append(np.asarray(counts.sum(axis=1), np.int64).ravel())
        self._cells.append(np.diff(counts.indptr).astype(np.int64))
        for name in ARRAYS[1:]:
            array = np.ascontiguousarray(getattr(counts, name), _TYPES[name])
            with writing(self._folder.parent), (self._folder / name).open("ab") as stream:
                stream.write(array.data)

    def write(self, path: Path, n_shards: int | None) -> Shards:
        """Divide the documents, and write shards and manifest."""
        if self._n_words is None:
            raise InvalidArgumentError(f"{argument('corpus')} holds no documents")
        lengths, cells = np.concatenate(self._lengths), np.concatenate(self._cells)
        n_tokens = int(lengths.sum())
        n_shards = max(1, round(n_tokens / _TOKENS)) if n_shards is None else n_shards
        starts = even_cuts(lengths, n_shards)
        offsets = np.concatenate([[0], np.cumsum(cells)])
        tokens = np.concatenate([[0], np.cumsum(lengths)])
        exposures = np.concatenate(self._exposures)
        names = ARRAYS if (exposures == 1.0).all() else (*ARRAYS, _EXPOSURE)
        entries = []
        for number, (start, stop) in enumerate(pairwise(starts)):
            name = f"shard-{number:05d}"
            folder = path / name
            folder.mkdir(exist_ok=True)
            self._write_rows(folder, offsets[start : stop + 1])
            (folder / f"{_EXPOSURE}.npy").unlink(missing_ok=True)
            if _EXPOSURE in names:
                with replacing(folder / f"{_EXPOSURE}.npy") as stream:
                    own = exposures[start:stop].astype(_TYPES[_EXPOSURE])
                    np.save(stream, own, allow_pickle=False)
            entry: dict[str, Any] = {
                "name": name,
                "first_document": start,
                "first_token": int(tokens[start]),
                "n_documents": stop - start,
                "n_cells": int(offsets[stop] - offsets[start]),
                "n_tokens": int(tokens[stop] - tokens[start]),
                "digests": {array: _digest(folder / f"{array}.npy") for array in names},
            }
            entries.append(entry)
        words = None if self._vocabulary is None else self._vocabulary.tolist()
        manifest = {
            "format": _FORMAT if names == ARRAYS else _FORMAT_EXPOSED,
            "n_words": self._n_words,
            "longest": int(lengths.max(initial=0)),
            "vocabulary": words,
            "shards": entries,
        }
        with replacing(path / _MANIFEST) as stream:
            stream.write(json.dumps(manifest, ensure_ascii=False).encode())
        _remove_parts(path, {entry["name"] for entry in entries})
        return read_shards(path)

    def _write_rows(self, folder: Path, offsets: NDArray[np.int64]) -> None:
        with replacing(folder / "indptr.npy") as stream:
            np.save(stream, (offsets - offsets[0]).astype(_TYPES["indptr"]), allow_pickle=False)
        first, last = int(offsets[0]), int(offsets[-1])
        for name in ARRAYS[1:]:
            path, dtype = self._folder / name, np.dtype(_TYPES[name])
            with replacing(folder / f"{name}.npy") as stream, path.open("rb") as source:
                head = {"descr": dtype.str, "fortran_order": False, "shape": (last - first,)}
                np.lib.format.write_array_header_1_0(stream, head)
                source.seek(first * dtype.itemsize)
                for start in range(first, last, _BLOCK_CELLS):
                    n_cells = min(_BLOCK_CELLS, last - start)
                    stream.write(source.read(n_cells * dtype.itemsize))


def even_cuts(lengths: NDArray[np.int64], n_shards: int) -> list[int]:
    """First documents of shards of about as many tokens, and the end; none is empty."""
    n_shards = min(n_shards, len(lengths))
    ends = np.cumsum(lengths + 1)
    aims = ends[-1] * np.arange(1, n_shards) / n_shards
    cuts = np.searchsorted(ends, aims) + 1
    # Every shard has a document, also where one document is longer than a shard.
    for number in range(len(cuts)):
        least = number + 1 if number == 0 else cuts[number - 1] + 1
        cuts[number] = min(max(cuts[number], least), len(lengths) - (n_shards - 1 - number))
    return [0, *cuts.tolist(), len(lengths)]


def _digest(path: Path) -> str:
    digest = hashlib.sha256()
    with reading(path), path.open("rb") as stream:
        while part := stream.read(2**24):
            digest.update(part)
    return digest.hexdigest()
