"""The spread of topic weights against closed forms and full enumeration."""

import itertools

import numpy as np
import pytest
from scipy import sparse
from scipy.special import gammaln

import polyabayes as pb

LDA, PFA = pb.LatentDirichletAllocation, pb.PoissonFactorAnalysis
TOPICS = np.array([[0.5, 0.25, 0.125, 0.125], [0.0, 0.25, 0.25, 0.5], [0.2, 0.2, 0.5, 0.1]])
A, P = np.array([0.4, 0.9, 1.7]), np.array([0.6, 0.25, 0.5])
SUMS = np.array([1.0, 2.5, 0.6])
TOKENS = [0, 1, 2, 2, 3]


def known(cls, topics, random_state=0):
    if cls is LDA:
        return LDA.from_parameters(doc_topic_prior=A, topic_word=topics, random_state=random_state)
    return PFA.from_parameters(
        topic_word=SUMS[:, np.newaxis] * topics, shape=A, probability=P, random_state=random_state
    )


def scale():
    """Of theta given the document, under gamma-Poisson."""
    return P / (1 - P + P * SUMS)


def exact_moments(cls):
    """E[theta | tokens] and E[theta^2 | tokens], over all paths."""
    q = TOPICS if cls is LDA else TOPICS * (scale() * SUMS)[:, np.newaxis]
    total, first, second = 0.0, np.zeros(3), np.zeros(3)
    for path in itertools.product(range(3), repeat=len(TOKENS)):
        x = A + np.bincount(path, minlength=3)
        weight = np.exp(gammaln(x).sum()) * np.prod(q[list(path), TOKENS])
        if cls is LDA:
            moments = x / x.sum(), x * (x + 1) / (x.sum() * (x.sum() + 1))
        else:
            moments = x * scale(), x * (x + 1) * scale() ** 2
        total += weight
        first, second = first + weight * moments[0], second + weight * moments[1]
    return first / total, second / total


@pytest.mark.parametrize("cls", [LDA, PFA])
def test_moments_agree_with_the_enumerated_posterior(cls):
    # Equal words by many names: documents that are alike but for them have independent chains.
    copies = 400
    topics = np.repeat(TOPICS, copies, axis=1) / copies
    words = np.array(TOKENS) * copies + np.arange(copies)[:, np.newaxis]
    counts = np.zeros((copies, 4 * copies), dtype=int)
    np.add.at(counts, (np.arange(copies)[:, np.newaxis], words), 1)
    mean, std = known(cls, topics).topic_weights(sparse.csr_matrix(counts))
    # Of a finite chain the second moment is unbiased, the variance is not.
    for values, expected in zip((mean, std**2 + mean**2), exact_moments(cls), strict=True):
        std_errors = values.std(axis=0, ddof=1) / np.sqrt(copies)
        assert (std_errors < 0.02 * expected).all()
        assert (np.abs(values.mean(axis=0) - expected) < 4 * std_errors).all()


@pytest.mark.parametrize("cls", [LDA, PFA])
def test_an_empty_document_has_the_spread_of_the_prior(cls):
    mean, std = known(cls, TOPICS).topic_weights(np.zeros((1, 4), dtype=int))
    if cls is LDA:
        share = A / A.sum()
        expected = share, np.sqrt(share * (1 - share) / (A.sum() + 1))
    else:
        expected = A * scale(), np.sqrt(A) * scale()
    np.testing.assert_allclose((mean[0], std[0]), expected, rtol=1e-12)


def test_one_topic_in_closed_form():
    counts = np.array([[1, 2, 0, 4]])
    model = PFA.from_parameters(topic_word=3 * TOPICS[:1], shape=0.7, probability=0.4)
    # theta | y ~ Gamma(r + N, scale p / (1 - p + p Phi)).
    theta_scale = 0.4 / (1 - 0.4 + 0.4 * 3)
    mean, std = model.topic_weights(counts)
    np.testing.assert_allclose(mean, [[7.7 * theta_scale]], rtol=1e-12)
    np.testing.assert_allclose(std, [[np.sqrt(7.7) * theta_scale]], rtol=1e-12)
    alone = LDA.from_parameters(doc_topic_prior=0.3, topic_word=TOPICS[:1])
    np.testing.assert_allclose([*alone.topic_weights(counts)], [[[1.0]], [[0.0]]])


@pytest.mark.parametrize("cls", [LDA, PFA])
def test_the_mean_is_that_of_transform_on_any_threads(cls):
    counts = np.random.default_rng(0).poisson(1.5, (30, 4))
    model = known(cls, TOPICS)
    weights = model.topic_weights(counts)
    np.testing.assert_array_equal(weights.mean, model.transform(counts))
    assert weights.mean.shape == weights.std.shape == (30, 3)
    np.testing.assert_array_equal([*model.set_params(n_jobs=1).topic_weights(counts)], [*weights])


def test_longer_documents_are_surer():
    model = known(LDA, TOPICS)
    std = [model.topic_weights([[n, n, n, n]]).std[0] for n in (1, 10, 100, 1000)]
    assert (np.diff(std, axis=0) < 0).all()
