"""The figures of docs/benchmarks.md, one line each.

Real corpora are read from the folder POLYABAYES_DATA, or from ../shared/data beside the
repository; the figures that need them are left out, with a word, where there is none.
"""

from __future__ import annotations

import csv
import json
import os
import statistics
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np

import polyabayes as pb

_BESIDE = Path(__file__).resolve().parents[2] / "shared" / "data"
DATA = Path(os.environ.get("POLYABAYES_DATA", _BESIDE))


def seconds(work: Callable[[], object], repeats: int = 3) -> float:
    """Median wall time of `work`."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def report(what: str, figure: str) -> None:
    print(f"{what:<72} {figure}", flush=True)


def published_values() -> None:
    """The model and the corpus of Capdevila et al. 2018, cut to 100 words."""
    parameters = json.loads((DATA / "l2r_twitter100.model.json").read_text())
    model = pb.PoissonFactorAnalysis.from_parameters(
        topic_word=parameters["phi"], shape=parameters["r"], probability=parameters["p"]
    )
    corpus = pb.read_corpus(DATA / "l2r_twitter100.ldac.gz", n_words=100)
    with (DATA / "l2r_twitter100.exact.csv").open() as stream:
        published = [tuple(map(float, row)) for row in list(csv.reader(stream))[1:]]
    rows = [int(row) for row, _ in published]
    found = pb.log_likelihood(model, corpus[rows], "exact").values
    error = max(abs(f / v - 1) for f, (_, v) in zip(found, published, strict=True))
    report("l2r_twitter100: ten published values, largest relative error", f"{error:.1e}")

    within = pb.log_likelihood(model, corpus, "auto").methods == "exact"
    try:
        time_all = seconds(lambda: pb.log_likelihood(model, corpus, "exact"))
        beyond = 0
    except pb.exceptions.BudgetExceededError:
        cheap = corpus[np.flatnonzero(within)]
        time_all = seconds(lambda: pb.log_likelihood(model, cheap, "exact"))
        beyond = int((~within).sum())
    report(
        "l2r_twitter100: all 10,653 documents exact (beyond the budget)",
        f"{time_all:.2f} s ({beyond})",
    )


def one_document() -> None:
    """Time a document on one thread, replicates included."""
    data = pb.datasets.make_lda_corpus(200, 1000, 50, document_length=100, random_state=1)
    model = pb.LatentDirichletAllocation.from_parameters(
        doc_topic_prior=data.doc_topic_prior, topic_word=data.topic_word
    )
    for n_replicates in (2, 4, 16):
        for method in ("smc", "smc-lookahead"):

            def work(method: str = method, n_replicates: int = n_replicates) -> object:
                return pb.log_likelihood(
                    model,
                    data.corpus,
                    method,
                    n_particles=20,
                    n_replicates=n_replicates,
                    random_state=0,
                    n_jobs=1,
                )

            report(
                f"{method}, K=50, 100 tokens, 20 particles x {n_replicates} replicates",
                f"{seconds(work) / 200 * 1e3:.2f} ms a document",
            )


def coverage(n_topics: int, length: int) -> None:
    """Default settings on 500 documents with exact values."""
    data = pb.datasets.make_lda_corpus(500, 500, n_topics, document_length=length, random_state=1)
    model = pb.LatentDirichletAllocation.from_parameters(
        doc_topic_prior=data.doc_topic_prior, topic_word=data.topic_word
    )
    exact = pb.log_likelihood(model, data.corpus, "exact", budget=1e11).values
    for method in ("smc", "smc-lookahead"):
        result = pb.log_likelihood(model, data.corpus, method, random_state=0)
        lower, upper = result.interval(0.95)
        covered = ((lower <= exact) & (exact <= upper)).mean()
        ratio = np.exp(result.values - exact)
        z = (ratio.mean() - 1) / (ratio.std(ddof=1) / np.sqrt(len(ratio)))
        of_total = (result.total - exact.sum()) / result.total_std_error
        rms = float(np.sqrt(((result.values - exact) ** 2).mean()))
        report(
            f"{method}, K={n_topics}, {length} tokens: coverage; mean p/exact - 1; total; rms",
            f"{covered:.1%}; {z:+.1f} errors; {of_total:+.1f} errors; {rms:.4f} nats",
        )


def associated_press() -> None:
    """Fit, score and compare on AP; two threads against one."""
    corpus = pb.read_corpus(DATA / "ap.ldac.gz", vocabulary=DATA / "ap.vocab")
    train, test = corpus.split(test_size=0.2, random_state=0)
    models: dict[str, pb.LatentDirichletAllocation | pb.PoissonFactorAnalysis] = {
        "lda": pb.LatentDirichletAllocation(50, random_state=0),
        "pfa": pb.PoissonFactorAnalysis(50, random_state=0),
    }
    for name, model in models.items():
        time_fit = seconds(lambda model=model: model.fit(train), repeats=1)
        report(f"AP: {name}, K=50, fit of 200 sweeps", f"{time_fit:.1f} s")
        result = pb.log_likelihood(model, test, random_state=0)
        report(
            f"AP: {name}, nats a token of the 20 % hold-out",
            f"{result.nats_per_token:.4f} +- {result.nats_per_token_std_error:.4f}",
        )
    lda, some = models["lda"], test[:150]
    long_run = {"n_samples": 3_000, "n_replicates": 32, "budget": 1e13, "random_state": 7}
    reference = pb.log_likelihood(lda, some, "annealed", **long_run)
    for method in ("auto", "annealed", "smc-lookahead"):
        for seed in (0, 1):
            result = pb.log_likelihood(lda, some, method, random_state=seed)
            lower, upper = result.interval()
            covered = ((lower <= reference.values) & (reference.values <= upper)).mean()
            error = result.total - reference.total
            report(
                f"AP: {method}, seed {seed}, 150 documents: coverage of a long run; total off by",
                f"{covered:.0%}; {error:+.1f} +- {result.total_std_error:.1f} nats",
            )
    first = corpus[:2000]
    times: dict[int, list[float]] = {1: [], 2: []}
    for _ in range(5):
        for n_jobs, measured in times.items():
            start = time.perf_counter()
            pb.log_likelihood(lda, first, random_state=0, n_jobs=n_jobs)
            measured.append(time.perf_counter() - start)
    ratio = statistics.median(one / two for one, two in zip(times[1], times[2], strict=True))
    report(
        "AP: scoring 2,000 documents, K=50, one thread; against two threads",
        f"{statistics.median(times[1]):.2f} s; {ratio:.2f} times",
    )


def main() -> int:
    # The plain filter and the longest documents deserve the warning; the figures stay a table.
    warnings.simplefilter("ignore", pb.exceptions.UnreliableErrorWarning)
    one_document()
    coverage(5, 40)
    coverage(3, 300)
    if DATA.is_dir():
        published_values()
        associated_press()
    else:
        print(f"no data in {DATA}: set POLYABAYES_DATA for the figures on real corpora")
    return 0


if __name__ == "__main__":
    sys.exit(main())
