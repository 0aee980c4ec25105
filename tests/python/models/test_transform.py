"""The spread of topic weights against closed forms and full enumeration."""

import itertools

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.special import gammaln
from sklearn import config_context

import polyabayes as pb
from helpers.small_models import known_lda, known_pfa
from polyabayes import exceptions as errors

LDA, PFA = pb.LatentDirichletAllocation, pb.PoissonFactorAnalysis
TOPICS = np.array([[0.5, 0.25, 0.125, 0.125], [0.0, 0.25, 0.25, 0.5], [0.2, 0.2, 0.5, 0.1]])
A, P = np.array([0.4, 0.9, 1.7]), np.array([0.6, 0.25, 0.5])
SUMS = np.array([1.0, 2.5, 0.6])
TOKENS = [0, 1, 2, 2, 3]


def known(cls, topics, random_state=0):
    if cls is LDA:
        return known_lda(A, topics, random_state=random_state)
    return known_pfa(A, P, SUMS[:, np.newaxis] * topics, random_state=random_state)


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
    model = known_pfa(0.7, 0.4, 3 * TOPICS[:1])
    # theta | y ~ Gamma(r + N, scale p / (1 - p + p Phi)).
    theta_scale = 0.4 / (1 - 0.4 + 0.4 * 3)
    mean, std = model.topic_weights(counts)
    np.testing.assert_allclose(mean, [[7.7 * theta_scale]], rtol=1e-12)
    np.testing.assert_allclose(std, [[np.sqrt(7.7) * theta_scale]], rtol=1e-12)
    alone = known_lda(0.3, TOPICS[:1])
    np.testing.assert_allclose([*alone.topic_weights(counts)], [[[1.0]], [[0.0]]])


@pytest.mark.parametrize("cls", [LDA, PFA])
def test_the_mean_is_that_of_transform_on_any_threads(cls):
    counts = np.random.default_rng(0).poisson(1.5, (30, 4))
    model = known(cls, TOPICS)
    weights = model.topic_weights(counts)
    np.testing.assert_array_equal(weights.mean, model.transform(counts))
    assert weights.mean.shape == weights.std.shape == (30, 3)
    np.testing.assert_array_equal([*model.set_params(n_jobs=1).topic_weights(counts)], [*weights])


@pytest.mark.parametrize("cls", [LDA, PFA])
def test_names_of_documents_stay_with_their_weights(cls):
    corpus = pb.Corpus([[3, 0, 0, 1], [0, 2, 2, 0]], ids=["one", "two"])
    model = known(cls, TOPICS)
    weights = model.topic_weights(corpus)
    frame = weights.to_frame()
    assert frame["document"].tolist() == ["one"] * 3 + ["two"] * 3
    assert frame["topic"].tolist() == [0, 1, 2] * 2
    np.testing.assert_array_equal(frame["std"], weights.std.ravel())
    plain = model.transform(corpus)
    assert isinstance(plain, np.ndarray)
    named = model.set_output(transform="pandas").transform(corpus)
    assert (named.index.tolist(), named.columns[0]) == (["one", "two"], "topic0")
    np.testing.assert_array_equal(named, plain)
    with config_context(transform_output="pandas"):
        assert known(cls, TOPICS).transform(corpus).index.tolist() == ["one", "two"]


def test_words_that_the_model_does_not_know_are_left_out_of_weights_on_request():
    model = known_lda(0.5, [[0.9, 0.1], [0.1, 0.9]], vocabulary=["urn", "ball"])
    corpus = pb.Corpus([[2, 1, 4]], ["urn", "ball", "zebra"])
    found = model.transform(corpus, unseen="drop")
    np.testing.assert_array_equal(found, model.transform([[2, 1]]))
    np.testing.assert_array_equal(found, model.topic_weights(corpus, unseen="drop").mean)


def test_frames_with_columns_in_another_order_are_refused_with_the_remedy():
    frame = pd.DataFrame(np.arange(24).reshape(4, 6) % 5, columns=list("abcdef"))
    model = LDA(2, max_iter=4, random_state=0).fit(frame)
    permuted = frame[list("fedcba")]
    for method in (model.transform, model.topic_weights, model.score, model.perplexity):
        with pytest.raises(errors.InvalidArgumentError, match=r"same order.*\n.*feature_names_in_"):
            method(permuted)
    ordered = model.transform(frame)
    np.testing.assert_array_equal(model.transform(permuted[model.feature_names_in_]), ordered)
    np.testing.assert_array_equal(model.transform(pb.Corpus(permuted)), ordered)
