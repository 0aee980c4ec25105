"""Logistic normals: errors against runs ten times as long, coverage, and time on one thread.

``python benches/logistic_normal.py sizes`` has a row for each size: topics, tokens, standard
deviation of the coordinates. 1,000 words, topics Dirichlet(0.05), a covariance of rank five plus a
diagonal; documents are drawn from the model. Numbers of temperatures and errors were chosen on
other seeds.

``python benches/logistic_normal.py wide`` has priors of independent coordinates with large
variance, 100 words and topics Dirichlet(0.1): annealing against quadrature, or draws of the prior.
"""

import numpy as np
from record import Table, main, save, timed
from scipy.special import softmax

import polyabayes as pb

COMMAND = "python benches/logistic_normal.py"
RESTS_ON = ["logistic normal, annealed"]
COLUMNS = {
    "topics": "d", "tokens": "d", "s": ".1f", "documents": "d", "rms error": ".3f",
    "coverage of 95 % intervals": ".1%", "misses that are too low": ".0%", "ms a document": ".0f",
}  # fmt: skip
SEED = 20_261_126
SIZES = ((20, 200, 2.0, 200), (50, 300, 2.0, 200), (100, 300, 1.5, 50))
N_WORDS = 1_000


def planted(n_topics: int, n_tokens: int, deviation: float, n_documents: int):
    """A model and documents that are drawn from it."""
    rng = np.random.default_rng(SEED)
    topics = rng.dirichlet(np.full(N_WORDS, 0.05), n_topics)
    loadings = rng.normal(size=(n_topics, 5)) / np.sqrt(5)
    covariance = deviation**2 / 2 * (loadings @ loadings.T + np.eye(n_topics))
    eta = rng.multivariate_normal(np.zeros(n_topics), covariance, n_documents)
    documents = drawn(rng, eta, topics, n_tokens)
    return pb.DocumentModel.logistic_normal(topics, np.zeros(n_topics), covariance), documents


def drawn(rng: np.random.Generator, eta: np.ndarray, topics: np.ndarray, n_tokens: int):
    """Documents with these coordinates."""
    words = softmax(eta, axis=1) @ topics
    return np.array([rng.multinomial(n_tokens, p / p.sum()) for p in words])


WIDE_COLUMNS = {
    "topics": "d", "tokens": "d", "variance": ",d", "documents": "d", "truth": "s",
    "rms error": ".3f", "median ±": ".3f", "rms error / ±": ".2f", "largest error / ±": ".1f",
    "ms a document": ".0f",
}  # fmt: skip
# Topics, tokens, variance, documents.
WIDE_SIZES = (
    (3, 6, 100, 100), (3, 6, 10_000, 100), (3, 300, 100, 50), (3, 300, 10_000, 50),
    (20, 10, 30, 20), (20, 10, 10_000, 20),
)  # fmt: skip
N_DRAWS, N_BLOCK = 1_000_000, 50_000


def by_draws(topics: np.ndarray, variance: float, counts: np.ndarray) -> tuple[float, float]:
    """Ln of the mean likelihood over draws of the prior, and its standard error."""
    rng, words = np.random.default_rng(SEED), np.flatnonzero(counts)
    blocks = []
    for _ in range(N_DRAWS // N_BLOCK):
        eta = np.sqrt(variance) * rng.standard_normal((N_BLOCK, len(topics)))
        blocks.append(np.log(softmax(eta, axis=1) @ topics[:, words]) @ counts[words])
    ln_values = np.concatenate(blocks)
    weights = np.exp(ln_values - ln_values.max())
    error = weights.std() / weights.mean() / np.sqrt(N_DRAWS)
    return ln_values.max() + np.log(weights.mean()), error


def wide() -> None:
    """Independent coordinates of large variance."""
    table = Table("logistic-normal-wide", f"{COMMAND} wide", WIDE_COLUMNS, RESTS_ON)
    for n_topics, n_tokens, variance, n_documents in WIDE_SIZES:
        rng = np.random.default_rng(SEED)
        topics = rng.dirichlet(np.full(100, 0.1), n_topics)
        eta = np.sqrt(variance) * rng.normal(size=(n_documents, n_topics))
        documents = drawn(rng, eta, topics, n_tokens)
        if n_topics == 3:
            # Differences to the last coordinate have two dimensions.
            covariance = variance * (np.eye(2) + 1)
            exact = pb.DocumentModel.logistic_normal(topics, np.zeros(2), covariance)
            found = pb.log_likelihood(exact, documents, "exact")
            truth, errors = found.values, found.std_errors
        else:
            pairs = [by_draws(topics, variance, counts) for counts in documents]
            truth, errors = map(np.array, zip(*pairs, strict=True))
        prior = variance * np.eye(n_topics)
        model = pb.DocumentModel.logistic_normal(topics, np.zeros(n_topics), prior)
        run = {"random_state": 2, "n_jobs": 1}
        found, seconds = timed(pb.log_likelihood, model, documents, "annealed", **run)
        error = found.values - truth
        ratios = error / np.hypot(found.std_errors, errors)
        table.add(
            n_topics, n_tokens, variance, n_documents, "quadrature" if n_topics == 3 else "draws",
            np.sqrt(np.mean(error**2)), np.median(found.std_errors), np.sqrt(np.mean(ratios**2)),
            np.abs(ratios).max(), 1e3 * seconds / n_documents,
        )  # fmt: skip
    save(table)


def sizes() -> None:
    """Documents that are drawn from the model."""
    table = Table("logistic-normal", COMMAND, COLUMNS, RESTS_ON)
    for n_topics, n_tokens, deviation, n_documents in SIZES:
        model, documents = planted(n_topics, n_tokens, deviation, n_documents)
        found, seconds = timed(pb.log_likelihood, model, documents, random_state=2, n_jobs=1)
        long = 10 * int(np.median(found.sizes))
        effort = {"n_samples": long, "n_replicates": 32, "random_state": 3}
        truth = pb.log_likelihood(model, documents, "annealed", **effort)
        error = found.values - truth.values
        half_width = found.interval()[1] - found.values
        # The reference has an error, too.
        held = np.abs(error) < np.hypot(half_width, 1.96 * truth.std_errors)
        table.add(
            n_topics, n_tokens, deviation, n_documents, np.sqrt(np.mean(error**2)), held.mean(),
            (error < 0)[~held].mean() if not held.all() else None, 1e3 * seconds / n_documents,
        )  # fmt: skip
    save(table)


if __name__ == "__main__":
    main(sizes, wide)
