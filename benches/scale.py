"""Speed and coverage of totals, speed of two workers over one, memory of streams.

    python benches/scale.py totals AP.ldac.gz AP.vocab [--repetitions 40]
    python benches/scale.py workers
    python benches/scale.py stream [--documents 200000]

`totals` trains LDA with 50 topics without 300 documents, scores those by default and with
``nats_per_token_std_error=0.001``, and compares. `workers` scores 600 simulated documents by one
and by two processes. `stream` writes and scores short documents as shards, and prints the peak of
memory.
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
    chosen = parser.parse_args()
    if chosen.command == "totals":
        totals(chosen.corpus, chosen.vocabulary, chosen.repetitions)
    elif chosen.command == "workers":
        workers()
    else:
        stream(chosen.documents)


if __name__ == "__main__":
    main()
