"""Models of other packages against likelihoods by hand from what the packages publish."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.decomposition import NMF, LatentDirichletAllocation
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

import polyabayes as pb
from helpers.foreign_models import of_gensim, of_tomotopy, trained
from helpers.processes import python
from helpers.refusals import assert_refused
from helpers.small_models import known_lda, ln_lda
from polyabayes.exceptions import InvalidArgumentError, InvalidTypeError, PriorWarning

tomotopy = pytest.importorskip("tomotopy")
corpora = pytest.importorskip("gensim.corpora")
gensim_models = pytest.importorskip("gensim.models")

THEMES = (("urn", "ball", "draw"), ("gene", "cell", "rate"), ("sum", "law", "ball"))
SHORT = [["urn", "ball", "gene"], ["cell", "rate"], ["law", "law", "sum", "ball"]]


def drawn():
    rng = np.random.default_rng(0)
    themes = np.where(rng.random((60, 12)) < 0.2, rng.integers(3, size=(60, 12)), np.c_[:60] % 3)
    return [[THEMES[theme][rng.integers(3)] for theme in document] for document in themes]


TEXTS = drawn()
KEYWORDS = {"a": ["urn"], "b": ["gene"]}


def counted(tokens, vocabulary):
    return pb.Corpus([[text.count(word) for word in vocabulary] for text in tokens], vocabulary)


def assert_scores(model, alpha, phi, vocabulary):
    """A foreign model scores short documents as sums over all topics, its words in any order."""
    shuffled = sorted(vocabulary, reverse=True)
    found = pb.log_likelihood(model, counted(SHORT, shuffled)).values
    alpha = np.broadcast_to(np.asarray(alpha, dtype=np.float64), (len(phi),))
    wanted = [ln_lda([text.count(word) for word in vocabulary], alpha, phi) for text in SHORT]
    np.testing.assert_allclose(found, wanted, rtol=1e-10)


def test_a_fresh_process_scores_a_foreign_model_before_it_asks_for_anything_else():
    """The rooms of the package are loaded when they are asked for; a model of others asks, too."""
    code = (
        "from sklearn.decomposition import LatentDirichletAllocation\n"
        "import polyabayes as pb\n"
        "theirs = LatentDirichletAllocation(2, random_state=0).fit([[1, 2], [3, 0]])\n"
        "print(pb.log_likelihood(theirs, [[1, 2]]).methods[0])\n"
    )
    done = python("-c", code)
    assert done.stdout == "exact\n", done.stderr


@pytest.fixture(scope="module")
def pipeline():
    steps = CountVectorizer(), LatentDirichletAllocation(3, random_state=0)
    return make_pipeline(*steps).fit([" ".join(text) for text in TEXTS])


def test_sklearn_lda_is_scored_by_its_posterior_mean(pipeline):
    vectoriser, lda = (step for _, step in pipeline.steps)
    phi = lda.components_ / lda.components_.sum(axis=1, keepdims=True)
    words = vectoriser.get_feature_names_out()
    ours = pb.interop.from_sklearn(lda, vectoriser)
    assert_scores(ours, lda.doc_topic_prior_, phi, words)
    documents = counted(SHORT, words)
    bare = pb.log_likelihood(lda, documents.counts)
    np.testing.assert_array_equal(bare.values, pb.log_likelihood(ours, documents).values)


def test_a_pipeline_reads_raw_documents_and_counts(pipeline):
    raw = [" ".join(text) for text in SHORT]
    words = pipeline[:-1].get_feature_names_out()
    of_text = pb.log_likelihood(pipeline, raw)
    of_counts = pb.log_likelihood(pipeline, counted(SHORT, sorted(words, reverse=True)))
    np.testing.assert_allclose(of_text.values, of_counts.values, rtol=1e-12)
    table = pb.compare({"pipeline": pipeline, "ours": pb.interop.from_sklearn(pipeline)}, raw)
    assert table.difference("pipeline", "ours") == (0.0, 0.0)


def test_nmf_needs_a_law_of_its_weights():
    words = sorted({word for text in TEXTS for word in text})
    counts = counted(TEXTS, words)
    options = {"beta_loss": "kullback-leibler", "solver": "mu", "init": "random", "max_iter": 400}
    kl = NMF(2, random_state=0, **options).fit(counts.counts)
    assert_refused(InvalidArgumentError, "documents=X", pb.log_likelihood, kl, counts)
    search = GridSearchCV(LatentDirichletAllocation(), {}, cv=2).fit(counts.counts)
    assert_refused(InvalidTypeError, r"model\.best_estimator_", pb.log_likelihood, search, counts)
    given = pb.interop.from_sklearn(kl, words, shape=1.0, probability=0.5)
    np.testing.assert_array_equal(given.components_, kl.components_)
    with pytest.warns(PriorWarning, match="moments"):
        fitted = pb.interop.from_sklearn(kl, words, documents=counted(TEXTS, words[::-1]))
    weights = kl.transform(counts.counts)
    scale = fitted.probability_ / (1 - fitted.probability_)
    np.testing.assert_allclose(fitted.shape_ * scale, weights.mean(axis=0))
    np.testing.assert_allclose(fitted.shape_ * scale**2, weights.var(axis=0))
    squares = NMF(2, random_state=0).fit(counts.counts)
    assert_refused(InvalidArgumentError, "'frobenius'", pb.log_likelihood, squares, counts)


def test_a_model_goes_to_sklearn_and_back(pipeline):
    ours = pb.interop.from_sklearn(pipeline)
    theirs = pb.interop.to_sklearn(ours)
    again = pb.interop.from_sklearn(theirs)
    np.testing.assert_allclose(again.components_, ours.components_, rtol=1e-12)
    assert again.vocabulary_.tolist() == ours.vocabulary_.tolist()
    uneven = known_lda([0.1, 0.2], [[0.5, 0.5], [0.1, 0.9]])
    assert_refused(InvalidArgumentError, "one prior for all topics", pb.interop.to_sklearn, uneven)


@pytest.fixture(scope="module")
def gensim_lda():
    options = {"alpha": "asymmetric", "eta": 0.3, "passes": 5, "random_state": 1}
    return of_gensim(TEXTS, num_topics=3, **options)[0]


def test_gensim_lda_is_scored_in_double_precision(gensim_lda):
    lam = gensim_lda.state.get_lambda().astype(np.float64)
    words = [gensim_lda.id2word[column] for column in range(lam.shape[1])]
    assert_scores(gensim_lda, gensim_lda.alpha, lam / lam.sum(axis=1, keepdims=True), words)


def test_gensim_goes_and_comes_back(gensim_lda):
    ours = pb.interop.from_gensim(gensim_lda)
    theirs = pb.interop.to_gensim(ours)
    np.testing.assert_allclose(theirs.get_topics(), gensim_lda.get_topics(), rtol=1e-5)
    assert theirs.show_topic(0, 3)[0][0] == gensim_lda.show_topic(0, 3)[0][0]


def test_gensim_ids_may_have_gaps_and_no_words():
    lda = gensim_models.LdaModel([[(0, 2), (3, 1)], [(3, 2)]], 2)
    lda.id2word = {0: "urn", 3: "ball"}
    assert pb.interop.from_gensim(lda).vocabulary_.tolist() == ["urn", "#1", "#2", "ball"]
    assert pb.interop.from_gensim(gensim_models.LdaModel([[(0, 2)]], 2)).vocabulary_ is None


def test_hdp_of_gensim_becomes_its_lda():
    dictionary = corpora.Dictionary(TEXTS)
    bags = [dictionary.doc2bow(text) for text in TEXTS]
    hdp = gensim_models.HdpModel(bags, dictionary, T=4, random_state=0)
    alpha, topics = hdp.hdp_to_lda()
    words = [dictionary[column] for column in range(len(dictionary))]
    assert_scores(hdp, alpha, topics / topics.sum(axis=1, keepdims=True), words)
    # The state of their own conversion is random: it was never told the topics.
    theirs = hdp.suggested_lda_model()
    assert_refused(pb.exceptions.NotFittedError, "HdpModel", pb.interop.from_gensim, theirs)


def test_tomotopy_is_scored_by_its_own_topics():
    model = of_tomotopy("LDAModel", TEXTS, k=3)
    phi = np.array([model.get_topic_word_dist(k) for k in range(3)], dtype=np.float64)
    phi /= phi.sum(axis=1, keepdims=True)
    ours = pb.interop.from_tomotopy(model)
    np.testing.assert_allclose(ours.components_, phi, rtol=1e-5)
    assert_scores(model, model.alpha.astype(np.float64), ours.components_, list(model.used_vocabs))


def test_tomotopy_priors_of_words_count():
    model = tomotopy.LDAModel(k=3, seed=1)
    for text in TEXTS:
        model.add_doc(text)
    model.set_word_prior("urn", [5.0, 0.1, 0.1])
    trained(model)
    urn = list(model.used_vocabs).index("urn")
    wanted = topics_by_counts(model, {urn: [5.0, 0.1, 0.1]})
    found = pb.interop.from_tomotopy(model).components_
    np.testing.assert_allclose(found, wanted, rtol=1e-6)
    # Their own distribution leaves the prior of the word out.
    assert abs(model.get_topic_word_dist(0) - wanted[0])[urn] > 1e-3


def test_tomotopy_words_are_those_that_pruning_left():
    model = of_tomotopy("LDAModel", [*TEXTS, ["hapax", "urn"]], k=3, min_cf=2, rm_top=1)
    ours = pb.interop.from_tomotopy(model)
    assert ours.vocabulary_.tolist() == list(model.used_vocabs)
    assert len(ours.vocabulary_) == len(model.vocabs) - 2


def topics_by_counts(model, own_priors=()):
    """Topics from those that tomotopy publishes for its tokens; some words have own priors."""
    counts = np.full((model.k, len(model.used_vocabs)), float(model.eta))
    for word, prior in dict(own_priors).items():
        counts[:, word] = prior
    for document in model.docs:
        np.add.at(counts, (np.asarray(document.topics, int), np.asarray(document.words, int)), 1)
    return counts / counts.sum(axis=1, keepdims=True)


def test_tomotopy_models_by_metadata_have_the_prior_of_each_value():
    sides = [{"metadata": "ab"[number % 2]} for number in range(len(TEXTS))]
    model = of_tomotopy("DMRModel", TEXTS, sides.__getitem__, k=3, sigma=1.0)
    lambdas = np.asarray(model.lambdas, dtype=np.float64)
    for column, value in enumerate(model.metadata_dict):
        alpha = np.exp(lambdas[:, column]) + model.alpha_epsilon
        ours = pb.interop.from_tomotopy(model, metadata=value)
        np.testing.assert_allclose(ours.doc_topic_prior_, alpha, rtol=1e-5)
        assert_scores(ours, ours.doc_topic_prior_, topics_by_counts(model), model.used_vocabs)
    for bad in ({}, {"metadata": "c"}, {"metadata": "a", "multi_metadata": ["d"]}):
        assert_refused(InvalidArgumentError, "metadata", pb.interop.from_tomotopy, model, **bad)
    with pytest.raises(InvalidArgumentError, match=r"one of 'a', 'b'.*the value of each document"):
        pb.log_likelihood(model, [[1] * 8])


def test_tomotopy_models_by_numbers_have_the_prior_of_the_legendre_polynomials():
    model = of_tomotopy(
        "GDMRModel", TEXTS, lambda number: {"numeric_metadata": [number / 59]}, k=3, degrees=[2]
    )
    x = 2 * 0.25 - 1
    polynomials = np.array([1.0, x, (3 * x**2 - 1) / 2])
    alpha = np.exp(np.asarray(model.lambdas, dtype=np.float64) @ polynomials)
    ours = pb.interop.from_tomotopy(model, numeric_metadata=[0.25])
    np.testing.assert_allclose(ours.doc_topic_prior_, alpha, rtol=1e-5)
    assert_scores(ours, ours.doc_topic_prior_, topics_by_counts(model), model.used_vocabs)
    each = pb.interop.from_tomotopy(model, numeric_metadata=[[0.25], [0.75], [0.25]])
    assert each.prior_.shape == (3, 3)
    np.testing.assert_allclose(each.prior_[[0, 2]], [ours.doc_topic_prior_] * 2)
    other = pb.interop.from_tomotopy(model, numeric_metadata=[0.75])
    np.testing.assert_allclose(each.prior_[1], other.doc_topic_prior_)
    for bad in ((), [0.1, 0.2], [np.nan], "x", [[0.1, 0.2]], [[0.1], [np.nan]]):
        with pytest.raises((InvalidArgumentError, InvalidTypeError), match="numeric_metadata"):
            pb.interop.from_tomotopy(model, numeric_metadata=bad)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize(
    ("kind", "options"),
    [("LLDAModel", {}), ("PLDAModel", {"latent_topics": 1, "topics_per_label": 2})],
)
def test_tomotopy_models_of_labels_have_the_topics_of_the_labels(kind, options):
    model = of_tomotopy(kind, TEXTS, lambda number: {"labels": ["xyz"[number % 3]]}, **options)
    alpha, phi = np.asarray(model.alpha, dtype=np.float64), topics_by_counts(model)
    width = options.get("topics_per_label", 1)
    latent = list(range(3 * width, model.k))
    kept = [*range(2 * width, 3 * width), *range(width), *latent]
    ours = pb.interop.from_tomotopy(model, labels=["z", "x"])
    assert_scores(ours, alpha[kept], phi[kept], model.used_vocabs)
    every = pb.interop.from_tomotopy(model)
    np.testing.assert_allclose(every.components_, phi, rtol=1e-6)
    for bad in (["w"], [], "x"):
        with pytest.raises((InvalidArgumentError, InvalidTypeError), match="labels must be"):
            pb.interop.from_tomotopy(model, labels=bad)


def test_tomotopy_hdp_is_cut_off_and_says_so():
    model = of_tomotopy("HDPModel", TEXTS, initial_k=2)
    lda, _ = model.convert_to_lda()
    with pytest.warns(PriorWarning, match=f"{lda.k} live topics"):
        ours = pb.interop.from_tomotopy(model)
    np.testing.assert_allclose(ours.doc_topic_prior_, lda.alpha, rtol=1e-6)
    wanted = np.array([lda.get_topic_word_dist(k) for k in range(lda.k)])
    np.testing.assert_allclose(ours.components_, wanted, rtol=1e-4)
    with pytest.warns(pb.exceptions.PolyabayesWarning, match="convert_to_lda"):
        pb.interop.from_tomotopy(lda)


def test_tomotopy_supervised_models_score_their_words():
    model = of_tomotopy("SLDAModel", TEXTS, lambda number: {"y": [number % 3]}, k=3, vars=["l"])
    alpha = np.asarray(model.alpha, dtype=np.float64)
    assert_scores(model, alpha, topics_by_counts(model), model.used_vocabs)


def of_topica(kind, *arguments, options=None, **fit):
    module = pytest.importorskip("topica")
    model = getattr(module, kind)(*arguments, seed=1)
    model.fit(TEXTS, **{"iters": 100, **fit, **(options or {})})
    return model


def rows(matrix):
    return np.asarray(matrix) / np.asarray(matrix).sum(axis=1, keepdims=True)


def test_topica_models_of_one_prior_are_scored_as_they_are():
    for model in (
        of_topica("LDA", 3),
        of_topica("OnlineLDA", 3),
        of_topica("SeededLDA", KEYWORDS),
        of_topica("SupervisedLDA", 3, y=[float(d % 2) for d in range(60)], iters=5),
        of_topica("KeyATM", KEYWORDS),
    ):
        assert_scores(model, model.alpha, rows(model.topic_word), model.vocabulary)


def test_topica_models_with_covariates_have_the_prior_of_each_value():
    covariates = np.arange(60)[:, None] % 2.0
    module = pytest.importorskip("topica")
    dmr = module.DMR(3, seed=1, optimize_interval=10, burn_in=20)
    dmr.fit(TEXTS, covariates, iters=100)
    key = module.KeyATM(KEYWORDS, seed=1)
    key.fit(TEXTS, covariates=covariates, iters=100, optimize_interval=10, burn_in=20)
    for model, epsilon in ((dmr, 1e-10), (key, 0.0)):
        effects = np.asarray(model.feature_effects)
        assert np.ptp(effects[:, 1]) > 0.01
        for value in (0.0, 1.0):
            alpha = np.exp(effects[:, 0] + value * effects[:, 1]) + epsilon
            ours = pb.interop.from_topica(model, covariates=[value])
            assert_scores(ours, alpha, rows(model.topic_word), model.vocabulary)
        each = pb.interop.from_topica(model, covariates=[[1.0], [0.0]])
        both = np.exp(effects[:, 0] + [[1.0], [0.0]] * effects[:, 1]) + epsilon
        np.testing.assert_allclose(each.prior_, both, rtol=1e-12)
        for bad in (None, [], [1.0, 2.0], [np.nan], [[1.0, 2.0]], [[np.nan]]):
            with pytest.raises(InvalidArgumentError, match="must be 1 finite numbers"):
                pb.interop.from_topica(model, covariates=bad)
        assert_refused(InvalidArgumentError, "a row of them", pb.log_likelihood, model, [[1] * 8])


def keyatm(values, priors=None):
    """What pykeyatm 0.1.1 returns, as far as it is read."""
    topics = pd.DataFrame([[0.7, 0.2, 0.1], [0.1, 0.1, 0.8]], columns=["tax", "war", "aid"])
    return {"phi": topics, "priors": priors or {}, "values_iter": values}


def test_fits_of_pykeyatm_have_the_prior_of_their_last_iteration():
    long = [(s, i, k, 10 * i + s + k / 10) for s in (1, 2) for i in (1, 5) for k in (2, 1)]
    drawn = pd.DataFrame(long, columns=["State", "Iteration", "Topic", "alpha"])
    base = drawn[drawn["State"] == 1].drop(columns="State")
    slopes = {"Lambda_iter": [np.zeros((2, 2)), np.array([[0.1, 1.0], [-0.2, 0.5]])]}
    dynamic = {"alpha_iter": drawn, "R_iter_last": [1, 2, 2]}
    for fit, covariates, alpha in (
        (keyatm({}, {"alpha": [0.5, 2.0]}), None, [0.5, 2.0]),
        (keyatm({"alpha_iter": base}), None, [51.1, 51.2]),
        (keyatm(slopes), [1.0, 2.0], np.exp([2.1, 0.8])),
        (keyatm(dynamic), 3, [52.1, 52.2]),
    ):
        ours = pb.interop.from_pykeyatm(fit, covariates=covariates)
        np.testing.assert_allclose(ours.doc_topic_prior_, alpha, rtol=1e-12)
        np.testing.assert_array_equal(ours.components_, keyatm({})["phi"])
        assert ours.vocabulary_.tolist() == ["tax", "war", "aid"]
    each = pb.interop.from_pykeyatm(keyatm(dynamic), covariates=[2, 1])
    assert each.prior_.tolist() == [[52.1, 52.2], [51.1, 51.2]]


def test_topica_models_of_labels_have_the_topics_of_the_labels():
    labels = [["xyz"[number % 3]] for number in range(60)]
    model = of_topica("LabeledLDA", options={"labels": labels})
    ours = pb.interop.from_topica(model, labels=["z", "x"])
    kept = [list(model.labels).index(label) for label in ("z", "x")]
    alpha, topics = np.asarray(model.alpha)[kept], rows(model.topic_word)[kept]
    assert_scores(ours, alpha, topics, model.vocabulary)
    told = "labels must be some of 'x', 'y', 'z'"
    assert_refused(InvalidArgumentError, told, pb.interop.from_topica, model, labels=["w"])


def cistopic(package, **changes):
    stored = {"package": package, "n_topics": 2, "alpha": 50.0, "alpha_by_topic": True, "eta": 0.1}
    parameters = pd.DataFrame({"Parameter": {**stored, **changes}})
    topics = pd.DataFrame([[0.75, 0.0], [0.25, 0.5], [0.0, 0.5]], index=["chr1", "chr2", "chr3"])
    assignments = pd.DataFrame({"Topic": [1, 2], "Assignments": [4, 2]})
    return SimpleNamespace(topic_region=topics, topic_ass=assignments, parameters=parameters)


def test_pycistopic_by_mallet_gets_its_prior_back():
    ours = pb.interop.from_pycistopic(cistopic("Mallet"))
    counts = np.array([[3, 1, 0], [0, 1, 1]]) + 0.1
    np.testing.assert_allclose(ours.components_, counts / counts.sum(axis=1, keepdims=True))
    assert ours.doc_topic_prior_.tolist() == [25.0, 25.0]
    assert np.isfinite(pb.log_likelihood(ours, [[0, 0, 1], [1, 0, 0]]).values).all()


@pytest.mark.parametrize(("by_topic", "alpha"), [(True, 25.0), (False, 50.0)])
def test_pycistopic_by_lda_is_taken_as_it_is(by_topic, alpha):
    ours = pb.interop.from_pycistopic(cistopic("lda", alpha_by_topic=by_topic))
    np.testing.assert_allclose(ours.components_, [[0.75, 0.25, 0], [0, 0.5, 0.5]])
    assert ours.doc_topic_prior_.tolist() == [alpha, alpha]


def test_pycistopic_without_parameters_asks_for_them():
    model = cistopic("Mallet")
    model.parameters = None
    assert_refused(InvalidArgumentError, "topic_word_prior", pb.interop.from_pycistopic, model)
    ours = pb.interop.from_pycistopic(model, doc_topic_prior=0.5, topic_word_prior=0.1)
    assert ours.doc_topic_prior_.tolist() == [0.5, 0.5]
