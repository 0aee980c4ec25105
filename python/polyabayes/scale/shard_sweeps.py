"""Gibbs sweeps over the shards of a corpus: the part that runs on workers.

The topics of a shard's tokens, in the order of `token_order`, are in one file for each position of
the run. A file gets its name only once it is complete and on the disk. A task that finds the file
of its sweep counts its topics instead of drawing again, so tasks may run twice.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from polyabayes import _core
from polyabayes._support.arrays import Floats
from polyabayes._support.files import is_there, reading
from polyabayes._support.output.progress import look
from polyabayes.exceptions import FileAccessError, FileFormatError
from polyabayes.scale.run_state import Position
from polyabayes.scale.sealed import SealedReader, damaged, sealing
from polyabayes.scale.shard import Shard, Stamp
from polyabayes.scale.token_order import Blocks, Exposures, block_groups, write_order

# Blocks of a shard that are in memory at a time, and for each thread at least: enough tokens to
# make up for a pass over all counts of words by topic.
_BLOCKS, _THREAD_BLOCKS = 16, 4
# Topics per read or write.
_TOPICS = 2**22

Topics = NDArray[np.uint16]
Counts = NDArray[np.uint32]
# Tokens of every topic by exposure in a block: first entry of each topic and the end; numbers of
# exposures and tokens of entries.
Tokens = tuple[NDArray[np.uint64], NDArray[np.uint32], NDArray[np.uint32]]


class ShardTraining(NamedTuple):
    """Properties of a run, for all tasks.

    The folder holds the topics of tokens, in files whose names contain `name`, which is unique to
    the run. `sizes` are the tokens of the longest document, all tokens, and the cells that are
    not zero. `stamps` are the stamps of each shard's files at the start; empty before.
    """

    shards: tuple[Shard, ...]
    folder: Path
    name: str
    sizes: tuple[int, int, int]
    seed: int
    n_jobs: int
    exposures: Exposures | None = None
    stamps: tuple[tuple[Stamp, ...], ...] = ()

    def topics_path(self, shard: Shard, at: Position) -> Path:
        """File of the topics of a shard's tokens at a position."""
        return self.folder / f"{shard.folder.name}.{self.name}.{position_name(at)}.topics"

    def unchanged(self, number: int) -> Shard:
        """A shard; refused if its files have changed since the start of the training."""
        shard = self.shards[number]
        if shard.stamps() != self.stamps[number]:
            raise FileFormatError(
                f"{shard.folder} has changed during the training: write the same shards "
                "again, and resume from the checkpoint"
            )
        return shard

    def blocks(self, shard: Shard, exposures: Exposures | None = None) -> Iterator[Blocks]:
        """The documents of a shard, a few blocks at a time."""
        n_blocks = max(_BLOCKS, _THREAD_BLOCKS * self.n_jobs)
        path, stop = self._order_path(shard), look.get() or bool
        for blocks in block_groups(path, shard, n_blocks, self.sizes, exposures):
            stop()
            yield blocks

    def _order_path(self, shard: Shard) -> Path:
        return self.folder / f"{shard.folder.name}.{self.name}.order"


class SweepOrder(NamedTuple):
    """One sweep over all tokens.

    The sweep ends at position `to`. `urns` are those of the core: phi up to a factor per topic, or
    its file; the factors; pseudo-counts of documents; and rates of the gamma distributions of topic
    weights, if documents have exposures. `tables` says whether to draw the tables that learned
    pseudo-counts need.
    """

    to: Position
    urns: tuple[Floats | Path, Floats, Floats, Floats | None]
    tables: bool

    @property
    def n_topics(self) -> int:
        """Number of topics."""
        return len(self.urns[1])


def position_name(at: Position) -> str:
    """Part of the names of files at a position."""
    return "-".join(map(str, at))


def inspect_shards(
    training: ShardTraining, numbers: Iterable[int]
) -> list[tuple[tuple[Stamp, ...], NDArray[np.uint32]]]:
    """Verify shards; give the stamps of their files and the lengths of documents."""
    if not training.folder.is_dir():
        raise FileAccessError(
            f"a worker cannot find {training.folder}: the folders of the shards and of the "
            "checkpoint must be on storage that all workers share, under the same path"
        )
    found = []
    for number in numbers:
        shard = training.shards[number]
        stamps = shard.stamps()
        shard.verify()
        found.append((stamps, write_order(training._order_path(shard), shard)))
    return found


def draw_first_topics(
    training: ShardTraining, shard: Shard, at: Position, first: _core.FirstTopics
) -> None:
    """Write uniform topics of a shard's tokens, drawn document after document."""
    parts = (
        _core.order_topics(blocks, first.next(len(blocks.token_documents)))
        for blocks in training.blocks(shard)
    )
    _write_topics(training.topics_path(shard, at), parts)


def count_topics(
    training: ShardTraining, numbers: Iterable[int], at: Position, n_topics: int
) -> Counts:
    """Tokens of every word in each topic, over given shards."""
    counts = np.zeros((training.shards[0].n_words, n_topics), np.uint32)
    for number in numbers:
        _count(training, training.unchanged(number), at, counts)
    return counts


