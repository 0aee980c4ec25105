"""The number of topics, by `choose_n_components` and by what people use: who finds it?

    python benches/choice.py [topics|tables] [--repeats N] [--only REGIME]

`topics`: corpora drawn from LDA with a known number of topics, in the design of arXiv:2212.14074:
few and many topics and documents, short and long ones, topics apart and alike, equal and unequal
weights. `tables`: count tables of known rank. One line a corpus and rival; then, for every rival,
the share within 1 of the truth, within a tenth of it (and always within 1), the mean of
ln(chosen / true), and processor seconds. Where no size is named, the rival is wrong. Choices are
kept in benches/records/runs regime by regime, so that ``--only`` measures one anew; the table in
benches/records is made of all of them.
"""

from __future__ import annotations

import argparse
import json
import math
import time
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import tomotopy
from numpy.typing import NDArray
from recorded import RECORDS, Table, machine, save
from scipy.optimize import linear_sum_assignment
from sklearn.decomposition import NMF
from sklearn.decomposition import LatentDirichletAllocation as SklearnLDA
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import silhouette_score

import polyabayes as pb
from polyabayes.exceptions import PolyabayesWarning
from polyabayes.sizes.choice import criteria

Counts = NDArray[np.int64]


class Regime(NamedTuple):
    """How corpora are drawn; `unequal` weights of topics fall by a fifth from each to the next."""

    n_topics: int = 8
    n_documents: int = 300
    length: int = 80
    topic_word_prior: float = 0.05
    unequal: bool = False


REGIMES = {
    "base": Regime(),
    "3 topics": Regime(n_topics=3),
    "20 topics": Regime(n_topics=20, n_documents=600),
    "short": Regime(length=15, n_documents=600),
    "long": Regime(length=300, n_documents=100),
    "few": Regime(n_documents=60),
    "many": Regime(n_documents=1_000),
    "alike": Regime(topic_word_prior=0.3),
    "unequal": Regime(unequal=True),
}
N_WORDS = 300
RUNS = RECORDS / "runs"


def drawn(regime: Regime, seed: int) -> pb.Corpus:
    """A corpus of the regime, with words."""
    prior: Any = 0.1
    if regime.unequal:
        shares = 0.8 ** np.arange(regime.n_topics)
        prior = 0.1 * regime.n_topics * shares / shares.sum()
    counts = pb.datasets.make_lda_corpus(
        regime.n_documents,
        N_WORDS,
        regime.n_topics,
        document_length=regime.length,
        doc_topic_prior=prior,
        topic_word_prior=regime.topic_word_prior,
        random_state=seed,
    ).corpus.counts
    return pb.Corpus(counts, vocabulary=[f"w{i}" for i in range(N_WORDS)])


def grid(largest: int) -> list[int]:
    """Sizes from 2 to `largest`, each a sixth or more beyond the last."""
    sizes = [2]
    while sizes[-1] < largest:
        sizes.append(max(sizes[-1] + 1, round(sizes[-1] * 7 / 6)))
    return sizes


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    """What `work` gives, and its processor seconds."""
    start = time.process_time()
    return work(), time.process_time() - start


def by_scikit_learn(corpus: pb.Corpus, sizes: list[int]) -> int:
    """The size of the least perplexity of a fifth of the documents."""
    train, test = corpus.split(0.2, random_state=0)
    found = {
        size: SklearnLDA(size, random_state=0).fit(train.counts).perplexity(test.counts)
        for size in sizes
    }
    return min(found, key=found.__getitem__)


def by_hdp(corpus: pb.Corpus, _sizes: list[int]) -> int:
    """Live topics of tomotopy's hierarchical Dirichlet process after 1,000 sweeps."""
    model = tomotopy.HDPModel(initial_k=10, seed=0)
    for row in corpus.counts:
        model.add_doc([str(corpus.vocabulary[i]) for i in np.repeat(row.indices, row.data)])
    model.train(1_000, workers=1)
    return int(model.live_k)


def fitted(corpus: pb.Corpus, sizes: list[int], seed: int) -> dict[int, Any]:
    """An LDA of every size, priors learned."""
    return {
        size: pb.LatentDirichletAllocation(size, learn_priors=True, random_state=seed).fit(corpus)
        for size in sizes
    }


