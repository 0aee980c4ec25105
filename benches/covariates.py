"""Covariates in training: planted effects and their intervals, held-out scores, cost of a sweep.

``python -m benches.covariates planted``: corpora of 1,000 documents of 100 tokens with 10 topics
and three covariates, of which the last has no effect. Prints how often 95 % intervals of slopes,
less their mean over the topics, hold the true ones.

``python -m benches.covariates poliblog``: political blogs of 2008 by rating and day, from the
folder POLYABAYES_DATA: held-out nats per token with covariates and without.

``python -m benches.covariates cost``: processor time of a sweep there, 50 topics.
"""

import argparse
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import linear_sum_assignment

import polyabayes as pb

_BESIDE = Path(__file__).resolve().parents[2] / "shared" / "data"
DATA = Path(os.environ.get("POLYABAYES_DATA", _BESIDE))

N_TOPICS, N_DOCUMENTS, N_TOKENS, N_WORDS = 10, 1_000, 100, 500


def planted(seed: int) -> tuple[pb.Corpus, np.ndarray, np.ndarray]:
    """A corpus with its covariates, the slopes (topics x 3), and the topics."""
    rng = np.random.default_rng(seed)
    x = np.column_stack(
        [rng.random(N_DOCUMENTS) < 0.5, rng.normal(size=N_DOCUMENTS), rng.normal(size=N_DOCUMENTS)]
    ).astype(float)
    slopes = rng.normal(0, 0.5, (N_TOPICS, 3)) * [1, 1, 0]
    alpha = np.exp(np.log(0.2) + x @ slopes.T)
    topics = rng.dirichlet(np.full(N_WORDS, 0.05), N_TOPICS)
    theta = np.array([rng.dirichlet(row) for row in alpha])
    counts = rng.multinomial(N_TOKENS, theta @ topics)
    frame = pd.DataFrame(x, columns=["group", "score", "nothing"])
    return pb.Corpus(counts).with_metadata(frame), slopes, topics


def centred(slopes: np.ndarray) -> np.ndarray:
    """Slopes less their mean over the topics, which prevalence hardly depends on."""
    return slopes - slopes.mean(axis=-2, keepdims=True)


def run_planted(first: int, n_corpora: int, n_jobs: int | None) -> None:
    """Print coverage and errors of the slopes."""
    held: list[np.ndarray] = []
    errors: list[np.ndarray] = []
    for seed in range(first, first + n_corpora):
        corpus, slopes, topics = planted(seed)
        lda = pb.LatentDirichletAllocation(
            N_TOPICS,
            formula="~ group + score + nothing",
            max_iter=400,
            thin=2,
            random_state=seed,
            n_jobs=n_jobs,
        ).fit(corpus)
        likeness = np.sqrt(topics) @ np.sqrt(lda.components_).T
        order = linear_sum_assignment(-likeness)[1]
        draws = centred(lda.coefficient_draws_[:, order, 1:])
        low, high = np.quantile(draws, [0.025, 0.975], axis=0)
        truth = centred(slopes)
        held.append((low <= truth) & (truth <= high))
        errors.append(draws.mean(axis=0) - truth)
    within, off = np.array(held), np.array(errors)
    print(f"{n_corpora} corpora: 95 % intervals hold {within[..., :2].mean():.1%} of the slopes,")
    print(f"0 of the column without effect {within[..., 2].mean():.1%};")
    print(f"rms error of slopes {np.sqrt((off**2).mean()):.3f}")


def poliblog() -> pb.Corpus:
    """The blogs with rating and day."""
    corpus = pb.read_corpus(DATA / "poliblog5k.ldac.gz", vocabulary=DATA / "poliblog5k.vocab")
    return corpus.with_metadata(pd.read_csv(DATA / "poliblog5k.meta.csv"))


def run_poliblog(n_topics: int, max_iter: int, n_jobs: int | None) -> None:
    """Print held-out scores."""
    train, test = poliblog().split(test_size=0.1, random_state=0)
    options: dict[str, Any] = {"max_iter": max_iter, "random_state": 0, "n_jobs": n_jobs}
    models: dict[str, Any] = {}
    for name, formula in (("with", "~ rating + day"), ("without", None)):
        began = time.process_time()
        models[name] = pb.LatentDirichletAllocation(n_topics, formula=formula, **options)
        models[name].fit(train)
        print(f"{name}: {time.process_time() - began:.1f} s of processor time", flush=True)
    compared = pb.compare(models, test, random_state=0, n_jobs=n_jobs)
    print(compared)
    ahead, std_error = compared.difference("with", "without")
    print(f"with covariates ahead by {ahead:.5f} +- {std_error:.5f} nats per token")
    effect = pb.topics.contrast(
        models["with"], {"rating": "Liberal"}, {"rating": "Conservative"}, documents=train
    )
    low, high = effect.interval()
    table = models["with"].topic_table(6).to_frame()
    order = np.argsort(effect.mean[0])
    words = dict(zip(table["topic"], table["words"], strict=True))
    for topic in (*order[:3], *order[-3:]):
        ends = f"{low[0, topic]:+.3f} to {high[0, topic]:+.3f}"
        print(f"{topic:>3} {effect.mean[0, topic]:+.3f} ({ends}) {words[topic]}")


def run_cost(n_sweeps: int) -> None:
    """Print the processor time of a sweep with and without covariates."""
    corpus = poliblog()
    seconds: dict[str | None, float] = {}
    for formula in (None, "~ rating + bs(day, df=4)"):
        options: dict[str, Any] = {"burn_in": 0, "random_state": 0, "n_jobs": 1}
        model = pb.LatentDirichletAllocation(50, max_iter=n_sweeps, formula=formula, **options)
        began = time.process_time()
        model.fit(corpus)
        seconds[formula] = (time.process_time() - began) / n_sweeps
        print(f"{formula}: {seconds[formula]:.3f} s a sweep", flush=True)
    first, second = seconds.values()
    print(f"ratio {second / first:.2f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["planted", "poliblog", "cost"])
    parser.add_argument("--corpora", type=int, default=40)
    parser.add_argument("--first", type=int, default=0, help="seed of the first corpus")
    parser.add_argument("--topics", type=int, default=20)
    parser.add_argument("--max-iter", type=int, default=200)
    parser.add_argument("--n-jobs", type=int)
    given = parser.parse_args()
    if given.what == "planted":
        run_planted(given.first, given.corpora, given.n_jobs)
    elif given.what == "poliblog":
        run_poliblog(given.topics, given.max_iter, given.n_jobs)
    else:
        run_cost(20)
