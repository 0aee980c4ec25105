"""Writing corpora and streams of documents as shards."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Container, Iterator
from contextlib import ExitStack, suppress
from itertools import chain, islice, pairwise, repeat
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polyabayes._support import checks
from polyabayes._support.files import STANDARD_INPUT, checked_path, reading, replacing, writing
from polyabayes.data import sources
from polyabayes.data.corpus import Corpus, as_corpus, of_layer
from polyabayes.data.metadata import joined_metadata, metadata_bytes
from polyabayes.exceptions import InvalidArgumentError, argument
from polyabayes.io.ldac import ldac_blocks
from polyabayes.io.tabular.parquet import parquet_blocks
from polyabayes.io.vocabularies import VocabularyLike, resolve_vocabulary
from polyabayes.scale.scratch import remove_unfinished, scratch_folder
from polyabayes.scale.shard import ARRAYS, EXPOSURE, IDS, METADATA, TYPES, digest_of
from polyabayes.scale.shards import (
    BLOCK_DOCUMENTS,
    FORMAT,
    MANIFEST,
    Shards,
    even_cuts,
    read_shards,
    sealed_manifest,
)

_LDAC_SUFFIXES = (".ldac", ".dat", ".lda-c")

# Cells per copy.
_BLOCK_CELLS = 2**22

# Default number of tokens of a shard: 0.2 GB of arrays at 1.5 tokens per cell.
_TOKENS = 2**25


def write_shards(
    corpus: Any,
    folder: str | os.PathLike[str],
    n_shards: int | None = None,
    *,
    layer: str | None = None,
    vocabulary: VocabularyLike | None = None,
) -> Shards:
    """Write a corpus, or a stream of its parts, as shards with about equally many tokens.

    A stream is read once and copied once on the disk; at most one block of it is in memory.

    Parameters
    ----------
    corpus : Corpus, matrix, AnnData, path or iterable of Corpus or matrix
        One of:

        * documents in memory; exposures, ids and metadata of a Corpus are kept;
        * a stream of texts, lists of tokens or bags, which is gathered in memory;
        * a stream of blocks of documents over the same words;
        * a file, which may be larger than memory: LDA-C (``.ldac``, ``.dat`` or ``.lda-c``, plain
          or gzipped), or ``.parquet`` with the columns ``document``, ``word`` and ``count``, with
          the rows of a document next to each other.
    folder : path-like
        Folder to write to; created if missing. Shards in it are replaced.
    n_shards : int, optional
        Number of shards; default: 32 million tokens per shard.
    layer : str, optional
        Layer of an AnnData that holds the counts; default ``X``.
    vocabulary : path or sequence of str, optional
        For an LDA-C file: the words, as a sequence or a file with one word per line. Without it,
        the file is read twice, first for the number of words.

    Returns
    -------
    Shards

    Raises
    ------
    FileAccessError
        If the folder cannot be written, or the file cannot be read. Earlier shards in the folder
        stay until all documents are read; no part of the new shards is left.
    FileFormatError
        If the content of the file does not match its format; the message names the line.
    InvalidArgumentError, InvalidCountsError, InvalidTypeError
        If there are no documents, blocks differ in their words, or counts are invalid.

    Examples
    --------
    >>> blocks = ([[2, 0, 1], [0, 3, 0]] for _ in range(3))
    >>> pb.write_shards(blocks, folder, n_shards=2)
    <Shards: 2 of 6 documents, 3 words, 18 tokens>
    """
    path = checked_path(folder, "folder")
    wanted = None if n_shards is None else checks.whole_number("n_shards", n_shards)
    is_new, begun = not path.exists(), False
    try:
        with ExitStack() as stack:
            with writing(path):
                path.mkdir(parents=True, exist_ok=True)
                remove_unfinished(path, MANIFEST)
                scratch = stack.enter_context(scratch_folder(path, "writing-"))
            spool = _Spool(scratch)
            for block in _blocks(corpus, layer, vocabulary):
                spool.add(block)
            with writing(path):
                begun = True
                # A folder that has no manifest is not a corpus.
                (path / MANIFEST).unlink(missing_ok=True)
                return spool.write(path, wanted)
    except BaseException:
        if begun and not (path / MANIFEST).exists():
            _remove_parts(path)
        if is_new:
            with suppress(OSError):
                path.rmdir()
        raise


def _remove_parts(path: Path, kept: Container[str] = ()) -> None:
    """Remove shards except those in `kept`, and nothing else in the folder."""
    for folder in path.glob("shard-*"):
        if re.fullmatch(r"shard-\d{5,}", folder.name) is None or folder.name in kept:
            continue
        with suppress(OSError):
            remove_unfinished(folder, ".npy")
            for name in TYPES:
                (folder / f"{name}.npy").unlink(missing_ok=True)
            folder.rmdir()


def _blocks(corpus: Any, layer: str | None, vocabulary: VocabularyLike | None) -> Iterator[Corpus]:
    """The documents, block by block."""
    is_path = isinstance(corpus, (str, os.PathLike))
    if not sources.is_anndata(corpus):
        of_layer(corpus, layer)
    if vocabulary is not None and not (is_path and _format(Path(corpus)) == "ldac"):
        raise InvalidArgumentError(f"{argument('vocabulary')} is for an LDA-C file")
    if sources.is_anndata(corpus):
        for start in range(0, len(corpus), BLOCK_DOCUMENTS):
            yield Corpus.from_anndata(corpus[start : start + BLOCK_DOCUMENTS], layer)
    elif is_path:
        path = checked_path(corpus, "corpus")
        if _format(path) == "ldac":
            yield from ldac_blocks(path, resolve_vocabulary(vocabulary))
        else:
            yield from parquet_blocks(path)
    elif isinstance(corpus, Iterator) or sources.is_stream(corpus):
        stream = iter(corpus)
        first = list(islice(stream, 1))
        parts = chain(first, stream)
        if any(map(sources.is_document, first)):
            # Words are known only after the last document if there is no vocabulary.
            yield as_corpus(parts, "corpus")
        else:
            yield from (as_corpus(block, "a block of corpus") for block in parts)
    else:
        yield as_corpus(corpus, "corpus")


def _format(path: Path) -> str:
    """Format of a file that is read in blocks, by its name."""
    suffix = Path(path.name.removesuffix(".gz")).suffix
    if suffix in _LDAC_SUFFIXES or path == STANDARD_INPUT:
        return "ldac"
    if path.suffix == ".parquet":
        return "parquet"
    raise InvalidArgumentError(
        f"{path} cannot be read in blocks, only {', '.join(_LDAC_SUFFIXES)} and .parquet; give a "
        "stream of blocks, or read_corpus(path) if the corpus fits into memory"
    )


class _Spool:
    """Rows of a corpus in raw files, until their division into shards is known."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lengths: list[NDArray[np.int64]] = []
        self._cells: list[NDArray[np.int64]] = []
        self._exposures: list[NDArray[np.float64]] = []
        self._has_ids = True
        self._metadata: list[Any] | None = []
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
            self._append(name, np.ascontiguousarray(getattr(counts, name), TYPES[name]).data)
        self._has_ids &= block.ids is not None
        if self._has_ids and block.ids is not None:
            # One line each: JSON in ASCII has no newline.
            self._append(IDS, b"".join(json.dumps(name).encode() + b"\n" for name in block.ids))

        if block.metadata is None:
            self._metadata = None
        elif self._metadata is not None:
            self._metadata.append(block.metadata)

    def _append(self, name: str, content: Any) -> None:
        with writing(self._folder.parent), (self._folder / name).open("ab") as stream:
            stream.write(content)

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
        metadata = None if self._metadata is None else joined_metadata(self._metadata)
        is_there = {
            EXPOSURE: (exposures != 1.0).any(),
            IDS: self._has_ids,
            METADATA: metadata is not None,
        }
        names = (*ARRAYS, *(name for name in is_there if is_there[name]))
        entries = []
        parts = zip(pairwise(starts), self._listed_ids(starts), strict=True)
        for number, ((start, stop), ids) in enumerate(parts):
            name = f"shard-{number:05d}"
            folder = path / name
            folder.mkdir(exist_ok=True)
            remove_unfinished(folder, ".npy")
            self._write_rows(folder, offsets[start : stop + 1])
            for array in is_there:
                (folder / f"{array}.npy").unlink(missing_ok=True)
            if EXPOSURE in names:
                _write_array(folder, EXPOSURE, exposures[start:stop])
            if ids is not None:
                _write_array(folder, IDS, np.frombuffer(ids, np.uint8))
            if metadata is not None:
                table = metadata_bytes(metadata.iloc[start:stop])
                _write_array(folder, METADATA, np.frombuffer(table, np.uint8))
            entry: dict[str, Any] = {
                "name": name,
                "first_document": start,
                "first_token": int(tokens[start]),
                "n_documents": stop - start,
                "n_cells": int(offsets[stop] - offsets[start]),
                "n_tokens": int(tokens[stop] - tokens[start]),
                "digests": {array: digest_of(folder / f"{array}.npy") for array in names},
            }
            entries.append(entry)
        words = None if self._vocabulary is None else self._vocabulary.tolist()
        manifest = {
            "format": FORMAT,
            "n_words": self._n_words,
            "longest": int(lengths.max(initial=0)),
            "vocabulary": words,
            "shards": entries,
        }
        with replacing(path / MANIFEST) as stream:
            stream.write(json.dumps(sealed_manifest(manifest), ensure_ascii=False).encode())
        _remove_parts(path, {entry["name"] for entry in entries})
        return read_shards(path)

    def _listed_ids(self, starts: list[int]) -> Iterator[bytes | None]:
        """The ids of each shard as JSON; None without ids."""
        if not self._has_ids:
            yield from repeat(None, len(starts) - 1)
            return
        with reading(self._folder), (self._folder / IDS).open("rb") as lines:
            for start, stop in pairwise(starts):
                yield b"[" + b",".join(islice(lines, stop - start)) + b"]"

    def _write_rows(self, folder: Path, offsets: NDArray[np.int64]) -> None:
        _write_array(folder, "indptr", offsets - offsets[0])
        first, last = int(offsets[0]), int(offsets[-1])
        for name in ARRAYS[1:]:
            path, dtype = self._folder / name, np.dtype(TYPES[name])
            with replacing(folder / f"{name}.npy") as stream, path.open("rb") as source:
                head = {"descr": dtype.str, "fortran_order": False, "shape": (last - first,)}
                np.lib.format.write_array_header_1_0(stream, head)
                source.seek(first * dtype.itemsize)
                for start in range(first, last, _BLOCK_CELLS):
                    n_cells = min(_BLOCK_CELLS, last - start)
                    stream.write(source.read(n_cells * dtype.itemsize))


def _write_array(folder: Path, name: str, values: NDArray[Any]) -> None:
    with replacing(folder / f"{name}.npy") as stream:
        np.save(stream, values.astype(TYPES[name]), allow_pickle=False)
