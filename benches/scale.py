"""Scale: training on shards, workers, threads, and peers on the same stream.

    python benches/scale.py training [--tokens 5000000]
    python benches/scale.py large [--tokens 200000000]
    python benches/scale.py workers [--tokens 20000000]
    python benches/scale.py peers [--tokens 1000000]
    python benches/scale.py threads AP.ldac.gz
    python benches/scale.py memory 20NG.ldac.gz

Each keeps its table in benches/records. Every row is measured by a process of its own, whose peak
of memory is that of the row. `training` fits LDA in memory and on 1, 4 and 16 shards, one thread;
`large` does so with 50,000 words and 200 topics; `workers` trains on one and two workers of a Dask
cluster; `threads` scores a corpus and trains on one and two threads; `memory` trains with thousands
of topics; `peers` trains with other packages.
"""

import multiprocessing
import resource
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scale_peers
from record import Table, main, save
from scipy import sparse

import polyabayes as pb

COMMAND = "python benches/scale.py"
# Golden value of the training that is measured.
RESTS_ON = ["lda, Gibbs"]
# Passes of `peers`.
N_PASSES = 20
# Documents of a generated block.
BLOCK = 2_000


class Law(NamedTuple):
    """Simulated documents over words of Zipf's law."""

    n_words: int
    length: int
    n_topics: int = 50

    def topics(self) -> np.ndarray:
        rng = np.random.default_rng(0)
        zipf = 0.02 * self.n_words / np.arange(10, 10 + self.n_words)
        return rng.dirichlet(zipf, self.n_topics)

    def blocks(self, n_documents: int, seed: int = 1) -> Iterator[sparse.csr_matrix]:
        """Documents, a block at a time."""
        rng, below = np.random.default_rng(seed), self.topics().cumsum(axis=1)
        for start in range(0, n_documents, BLOCK):
            size = min(BLOCK, n_documents - start)
            weights = rng.dirichlet(np.full(self.n_topics, 0.1), size)
            of_topics = rng.multinomial(self.length, weights)
            rows, words = [], []
            for topic, ends in enumerate(below):
                n_tokens = of_topics[:, topic]
                rows.append(np.repeat(np.arange(size), n_tokens))
                found = np.searchsorted(ends, rng.random(n_tokens.sum()) * ends[-1])
                words.append(np.minimum(found, self.n_words - 1))
            cells = np.concatenate(rows), np.concatenate(words)
            ones = np.ones(len(cells[0]), np.int64)
            yield sparse.csr_matrix((ones, cells), (size, self.n_words))


SMALL, LARGE = Law(10_000, 100), Law(50_000, 200, 200)


class Measured(NamedTuple):
    """What a process found, its seconds by both clocks, and the most memory of it or of a child."""

    value: Any
    wall: float
    cpu: float
    peak: float


def _measured(work: Callable[[], Any]) -> Measured:
    warnings.simplefilter("ignore")
    starts = time.perf_counter(), time.process_time()
    value = work()
    wall, cpu = time.perf_counter() - starts[0], time.process_time() - starts[1]
    processes = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    peak = max(resource.getrusage(which).ru_maxrss for which in processes)
    return Measured(value, wall, cpu, peak / 2**20)


