"""Seconds from Ctrl-C to the end of long work, which should stay below one."""

from __future__ import annotations

import _thread
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import polyabayes as pb

N_RUNS = 5


def seconds_to_stop(work: Callable[[], Any], after: float) -> float:
    """Time from an interruption that comes so long after the start until `work` has ended."""
    sent = []

    def interrupt() -> None:
        sent.append(time.perf_counter())
        _thread.interrupt_main()

    timer = threading.Timer(after, interrupt)
    timer.start()
    try:
        work()
    except pb.exceptions.Interrupted:
        return time.perf_counter() - sent[0]
    finally:
        timer.join()
    raise RuntimeError("the work was over before it was interrupted: give it more")


def main() -> int:
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
    for name, work in forever.items():
        times = [seconds_to_stop(work, 0.5 + 0.3 * run) for run in range(N_RUNS)]
        print(f"{name}: {max(times):.2f} s at most of {N_RUNS} runs", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
