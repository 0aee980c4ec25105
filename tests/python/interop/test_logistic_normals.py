"""Logistic-normal models and mixtures of other packages, against sums that share no code."""

import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.interpolate import BSpline
from scipy.special import gammaln, logsumexp, softmax

import polyabayes as pb
from helpers.foreign_models import of_tomotopy
from helpers.quadrature import hermite
from polyabayes import exceptions as errors

STM = Path(__file__).resolve().parents[4] / "shared" / "interop" / "stm"
WORDS = [f"w{word}" for word in range(12)]
rng = np.random.default_rng(0)
COUNTS = np.array([rng.multinomial(14, rng.dirichlet(np.full(12, 0.3))) for _ in range(80)])
TEXTS = [[WORDS[w] for w in np.repeat(np.arange(12), row)] for row in COUNTS]
TABLES = [np.log(np.full((2, 2), 0.5)), np.log([[0.9, 0.1], [0.2, 0.8]])]
BY_SIDE = {
    "mu": {"mu": np.zeros((1, 4))},
    "sigma": np.ones((1, 1)),
    "beta": {"logbeta": TABLES},
    "vocab": np.array(["a", "b"]),
    "settings": {"covariates": {"yvarlevels": np.array(["left", "right"])}},
}


def by_quadrature(topics, mean, covariance, counts):
    """Ln p of a document by a product of Gauss-Hermite rules, from the definition."""
    eta, ln_mass = hermite(mean, covariance, 90 if len(mean) < 3 else 48)
    if len(mean) < len(topics):
        eta = np.pad(eta, [(0, 0), (0, 1)])
    return float(logsumexp(ln_mass + np.log(softmax(eta, axis=1) @ topics) @ counts))


def gaps(found, model, means, covariance):
    """Differences from the quadrature of the documents that lead."""
    order = [WORDS.index(word) for word in model.vocabulary_]
    pairs = zip(means, COUNTS[: len(means), order], strict=True)
    expected = [by_quadrature(model.components_, mean, covariance, x) for mean, x in pairs]
    return found.values - expected


