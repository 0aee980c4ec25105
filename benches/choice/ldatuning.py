"""Criteria of R's ldatuning for the number of topics."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, logsumexp

import polyabayes as pb

# Smallest probability in a logarithm: topics of maximum likelihood hold zeros.
_LEAST = 1e-300
# Sweeps whose p(w | z) enters the harmonic mean.
_HARMONIC_LOOKS = 20


def fit_and_look(fitted: Any, train: pb.Corpus) -> list[float]:
    """Train, and return ln p(words | topics of tokens) of some sweeps, if the sampler has it."""
    looks: list[float] = []
    if getattr(fitted, "fit_method", "") != "gibbs":
        fitted.fit(train)
        return looks

    def look(state: Any) -> None:
        if state.n_iter_ > fitted.max_iter // 2:
            counts, prior = state._last.counts.toarray(), state.last_sample_.topic_word_prior
            looks.append(log_p_words_given_topics(counts, prior))

    every = max(1, fitted.max_iter // (2 * _HARMONIC_LOOKS))
    fitted.fit(train, callback=look, eval_every=every)
    return looks


def cao_juan_2009(topics: NDArray[np.float64]) -> float:
    """Mean cosine similarity of pairs of topics; smaller is better.

    Cao et al. (2009). A density-based method for adaptive LDA model selection.
    """
    lengths = np.linalg.norm(topics, axis=1)
    cosines = topics @ topics.T / np.outer(lengths, lengths)
    return _mean_of_pairs(cosines)


def deveaud_2014(topics: NDArray[np.float64]) -> float:
    """Mean symmetric divergence of pairs of topics, in nats; larger is better.

    Deveaud, SanJuan & Bellot (2014). Accurate and effective latent concept modeling. As in
    ldatuning, half of the sum over pairs i < j of both Kullback-Leibler divergences over
    K (K - 1).
    """
    floored = np.maximum(topics, _LEAST)
    ln = np.log(floored)
    own = (floored * ln).sum(axis=1)
    divergence = own[:, None] - floored @ ln.T
    symmetric = (divergence + divergence.T) / 2
    return _mean_of_pairs(symmetric) / 2


def arun_2010(
    topics: NDArray[np.float64], shares: NDArray[np.float64], lengths: NDArray[np.float64]
) -> float:
    """Divergence between the singular values of topics and their shares; smaller is better.

    Arun et al. (2010). On finding the natural number of topics with latent Dirichlet allocation.
    `shares` are topic shares of the documents, `lengths` their tokens.
    """
    values = np.linalg.svd(topics, compute_uv=False)
    sizes = np.maximum(lengths @ shares / lengths.max(), _LEAST)
    values = np.maximum(values, _LEAST)
    if len(values) < len(sizes):
        return float("nan")
    return float((values * np.log(values / sizes)).sum() + (sizes * np.log(sizes / values)).sum())


def griffiths_2004(log_likelihoods: NDArray[np.float64]) -> float:
    """Harmonic mean of p(words | topics of all tokens) over sweeps, in nats; larger is better.

    Griffiths & Steyvers (2004). Finding scientific topics. The harmonic mean has infinite variance.
    """
    if not len(log_likelihoods):
        return float("nan")
    return float(np.log(len(log_likelihoods)) - logsumexp(-log_likelihoods))


def log_p_words_given_topics(counts: NDArray[np.int64], prior: float) -> float:
    """Ln p(w | z) of LDA with the topics integrated out (Griffiths & Steyvers 2004, eq. 2).

    Counts are topics x words; the prior is the Dirichlet parameter of the topics.
    """
    n_topics, n_words = counts.shape
    held = counts[counts > 0]
    words = (gammaln(held + prior) - gammaln(prior)).sum()
    totals = counts.sum(axis=1)
    whole = n_topics * gammaln(n_words * prior) - gammaln(totals + n_words * prior).sum()
    return float(words + whole)


def _mean_of_pairs(values: NDArray[np.float64]) -> float:
    n = len(values)
    if n < 2:
        return float("nan")
    return float((values.sum() - np.trace(values)) / (n * (n - 1)))
