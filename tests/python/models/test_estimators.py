import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

import polyabayes as pb
from helpers.interruption import interrupted_when_done
from polyabayes import exceptions as errors
from polyabayes.models import em, fitting

LDA, PFA = pb.LatentDirichletAllocation, pb.PoissonFactorAnalysis
PFA_PRIORS = ["gap", "gamma", "beta-gamma", "beta-gamma-gamma"]
ESTIMATORS = [pytest.param(LDA, id="lda"), pytest.param(PFA, id="pfa")]
WORDS = ["urn", "ball", "größe", "🎲", "draw", "colour"]
COUNTS = np.random.default_rng(0).poisson(1.5, (20, 6))
TOPICS = np.array([[0.5, 0.25, 0.125, 0.125], [0.0, 0.25, 0.25, 0.5]])


def by_em(n_components, **options):
    return LDA(n_components, **{"fit_method": "em"} | options)


@parametrize_with_checks([
    LDA(2, max_iter=10, random_state=0),
    LDA(2, fit_method="em", max_iter=10, random_state=0),
    PFA(2, max_iter=10, random_state=0),
    PFA(2, prior="nmf", max_iter=10, random_state=0),
])  # fmt: skip
def test_scikit_learn_contract(estimator, check):
    # Checks of scikit-learn raise where the contract is broken.
    assert check(estimator) is None


@pytest.mark.parametrize("cls", ESTIMATORS)
def test_scores_are_those_of_log_likelihood(cls):
    model = cls(3, max_iter=10, random_state=0).fit(COUNTS)
    result = pb.log_likelihood(model, COUNTS)
    assert set(result.methods) == {"exact"}
    np.testing.assert_array_equal(model.score_samples(COUNTS), result.values)
    assert model.score(COUNTS) == result.nats_per_token
    # Perplexity is of words in order, whatever the score is of.
    words = pb.log_likelihood(model, COUNTS, event="sequence", given_length=True)
    assert model.perplexity(COUNTS) == pytest.approx(words.perplexity, rel=1e-14)
    assert 1 < words.perplexity < COUNTS.shape[1] + 2


@pytest.mark.parametrize(
    ("make", "n_words"),
    [
        (lambda: [[(0, 2), (1, 1)], [(3, 1)]], 4),
        (lambda: iter([[(0, 2), (1, 1)], [(3, 1)]]), 4),
        (lambda: [["a", "b"], ["b", "c", "c"]], 3),
        (lambda: (document for document in [["a", "b"], ["b", "c", "c"]]), 3),
        (lambda: iter([pb.Corpus([[1, 0], [0, 2]]), pb.Corpus([[3, 0]])]), 2),
        (lambda: pd.DataFrame({"text": ["cat dog", "dog cow"], "stars": [1, 2]}), 3),
        (lambda: pd.DataFrame({"doc_id": [1001, 1002], "apple": [2, 0], "pear": [0, 3]}), 2),
    ],
)
@pytest.mark.parametrize("options", [{}, {"fit_method": "em"}])
def test_features_are_words_in_whatever_form_documents_come(make, n_words, options):
    model = LDA(2, max_iter=4, random_state=0, **options).fit(make())
    assert model.n_features_in_ == n_words == model.components_.shape[1]
    assert not hasattr(model, "feature_names_in_")
    assert model.transform(make()).shape[1] == 2
    assert np.isfinite(model.score(make()))


@pytest.mark.parametrize("cls", ESTIMATORS)
def test_frames_name_the_features(cls):
    frame = pd.DataFrame(COUNTS, columns=WORDS)
    model = cls(2, max_iter=6, random_state=0).fit(frame)
    assert model.feature_names_in_.tolist() == model.vocabulary_.tolist() == WORDS
    np.testing.assert_array_equal(model.transform(frame), model.transform(COUNTS))
    names = model.get_feature_names_out()
    wide = model.set_output(transform="pandas").transform(frame)
    assert wide.columns.tolist() == names.tolist()
    assert model.score(pb.Corpus(frame)) == model.score(frame)


