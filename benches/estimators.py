"""Every estimator against the truth: bias, error, time and efficiency, one table a regime.

`python benches/estimators.py [regimes|calibration|priors|zipf|growth|speed]`; without
arguments all of them. One thread. Efficiency is the mean squared error of ln p times the time:
halving it halves the time to a given error. The truth is exact, or annealing with 64 replicates of
1,000 temperatures, whose error is a fraction of what is measured.
"""

from __future__ import annotations

import sys
import time
import warnings
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import polyabayes as pb


class Regime(NamedTuple):
    """Documents drawn from a random LDA model."""

    n_topics: int
    length: int
    topic_word_prior: float
    n_documents: int

    def __str__(self) -> str:
        kind = "distinct" if self.topic_word_prior < 0.1 else "blurred"
        return f"K = {self.n_topics}, {self.length} tokens, {kind} topics"


REGIMES = [
    Regime(5, 50, 0.05, 200),
    Regime(50, 30, 0.05, 100),
    Regime(50, 100, 0.05, 60),
    Regime(50, 500, 0.05, 20),
    Regime(50, 100, 0.5, 60),
    Regime(50, 500, 0.5, 10),
    Regime(200, 300, 0.05, 15),
    Regime(200, 1000, 0.05, 6),
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
    start = time.perf_counter()
    result = pb.log_likelihood(model, corpus, method, random_state=1, n_jobs=1, **settings)
    return result, (time.perf_counter() - start) / corpus.n_documents * 1e3


def label(method: str, settings: dict[str, Any]) -> str:
    options = settings.get("options", {})
    sizes = [str(settings[name]) for name in ("n_samples", "n_particles") if name in settings]
    return " ".join([method, *sizes, *(f"{name}={value}" for name, value in options.items())])


def regimes() -> None:
    """16 replicates each, as users get them."""
    for regime in REGIMES:
        model, corpus = simulated(regime, 1)
        exact = truth(model, corpus)
        print(f"\n{regime}, {regime.n_documents} documents")
        print(
            f"{'method':<36}{'ms':>9}{'bias':>9}{'rms':>9}{'cover':>7}{'ms nats²':>11}"
            f"{'against lrs':>13}"
        )
        rows = []
        for method, settings in METHODS:
            quadratic = method.startswith(("left", "l2r"))
            if quadratic and regime.length * regime.n_topics > 25_000:
                continue
            result, ms = timed(model, corpus, method, **settings)
            error = result.values - exact
            lower, upper = result.interval(0.95)
            covered = ((lower <= exact) & (exact <= upper)).mean()
            rms = float(np.sqrt((error**2).mean()))
            rows.append((method, settings, ms, error.mean(), rms, covered, rms**2 * ms))
        gold = {row[0]: row[-1] for row in rows}.get("left-to-right-sequential", np.nan)
        for method, settings, ms, bias, rms, covered, efficiency in rows:
            ratio = gold / efficiency if efficiency else np.inf
            print(
                f"{label(method, settings):<36}{ms:>9.3f}{bias:>+9.3f}{rms:>9.3f}{covered:>7.0%}"
                f"{efficiency:>11.2g}{ratio:>13.3g}"
            )


def _t(x: NDArray[np.float64]) -> float:
    return float(x.mean() / (x.std(ddof=1) / np.sqrt(len(x))))


def calibration() -> None:
    """1,000 documents with exact values, K = 5: 40 tokens each, and gamma-Poisson lengths."""
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
        ("LDA", lda, lda_data.corpus),
        ("gamma-Poisson", pfa, pfa_data.corpus),
    ):
        exact = pb.log_likelihood(model, corpus, "exact", budget=1e11).values
        print(f"\n{name}, 1,000 documents with exact values")
        print(f"{'method':<36}{'cover':>7}{'rms':>9}{'p̂/p - 1 in errors':>20}{'total':>8}")
        for method, settings in METHODS:
            result = pb.log_likelihood(model, corpus, method, random_state=2, **settings)
            lower, upper = result.interval(0.95)
            covered = ((lower <= exact) & (exact <= upper)).mean()
            error = result.values - exact
            known = error != 0  # Exact ones say nothing of an estimator.
            t = _t(np.expm1(error[known])) if known.any() else 0.0
            of_total = error.sum() / result.total_std_error if result.total_std_error else 0.0
            rms = np.sqrt((error**2).mean())
            print(
                f"{label(method, settings):<36}{covered:>7.1%}{rms:>9.4f}{t:>+20.1f}"
                f"{of_total:>+8.1f}"
            )


