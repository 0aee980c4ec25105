"""Bounds, divergences, traces, options, sizes and budgets of the estimators."""

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import same_color
from scipy import stats

import polyabayes as pb
from helpers.small_models import known_lda, known_pfa
from polyabayes import exceptions as errors
from polyabayes._support.warnings import quiet
from polyabayes.likelihood.methods import METHODS
from polyabayes.plotting import plot_convergence

TOPICS = np.array([[0.5, 0.3, 0.1, 0.1], [0.1, 0.2, 0.3, 0.4], [0.1, 0.5, 0.1, 0.3]])
LDA = known_lda([0.4, 0.9, 0.2], TOPICS)
PFA = known_pfa([0.7, 1.3, 0.4], [0.6, 0.85, 0.8], TOPICS * [[2], [0.5], [1]])
MODELS = {"lda": LDA, "pfa": PFA}
COUNTS = np.array([[3, 2, 4, 1], [0, 0, 0, 0], [0, 6, 1, 2], [1, 0, 0, 0], [2, 0, 0, 9]])
SAMPLERS = sorted(set(METHODS) - {"auto", "exact", "recursive"})
GROWING = {"direct", "harmonic", "l2r", "mean-field"} | {m for m in METHODS if "right" in m}
PRIOR_START = ("annealed", {"start": "prior"})
VARIANTS = [
    ("mean-field", {"order": 2}),
    ("mean-field", {"n_iterations": 1}),
    ("l2r", {"n_conditional_samples": 4}),
    PRIOR_START,
]
REVERSIBLE = [("annealed", None), PRIOR_START, ("smc", None), ("smc-lookahead", None)]


def bounds_and_exact(name, method, options, **sizes):
    lengths = {"document_length": 12} if name == "lda" else {}
    bounds = pb.bidirectional_bounds(MODELS[name], method, options=options, **sizes, **lengths)
    return bounds, pb.log_likelihood(MODELS[name], bounds.data, "exact").values


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize(("method", "options"), REVERSIBLE)
def test_bounds_bracket_the_exact_values(name, method, options):
    sizes = {"n_documents": 20, "n_samples": 1_000, "n_particles": 1_000, "n_replicates": 40}
    bounds, exact = bounds_and_exact(name, method, options, random_state=0, **sizes)
    assert (bounds.lower - 4 * bounds.lower_std_errors <= exact).all()
    assert (exact <= bounds.upper + 4 * bounds.upper_std_errors).all()
    assert (np.abs(bounds.gap) < 0.5).all()
    np.testing.assert_array_equal(bounds.gap, bounds.upper - bounds.lower)
    expected = np.hypot(bounds.lower_std_errors, bounds.upper_std_errors)
    np.testing.assert_array_equal(bounds.gap_std_errors, expected)
    assert "20 documents" in repr(bounds)


def test_documents_of_bounds():
    lengths = np.array([0, 7, 1, 0, 30])
    options = {"document_length": lengths, "n_particles": 9, "random_state": 0}
    bounds = pb.bidirectional_bounds(LDA, n_documents=5, **options)
    np.testing.assert_array_equal(bounds.data.counts.sum(axis=1).A1, lengths)
    for bound in (bounds.lower, bounds.upper):
        np.testing.assert_array_equal(bound == 0, lengths == 0)
    np.testing.assert_array_equal(bounds.sizes, np.where(lengths > 0, 9, 0))
    assert pb.bidirectional_bounds(LDA, n_documents=2).data.n_tokens == 200


def test_divergence_is_that_of_normalised_probabilities():
    p, q = np.random.default_rng(0).normal(-800, 2, (2, 50))
    expected = stats.entropy(np.exp(p + 800), np.exp(q + 800))
    assert pb.estimator_divergence(p, q) == pytest.approx(expected, rel=1e-10)
    assert pb.estimator_divergence(p, p + 3) == pytest.approx(0, abs=1e-12)
    assert pb.estimator_divergence([0, -np.inf], [0, -1]) == pytest.approx(np.log1p(np.exp(-1)))
    assert pb.estimator_divergence([0, -1], [0, -np.inf]) == np.inf
    exact, smc = (pb.log_likelihood(LDA, COUNTS, m, random_state=0) for m in ("exact", "smc"))
    assert pb.estimator_divergence(exact, exact) == 0
    expected = stats.entropy(np.exp(exact.values), np.exp(smc.values))
    assert pb.estimator_divergence(exact, smc.values) == pytest.approx(expected, rel=1e-6)


