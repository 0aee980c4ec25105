"""Poisson factor analysis: NMF, and the table of topics."""

import warnings

import numpy as np
import pytest
from scipy.stats import poisson
from sklearn.base import clone
from sklearn.decomposition import NMF

import polyabayes as pb
from polyabayes import exceptions as errors

PFA = pb.PoissonFactorAnalysis
WORDS = [f"w{i:02}" for i in range(60)]


@pytest.fixture(scope="module")
def corpus():
    data = pb.datasets.make_gamma_poisson_corpus(150, 60, 4, random_state=0)
    return pb.Corpus(data.corpus.counts, WORDS)


NMF_MODEL = PFA(2, prior="nmf", max_iter=5, random_state=0)
COUNTS = [[3, 1, 0], [1, 2, 0], [0, 4, 0]]


@pytest.fixture(scope="module")
def nmf(corpus):
    return PFA(4, prior="nmf", max_iter=100, random_state=0).fit(corpus)


def test_nmf_is_that_of_scikit_learn(corpus):
    theirs = NMF(4, init="nndsvda", solver="mu", beta_loss="kullback-leibler", max_iter=60, tol=0)
    weights = theirs.fit_transform(corpus.counts.astype(float))
    model = PFA(4, prior="nmf", max_iter=60, random_state=0).fit(corpus, eval_every=1)
    topics = theirs.components_ / theirs.components_.sum(axis=1, keepdims=True)
    # They draw a singular value decomposition, we from another seed.
    np.testing.assert_allclose(model.components_, topics, atol=1e-6)
    likelihood = model.trace_.log_joint
    rates = weights @ theirs.components_
    assert likelihood[-1] == pytest.approx(poisson.logpmf(corpus.counts.toarray(), rates).sum())
    assert len(likelihood) == 60
    assert (np.diff(likelihood) > -1e-9 * abs(likelihood[-1])).all()
    # Transform finds the best weights, where training has made one update.
    rates = model.transform(corpus) @ model.components_
    assert likelihood[-1] <= poisson.logpmf(corpus.counts.toarray(), rates).sum()


def test_the_best_of_several_starts_goes_on(corpus):
    settings = {"prior": "nmf", "max_iter": 30, "random_state": 0}
    one, best = (PFA(4, n_init=n, **settings).fit(corpus) for n in (1, 4))
    assert best.n_iter_ == 30
    assert best.trace_.log_joint[-1] >= one.trace_.log_joint[-1]


def test_nmf_is_proper(corpus, nmf):
    np.testing.assert_allclose(nmf.components_.sum(axis=1), 1, rtol=1e-12)
    assert not hasattr(nmf, "shape_")
    weights = nmf.transform(corpus)
    lengths = np.asarray(corpus.counts.sum(axis=1)).ravel()
    np.testing.assert_allclose(weights.sum(axis=1), lengths, rtol=1e-6)
    np.testing.assert_allclose(nmf.topic_counts_, weights.sum(axis=0), rtol=0.02)
    assert nmf.topic_counts_.sum() == pytest.approx(corpus.n_tokens, rel=1e-6)


def test_words_that_are_new_to_nmf_are_told_and_left_out():
    model = PFA(2, prior="nmf", max_iter=20, random_state=0).fit(COUNTS)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        known = model.transform([[3, 1, 0], [1, 2, 0]])
    with pytest.warns(errors.ImpossibleDocumentWarning, match="1, document 1 first; their") as told:
        found = model.transform([[3, 1, 0], [1, 2, 5]])
    assert told[0].filename == __file__
    np.testing.assert_array_equal(found, known)


def test_nmf_has_no_likelihood(corpus, nmf):
    for name in ("score", "score_samples", "perplexity"):
        assert not hasattr(nmf, name)
        assert not hasattr(PFA(prior="nmf"), name)
        assert hasattr(PFA(), name)
        with pytest.raises(AttributeError) as caught:
            getattr(nmf, name)(corpus)
        assert isinstance(caught.value.__cause__, errors.InvalidArgumentError)
    known = PFA.from_parameters(topic_word=nmf.components_, shape=0.5, probability=0.9)
    assert np.isfinite(known.score(corpus))


def test_plug_in_perplexity_of_nmf_is_below_that_of_its_mean_topic(corpus, nmf):
    observed, held_out = pb.split_tokens(corpus, 0.3, random_state=0)
    flat = PFA(1, prior="nmf", max_iter=5, random_state=0).fit(corpus)
    value = pb.plug_in_perplexity(nmf, observed, held_out)
    assert 1 < value < pb.plug_in_perplexity(flat, observed, held_out)


def test_a_model_may_be_fitted_again_with_another_prior(corpus):
    model = PFA(3, max_iter=6, random_state=0).fit(corpus)
    model.set_params(prior="nmf").fit(corpus)
    assert not hasattr(model, "shape_")
    assert not hasattr(model, "score")
    model.set_params(prior="gap").fit(corpus)
    assert np.isfinite(model.score(corpus))


def test_none_means_the_hyper_parameters_of_the_paper(corpus):
    model = PFA(4, max_iter=8, random_state=0)
    named = clone(model).set_params(
        topic_word_prior=0.1,
        probability_concentration=1.0,
        probability_mean=0.25,
        shape_concentration=1.0,
        shape_mean=1.0,
    )
    model.fit(corpus)
    named.fit(corpus)
    np.testing.assert_array_equal(model.components_, named.components_)
    np.testing.assert_array_equal(model.shape_, named.shape_)
    other = clone(named).set_params(shape_mean=5.0).fit(corpus)
    assert (other.shape_ != named.shape_).any()


@pytest.mark.parametrize("kind", [PFA, pb.LatentDirichletAllocation])
def test_the_table_lists_topics_by_weight(corpus, kind):
    model = kind(5, max_iter=20, random_state=0).fit(corpus)
    table = model.topic_table(3)
    assert sorted(table.topic) == list(range(5))
    np.testing.assert_array_equal(table.n_tokens, model.topic_counts_[table.topic])
    assert (np.diff(table.weight) <= 0).all()
    assert table.weight.sum() == pytest.approx(1)
    for topic, words in zip(table.topic, table.words, strict=True):
        best = np.sort(model.components_[topic])[::-1][:3]
        found = [model.components_[topic, WORDS.index(word)] for word in words]
        np.testing.assert_array_equal(found, best)
    assert " ".join(table.words[0]) in str(table).splitlines()[1]
    frame = table.to_frame()
    assert list(frame) == ["topic", "weight", "n_tokens", "words"]
    assert frame["words"][0] == " ".join(table.words[0])
    assert model.topic_table(500).words.shape == (5, 60)


def test_topics_in_use_are_fewer_than_those_there_are():
    topics = np.kron(np.eye(3), np.full(10, 0.1))
    law = {"shape": 0.4, "probability": 0.98, "random_state": 1}
    data = pb.datasets.make_gamma_poisson_corpus(300, topic_word=topics, **law)
    model = PFA(40, max_iter=150, random_state=0).fit(data.corpus)
    assert 3 <= model.n_active_ < 40
    table = model.topic_table()
    assert (table.n_tokens[: model.n_active_] > 0).all()
    assert (table.n_tokens[model.n_active_ :] == 0).all()
    assert table.words.dtype == object
    assert isinstance(table.words[0, 0], int)