def priors() -> None:
    """Held-out documents of Python's own documentation under priors that expect fewer topics."""
    train, test = pb.datasets.load_python_docs().split(test_size=0.2, random_state=0)
    lengths = np.asarray(test.counts.sum(axis=1)).ravel()
    documents = test[np.flatnonzero((lengths > 30) & (lengths < 150))]
    print(f"\n{documents.n_documents} documents of 31 to 149 tokens, K = 4, two seeds")
    print(
        f"{'prior':<8}{'method':<16}{'cover':>7}{'off by 5 errors, unwarned':>27}"
        f"{'rms':>8}{'total':>14}"
    )
    for prior in (0.25, 0.05, 0.01, 0.001):
        model = pb.LatentDirichletAllocation(
            4, doc_topic_prior=prior, max_iter=60, burn_in=30, random_state=0
        ).fit(train)
        exact = pb.log_likelihood(model, documents, "exact", budget=3e10).values
        for method in ("annealed", "smc-lookahead"):
            covered, far, squares, totals = [], 0, [], []
            for seed in (1, 2):
                result = pb.log_likelihood(model, documents, method, random_state=seed)
                lower, upper = result.interval(0.95)
                covered.append((lower <= exact) & (exact <= upper))
                error = result.values - exact
                trusted = result.n_effs >= 0.37 * result.n_replicates
                far += int(((np.abs(error) > 5 * result.std_errors) & trusted).sum())
                squares.append(error**2)
                totals.append(error.sum() / result.total_std_error)
            rms = np.sqrt(np.mean(squares))
            of_totals = ", ".join(f"{total:+.1f}" for total in totals)
            print(
                f"{prior:<8}{method:<16}{np.mean(covered):>7.1%}{far:>27}{rms:>8.3f}{of_totals:>14}"
            )


def zipf() -> None:
    """Words by Zipf's law, K = 50: tails of the errors in units of what is stated."""
    print(
        f"\n{'prior':<8}{'method':<18}{'ms':>8}{'bias':>9}{'stated':>9}{'rms':>8}{'cover':>7}"
        f"{'z < -3':>8}{'z > 3':>7}"
    )
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
            print(
                f"{prior:<8}{method:<18}{ms:>8.1f}{error.mean():>+9.4f}"
                f"{result.log_bias[known].mean():>+9.4f}{rms:>8.3f}{covered:>7.1%}"
                f"{(z < -3).sum():>8}{(z > 3).sum():>7}"
            )


def growth() -> None:
    """Time against length, sizes fixed; the slope of log time on log length."""
    lengths = [100, 300, 1000, 3000, 10_000]
    settings: dict[str, dict[str, Any]] = {
        "smc": {"n_particles": 50},
        "smc-lookahead": {"n_particles": 50},
        "annealed": {"n_samples": 50},
        "chib": {"n_samples": 50},
        "mean-field": {"n_samples": 200},
    }
    print(f"\n{'ms a document, K = 20':<24}" + "".join(f"{n:>10,}" for n in lengths) + "     slope")
    corpora = [simulated(Regime(20, length, 0.05, 4), 2) for length in lengths]
    for method, sizes in settings.items():
        times = [
            min(timed(model, corpus, method, budget=1e14, **sizes)[1] for _ in range(5))
            for model, corpus in corpora
        ]
        slope = np.polyfit(np.log(lengths), np.log(times), 1)[0]
        print(f"{method:<24}" + "".join(f"{ms:>10.2f}" for ms in times) + f"{slope:>10.2f}")


def speed() -> None:
    """Two estimators of the literature at the sizes at which their programs were measured."""
    model, corpus = simulated(Regime(50, 100, 0.05, 40), 3)
    replicates = {"n_particles": 10, "n_replicates": 16}
    _, ms = timed(model, corpus, "left-to-right-sequential", **replicates)
    per_second = 100 * 16 / (ms / 1e3)
    print(f"\nleft-to-right-sequential, K = 50, 100 tokens, R = 10: {per_second:,.0f} tokens/s")
    data = pb.datasets.make_lda_corpus(
        200, 100, 5, document_length=50, doc_topic_prior=0.5, topic_word_prior=0.1, random_state=4
    )
    small = pb.LatentDirichletAllocation.from_parameters(
        doc_topic_prior=data.doc_topic_prior, topic_word=data.topic_word
    )
    exact = pb.log_likelihood(small, data.corpus, "exact").values
    options: list[dict[str, Any]] = [{}, {"n_conditional_samples": 10}]
    for option in options:
        sizes = {"n_particles": 500, "n_replicates": 2, "options": option}
        result, ms = timed(small, data.corpus, "l2r", **sizes)
        rms = np.sqrt(((result.values - exact) ** 2).mean())
        kind = "sampled" if option else "exact"
        print(f"l2r, S = 1,000, K = 5, W = 100, 50 tokens, {kind} conditionals: ", end="")
        print(f"{ms:.1f} ms a document, rms {rms:.4f} nats")


def main() -> int:
    # Some of the methods deserve the warning in every regime; the table says so itself.
    warnings.simplefilter("ignore", pb.exceptions.UnreliableErrorWarning)
    parts = {
        "regimes": regimes,
        "calibration": calibration,
        "priors": priors,
        "zipf": zipf,
        "growth": growth,
        "speed": speed,
    }
    for name in sys.argv[1:] or parts:
        parts[name]()
    return 0


if __name__ == "__main__":
    sys.exit(main())
