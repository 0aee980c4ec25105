"""Writing blocks of documents as shards."""

import json
import re
from collections.abc import Container, Iterable, Iterator
from contextlib import ExitStack, suppress
from itertools import islice, pairwise, repeat
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polyabayes._support.arrays import Floats, Integers
from polyabayes._support.files import reading, remove_unfinished, replacing, writing
from polyabayes._support.storage.frames import frame_bytes
from polyabayes.data.corpus import Corpus
from polyabayes.data.metadata import joined_metadata
from polyabayes.exceptions import FileAccessError, InvalidArgumentError, argument
from polyabayes.scale.scratch import scratch_folder
from polyabayes.scale.shard import ARRAYS, EXPOSURE, IDS, METADATA, TYPES, digest_of
from polyabayes.scale.shards import (
    FORMAT,
    MANIFEST,
    Shards,
    even_cuts,
    read_shards,
    sealed_manifest,
)

# Cells per copy.
_BLOCK_CELLS = 2**22

# Default number of tokens of a shard: 0.2 GB of arrays at 1.5 tokens per cell.
_TOKENS = 2**25


def write_blocks(blocks: Iterable[Corpus], path: Path, n_shards: int | None) -> Shards:
    """Write documents, block by block, as shards with about equally many tokens.

    Earlier shards in the folder stay until all blocks are read; no part of new ones is left if one
    cannot be read or written.
    """
    is_new, begun = not path.exists(), False
    try:
        with ExitStack() as stack:
            with writing(path):
                path.mkdir(parents=True, exist_ok=True)
                remove_unfinished(path, MANIFEST)
                scratch = stack.enter_context(scratch_folder(path, "writing-"))
                _refuse_others(path, scratch)
            spool = _Spool(scratch)
            for block in blocks:
                spool.add(block)
            with writing(path):
                begun = True
                # A folder that has no manifest is not a corpus.
                (path / MANIFEST).unlink(missing_ok=True)
                return spool.write(path, n_shards)
    except BaseException:
        if begun and not (path / MANIFEST).exists():
            _remove_parts(path)
        if is_new:
            with suppress(OSError):
                path.rmdir()
        raise


def _refuse_others(path: Path, own: Path) -> None:
    """Refuse a folder that others write to: they would remove each other's shards."""
    for other in path.glob("writing-*"):
        if other != own:
            raise FileAccessError(
                f"another process writes shards to {path}: take another folder, or wait until "
                f"{other.name} is gone; if no process writes, remove it"
            )


def _remove_parts(path: Path, kept: Container[str] = ()) -> None:
    """Remove shards except those in `kept`, and nothing else in the folder."""
    for folder in path.glob("shard-*"):
        if re.fullmatch(r"shard-\d{5,}", folder.name) is None or folder.name in kept:
            continue
        with suppress(OSError):
            remove_unfinished(folder, "*.npy")
            for name in TYPES:
                (folder / f"{name}.npy").unlink(missing_ok=True)
            folder.rmdir()


class _Spool:
    """Rows of a corpus in raw files, until their division into shards is known."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lengths: list[Integers] = []
        self._cells: list[Integers] = []
        self._exposures: list[Floats] = []
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
                f"{block.n_words:,} and the first {self._n_words:,}, or others: make each by "
                "Corpus.from_documents(documents, vocabulary), or give lists of tokens, and "
                f"{argument('vocabulary')} if they do not fit into memory"
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
        is_there = {EXPOSURE: (exposures != 1.0).any(), IDS: self._has_ids}
        is_there |= {METADATA: metadata is not None}
        names = (*ARRAYS, *(name for name in is_there if is_there[name]))
        entries = []
        parts = zip(pairwise(starts), self._listed_ids(starts), strict=True)
        for number, ((start, stop), ids) in enumerate(parts):
            name = f"shard-{number:05d}"
            folder = path / name
            folder.mkdir(exist_ok=True)
            remove_unfinished(folder, "*.npy")
            self._write_rows(folder, offsets[start : stop + 1])
            for array in is_there:
                (folder / f"{array}.npy").unlink(missing_ok=True)
            if EXPOSURE in names:
                _write_array(folder, EXPOSURE, exposures[start:stop])
            if ids is not None:
                _write_array(folder, IDS, np.frombuffer(ids, np.uint8))
            if metadata is not None:
                table = frame_bytes(metadata.iloc[start:stop])
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

    def _write_rows(self, folder: Path, offsets: Integers) -> None:
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
