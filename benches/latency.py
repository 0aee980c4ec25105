"""What a call costs beside its document: the model is compiled at the first call and kept.

``python benches/latency.py`` scores different documents of five words, one a call, and all in one
call; the difference is what a call costs. Processor milliseconds, one thread a call.
"""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from record import Table, main, save, timed
from scipy import sparse

import polyabayes as pb

N_TOPICS, N_WORDS, LENGTH = 100, 100_000, 5
N_CALLS, N_THREADS, N_ROUNDS = 200, 8, 3

Call = Callable[[Any], object]


def milliseconds(call: Call, batches: Iterable[Any], n_threads: int = 1) -> float:
    """Processor milliseconds of all calls together."""
    with ThreadPoolExecutor(n_threads) as threads:
        return 1e3 * timed(lambda: list(threads.map(call, batches)))[1]


def latency() -> None:
    rng = np.random.default_rng(0)
    topics = rng.dirichlet(np.full(N_WORDS, 0.05), N_TOPICS)
    model = pb.LatentDirichletAllocation.from_parameters(
        doc_topic_prior=0.1,
        topic_word=topics,
        vocabulary=[f"word{word}" for word in range(N_WORDS)],
        random_state=0,
    ).set_params(n_jobs=1)
    words = rng.choice(N_WORDS, (N_CALLS, LENGTH), replace=True)
    cells = np.ones(words.size, np.int64), (np.arange(words.size) // LENGTH, words.ravel())
    documents = sparse.csr_matrix(cells, shape=(N_CALLS, N_WORDS))
    texts = [[f"word{word}" for word in row] for row in words]

    def scored(x: Any) -> object:
        return pb.log_likelihood(model, x, random_state=0, n_jobs=1)

    calls: dict[str, Call] = {
        "`log_likelihood`": scored,
        "`log_likelihood` of a list of words": scored,
        "`score_samples`": model.score_samples,
        "`transform`": model.transform,
        "`score`": model.score,
    }
    columns = {
        f"documents of {LENGTH} words, K = {N_TOPICS}, V = {N_WORDS:,}": "s",
        "first call, ms": ".2f", "a call, ms": ".2f", "the document in it, ms": ".2f",
        "beside it, ms": ".2f", f"from {N_THREADS} threads: a call, ms": ".2f",
    }  # fmt: skip
    table = Table("latency", "python benches/latency.py latency", columns, ["lda, exact"])
    # The first call imports modules, which no later one does.
    pb.log_likelihood(model, documents[:1])
    rows, lists = [documents[row] for row in range(N_CALLS)], [[text] for text in texts]
    for name, call in calls.items():
        one_by_one, together = (lists, texts) if "list" in name else (rows, documents)
        model.components_ = model.components_.copy()
        model._seal()
        first = milliseconds(call, one_by_one[:1])
        found = [
            (
                milliseconds(call, one_by_one),
                milliseconds(call, [together]),
                milliseconds(call, one_by_one, N_THREADS),
            )
            for _ in range(N_ROUNDS)
        ]
        single, batch, threads = np.median(found, axis=0) / N_CALLS
        table.add(name, first, single, batch, single - batch, threads)
    save(table)


if __name__ == "__main__":
    main(latency)
