"""Every estimator of documents against the truth: bias, error and intervals, one table a regime.

`python benches/estimators.py [regimes|trained]`; without arguments both. Real documents are read
from the folder POLYABAYES_DATA, or from ../shared/data beside the repository. The truth is exact,
or annealing with 64 replicates of 1,000 temperatures, of a fraction of the errors it measures.
"""

import sys
import time
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from record import DATA, Table, save

import polyabayes as pb

COMMAND = "python benches/estimators.py"

# Golden values of the methods below.
RESTS_ON = [f"lda, {name}" for name in ("auto", "annealed", "smc", "smc-lookahead", "chib")]


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
    Regime("blurred", 50, 100, 0.5, 60),
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
    columns = {"method": "s", "ms": ".3g", "bias": "+.3f", "rms": ".3f", "coverage": ".0%"}
    for regime in REGIMES:
        model, corpus = simulated(regime, 1)
        exact = truth(model, corpus)
        table = Table(f"regime-{regime.name}", f"{COMMAND} regimes", columns, RESTS_ON)
        for method, settings in METHODS:
            result, ms = timed(model, corpus, method, **settings)
            error = result.values - exact
            rms = np.sqrt((error**2).mean())
            table.add(label(method, settings), ms, error.mean(), rms, coverage(result, exact))
        yield table


def by_auto(table: Table, name: str, model: Any, corpus: pb.Corpus) -> None:
    """A row of `auto` by three seeds; the truth is annealing of 64 x 3,000."""
    long_run = {"n_samples": 3000, "n_replicates": 64, "budget": 1e13}
    true = pb.log_likelihood(model, corpus, "annealed", random_state=99, **long_run)
    start = time.process_time()
    results = [pb.log_likelihood(model, corpus, random_state=seed, n_jobs=1) for seed in (1, 2, 3)]
    ms = (time.process_time() - start) / (3 * corpus.n_documents) * 1e3
    errors = np.array([result.values - true.values for result in results])
    stated = np.mean([result.std_errors for result in results])
    covered = np.mean([coverage(result, true.values) for result in results])
    rms = np.sqrt((errors**2).mean())
    table.add(name, ms, errors.mean(), rms, stated, covered, np.mean(true.std_errors))


BY_AUTO = {"documents": "s", "ms": ".3g", "bias": "+.3f", "rms": ".3f"}
BY_AUTO |= {"stated error": ".3f", "coverage": ".0%", "error of the truth": ".3f"}


def trained() -> Iterator[Table]:
    """`auto` on held-out documents, under models trained by default on the others."""
    table = Table("trained-documents", f"{COMMAND} trained", BY_AUTO, RESTS_ON)
    for file, name in (("ap", "AP"), ("nips12", "NIPS")):
        train, test = pb.read_corpus(DATA / f"{file}.ldac.gz").split(test_size=0.2, random_state=0)
        for n_topics in (50, 200):
            model = pb.LatentDirichletAllocation(n_topics, random_state=0).fit(train)
            by_auto(table, f"{name}, {n_topics} topics", model, test[:12])
    yield table


def coverage(result: Any, exact: NDArray[np.float64]) -> float:
    """Share of the 95 % intervals that hold the truth."""
    lower, upper = result.interval(0.95)
    return float(((lower <= exact) & (exact <= upper)).mean())


def main() -> int:
    # Some of the methods deserve the warning in every regime; the table says so itself.
    warnings.simplefilter("ignore", pb.exceptions.UnreliableErrorWarning)
    parts = {"regimes": regimes, "trained": trained}
    for name in sys.argv[1:] or parts:
        for table in parts[name]():
            save(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
