"""Logistic normals: errors against runs ten times as long, coverage, and time on one thread.

``python benches/logistic_normal.py`` prints a row for each size: topics, tokens, standard
deviation of the coordinates. 1,000 words, topics Dirichlet(0.05), a covariance of rank five plus a
diagonal; documents are drawn from the model.
"""

import time
import warnings

import numpy as np

import polyabayes as pb

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
    print("topics  tokens  deviation  documents  rms error  coverage  ms a document")
    for n_topics, n_tokens, deviation, n_documents in SIZES:
        model, documents = planted(n_topics, n_tokens, deviation, n_documents, seed=1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", pb.exceptions.PolyabayesWarning)
            start = time.process_time()
            found = pb.log_likelihood(model, documents, random_state=2, n_jobs=1)
            seconds = time.process_time() - start
            long = 10 * int(np.median(found.sizes))
            truth = pb.log_likelihood(
                model, documents, "annealed", n_samples=long, n_replicates=32, random_state=3
            )
        error = found.values - truth.values
        held = np.abs(error) < 1.96 * np.hypot(found.std_errors, truth.std_errors)
        print(
            f"{n_topics:6}  {n_tokens:6}  {deviation:9}  {n_documents:9}  "
            f"{np.sqrt(np.mean(error**2)):9.3f}  {held.mean():8.3f}  "
            f"{1e3 * seconds / n_documents:13.1f}"
        )


if __name__ == "__main__":
    main()
