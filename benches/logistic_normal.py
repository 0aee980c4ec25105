"""Logistic normals: errors against runs ten times as long, coverage, and time on one thread.

``python benches/logistic_normal.py`` has a row for each size: topics, tokens, standard deviation of
the coordinates. 1,000 words, topics Dirichlet(0.05), a covariance of rank five plus a diagonal;
documents are drawn from the model. Numbers of temperatures and errors were chosen on other seeds.
"""

import time
import warnings

import numpy as np
from record import Table, save

import polyabayes as pb

COMMAND = "python benches/logistic_normal.py"
COLUMNS = {
    "topics": "d", "tokens": "d", "s": ".1f", "documents": "d", "rms error": ".3f",
    "95 % intervals that hold": ".1%", "misses that are too low": ".0%", "ms a document": ".0f",
}  # fmt: skip
SEED = 20_261_126
SIZES = ((20, 200, 2.0, 200), (50, 300, 2.0, 200), (100, 300, 1.5, 50))
N_WORDS = 1_000


def planted(n_topics: int, n_tokens: int, deviation: float, n_documents: int, seed: int):
    """A model and documents that are drawn from it."""
    rng = np.random.default_rng(seed)
    topics = rng.dirichlet(np.full(N_WORDS, 0.05), n_topics)
    loadings = rng.normal(size=(n_topics, 5)) / np.sqrt(5)
    covariance = deviation**2 / 2 * (loadings @ loadings.T + np.eye(n_topics))
    eta = rng.multivariate_normal(np.zeros(n_topics), covariance, n_documents)
    theta = np.exp(eta - eta.max(axis=1, keepdims=True))
    words = theta / theta.sum(axis=1, keepdims=True) @ topics
    documents = np.array([rng.multinomial(n_tokens, p / p.sum()) for p in words])
    return pb.DocumentModel.logistic_normal(topics, np.zeros(n_topics), covariance), documents


def main() -> None:
    table = Table("logistic-normal", COMMAND, COLUMNS, ["logistic normal, annealed"])
    for n_topics, n_tokens, deviation, n_documents in SIZES:
        model, documents = planted(n_topics, n_tokens, deviation, n_documents, SEED)
        start = time.process_time()
        found = pb.log_likelihood(model, documents, random_state=2, n_jobs=1)
        seconds = time.process_time() - start
        long = 10 * int(np.median(found.sizes))
        truth = pb.log_likelihood(
            model, documents, "annealed", n_samples=long, n_replicates=32, random_state=3
        )
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
    warnings.simplefilter("ignore", pb.exceptions.PolyabayesWarning)
    main()
