"""Seconds from Ctrl-C to the end of long work, which should stay below one."""

import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
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


def calls() -> dict[str, Callable[[], Any]]:
    """Work that would take minutes or more."""
    corpus = pb.datasets.make_lda_corpus(2_000, 300, 10, document_length=300, random_state=0).corpus
    lda = pb.LatentDirichletAllocation(50, max_iter=5, random_state=0).fit(corpus)
    big = pb.LatentDirichletAllocation.from_parameters(
        doc_topic_prior=0.5, topic_word=np.random.default_rng(0).dirichlet(np.ones(60_000), 3)
    )
    # From 6e7 tokens on, methods that go through all of a document are refused.
    huge, long = np.full((1, 60_000), 900), np.ones((1, 60_000), dtype=int)
    table = np.random.default_rng(0).poisson(2.0, (26, 26))
    score = partial(pb.log_likelihood, budget=1e18)

    def short_calls() -> None:
        for seed in range(10**6):
            pb.log_likelihood(lda, corpus[:1], "smc", n_particles=5, random_state=seed)

    def pool() -> None:
        with ThreadPoolExecutor(2) as threads:
            one = partial(score, lda, corpus, "smc-lookahead", n_particles=50_000)
            for work in [threads.submit(one) for _ in range(2)]:
                work.result()

    em = pb.LatentDirichletAllocation(200, max_iter=10**6, fit_method="em", tol=0.0)
    sized = pb.LatentDirichletAllocation(max_iter=10**4)
    return {
        "LDA": partial(pb.LatentDirichletAllocation(100, max_iter=10**6).fit, corpus),
        "PFA": partial(pb.PoissonFactorAnalysis(100, max_iter=10**6).fit, corpus),
        "LDA by EM": partial(em.fit, corpus),
        "smc-lookahead": partial(score, lda, corpus, "smc-lookahead", n_particles=10**4),
        "direct": partial(score, lda, corpus, "direct", n_samples=10**6),
        "5.4e7 tokens by auto": partial(score, big, huge, n_jobs=1),
        "5.4e7 tokens by recursive": partial(score, big, huge, "recursive", n_jobs=1),
        "6e4 tokens by l2r": partial(score, big, long, "l2r", n_jobs=1),
        "tempered evidence": partial(
            pb.AllocationModel.nmf(8).log_evidence,
            *(table, "tempered"),
            target_std_error=1e-4,
            random_state=0,
        ),
        "loop of short calls": short_calls,
        "choice": partial(pb.choose_n_components, sized, corpus, [50, 100], random_state=0),
        "work in a pool of threads": pool,
    }


def interruption() -> None:
    """Print the seconds of every kind of work, the most of three interruptions."""
    print(f"seconds from Ctrl-C to the end of the work, the most of {N_RUNS}")
    for name, work in calls().items():
        most = max(seconds_to_stop(work, 0.5 + 0.3 * run) for run in range(N_RUNS))
        print(f"{most:6.2f} {name}", flush=True)


if __name__ == "__main__":
    main(interruption)
