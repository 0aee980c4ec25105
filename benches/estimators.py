"""Every estimator against the truth: bias, error and time, one table a regime.

`python benches/estimators.py [regimes|hard|trained|decision|calibration|priors|zipf|growth]`;
without arguments all of them. Real documents are read from the folder POLYABAYES_DATA, or from
../shared/data beside the repository. One thread, processor time. The tables are kept in
benches/records. The truth is exact, or annealing with 64 replicates of 1,000 temperatures, of a
fraction of the errors it measures.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from peers import DATA
from recorded import RECORDS, Table, save

import polyabayes as pb

COMMAND = "python benches/estimators.py"


class Regime(NamedTuple):
    """Documents drawn from a random LDA model."""

    name: str
    n_topics: int
    length: int
    topic_word_prior: float
    n_documents: int


REGIMES = [
    Regime("few", 5, 50, 0.05, 200),
    Regime("short", 50, 100, 0.05, 60),
    Regime("long", 50, 500, 0.05, 20),
    Regime("blurred", 50, 100, 0.5, 60),
    Regime("long-blurred", 50, 500, 0.5, 10),
]

# Settings by method; quadratic ones only where they end within seconds.
METHODS: list[tuple[str, dict[str, Any]]] = [
    ("auto", {}),
    ("annealed", {}),
    ("annealed", {"n_samples": 100}),
    ("annealed", {"n_samples": 100, "options": {"start": "prior"}}),
    ("smc-lookahead", {"n_particles": 20}),
    ("smc-lookahead", {}),
    ("smc", {"n_particles": 100}),
    ("chib", {}),
    ("mean-field", {}),
    ("mean-field", {"options": {"order": 2}}),
    ("direct", {}),
    ("harmonic", {}),
    ("recursive", {}),
    ("left-to-right", {"n_particles": 20}),
    ("left-to-right-particle", {"n_particles": 20}),
    ("left-to-right-sequential", {"n_particles": 20}),
    ("l2r", {"n_particles": 20}),
    ("l2r", {"n_particles": 20, "options": {"n_conditional_samples": 10}}),
]


def simulated(regime: Regime, seed: int) -> tuple[pb.LatentDirichletAllocation, pb.Corpus]:
    data = pb.datasets.make_lda_corpus(
        regime.n_documents,
        1000,
        regime.n_topics,
        document_length=regime.length,
        doc_topic_prior=5 / regime.n_topics,
        topic_word_prior=regime.topic_word_prior,
        random_state=seed,
    )
    model = pb.LatentDirichletAllocation.from_parameters(
        doc_topic_prior=data.doc_topic_prior, topic_word=data.topic_word
    )
    return model, data.corpus


def truth(model: Any, corpus: pb.Corpus) -> NDArray[np.float64]:
    try:
        return pb.log_likelihood(model, corpus, "exact").values
    except pb.exceptions.BudgetExceededError:
        long_run = {"n_samples": 1000, "n_replicates": 64, "budget": 1e13}
        return pb.log_likelihood(model, corpus, "annealed", random_state=99, **long_run).values


def timed(model: Any, corpus: pb.Corpus, method: str, **settings: Any) -> tuple[Any, float]:
    """The result, and milliseconds a document on one thread."""
    start = time.process_time()
    result = pb.log_likelihood(model, corpus, method, random_state=1, n_jobs=1, **settings)
    return result, (time.process_time() - start) / corpus.n_documents * 1e3


def label(method: str, settings: dict[str, Any]) -> str:
    options = settings.get("options", {})
    sizes = [str(settings[name]) for name in ("n_samples", "n_particles") if name in settings]
    return " ".join([method, *sizes, *(f"{name}={value}" for name, value in options.items())])


def regimes() -> Iterator[Table]:
    """16 replicates each, as users get them."""
    columns = {"method": "s", "ms": ".3g", "bias": "+.3f", "rms": ".3f", "held": ".0%"}
    for regime in REGIMES:
        model, corpus = simulated(regime, 1)
        exact = truth(model, corpus)
        table = Table(f"regime-{regime.name}", f"{COMMAND} regimes", columns)
        for method, settings in METHODS:
            result, ms = timed(model, corpus, method, **settings)
            error = result.values - exact
            rms = np.sqrt((error**2).mean())
            table.add(label(method, settings), ms, error.mean(), rms, held(result, exact))
        yield table


class HardRegime(NamedTuple):
    """Documents on which estimators are slow, drawn from a random LDA model."""

    name: str
    n_topics: int
    n_words: int
    length: int
    doc_topic_prior: float
    topic_word_prior: float
    n_documents: int


HARD = [
    HardRegime("200 topics, 1,000 tokens", 200, 2000, 1000, 0.025, 0.05, 8),
    HardRegime("50 blurred topics, 100 tokens", 50, 1000, 100, 0.1, 0.5, 40),
    HardRegime("prior 0.01, 50 topics, 100 tokens", 50, 1000, 100, 0.01, 0.05, 40),
    HardRegime("prior 0.01, 50 blurred topics, 100 tokens", 50, 1000, 100, 0.01, 0.5, 30),
]


def by_auto(table: Table, name: str, model: Any, corpus: pb.Corpus) -> None:
    """A row of `auto` by three seeds; the truth is annealing of 64 x 3,000."""
    long_run = {"n_samples": 3000, "n_replicates": 64, "budget": 1e13}
    true = pb.log_likelihood(model, corpus, "annealed", random_state=99, **long_run)
    start = time.process_time()
    results = [pb.log_likelihood(model, corpus, random_state=seed, n_jobs=1) for seed in (1, 2, 3)]
    ms = (time.process_time() - start) / (3 * corpus.n_documents) * 1e3
    errors = np.array([result.values - true.values for result in results])
    stated = np.mean([result.std_errors for result in results])
    covered = np.mean([held(result, true.values) for result in results])
    rms = np.sqrt((errors**2).mean())
    table.add(name, ms, errors.mean(), rms, stated, covered, np.mean(true.std_errors))


BY_AUTO = {"documents": "s", "ms": ".3g", "bias": "+.3f", "rms": ".3f"}
BY_AUTO |= {"stated error": ".3f", "held": ".0%", "error of the truth": ".3f"}


def trained() -> Iterator[Table]:
    """`auto` on held-out documents, under models trained by default on the others."""
    table = Table("trained-documents", f"{COMMAND} trained", BY_AUTO)
    for file, name in (("ap", "AP"), ("nips12", "NIPS")):
        train, test = pb.read_corpus(DATA / f"{file}.ldac.gz").split(test_size=0.2, random_state=0)
        for n_topics in (50, 200):
            model = pb.LatentDirichletAllocation(n_topics, random_state=0).fit(train)
            by_auto(table, f"{name}, {n_topics} topics", model, test[:12])
    yield table


def hard() -> Iterator[Table]:
    """`auto` where it needs most, on simulated documents."""
    table = Table("hard-documents", f"{COMMAND} hard", BY_AUTO)
    for regime in HARD:
        data = pb.datasets.make_lda_corpus(
            regime.n_documents,
            regime.n_words,
            regime.n_topics,
            document_length=regime.length,
            doc_topic_prior=regime.doc_topic_prior,
            topic_word_prior=regime.topic_word_prior,
            random_state=1,
        )
        model = pb.LatentDirichletAllocation.from_parameters(
            doc_topic_prior=data.doc_topic_prior, topic_word=data.topic_word
        )
        by_auto(table, regime.name, model, data.corpus)
    yield table


# The rows of the decision table: settings by label.
DECISIONS = ["annealed", "smc-lookahead 20", "chib", "left-to-right-sequential 20", "mean-field"]
DECISIONS += ["left-to-right-particle 20", "recursive", "direct", "harmonic"]


def decision() -> Iterator[Table]:
    """Times and errors of the methods one would choose between, from the records of the regimes."""
    regimes = {
        name: json.loads((RECORDS / f"regime-{name}.json").read_text())["rows"]
        for name in ("short", "long", "blurred")
    }
    columns = {"method": "s", "ms": ".3g", "rms": ".2f", "held": ".0%"}
    columns |= {"500 tokens: ms": ".3g", "500 tokens: rms": ".2f", "blurred: rms": ".2f"}
    table = Table("decision", f"{COMMAND} regimes decision", columns)
    for method in DECISIONS:
        short, long, blurred = (
            next(row for row in found if row[0] == method) for found in regimes.values()
        )
        table.add(method, short[1], *short[3:], long[1], long[3], blurred[3])
    yield table


def held(result: Any, exact: NDArray[np.float64]) -> float:
    """Share of the 95 % intervals that hold the truth."""
    lower, upper = result.interval(0.95)
    return float(((lower <= exact) & (exact <= upper)).mean())


def _t(x: NDArray[np.float64]) -> float:
    return float(x.mean() / (x.std(ddof=1) / np.sqrt(len(x))))


def calibration() -> Iterator[Table]:
    """1,000 documents with exact values, K = 5: 40 tokens each, and gamma-Poisson lengths."""
    columns = {"method": "s", "held": ".1%", "rms": ".4f", "p̂/p - 1": "+.1f", "total": "+.1f"}
    lda_data = pb.datasets.make_lda_corpus(
        1000, 500, 5, document_length=40, doc_topic_prior=0.2, random_state=5
    )
    lda = pb.LatentDirichletAllocation.from_parameters(
        doc_topic_prior=lda_data.doc_topic_prior, topic_word=lda_data.topic_word
    )
    shape, probability = [0.3, 0.7, 1.3, 2.1, 0.5], [0.9, 0.85, 0.92, 0.88, 0.8]
    pfa_data = pb.datasets.make_gamma_poisson_corpus(
        1000, 500, 5, shape=shape, probability=probability, random_state=6
    )
    pfa = pb.PoissonFactorAnalysis.from_parameters(
        topic_word=pfa_data.topic_word, shape=shape, probability=probability
    )
    for name, model, corpus in (
        ("lda", lda, lda_data.corpus),
        ("gamma-poisson", pfa, pfa_data.corpus),
    ):
        exact = pb.log_likelihood(model, corpus, "exact", budget=1e11).values
        table = Table(f"calibration-{name}", f"{COMMAND} calibration", columns)
        for method, settings in METHODS:
            result = pb.log_likelihood(model, corpus, method, random_state=2, **settings)
            error = result.values - exact
            known = error != 0  # Exact ones say nothing of an estimator.
            t = _t(np.expm1(error[known])) if known.any() else 0.0
            of_total = error.sum() / result.total_std_error if result.total_std_error else 0.0
            rms = np.sqrt((error**2).mean())
            table.add(label(method, settings), held(result, exact), rms, t, of_total)
        yield table


def priors() -> Iterator[Table]:
    """Held-out documents of Python's own documentation under priors that expect fewer topics."""
    train, test = pb.datasets.load_python_docs().split(test_size=0.2, random_state=0)
    lengths = np.asarray(test.counts.sum(axis=1)).ravel()
    documents = test[np.flatnonzero((lengths > 30) & (lengths < 150))]
    columns = {"prior": "", "method": "s", "held": ".1%", "off by 5 errors, unwarned": "d"}
    columns |= {"rms": ".3f", "totals": "s"}
    table = Table("priors", f"{COMMAND} priors", columns)
    for prior in (0.25, 0.05, 0.01, 0.001):
        model = pb.LatentDirichletAllocation(
            4, doc_topic_prior=prior, max_iter=60, burn_in=30, random_state=0
        ).fit(train)
        exact = pb.log_likelihood(model, documents, "exact", budget=3e10).values
        for method in ("annealed", "smc-lookahead"):
            covered, far, squares, totals = [], 0, [], []
            for seed in (1, 2):
                result = pb.log_likelihood(model, documents, method, random_state=seed)
                covered.append(held(result, exact))
                error = result.values - exact
                trusted = result.n_effs >= 0.37 * result.n_replicates
                far += int(((np.abs(error) > 5 * result.std_errors) & trusted).sum())
                squares.append(error**2)
                totals.append(error.sum() / result.total_std_error)
            rms = np.sqrt(np.mean(squares))
            of_totals = ", ".join(f"{total:+.1f}" for total in totals)
            table.add(prior, method, np.mean(covered), far, rms, of_totals)
    yield table


