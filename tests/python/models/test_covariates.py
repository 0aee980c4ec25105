"""Priors that depend on covariates of documents: data in, coefficients, scores, files, refusals."""

from functools import cache
from pathlib import Path

import formulaic
import numpy as np
import pandas as pd
import pytest
from scipy import sparse

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


CORPUS = planted(N_DOCUMENTS, 60, 1)
FRAME = CORPUS.metadata


def lda(**options):
    return pb.LatentDirichletAllocation(3, max_iter=80, thin=2, random_state=0, **options)


@cache
def fitted():
    return lda(formula="~ party + day").fit(CORPUS)


def topic_of(model, word):
    return int(model.components_[:, word].argmax())


def test_planted_effects_are_found():
    assert fitted().covariate_names_.tolist() == ["Intercept", "party[T.I]", "party[T.R]", "day"]
    assert fitted().coefficients_.shape == (3, 4)
    # Every sweep after the burn-in, though topics are means over one in two.
    assert fitted().coefficient_draws_.shape == (40, 3, 4)
    np.testing.assert_allclose(fitted().coefficient_draws_.mean(axis=0), fitted().coefficients_)
    first, middle, last = (topic_of(fitted(), word) for word in (0, 5, 10))
    draws = fitted().coefficient_draws_
    by_day, by_party = draws[:, first, 3] - draws[:, middle, 3], draws[:, last] - draws[:, middle]
    assert abs(by_day.mean() + 0.4) < 4 * by_day.std()
    assert by_day.mean() < -3 * by_day.std()
    assert abs(by_party[:, 2].mean() - 1.5) < 4 * by_party[:, 2].std()
    assert by_party[:, 2].mean() > 3 * by_party[:, 2].std()
    assert abs(by_party[:, 1].mean()) < 4 * by_party[:, 1].std()


def test_a_table_a_formula_and_a_matrix_say_the_same():
    bare = CORPUS.with_metadata(None)
    by_table = lda().fit(bare, covariates=FRAME)
    dummies = np.column_stack([FRAME["party"] == "I", FRAME["party"] == "R", FRAME["day"]])
    by_matrix = lda().fit(bare, covariates=dummies.astype(float))
    for other in (by_table, by_matrix):
        np.testing.assert_allclose(other.coefficients_, fitted().coefficients_, rtol=1e-9)
    scores = fitted().score_samples(CORPUS[:20])
    same = by_matrix.score_samples(bare[:20], covariates=dummies[:20])
    np.testing.assert_allclose(same, scores, rtol=1e-9)
    # A dictionary, and the columns of another order with one more, are the same table.
    mixed = {"id": np.arange(20), "day": FRAME["day"][:20], "party": FRAME["party"][:20]}
    np.testing.assert_array_equal(by_table.score_samples(bare[:20], covariates=mixed), scores)


def test_scores_are_those_of_the_documents_own_priors():
    rows = np.column_stack(
        [np.ones(10), FRAME["party"][:10] == "I", FRAME["party"][:10] == "R", FRAME["day"][:10]]
    ).astype(float)
    priors = np.exp(rows @ fitted().coefficients_.T)
    bare = CORPUS[:10].with_metadata(None)
    expected = pb.log_likelihood(fitted(), bare, doc_topic_prior=priors, random_state=3)
    found = pb.log_likelihood(fitted(), CORPUS[:10], random_state=3)
    np.testing.assert_allclose(found.values, expected.values, rtol=1e-12)
    assert (fitted().transform(CORPUS[:10])).shape == (10, 3)
    # A day that is far away changes what an empty document is expected to be about.
    empty = pb.Corpus(np.zeros((2, 15), dtype=int))
    at = {"party": ["D", "D"], "day": [0.0, 10.0]}
    weights = fitted().transform(empty, covariates=at)
    first = topic_of(fitted(), 0)
    assert weights[0, first] > weights[1, first] + 0.1


@pytest.mark.parametrize("term", ["cr(day, df=3, constraints='center')", "third", "month"])
def test_priors_by_a_formula_are_those_of_its_matrix(term, tmp_path):
    dates = pd.Timestamp("2008-01-01") + pd.to_timedelta(6 * FRAME["day"], unit="D")
    months = dates.dt.to_period("M")
    table = FRAME.assign(third=pd.cut(FRAME["day"], 3), month=months)
    model = lda(formula=f"~ {term}").fit(CORPUS, covariates=table)
    texts = table.assign(month=months.astype(str))
    matrix = formulaic.model_matrix(f"~ {term}", texts).to_numpy(dtype=float)[:5]
    model.save(tmp_path / "lda.safetensors")
    for scored in (model, pb.load(tmp_path / "lda.safetensors")):
        np.testing.assert_allclose(
            scored.score_samples(CORPUS[:5], covariates=table[:5]),
            pb.log_likelihood(
                model, CORPUS[:5], doc_topic_prior=np.exp(matrix @ model.coefficients_.T)
            ).values,
            rtol=1e-12,
        )


