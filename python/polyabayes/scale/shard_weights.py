"""Matrix factorisation over the shards of a corpus: the work that is done where the shards are.

The weights of a shard's documents are in a file for each update, which takes its name only when it
is whole and on the disk: a task that finds the file of its update leaves it.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from polyabayes import _core
from polyabayes._support.files import reading, replacing
from polyabayes.scale.array_files import damaged
from polyabayes.scale.shard_sweeps import (
    ShardTraining,
    TopicsReader,
    blocks_of,
    read_published,
    topics_path,
    unchanged,
)
from polyabayes.scale.shards import HEADERS, Shard
from polyabayes.scale.token_order import rows

__all__ = ["add_factors", "ln_documents", "start_weights", "update_weights", "weights_path"]

# Weights that are in memory at once.
_WEIGHTS = 2**22
_CHECKSUM_BYTES = 4

Floats = NDArray[np.float64]
# In this process an array, for workers a file.
Topics = Floats | Path
Part = tuple[_core.Documents, Floats]


def weights_path(training: ShardTraining, shard: Shard, state: str) -> Path:
    """File of the weights of a shard's documents in a state of the updates."""
    return training.folder / f"{shard.folder.name}.{training.name}.{state}.weights"


def start_weights(
    training: ShardTraining, numbers: Iterable[int], topics: str, state: str, n_topics: int
) -> None:
    """Write the weights that belong to the topics of tokens, from which updates start."""
    for number in numbers:
        shard = unchanged(training, number)
        with TopicsReader(topics_path(training, shard, topics), shard, n_topics) as reader:
            parts = (
                _core.start_weights_of_part(
                    blocks, reader.read(len(blocks.token_documents)), n_topics
                )
                for blocks in blocks_of(training, shard)
            )
            _write(training, shard, state, n_topics, parts)


def add_factors(
    training: ShardTraining, words: tuple[int, int], state: str, topics: Topics
) -> Floats:
    """Factors by which an update multiplies the topics of some words, (words, n_components)."""
    phi = read_published(topics) if isinstance(topics, Path) else topics
    factors = np.zeros((words[1] - words[0], phi.shape[1]))
    for number in range(len(training.shards)):
        shard = unchanged(training, number)
        for documents, weights in _parts(training, shard, state, phi.shape[1]):
            _core.nmf_add_factors(documents, weights, phi, factors, words[0], training.n_jobs)
    return factors


def update_weights(
    training: ShardTraining, numbers: Iterable[int], before: str, after: str, topics: Topics
) -> list[int]:
    """Update the weights of some shards, given the topics; returns their exact sums by topic."""
    phi = read_published(topics) if isinstance(topics, Path) else topics
    n_topics = phi.shape[1]
    sums = [0] * n_topics
    for number in numbers:
        shard = unchanged(training, number)
        if weights_path(training, shard, after).exists():
            for documents, weights in _parts(training, shard, after, n_topics):
                _add_sums(sums, documents, weights, phi)
        else:
            updated = _updated(training, shard, before, phi, sums)
            _write(training, shard, after, n_topics, updated)
    return sums


def ln_documents(
    training: ShardTraining, numbers: Iterable[int], state: str, topics: Topics
) -> int:
    """Exact sum of ln of the likelihood of the documents of some shards."""
    phi = read_published(topics) if isinstance(topics, Path) else topics
    ln_joint = 0
    for number in numbers:
        shard = unchanged(training, number)
        for documents, weights in _parts(training, shard, state, phi.shape[1]):
            ln_joint += _core.nmf_ln_joint(documents, weights, phi)
    return ln_joint


def _updated(
    training: ShardTraining, shard: Shard, before: str, phi: Floats, sums: list[int]
) -> Iterator[Floats]:
    """Updated weights, part by part; what they add to the sums is added."""
    for documents, weights in _parts(training, shard, before, phi.shape[1]):
        _core.nmf_update_weights(documents, weights, phi, training.n_jobs)
        _add_sums(sums, documents, weights, phi)
        yield weights


def _add_sums(sums: list[int], documents: _core.Documents, weights: Floats, phi: Floats) -> None:
    for topic, more in enumerate(_core.nmf_sums(documents, weights, phi)):
        sums[topic] += more


def _write(
    training: ShardTraining, shard: Shard, state: str, n_topics: int, parts: Iterable[Floats]
) -> None:
    """Write weights part by part, then their checksum."""
    with replacing(weights_path(training, shard, state)) as stream:
        shape = (shard.n_documents, n_topics)
        head = {"descr": "<f8", "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(stream, head)
        checksum = 0
        for part in parts:
            content = np.ascontiguousarray(part, "<f8").data
            checksum = zlib.crc32(content, checksum)
            stream.write(content)
        stream.write(checksum.to_bytes(_CHECKSUM_BYTES, "little"))


def _parts(training: ShardTraining, shard: Shard, state: str, n_topics: int) -> Iterator[Part]:
    """Documents of a shard and their weights, some at a time."""
    path, n_documents = weights_path(training, shard, state), max(1, _WEIGHTS // n_topics)
    with reading(path), HEADERS, path.open("rb") as stream:
        version = np.lib.format.read_magic(stream)
        shape, _, dtype = np.lib.format.read_array_header_1_0(stream)
        if version != (1, 0) or shape != (shard.n_documents, n_topics) or dtype != np.dtype("<f8"):
            raise damaged(path)
        start_of_weights = stream.tell()
    checksum = 0
    with reading(path):
        stream = path.open("rb")
    with stream:
        stream.seek(start_of_weights)
        for start in range(0, shard.n_documents, n_documents):
            stop = min(start + n_documents, shard.n_documents)
            weights = np.empty((stop - start, n_topics))
            with reading(path):
                if stream.readinto(weights.data) != weights.nbytes:
                    raise damaged(path)
                checksum = zlib.crc32(weights.data, checksum)
                last = stop == shard.n_documents
                if last and int.from_bytes(stream.read(_CHECKSUM_BYTES), "little") != checksum:
                    raise damaged(path)
            yield rows(shard, start, stop), weights