def of_fits(corpus: pb.Corpus, sizes: list[int]) -> dict[str, tuple[int, float]]:
    """The rivals that read trained topics, and their seconds, training included."""
    models, training = timed(lambda: fitted(corpus, sizes, 0))
    others, again = timed(lambda: fitted(corpus, sizes, 1))
    lengths = np.asarray(corpus.counts.sum(axis=1), dtype=float).ravel()

    def bic(size: int) -> float:
        found = pb.log_likelihood(models[size], corpus, random_state=0)
        n_parameters = size * (N_WORDS - 1) + size
        return n_parameters * math.log(corpus.n_documents) / 2 - found.total

    rivals: dict[str, tuple[Callable[[int], float], float]] = {
        "Cao & Juan 2009": (lambda k: criteria.cao_juan_2009(models[k].components_), training),
        "Arun 2010": (
            lambda k: criteria.arun_2010(
                models[k].components_, models[k].transform(corpus), lengths
            ),
            training,
        ),
        "Deveaud 2014": (lambda k: -criteria.deveaud_2014(models[k].components_), training),
        "coherence C_V": (
            lambda k: -float(np.mean(pb.topics.coherence(models[k], corpus, "c_v"))),
            training,
        ),
        "coherence UMass": (
            lambda k: -float(np.mean(pb.topics.coherence(models[k], corpus, "umass"))),
            training,
        ),
        "stability over seeds": (
            lambda k: -float(np.mean(pb.topics.stability([models[k], others[k]]))),
            training + again,
        ),
        "BIC": (bic, training),
    }
    chosen = {}
    for name, (cost, seconds) in rivals.items():
        values, own = timed(lambda cost=cost: {size: cost(size) for size in sizes})  # type: ignore[misc]
        known = {size: value for size, value in values.items() if not math.isnan(value)}
        chosen[name] = (min(known, key=known.__getitem__), seconds + own)
    return chosen


def topics(n_repeats: int, only: str | None) -> None:
    """Corpora with a known number of topics; the table once all regimes are there."""
    for name in REGIMES if only is None else (only,):
        choices = topics_of(name, n_repeats)
        RUNS.mkdir(exist_ok=True)
        path = RUNS / f"choice-topics-{name.replace(' ', '-')}.json"
        path.write_text(json.dumps(machine() | {"regime": name, "choices": choices}, indent=1))
    kept = [json.loads(path.read_text()) for path in sorted(RUNS.glob("choice-topics-*.json"))]
    if {run["regime"] for run in kept} != set(REGIMES):
        return
    found: dict[str, list[tuple[int, int, float]]] = {}
    for run in kept:
        for rival, rows in run["choices"].items():
            found.setdefault(rival, []).extend(map(tuple, rows))
    dates = sorted(run["date"] for run in kept)
    told = f"{dates[0]} to {dates[-1]}, {kept[0]['machine']}; polyabayes {kept[0]['polyabayes']}."
    save(summary("topics", found), note=told)


def topics_of(name: str, n_repeats: int) -> dict[str, list[tuple[int, int, float]]]:
    """Choices of every rival for the corpora of a regime."""
    found: dict[str, list[tuple[int, int, float]]] = {}
    regime = REGIMES[name]
    for seed in range(n_repeats):
        corpus = drawn(regime, seed)
        sizes = grid(3 * regime.n_topics)
        choice, seconds = timed(
            lambda corpus=corpus: pb.choose_n_components(
                pb.LatentDirichletAllocation(learn_priors=True), corpus, random_state=0
            )
        )
        note(found, name, "`best`", regime.n_topics, choice.best, seconds)
        note(found, name, "`recommended`", regime.n_topics, choice.recommended, seconds)
        covers = regime.n_topics in choice.equally_good or choice.best == regime.n_topics
        print(f"{'':<10} equally good {choice.equally_good}: truth {'in' if covers else 'out'}")
        for rival, work in {
            "scikit-learn, perplexity of held-out documents": by_scikit_learn,
            "tomotopy, HDP": by_hdp,
        }.items():
            size, seconds = timed(lambda work=work, c=corpus, s=sizes: work(c, s))
            note(found, name, rival, regime.n_topics, size, seconds)
        for rival, (size, seconds) in of_fits(corpus, sizes).items():
            note(found, name, rival, regime.n_topics, size, seconds)
    return found


def note(
    found: dict[str, list[tuple[int, int, float]]],
    regime: str,
    rival: str,
    truth: int,
    size: int,
    seconds: float,
) -> None:
    """Keep and print a choice."""
    found.setdefault(rival, []).append((truth, size, seconds))
    print(
        f"{regime:<10} {rival:<26} true {truth:>3}  chosen {size:>3}  {seconds:6.1f} s", flush=True
    )


