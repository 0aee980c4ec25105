"""Side by side with installed peers, in one run: speed, held-out fit, its error, and the time.

`python benches/peers.py [sweeps|held-out]`; without arguments both, which are kept in
benches/records: one thread and processor time of each.
scikit-learn is always there, gensim and tomotopy join in where they are installed. Every model is
scored by `log_likelihood` on the same hold-out, beside the figure that its own library reports.
"""

import importlib.util
import sys
import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import leaderboard
import numpy as np
from record import DATA, Table, save

import polyabayes as pb

try:
    import tomotopy
except ImportError:
    tomotopy = None

COMMAND = "python benches/peers.py"
PACKAGES = {"scikit-learn": "sklearn"} | {n: n for n in ("gensim", "tomotopy", "polyabayes")}
K = 50
# Sweeps of a fit of ours, the default, with its start; tomotopy has no start, and every sweep of it
# takes as long.
SWEEPS, PEER_SWEEPS = 200, 50
REPEATS = 3


def normalised(topic_word: np.ndarray) -> np.ndarray:
    return topic_word / topic_word.sum(axis=1, keepdims=True)


def tomotopy_model(corpus: pb.Corpus, n_topics: int, seed: int = 0, **settings: float) -> Any:
    """A tomotopy model of a corpus, before training."""
    words = np.arange(corpus.n_words).astype(str)
    lda = tomotopy.LDAModel(k=n_topics, alpha=5 / n_topics, eta=0.1, seed=seed, **settings)
    for counts in corpus.counts:
        lda.add_doc(np.repeat(words[counts.indices], counts.data).tolist())
    lda.train(0)
    return lda


def tomotopy_topics(lda: Any, n_words: int) -> np.ndarray:
    """Its topics; a word that training lacked counts like any without tokens."""
    known = np.array([lda.get_topic_word_dist(k) for k in range(lda.k)])
    topics = np.repeat(known.min(axis=1, keepdims=True), n_words, axis=1)
    topics[:, [int(word) for word in lda.used_vocabs]] = known
    return normalised(topics)


def from_tomotopy(lda: Any, n_words: int) -> pb.LatentDirichletAllocation:
    """Its topics and prior."""
    return pb.LatentDirichletAllocation.from_parameters(
        doc_topic_prior=np.asarray(lda.alpha), topic_word=tomotopy_topics(lda, n_words)
    )


def sweep_seconds(estimator: Any, corpus: pb.Corpus) -> float:
    """Time of a sweep of a fit by default, its start and the means that it keeps included."""
    estimator.set_params(max_iter=SWEEPS, n_jobs=1, random_state=0)
    start = time.process_time()
    estimator.fit(corpus)
    return (time.process_time() - start) / SWEEPS


def tomotopy_sweep_seconds(corpus: pb.Corpus, n_topics: int) -> float:
    lda = tomotopy_model(corpus, n_topics)
    lda.optim_interval = 0
    start = time.process_time()
    lda.train(PEER_SWEEPS, workers=1)
    return (time.process_time() - start) / PEER_SWEEPS


def sweeps() -> None:
    """Tokens a second of the Gibbs samplers: the least of several times, taken in turn."""
    corpus = pb.datasets.make_lda_corpus(
        5000, 10_000, 20, document_length=150, random_state=1
    ).corpus
    columns = {"topics": ",d", "polyabayes": ".1f", "tomotopy": ".1f", "ratio": ".2f"}
    table = Table("sweeps", f"{COMMAND} sweeps", columns, ["lda, Gibbs"])
    for n_topics in (20, 100, 500, 1_000):
        lda = pb.LatentDirichletAllocation(n_topics, learn_priors=False)
        ours, theirs = [], []
        for _ in range(REPEATS):
            ours.append(sweep_seconds(lda, corpus))
            if tomotopy is not None:
                theirs.append(tomotopy_sweep_seconds(corpus, n_topics))
        speed = corpus.n_tokens / min(ours) / 1e6
        peer = corpus.n_tokens / min(theirs) / 1e6 if theirs else None
        table.add(n_topics, speed, peer, speed / peer if peer else None)
    save(table)


# Fits of the held-out table, by the row's name.
FITS: dict[str, Callable[[leaderboard.Parts, int], leaderboard.Fitted]] = {
    "scikit-learn, 50 iterations": partial(leaderboard.sklearn_lda, max_iter=50),
    "gensim, 20 passes": partial(leaderboard.gensim_lda, passes=20),
    "tomotopy, 1000 sweeps": partial(
        leaderboard.tomotopy_model, "LDAModel", sweeps=1000, alpha=5 / K, eta=0.1, seed=0
    ),
    "polyabayes, 200 sweeps": leaderboard.polyabayes_lda,
    "polyabayes, 1000 sweeps": partial(leaderboard.polyabayes_lda, max_iter=1000),
}


def held_out() -> None:
    """Held-out nats per token of AP, and the figure that each library prints for it."""
    train, test = leaderboard.split("AP")
    columns = {"AP, K = 50": "s", "training, s": ".1f", "nats per token": ".4f", "±": ".4f"}
    columns |= {"its own figure": "s"}
    table = Table("peers", f"{COMMAND} held-out", columns, ["lda, Gibbs"])
    for name, fit in FITS.items():
        if importlib.util.find_spec(PACKAGES[name.partition(",")[0]]) is None:
            continue
        start = time.process_time()
        model, own, *_ = fit((train, test), K)
        seconds = time.process_time() - start
        found = pb.log_likelihood(model, test, random_state=0)
        half = test[: test.n_documents // 2]
        told = (
            "the same"
            if own is None
            else f"{own(test):.2f}; on half of the documents {own(half):.2f}"
        )
        table.add(name, seconds, found.nats_per_token, found.nats_per_token_std_error, told)
    save(table)


def main() -> int:
    """Run the parts that are named."""
    warnings.simplefilter("ignore")
    if not DATA.is_dir():
        print(f"no data in {DATA}: set POLYABAYES_DATA")
        return 1
    parts = {"sweeps": sweeps, "held-out": held_out}
    for name in sys.argv[1:] or parts:
        parts[name]()
    return 0


if __name__ == "__main__":
    sys.exit(main())
