"""Counts and models of a few words, for all that scores them."""

from collections import Counter

import numpy as np

import polyabayes as pb

COUNTS = np.array([[2, 1, 0, 3], [0, 0, 0, 0], [1, 0, 4, 1]])
TOPICS = np.array([[0.5, 0.25, 0.125, 0.125], [0.125, 0.25, 0.25, 0.375]])
FLAT = np.full((1, 4), 0.25)


def known_lda(prior, topics, **options):
    return pb.LatentDirichletAllocation.from_parameters(
        doc_topic_prior=prior, topic_word=topics, **options
    )


def known_pfa(shape, probability, topics, **options):
    return pb.PoissonFactorAnalysis.from_parameters(
        topic_word=topics, shape=shape, probability=probability, **options
    )


def lda(prior=0.5, topics=TOPICS, **options):
    return known_lda(prior, topics, **options)


def gamma_poisson(shape=(0.7, 1.3), probability=(0.6, 0.25), topics=TOPICS, **options):
    return known_pfa(shape, probability, topics, **options)


def ln_urn_sum(counts, a, q):
    """ln of the sum over the topics of all tokens, of which equal numbers by topic are merged."""
    sums = {(0,) * len(a): 1.0}
    for word in np.repeat(np.arange(len(counts)), counts):
        longer = Counter()
        for n, value in sums.items():
            for k, n_k in enumerate(n):
                longer[(*n[:k], n_k + 1, *n[k + 1 :])] += value * (a[k] + n_k) * q[k][word]
        sums = longer
    return np.log(sum(sums.values()))


def ln_lda(counts, prior, topics):
    """ln p(ordered tokens | their number)."""
    return ln_urn_sum(counts, prior, topics) - np.log(sum(prior) + np.arange(sum(counts))).sum()