@pytest.mark.filterwarnings("ignore::polyabayes.exceptions.UnreliableErrorWarning")
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("method", SAMPLERS)
def test_traces_end_in_the_result(name, method):
    options = {"n_samples": 30, "n_particles": 30, "random_state": 0}
    result = pb.log_likelihood(MODELS[name], COUNTS, method, trace=True, **options)
    n_samples, values, std_errors = result.trace
    assert n_samples.shape == values.shape == std_errors.shape
    np.testing.assert_array_equal(values[:, -1], result.values)
    np.testing.assert_array_equal(std_errors[:, -1], result.std_errors)
    some = COUNTS.any(axis=1)
    assert (np.diff(n_samples[some]) > 0).all()
    assert (n_samples[some][:, [0, -1]] == [16 if method in GROWING else 60, 480]).all()
    if result.is_unbiased:
        exact = pb.log_likelihood(MODELS[name], COUNTS, "exact").values
        deviations = np.abs(values.T - exact).T
        assert (deviations <= 6 * std_errors)[:, values.shape[1] // 2 :].all()
    # The empty document is exact.
    assert (result.values[~some] == values[~some].T).all()
    assert not n_samples[~some].any()
    assert not std_errors[~some].any()
    plain = pb.log_likelihood(MODELS[name], COUNTS, method, **options)
    np.testing.assert_allclose(plain.values, result.values, rtol=1e-12)
    assert plain.trace is None


def test_exact_values_have_no_trace_or_a_flat_one():
    for method in ("exact", "recursive"):
        result = pb.log_likelihood(LDA, COUNTS, method, trace=True)
        assert {table.shape for table in result.trace} == {(len(COUNTS), 0)}
    result = pb.log_likelihood(LDA, COUNTS, trace=True, budget=100, random_state=0)
    exact = result.methods == "exact"
    assert 0 < exact.sum() < len(COUNTS)
    n_samples, values, std_errors = (table[exact] for table in result.trace)
    assert (result.values[exact] == values.T).all()
    assert not n_samples.any()
    assert not std_errors.any()


@pytest.mark.parametrize(
    ("method", "default", "other"),
    [
        ("mean-field", {"order": 1}, {"order": 2}),
        ("mean-field", {"n_iterations": 20}, {"n_iterations": 1}),
        ("l2r", {"n_conditional_samples": None}, {"n_conditional_samples": 4}),
        ("annealed", {"start": "mean-field"}, {"start": "prior"}),
    ],
)
def test_options_change_the_draws_and_not_the_truth(method, default, other):
    model = known_lda(2, TOPICS)
    documents = [[2, 1, 0, 2], [3, 1, 1, 1]]
    plain, same, result = (
        pb.log_likelihood(model, documents, method, options=given, n_samples=500, random_state=0)
        for given in (None, default, other)
    )
    np.testing.assert_array_equal(same.values, plain.values)
    assert (result.values != plain.values).all()
    exact = pb.log_likelihood(model, documents, "exact").values
    assert (np.abs(result.values - exact) < 5 * result.std_errors).all()


@pytest.mark.filterwarnings("ignore::polyabayes.exceptions.UnreliableErrorWarning")
@pytest.mark.parametrize("method", METHODS)
def test_flags_of_the_methods(method):
    result = pb.log_likelihood(LDA, COUNTS[:1], method, n_replicates=2)
    inconsistent = {"left-to-right-particle", "recursive"}
    biased = inconsistent | {"harmonic", "left-to-right-sequential"}
    assert result.is_unbiased == (method not in biased)
    assert result.is_consistent == (method not in inconsistent)
    used = "exact" if method == "auto" else method
    assert result.cost == {used: METHODS[used].cost}
    assert "N" in METHODS[used].cost or method == "direct"
    assert result.reached.all()


@pytest.mark.filterwarnings("ignore::polyabayes.exceptions.UnreliableErrorWarning")
@pytest.mark.parametrize("method", SAMPLERS)
def test_targets_are_reached_within_the_budget_or_not(method):
    options = {"n_samples": 20, "n_particles": 2, "random_state": 0}
    with quiet(pb.exceptions.TargetWarning):
        near = pb.log_likelihood(LDA, COUNTS, method, target_std_error=0.3, **options)
    n_missed = int(COUNTS.any(axis=1).sum())
    with pytest.warns(pb.exceptions.TargetWarning, match=f"above target_std_error: {n_missed},"):
        far = pb.log_likelihood(LDA, COUNTS, method, target_std_error=1e-9, budget=1e4, **options)
    np.testing.assert_array_equal(near.reached, near.std_errors <= 0.3)
    exact = pb.log_likelihood(LDA, COUNTS, "exact").values
    if near.is_unbiased:
        assert (np.abs(near.values - exact) <= 6 * near.std_errors).all()
    assert near.reached.mean() > 0.7
    assert (near.std_errors < 0.6).all()
    np.testing.assert_array_equal(far.reached, ~COUNTS.any(axis=1))


# Seven samples tell little of their error, and this test asks for none.
@pytest.mark.filterwarnings("ignore::polyabayes.exceptions.UnreliableErrorWarning")
@pytest.mark.parametrize("method", METHODS)
def test_sizes_are_those_asked_for_or_chosen(method):
    some = COUNTS.any(axis=1)
    expected = {"direct": 1_000, "mean-field": 1_000, "harmonic": 200, "chib": 50, "l2r": 10}
    expected |= {m: 10 for m in METHODS if "right" in m}
    sizes = pb.log_likelihood(PFA, COUNTS, method, random_state=0).sizes
    if method in ("smc", "smc-lookahead", "annealed"):
        least = 10 if method == "annealed" else 50
        assert ((sizes[some] >= least) & (sizes[some] <= 5_000)).all()
    else:
        assert (sizes[some] == expected.get(method, 0)).all()
    assert not sizes[~some].any()
    few = {"n_samples": 7, "n_particles": 7, "random_state": 0}
    given = pb.log_likelihood(PFA, COUNTS, method, **few).sizes
    assert (given == np.where(some & (method in SAMPLERS), 7, 0)).all()


def test_auto_anneals_unless_particles_are_asked_for():
    options = {"doc_topic_prior": 0.1, "topic_word_prior": 0.05, "random_state": 0}
    made = pb.datasets.make_lda_corpus(3, 300, 20, document_length=[60, 60, 400], **options)
    model = known_lda(0.1, made.topic_word * 0.9 + 0.1 / 300)
    result = pb.log_likelihood(model, made.corpus, random_state=1)
    assert set(result.methods) == {"annealed"}
    effort = {"n_samples": 2000, "random_state": 2, "n_replicates": 32}
    truth = pb.log_likelihood(model, made.corpus, "annealed", **effort)
    error = np.hypot(result.std_errors, truth.std_errors)
    assert (np.abs(result.values - truth.values) < 4 * error).all()
    filtered = pb.log_likelihood(model, made.corpus, n_particles=10, random_state=1)
    assert set(filtered.methods) == {"smc-lookahead"}
    assert (filtered.sizes == 10).all()


# The work itself would take hours.
LONG = [[1, 0, 0, 0], [40_000, 30_000, 20_000, 10_000]]


@pytest.mark.filterwarnings("ignore::polyabayes.exceptions.UnreliableErrorWarning")
@pytest.mark.parametrize(("method", "options"), [*((m, None) for m in METHODS), *VARIANTS])
def test_single_tokens_and_impossible_topics(method, options):
    topics = np.array([[0.6, 0.4, 0.0, 0.0], [0.0, 0.5, 0.5, 0.0], [0.3, 0.0, 0.7, 0.0]])
    prior = np.array([0.3, 0.5, 0.2])
    lda = known_lda(prior, topics)
    pfa = known_pfa(prior, [0.2, 0.5, 0.8], topics)
    single = pb.log_likelihood(lda, np.eye(4)[:3], method, options=options, random_state=0)
    deviations = np.abs(single.values - np.log(prior @ topics[:, :3]))
    assert (deviations <= 5 * np.nan_to_num(single.std_errors) + 1e-12).all()
    documents = [[3, 1, 4, 0], [0, 2, 0, 0], [12, 0, 9, 0], [1, 0, 0, 0]]
    for model in (lda, pfa):
        result = pb.log_likelihood(model, documents, method, options=options, random_state=0)
        assert np.isfinite(result.values).all()
        with pytest.warns(errors.ImpossibleDocumentWarning):
            none = pb.log_likelihood(model, [[1, 0, 0, 1]], method, options=options)
        assert none.total == -np.inf


def traced(method, **options):
    return pb.log_likelihood(LDA, COUNTS, method, trace=True, random_state=0, **options)


@pytest.mark.parametrize("document", [None, 2])
def test_convergence_draws_traces_bands_and_the_truth(document):
    results = {"filter": traced("smc", n_particles=20), "prior draws": traced("direct")}
    exact = pb.log_likelihood(LDA, COUNTS, "exact")
    axes = plt.figure().add_subplot()
    ax = plot_convergence(results, exact, document, level=0.9, ax=axes)
    assert ax is axes
    *lines, truth = ax.lines
    rows = slice(None) if document is None else [document]
    for line, band, result in zip(lines, ax.collections, results.values(), strict=True):
        trace = result.trace
        n_samples = trace.n_samples[rows]
        x, y = n_samples[n_samples[:, -1] > 0].mean(axis=0), trace.values[rows].sum(axis=0)
        np.testing.assert_allclose(line.get_xdata(), x)
        np.testing.assert_allclose(line.get_ydata(), y)
        half = stats.norm.ppf(0.95) * np.sqrt((trace.std_errors[rows] ** 2).sum(axis=0))
        (path,) = band.get_paths()
        assert path.vertices[:, 1].max() == pytest.approx((y + half).max())
        assert path.vertices[:, 1].min() == pytest.approx((y - half).min())
        assert same_color(band.get_facecolor()[0][:3], line.get_color())
    value = exact.total if document is None else exact.values[document]
    np.testing.assert_array_equal(truth.get_ydata(), value)
    legend = [text.get_text() for text in ax.get_legend().get_texts()]
    assert legend == [*results, "exact"]
    assert ax.get_xscale() == "log"
    assert "90 %" in ax.get_xlabel()
    assert ("all documents" if document is None else "document 2") in ax.get_ylabel()


def test_the_legend_of_one_result_names_the_exact_value_alone():
    ax = plot_convergence(traced("chib"), exact=-12.5)
    assert isinstance(ax, mpl.axes.Axes)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["exact"]
    assert [set(line.get_ydata()) for line in ax.lines[1:]] == [{-12.5}]
    alone = plot_convergence(traced("chib"), ax=plt.figure().add_subplot())
    assert alone.get_legend() is None
    assert len(alone.lines) == 1


def test_bounds_of_logistic_normals_bracket_the_integral():
    covariance = np.array([[1.5, 0.4], [0.4, 0.8]])
    loadings = np.array([[1.0, 0.0, -1.0, 0.3], [0.0, 2.0, 0.5, -0.2], [0.4, 0.4, -1.0, 0.0]])
    normal = pb.DocumentModel.logistic_normal
    for model in (
        normal(TOPICS, [0.3, -0.5], covariance),
        normal(loadings, [0.3, -0.5], covariance, decoder="softmax", bias=[0.1, 0.0, 0.2, 0.0]),
        normal(loadings[:2], [0.3, -0.5], covariance, decoder="softmax", weights="identity"),
    ):
        sizes = {"n_documents": 20, "document_length": 15, "n_samples": 200, "n_replicates": 48}
        bounds = pb.bidirectional_bounds(model, random_state=3, **sizes)
        exact = pb.log_likelihood(model, bounds.data, "exact").values
        assert (np.abs(bounds.lower - exact) <= 4.5 * bounds.lower_std_errors).all()
        assert (np.abs(bounds.upper - exact) <= 4.5 * bounds.upper_std_errors).all()
        assert (np.abs(bounds.gap) < 0.2).all()


def test_bounds_of_dirichlets_of_documents_and_of_several_vocabularies():
    priors = np.array([[1.0, 0.0, 0.5], [0.2, 0.2, 0.2]])
    two = [TOPICS, TOPICS[:, :3] / TOPICS[:, :3].sum(axis=1, keepdims=True)]
    by_covariate = {"coefficients": [[0.5], [-0.5], [0.1]]}
    dirichlet = pb.DocumentModel.dirichlet
    for model, options in (
        (dirichlet(TOPICS, priors), {}),
        (dirichlet(two, np.ones(3)), {}),
        (dirichlet(TOPICS, **by_covariate), {"covariates": [[1.0], [-1.0]]}),
    ):
        bounds = pb.bidirectional_bounds(
            model, n_documents=2, document_length=8, n_samples=300, random_state=1, **options
        )
        exact = pb.log_likelihood(model, bounds.data.counts, "exact", **options).values
        assert (np.abs(bounds.lower - exact) <= 4.5 * bounds.lower_std_errors).all()
        assert (np.abs(bounds.upper - exact) <= 4.5 * bounds.upper_std_errors).all()


@pytest.mark.parametrize("is_dirichlet", [False, True])
def test_bounds_of_mixtures_are_exact_and_their_documents_those_of_the_model(is_dirichlet):
    """Documents of two tokens: each of them is as frequent as its likelihood says."""
    words = np.array([[4.0, 1.0, 0.0], [0.5, 0.5, 2.0]])
    if not is_dirichlet:
        words /= words.sum(axis=1, keepdims=True)
    model = pb.DocumentModel.mixture(words, [0.3, 0.7], is_dirichlet=is_dirichlet)
    bounds = pb.bidirectional_bounds(model, n_documents=20_000, document_length=2, random_state=0)
    exact = pb.log_likelihood(model, bounds.data.counts, "exact").values
    np.testing.assert_array_equal(bounds.lower, exact)
    np.testing.assert_array_equal(bounds.gap, 0.0)
    np.testing.assert_array_equal(bounds.gap_std_errors, 0.0)
    kinds, found = np.unique(bounds.data.counts.toarray(), axis=0, return_counts=True)
    p = np.exp(pb.log_likelihood(model, kinds, event="counts").values)
    assert p.sum() == pytest.approx(1, abs=1e-12)
    np.testing.assert_array_less(np.abs(found - 20_000 * p), 4 * np.sqrt(20_000 * p))
