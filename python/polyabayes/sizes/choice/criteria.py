"""Other criteria for the number of topics, for comparison, as R's ldatuning defines them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, logsumexp

# Smallest probability in a logarithm: topics of maximum likelihood hold zeros.
_LEAST = 1e-300


def cao_juan_2009(topics: NDArray[np.float64]) -> float:
    """Mean cosine similarity of pairs of topics; the criterion asks for the smallest.

    Cao et al. (2009). A density-based method for adaptive LDA model selection.
    """
    lengths = np.linalg.norm(topics, axis=1)
    cosines = topics @ topics.T / np.outer(lengths, lengths)
    return _mean_of_pairs(cosines)


def deveaud_2014(topics: NDArray[np.float64]) -> float:
    """Mean symmetric divergence of pairs of topics, in nats; the criterion asks for the largest.

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
    """Divergence of the topics' singular values from their sizes; the smallest is asked for.

    Arun et al. (2010). On finding the natural number of topics with latent Dirichlet allocation.

    Parameters
    ----------
    topics : ndarray of shape (n_components, n_words)
        Word probabilities.
    shares : ndarray of shape (n_documents, n_components)
        Topic shares of the documents.
    lengths : ndarray of shape (n_documents,)
        Tokens of the documents.
    """
    values = np.linalg.svd(topics, compute_uv=False)
    sizes = np.maximum(lengths @ shares / lengths.max(), _LEAST)
    values = np.maximum(values, _LEAST)
    if len(values) < len(sizes):
        return float("nan")
    return float((values * np.log(values / sizes)).sum() + (sizes * np.log(sizes / values)).sum())


def griffiths_2004(log_likelihoods: NDArray[np.float64]) -> float:
    """Harmonic mean of p(words | topics of all tokens) over sweeps, in nats; largest is asked for.

    Griffiths & Steyvers (2004). Finding scientific topics. The harmonic mean has infinite
    variance: it says mostly how the best sweep fits.
    """
    if not len(log_likelihoods):
        return float("nan")
    return float(np.log(len(log_likelihoods)) - logsumexp(-log_likelihoods))


def log_p_words_given_topics(counts: NDArray[np.int64], prior: float) -> float:
    """Ln p(w | z) of LDA with the topics integrated out (Griffiths & Steyvers 2004, eq. 2).

    Parameters
    ----------
    counts : ndarray of int, shape (n_components, n_words)
        Tokens of every word in every topic.
    prior : float
        Dirichlet parameter of the topics.
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
