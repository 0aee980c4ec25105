"""Shards: consecutive documents of a corpus, in memory-mapped arrays with checksums."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from polyabayes._support.arrays import Integers
from polyabayes._support.docs import shared_docs
from polyabayes._support.files import open_regular, reading
from polyabayes._support.output.frames import DataFrame
from polyabayes._support.storage.frames import frame_of_bytes
from polyabayes.data.corpus import Corpus
from polyabayes.exceptions import FileFormatError

# Arrays of compressed sparse rows, one file each; then optional parts of documents.
ARRAYS = ("indptr", "indices", "data")
EXPOSURE, IDS, METADATA = "exposure", "ids", "metadata"
TYPES = {
    "indptr": "<i8",
    "indices": "<u4",
    "data": "<u4",
    EXPOSURE: "<f8",
    # A list in JSON and a table in Arrow, as their bytes.
    IDS: "|u1",
    METADATA: "|u1",
}

# Size and time of change of a file.
Stamp = tuple[int, int]

# Files that this process has verified: their stamps at that time, and the checksums.
_verified: dict[Path, tuple[Stamp, str]] = {}


@shared_docs
class Shard(NamedTuple):
    """Consecutive documents of a corpus.

    Attributes
    ----------
    folder : Path
        Folder of its arrays.
    first_document, first_token : int
        Number of documents and of tokens in earlier shards.
    n_documents, n_cells, n_tokens : int
        Number of documents, of non-zero counts and of tokens.
    digests : dict of str to str
        SHA-256 of the file of each array.

    Examples
    --------
    >>> shards = pb.write_shards([[2, 0, 1], [0, 3, 0]], folder, n_shards=2)
    >>> shards[1].corpus().n_tokens
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

    def array(self, name: str, start: int = 0, stop: int | None = None) -> NDArray[Any]:
        """Entries of an array; its checksum is verified before the first access."""
        dtype = np.dtype(TYPES[name])
        path, stamp = self._checked(name)
        sizes = {"indptr": self.n_documents + 1, EXPOSURE: self.n_documents}
        size = sizes.get(name, self.n_cells)
        stop = size if stop is None else stop
        if not 0 <= start <= stop <= size:
            raise _changed(path)
        # The array is at the end of the file, after a header.
        offset = stamp[0] - (size - start) * dtype.itemsize
        with open_regular(path) as stream, reading(path):
            array: NDArray[Any] = np.fromfile(stream, dtype, stop - start, offset=offset)
        if len(array) != stop - start:
            raise _changed(path)
        return array

    def corpus(self) -> Corpus:
        """Load the documents into memory.

        Returns
        -------
        Corpus
            The documents, without a vocabulary.

        Raises
        ------
        FileAccessError, FileFormatError, InvalidCountsError
            If a file is missing or damaged.

        Examples
        --------
        >>> shards = pb.write_shards([[2, 0, 1], [0, 3, 0]], folder, n_shards=1)
        >>> shards[0].corpus()
        <Corpus: 2 documents, 3 words, 6 tokens>
        """
        exposure = self.array(EXPOSURE) if self.is_exposed else None
        rows, ids = self.rows(0, self.n_documents), self.ids()
        return Corpus(rows, ids=ids, exposure=exposure, metadata=self.metadata())

    def ids(self) -> NDArray[np.object_] | None:
        """Names of the documents, or None.

        Raises
        ------
        FileAccessError, FileFormatError
            If the file is missing or damaged.

        Examples
        --------
        >>> corpus = pb.Corpus([[2, 0, 1], [0, 3, 0]], ids=["a", "b"])
        >>> pb.write_shards(corpus, folder, n_shards=2)[1].ids().tolist()
        ['b']
        """
        content = self._content(IDS)
        return None if content is None else np.array(json.loads(content), dtype=object)

    def metadata(self) -> DataFrame | None:
        """Metadata of the documents, a row for each, or None.

        Raises
        ------
        FileAccessError, FileFormatError, MissingDependencyError
            If the file is missing or damaged, or pandas or PyArrow is missing.

        Examples
        --------
        >>> corpus = pb.Corpus([[2, 0, 1], [0, 3, 0]]).with_metadata({"year": [2008, 2009]})
        >>> pb.write_shards(corpus, folder, n_shards=2)[1].metadata()["year"].tolist()
        [2009]
        """
        content = self._content(METADATA)
        return None if content is None else frame_of_bytes(self._path(METADATA), content)

    def _content(self, name: str) -> bytes | None:
        """Bytes of an optional file of this shard; None if it has none."""
        if name not in self.digests:
            return None
        path, _ = self._checked(name)
        with open_regular(path) as stream, reading(path):
            return bytes(np.load(stream, allow_pickle=False).tobytes())

    def rows(self, start: int, stop: int) -> sparse.csr_matrix:
        """Counts of documents `start` to `stop` of the shard."""
        offsets, indices, data = self.cells(start, stop)
        with reading(self.folder):
            matrix = (data.astype(np.int64), indices.astype(np.int64), offsets)
            return sparse.csr_matrix(matrix, (stop - start, self.n_words))

    def cells(
        self, start: int, stop: int
    ) -> tuple[Integers, NDArray[np.uint32], NDArray[np.uint32]]:
        """Row pointers, words and counts of documents `start` to `stop` of the shard."""
        offsets = self.array("indptr", start, stop + 1)
        is_end = stop == self.n_documents and offsets[-1] != self.n_cells
        if (np.diff(offsets) < 0).any() or (start == 0 and offsets[0] != 0) or is_end:
            raise _changed(self._path("indptr"))
        cells = int(offsets[0]), int(offsets[-1])
        return offsets - offsets[0], self.array("indices", *cells), self.array("data", *cells)

    @property
    def is_exposed(self) -> bool:
        """Whether the documents have exposures."""
        return EXPOSURE in self.digests

    def stamps(self) -> tuple[Stamp, ...]:
        """Size and modification time of each file."""
        return tuple(_stamp(self._path(name)) for name in self.digests)

    def verify(self) -> None:
        """Compare the files with the checksums of the manifest.

        Raises
        ------
        FileAccessError, FileFormatError
            If a file is missing or changed.

        Examples
        --------
        >>> shards = pb.write_shards([[2, 0, 1], [0, 3, 0]], folder, n_shards=1)
        >>> shards[0].verify()
        """
        for name in dict.fromkeys((*ARRAYS, *self.digests)):
            self._verify(name)

    def _checked(self, name: str) -> tuple[Path, Stamp]:
        """The file of an array; its checksum is verified once per process."""
        path = self._path(name)
        stamp = _stamp(path)
        if _verified.get(path) != (stamp, self.digests.get(name)):
            self._verify(name)
        return path, stamp

    def _verify(self, name: str) -> None:
        path, expected = self._path(name), self.digests.get(name)
        stamp = _stamp(path)
        if digest_of(path) != expected:
            raise _changed(path)
        _verified[path] = stamp, expected

    def _path(self, name: str) -> Path:
        return self.folder / f"{name}.npy"


def _stamp(path: Path) -> Stamp:
    with reading(path):
        status = path.stat()
    return status.st_size, status.st_mtime_ns


def _changed(path: Path) -> FileFormatError:
    return FileFormatError(f"{path} is damaged: its checksum is wrong; write it again")


def digest_of(path: Path) -> str:
    """SHA-256 of a file."""
    with open_regular(path) as stream, reading(path):
        return hashlib.file_digest(stream, "sha256").hexdigest()
