"""Every estimator of documents against the truth: bias, error and intervals, one table a regime.

`python benches/estimators.py [regimes|trained]`; without arguments both. Real documents are read
from the folder POLYABAYES_DATA, or from ../shared/data beside the repository. The truth is exact,
or annealing with 64 replicates of 1,000 temperatures, of a fraction of the errors it measures.
"""

from typing import Any

import numpy as np
from record import Table, corpus, holds, main, save, simulated, timed

import polyabayes as pb
from polyabayes._support.arrays import Floats

COMMAND = "python benches/estimators.py"

# Golden values of the methods below.
RESTS_ON = [f"lda, {name}" for name in ("auto", "annealed", "smc", "smc-lookahead", "chib")]


# Documents drawn from a random LDA model: topics, tokens, prior of the topics, documents.
REGIMES = {"few": (5, 50, 0.05, 200), "short": (50, 100, 0.05, 60), "blurred": (50, 100, 0.5, 60)}
LONG = {"n_replicates": 64, "budget": 1e13, "random_state": 99}

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


def truth(model: Any, documents: pb.Corpus) -> Floats:
    try:
        return pb.log_likelihood(model, documents, "exact").values
    except pb.exceptions.BudgetExceededError:
        return pb.log_likelihood(model, documents, "annealed", n_samples=1000, **LONG).values


def label(method: str, settings: dict[str, Any]) -> str:
    options = settings.get("options", {})
    sizes = [str(settings[name]) for name in ("n_samples", "n_particles") if name in settings]
    return " ".join([method, *sizes, *(f"{name}={value}" for name, value in options.items())])


def regimes() -> None:
    """16 replicates each, as users get them; times are milliseconds a document on one thread."""
    columns = {"method": "s", "ms": ".3g", "bias": "+.3f", "rms": ".3f", "coverage": ".0%"}
    for regime, (n_topics, length, topic_word_prior, n_documents) in REGIMES.items():
        priors = {"doc_topic_prior": 5 / n_topics, "topic_word_prior": topic_word_prior}
        law = {"document_length": length, "random_state": 1} | priors
        model, documents = simulated(n_documents, 1000, n_topics, **law)
        exact = truth(model, documents)
        table = Table(f"regime-{regime}", f"{COMMAND} regimes", columns, RESTS_ON)
        for method, settings in METHODS:
            run = {"random_state": 1, "n_jobs": 1} | settings
            result, seconds = timed(pb.log_likelihood, model, documents, method, **run)
            error, ms = result.values - exact, 1e3 * seconds / n_documents
            rms, held = np.sqrt((error**2).mean()), holds(result, exact).mean()
            table.add(label(method, settings), ms, error.mean(), rms, held)
        save(table)


def trained() -> None:
    """`auto` with three seeds on held-out documents, under models trained by default on the others.

    The truth is annealing of 64 x 3,000.
    """
    columns = {"documents": "s", "ms": ".3g", "bias": "+.3f", "rms": ".3f"}
    columns |= {"stated error": ".3f", "coverage": ".0%", "error of the truth": ".3f"}
    table = Table("trained-documents", f"{COMMAND} trained", columns, RESTS_ON)
    for file, name in (("ap", "AP"), ("nips12", "NIPS")):
        train, test = corpus(file).split(test_size=0.2, random_state=0)
        test = test[:12]
        for n_topics in (50, 200):
            model = pb.LatentDirichletAllocation(n_topics, random_state=0).fit(train)
            true = pb.log_likelihood(model, test, "annealed", n_samples=3000, **LONG)
            call = pb.log_likelihood, model, test
            runs = [timed(*call, random_state=seed, n_jobs=1) for seed in (1, 2, 3)]
            ms = 1e3 * np.mean([seconds for _, seconds in runs]) / test.n_documents
            errors = np.array([result.values - true.values for result, _ in runs])
            stated = np.mean([result.std_errors for result, _ in runs])
            held = np.mean([holds(result, true.values) for result, _ in runs])
            rms = np.sqrt((errors**2).mean())
            figures = ms, errors.mean(), rms, stated, held, np.mean(true.std_errors)
            table.add(f"{name}, {n_topics} topics", *figures)
    save(table)


if __name__ == "__main__":
    main(regimes, trained)
