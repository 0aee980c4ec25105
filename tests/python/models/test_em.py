"""Variational EM of LDA: its options, its bound, and growing one model from another."""

import numpy as np
import pytest
from scipy.special import digamma, gammaln
from sklearn.base import clone

import polyabayes as pb

LDA = pb.LatentDirichletAllocation
COUNTS = np.random.default_rng(0).poisson(1.5, (20, 6))


def em(n_components, **options):
    defaults = {"topic_word_prior": 0, "learn_priors": True, "max_iter": 40, "random_state": 0}
    return LDA(n_components, fit_method="em", **defaults | options)


@pytest.fixture(scope="module")
def data():
    law = {"document_length": 50, "doc_topic_prior": 0.2, "random_state": 0}
    return pb.datasets.make_lda_corpus(150, 100, 5, **law)


@pytest.mark.parametrize("learn_priors", [False, True])
def test_the_bound_rises_to_what_the_model_has(data, learn_priors):
    model = em(6, tol=0.0, learn_priors=learn_priors).fit(data.corpus)
    bound = model.trace_.bound
    assert model.trace_.n_iter.tolist() == list(range(41))
    assert (np.diff(bound) >= -1e-9 * np.abs(bound[1:])).all()
    assert model.bound_ == bound[-1] > bound[0] + 100
    assert model.n_iter_ == 40
    assert list(model.trace_.to_frame()) == ["n_iter", "bound"]
    assert not hasattr(model.trace_, "log_joint")
    np.testing.assert_allclose(model.components_.sum(axis=1), 1, rtol=1e-12)
    assert model.topic_counts_.sum() == pytest.approx(data.corpus.n_tokens)
    if not learn_priors:
        np.testing.assert_array_equal(model.doc_topic_prior_, 5 / 6)


def test_with_a_prior_of_the_topics_the_trace_is_what_em_climbs(data):
    model = em(6, tol=0.0, topic_word_prior=1.5).fit(data.corpus)
    climbed = model.trace_.bound
    assert (np.diff(climbed) >= -1e-9 * np.abs(climbed[1:])).all()
    ln_prior = 1.5 * np.log(100 * model.components_).sum()
    assert climbed[-1] == pytest.approx(model.bound_ + ln_prior, rel=1e-12)


def mean_field_bounds(model, counts):
    """Bounds of a document where updates of gamma rest, from even ones and from one topic each."""
    alpha, phi = model.doc_topic_prior_, model.components_[:, counts > 0]
    counts, found = counts[counts > 0], []
    for share in (np.full(len(alpha), 1 / len(alpha)), *np.eye(len(alpha))):
        gamma = alpha + counts.sum() * share
        for _ in range(300):
            x = digamma(gamma) - digamma(gamma.sum())
            weights = np.exp(x)[:, np.newaxis] * phi
            of_theta = gammaln(gamma) - gammaln(alpha) + (alpha - gamma) * x
            of_totals = gammaln(alpha.sum()) - gammaln(gamma.sum())
            bound = of_totals + of_theta.sum() + counts @ np.log(weights.sum(axis=0))
            gamma = alpha + weights @ (counts / weights.sum(axis=0))
        found.append(bound)
    return min(found), max(found)


@pytest.mark.parametrize("n_components", [2, 3, 4])
def test_the_bound_is_that_of_the_mean_field_and_below_the_likelihood(n_components):
    corpus = pb.datasets.make_lda_corpus(
        12, 8, 2, document_length=7, doc_topic_prior=0.3, topic_word_prior=0.5, random_state=4
    ).corpus
    model = em(n_components, max_iter=60, tol=1e-6).fit(corpus)
    rows = corpus.counts.toarray()
    low, high = np.sum([mean_field_bounds(model, row) for row in rows], axis=0)
    assert low - 1e-3 < model.bound_ < high + 1e-3
    assert high < pb.log_likelihood(model, corpus, "exact").total


@pytest.mark.parametrize("learn_priors", [False, True])
def test_a_grown_model_is_never_worse(data, learn_priors):
    model = em(1, learn_priors=learn_priors).fit(data.corpus)
    gains = []
    for n_components in range(2, 9):
        grown = em(n_components, init=model, learn_priors=learn_priors).fit(data.corpus)
        assert grown.components_.shape == (n_components, 100)
        gains.append(grown.bound_ - model.bound_)
        model = grown
    assert min(gains) >= 0
    assert np.mean(np.array(gains) > 1) > 0.5


