"""Document models of any prior against values computed by hand."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy.special import gammaln, logsumexp, softmax

import polyabayes as pb
from helpers.quadrature import hermite
from helpers.small_models import known_lda, known_pfa
from polyabayes.cli import main

PHI = np.array([[0.5, 0.2, 0.2, 0.1], [0.1, 0.1, 0.3, 0.5], [0.25, 0.25, 0.4, 0.1]])
DOCUMENTS = np.array([[3, 1, 0, 2], [0, 2, 2, 1], [3, 1, 0, 2], [0, 0, 0, 0]])
PRIORS = np.array([[0.2, 0.5, 1.0], [1.0, 0.0, 0.3], [0.5, 0.5, 0.5], [0.1, 0.1, 0.1]])


def lda(alpha, topics=PHI):
    return known_lda(alpha, topics)


def by_document(documents=DOCUMENTS, priors=PRIORS):
    """One LDA a document, of the topics that its prior has."""
    return [
        pb.log_likelihood(lda(alpha[alpha > 0], PHI[alpha > 0]), [row], "exact").total
        for row, alpha in zip(documents, priors, strict=True)
    ]


@pytest.mark.parametrize("method", ["auto", "exact"])
def test_each_document_may_have_a_dirichlet_of_its_own(method):
    found = pb.log_likelihood(lda(1.0), DOCUMENTS, method, doc_topic_prior=PRIORS)
    assert found.values == pytest.approx(by_document(), abs=1e-11)
    model = pb.DocumentModel.dirichlet(PHI, PRIORS)
    assert pb.log_likelihood(model, DOCUMENTS, method).values == pytest.approx(found.values)


@pytest.mark.parametrize("method", ["annealed", "smc-lookahead", "smc", "left-to-right", "chib"])
def test_samplers_take_priors_of_documents(method):
    sizes = {"n_samples": 60} if method in ("annealed", "chib") else {"n_particles": 100}
    options = {"doc_topic_prior": PRIORS, "random_state": 1} | sizes
    found = pb.log_likelihood(lda(1.0), DOCUMENTS, method, **options)
    off = found.values - by_document()
    assert np.all(np.abs(off) <= 4 * found.std_errors + 1e-12)


def test_gamma_shapes_of_documents():
    def pfa(shape):
        return known_pfa(shape, [0.5, 0.3, 0.6], PHI)

    shapes = np.array([[0.2, 0.5, 1.0], [1.0, 0.7, 0.3], [0.5, 0.5, 0.5], [2.0, 1.0, 1.0]])
    for given_length in (False, True):
        options = {"method": "exact", "given_length": given_length}
        found = pb.log_likelihood(pfa(1.0), DOCUMENTS, shape=shapes, **options)
        alone = [
            pb.log_likelihood(pfa(shape), [row], **options).total
            for row, shape in zip(DOCUMENTS, shapes, strict=True)
        ]
        assert found.values == pytest.approx(alone, abs=1e-11)


def test_regression_on_covariates_is_a_prior_for_each_document():
    coefficients = np.array([[0.1, 1.0], [-0.5, 0.3], [0.2, -1.0]])
    covariates = np.column_stack([np.ones(4), [0.0, 1.0, -1.0, 0.5]])
    model = pb.DocumentModel.dirichlet(PHI, coefficients=coefficients)
    expected = by_document(priors=np.exp(covariates @ coefficients.T))
    found = pb.log_likelihood(model, DOCUMENTS, covariates=covariates)
    assert found.values == pytest.approx(expected, abs=1e-11)
    weights = model.transform(DOCUMENTS, covariates=covariates)
    assert weights.sum(axis=1) == pytest.approx(1.0)


def test_covariates_are_columns_of_the_metadata():
    frame = pd.DataFrame({"other": 1, "x": [0.0, 1.0, -1.0, 0.5], "one": 1.0})
    corpus = pb.Corpus(DOCUMENTS, metadata=frame)
    regression = {"coefficients": np.ones((3, 2)), "covariate_names": ["one", "x"]}
    model = pb.DocumentModel.dirichlet(PHI, **regression)
    expected = pb.log_likelihood(model, DOCUMENTS, covariates=frame[["one", "x"]].to_numpy())
    for same in (frame.to_dict("list"), pa.Table.from_pandas(frame)):
        found = pb.log_likelihood(model, DOCUMENTS, covariates=same)
        np.testing.assert_array_equal(found.values, expected.values)
    assert np.array_equal(pb.log_likelihood(model, corpus).values, expected.values)


def test_mixtures_are_sums_over_their_components():
    weights = np.array([0.5, 0.2, 0.3])
    found = pb.log_likelihood(pb.DocumentModel.mixture(PHI, weights), DOCUMENTS)
    expected = logsumexp(np.log(weights) + DOCUMENTS @ np.log(PHI).T, axis=1)
    assert found.values == pytest.approx(expected)
    assert set(found.methods) == {"exact"}
    parameters = 3 * PHI + 0.1
    model = pb.DocumentModel.mixture(parameters, weights, is_dirichlet=True)

    def dirichlet_multinomial(row, b):
        words = (gammaln(b + row) - gammaln(b)).sum()
        return words + gammaln(b.sum()) - gammaln(b.sum() + row.sum())

    terms = [[dirichlet_multinomial(row, b) for b in parameters] for row in DOCUMENTS]
    expected = logsumexp(np.log(weights) + np.array(terms), axis=1)
    assert pb.log_likelihood(model, DOCUMENTS).values == pytest.approx(expected)
    posterior = np.exp(np.log(weights) + terms - expected[:, None])
    mean, std = model.topic_weights(DOCUMENTS)
    assert mean == pytest.approx(posterior)
    variance = np.einsum("dj,djk->dk", posterior, (np.eye(3) - posterior[:, None]) ** 2)
    assert std == pytest.approx(np.sqrt(variance))
    assert np.array_equal(model.transform(DOCUMENTS), mean)


def test_spread_of_a_sure_component_is_not_lost_to_rounding():
    model = pb.DocumentModel.mixture(np.array([[0.9, 0.1], [0.1, 0.9]]), [1.0, 1.0])
    mean, std = model.topic_weights([[20, 0]])
    assert (mean[0, 0], mean[0, 1]) == (1.0, pytest.approx(9.0**-20))
    assert std[0] == pytest.approx(9.0**-10)


def test_moments_of_logistic_normal_weights_are_those_of_quadrature():
    mean, covariance = np.array([0.3, -0.4]), np.array([[1.0, 0.3], [0.3, 0.5]])
    eta, ln_mass = hermite(mean, covariance, 60)
    theta = softmax(np.column_stack([eta, np.zeros(len(eta))]), axis=1)
    ln_p = DOCUMENTS @ np.log(theta @ PHI).T + ln_mass
    posterior = np.exp(ln_p - logsumexp(ln_p, axis=1, keepdims=True))
    models = (normal(PHI, mean, covariance, random_state=seed) for seed in range(60))
    means, stds = zip(*(model.topic_weights(DOCUMENTS) for model in models), strict=True)
    for values, expected in (
        (np.array(means), posterior @ theta),
        (np.array(stds) ** 2 + np.array(means) ** 2, posterior @ theta**2),
    ):
        std_errors = values.std(axis=0, ddof=1) / np.sqrt(len(values))
        assert (std_errors < 0.01 * expected).all()
        assert (np.abs(values.mean(axis=0) - expected) < 4 * std_errors).all()


def integral(probabilities, mean, covariance, row):
    """Gauss-Hermite quadrature with 80 points an axis."""
    etas, ln_masses = hermite(mean, covariance, 80)
    ln_p = [row @ np.log(probabilities(eta)) for eta in etas]
    return logsumexp(ln_p + ln_masses)


def test_logistic_normals_of_low_rank_are_exact():
    mean, covariance = np.array([0.3, -0.4]), np.array([[1.0, 0.3], [0.3, 0.5]])
    model = pb.DocumentModel.logistic_normal(PHI, mean, covariance)
    found = pb.log_likelihood(model, DOCUMENTS[:2])

    def probabilities(eta):
        return softmax(np.append(eta, 0)) @ PHI

    expected = [integral(probabilities, mean, covariance, row) for row in DOCUMENTS[:2]]
    assert found.values == pytest.approx(expected, abs=1e-9)
    annealed = pb.log_likelihood(model, DOCUMENTS[:2], "annealed", random_state=0)
    assert set(annealed.methods) == {"annealed"}
    assert np.all(np.abs(annealed.values - expected) < 4 * annealed.std_errors)


@pytest.mark.parametrize("weights", ["softmax", "identity"])
def test_softmax_decoders_are_exact_in_two_dimensions(weights):
    loadings, bias = np.array([[1.0, 0.0, -1.0, 0.5], [0.0, 2.0, 0.0, -1.0]]), np.arange(4) / 4
    mean, covariance = np.array([0.3, -0.4]), np.array([[1.0, 0.3], [0.3, 0.5]])
    model = normal(loadings, mean, covariance, decoder="softmax", bias=bias, weights=weights)

    def probabilities(eta):
        x = softmax(eta) if weights == "softmax" else eta
        return softmax(bias + x @ loadings)

    expected = integral(probabilities, mean, covariance, DOCUMENTS[0])
    assert pb.log_likelihood(model, DOCUMENTS[:1]).total == pytest.approx(expected, abs=1e-9)


def test_means_by_document_are_those_of_the_call_or_the_model():
    gamma = np.array([[0.2, -1.0], [0.5, 1.0]])
    design = np.column_stack([np.ones(4), [0.0, 1.0, 0.0, 1.0]])
    covariance = np.eye(2)
    regression = pb.DocumentModel.logistic_normal(PHI, None, covariance, coefficients=gamma)
    given = pb.DocumentModel.logistic_normal(PHI, design @ gamma.T, covariance)
    found = pb.log_likelihood(regression, DOCUMENTS, covariates=design).values
    assert np.array_equal(found, pb.log_likelihood(given, DOCUMENTS).values)
    assert found[0] == pytest.approx(found[2])


@pytest.mark.parametrize(
    "model",
    [
        pb.DocumentModel.dirichlet(PHI, coefficients=np.ones((3, 2)), covariate_names=["a", "b"]),
        pb.DocumentModel.mixture(PHI, [1, 2, 3], is_dirichlet=True, vocabulary=list("abcd")),
        pb.DocumentModel.logistic_normal(PHI, np.zeros(3), np.eye(3)),
        pb.DocumentModel.logistic_normal(PHI - 0.3, [0.0] * 3, np.eye(3), decoder="softmax"),
    ],
    ids=["dirichlet", "mixture", "logistic-normal", "softmax"],
)
def test_every_way_to_score_gives_the_same_bits(model, tmp_path):
    rng = np.random.default_rng(1)
    documents = pb.Corpus(rng.poisson(3.0, (12, 4)), list("abcd"))
    has_covariates = hasattr(model, "coefficients_")
    rows = {"covariates": rng.normal(size=(12, 2))} if has_covariates else {}
    options = {"random_state": 3, "n_samples": 20} if "normal" in model.prior else {}
    expected = pb.log_likelihood(model, documents, n_jobs=1, **options, **rows).values
    shards = pb.write_shards(documents, tmp_path, n_shards=3)
    same = [pb.log_likelihood(model, documents, n_jobs=2, **options, **rows)]
    same.append(pb.log_likelihood(model, shards, **options, **rows))
    with ThreadPoolExecutor(2) as executor:
        same.append(pb.log_likelihood(model, documents, executor=executor, **options, **rows))
    for result in same:
        assert np.array_equal(result.values, expected)
    weights = model.topic_weights(documents, **rows)
    assert (weights.std > 0).all()
    order = rng.permutation(12)
    moved = {name: values[order] for name, values in rows.items()}
    found = pb.log_likelihood(model, documents[order], **options, **moved)
    assert np.array_equal(found.values, expected[order])
    assert np.array_equal(model.transform(documents[order], **moved), weights.mean[order])
    described = documents
    if has_covariates:
        described = documents.with_metadata(dict(zip("ab", rows["covariates"].T, strict=True)))
    model.save(tmp_path / "model.safetensors")
    pb.write_corpus(described, tmp_path / "documents.npz")
    flags = {"random_state": "--random-state", "n_samples": "--n-samples"}
    given = [text for name, value in options.items() for text in (flags[name], str(value))]
    paths = [str(tmp_path / name) for name in ("model.safetensors", "documents.npz")]
    assert main(["score", *paths, *given, "-o", str(tmp_path / "scores.csv")]) == 0
    scores = pd.read_csv(tmp_path / "scores.csv")["log_likelihood"]
    assert scores.to_numpy() == pytest.approx(expected, rel=1e-12)


def test_models_are_compared_at_covariates_of_their_own():
    design = np.column_stack([np.ones(4), [1.0, -1.0, 0.5, 2.0]])
    dmr = pb.DocumentModel.dirichlet(PHI, coefficients=[[0.0, 1.5], [0.0, -1.5], [0.1, 0.0]])
    stm = pb.DocumentModel.logistic_normal(PHI, coefficients=[[0.3], [0.1]], covariance=np.eye(2))
    models = {"lda": lda(1.0), "dmr": dmr, "stm": stm}
    rows = {"dmr": design, "stm": design[:, :1]}
    found = pb.compare(models, DOCUMENTS, covariates=rows, random_state=0)
    for name, model in models.items():
        alone = pb.log_likelihood(model, DOCUMENTS, covariates=rows.get(name), random_state=0)
        np.testing.assert_array_equal(found.results[name].values, alone.values)
    shared = pb.compare({"lda": lda(1.0), "dmr": dmr}, DOCUMENTS, covariates=design)
    np.testing.assert_array_equal(shared.results["dmr"].values, found.results["dmr"].values)


dirichlet, mixture = pb.DocumentModel.dirichlet, pb.DocumentModel.mixture
normal = pb.DocumentModel.logistic_normal


def score(model, *arguments, **options):
    return pb.log_likelihood(model, DOCUMENTS, *arguments, **options)


@pytest.mark.parametrize(
    "model",
    [
        pb.DocumentModel.logistic_normal(PHI, [[0.4, -0.2], [1.0, 0.3]], [[1.0, 0.2], [0.2, 0.7]]),
        pb.DocumentModel.mixture(PHI, [[0.2, 0.3, 0.5], [0.6, 0.2, 0.2]]),
    ],
)
@pytest.mark.parametrize("event", ["sequence", "counts"])
def test_a_completion_is_the_ratio_of_both_probabilities(model, event):
    observed = np.array([[2, 0, 1, 0], [0, 1, 1, 1]])
    held_out = np.array([[1, 1, 0, 0], [0, 0, 0, 0]])
    found = pb.log_completion(model, observed, held_out, event=event)
    both = pb.log_likelihood(model, observed + held_out, event="sequence").values
    expected = both - pb.log_likelihood(model, observed, event="sequence").values
    if event == "counts":
        expected += gammaln(held_out.sum(axis=1) + 1) - gammaln(held_out + 1).sum(axis=1)
    np.testing.assert_allclose(found.values, expected, atol=1e-10)


def test_sampled_completions_are_within_their_errors():
    rng = np.random.default_rng(0)
    topics = rng.dirichlet(np.full(20, 0.3), 4)
    model = pb.DocumentModel.logistic_normal(topics, np.zeros(4), 1.5 * np.eye(4))
    counts = rng.poisson(15 * rng.dirichlet(np.full(4, 0.5), 12) @ topics)
    observed, held_out = pb.split_tokens(counts, random_state=0)
    found = pb.log_completion(model, observed, held_out, random_state=1)
    other = pb.log_completion(model, observed, held_out, n_samples=500, random_state=2)
    gaps = np.abs(found.values - other.values)
    assert (gaps < 4.5 * np.hypot(found.std_errors, other.std_errors)).all()
    assert set(found.methods.tolist()) == {"annealed"}
    assert not found.is_unbiased


NAMES = ["(Intercept)", "meta$ratingLiberal", "day", "meta$ratingLiberal:day", "newTRUE"]
GAMMA = np.random.default_rng(0).normal(size=(2, 5))
BY_COLUMNS = normal(PHI, coefficients=GAMMA, covariance=np.eye(2), covariate_names=NAMES)
TABLE = {"rating": ["Liberal", "Conservative"] * 2, "day": [1.0, 2.0, 3.0, 4.0]}
TABLE |= {"new": [True, True, False, False]}


def test_columns_of_r_are_made_of_the_table():
    liberal, day = np.array([1.0, 0, 1, 0]), np.arange(1.0, 5)
    design = np.column_stack([np.ones(4), liberal, day, liberal * day, [1, 1, 0, 0]])
    found, expected = (score(BY_COLUMNS, covariates=x, random_state=0) for x in (TABLE, design))
    np.testing.assert_array_equal(found.values, expected.values)


WORDS_OF = np.array([[0.4, 0.3, 0.2, 0.1], [0.1, 0.1, 0.2, 0.6], [0.25, 0.05, 0.6, 0.1]])
MEAN, COVARIANCE = np.array([0.3, -0.5]), np.array([[1.5, 0.4], [0.4, 0.8]])
EXPERTS = {"decoder": "softmax", "bias": [0.1, -0.3, 0.2, 0.0]}
# Models and temperatures: annealing takes few from a fit, and more from a prior.
NORMALS = {
    "mixture": (normal(WORDS_OF, MEAN, COVARIANCE), 8),
    "softmax": (normal(WORDS_OF[:2], MEAN, [[4.0, -1.0], [-1.0, 3.0]]), 8),
    "experts": (normal(5 * WORDS_OF[:2] - 1, MEAN, COVARIANCE, weights="identity", **EXPERTS), 8),
    "experts of shares": (normal(5 * WORDS_OF[:2] - 1, MEAN, COVARIANCE, **EXPERTS), 8),
    "wide": (normal(WORDS_OF, MEAN, 20 * COVARIANCE), 100),
    "very wide": (normal(WORDS_OF, MEAN, 2e3 * COVARIANCE), 100),
}


@pytest.mark.filterwarnings("ignore::polyabayes.exceptions.UnreliableErrorWarning")
@pytest.mark.parametrize(("model", "n_samples"), NORMALS.values(), ids=NORMALS)
def test_annealing_agrees_with_quadrature_in_its_errors(model, n_samples):
    # Quadrature of wide priors takes long.
    step, n_seeds = (1, 20) if n_samples == 8 else (6, 60)
    rows = np.array([[i % 5, i * i % 4, i % 3, 7 * i % 6] for i in range(1, 25, step)])
    exact = pb.log_likelihood(model, rows)
    run = {"method": "annealed", "n_samples": n_samples}
    runs = [pb.log_likelihood(model, rows, random_state=seed, **run) for seed in range(n_seeds)]
    gaps = np.array([run.values - exact.values for run in runs])
    assert np.mean((gaps / [run.std_errors for run in runs]) ** 2) < 1.5
    ratios = np.expm1(gaps)
    assert abs(ratios.mean()) < 3 * ratios.std() / np.sqrt(ratios.size)


def test_a_covariance_of_lower_rank_leaves_dimensions_out():
    three = np.pad(COVARIANCE, (0, 1))
    found, expected = (
        pb.log_likelihood(normal(WORDS_OF, mean, covariance), [[3, 1, 0, 2]]).total
        for mean, covariance in (([*MEAN, 0.0], three), (MEAN, COVARIANCE))
    )
    assert found == pytest.approx(expected, abs=1e-9)


def test_a_prior_too_wide_for_quadrature_is_annealed_from_itself():
    """The sum over corners: all but half a percent of the prior is a document of one topic."""
    row = np.array([3, 0, 2, 4])
    found = pb.log_likelihood(normal(WORDS_OF, MEAN, 1e8 * COVARIANCE), [row], random_state=0)
    (a, c), (_, b) = COVARIANCE

    def wedge(x, both, y):
        """Probability that two correlated normals are positive."""
        return 0.25 + np.arcsin(both / np.sqrt(x * y)) / (2 * np.pi)

    shares = wedge(a, a - c, a + b - 2 * c), wedge(b, b - c, a + b - 2 * c), wedge(a, c, b)
    assert sum(shares) == pytest.approx(1, abs=1e-12)
    expected = np.log(shares @ np.prod(WORDS_OF**row, axis=1))
    assert abs(found.total - expected) < 3 * found.total_std_error + 0.005