def sweep_shards(
    training: ShardTraining, numbers: Iterable[int], order: SweepOrder
) -> tuple[Counts, NDArray[np.uint64]]:
    """Draw the topics of the tokens of given shards; return counts, and tables of topics."""
    shape = training.shards[0].n_words, order.n_topics
    counts, n_tables = np.zeros(shape, np.uint32), np.zeros(order.n_topics, np.uint64)
    urns = _urns(order, shape)
    for number in numbers:
        shard = training.unchanged(number)
        if is_there(training.topics_path(shard, order.to)):
            n_tables += _count(training, shard, order.to, counts)
        else:
            n_tables += _sweep(training, shard, order, urns, counts)
    return counts, n_tables


def renumber_topics(
    training: ShardTraining, numbers: Iterable[int], at: Position, to: Position, renumbered: Topics
) -> None:
    """Renumber the topics at a position, and write them at another."""
    for number in numbers:
        shard = training.shards[number]
        if is_there(training.topics_path(shard, to)):
            continue
        sizes = (min(_TOPICS, shard.n_tokens - n) for n in range(0, shard.n_tokens, _TOPICS))
        with TopicsReader(training, shard, at, len(renumbered)) as topics:
            parts = (renumbered[topics.topics(n)] for n in sizes)
            _write_topics(training.topics_path(shard, to), parts)


def ln_urns(training: ShardTraining, numbers: Iterable[int], at: Position, a: Floats) -> int:
    """Exact sum over documents of ln of their urns."""
    a, total = np.array(a), 0  # An unpickled array may be unaligned.
    for number in numbers:
        for blocks, topics in _with_topics(training, number, at, len(a)):
            total += _core.ln_urns_of_part(blocks, topics, a)
    return total


def tally_exposures(
    training: ShardTraining, numbers: Iterable[int], at: Position, n_topics: int
) -> list[Tokens]:
    """Tokens of every topic by exposure in the blocks of given shards."""
    assert training.exposures is not None
    exposures, found = training.exposures.numbers, []
    for number in numbers:
        for blocks, topics in _with_topics(training, number, at, n_topics):
            first = blocks.documents_before
            own = exposures[first : first + int(blocks.n_documents.sum())]
            found += _core.exposed_of_part(blocks, topics, n_topics, own, training.n_jobs)
    return found


class TopicsReader(SealedReader):
    """Reads the topics of a shard's tokens from their file in parts."""

    def __init__(self, training: ShardTraining, shard: Shard, at: Position, n_topics: int) -> None:
        super().__init__(training.topics_path(shard, at))
        self._n_topics = n_topics

    def topics(self, n_tokens: int) -> Topics:
        """Topics of the next `n_tokens` tokens."""
        topics: Topics = self.read(n_tokens, np.uint16)
        if topics.max(initial=0) >= self._n_topics:
            raise damaged(self.path)
        return topics

    def tables(self) -> NDArray[np.uint64]:
        """Tables of topics, after all topics; this verifies the checksum."""
        size = self._n_topics if self.n_left else 0
        tables: NDArray[np.uint64] = self.read(size, np.uint64)
        if self.n_left:
            raise damaged(self.path)
        return tables if size else np.zeros(self._n_topics, np.uint64)


def _with_topics(
    training: ShardTraining, number: int, at: Position, n_topics: int
) -> Iterator[tuple[Blocks, Topics]]:
    """The documents of a shard with the topics of their tokens, a few blocks at a time."""
    shard = training.unchanged(number)
    with TopicsReader(training, shard, at, n_topics) as topics:
        for blocks in training.blocks(shard):
            yield blocks, topics.topics(len(blocks.token_documents))
        topics.tables()


def _write_topics(path: Path, parts: Iterable[Topics]) -> None:
    """Write topics of tokens, without tables."""
    with sealing(path) as write:
        for part in parts:
            write(part)


def _urns(order: SweepOrder, shape: tuple[int, int]) -> tuple[Any, ...]:
    """The arrays of a sweep, copied because unpickled arrays may be unaligned."""
    weights, *others = order.urns
    if isinstance(weights, Path):
        with reading(weights):
            weights = np.memmap(weights, "<f8", "r", shape=shape)
    return np.asarray(weights), *(None if x is None else np.array(x) for x in others)


def _sweep(
    training: ShardTraining, shard: Shard, order: SweepOrder, urns: tuple[Any, ...], counts: Counts
) -> NDArray[np.uint64]:
    """Draw the topics of a shard's tokens, add them to `counts`, and return the tables."""
    n_tables = np.zeros(order.n_topics, np.uint64)
    phase, run, sweep = order.to
    before, to = (phase, run, sweep - 1), training.topics_path(shard, order.to)
    exposures = None if order.urns[-1] is None else training.exposures
    with TopicsReader(training, shard, before, order.n_topics) as reader, sealing(to) as write:
        for blocks in training.blocks(shard, exposures):
            topics = reader.topics(len(blocks.token_documents))
            n_tables += _core.sweep_part(
                blocks,
                topics,
                urns,
                counts,
                seed=training.seed,
                to=order.to,
                tables=order.tables,
                n_jobs=training.n_jobs,
            )
            write(topics)
        reader.tables()
        write(n_tables)
    return n_tables


def _count(training: ShardTraining, shard: Shard, at: Position, counts: Counts) -> Any:
    """Add the topics of a shard's tokens to `counts`, and return the tables."""
    with TopicsReader(training, shard, at, counts.shape[1]) as topics:
        for blocks in training.blocks(shard):
            _core.count_part(blocks, topics.topics(len(blocks.token_documents)), counts)
        return topics.tables()
