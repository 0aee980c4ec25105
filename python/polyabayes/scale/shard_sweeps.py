"""Gibbs sweeps over the shards of a corpus: the work that is done where the shards are.

The topics of a shard's tokens, in the order of `token_order`, are in a file for each sweep, which
takes its name only when it is whole and on the disk. A task that finds the file of its sweep counts
it instead of drawing it again: tasks may be run twice, whoever was killed when.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from polyabayes import _core
from polyabayes._support.files import reading, replacing
from polyabayes.exceptions import FileAccessError, FileFormatError
from polyabayes.scale.array_files import append_arrays, damaged
from polyabayes.scale.exposures import read_exposures
from polyabayes.scale.shards import HEADERS, Shard
from polyabayes.scale.token_order import Blocks, TokenOrder, write_order

__all__ = [
    "Published",
    "ShardTraining",
    "Source",
    "Stamp",
    "SweepOrder",
    "TopicsReader",
    "blocks_of",
    "count_topics",
    "draw_first_topics",
    "exposed_path",
    "inspect_shards",
    "ln_urns",
    "read_published",
    "renumber_topics",
    "sizes_of_parts",
    "sweep_shards",
    "tally_exposures",
    "topics_path",
    "unchanged",
    "write_topics",
]

# Blocks of a shard that are in memory at a time, and for each thread at least: enough tokens to
# make up for a pass over all counts of words by topic.
_BLOCKS, _THREAD_BLOCKS = 16, 4
# Topics that are read or written at once.
_TOPICS = 2**22
_CHECKSUM_BYTES = 4

Topics = NDArray[np.uint16]
Counts = NDArray[np.uint32]
# Size and time of change of each file of a shard.
Stamp = tuple[tuple[int, int], ...]


# Words x topics: in this process an array, or where they are drawn; for workers a file.
Source = NDArray[np.float64] | _core.ShardedChain | _core.ShardedStart
Published = Source | Path


class ShardTraining(NamedTuple):
    """What all tasks of a run need to know.

    Attributes
    ----------
    shards : tuple of Shard
        The corpus.
    folder : Path
        Where the topics of tokens are.
    name : str
        Part of the names of files: no other run has it.
    longest : int
        Tokens of the longest document.
    seed, n_jobs : int
        Seed of the chain; threads of a task.
    exposures : Path or None
        File of the exposures of all documents, where they have any.
    stamps : tuple of Stamp
        The files of each shard as they were at the start; empty before.
    """

    shards: tuple[Shard, ...]
    folder: Path
    name: str
    longest: int
    seed: int
    n_jobs: int
    exposures: Path | None = None
    stamps: tuple[Stamp, ...] = ()


class SweepOrder(NamedTuple):
    """One sweep over all tokens.

    Attributes
    ----------
    before, after : str
        States that it leads from and to.
    run : int or None
        Which start it belongs to; None for the chain.
    sweep : int
        Its number there, from 1.
    weights : ndarray of shape (n_words, n_components), or where it is
        Phi up to the scale of each topic.
    scale, a : ndarray of shape (n_components,)
        The scales, and the pseudo-counts of documents.
    rates : ndarray of shape (n_components,) or None
        Rates of the gamma laws of topic weights, where documents have exposures.
    blocked : bool
        Whether topics are drawn given weights of their document, which are drawn first.
    tables : bool
        Whether to draw the tables that learned pseudo-counts need.
    """

    before: str
    after: str
    run: int | None
    sweep: int
    weights: Published
    scale: NDArray[np.float64]
    a: NDArray[np.float64]
    rates: NDArray[np.float64] | None
    blocked: bool
    tables: bool


def topics_path(training: ShardTraining, shard: Shard, state: str) -> Path:
    """File of the topics of a shard's tokens in a state of the chain."""
    return training.folder / f"{shard.folder.name}.{training.name}.{state}.topics"


def exposed_path(training: ShardTraining, shard: Shard, state: str) -> Path:
    """File of the tokens of every topic by exposure in a state of the chain."""
    return training.folder / f"{shard.folder.name}.{training.name}.{state}.exposed"


def read_published(path: Path) -> NDArray[np.float64]:
    """Topics from their file, mapped."""
    with reading(path), HEADERS:
        mapped: NDArray[np.float64] = np.load(path, mmap_mode="r", allow_pickle=False)
    return mapped


def inspect_shards(
    training: ShardTraining, numbers: Iterable[int], lengths: bool
) -> list[tuple[Stamp, NDArray[np.uint32]]]:
    """Verify shards; give the stamps of their files and, if asked for, the lengths of documents."""
    if not training.folder.is_dir():
        raise FileAccessError(
            f"{training.folder} is not there for a worker: the folders of the shards and of the "
            "checkpoint must be on storage that all workers share, under the same path"
        )
    found = []
    for number in numbers:
        shard = training.shards[number]
        stamp = _stamp(shard)
        shard.verify()
        of_documents = write_order(_order_path(training, shard), shard)
        found.append((stamp, of_documents if lengths else np.zeros(0, np.uint32)))
    return found