def summary(kind: str, found: dict[str, list[tuple[int, int, float]]]) -> Table:
    """A line a rival."""
    columns = {kind: "s", "exact": "s", "within 1": "s", "within a tenth, or 1": "s"}
    columns |= {"mean of ln(chosen / true)": "+.2f", "seconds": ".0f"}
    table = Table(f"choice-{kind}", f"python benches/choice.py {kind}", columns)
    for rival, rows in found.items():
        truth, size, seconds = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
        gap = np.abs(size - truth)
        hits = [gap == 0, gap <= 1, gap <= np.maximum(1, truth / 10)]
        counts = [f"{hit.sum()} of {len(rows)}" for hit in hits]
        table.add(rival, *counts, np.log(size / truth).mean(), seconds.mean())
    return table


def masked_loss(counts: Counts, rank: int, seed: int) -> float:
    """Divergence of a tenth of the cells, held out, under NMF of the others (MADimput's way)."""
    rng = np.random.default_rng(seed)
    seen = rng.random(counts.shape) > 0.1
    w, h = rng.random((counts.shape[0], rank)) + 0.1, rng.random((rank, counts.shape[1])) + 0.1
    for _ in range(500):
        w *= (seen * counts / np.maximum(w @ h, 1e-12)) @ h.T / np.maximum(seen @ h.T, 1e-12)
        h *= w.T @ (seen * counts / np.maximum(w @ h, 1e-12)) / np.maximum(w.T @ seen, 1e-12)
    rate, held_out = np.maximum((w @ h)[~seen], 1e-3), counts[~seen]
    return float((rate - held_out * np.log(rate)).sum())


def silhouette(counts: Counts, rank: int) -> float:
    """How alike the columns of eight NMF runs are after matching (NMFk)."""
    runs = []
    for seed in range(8):
        resampled = np.random.default_rng(seed).poisson(counts)
        factors = NMF(rank, init="random", random_state=seed, max_iter=500).fit(resampled)
        rows = factors.components_
        rows = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
        if runs:
            _, order = linear_sum_assignment(-(runs[0] @ rows.T))
            rows = rows[order]
        runs.append(rows)
    labels = np.tile(np.arange(rank), len(runs))
    return float(silhouette_score(np.vstack(runs), labels, metric="cosine"))


def tables(n_repeats: int, _only: str | None) -> None:
    """Count tables of 20 x 15 and known rank, 300 and 1,000 counts."""
    found: dict[str, list[tuple[int, int, float]]] = {}
    sizes = list(range(1, 9))
    for rank in (2, 4):
        for total in (300, 1_000):
            for seed in range(n_repeats):
                rng = np.random.default_rng(100 * rank + seed)
                weights = rng.dirichlet(np.full(rank, 5.0))
                left, right = (rng.dirichlet(np.full(n, 0.2), rank) for n in (20, 15))
                shares = np.einsum("k,ki,kj->ij", weights, left, right)
                counts = rng.multinomial(total, shares.ravel()).reshape(20, 15)
                choice, seconds = timed(
                    lambda counts=counts: pb.choose_n_components(
                        pb.AllocationModel.nmf(None, concentration=20.0),
                        counts,
                        sizes,
                        random_state=0,
                        target_std_error=1.0,
                    )
                )
                name = f"T = {total}"
                note(found, name, "`choose_n_components`, by evidence", rank, choice.best, seconds)
                size, seconds = timed(
                    lambda counts=counts: min(
                        sizes, key=lambda k: sum(masked_loss(counts, k, s) for s in range(4))
                    )
                )
                note(found, name, "imputation of held-out cells", rank, size, seconds)
                size, seconds = timed(
                    lambda counts=counts: max(sizes[1:], key=lambda k: silhouette(counts, k))
                )
                note(found, name, "silhouette over starts (NMFk)", rank, size, seconds)
    save(summary("tables", found))


def main() -> None:
    """Print the tables."""
    for kind in (PolyabayesWarning, ConvergenceWarning):
        warnings.simplefilter("ignore", kind)
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", nargs="?", choices=["topics", "tables"])
    parser.add_argument("--repeats", type=int, default=1, help="corpora of every regime")
    parser.add_argument("--only", choices=[*REGIMES], help="one regime of topics")
    arguments = parser.parse_args()
    for name, part in (("topics", topics), ("tables", tables)):
        if arguments.part in (None, name):
            part(arguments.repeats, arguments.only)


if __name__ == "__main__":
    main()