def zipf() -> Iterator[Table]:
    """Words by Zipf's law, K = 50: tails of the errors in units of what is stated."""
    columns = {"prior": "", "method": "s", "ms": ".3g", "bias": "+.4f", "stated bias": "+.4f"}
    columns |= {"rms": ".3f", "held": ".1%", "below -3 errors": "d", "above 3": "d"}
    table = Table("zipf", f"{COMMAND} zipf", columns)
    for prior in (0.1, 0.01):
        rng = np.random.default_rng(1)
        words = 1 / np.arange(1, 2001)
        topics = np.array([rng.dirichlet(100 * words / words.sum() + 1e-3) for _ in range(50)])
        lengths = rng.integers(20, 140, size=150)
        mixtures = rng.dirichlet(np.full(50, prior), size=150) @ topics
        corpus = pb.Corpus(rng.multinomial(lengths, mixtures / mixtures.sum(axis=1, keepdims=True)))
        model = pb.LatentDirichletAllocation.from_parameters(
            doc_topic_prior=prior, topic_word=topics
        )
        exact = truth(model, corpus)
        for method in ("auto", "smc-lookahead"):
            result, ms = timed(model, corpus, method)
            known = result.methods != "exact"
            error, std_errors = (result.values - exact)[known], result.std_errors[known]
            lower, upper = result.interval(0.95)
            covered = ((lower <= exact) & (exact <= upper))[known].mean()
            rms = np.sqrt((error**2).mean())
            z = error / std_errors
            stated = result.log_bias[known].mean()
            tails = (z < -3).sum(), (z > 3).sum()
            table.add(prior, method, ms, error.mean(), stated, rms, covered, *tails)
    yield table


