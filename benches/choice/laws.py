"""Corpora that do not follow LDA, of a known number of topics."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

N_WORDS = 400
Shares = np.ndarray[Any, np.dtype[np.float64]]
Draw = Callable[[np.random.Generator], Any]


class Law(NamedTuple):
    """How a corpus is drawn, and the numbers of topics that may be named."""

    planted: tuple[int, ...]
    drawn: Draw


def _documents(weights: Shares, topics: Shares, rng: np.random.Generator, length: int) -> Any:
    """Documents of so many tokens, one for each row of weights."""
    return np.array([rng.multinomial(length, row) for row in weights @ topics])


def bursty(
    rng: np.random.Generator,
    n_topics: int = 6,
    concentration: float = 100,
    n_documents: int = 400,
    length: int = 100,
) -> Any:
    """Each document has topics of its own, drawn around common ones."""
    topics = rng.dirichlet(np.full(N_WORDS, 0.05), n_topics)
    rows = []
    for weights in rng.dirichlet(np.full(n_topics, 0.1), n_documents):
        own = np.array([rng.dirichlet(concentration * topic + 1e-6) for topic in topics])
        rows.append(rng.multinomial(length, weights @ own))
    return np.array(rows)


def correlated(rng: np.random.Generator) -> Any:
    """8 topics with logistic normal weights: pairs of correlation 0.8."""
    pairs = np.kron(np.eye(4), [[1.0, 0.8], [0.8, 1.0]])
    logits = rng.multivariate_normal(np.zeros(8), 4 * pairs, 400)
    weights = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    return _documents(weights, rng.dirichlet(np.full(N_WORDS, 0.05), 8), rng, 100)


def power_law(rng: np.random.Generator) -> Any:
    """8 topics around words whose frequencies fall as 1 / rank."""
    frequencies = 1.0 / np.arange(1, N_WORDS + 1)
    topics = rng.dirichlet(20 * frequencies / frequencies.sum() + 1e-3, 8)
    return _documents(rng.dirichlet(np.full(8, 0.1), 400), topics, rng, 100)


def background(rng: np.random.Generator) -> Any:
    """8 topics, and two tokens in five from words that all documents share."""
    topics = rng.dirichlet(np.full(N_WORDS, 0.05), 8)
    topics = 0.6 * topics + 0.4 * rng.dirichlet(np.full(N_WORDS, 0.1))
    return _documents(rng.dirichlet(np.full(8, 0.1), 400), topics, rng, 100)


def hierarchy(rng: np.random.Generator) -> Any:
    """10 broad topics of 4 narrow ones each, which share half of their words."""
    broad = rng.dirichlet(np.full(N_WORDS, 0.03), 10)
    topics = 0.5 * np.repeat(broad, 4, axis=0) + 0.5 * rng.dirichlet(np.full(N_WORDS, 0.03), 40)
    weights = rng.dirichlet(np.full(10, 0.1), 800)
    narrow = rng.dirichlet(np.full(4, 0.3), (800, 10))
    return _documents((weights[..., np.newaxis] * narrow).reshape(800, 40), topics, rng, 100)


def zipf_lengths(rng: np.random.Generator) -> Any:
    """8 topics; a document has 20 tokens or more, twice as many with a probability of 0.4."""
    topics = rng.dirichlet(np.full(N_WORDS, 0.05), 8)
    weights = rng.dirichlet(np.full(8, 0.1), 400)
    lengths = np.minimum(20 * (1 + rng.pareto(-math.log2(0.4), 400)), 2_000).astype(int)
    pairs = zip(lengths, weights @ topics, strict=True)
    return np.array([rng.multinomial(n, row) for n, row in pairs])


def pitman_yor(rng: np.random.Generator) -> Any:
    """8 topics, each a draw of a Pitman-Yor process of discount 0.5 and concentration 10."""
    topics = np.zeros((8, N_WORDS))
    for topic in topics:
        # Sticks until hardly anything is left, each on a word at random.
        left = 1.0
        for number in range(1, 2_000):
            share = left * rng.beta(1 - 0.5, 10 + 0.5 * number)
            topic[rng.integers(N_WORDS)] += share
            left -= share
        topic /= topic.sum()
    return _documents(rng.dirichlet(np.full(8, 0.1), 400), topics, rng, 100)


def noisy(rng: np.random.Generator) -> Any:
    """8 topics of unequal weights; each document multiplies its words by lognormal noise."""
    topics = rng.dirichlet(np.full(N_WORDS, 0.05), 8)
    shares = 0.8 ** np.arange(8)
    weights = rng.dirichlet(0.8 * shares / shares.sum(), 400)
    words = weights @ topics * rng.lognormal(0.0, 0.7, (400, N_WORDS))
    return np.array([rng.multinomial(100, row / row.sum()) for row in words])


LAWS = {
    "bursty": Law((6,), bursty),
    "correlated": Law((8,), correlated),
    "power law": Law((8,), power_law),
    "background": Law((8, 9), background),
    "hierarchy": Law((10, 40), hierarchy),
    "Zipf lengths": Law((8,), zipf_lengths),
    "Pitman-Yor": Law((8,), pitman_yor),
    "noisy": Law((8,), noisy),
}
