"""sBIC of the number of topics: the information criterion of models that are not regular.

Parameters of topics that the data do not need cost less than half of ln n each. How much less is
known for latent Dirichlet allocation where topics and weights of documents are both parameters.
"""

import math
from collections.abc import Mapping

import numpy as np
from scipy.special import logsumexp
from sklearn.decomposition import NMF


def learning_coefficient(
    n_words: int, n_documents: int, n_topics: int, n_true: int
) -> tuple[float, int]:
    """Learning coefficient and its multiplicity where fewer topics would do (Hayashi 2021).

    That of reduced rank regression (Aoyagi & Watanabe 2005), less half a unit for each document,
    as its weights sum to 1.
    """
    words, documents, topics, rank = n_words, n_documents, n_topics, n_true
    multiplicity = 1
    if words + topics < documents + rank:
        doubled = topics * words - topics * rank + documents * rank
    elif documents + topics < words + rank:
        doubled = topics * documents - topics * rank + words * rank
    elif words + documents < topics + rank:
        doubled = words * documents
    else:
        both = topics + rank
        is_odd = (words + documents + both) % 2
        multiplicity += is_odd
        square = (words - documents) ** 2 + both**2 - is_odd
        return (2 * both * (words + documents) - square) / 8 - documents / 2, multiplicity
    return (doubled - documents) / 2, multiplicity


def largest_ln_likelihood(counts: np.ndarray, n_topics: int) -> float:
    """ln p(words) of topics and weights that multiplicative updates bring near the largest."""
    factors = NMF(
        n_topics,
        init="nndsvda",
        solver="mu",
        beta_loss="kullback-leibler",
        max_iter=500,
        tol=1e-6,
        random_state=0,
    )
    weights = factors.fit_transform(counts)
    shares = weights @ factors.components_
    shares /= shares.sum(axis=1, keepdims=True)
    seen = counts > 0
    return float((counts[seen] * np.log(shares[seen])).sum())


def sbic(
    ln_likelihoods: Mapping[int, float], n_words: int, n_documents: int, n_tokens: float
) -> dict[int, float]:
    """sBIC of every size (Drton & Plummer 2017), all sizes equally probable at first."""
    ln_n = math.log(n_tokens)
    found: dict[int, float] = {}
    for size in sorted(ln_likelihoods):

        def under(n_true: int, size: int = size) -> float:
            slope, multiplicity = learning_coefficient(n_words, n_documents, size, n_true)
            return ln_likelihoods[size] - slope * ln_n + (multiplicity - 1) * math.log(ln_n)

        # L² + (S - O) L = C: O of the size itself, S and C with the evidences L of smaller ones.
        own, smaller = under(size), [(value, under(n_true)) for n_true, value in found.items()]
        ln_s = logsumexp([value for value, _ in smaller] or [-math.inf])
        ln_c = logsumexp([value + term for value, term in smaller] or [-math.inf])
        apart = -math.expm1(-abs(own - ln_s))
        ln_gap = max(own, ln_s) + math.log(apart) if apart > 0.0 else -math.inf
        ln_root = np.logaddexp(2 * ln_gap, math.log(4) + ln_c) / 2
        # The quadratic formula, in the form in which nothing cancels.
        ln_sum = np.logaddexp(ln_gap, ln_root) - math.log(2)
        found[size] = float(ln_sum if own >= ln_s else ln_c - ln_sum)
    return found