def growth() -> Iterator[Table]:
    """Time against length, sizes fixed; the slope of log time on log length."""
    lengths = [100, 300, 1000, 3000, 10_000]
    settings: dict[str, dict[str, Any]] = {
        "smc": {"n_particles": 50},
        "smc-lookahead": {"n_particles": 50},
        "annealed": {"n_samples": 50},
        "chib": {"n_samples": 50},
        "mean-field": {"n_samples": 200},
    }
    columns = {"method": "s"} | {f"{n:,} tokens": ".3g" for n in lengths} | {"slope": ".2f"}
    table = Table("growth", f"{COMMAND} growth", columns)
    corpora = [simulated(Regime("", 20, length, 0.05, 4), 2) for length in lengths]
    for method, sizes in settings.items():
        times = [
            min(timed(model, corpus, method, budget=1e14, **sizes)[1] for _ in range(5))
            for model, corpus in corpora
        ]
        slope = np.polyfit(np.log(lengths), np.log(times), 1)[0]
        table.add(method, *times, slope)
    yield table


def main() -> int:
    # Some of the methods deserve the warning in every regime; the table says so itself.
    warnings.simplefilter("ignore", pb.exceptions.UnreliableErrorWarning)
    parts = {
        "regimes": regimes,
        "hard": hard,
        "trained": trained,
        "decision": decision,
        "calibration": calibration,
        "priors": priors,
        "zipf": zipf,
        "growth": growth,
    }
    for name in sys.argv[1:] or parts:
        for table in parts[name]():
            save(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