def draw_first_topics(
    training: ShardTraining, shard: Shard, state: str, first: _core.FirstTopics
) -> None:
    """Write uniform topics of a shard's tokens, drawn document after document."""
    parts = (
        _core.order_topics(blocks, first.next(len(blocks.token_documents)))
        for blocks in blocks_of(training, shard)
    )
    write_topics(training, shard, state, parts)


def count_topics(
    training: ShardTraining, numbers: Iterable[int], state: str, n_topics: int
) -> Counts:
    """Tokens of every word in each topic, over some shards."""
    totals = np.zeros((training.shards[0].n_words, n_topics), np.uint32)
    for number in numbers:
        _count(training, unchanged(training, number), state, totals)
    return totals


def sweep_shards(
    training: ShardTraining, numbers: Iterable[int], order: SweepOrder
) -> tuple[Counts, NDArray[np.uint64]]:
    """Draw the topics of the tokens of some shards; give their counts, and the tables of topics."""
    weights: Source = (
        read_published(order.weights) if isinstance(order.weights, Path) else order.weights
    )
    shape = training.shards[0].n_words, len(order.a)
    totals, n_tables = np.zeros(shape, np.uint32), np.zeros(len(order.a), np.uint64)
    for number in numbers:
        shard = unchanged(training, number)
        if topics_path(training, shard, order.after).exists():
            n_tables += _count(training, shard, order.after, totals)
        else:
            n_tables += _sweep(training, shard, order, weights, totals)
    return totals, n_tables


def renumber_topics(
    training: ShardTraining, numbers: Iterable[int], before: str, after: str, renumbered: Topics
) -> None:
    """Give the topics of a state other numbers in another."""
    for number in numbers:
        shard = training.shards[number]
        if topics_path(training, shard, after).exists():
            continue
        with TopicsReader(topics_path(training, shard, before), shard, len(renumbered)) as topics:
            parts = (renumbered[topics.read(n)] for n in sizes_of_parts(shard.n_tokens))
            write_topics(training, shard, after, parts)


def ln_urns(
    training: ShardTraining, numbers: Iterable[int], state: str, a: NDArray[np.float64]
) -> tuple[int, int]:
    """Exact sums over documents of ln of their urns, and of their lengths' rising factorials."""
    urns = lengths = 0
    a = np.array(a)  # An array that came with the task may be unaligned; its copy is not.
    for number in numbers:
        shard = unchanged(training, number)
        with TopicsReader(topics_path(training, shard, state), shard, len(a)) as topics:
            for blocks in blocks_of(training, shard):
                own = topics.read(len(blocks.token_documents))
                found = _core.ln_urns_of_part(blocks, own, a)
                urns, lengths = urns + found[0], lengths + found[1]
    return urns, lengths


def tally_exposures(
    training: ShardTraining, numbers: Iterable[int], state: str, n_topics: int
) -> None:
    """Write the tokens of every topic by exposure in some shards, block after block."""
    assert training.exposures is not None
    exposures = read_exposures(training.exposures).numbers
    for number in numbers:
        shard = unchanged(training, number)
        with (
            TopicsReader(topics_path(training, shard, state), shard, n_topics) as topics,
            replacing(exposed_path(training, shard, state)) as stream,
        ):
            for blocks in blocks_of(training, shard):
                own, first = topics.read(len(blocks.token_documents)), blocks.documents_before
                of_documents = exposures[first : first + int(blocks.n_documents.sum())]
                for part in _core.exposed_of_part(
                    blocks, own, n_topics, of_documents, training.n_jobs
                ):
                    append_arrays(stream, part)


def write_topics(
    training: ShardTraining,
    shard: Shard,
    state: str,
    parts: Iterable[Topics],
    tables: NDArray[np.uint64] | None = None,
) -> None:
    """Write the topics of a shard's tokens, part by part, or nothing; then their checksum.

    The tables of topics come last: they may be filled while the parts are made.
    """
    with replacing(topics_path(training, shard, state)) as stream:
        head = {"descr": "<u2", "fortran_order": False, "shape": (shard.n_tokens,)}
        np.lib.format.write_array_header_1_0(stream, head)
        checksum = 0
        for part in parts:
            content = np.ascontiguousarray(part, "<u2").data
            checksum = zlib.crc32(content, checksum)
            stream.write(content)
        stream.write(checksum.to_bytes(_CHECKSUM_BYTES, "little"))
        np.save(stream, np.zeros(0, "<u8") if tables is None else tables, allow_pickle=False)


