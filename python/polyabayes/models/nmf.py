"""Non-negative matrix factorisation by scikit-learn's multiplicative updates."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse, special

from polyabayes._support.arrays import Floats
from polyabayes.data.corpus import Corpus
from polyabayes.exceptions import BudgetExceededError

# Bytes that an update takes for each stored count, for each weight of a topic, and in BLAS.
_PER_COUNT, _PER_WEIGHT, _BUFFERS = 64, 24, 2**27

# Updates of each start before the best start continues.
_START_UPDATES = 20

# Updates of the weights of documents, given topics.
_WEIGHT_UPDATES = 200

# Least rate of a cell, scikit-learn's own: the logarithm of an impossible cell stays finite.
_LEAST_RATE = float(np.finfo(np.float32).eps)

# Cells whose rates are in memory at once, by topic.
_RATES = 2**20


class Factors(NamedTuple):
    """Weights and topics after updates.

    `weights` are rates of the topics in each document; rows of `topics` sum to 1; the Poisson
    log-likelihood is in nats.
    """

    n_iter: int
    weights: Floats
    topics: Floats
    log_likelihood: float


def factorise(
    corpus: Corpus, n_components: int, *, max_iter: int, every: int, n_init: int, seed: int
) -> Iterator[Factors]:
    """Yield factors after every `every` updates, and after the last.

    The first start is scikit-learn's ``"nndsvda"``, if there are at least as many documents and
    words as topics; others are ``"random"``. The start with the largest likelihood continues.
    """
    counts = corpus.counts.astype(np.float64)
    usual = "nndsvda" if n_components <= min(counts.shape) else "random"
    starts = [usual, *["random"] * (n_init - 1)]
    found = []
    for run, init in enumerate(starts):
        generator = np.random.RandomState(np.random.MT19937(np.random.SeedSequence([seed, run])))
        options = {"init": init, "n_components": n_components, "random_state": generator}
        n_updates = _START_UPDATES if n_init > 1 else min(every, max_iter)
        found.append(_updated(counts, n_updates, **options))
    n_iter = 0 if n_init > 1 else n_updates
    best = max(found, key=lambda factors: _log_likelihood(counts, *factors))
    while True:
        if n_iter:
            yield Factors(n_iter, *_normalised(*best), _log_likelihood(counts, *best))
        if n_iter == max_iter:
            return
        n_updates = min(every, max_iter - n_iter)
        best = _updated(counts, n_updates, W=best[0], H=best[1], init="custom")
        n_iter += n_updates


def weights_of(corpus: Corpus, topics: Floats) -> Floats:
    """Maximum likelihood rates of given topics, whose rows sum to 1, in each document."""
    possible = np.flatnonzero((topics > 0).any(axis=0))
    counts = sparse.csr_matrix(corpus.counts[:, possible], dtype=np.float64)
    options = {"H": np.ascontiguousarray(topics[:, possible]), "update_H": False}
    weights: Floats
    weights, _ = _updated(counts, _WEIGHT_UPDATES, n_components=len(topics), **options)
    return weights


def _updated(counts: sparse.csr_matrix, n_updates: int, **options: Any) -> Any:
    from sklearn.decomposition import non_negative_factorization

    n_topics = len(options["H"]) if "H" in options else options["n_components"]
    _check_memory(_PER_COUNT * counts.nnz + _PER_WEIGHT * n_topics * sum(counts.shape))
    weights, topics, _ = non_negative_factorization(
        counts, solver="mu", beta_loss="kullback-leibler", tol=0, max_iter=n_updates, **options
    )
    return weights, topics


def _check_memory(n_bytes: int) -> None:
    """Refuse updates that the process has no memory for: BLAS would end it at once."""
    try:
        np.empty(n_bytes + _BUFFERS, np.uint8)
    except MemoryError as error:
        raise BudgetExceededError(
            f"prior='nmf' takes about {(n_bytes + _BUFFERS) / 2**20:,.0f} MiB, which the "
            "process cannot get: give it more, or fewer documents at once"
        ) from error


def _normalised(weights: Floats, topics: Floats) -> tuple[Floats, Floats]:
    """Scale topics to sum to 1 (uniform for unused topics), and adapt the weights."""
    sums = topics.sum(axis=1)
    uniform = np.full_like(topics, 1.0 / topics.shape[1])
    scaled = np.divide(topics, sums[:, None], out=uniform, where=sums[:, None] > 0)
    return weights * sums, scaled


def _log_likelihood(counts: sparse.csr_matrix, weights: Floats, topics: Floats) -> float:
    """Poisson log-likelihood of all cells."""
    cells = counts.tocoo()
    size = max(1, _RATES // len(topics))
    value = -float(weights.sum(axis=0) @ topics.sum(axis=1))
    for start in range(0, cells.nnz, size):
        part = slice(start, start + size)
        rates = np.einsum("ik,ki->i", weights[cells.row[part]], topics[:, cells.col[part]])
        y = cells.data[part]
        ln_p = special.xlogy(y, np.maximum(rates, _LEAST_RATE)) - special.gammaln(y + 1)
        value += float(ln_p.sum())
    return value