def test_covariates_help_on_documents_that_were_held_out():
    train, test = planted(400, 10, 2), planted(300, 10, 3)
    pair = {"with": lda(formula="~ party + day").fit(train), "without": lda().fit(train)}
    ahead, std_error = pb.compare(pair, test, random_state=0).difference("with", "without")
    assert ahead > 3 * std_error > 0


def redesigned(**change):
    """Read a file whose design was changed."""
    stored = fitted()._to_store()
    scalars = {**stored.scalars, "design": {**stored.scalars["design"], **change}}
    stored._replace(scalars=scalars).write(Path("model.safetensors"))
    return pb.load("model.safetensors")


@pytest.mark.parametrize("options", [{}, {"fit_method": "em", "thin": 5}])
def test_another_fit_forgets_the_covariates(options):
    model = lda().fit(CORPUS, covariates={"day": CORPUS.metadata["day"]})
    assert model.set_params(**options).fit(CORPUS).score(CORPUS[:5]) < 0
    assert not hasattr(model, "coefficients_")
    assert not hasattr(model, "covariate_names_")


def test_chains_draw_documents_of_their_own_priors():
    model = lda(formula="~ party")
    chains = pb.sample_chains(model, CORPUS, 2, variables="theta", random_state=0)
    assert chains.draws["coefficient_variance"].shape == (2, 20)
    assert (chains.draws["coefficient_variance"] > 0).all()
    posterior = chains.to_inference_data().posterior
    assert posterior["coefficients"].shape == (2, 20, 3, 3)
    assert posterior["covariate"].values.tolist() == ["Intercept", "party[T.I]", "party[T.R]"]
    np.testing.assert_allclose(chains.draws["theta"].sum(axis=-1), 1.0)


def test_flags_matrices_and_levels_that_do_not_occur():
    flags = (FRAME["party"] == "R").to_numpy()[:, None]
    expected = lda().fit(CORPUS, covariates=flags.astype(float)).coefficients_
    for same in (flags, sparse.csr_matrix(flags.astype(float)), flags.tolist()):
        np.testing.assert_array_equal(lda().fit(CORPUS, covariates=same).coefficients_, expected)
    levels = ["R", "absent", "D", "I"]
    described = CORPUS.with_metadata(FRAME.assign(party=pd.Categorical(FRAME["party"], levels)))
    names = ["Intercept", "party[T.D]", "party[T.I]"]
    for model in (lda(formula="~ party"), lda()):
        table = described.metadata if model.formula else described.metadata[["party"]]
        model.fit(described, covariates=table)
        assert model.covariate_names_.tolist() == names
        few = described[:5]
        plain = {"party": FRAME["party"][:5].tolist()}
        expected = model.score_samples(few, covariates=plain)
        np.testing.assert_array_equal(model.score_samples(few), expected)
    texts = CORPUS.with_metadata(FRAME.assign(party=FRAME["party"].astype("string")))
    plain = lda(formula="~ party").fit(CORPUS)
    by_texts = lda(formula="~ party").fit(texts)
    np.testing.assert_array_equal(by_texts.coefficients_, plain.coefficients_)
    np.testing.assert_array_equal(plain.score_samples(texts[:5]), plain.score_samples(CORPUS[:5]))
    centred = lda(formula="~ cr(day, df=3, constraints='center')").fit(CORPUS)
    assert len(centred.covariate_names_) == 4


def fit(by_formula=False, **columns):
    """Fit a table with other columns; nothing is learned from one that is refused."""
    table = FRAME.assign(**columns)
    model = lda(formula="~ " + " + ".join(table.columns) if by_formula else None)
    try:
        model.fit(CORPUS, covariates=table)
    finally:
        assert not hasattr(model, "components_")


def test_extreme_covariates_stay_within_the_range_of_parameters():
    model = lda(formula="~ day").fit(CORPUS)
    for day in (1e9, -1e9):
        scores = model.score_samples(CORPUS[:3], covariates={"day": [day] * 3})
        assert np.isfinite(scores).all()


# Documents of the second kind are too long for tallies of 16 bits.
@pytest.mark.parametrize("n_tokens", [20, 40_000])
def test_coefficients_stay_finite_where_a_level_never_has_a_topic(n_tokens):
    level = np.arange(8) % 2
    counts = n_tokens * np.kron(np.eye(2, dtype=int), [1, 1])[level]
    model = pb.LatentDirichletAllocation(2, max_iter=40, random_state=5)
    model.fit(counts, covariates=level[:, np.newaxis] - 0.5)
    assert np.abs(model.coefficient_draws_).max() < 200
    # The topics are those of the levels, and prevalence says so.
    apart = np.subtract(*model.coefficients_[:, 1])
    assert abs(apart) > 2
    own = model.components_[int(apart < 0)]
    assert own[2:].sum() > 0.99
