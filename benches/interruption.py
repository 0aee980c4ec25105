"""Seconds from Ctrl-C to the end of long work, which should stay below one."""

import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from record import main

import polyabayes as pb

N_RUNS = 3


def seconds_to_stop(work: Callable[[], Any], after: float) -> float:
    """Time from an interruption that comes so long after the start until `work` has ended."""
    sent = []

    def interrupt() -> None:
        sent.append(time.perf_counter())
        # A true signal: it wakes a main thread that waits for others, too.
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    timer = threading.Timer(after, interrupt)
    timer.start()
    try:
        work()
    except KeyboardInterrupt:
        return time.perf_counter() - sent[0]
    finally:
        timer.join()
    raise RuntimeError("the work was over before it was interrupted: give it more")


def long_documents() -> dict[str, Callable[[], Any]]:
    """One document of many tokens, by methods that go through all; from 6e7 on they are refused."""
    rng = np.random.default_rng(0)
    model = pb.LatentDirichletAllocation.from_parameters(
        doc_topic_prior=0.5, topic_word=rng.dirichlet(np.ones(60_000), 3)
    )
    huge, long = np.full((1, 60_000), 900), np.ones((1, 60_000), dtype=int)

    def scores(counts: Any, method: str) -> Callable[[], Any]:
        return lambda: pb.log_likelihood(model, counts, method, budget=1e18, n_jobs=1)

    return {
        "5.4e7 tokens by auto": scores(huge, "auto"),
        "5.4e7 tokens by recursive": scores(huge, "recursive"),
        "6e4 tokens by l2r": scores(long, "l2r"),
    }


def evidence() -> dict[str, Callable[[], Any]]:
    """Evidence of a table."""
    table = np.random.default_rng(0).poisson(2.0, (26, 26))
    nmf = pb.AllocationModel.nmf(8)
    return {
        "tempered evidence": lambda: nmf.log_evidence(
            table, "tempered", target_std_error=1e-4, random_state=0
        )
    }


def loops(lda: Any, corpus: Any) -> dict[str, Callable[[], Any]]:
    """Many short calls, fits of many sizes, and work in a pool of threads."""

    def short_calls() -> None:
        for seed in range(10**6):
            pb.log_likelihood(lda, corpus[:1], "smc", n_particles=5, random_state=seed)

    def pool() -> None:
        with ThreadPoolExecutor(2) as threads:
            options = {"n_particles": 50_000, "budget": 1e18}
            work = [
                threads.submit(pb.log_likelihood, lda, corpus, "smc-lookahead", **options)
                for _ in range(2)
            ]
            for one in work:
                one.result()

    model = pb.LatentDirichletAllocation(max_iter=10**4)
    return {
        "loop of short calls": short_calls,
        "choice": lambda: pb.choose_n_components(model, corpus, [50, 100], random_state=0),
        "work in a pool of threads": pool,
    }


def interruption() -> None:
    """Print the seconds of every kind of work, the most of three interruptions."""
    corpus = pb.datasets.make_lda_corpus(2_000, 300, 10, document_length=300, random_state=0).corpus
    lda = pb.LatentDirichletAllocation(50, max_iter=5, random_state=0).fit(corpus)
    forever: dict[str, Callable[[], Any]] = {
        "LDA": lambda: pb.LatentDirichletAllocation(100, max_iter=10**6).fit(corpus),
        "PFA": lambda: pb.PoissonFactorAnalysis(100, max_iter=10**6).fit(corpus),
        "LDA by EM": lambda: pb.LatentDirichletAllocation(
            200, max_iter=10**6, fit_method="em", tol=0.0
        ).fit(corpus),
        "smc-lookahead": lambda: pb.log_likelihood(
            lda, corpus, "smc-lookahead", n_particles=10**4, budget=1e15
        ),
        "direct": lambda: pb.log_likelihood(lda, corpus, "direct", n_samples=10**6, budget=1e15),
    }
    forever |= long_documents() | evidence() | loops(lda, corpus)
    print(f"seconds from Ctrl-C to the end of the work, the most of {N_RUNS}")
    for name, work in forever.items():
        most = max(seconds_to_stop(work, 0.5 + 0.3 * run) for run in range(N_RUNS))
        print(f"{most:6.2f} {name}", flush=True)


if __name__ == "__main__":
    main(interruption)
