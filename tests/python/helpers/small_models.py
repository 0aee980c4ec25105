"""Counts and models of a few words, for all that scores them."""

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