def test_topics_added_share_the_prior(data):
    init = em(2, learn_priors=False, max_iter=3).fit(data.corpus)
    grown = em(5, init=init, learn_priors=False, max_iter=3).fit(data.corpus)
    np.testing.assert_allclose(grown.doc_topic_prior_, np.full(5, 1.0), rtol=1e-12)


def test_any_fitted_lda_may_be_grown_from(data, tmp_path):
    gibbs = LDA(4, max_iter=30, random_state=0).fit(data.corpus)
    grown = em(5, init=gibbs).fit(data.corpus)
    assert grown.doc_topic_prior_.shape == (5,)
    gibbs.save(tmp_path / "m.safetensors")
    again = em(5, init=pb.load(tmp_path / "m.safetensors")).fit(data.corpus)
    np.testing.assert_array_equal(again.components_, grown.components_)
    same = em(4, init=gibbs).fit(data.corpus)
    assert same.bound_ >= same.trace_.bound[0]


def test_where_topics_share_no_word_the_bound_is_the_likelihood_at_its_maximum():
    topics = np.kron(np.eye(3), np.full(10, 0.1))
    law = {"document_length": 60, "doc_topic_prior": 0.2, "random_state": 1}
    data = pb.datasets.make_lda_corpus(400, topic_word=topics, **law)
    init = LDA.from_parameters(doc_topic_prior=1.0, topic_word=topics)
    model = em(3, init=init, tol=0.0).fit(data.corpus)
    exact = pb.log_likelihood(model, data.corpus, "exact").total
    assert model.bound_ == pytest.approx(exact, rel=1e-10)
    # The topics of all tokens are known, and their Dirichlet-multinomial likelihood is flat.
    counts, alpha = data.corpus.counts @ (topics.T > 0), model.doc_topic_prior_
    by_topic = (digamma(counts + alpha) - digamma(alpha)).sum(axis=0)
    by_length = (digamma(60 + alpha.sum()) - digamma(alpha.sum())) * 400
    np.testing.assert_allclose(by_topic, by_length, rtol=1e-5)


def test_models_grow_from_a_file_as_from_the_model_itself(data, tmp_path):
    init = em(3, topic_word_prior=None).fit(data.corpus)
    model = em(4, init=init, topic_word_prior=None).fit(data.corpus)
    model.save(tmp_path / "m.safetensors")
    loaded = pb.load(tmp_path / "m.safetensors")
    # A model grown from the file knows the bound that it must not fall below.
    bounds = [em(5, init=start, max_iter=1).fit(data.corpus).trace_ for start in (model, loaded)]
    np.testing.assert_array_equal(bounds[0].bound, bounds[1].bound)
    spoilt = em(5, init=loaded, topic_word_prior=1e6).fit(data.corpus)
    assert spoilt.bound_ == em(5, init=model, topic_word_prior=1e6).fit(data.corpus).bound_


def test_a_model_that_em_cannot_better_comes_back_as_it_was(data):
    init = em(3).fit(data.corpus)
    # So many pseudo-counts that no topic differs from the others.
    spoilt = em(5, init=init, topic_word_prior=1e9).fit(data.corpus)
    assert spoilt.bound_ >= init.bound_
    np.testing.assert_allclose(spoilt.components_[:3], init.components_, rtol=1e-14)
    np.testing.assert_array_equal(spoilt.doc_topic_prior_, [*init.doc_topic_prior_, *[1e-100] * 2])
    assert spoilt.topic_counts_[3:].tolist() == [0.0, 0.0]


def test_fitting_by_gibbs_forgets_the_bound(data):
    model = em(3).fit(data.corpus).set_params(fit_method="gibbs", topic_word_prior=0.1, max_iter=4)
    assert not hasattr(model.fit(data.corpus), "bound_")


def test_a_clone_grows_from_the_same_model(data):
    init = em(3).fit(data.corpus)
    model = em(4, init=init)
    copied = clone(model)
    assert copied.init is init
    assert not hasattr(copied, "components_")
    assert copied.fit(data.corpus).bound_ == model.fit(data.corpus).bound_ >= init.bound_


def test_plot_trace_draws_the_bound(data):
    model = em(3).fit(data.corpus)
    ax = pb.plotting.plot_trace(model)
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), model.trace_.bound)
    assert "bound" in ax.get_ylabel()
    assert sum(bar.get_width() for bar in pb.plotting.plot_topic_weights(model).patches) > 0.99