@pytest.mark.parametrize("cls", ESTIMATORS)
def test_models_of_a_corpus_align_documents_by_word(cls):
    corpus, order = pb.Corpus(COUNTS, WORDS), [3, 5, 0, 1, 4, 2]
    model = cls(2, max_iter=6, random_state=0).fit(corpus)
    assert model.vocabulary_.tolist() == WORDS
    shuffled = pb.Corpus(COUNTS[:, order], [WORDS[i] for i in order])
    frame = pd.DataFrame(COUNTS[:, order], columns=shuffled.vocabulary)
    expected = model.transform(corpus)
    for documents in (shuffled, COUNTS, sparse.csc_array(COUNTS), frame):
        np.testing.assert_array_equal(model.transform(documents), expected)
        assert model.score(documents) == model.score(corpus)
    with pytest.raises(errors.InvalidArgumentError, match="'new'"):
        model.transform(pb.Corpus(np.ones((1, 1), int), ["new"]))


@pytest.mark.parametrize("cls", ESTIMATORS)
@pytest.mark.parametrize("n_components", [1, 3, 500])
def test_fitted_parameters_are_proper(cls, n_components):
    counts = np.array([[2, 0, 1, 0], [0, 0, 0, 0], [0, 1, 0, 3]])
    model = cls(n_components, max_iter=12, random_state=0).fit(counts)
    assert model.components_.shape == (n_components, 4)
    assert model.n_iter_ == 12
    np.testing.assert_allclose(model.components_.sum(axis=1), 1, rtol=1e-12)
    assert (model.components_ > 0).all()
    weights = model.transform(counts)
    assert weights.shape == (3, n_components)
    assert (weights > 0).all()
    assert np.isfinite(model.score_samples(counts)).all()
    if cls is LDA:
        np.testing.assert_allclose(weights.sum(axis=1), 1, rtol=1e-12)
        alpha = model.doc_topic_prior_
        np.testing.assert_allclose(weights[1], alpha / alpha.sum(), rtol=1e-12)
    else:
        r, p = model.shape_, model.probability_
        np.testing.assert_allclose(weights[1], r * p, rtol=1e-12)


def test_what_a_prior_does_not_learn_stays():
    r, p = np.array([0.5, 1.5, 4.0]), np.array([0.3, 0.6, 0.9])
    fits = {
        prior: PFA(3, prior=prior, shape=r, probability=p, max_iter=10, random_state=0).fit(COUNTS)
        for prior in PFA_PRIORS
    }
    for prior, model in fits.items():
        assert np.array_equal(model.shape_, r) == (prior in ("gap", "beta-gamma"))
        assert np.array_equal(model.probability_, p) == (prior in ("gap", "gamma"))
        assert (model.shape_ > 0).all()
        assert ((model.probability_ > 0) & (model.probability_ < 1)).all()


def test_probabilities_start_at_the_mean_length():
    model = PFA(3, prior="gap", shape=[0.5, 1.0, 2.5], max_iter=3, random_state=0).fit(COUNTS)
    mean_length = COUNTS.sum() / len(COUNTS)
    expected = (model.shape_ * model.probability_ / (1 - model.probability_)).sum()
    assert expected == pytest.approx(mean_length, rel=1e-12)
    assert len(set(model.probability_)) == 1


def fit(make, **options):
    """Fit a model that is refused before it has anything."""
    model = make(**{"n_components": 2, "max_iter": 10, **options})
    try:
        model.fit(COUNTS)
    finally:
        assert not hasattr(model, "components_")


@pytest.mark.parametrize("least", [1, 8])
@pytest.mark.parametrize(
    ("model", "place", "unit"),
    [
        (LDA(100, max_iter=10**6, random_state=0), fitting, "sweeps"),
        (PFA(100, max_iter=10**6, random_state=0), fitting, "sweeps"),
        (by_em(200, max_iter=10**6, tol=0.0, random_state=0), em, "iterations"),
    ],
)
def test_interrupted_training_leaves_a_usable_model(model, place, unit, least, monkeypatch):
    corpus = pb.datasets.make_lda_corpus(200, 300, 10, document_length=50, random_state=0).corpus
    model = clone(model)
    interruption = interrupted_when_done(least, monkeypatch, place)
    with interruption, pytest.raises(errors.Interrupted) as caught:
        model.fit(corpus)
    assert caught.value.partial is model
    assert f"stopped after {model.n_iter_:,} of 1,000,000 {unit}" in str(caught.value)
    np.testing.assert_allclose(model.components_.sum(axis=1), 1, rtol=1e-12)
    assert np.isfinite(model.score(np.eye(2, 300, dtype=int)))
