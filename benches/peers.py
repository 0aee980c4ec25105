"""Side by side with installed peers, in one run: speed, held-out fit, its error, and the time.

`python benches/peers.py [sweeps|held-out|counts]`; without arguments all, which are kept in
benches/records: one thread and processor time of each. Every model is scored by `log_likelihood`
on the same hold-out, beside the figure that its own library reports.
"""

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import leaderboard
import numpy as np
import tomotopy
from record import Table, cells, main, save, timed
from sklearn.decomposition import NMF

import polyabayes as pb

COMMAND = "python benches/peers.py"
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


def trained_for(model: Any, seconds: float, n_sweeps: int) -> float:
    """Train a tomotopy model for so much processor time, some sweeps at a time."""
    start = time.process_time()
    while time.process_time() - start < seconds:
        model.train(n_sweeps, workers=1)
    return time.process_time() - start


def sweeps() -> None:
    """Tokens a second of the Gibbs samplers: the least of several times, taken in turn."""
    made = pb.datasets.make_lda_corpus(5000, 10_000, 20, document_length=150, random_state=1)
    corpus = made.corpus
    columns = {"topics": ",d", "polyabayes": ".1f", "tomotopy": ".1f", "ratio": ".2f"}
    table = Table("sweeps", f"{COMMAND} sweeps", columns, ["lda, Gibbs"])
    for n_topics in (20, 100, 500, 1_000):
        options = {"learn_priors": False, "max_iter": SWEEPS, "n_jobs": 1, "random_state": 0}
        lda = pb.LatentDirichletAllocation(n_topics, **options)
        ours, theirs = [], []
        for _ in range(REPEATS):
            ours.append(timed(lda.fit, corpus)[1] / SWEEPS)
            peer = tomotopy_model(corpus, n_topics)
            peer.optim_interval = 0
            theirs.append(timed(peer.train, PEER_SWEEPS, workers=1)[1] / PEER_SWEEPS)
        own, other = (corpus.n_tokens / min(times) / 1e6 for times in (ours, theirs))
        table.add(n_topics, own, other, own / other)
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
    "polyabayes, bursty topics": partial(leaderboard.polyabayes_lda, topic_concentration="learn"),
}


def held_out() -> None:
    """Held-out nats per token of AP, and the figure that each library prints for it."""
    train, test = leaderboard.split("AP")
    half = test[: test.n_documents // 2]
    columns = {"AP, K = 50": "s", "training, s": ".1f", "nats per token": ".4f", "±": ".4f"}
    columns |= {"its own figure": "s"}
    rests_on = ["lda, Gibbs", "bursty lda, Gibbs"]
    table = Table("peers", f"{COMMAND} held-out", columns, rests_on)
    for name, fit in FITS.items():
        (model, own, *_), seconds = timed(fit, (train, test), K)
        found = pb.log_likelihood(model, test, random_state=0)
        told = "the same"
        if own is not None:
            told = f"{own(test):.2f}; on half of the documents {own(half):.2f}"
        table.add(name, seconds, found.nats_per_token, found.nats_per_token_std_error, told)
    save(table)


def factorised(train: pb.Corpus, max_iter: int) -> Any:
    """Poisson factor analysis of the cells."""
    return pb.PoissonFactorAnalysis(8, max_iter=max_iter, n_jobs=1, random_state=0).fit(train)


def kl_nmf(train: pb.Corpus, max_iter: int) -> Any:
    """KL-NMF of scikit-learn, which has no prior of activities: one is fitted to those found."""
    loss = {"solver": "mu", "beta_loss": "kullback-leibler", "tol": 0.0}
    nmf = NMF(8, init="random", max_iter=max_iter, random_state=0, **loss)
    return pb.interop.from_sklearn(nmf.fit(train.counts.astype(float)), documents=train)


def schpf(train: pb.Corpus) -> Any:
    """The model of github.com/simslab/scHPF at its defaults."""
    from schpf import scHPF

    np.random.seed(0)  # noqa: NPY002  (it draws from the global generator)
    return scHPF(8, verbose=False).fit(train.counts.tocoo())


CELL_FITS: dict[str, Callable[[pb.Corpus], Any]] = {
    "polyabayes, 100 sweeps": partial(factorised, max_iter=100),
    "polyabayes, 200 sweeps": partial(factorised, max_iter=200),
    "scikit-learn, KL-NMF, 50 updates": partial(kl_nmf, max_iter=50),
    "scikit-learn, KL-NMF, 100 updates": partial(kl_nmf, max_iter=100),
    "scHPF": schpf,
}


def counts() -> None:
    """Held-out nats per token of cells with large counts."""
    corpus = cells(3_000)
    train, test = corpus[:2_800], corpus[2_800:]
    columns = {"3,000 cells": "s", "training, s": ".1f", "ratio": ".1f"}
    columns |= {"nats per token": ".4f", "±": ".4f"}
    table = Table("counts", f"{COMMAND} counts", columns, ["pfa, beta-gamma-gamma"])
    first = 0.0
    for name, fit in CELL_FITS.items():
        model, seconds = timed(fit, train)
        first = first or seconds
        scored = test
        if name == "scHPF":
            exposure = pb.interop.schpf_exposure(model.project(test.counts.tocoo()))
            scored = test.with_exposure(exposure)
        found = pb.log_likelihood(model, scored, nats_per_token_std_error=0.0005, random_state=0)
        error = found.total_std_error / test.n_tokens
        table.add(name, seconds, seconds / first, found.nats_per_token, error)
    save(table)


if __name__ == "__main__":
    main(sweeps, held_out, counts)
