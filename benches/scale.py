"""Speed and coverage of totals, speed of two workers over one, memory of streams.

    python benches/scale.py totals AP.ldac.gz AP.vocab [--repetitions 40]
    python benches/scale.py workers
    python benches/scale.py stream [--documents 200000]
    python benches/scale.py training [--documents 50000] [--components 50]

`totals` trains LDA with 50 topics without 300 documents, scores those by default and with
``nats_per_token_std_error=0.001``, and compares. `workers` scores 600 simulated documents by one
and by two processes. `stream` writes and scores short documents as shards, and prints the peak of
memory. `training` fits LDA to simulated documents of 100 tokens, in memory and on 1, 4 and 16
shards, on one thread, and on one and two workers: seconds a sweep, bytes sent, peak of memory.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np
from scipy import sparse

import polyabayes as pb

N_HELD_OUT, N_TOPICS = 300, 50


def seconds(work: Callable[[], Any]) -> tuple[Any, float]:
    """Result and CPU seconds of all threads of this process."""
    start = time.process_time()
    return work(), time.process_time() - start


def totals(corpus_file: str, vocabulary: str, repetitions: int) -> None:
    corpus = pb.read_corpus(corpus_file, vocabulary=vocabulary)
    order = np.random.default_rng(0).permutation(corpus.n_documents)
    test, train = corpus[order[:N_HELD_OUT]], corpus[order[N_HELD_OUT:]]
    lda = pb.LatentDirichletAllocation(N_TOPICS, max_iter=60, random_state=0).fit(train)
    full, of_full = seconds(lambda: pb.log_likelihood(lda, test, random_state=100))
    truth = full.total - full.log_bias.sum()
    gaps, errors, times = [], [], []
    for seed in range(repetitions):
        settings = {"nats_per_token_std_error": 0.001, "random_state": seed}
        found, taken = seconds(lambda settings=settings: pb.log_likelihood(lda, test, **settings))
        gaps.append(found.total - truth)
        errors.append(found.total_std_error)
        times.append(taken)
    held = np.abs(gaps) < 1.96 * np.hypot(errors, full.total_std_error)
    faster, wanted = of_full / np.mean(times), 0.001 * test.n_tokens
    print(f"{test.n_tokens:,} tokens: {of_full:.1f} s of CPU, +- {full.total_std_error:.1f}")
    print(f"to 0.001 nats a token: {np.mean(times):.2f} s, {faster:.0f} times as fast")
    print(f"error wanted {wanted:.1f}, stated {np.mean(errors):.1f}, found {np.std(gaps):.1f}")
    print(f"bias {np.mean(gaps):.1f} +- {np.std(gaps) / len(gaps) ** 0.5:.1f}")
    print(f"95 % intervals that hold: {held.mean():.1%} of {repetitions}")


def workers() -> None:
    data = pb.datasets.make_lda_corpus(600, 2_000, N_TOPICS, document_length=150, random_state=0)
    model = pb.LatentDirichletAllocation.from_parameters(
        doc_topic_prior=0.1, topic_word=data.topic_word
    )
    settings: dict[str, Any] = {"n_samples": 200, "random_state": 0}
    taken = {}
    for n in (1, 2):
        with ProcessPoolExecutor(n, multiprocessing.get_context("spawn")) as pool:
            list(pool.map(abs, range(n)))
            pb.log_likelihood(model, data.corpus[:20], "annealed", executor=pool, **settings)
            start = time.perf_counter()
            pb.log_likelihood(model, data.corpus, "annealed", executor=pool, **settings)
            taken[n] = time.perf_counter() - start
    print(f"one worker {taken[1]:.1f} s, two {taken[2]:.1f} s: {taken[1] / taken[2]:.2f} times")


def stream(n_documents: int) -> None:
    rng = np.random.default_rng(0)
    topics = rng.dirichlet(np.full(5_000, 0.05), 100)
    model = pb.LatentDirichletAllocation.from_parameters(doc_topic_prior=0.1, topic_word=topics)

    def blocks() -> Iterator[sparse.csr_matrix]:
        for _ in range(n_documents // 1_000):
            words = rng.choice(5_000, (1_000, 30), p=topics.mean(axis=0))
            rows = np.repeat(np.arange(1_000), 30)
            cells = (np.ones(30_000, dtype=int), (rows, words.ravel()))
            yield sparse.csr_matrix(cells, (1_000, 5_000))

    with tempfile.TemporaryDirectory() as folder:
        shards, written = seconds(lambda: pb.write_shards(blocks(), folder, 8))
        settings: dict[str, Any] = {"nats_per_token_std_error": 0.001, "random_state": 0}
        found, taken = seconds(lambda: pb.log_likelihood(model, shards, **settings))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"{shards}: written in {written:.1f} s, scored in {taken:.1f} s of CPU")
    print(f"peak of memory {peak:.2f} GiB")
    print(f"{found.nats_per_token:.4f} +- {found.nats_per_token_std_error:.4f} nats a token")


# Words of the vocabulary, tokens of a document, sweeps of the two fits that are timed.
N_WORDS, LENGTH, N_SWEEPS = 10_000, 100, (2, 8)


def documents_of(n_documents: int) -> Iterator[sparse.csr_matrix]:
    """Simulated documents over words of Zipf's law, block by block."""
    rng = np.random.default_rng(0)
    topics = rng.dirichlet(0.02 * N_WORDS / np.arange(10, 10 + N_WORDS), 50)
    below = topics.cumsum(axis=1)
    for _ in range(n_documents // 1_000):
        rows = []
        for weights in rng.dirichlet(np.full(50, 0.1), 1_000):
            n_of_topic = rng.multinomial(LENGTH, weights)
            draws = [
                np.searchsorted(below[k], rng.random(n) * below[k, -1])
                for k, n in enumerate(n_of_topic)
                if n
            ]
            rows.append(np.bincount(np.concatenate(draws), minlength=N_WORDS))
        yield sparse.csr_matrix(np.array(rows))


def sweep_seconds(
    documents: Any, n_components: int, executor: Any = None, clock: Any = time.process_time
) -> float:
    """Seconds of one sweep: a longer fit less a shorter one, so that all else cancels."""
    taken = []
    for n_sweeps in N_SWEEPS:
        model = pb.LatentDirichletAllocation(
            n_components, max_iter=n_sweeps, burn_in=0, thin=1_000, n_jobs=1, random_state=0
        )
        start = clock()
        workers = {} if executor is None else {"executor": executor}
        model.fit(documents, eval_every=1_000, **workers)
        taken.append(clock() - start)
    return (taken[1] - taken[0]) / (N_SWEEPS[1] - N_SWEEPS[0])


def training(n_documents: int, n_components: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        folders = {n: f"{folder}/{n}" for n in (1, 4, 16)}
        shards = {
            n: pb.write_shards(documents_of(n_documents), path, n) for n, path in folders.items()
        }
        n_tokens = shards[1].n_tokens
        base = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        for n, some in shards.items():
            taken = sweep_seconds(some, n_components)
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
            print(
                f"{n} shards here: {taken:.2f} s of CPU a sweep, "
                f"{1e9 * taken / n_tokens:.0f} ns a token; peak of memory {peak:.2f} GiB, "
                f"{base:.2f} before"
            )
        for n_workers in (1, 2):
            with ProcessPoolExecutor(n_workers, multiprocessing.get_context("spawn")) as pool:
                list(pool.map(abs, range(n_workers)))
                taken = sweep_seconds(shards[4], n_components, pool, time.perf_counter)
            print(f"4 shards on {n_workers} workers: {taken:.2f} s a sweep")
        blocks = [block.counts for block in shards[1].blocks()]
        taken = sweep_seconds(pb.Corpus(sparse.vstack(blocks, "csr")), n_components)
        print(f"in memory: {taken:.2f} s of CPU a sweep, {1e9 * taken / n_tokens:.0f} ns a token")
        sent = 4 * N_WORDS * n_components
        print(f"{n_tokens:,} tokens; {sent / 2**20:.1f} MiB of counts come from each task")


def main() -> None:
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    of_totals = commands.add_parser("totals")
    of_totals.add_argument("corpus")
    of_totals.add_argument("vocabulary")
    of_totals.add_argument("--repetitions", type=int, default=40)
    commands.add_parser("workers")
    commands.add_parser("stream").add_argument("--documents", type=int, default=200_000)
    of_training = commands.add_parser("training")
    of_training.add_argument("--documents", type=int, default=50_000)
    of_training.add_argument("--components", type=int, default=50)
    chosen = parser.parse_args()
    if chosen.command == "totals":
        totals(chosen.corpus, chosen.vocabulary, chosen.repetitions)
    elif chosen.command == "workers":
        workers()
    elif chosen.command == "training":
        training(chosen.documents, chosen.components)
    else:
        stream(chosen.documents)


if __name__ == "__main__":
    main()
