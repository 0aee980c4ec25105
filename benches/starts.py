"""Training that does not get stuck: every seed near the best, on simulated and on real documents.

Simulated documents have a known truth: the share of seeds within 0.01 nats a token of the best, and
how well their topics are recovered. Real ones: held-out nats a token over seeds, one start against
several, fixed priors against learned ones, beside tomotopy after the same time.
"""

from __future__ import annotations

import sys
import time
import warnings
from typing import Any

import numpy as np
from peers import DATA, from_tomotopy, tomotopy, tomotopy_model
from scipy.optimize import linear_sum_assignment

import polyabayes as pb

SEEDS = 20
REAL_SEEDS = 10
NEAR = 0.01
N_TEST = 300

Options = dict[str, Any]
PLANTED: dict[str, tuple[type, Options]] = {
    "LDA, Gibbs": (pb.LatentDirichletAllocation, {}),
    "LDA, Gibbs, learned priors": (pb.LatentDirichletAllocation, {"learn_priors": True}),
    "LDA, EM": (pb.LatentDirichletAllocation, {"fit_method": "em", "learn_priors": True}),
    "PFA": (pb.PoissonFactorAnalysis, {}),
    "NMF": (pb.PoissonFactorAnalysis, {"prior": "nmf"}),
}
REAL: dict[str, Options] = {
    "one start": {},
    "two starts": {"n_init": 2},
    "learned priors": {"learn_priors": True},
}


def nats(model: Any, test: pb.Corpus) -> float:
    """Held-out nats a token, to some 0.001."""
    result = pb.log_likelihood(
        model,
        test,
        "annealed",
        n_samples=20,
        n_replicates=8,
        event="sequence",
        given_length=True,
        random_state=0,
    )
    return float(result.nats_per_token)


def recovery(found: np.ndarray, true: np.ndarray) -> float:
    """Mean cosine of true topics and those matched with them."""
    rows = [topics / np.linalg.norm(topics, axis=1, keepdims=True) for topics in (true, found)]
    cosines = rows[0] @ rows[1].T
    return float(cosines[linear_sum_assignment(-cosines)].mean())


def planted() -> None:
    data = pb.datasets.make_lda_corpus(
        n_documents=2000,
        n_words=500,
        n_topics=8,
        document_length=80,
        doc_topic_prior=0.1,
        random_state=0,
    )
    train, test = data.corpus.split(test_size=0.2, random_state=0)
    print(f"documents of the demo, 8 topics, {SEEDS} seeds")
    print(f"{'':<28} {'near the best':>14} {'worst behind':>13} {'recovery':>20} {'a fit':>8}")
    for name, (kind, options) in PLANTED.items():
        scores, cosines, seconds = [], [], []
        for seed in range(SEEDS):
            start = time.perf_counter()
            model = kind(8, random_state=seed, **options).fit(train)
            seconds.append(time.perf_counter() - start)
            cosines.append(recovery(model.components_, data.topic_word))
            scored = name != "NMF"
            scores.append(nats(model, test) if scored else cosines[-1])
        behind = max(scores) - np.array(scores)
        print(
            f"{name:<28} {(behind < NEAR).sum():>11}/{SEEDS} {behind.max():>13.4f} "
            f"{min(cosines):>8.3f} to {max(cosines):.3f} {np.median(seconds):>6.2f} s",
            flush=True,
        )


def real(name: str, n_topics: int) -> None:
    corpus = pb.read_corpus(DATA / f"{name}.ldac.gz", vocabulary=DATA / f"{name}.vocab")
    train, test = corpus.split(test_size=0.2, random_state=0)
    test = pb.Corpus(test.counts[:N_TEST])
    spread: dict[str, list[float]] = {}
    seconds: dict[str, list[float]] = {}
    for seed in range(REAL_SEEDS):
        for kind, options in REAL.items():
            start = time.perf_counter()
            model = pb.LatentDirichletAllocation(n_topics, random_state=seed, **options).fit(train)
            seconds.setdefault(kind, []).append(time.perf_counter() - start)
            spread.setdefault(kind, []).append(nats(model, test))
        if tomotopy is not None:
            peer = tomotopy_model(train, n_topics, seed)
            start = time.perf_counter()
            while time.perf_counter() - start < seconds["one start"][-1]:
                peer.train(10)
            seconds.setdefault("tomotopy", []).append(time.perf_counter() - start)
            spread.setdefault("tomotopy", []).append(nats(from_tomotopy(peer, test.n_words), test))
    print(f"{name}, K={n_topics}, {train.n_tokens:,} tokens, {REAL_SEEDS} seeds")
    for kind, values in spread.items():
        print(
            f"{kind:<28} {np.mean(values):.4f} ({min(values):.4f} to {max(values):.4f}) "
            f"{np.median(seconds[kind]):>6.1f} s",
            flush=True,
        )


def main() -> int:
    warnings.simplefilter("ignore")
    planted()
    if not DATA.is_dir():
        print(f"no data in {DATA}: set POLYABAYES_DATA")
        return 1
    for name in ("ap", "reuters", "20ng", "nips12"):
        for n_topics in (20, 50, 100):
            real(name, n_topics)
    return 0


if __name__ == "__main__":
    sys.exit(main())
