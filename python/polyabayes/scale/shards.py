"""Corpora larger than memory, in shards."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from polyabayes._support.arrays import Floats, Integers
from polyabayes._support.files import MAX_WORDS, checked_path, open_regular, reading
from polyabayes._support.output.frames import DataFrame
from polyabayes.data.corpus import Corpus
from polyabayes.data.counts import checked_exposure
from polyabayes.data.metadata import joined_metadata
from polyabayes.exceptions import FileFormatError, InvalidTypeError
from polyabayes.scale.shard import ARRAYS, EXPOSURE, IDS, METADATA, TYPES, Shard

FORMAT = "polyabayes shards 3"
MANIFEST = "manifest.json"
# Documents per block.
BLOCK_DOCUMENTS = 10_000


@dataclass(frozen=True, repr=False, eq=False)
class Shards:
    """A corpus on disk, of which only a part is in memory at a time.

    Attributes
    ----------
    folder : Path
        Folder of the corpus.
    n_documents, n_words, n_tokens : int
        Size of the corpus.
    vocabulary : ndarray of str or None
        The words.
    shards : tuple of Shard
        The shards in order.
    longest : int
        Number of tokens of the longest document.
    replaced_exposure : ndarray of shape (n_documents,) or None
        Exposures that override those in the folder.

    Examples
    --------
    >>> shards = pb.write_shards([[2, 0, 1], [0, 3, 0]], folder, n_shards=2)
    >>> len(shards), shards.n_tokens
    (2, 6)
    """

    folder: Path
    n_documents: int
    n_words: int
    n_tokens: int
    vocabulary: NDArray[np.object_] | None
    shards: tuple[Shard, ...]
    longest: int
    replaced_exposure: Floats | None = None

    def __array__(self, dtype: Any = None, copy: Any = None) -> NoReturn:
        """Refuse conversion to an array in functions that cannot read shards."""
        raise InvalidTypeError(
            "shards are read by log_likelihood and by fit, a block at a time; here counts are "
            "needed that fit into memory: give a Corpus"
        )

    def __len__(self) -> int:
        return len(self.shards)

    def __iter__(self) -> Iterator[Shard]:
        return iter(self.shards)

    def __getitem__(self, number: int) -> Shard:
        return self.shards[number]

    @property
    def exposure(self) -> Floats | None:
        """Exposures of all documents, read on access, or None.

        Examples
        --------
        >>> corpus = pb.Corpus([[2, 0, 1], [0, 3, 0]], exposure=[1.0, 2.5])
        >>> pb.write_shards(corpus, folder).exposure.tolist()
        [1.0, 2.5]
        """
        if self.replaced_exposure is not None:
            return self.replaced_exposure
        if not any(shard.is_exposed for shard in self.shards):
            return None
        return np.concatenate([shard.array(EXPOSURE) for shard in self.shards])

    @property
    def metadata(self) -> DataFrame | None:
        """Metadata of all documents, read on access, or None.

        Examples
        --------
        >>> corpus = pb.Corpus([[2, 0, 1], [0, 3, 0]]).with_metadata({"year": [2008, 2009]})
        >>> pb.write_shards(corpus, folder).metadata["year"].tolist()
        [2008, 2009]
        """
        tables = [shard.metadata() for shard in self.shards]
        return None if tables[0] is None else joined_metadata(tables)

    def with_exposure(self, exposure: Any) -> Shards:
        """Copy the corpus with known sizes of documents, which multiply their Poisson rates.

        Parameters
        ----------
        exposure : float, array of shape (n_documents,), or None
            As for :meth:`Corpus.with_exposure`. The folder and each :class:`Shard` stay unchanged;
            :meth:`blocks` and all functions use the new exposures.

        Returns
        -------
        Shards

        Raises
        ------
        InvalidArgumentError, InvalidTypeError
            If there is not one positive, finite number for each document.

        Examples
        --------
        >>> shards = pb.write_shards([[2, 0, 1], [0, 3, 0]], folder)
        >>> shards.with_exposure(2.0).exposure.tolist()
        [2.0, 2.0]
        """
        if exposure is not None:
            checked = checked_exposure(exposure, self.n_documents)
            return replace(self, replaced_exposure=checked)
        shards = tuple(
            shard._replace(digests={n: x for n, x in shard.digests.items() if n != EXPOSURE})
            for shard in self.shards
        )
        return replace(self, shards=shards, replaced_exposure=None)

    def blocks(self, n_documents: int = BLOCK_DOCUMENTS) -> Iterator[Corpus]:
        """Iterate over blocks of consecutive documents.

        Parameters
        ----------
        n_documents : int, default=10000
            Most documents in a block.

        Returns
        -------
        iterator of Corpus

        Examples
        --------
        >>> shards = pb.write_shards([[2, 0, 1], [0, 3, 0]], folder, n_shards=1)
        >>> [block.n_tokens for block in shards.blocks(1)]
        [3, 3]
        """
        for shard in self.shards:
            ids, metadata = shard.ids(), shard.metadata()
            for start in range(0, shard.n_documents, n_documents):
                stop = min(start + n_documents, shard.n_documents)
                exposure = self._exposure(shard, start, stop)
                names = None if ids is None else ids[start:stop]
                rows = None if metadata is None else metadata.iloc[start:stop]
                table = None if rows is None else rows.reset_index(drop=True)
                yield Corpus(shard.rows(start, stop), self.vocabulary, names, exposure, table)

    def _exposure(self, shard: Shard, start: int, stop: int) -> Floats | None:
        if self.replaced_exposure is not None:
            before = shard.first_document
            return self.replaced_exposure[before + start : before + stop]
        return shard.array(EXPOSURE, start, stop) if shard.is_exposed else None

    def fingerprint(self) -> str:
        """Hash of counts, words and their division into shards.

        Returns
        -------
        str
            16 hexadecimal digits.

        Examples
        --------
        >>> len(pb.write_shards([[2, 0, 1], [0, 3, 0]], folder).fingerprint())
        16
        """
        words = None if self.vocabulary is None else self.vocabulary.tolist()
        digest = hashlib.sha256(json.dumps([self.n_words, words], ensure_ascii=False).encode())
        if self.replaced_exposure is not None:
            digest.update(self.replaced_exposure.tobytes())
        for shard in self:
            counts = {n: x for n, x in shard.digests.items() if n not in (IDS, METADATA)}
            digest.update(json.dumps([shard.n_documents, counts], sort_keys=True).encode())
        return digest.hexdigest()[:16]

    def verify(self) -> None:
        """Compare all files with the checksums of the manifest.

        Raises
        ------
        FileAccessError, FileFormatError
            If a file is missing or changed.

        Examples
        --------
        >>> pb.write_shards([[2, 0, 1], [0, 3, 0]], folder, n_shards=2).verify()
        """
        for shard in self.shards:
            shard.verify()

    def __repr__(self) -> str:
        return (
            f"<Shards: {len(self.shards):,} of {self.n_documents:,} documents, {self.n_words:,} "
            f"words, {self.n_tokens:,} tokens>"
        )


def read_shards(folder: str | os.PathLike[str]) -> Shards:
    """Open a folder written by :func:`write_shards`.

    Parameters
    ----------
    folder : path-like
        The folder. Arrays are read and verified by checksums when needed.

    Returns
    -------
    Shards

    Raises
    ------
    FileAccessError, FileFormatError
        If there is no manifest, or its checksum shows damage.

    Examples
    --------
    >>> _ = pb.write_shards([[2, 0, 1], [0, 3, 0]], folder)
    >>> pb.read_shards(folder)
    <Shards: 1 of 2 documents, 3 words, 6 tokens>
    """
    path = checked_path(folder, "folder")
    manifest = path / MANIFEST
    with open_regular(manifest) as stream, reading(manifest):
        content = json.load(stream)
        if not isinstance(content, dict) or content.get("format") != FORMAT:
            raise FileFormatError(
                f"{manifest} is not of this version of polyabayes: write the shards again"
            )
        if sealed_manifest(content) != content or not _is_consistent(content):
            raise FileFormatError(
                f"{manifest} is damaged: its checksum is wrong or its "
                "numbers disagree; write the shards again"
            )
        n_words, words = content["n_words"], content["vocabulary"]
        shards = tuple(Shard(path / x.pop("name"), n_words=n_words, **x) for x in content["shards"])
        return Shards(
            path,
            sum(shard.n_documents for shard in shards),
            n_words,
            sum(shard.n_tokens for shard in shards),
            None if words is None else np.array(words, dtype=object),
            shards,
            content["longest"],
        )


def sealed_manifest(content: dict[str, Any]) -> dict[str, Any]:
    """The manifest with its checksum."""
    plain = {name: value for name, value in content.items() if name != "sha256"}
    text = json.dumps(plain, ensure_ascii=False, sort_keys=True)
    return {**plain, "sha256": hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()}


def _is_consistent(content: dict[str, Any]) -> bool:
    """Whether shards are consecutive and sizes are valid."""
    n_words, longest, words = content["n_words"], content["longest"], content["vocabulary"]
    first, names = [0, 0], set()
    for shard in content["shards"]:
        sizes = [shard[name] for name in ("n_documents", "n_cells", "n_tokens")]
        digests, name = shard["digests"], shard["name"]
        is_whole = (
            re.fullmatch(r"shard-\d{5,}", name) is not None
            and [shard["first_document"], shard["first_token"]] == first
            and all(type(size) is int and size >= 0 for size in sizes)
            and {*ARRAYS} <= set(digests) <= set(TYPES)
        )
        if not is_whole:
            return False
        names.add(name)
        first = [first[0] + sizes[0], first[1] + sizes[2]]
    return (
        all(type(number) is int for number in (n_words, longest))
        and 0 < n_words <= MAX_WORDS
        and 0 <= longest <= first[1]
        and len(names) == len(content["shards"]) > 0
        and (words is None or len(words) == n_words)
    )


def even_cuts(lengths: Integers, n_shards: int) -> list[int]:
    """First documents of shards with about equally many tokens, and the end; none is empty."""
    n_shards = min(n_shards, len(lengths))
    ends = np.cumsum(lengths + 1)
    aims = ends[-1] * np.arange(1, n_shards) / n_shards
    cuts = np.searchsorted(ends, aims) + 1
    # Every shard has a document, even if one document is longer than a shard.
    for number in range(len(cuts)):
        least = number + 1 if number == 0 else cuts[number - 1] + 1
        cuts[number] = min(max(cuts[number], least), len(lengths) - (n_shards - 1 - number))
    return [0, *cuts.tolist(), len(lengths)]
