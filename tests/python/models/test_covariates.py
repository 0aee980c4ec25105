"""Priors that depend on covariates of documents: data in, coefficients, scores, files, refusals."""

import formulaic
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone

import polyabayes as pb

N_DOCUMENTS = 150
PARTIES = ("D", "I", "R")


def planted(n_documents, n_tokens, seed):
    """Three topics of separate words; the first is rarer by the day, the last one R's."""
    rng = np.random.default_rng(seed)
    party, day = rng.choice(PARTIES, n_documents), rng.uniform(0, 10, n_documents)
    effects = np.column_stack([-0.4 * day, np.zeros(n_documents), 1.5 * (party == "R")])
    theta = np.array([rng.dirichlet(np.exp(row - 0.5)) for row in effects])
    topics = np.kron(np.eye(3), np.full(5, 0.2)) * 0.97 + 0.03 / 15
    counts = rng.multinomial(n_tokens, theta @ topics)
    return pb.Corpus(counts).with_metadata({"party": party, "day": day})


@pytest.fixture(scope="module")
def corpus():
    return planted(N_DOCUMENTS, 60, 1)


@pytest.fixture(scope="module")
def frame(corpus):
    return corpus.metadata


def lda(**options):
    return pb.LatentDirichletAllocation(3, max_iter=80, thin=2, random_state=0, **options)


@pytest.fixture(scope="module")
def fitted(corpus):
    return lda(formula="~ party + day").fit(corpus)


def topic_of(model, word):
    return int(model.components_[:, word].argmax())


def test_planted_effects_are_found(fitted):
    assert fitted.covariate_names_.tolist() == ["Intercept", "party[T.I]", "party[T.R]", "day"]
    assert fitted.coefficients_.shape == (3, 4)
    # Every sweep after the burn-in, though topics are means over one in two.
    assert fitted.coefficient_draws_.shape == (40, 3, 4)
    np.testing.assert_allclose(fitted.coefficient_draws_.mean(axis=0), fitted.coefficients_)
    first, middle, last = (topic_of(fitted, word) for word in (0, 5, 10))
    draws = fitted.coefficient_draws_
    by_day, by_party = draws[:, first, 3] - draws[:, middle, 3], draws[:, last] - draws[:, middle]
    assert abs(by_day.mean() + 0.4) < 4 * by_day.std()
    assert by_day.mean() < -3 * by_day.std()
    assert abs(by_party[:, 2].mean() - 1.5) < 4 * by_party[:, 2].std()
    assert by_party[:, 2].mean() > 3 * by_party[:, 2].std()
    assert abs(by_party[:, 1].mean()) < 4 * by_party[:, 1].std()


def test_a_table_a_formula_and_a_matrix_say_the_same(corpus, frame, fitted):
    bare = corpus.with_metadata(None)
    by_table = lda().fit(bare, covariates=frame)
    dummies = np.column_stack([frame["party"] == "I", frame["party"] == "R", frame["day"]])
    by_matrix = lda().fit(bare, covariates=dummies.astype(float))
    for other in (by_table, by_matrix):
        np.testing.assert_allclose(other.coefficients_, fitted.coefficients_, rtol=1e-9)
    scores = fitted.score_samples(corpus[:20])
    np.testing.assert_allclose(
        by_matrix.score_samples(bare[:20], covariates=dummies[:20]), scores, rtol=1e-9
    )
    # A dictionary, and the columns of another order with one more, are the same table.
    mixed = {"id": np.arange(20), "day": frame["day"][:20], "party": frame["party"][:20]}
    np.testing.assert_array_equal(by_table.score_samples(bare[:20], covariates=mixed), scores)


def test_scores_are_those_of_the_documents_own_priors(corpus, frame, fitted):
    rows = np.column_stack(
        [np.ones(10), frame["party"][:10] == "I", frame["party"][:10] == "R", frame["day"][:10]]
    ).astype(float)
    priors = np.exp(rows @ fitted.coefficients_.T)
    expected = pb.log_likelihood(
        fitted, corpus[:10].with_metadata(None), doc_topic_prior=priors, random_state=3
    )
    found = pb.log_likelihood(fitted, corpus[:10], random_state=3)
    np.testing.assert_allclose(found.values, expected.values, rtol=1e-12)
    assert (fitted.transform(corpus[:10])).shape == (10, 3)
    # A day that is far away changes what an empty document is expected to be about.
    empty = pb.Corpus(np.zeros((2, 15), dtype=int))
    at = {"party": ["D", "D"], "day": [0.0, 10.0]}
    weights = fitted.transform(empty, covariates=at)
    first = topic_of(fitted, 0)
    assert weights[0, first] > weights[1, first] + 0.1