def sizes_of_parts(n_tokens: int) -> Iterator[int]:
    """Tokens of parts of a shard."""
    for start in range(0, n_tokens, _TOPICS):
        yield min(_TOPICS, n_tokens - start)


def _order_path(training: ShardTraining, shard: Shard) -> Path:
    return training.folder / f"{shard.folder.name}.{training.name}.order"


def blocks_of(training: ShardTraining, shard: Shard, *, counts: bool = False) -> Iterator[Blocks]:
    """The documents of a shard, some blocks at a time; with their counts where these are read."""
    order = TokenOrder(_order_path(training, shard), shard)
    n_blocks = max(_BLOCKS, _THREAD_BLOCKS * training.n_jobs)
    path = training.exposures
    exposures = None if path is None or not counts else read_exposures(path)
    return order.groups(n_blocks, training.longest, counts=counts, exposures=exposures)


def _sweep(
    training: ShardTraining,
    shard: Shard,
    order: SweepOrder,
    weights: Source,
    totals: Counts,
) -> NDArray[np.uint64]:
    """Draw the topics of a shard's tokens and add them to `totals`; give the tables."""
    # Arrays that came with the task may be unaligned; their copies are not.
    scale, a = np.array(order.scale), np.array(order.a)
    rates = None if order.rates is None else np.array(order.rates)
    by_document = order.run is None and (order.blocked or rates is not None)
    n_tables = np.zeros(len(a), np.uint64)

    def drawn(before: TopicsReader) -> Iterator[Topics]:
        for blocks in blocks_of(training, shard, counts=by_document):
            topics = before.read(len(blocks.token_documents))
            found = _core.sweep_part(
                blocks,
                topics,
                weights,
                scale,
                a,
                rates,
                totals,
                seed=training.seed,
                run=order.run,
                sweep=order.sweep,
                blocked=order.blocked,
                tables=order.tables,
                n_jobs=training.n_jobs,
            )
            np.add(n_tables, found, out=n_tables)
            yield topics

    with TopicsReader(topics_path(training, shard, order.before), shard, len(order.a)) as before:
        write_topics(training, shard, order.after, drawn(before), n_tables)
    return n_tables


def _count(training: ShardTraining, shard: Shard, state: str, totals: Counts) -> NDArray[np.uint64]:
    """Add the topics of a shard's tokens to `totals`; give the tables."""
    n_topics = totals.shape[1]
    with TopicsReader(topics_path(training, shard, state), shard, n_topics) as topics:
        for blocks in blocks_of(training, shard):
            _core.count_part(blocks, topics.read(len(blocks.token_documents)), totals)
    return topics.tables


class TopicsReader:
    """The topics of a shard's tokens from their file, some at a time."""

    def __init__(self, path: Path, shard: Shard, n_topics: int) -> None:
        n_tokens = shard.n_tokens
        self._path, self._left, self._n_topics = path, n_tokens, n_topics
        self._checksum = 0
        with reading(path), HEADERS, path.open("rb") as stream:
            version = np.lib.format.read_magic(stream)
            shape, _, dtype = np.lib.format.read_array_header_1_0(stream)
            if version != (1, 0) or shape != (n_tokens,) or dtype != np.dtype("<u2"):
                raise damaged(path)
            start = stream.tell()
            stream.seek(start + 2 * n_tokens)
            self._expected = int.from_bytes(stream.read(_CHECKSUM_BYTES), "little")
            self.tables: NDArray[np.uint64] = np.load(stream, allow_pickle=False)
        with reading(path):
            self._stream = path.open("rb")
            self._stream.seek(start)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._stream.close()

    def read(self, n_tokens: int) -> Topics:
        """Topics of the next tokens; after the last ones, all are compared with their checksum."""
        topics = np.empty(n_tokens, np.uint16)
        with reading(self._path):
            n_bytes = self._stream.readinto(topics.data)
        self._checksum = zlib.crc32(topics.data, self._checksum)
        self._left -= n_tokens
        is_other = self._left == 0 and self._checksum != self._expected
        if n_bytes != topics.nbytes or is_other or topics.max(initial=0) >= self._n_topics:
            raise damaged(self._path)
        return topics


def _stamp(shard: Shard) -> Stamp:
    """Size and time of change of the files of a shard."""
    paths = [shard.folder / f"{name}.npy" for name in shard.digests]
    with reading(shard.folder):
        found = [path.stat() for path in paths]
    return tuple((status.st_size, status.st_mtime_ns) for status in found)


def unchanged(training: ShardTraining, number: int) -> Shard:
    """A shard; refused where its files are not those that training began with."""
    shard = training.shards[number]
    if _stamp(shard) != training.stamps[number]:
        raise FileFormatError(
            f"{shard.folder} was changed while a model was trained on it: write the shards again "
            "as they were, and go on from the checkpoint"
        )
    return shard
