"""Training that does not get stuck: every seed near the best, on simulated and on real documents.

Simulated documents have a known truth: the share of seeds within 0.01 nats a token of the best, and
how well their topics are recovered. Real ones: held-out nats a token over seeds, fixed priors
against learned ones, beside tomotopy after the same processor time. `python benches/starts.py
[planted|real]`; both are kept in benches/records, one thread and processor time of each.
"""

from __future__ import annotations

import sys
import time
import warnings
from typing import Any

import numpy as np
from peers import DATA, from_tomotopy, tomotopy, tomotopy_model
from recorded import Table, save
from scipy.optimize import linear_sum_assignment

import polyabayes as pb

COMMAND = "python benches/starts.py"
SEEDS = 20
REAL_SEEDS = 3
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
REAL: dict[str, Options] = {"fixed priors": {}, "learned priors": {"learn_priors": True}}
CORPORA = {"ap": "AP", "reuters": "Reuters", "20ng": "20 Newsgroups", "nips12": "NIPS"}


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
        n_jobs=1,
        random_state=0,
    )
    return float(result.nats_per_token)


def recovery(found: np.ndarray, true: np.ndarray) -> float:
    """Mean cosine of true topics and those matched with them."""
    rows = [topics / np.linalg.norm(topics, axis=1, keepdims=True) for topics in (true, found)]
    cosines = rows[0] @ rows[1].T
    return float(cosines[linear_sum_assignment(-cosines)].mean())


def planted() -> None:
    """Every kind of training on documents with 8 known topics."""
    data = pb.datasets.make_lda_corpus(
        n_documents=2000,
        n_words=500,
        n_topics=8,
        document_length=80,
        doc_topic_prior=0.1,
        random_state=0,
    )
    train, test = data.corpus.split(test_size=0.2, random_state=0)
    columns = {f"8 topics, {SEEDS} seeds": "s", "near the best": "d", "worst behind": ".4f"}
    columns |= {"least cosine": ".3f", "largest cosine": ".3f", "a fit, s": ".2f"}
    table = Table("starts-planted", f"{COMMAND} planted", columns)
    for name, (kind, options) in PLANTED.items():
        scores, cosines, seconds = [], [], []
        for seed in range(SEEDS):
            start = time.process_time()
            model = kind(8, n_jobs=1, random_state=seed, **options).fit(train)
            seconds.append(time.process_time() - start)
            cosines.append(recovery(model.components_, data.topic_word))
            scored = name != "NMF"
            scores.append(nats(model, test) if scored else cosines[-1])
        behind = max(scores) - np.array(scores)
        near = int((behind < NEAR).sum())
        table.add(name, near, behind.max(), min(cosines), max(cosines), np.median(seconds))
    save(table)


def trained_by_tomotopy(train: pb.Corpus, n_topics: int, seed: int, seconds: float) -> Any:
    """Its model after at least so much processor time, as one of ours."""
    peer = tomotopy_model(train, n_topics, seed)
    start = time.process_time()
    while time.process_time() - start < seconds:
        peer.train(5, workers=1)
    return from_tomotopy(peer, train.n_words)


def real_row(table: Table, name: str, n_topics: int) -> None:
    """One corpus and number of topics: mean of the seeds, and the least and the most of them."""
    corpus = pb.read_corpus(DATA / f"{name}.ldac.gz", vocabulary=DATA / f"{name}.vocab")
    train, test = corpus.split(test_size=0.2, random_state=0)
    test = pb.Corpus(test.counts[:N_TEST])
    found: dict[str, list[float]] = {kind: [] for kind in (*REAL, "tomotopy")}
    seconds: list[float] = []
    for seed in range(REAL_SEEDS):
        for kind, options in REAL.items():
            lda = pb.LatentDirichletAllocation(n_topics, n_jobs=1, random_state=seed, **options)
            start = time.process_time()
            lda.fit(train)
            if kind == "fixed priors":
                seconds.append(time.process_time() - start)
            found[kind].append(nats(lda, test))
        if tomotopy is not None:
            found["tomotopy"].append(
                nats(trained_by_tomotopy(train, n_topics, seed, seconds[-1]), test)
            )
    spread = [
        f"{np.mean(values):.4f} ({min(values):.4f} to {max(values):.4f})" if values else None
        for values in found.values()
    ]
    table.add(CORPORA[name], n_topics, np.median(seconds), *spread)


def real() -> None:
    """Held-out nats a token of four corpora."""
    columns = {"corpus": "s", "topics": "d", "a fit, s": ".0f"}
    columns |= dict.fromkeys((*REAL, "tomotopy"), "s")
    table = Table("starts", f"{COMMAND} real", columns)
    for n_topics in (50, 20, 100):
        for name in CORPORA:
            real_row(table, name, n_topics)
            table.rows.sort(key=lambda row: list(CORPORA.values()).index(row[0]) * 1000 + row[1])
            save(table)


def main() -> int:
    """Run the parts that are named."""
    warnings.simplefilter("ignore")
    if not DATA.is_dir():
        print(f"no data in {DATA}: set POLYABAYES_DATA")
        return 1
    parts = {"planted": planted, "real": real}
    for name in sys.argv[1:] or parts:
        parts[name]()
    return 0


if __name__ == "__main__":
    sys.exit(main())
