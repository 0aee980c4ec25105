"""Side by side with installed peers, in one run: speed, held-out fit, its error, and the time.

`python benches/peers.py [sweeps|held-out]`; without arguments both, which are kept in
benches/records: one thread and processor time of each.
scikit-learn is always there, gensim and tomotopy join in where they are installed. Every model is
scored by `log_likelihood` on the same hold-out, beside the figure that its own library reports.
"""

import sys
import time
import warnings
from typing import Any

import numpy as np
from record import DATA, Table, save
from sklearn.decomposition import LatentDirichletAllocation as SklearnLDA

import polyabayes as pb

try:
    import gensim
except ImportError:
    gensim = None
try:
    import tomotopy
except ImportError:
    tomotopy = None

COMMAND = "python benches/peers.py"
K = 50
# Sweeps of a fit of ours, the default, with its start; tomotopy has no start, and every sweep of it
# takes as long.
SWEEPS, PEER_SWEEPS = 200, 50
REPEATS = 3


class HeldOut:
    """A split corpus, and the table of those trained on it."""

    def __init__(self, corpus: pb.Corpus) -> None:
        self.split = corpus.split(test_size=0.2, random_state=0)
        self.train, self.test = self.split
        columns = {"AP, K = 50": "s", "training, s": ".1f", "nats per token": ".4f", "±": ".4f"}
        self.table = Table(
            "peers", f"{COMMAND} held-out", columns | {"its own figure": "s"}, ["lda, Gibbs"]
        )

    def row(self, name: str, seconds: float, model: pb.LatentDirichletAllocation, own: str) -> None:
        result = pb.log_likelihood(model, self.test, random_state=0)
        value, error = result.nats_per_token, result.nats_per_token_std_error
        self.table.add(name, seconds, value, error, own)


def normalised(topic_word: np.ndarray) -> np.ndarray:
    return topic_word / topic_word.sum(axis=1, keepdims=True)


def polyabayes_lda(data: HeldOut, max_iter: int) -> None:
    start = time.process_time()
    model = pb.LatentDirichletAllocation(K, max_iter=max_iter, n_jobs=1, random_state=0)
    model.fit(data.train)
    data.row(f"polyabayes, {max_iter} sweeps", time.process_time() - start, model, "the same")


def sklearn_lda(data: HeldOut, max_iter: int) -> None:
    start = time.process_time()
    lda = SklearnLDA(K, max_iter=max_iter, random_state=0).fit(data.train.counts)
    elapsed = time.process_time() - start
    model = pb.LatentDirichletAllocation.from_parameters(
        doc_topic_prior=lda.doc_topic_prior_, topic_word=normalised(lda.components_)
    )
    whole = -np.log(lda.perplexity(data.test.counts))
    half = -np.log(lda.perplexity(data.test.counts[: data.test.n_documents // 2]))
    own = f"{whole:.2f}; on half of the documents {half:.2f}"
    data.row(f"scikit-learn, {max_iter} iterations", elapsed, model, own)


def gensim_lda(data: HeldOut, passes: int) -> None:
    train, test = (gensim.matutils.Sparse2Corpus(corpus.counts.T) for corpus in data.split)
    start = time.process_time()
    lda = gensim.models.LdaModel(
        train, K, dict(enumerate(map(str, range(data.test.n_words)))), passes=passes, random_state=0
    )
    elapsed = time.process_time() - start
    model = pb.LatentDirichletAllocation.from_parameters(
        doc_topic_prior=lda.alpha.astype(float),
        topic_word=normalised(lda.get_topics().astype(float)),
    )
    bound = lda.log_perplexity(list(test))
    own = f"{bound:.2f}; perplexity {2**-bound:,.0f}, 2 to that power"
    data.row(f"gensim, {passes} passes", elapsed, model, own)


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


def tomotopy_lda(data: HeldOut, max_iter: int) -> None:
    lda = tomotopy_model(data.train, K)
    start = time.process_time()
    lda.train(max_iter, workers=1)
    elapsed = time.process_time() - start
    model = from_tomotopy(lda, data.test.n_words)
    documents = [
        lda.make_doc(np.repeat(counts.indices, counts.data).astype(str).tolist())
        for counts in data.test.counts
    ]
    _, values = lda.infer(documents)
    own = f"{np.sum(values) / data.test.n_tokens:.2f}"
    data.row(f"tomotopy, {max_iter} sweeps", elapsed, model, own)


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


def held_out() -> None:
    """Held-out nats per token of AP, and the figure that each library prints for it."""
    data = HeldOut(pb.read_corpus(DATA / "ap.ldac.gz", vocabulary=DATA / "ap.vocab"))
    sklearn_lda(data, 50)
    if gensim is not None:
        gensim_lda(data, 20)
    if tomotopy is not None:
        tomotopy_lda(data, 1000)
    for max_iter in (200, 1000):
        polyabayes_lda(data, max_iter)
    save(data.table)


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
