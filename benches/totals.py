"""Totals of held-out documents to 0.001 nats per token beside the default, and their coverage.

``python benches/totals.py`` trains four models, scores a fifth of the documents by default and as a
total, on one thread, and compares totals by other seeds with that of long runs.
``python benches/totals.py levels CORPUS K`` prints what the design rests on: time of a level,
differences between levels by what a level's value is, and how the intervals of totals hold when
documents are drawn again.
"""

from itertools import pairwise

import numpy as np
import record
from record import Table, save, timed

import polyabayes as pb
from polyabayes.likelihood.blocks import BlockScores, ScoringPlan
from polyabayes.likelihood.methods import check_settings
from polyabayes.likelihood.totals import Population, score_to_target

CASES = (("poliblog5k", 20), ("poliblog5k", 100), ("ap", 50), ("20ng", 50))
TARGET, SEEDS, LONG = 0.001, 100, 2_000
LEVELS, RESAMPLED = (2, 6, 18, 54, 162, 486), 400


class Kept:
    """Scores of all documents at every level, from which samples are drawn."""

    def __init__(self, model: pb.LatentDirichletAllocation, test: pb.Corpus) -> None:
        self.n_documents = test.n_documents
        self.lengths = np.asarray(test.counts.sum(axis=1)).ravel()
        self.levels, self.seconds = {}, {}
        settings = check_settings(method="auto", event="sequence", given_length=True)
        plan = ScoringPlan(model, settings, 0, 1)
        for size in LEVELS:
            found = timed(plan.score, test._core_documents(), n_temperatures=size)
            self.levels[size], self.seconds[size] = found

    def __call__(self, rows: np.ndarray, *, n_temperatures: int) -> BlockScores:
        return self.levels[min(n_temperatures, LEVELS[-1])].taken(rows)

    def total(self, seed: int) -> tuple[float, float]:
        """Value and error of the total of a sample."""
        uniforms = np.random.default_rng(seed).random(self.n_documents)
        population = Population(np.arange(self.n_documents), self.lengths, uniforms)
        found = score_to_target(self, population, TARGET * float(self.lengths.sum()))
        own = np.linalg.norm(found.scores.std_errors)
        return float(found.scores.values.sum()), float(np.hypot(own, found.shared_std_error))


def trained(corpus: str, n_topics: int) -> tuple[pb.Corpus, pb.LatentDirichletAllocation]:
    """Held-out documents, and a model of the others."""
    train, test = record.corpus(corpus).split(test_size=0.2, random_state=0)
    return test, pb.LatentDirichletAllocation(n_topics, random_state=0, n_jobs=1).fit(train)


def levels(corpus: str, n_topics: int, /) -> None:
    """Time and differences of levels, and coverage of totals, printed only."""
    test, model = trained(corpus, n_topics)
    kept = Kept(model, test)
    print(f"{corpus}, K = {n_topics}: temperatures, ms a document, and how far differences to the")
    print("level before are from their prediction, for ln of means and for means of ln")
    for below, size in pairwise(LEVELS):
        one, other = kept.levels[below], kept.levels[size]
        spread, figures = np.sqrt(one.variances), [1e3 * kept.seconds[size] / test.n_documents]
        for lower in (0.0, 1.0):
            steps = other.values - one.values - lower * (other.shortfalls - one.shortfalls)
            figures.append(float((steps - spread * steps.sum() / spread.sum()).std()))
        print(f"{size:5}" + "".join(f"{figure:8.2f}" for figure in figures))
    truth = kept.levels[LEVELS[-1]].values.sum()
    found = np.array([kept.total(seed) for seed in range(RESAMPLED)])
    holds = np.abs(found[:, 0] - truth) < 1.96 * found[:, 1]
    print(f"{RESAMPLED} samples: {holds.mean():.3f} of intervals hold the last level's sum")


def totals() -> None:
    """Totals beside the default, on four corpora."""
    columns = {
        "corpus": "s", "topics": "d", "documents": ",", "default, s": ".1f", "total, s": ".2f",
        "ratio": ".0f", "stated error": ".5f", "coverage of 95 % intervals": ".3f",
    }  # fmt: skip
    table = Table("totals", "python benches/totals.py", columns, ["lda, annealed"])
    for corpus, n_topics in CASES:
        test, model = trained(corpus, n_topics)
        _, of_default = timed(pb.log_likelihood, model, test, n_jobs=1, random_state=0)
        truth = pb.log_likelihood(model, test, "annealed", n_samples=LONG, random_state=SEEDS)
        options = {"nats_per_token_std_error": TARGET, "n_jobs": 1}
        call = pb.log_likelihood, model, test
        runs = [timed(*call, random_state=seed, **options) for seed in range(SEEDS)]
        seconds = float(np.median([elapsed for _, elapsed in runs]))
        errors = np.array([found.total_std_error for found, _ in runs])
        gaps = np.array([found.total - truth.total for found, _ in runs])
        holds = np.abs(gaps) < 1.96 * np.hypot(errors, truth.total_std_error)
        table.add(
            corpus, n_topics, test.n_documents, of_default, seconds, of_default / seconds,
            float(np.median(errors)) / test.n_tokens, float(holds.mean()),
        )  # fmt: skip
    save(table)


if __name__ == "__main__":
    record.main(totals, levels)