@pytest.mark.parametrize("term", ["cr(day, df=3, constraints='center')", "third", "month"])
def test_priors_by_a_formula_are_those_of_its_matrix(corpus, frame, term, tmp_path):
    dates = pd.Timestamp("2008-01-01") + pd.to_timedelta(6 * frame["day"], unit="D")
    months = dates.dt.to_period("M")
    table = frame.assign(third=pd.cut(frame["day"], 3), month=months)
    model = lda(formula=f"~ {term}").fit(corpus, covariates=table)
    texts = table.assign(month=months.astype(str))
    matrix = formulaic.model_matrix(f"~ {term}", texts).to_numpy(dtype=float)[:5]
    model.save(tmp_path / "lda.safetensors")
    for scored in (model, pb.load(tmp_path / "lda.safetensors")):
        np.testing.assert_allclose(
            scored.score_samples(corpus[:5], covariates=table[:5]),
            pb.log_likelihood(
                model, corpus[:5], doc_topic_prior=np.exp(matrix @ model.coefficients_.T)
            ).values,
            rtol=1e-12,
        )


def test_covariates_help_on_documents_that_were_held_out():
    train, test = planted(400, 10, 2), planted(300, 10, 3)
    pair = {"with": lda(formula="~ party + day").fit(train), "without": lda().fit(train)}
    ahead, std_error = pb.compare(pair, test, random_state=0).difference("with", "without")
    assert ahead > 3 * std_error > 0


def test_the_saved_model_scores_the_same_and_runs_nothing(corpus, tmp_path):
    for formula in ("~ party + bs(day, df=4)", "~ party*day", "~ C(day > 5) + day"):
        model = lda(formula=formula).fit(corpus)
        model.save(tmp_path / "model.safetensors")
        loaded = pb.load(tmp_path / "model.safetensors")
        assert loaded.covariate_names_.tolist() == model.covariate_names_.tolist()
        for name in ("coefficients_", "coefficient_draws_"):
            np.testing.assert_array_equal(getattr(loaded, name), getattr(model, name))
        some = corpus[:7]
        np.testing.assert_array_equal(loaded.score_samples(some), model.score_samples(some))


@pytest.mark.parametrize(
    "change",
    [
        {"formula": "~ open('x')"},
        {"deviations": [0.0, 1.0, 1.0]},
        {"names": ["Intercept", "day"]},
        {"means": [1.0]},
        {"more": 1},
    ],
)
def test_a_file_with_another_design_is_refused(fitted, tmp_path, change):
    stored = fitted._to_store()
    scalars = {**stored.scalars, "design": {**stored.scalars["design"], **change}}
    stored._replace(scalars=scalars).write(tmp_path / "model.safetensors")
    with pytest.raises(pb.exceptions.FileFormatError, match="complete model"):
        pb.load(tmp_path / "model.safetensors")


@pytest.mark.parametrize(
    "formula",
    [
        "~ __import__('os').getcwd()",
        "~ day.sum()",
        "~ open('x')",
        "~ (lambda: 1)()",
        "~ np.log(day)",
        "~ log(`a day`)",
    ],
)
def test_a_formula_runs_known_functions_only(corpus, formula):
    with pytest.raises(pb.exceptions.InvalidArgumentError, match="formula"):
        lda(formula=formula).fit(corpus)


@pytest.mark.parametrize("options", [{}, {"fit_method": "em", "thin": 5}])
def test_another_fit_forgets_the_covariates(corpus, options):
    model = lda().fit(corpus, covariates={"day": corpus.metadata["day"]})
    assert model.set_params(**options).fit(corpus).score(corpus[:5]) < 0
    assert not hasattr(model, "coefficients_")
    assert not hasattr(model, "covariate_names_")


