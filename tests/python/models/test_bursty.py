"""Bursty topics: planted concentrations, options, files, checkpoints, and given topics."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.decomposition import LatentDirichletAllocation as SklearnLda

import polyabayes as pb

LDA, PFA = pb.LatentDirichletAllocation, pb.PoissonFactorAnalysis
PLANTED = np.array([10.0, 100.0, 1000.0, np.inf])


def own_topics(rng, topics, s):
    """One document's version of every topic."""
    draws = [
        phi if np.isinf(one) else rng.dirichlet(np.maximum(one * phi, 1e-9))
        for phi, one in zip(topics, s, strict=True)
    ]
    return np.array(draws)


def simulated(s, n_documents, n_tokens, n_words=200, seed=0):
    """Topics, and the counts of documents with their own versions of these."""
    rng = np.random.default_rng(seed)
    topics = rng.dirichlet(np.full(n_words, 0.1), len(s))
    rows = []
    for theta in rng.dirichlet(np.full(len(s), 0.3), n_documents):
        words = rng.multinomial(n_tokens, theta)
        own = own_topics(rng, topics, s)
        rows.append(sum(rng.multinomial(n, phi) for n, phi in zip(words, own, strict=True)))
    return topics, sparse.csr_matrix(np.array(rows))


@pytest.fixture(scope="module")
def planted():
    return simulated(PLANTED, 400, 150)


def small(model=LDA, **options):
    return model(3, max_iter=24, thin=2, random_state=0, **options)


SMALL = simulated([5.0, 50.0, np.inf], 40, 30, 30)[1]


def check_holds(planted_s, value, lower, upper):
    """Intervals hold finite concentrations, and the infinite one is far above all lengths."""
    finite = np.isfinite(planted_s)
    assert (lower < planted_s)[finite].all()
    assert (planted_s < upper)[finite].all()
    assert (lower[~finite] > 1000).all()
    assert (lower < value).all()
    assert (value < upper).all()
    assert (upper / lower)[finite].max() < 8


@pytest.mark.parametrize("model", [LDA, PFA])
def test_planted_concentrations_are_in_their_intervals(model, planted):
    topics, counts = planted
    fitted = model(4, max_iter=300, random_state=1, topic_concentration="learn").fit(counts)
    # Topics by their nearest planted one.
    order = np.abs(topics[:, np.newaxis] - fitted.components_).sum(axis=2).argmin(axis=1)
    assert sorted(order) == [0, 1, 2, 3]
    draws = fitted.topic_concentration_draws_[:, order]
    assert draws.shape == (150, 4)
    lower, upper = np.quantile(draws, [0.005, 0.995], axis=0)
    check_holds(PLANTED, fitted.topic_concentration_[order], lower, upper)


def test_concentrations_of_given_topics(planted):
    topics, counts = planted
    known = LDA.from_parameters(doc_topic_prior=0.3, topic_word=topics)
    found = pb.learn_topic_concentration(known, counts, per_topic=True, level=0.99, random_state=0)
    check_holds(PLANTED, found.value, found.lower, found.upper)
    assert found.draws.shape == (200, 4)
    assert list(found.to_frame()["topic"]) == [0, 1, 2, 3]
    _, alike = simulated(np.full(4, 30.0), 100, 80)
    one = pb.learn_topic_concentration(known, alike, max_iter=120, level=0.99, random_state=0)
    assert one.lower < 30 < one.upper < 2 * one.lower
    again = pb.learn_topic_concentration(known, alike, max_iter=120, random_state=0, n_jobs=1)
    np.testing.assert_array_equal(again.draws, one.draws)


def test_concentrations_of_models_of_other_kinds(planted):
    topics, _ = planted
    _, counts = simulated(np.full(4, 30.0), 60, 60)
    foreign = SklearnLda(4, random_state=0, max_iter=5).fit(counts)
    pfa = PFA.from_parameters(topic_word=3 * topics, shape=0.4, probability=0.9)
    for model in (foreign, pfa):
        found = pb.learn_topic_concentration(model, counts, max_iter=60, random_state=0)
        assert 3 < found.lower < found.value < found.upper < 100


def test_what_concentrations_may_be():
    fitted = small(topic_concentration=[5, np.inf, 50.5]).fit(SMALL)
    assert fitted.topic_concentration_.tolist() == [5, np.inf, 50.5]
    assert not hasattr(fitted, "topic_concentration_draws_")
    assert fitted.last_sample_.topic_concentration.tolist() == [5, np.inf, 50.5]
    assert small(topic_concentration=7).fit(SMALL).topic_concentration_.tolist() == [7, 7, 7]


def test_infinite_concentrations_are_ordinary_topics_to_the_bit():
    plain, infinite = small().fit(SMALL), small(topic_concentration=np.inf).fit(SMALL)
    np.testing.assert_array_equal(plain.components_, infinite.components_)
    assert np.isinf(plain.topic_concentration_).all()
    bursty = small(topic_concentration="learn").fit(SMALL)
    assert not np.array_equal(plain.components_, bursty.components_)
    again = clone(bursty).set_params(topic_concentration=None)
    assert np.isinf(again.fit(SMALL).topic_concentration_).all()
    bursty.set_params(topic_concentration=None).fit(SMALL)
    assert np.isinf(bursty.topic_concentration_).all()
    assert not hasattr(bursty, "topic_concentration_draws_")


def test_covariates_and_chains():
    rows = np.arange(40.0).reshape(-1, 1)
    fitted = small(topic_concentration="learn").fit(SMALL, covariates=rows)
    assert fitted.coefficients_.shape == (3, 2)
    assert fitted.coefficient_draws_.shape == (12, 3, 2)
    assert fitted.topic_concentration_draws_.shape == (12, 3)
    assert fitted.topic_concentration_.max() < 1e6

    thetas = []

    def keep(model):
        thetas.append(model.posterior_draw("theta")["theta"])

    fitted.fit(SMALL, covariates=rows, callback=keep, eval_every=6)
    assert np.shape(thetas) == (4, 40, 3)
    chains = pb.sample_chains(small(topic_concentration="learn"), pb.Corpus(SMALL), 2)
    assert chains.draws["topic_concentration"].shape == (2, 6, 3)


def test_topics_rest_on_tables():
    """Repeated words count once or a few times, so that topics are less certain."""
    counts = np.array([[50, 0, 1], [0, 60, 1]])
    for concentration, least, most in ((0.5, 2, 12), (np.inf, 113.2, 113.4)):
        model = LDA(1, topic_concentration=concentration, random_state=0, max_iter=20).fit(counts)
        phi, std = model.components_[0], model.components_std_[0]
        # An entry of Dirichlet(a) with sum A has the variance phi (1 - phi) / (A + 1).
        assert (least < phi * (1 - phi) / std**2).all()
        assert (phi * (1 - phi) / std**2 < most).all()
        assert model.topic_counts_.tolist() == [112]