def alone(function: Callable[..., Any], *arguments: Any) -> Measured:
    """Run in a process of its own, which has imported everything."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(_measured, partial(function, *arguments)).result()


def sweep_seconds(
    documents: Any,
    n_components: int,
    sweeps: tuple[int, int],
    executor: Any = None,
    n_jobs: int = 1,
) -> tuple[float, float]:
    """Wall and CPU seconds of a sweep: a longer fit less a shorter one."""
    taken = []
    for n_sweeps in sweeps:
        schedule = {"max_iter": n_sweeps, "burn_in": 0, "thin": 1_000}
        run = {"learn_priors": False, "n_jobs": n_jobs, "random_state": 0} | schedule
        model = pb.LatentDirichletAllocation(n_components, **run)
        found = _measured(partial(model.fit, documents, eval_every=1_000, executor=executor))
        taken.append((found.wall, found.cpu))
    wall, cpu = (np.array(taken[1]) - taken[0]) / (sweeps[1] - sweeps[0])
    return float(wall), float(cpu)


def write(law: Law, n_documents: int, folder: str, n_shards: int | None) -> None:
    pb.write_shards(law.blocks(n_documents), folder, n_shards)


def in_memory(
    folder: str, n_tokens: int, n_components: int, sweeps: tuple[int, int]
) -> tuple[int, float, float]:
    """Tokens and seconds of the first documents of the shards, in memory."""
    blocks, found = [], 0
    for block in pb.read_shards(folder).blocks():
        blocks.append(block.counts)
        found += block.n_tokens
        if found >= n_tokens:
            break
    corpus = pb.Corpus(sparse.vstack(blocks, "csr"))
    return corpus.n_tokens, *sweep_seconds(corpus, n_components, sweeps)


def compare_training(
    name: str,
    law: Law,
    tokens: int,
    n_in_memory: int,
    n_topics: tuple[int, ...],
    n_shards: tuple[int | None, ...],
    sweeps: tuple[int, int],
) -> None:
    """Rows of training in memory, and on so many shards, for each number of topics."""
    columns = {
        "documents": "s", "tokens": ",d", "topics": "d", "CPU per token and sweep, ns": ".1f",
        "wall, ns": ".1f", "speed of memory": ".2f", "GiB at most": ".2f",
    }  # fmt: skip
    table = Table(f"scale-{name}", f"{COMMAND} {name} --tokens {tokens}", columns, RESTS_ON)
    with tempfile.TemporaryDirectory() as folder:
        folders = [f"{folder}/{number}" for number in range(len(n_shards))]
        for path, n in zip(folders, n_shards, strict=True):
            alone(write, law, tokens // law.length, path, n)
        for n_components in n_topics:
            memory = alone(in_memory, folders[0], n_in_memory, n_components, sweeps)
            own_tokens, *seconds = memory.value
            wall, cpu = (1e9 * x / own_tokens for x in seconds)
            table.add("in memory", own_tokens, n_components, cpu, wall, 1.0, memory.peak)
            for path in folders:
                shards = pb.read_shards(path)
                found = alone(sweep_seconds, shards, n_components, sweeps)
                own_wall, own_cpu = (1e9 * x / shards.n_tokens for x in found.value)
                kind = f"{len(shards)} shard{'s' if len(shards) > 1 else ''}"
                figures = own_cpu, own_wall, cpu / own_cpu, found.peak
                table.add(kind, shards.n_tokens, n_components, *figures)
    save(table)


def training(tokens: int = 5_000_000) -> None:
    """LDA in memory and on 1, 4 and 16 shards, one thread."""
    compare_training("training", SMALL, tokens, tokens, (50, 200), (1, 4, 16), (2, 8))


def large(tokens: int = 200_000_000) -> None:
    """The same with 50,000 words and 200 topics."""
    n_in_memory = min(tokens, 10_000_000)
    compare_training("large", LARGE, tokens, n_in_memory, (200,), (None,), (1, 4))


def workers(tokens: int = 20_000_000) -> None:
    """One and two workers of a Dask cluster."""
    from distributed import Client, LocalCluster

    columns = {"workers": "d", "topics": "d", "tokens": ",d", "s a sweep": ".2f", "times": ".2f"}
    table = Table("scale-workers", f"{COMMAND} workers --tokens {tokens}", columns, RESTS_ON)
    with tempfile.TemporaryDirectory() as folder:
        alone(write, SMALL, tokens // SMALL.length, folder, 8)
        shards = pb.read_shards(folder)
        for n_components in (50, 200):
            walls: list[float] = []
            for n in (1, 2):
                options = {"threads_per_worker": 1, "processes": True, "dashboard_address": None}
                cluster = LocalCluster(n_workers=n, **options)
                with cluster, Client(cluster) as client:
                    wall, _ = sweep_seconds(shards, n_components, (2, 12), client.get_executor())
                walls.append(wall)
                table.add(n, n_components, shards.n_tokens, wall, walls[0] / wall)
    save(table)


def least_walls(work: Callable[[int], float]) -> list[float]:
    """Seconds on one and on two threads: the least of five each, in turn."""
    return [min(seconds) for seconds in zip(*((work(1), work(2)) for _ in range(5)), strict=True)]


def threads(name: str, /) -> None:
    """Two threads beside one: scores of documents of a corpus, sweeps over 1.5 million tokens."""
    columns = {"topics": "d", "scoring, s": ".2f", "on two threads": ".2f", "times as fast": ".2f"}
    columns |= {"a sweep, ms": ".1f", "ms on two": ".1f", "as fast": ".2f"}
    table = Table("scale-threads", f"{COMMAND} threads {Path(name).name}", columns, RESTS_ON)
    corpus = pb.read_corpus(name)
    made = pb.datasets.make_lda_corpus(5_000, 10_000, 20, document_length=300, random_state=1)
    simulated = made.corpus
    for n_components in (20, 100, 200):
        settings = {"learn_priors": False, "max_iter": 30, "random_state": 0}
        model = pb.LatentDirichletAllocation(n_components, **settings).fit(corpus)
        documents = corpus[:100] if n_components == 200 else corpus[:300]
        score = partial(pb.log_likelihood, model, documents, random_state=0)

        def score_wall(n_jobs: int, score: Callable[..., Any] = score) -> float:
            return _measured(partial(score, n_jobs=n_jobs)).wall

        def sweep_wall(n_jobs: int, n_components: int = n_components) -> float:
            return 1e3 * sweep_seconds(simulated, n_components, (2, 32), n_jobs=n_jobs)[0]

        (one, two), (sweep, on_two) = least_walls(score_wall), least_walls(sweep_wall)
        table.add(n_components, one, two, one / two, sweep, on_two, sweep / on_two)
    save(table)


def n_words_of_fit(name: str, n_components: int, checkpoint: str | None = None) -> int:
    """Words of documents, of which a model has been fitted, with a checkpoint every third sweep."""
    schedule = {"max_iter": 6, "thin": 1, "n_jobs": 1, "random_state": 0, "checkpoint_every": 3}
    lda = pb.LatentDirichletAllocation(n_components, checkpoint=checkpoint, **schedule)
    return lda.fit(pb.read_corpus(name)).n_features_in_


def memory(name: str, /) -> None:
    """Peak of memory of six sweeps with many topics, of which three are kept, and of the result."""
    columns = {"topics": ",d", "words": ",d", "GiB at most": ".2f"}
    columns |= {"with checkpoints": ".2f", "checkpoint, GiB": ".2f"}
    table = Table("scale-memory", f"{COMMAND} memory {Path(name).name}", columns, RESTS_ON)
    for n_components in (100, 1_000, 5_000):
        found = alone(n_words_of_fit, name, n_components)
        with tempfile.TemporaryDirectory() as folder:
            kept = alone(n_words_of_fit, name, n_components, folder)
            n_bytes = sum(x.stat().st_size for x in Path(folder).rglob("*") if x.is_file())
        table.add(n_components, found.value, found.peak, kept.peak, n_bytes / 2**30)
    save(table)


def scored(
    train: scale_peers.Train, folder: str, test: pb.Corpus, n_topics: int, n_passes: int
) -> tuple[float, float]:
    """Seconds of training, and held-out nats per token, by the same estimator for all."""
    seconds, topics = train(folder, n_topics, n_passes)
    model = pb.LatentDirichletAllocation.from_parameters(
        doc_topic_prior=scale_peers.ALPHA, topic_word=topics
    )
    result = pb.log_likelihood(model, test, n_jobs=1, random_state=0)
    return seconds, float(result.nats_per_token)


def peers(tokens: int = 1_000_000) -> None:
    """So many passes over the same documents, 50 topics, one thread, and what they are worth."""
    columns = {f"{N_PASSES} passes": "s", "CPU s": ".1f", "per token and pass, ns": ",.0f"}
    columns |= {"held-out nats per token": ".3f", "GiB at most": ".2f"}
    table = Table("scale-peers", f"{COMMAND} peers --tokens {tokens}", columns, RESTS_ON)
    test = pb.Corpus(next(SMALL.blocks(200, seed=2)))
    with tempfile.TemporaryDirectory() as folder:
        alone(write, SMALL, tokens // SMALL.length, folder, 4)
        for name, train in scale_peers.TRAINERS.items():
            found = alone(scored, train, folder, test, SMALL.n_topics, N_PASSES)
            seconds, nats = found.value
            table.add(name, seconds, 1e9 * seconds / (N_PASSES * tokens), nats, found.peak)
    save(table)


if __name__ == "__main__":
    main(training, large, workers, threads, memory, peers)
