"""Side by side with installed peers, in one run: held-out fit, its error, and the time.

scikit-learn is always there, tomotopy joins in where it is installed. Every model is scored by
`log_likelihood` on the same hold-out, beside the figure that its own library reports.
"""

from __future__ import annotations

import os
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.decomposition import LatentDirichletAllocation as SklearnLDA

import polyabayes as pb

_BESIDE = Path(__file__).resolve().parents[2] / "shared" / "data"
DATA = Path(os.environ.get("POLYABAYES_DATA", _BESIDE))
K = 50


class HeldOut:
    """A split corpus, and the table of those trained on it."""

    def __init__(self, corpus: pb.Corpus) -> None:
        self.train, self.test = corpus.split(test_size=0.2, random_state=0)
        print(f"{'20 % held out, K=50':<30} {'training':>10}   {'nats a token':>20}   own figure")

    def row(self, name: str, seconds: float, model: pb.LatentDirichletAllocation, own: str) -> None:
        result = pb.log_likelihood(model, self.test, random_state=0)
        held_out = f"{result.nats_per_token:.4f} +- {result.nats_per_token_std_error:.4f}"
        print(f"{name:<30} {seconds:>8.1f} s   {held_out:>20}   {own}", flush=True)


def normalised(topic_word: np.ndarray) -> np.ndarray:
    return topic_word / topic_word.sum(axis=1, keepdims=True)


def polyabayes_lda(data: HeldOut, max_iter: int) -> None:
    start = time.perf_counter()
    model = pb.LatentDirichletAllocation(K, max_iter=max_iter, random_state=0).fit(data.train)
    data.row(f"polyabayes, {max_iter} sweeps", time.perf_counter() - start, model, "the same")


def sklearn_lda(data: HeldOut, max_iter: int) -> None:
    start = time.perf_counter()
    lda = SklearnLDA(K, max_iter=max_iter, random_state=0, n_jobs=-1).fit(data.train.counts)
    elapsed = time.perf_counter() - start
    model = pb.LatentDirichletAllocation.from_parameters(
        doc_topic_prior=lda.doc_topic_prior_, topic_word=normalised(lda.components_)
    )
    whole = -np.log(lda.perplexity(data.test.counts))
    half = -np.log(lda.perplexity(data.test.counts[: data.test.n_documents // 2]))
    own = f"{whole:.4f} (on half of the documents {half:.4f})"
    data.row(f"scikit-learn, {max_iter} iterations", elapsed, model, own)


def tomotopy_lda(data: HeldOut, max_iter: int) -> None:
    try:
        import tomotopy
    except ImportError:
        print("tomotopy is not installed")
        return
    words = data.train.vocabulary
    lda = tomotopy.LDAModel(k=K, alpha=5 / K, eta=0.1, seed=0)
    for counts in data.train.counts:
        lda.add_doc(np.repeat(words[counts.indices], counts.data).tolist())
    start = time.perf_counter()
    lda.train(max_iter, workers=os.cpu_count() or 1)
    elapsed = time.perf_counter() - start
    column = {word: i for i, word in enumerate(words)}
    # Words that the training half lacks keep a trace of probability.
    topics = np.full((K, len(words)), 1e-12)
    topics[:, [column[word] for word in lda.used_vocabs]] = [
        lda.get_topic_word_dist(k) for k in range(K)
    ]
    model = pb.LatentDirichletAllocation.from_parameters(
        doc_topic_prior=np.asarray(lda.alpha), topic_word=normalised(topics)
    )
    documents = [
        lda.make_doc(np.repeat(words[counts.indices], counts.data).tolist())
        for counts in data.test.counts
    ]
    _, values = lda.infer(documents)
    own = f"{np.sum(values) / data.test.n_tokens:.4f}"
    data.row(f"tomotopy, {max_iter} sweeps", elapsed, model, own)


def main() -> int:
    if not DATA.is_dir():
        print(f"no data in {DATA}: set POLYABAYES_DATA")
        return 1
    warnings.simplefilter("ignore")
    data = HeldOut(pb.read_corpus(DATA / "ap.ldac.gz", vocabulary=DATA / "ap.vocab"))
    for max_iter in (50, 200, 1000):
        polyabayes_lda(data, max_iter)
    for max_iter in (10, 50):
        sklearn_lda(data, max_iter)
    tomotopy_lda(data, 1000)
    return 0


if __name__ == "__main__":
    sys.exit(main())
