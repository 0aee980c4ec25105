"""The spread of topic weights against closed forms and full enumeration."""

import itertools
from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy.special import gammaln
from sklearn import config_context

import polyabayes as pb
from helpers.small_models import known_lda, known_pfa
from polyabayes import _core, exceptions as errors

LDA, PFA = pb.LatentDirichletAllocation, pb.PoissonFactorAnalysis
TOPICS = np.array([[0.5, 0.25, 0.125, 0.125], [0.0, 0.25, 0.25, 0.5], [0.2, 0.2, 0.5, 0.1]])
A, P = np.array([0.4, 0.9, 1.7]), np.array([0.6, 0.25, 0.5])
SUMS = np.array([1.0, 2.5, 0.6])
TOKENS = [0, 1, 2, 2, 3]


# The second and the third are one topic to a document.
TWINS = np.array([TOPICS[0], TOPICS[2], TOPICS[2]])


def known(cls, topics, random_state=0, topic_concentration=None):
    options = {"random_state": random_state, "topic_concentration": topic_concentration}
    if cls is LDA:
        return known_lda(A, topics, **options)
    sums = SUMS if topic_concentration is None else np.ones(3)
    return known_pfa(A, P, sums[:, np.newaxis] * topics, **options)


def scale(sums=SUMS):
    """Scale of theta given the document, under gamma-Poisson."""
    return P / (1 - P + P * sums)


def ln_rising(a, n):
    return gammaln(a + n) - gammaln(a)


def exact_moments(cls, topics, s):
    """E[theta | tokens] and E[theta^2 | tokens], over all paths."""
    sums = np.ones(3) if cls is LDA or s else SUMS
    factor = np.ones(3) if cls is LDA else scale(sums) * sums
    total, first, second = 0.0, np.zeros(3), np.zeros(3)
    for path in itertools.product(range(3), repeat=len(TOKENS)):
        held = np.zeros((3, 4))
        np.add.at(held, (path, TOKENS), 1)
        x = A + held.sum(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            ln_words = np.where(held > 0, held * np.log(topics), 0.0).sum(axis=1)
            if s:
                bursts = np.where(held > 0, ln_rising(np.c_[s] * topics, held), 0.0).sum(axis=1)
                ln_words = np.where(np.isinf(s), ln_words, bursts - ln_rising(s, held.sum(axis=1)))
        weight = np.exp((gammaln(x) + ln_words + held.sum(axis=1) * np.log(factor)).sum())
        if cls is LDA:
            moments = x / x.sum(), x * (x + 1) / (x.sum() * (x.sum() + 1))
        else:
            moments = x * scale(sums), x * (x + 1) * scale(sums) ** 2
        total += weight
        first, second = first + weight * moments[0], second + weight * moments[1]
    return first / total, second / total


@pytest.mark.parametrize("cls", [LDA, PFA])
@pytest.mark.parametrize(("topics", "s"), [(TOPICS, None), (TWINS, [2.0, np.inf, np.inf])])
def test_moments_and_errors_agree_with_the_enumerated_posterior(cls, topics, s):
    counts = np.bincount(TOKENS, minlength=4)[np.newaxis]
    found = [known(cls, topics, seed, s).topic_weights(counts) for seed in range(400)]
    mean, std = (np.array([getattr(one, name)[0] for one in found]) for name in ("mean", "std"))
    # The second moment of a finite chain is unbiased, its variance is not.
    expected = exact_moments(cls, topics, s)
    for values, right in zip((mean, std**2 + mean**2), expected, strict=True):
        std_errors = values.std(axis=0, ddof=1) / np.sqrt(len(found))
        assert (std_errors < 0.02 * right).all()
        assert (np.abs(values.mean(axis=0) - right) < 4 * std_errors).all()
    z = (mean - expected[0]) / np.concatenate([one.std_errors for one in found])
    assert (np.abs(z).max() < 9) & (0.91 < (np.abs(z) < 2.262).mean() < 0.99)


@pytest.mark.slow
def test_sweeps_among_likely_topics_have_the_weights_of_long_runs():
    rng = np.random.default_rng(0)
    topics = rng.dirichlet(np.full(400, 0.05), 60)
    model = known_lda(np.full(60, 0.1), topics, random_state=0)
    corpus = pb.Corpus(rng.multinomial(100, rng.dirichlet(np.full(60, 0.1), 40) @ topics))
    core = model._core_model(), corpus._core_documents()
    run = partial(_core.transform, *core, spread=True, n_jobs=1)
    found = np.array([run(n_sweeps=128, seed=seed) for seed in range(40)])
    gaps = found[:, :, 0] - run(n_sweeps=16_000, seed=100)[:, 0]
    assert np.sqrt((gaps.mean(axis=0) ** 2).mean()) < 0.0006
    assert 0.9 < np.sqrt((gaps**2).mean() / (found[:, :, 2] ** 2).mean()) < 1.1


def test_errors_tell_that_chains_remember_their_starts():
    """Topics are nearly alike: tokens move between them freely, but their numbers walk slowly."""
    rng = np.random.default_rng(0)
    topics = rng.dirichlet(np.full(200, 0.3)) * np.exp(rng.normal(0, 0.2, (4, 200)))
    model = known_lda(np.full(4, 0.3), topics / topics.sum(axis=1, keepdims=True))
    weights = rng.dirichlet(np.full(4, 0.3), 12) @ model.components_
    core = model._core_model(), pb.Corpus(rng.multinomial(100, weights))._core_documents()
    run = partial(_core.transform, *core, spread=True, n_jobs=1)
    mean, _, error = np.moveaxis(run(n_sweeps=40_000, seed=100), 1, 0)
    found = [np.moveaxis(run(n_sweeps=128, seed=seed), 1, 0) for seed in range(8)]
    z = np.array([(one[0] - mean) / np.hypot(one[2], error) for one in found])
    assert 0.93 < (np.abs(z) < 1.96).mean() < 0.99


def test_no_topic_of_nearly_equal_ones_comes_first():
    """Words and topics change places: both topics have half of the document."""
    topics = np.array([[0.65, 0.35], [0.35, 0.65]])
    core = known_lda([1.0, 1.0], topics)._core_model(), pb.Corpus([[50, 50]])._core_documents()
    run = partial(_core.transform, *core, spread=True, n_jobs=1, n_sweeps=128)
    means = np.array([run(seed=seed)[0, 0, 0] for seed in range(200)])
    assert abs(means.mean() - 0.5) < 4 * means.std() / np.sqrt(200)


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