def test_gamma_poisson_shapes_depend_on_covariates(corpus):
    model = pb.PoissonFactorAnalysis(
        3, max_iter=80, thin=2, random_state=0, formula="~ party + day"
    ).fit(corpus)
    draws, last, middle = model.coefficient_draws_, topic_of(model, 10), topic_of(model, 5)
    by_party = draws[:, last, 2] - draws[:, middle, 2]
    assert by_party.mean() > 3 * by_party.std()
    assert np.isfinite(model.score(corpus))
    assert model.last_sample_.shape.shape == (3,)
    with pytest.raises(pb.exceptions.InvalidArgumentError, match="gap"):
        clone(model).set_params(prior="gap").fit(corpus)
    with pytest.raises(pb.exceptions.InvalidArgumentError, match="nmf"):
        clone(model).set_params(prior="nmf").fit(corpus)
    with pytest.raises(pb.exceptions.InvalidArgumentError, match="exposure"):
        model.fit(corpus, exposure=np.linspace(1, 2, N_DOCUMENTS))


def test_chains_draw_documents_of_their_own_priors(corpus):
    model = lda(formula="~ party")
    chains = pb.sample_chains(model, corpus, 2, variables="theta", random_state=0)
    assert chains.draws["coefficient_variance"].shape == (2, 20)
    assert (chains.draws["coefficient_variance"] > 0).all()
    posterior = chains.to_inference_data().posterior
    assert posterior["coefficients"].shape == (2, 20, 3, 3)
    assert posterior["covariate"].values.tolist() == ["Intercept", "party[T.I]", "party[T.R]"]
    np.testing.assert_allclose(chains.draws["theta"].sum(axis=-1), 1.0)


def test_flags_matrices_and_levels_that_do_not_occur(corpus, frame):
    flags = (frame["party"] == "R").to_numpy()[:, None]
    expected = lda().fit(corpus, covariates=flags.astype(float)).coefficients_
    for same in (flags, sparse.csr_matrix(flags.astype(float)), flags.tolist()):
        np.testing.assert_array_equal(lda().fit(corpus, covariates=same).coefficients_, expected)
    levels = ["R", "absent", "D", "I"]
    described = corpus.with_metadata(frame.assign(party=pd.Categorical(frame["party"], levels)))
    names = ["Intercept", "party[T.D]", "party[T.I]"]
    for model in (lda(formula="~ party"), lda()):
        table = described.metadata if model.formula else described.metadata[["party"]]
        model.fit(described, covariates=table)
        assert model.covariate_names_.tolist() == names
        few = described[:5]
        plain = {"party": frame["party"][:5].tolist()}
        np.testing.assert_array_equal(
            model.score_samples(few), model.score_samples(few, covariates=plain)
        )
    texts = corpus.with_metadata(frame.assign(party=frame["party"].astype("string")))
    plain = lda(formula="~ party").fit(corpus)
    np.testing.assert_array_equal(
        lda(formula="~ party").fit(texts).coefficients_, plain.coefficients_
    )
    np.testing.assert_array_equal(plain.score_samples(texts[:5]), plain.score_samples(corpus[:5]))
    centred = lda(formula="~ cr(day, df=3, constraints='center')").fit(corpus)
    assert len(centred.covariate_names_) == 4


def changed(frame, **columns):
    return frame.assign(**columns)


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"day": [np.nan] + [1.0] * (N_DOCUMENTS - 1)}, ["day", "row 0", "drop"]),
        ({"day": [np.inf, *range(1, N_DOCUMENTS)]}, ["day", "row 0", "drop"]),
        ({"party": [None] + ["D"] * (N_DOCUMENTS - 1)}, ["party", "row 0", "drop"]),
        ({"day": 3.0}, ["day", "same", "omit"]),
        ({"party": "D"}, ["party", "same", "omit"]),
        ({"week": lambda x: 7 * x["day"] + 1}, ["week", "combination", "omit"]),
        ({"name": [f"d{i}" for i in range(N_DOCUMENTS)]}, ["columns", "name", "merge"]),
        ({"day": pd.Timedelta("1D")}, ["day", "durations", "number"]),
        ({"day": 1j}, ["day", "complex", "real"]),
        ({"week": lambda x: 1e200 * x["day"]}, ["week", "differ", "units"]),
        ({"week": lambda x: 1e-200 * x["day"]}, ["week", "differ", "units"]),
    ],
)
@pytest.mark.parametrize("formula", [None, True])
def test_bad_covariates_are_refused_with_the_column_and_the_remedy(
    corpus, frame, columns, words, formula
):
    bad = changed(frame, **columns)
    model = lda(formula="~ " + " + ".join(bad.columns) if formula else None)
    with pytest.raises((pb.exceptions.InvalidArgumentError, pb.exceptions.InvalidTypeError)) as e:
        model.fit(corpus, covariates=bad)
    assert all(word in str(e.value) for word in words), str(e.value)
    assert not hasattr(model, "components_")