@pytest.fixture(scope="module")
def theirs():
    rdata = pytest.importorskip("rdata")
    if not STM.exists():
        pytest.skip(f"needs the fit of R's stm in {STM}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return dict(rdata.read_rda(STM / "gadarianFit.RData"))


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_fit_of_r_is_scored_as_its_integral(theirs):
    fit = theirs["gadarianFit"]
    model = pb.interop.from_stm(STM / "gadarianFit.RData")
    assert model.components_.shape == (3, 215)
    assert model.vocabulary_.tolist() == [str(word) for word in fit["vocab"]]
    assert model.covariate_names[0] == "(Intercept)"
    design = np.asarray(fit["settings"]["covariates"]["X"])[[0, 7, 20]]
    topics = np.exp(np.asarray(fit["beta"]["logbeta"][0]))
    draws = np.random.default_rng(1)
    counts = np.array([draws.multinomial(15, topics[k]) for k in range(3)])
    found = pb.log_likelihood(model, counts, covariates=design)
    means = np.asarray(fit["mu"]["mu"]).T[[0, 7, 20]]
    expected = [
        by_quadrature(topics / topics.sum(axis=1, keepdims=True), mean, fit["sigma"], row)
        for mean, row in zip(means, counts, strict=True)
    ]
    np.testing.assert_allclose(found.values, expected, atol=1e-7)
    assert set(found.methods.tolist()) == {"exact"}
    survey = dict(zip(("treatment", "pid_rep"), design.T[1:3], strict=True))
    read = pb.read_model(STM / "gadarianFit.RData")
    by_names = pb.log_likelihood(read, counts, covariates=survey)
    np.testing.assert_array_equal(by_names.values, found.values)
    same = pb.interop.from_stm(theirs, name="gadarianFit")
    np.testing.assert_array_equal(same.components_, model.components_)


def test_topics_of_a_level_of_the_content_covariate():
    right = pb.interop.from_stm(BY_SIDE, level="right")
    np.testing.assert_allclose(right.components_, np.exp(TABLES[1]))


def test_splines_of_stm_get_their_knots_from_the_training_covariates(tmp_path):
    pytest.importorskip("formulaic")
    day = np.array([3, 17, 1, 90, 44, 44, 60, 8, 75, 31, 22, 50])
    frame = pd.DataFrame({"day": day, "party": ["D", "R"] * 6})
    # model.matrix(~ party + s(day, df = 4)) of R 4.2, the first and the fifth row.
    splines = [
        [0.15194188886496801, 0.0035712010579988739, 2.7670506525916023e-05, 0.0],
        [0.23406376058818937, 0.4936661550956283895, 0.27037223311220882, 0.0018978512039736534],
    ]
    basis = BSpline.design_matrix(day.astype(float), [*[1.0] * 4, 37.5, *[90.0] * 4], 3)
    design = np.column_stack([np.ones(12), frame["party"] == "R", basis.toarray()[:, 1:]])
    np.testing.assert_allclose(design[[0, 4], 2:], splines, atol=1e-15)
    names = ["(Intercept)", "partyR", *(f"s(day, df = 4){place}" for place in range(1, 5))]
    fit = {
        "mu": {"gamma": np.arange(6.0)[:, np.newaxis] / 4},
        "sigma": np.ones((1, 1)),
        "beta": {"logbeta": [np.log([[0.9, 0.1], [0.2, 0.8]])]},
        "vocab": np.array(["a", "b"]),
        "settings": {"covariates": {"X": pd.DataFrame(design, columns=names), "yvarlevels": None}},
    }
    pb.interop.from_stm(fit, covariates=frame).save(tmp_path / "stm.safetensors")
    model, counts = pb.load(tmp_path / "stm.safetensors"), np.array([[3, 1], [1, 2], [0, 4]])
    found = pb.log_likelihood(model, counts, covariates=frame.iloc[[0, 4, 5]])
    by_rows = pb.log_likelihood(pb.interop.from_stm(fit), counts, covariates=design[[0, 4, 5]])
    np.testing.assert_allclose(found.values, by_rows.values, rtol=1e-9)
    party = {"party": ["D", "D", "R"]}
    for given, message in (
        (party | {"day": [1, 2, 91]}, "beyond upper and/or lower bounds"),
        (party, "no column 'day'.* a spline of it"),
    ):
        with pytest.raises(errors.InvalidArgumentError, match=message):
            pb.log_likelihood(model, counts, covariates=given)
    with pytest.raises(errors.InvalidArgumentError, match="from_stm the covariates= of its train"):
        pb.log_likelihood(pb.interop.from_stm(fit), counts, covariates=frame[:3])
    with pytest.raises(errors.InvalidArgumentError, match="of its training documents, in their"):
        pb.interop.from_stm(fit, covariates=frame[::-1])


class StructuralTopicModel:
    """What a fitted model of structural-topic-model 1.0 holds."""

    content_levels_ = aspect_components_ = gamma_ = None
    components_ = np.array([[0.7, 0.2, 0.1], [0.1, 0.1, 0.8]])
    mu_, sigma_ = np.array([0.3]), np.array([[0.5]])


def test_models_of_pythons_structural_topic_model(monkeypatch):
    monkeypatch.setattr(StructuralTopicModel, "__module__", "stm.stm")
    theirs, counts = StructuralTopicModel(), np.array([[4, 0, 2]])
    (found,) = pb.log_likelihood(theirs, counts).values
    expected = by_quadrature(theirs.components_, [0.3], [[0.5]], counts[0])
    assert found == pytest.approx(expected, abs=1e-7)
    theirs.gamma_ = np.array([[0.3], [-1.0]])
    (found,) = pb.log_likelihood(theirs, counts, covariates=[[1.0, 2.0]]).values
    expected = by_quadrature(theirs.components_, [-1.7], [[0.5]], counts[0])
    assert found == pytest.approx(expected, abs=1e-7)
    theirs.content_levels_ = np.array([1, 2])
    theirs.aspect_components_ = np.stack([theirs.components_, theirs.components_[::-1]])
    model = pb.interop.from_stm(theirs, level=2, vocabulary=["a", "b", "c"])
    np.testing.assert_allclose(model.components_, theirs.components_[::-1])
    assert model.vocabulary_.tolist() == ["a", "b", "c"]
    with pytest.raises(errors.InvalidArgumentError, match="must be one of 1, 2"):
        pb.log_likelihood(theirs, counts)


def test_correlated_and_dynamic_topics_of_tomotopy():
    theirs = of_tomotopy("CTModel", TEXTS, k=3)
    model = pb.interop.from_tomotopy(theirs)
    found = pb.log_likelihood(theirs, pb.Corpus(COUNTS[:3], vocabulary=WORDS), random_state=0)
    off = gaps(found, model, [theirs.prior_mean] * 3, theirs.prior_cov)
    assert (np.abs(off) < 4 * found.std_errors + 1e-6).all()

    slices = {"k": 2, "t": 2, "eta_var": 0.5}
    dynamic = of_tomotopy("DTModel", TEXTS, lambda number: {"timepoint": number % 2}, **slices)
    with pytest.raises(errors.InvalidArgumentError, match="give timepoint, and eta_variance"):
        pb.interop.from_tomotopy(dynamic)
    model = pb.interop.from_tomotopy(dynamic, timepoint=1, eta_variance=0.5)
    order = [WORDS.index(word) for word in model.vocabulary_]
    found = pb.log_likelihood(model, pb.Corpus(COUNTS[1:2], vocabulary=WORDS))
    topics = np.array([dynamic.get_topic_word_dist(k, timepoint=1) for k in range(2)])
    topics = topics.astype(float) / topics.sum(axis=1, keepdims=True)
    expected = by_quadrature(topics, dynamic.get_alpha(1), 0.5 * np.eye(2), COUNTS[1, order])
    assert found.values[0] == pytest.approx(expected, abs=1e-6)


def test_a_regression_of_tomotopy_with_the_metadata_of_every_document():
    levels = ["left" if number % 3 else "right" for number in range(80)]
    theirs = of_tomotopy("DMRModel", TEXTS, lambda number: {"metadata": levels[number]}, k=3)
    together = pb.interop.from_tomotopy(theirs, metadata=levels[:9])
    corpus = pb.Corpus(COUNTS[:9], vocabulary=WORDS)
    found = pb.log_likelihood(together, corpus, "exact", budget=1e10)
    for number, level in enumerate(levels[:9]):
        one = pb.interop.from_tomotopy(theirs, metadata=level)
        alone = pb.log_likelihood(one, corpus[[number]], "exact", budget=1e10)
        assert found.values[number] == pytest.approx(alone.total, abs=1e-9)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_correlated_and_structural_topics_and_mixtures_of_topica():
    topica = pytest.importorskip("topica")
    theirs = topica.CTM(3, seed=1)
    theirs.fit(TEXTS)
    model = pb.interop.from_topica(theirs)
    corpus = pb.Corpus(COUNTS[:3], vocabulary=WORDS)
    found = pb.log_likelihood(theirs, corpus)
    mean = np.asarray(theirs.eta_mean).mean(axis=0)
    off = gaps(found, model, [mean] * 3, theirs.topic_covariance)
    np.testing.assert_allclose(off, 0, atol=1e-6)

    structural = topica.STM(3, seed=1)
    x = np.arange(80) % 2
    structural.fit(TEXTS, prevalence=x[:, np.newaxis].astype(float))
    model = pb.interop.from_topica(structural)
    design = np.column_stack([np.ones(3), x[:3]])
    found = pb.log_likelihood(model, corpus, covariates=design)
    means = design @ np.asarray(structural.prevalence_effects)
    off = gaps(found, model, means, structural.topic_covariance)
    np.testing.assert_allclose(off, 0, atol=1e-6)

    mixture = topica.GSDMM(4, seed=1)
    mixture.fit(TEXTS)
    order = [WORDS.index(word) for word in mixture.vocabulary]
    with pytest.raises(errors.InvalidArgumentError, match="documents must be given"):
        pb.interop.from_topica(mixture)
    model = pb.interop.from_topica(mixture, documents=COUNTS[:, order])
    named = pb.interop.from_topica(mixture, documents=pb.Corpus(COUNTS, WORDS))
    np.testing.assert_array_equal(named.word_prior_, model.word_prior_)
    found = pb.log_likelihood(model, COUNTS[:2, order])
    clusters, beta = np.asarray(mixture.doc_cluster), mixture.settings["beta"]
    rows = beta + np.array([COUNTS[clusters == j][:, order].sum(axis=0) for j in range(4)])
    weights = mixture.settings["alpha"] + np.bincount(clusters, minlength=4)
    for value, counts in zip(found.values, COUNTS[:2, order], strict=True):
        terms = gammaln(rows + counts).sum(axis=1) - gammaln(rows).sum(axis=1)
        terms -= gammaln(rows.sum(axis=1) + counts.sum()) - gammaln(rows.sum(axis=1))
        assert value == pytest.approx(logsumexp(np.log(weights / weights.sum()) + terms))