def test_extreme_covariates_stay_within_the_range_of_parameters(corpus):
    model = lda(formula="~ day").fit(corpus)
    for day in (1e9, -1e9):
        scores = model.score_samples(corpus[:3], covariates={"day": [day] * 3})
        assert np.isfinite(scores).all()


BAD, WRONG_TYPE = pb.exceptions.InvalidArgumentError, pb.exceptions.InvalidTypeError


def test_other_bad_input_is_refused_before_any_work(corpus, frame, fitted, tmp_path):
    bare, twice = corpus.with_metadata(None), pd.DataFrame(np.ones((150, 2)), columns=["a", "a"])
    shards = pb.write_shards(corpus, tmp_path / "shards")
    for options, documents, covariates, error, message in (
        ({}, corpus, frame[:10], BAD, "covariates"),
        ({"fit_method": "em", "thin": 5}, corpus, frame, BAD, "covariates"),
        ({"fit_method": "em", "thin": 5, "formula": "~ day"}, corpus, None, BAD, "formula"),
        ({"formula": "~ day"}, bare, None, BAD, "covariates"),
        ({"formula": "~ week"}, corpus, None, BAD, "no column 'week'"),
        ({"formula": "~ day - 1"}, corpus, None, BAD, "intercept"),
        ({"formula": "party ~ day"}, corpus, None, BAD, "right side"),
        ({"formula": "~ day"}, corpus, np.ones((N_DOCUMENTS, 1)), WRONG_TYPE, "formula"),
        ({"formula": "~ cr(day, df=3)"}, corpus, None, BAD, "constraints='center'"),
        ({"formula": "~ party + s(day)"}, corpus, None, BAD, r"s\(day\) of stm is bs\(day, df"),
        ({}, corpus, frame["day"].to_numpy(), BAD, r"\(n_documents, n_covariates\)"),
        ({}, corpus, twice, BAD, "two columns that are called 'a'"),
        ({}, corpus, frame[["party"]].to_numpy(dtype=str), WRONG_TYPE, "give a data frame"),
        ({"formula": "~ day"}, shards, None, BAD, "in memory"),
    ):
        with pytest.raises(error, match=message):
            lda().set_params(**options).fit(documents, covariates=covariates)
    by_matrix = lda().fit(corpus, covariates=frame[["day"]].to_numpy())
    with pytest.raises(BAD, match="trained with a DataFrame"):
        by_matrix.transform(corpus)
    with pytest.raises(BAD, match="partial_fit"):
        fitted.partial_fit(corpus)


def test_bad_covariates_of_other_documents_are_refused(corpus, frame, fitted):
    some, plain = corpus[:3].with_metadata(None), lda().fit(corpus)
    spline = lda(formula="~ bs(day, df=4)").fit(corpus)
    for model, covariates, message in (
        (fitted, None, "depends on covariates"),
        (fitted, {"party": ["L", "D", "D"], "day": [1.0, 2, 3]}, r"party.*'L'.*never saw.*drop"),
        (fitted, frame[["party"]][:3], "no column 'day'"),
        (fitted, frame[:4], "4 rows for 3 documents"),
        (fitted, {"party": ["D"] * 3, "day": [1.0, None, 3.0]}, "no value in row 1"),
        (plain, frame[:3], "depends on none"),
        (fitted, {"party": list("DIR"), "day": list("122")}, r"'day'.*numbers must be numbers"),
        (spline, {"day": [1.0, 2.0, 300.0]}, "day"),
    ):
        with pytest.raises(BAD, match=message):
            model.score(some, covariates=covariates)
        with pytest.raises(BAD, match=message):
            pb.log_likelihood(model, some, covariates=covariates)
