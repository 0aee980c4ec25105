"""Prevalence of topics by covariates against draws of known coefficients."""

import json
import re
from copy import copy

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import polyabayes as pb
from polyabayes._support.posterior_draws import central_interval, n_effective
from polyabayes.exceptions import InvalidArgumentError, InvalidTypeError, UnreliableErrorWarning


def drawn():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"party": rng.choice(["D", "R"], 60), "day": rng.uniform(0, 9, 60)})
    theta = rng.dirichlet(np.ones(3), 60)
    counts = rng.multinomial(40, theta @ (0.9 * np.kron(np.eye(3), np.full(3, 1 / 3)) + 0.1 / 9))
    return pb.Corpus(counts).with_metadata(frame)


CORPUS = drawn()


def short(kind=pb.LatentDirichletAllocation, max_iter=40):
    options = {"formula": "~ party + day", "max_iter": max_iter, "random_state": 0}
    return kind(3, **options).fit(CORPUS)


@pytest.fixture(scope="module", params=[pb.LatentDirichletAllocation, pb.PoissonFactorAnalysis])
def model(request):
    return short(request.param, 2000)


def by_hand(model, rows):
    sizes = np.exp(np.einsum("rp,dkp->drk", rows, model.coefficient_draws_))
    if hasattr(model, "probability_"):
        sizes *= model.probability_ / (1 - model.probability_)
    return sizes / sizes.sum(axis=2, keepdims=True)


def test_prevalence_is_the_share_of_each_draw(model):
    found = pb.topics.prevalence(model, at={"party": ["D", "R"], "day": 3.0}, level=0.8)
    expected = by_hand(model, np.array([[1.0, 0.0, 3.0], [1.0, 1.0, 3.0]]))
    np.testing.assert_allclose(found.draws, expected, rtol=1e-10)
    assert found.rows == ["party=D, day=3", "party=R, day=3"]
    frame = found.to_frame()
    np.testing.assert_allclose(frame["mean"], expected.mean(axis=0).ravel())
    (lower, upper), _ = central_interval(expected, 0.8)
    np.testing.assert_allclose(frame["lower"], lower.ravel())
    np.testing.assert_allclose(frame["upper"], upper.ravel())
    assert (lower < np.quantile(expected, 0.1, axis=0)).all()
    np.testing.assert_array_equal(found.interval(0.8), found.interval())


def test_a_mapping_is_a_grid(model):
    found = pb.topics.prevalence(model, at={"party": ["D", "R"], "day": [1, 2, 3]})
    grid = [[1.0, party, day] for party in (0.0, 1.0) for day in (1, 2, 3)]
    np.testing.assert_allclose(found.draws, by_hand(model, np.array(grid)), rtol=1e-10)
    assert found.at["party"].tolist() == list("DDDRRR")
    assert found.rows[1] == "party=D, day=2"
    cell = found.to_frame().set_index(["party", "day", "topic"])["mean"]["R", 2, 1]
    assert cell == pytest.approx(by_hand(model, np.array([[1.0, 1.0, 2.0]]))[:, 0, 1].mean())
    ends = ({"party": party, "day": [1, 2]} for party in "RD")
    difference = pb.topics.contrast(model, *ends)
    assert difference.at.to_dict("list") == {"day": [1, 2]}


@pytest.mark.parametrize("form", ["texts", "dates", "times"])
def test_dates_are_days_in_formulas_tables_and_pictures(form, tmp_path):
    """The same fit as by days, under other names."""
    days = pd.Timestamp("2008-01-01") + pd.to_timedelta(np.arange(60), unit="D")
    column = {
        "texts": [str(day.date()) for day in days],
        "dates": [day.date() for day in days],
        "times": days.tz_localize("UTC") if len(days) else days,
    }[form]
    options = {"formula": "~ bs(date, df=4)", "max_iter": 2000, "random_state": 0}
    dated = CORPUS.with_metadata({"date": column})
    lda = pb.LatentDirichletAllocation(3, **options).fit(dated)
    plain = CORPUS.with_metadata({"date": 13_879.0 + np.arange(60)})
    by_days = pb.LatentDirichletAllocation(3, **options).fit(plain)
    np.testing.assert_array_equal(lda.coefficient_draws_, by_days.coefficient_draws_)
    lda.save(tmp_path / "lda.safetensors")
    loaded = pb.load(tmp_path / "lda.safetensors")
    at = {"date": ["2008-01-05", "2008-02-01"]}
    found = pb.topics.prevalence(loaded, at=at)
    expected = pb.topics.prevalence(by_days, at={"date": [13_883.0, 13_910.0]})
    np.testing.assert_allclose(found.draws, expected.draws)
    assert found.rows == ["date=2008-01-05", "date=2008-02-01"]
    assert found.to_frame()["date"].dt.month.tolist() == [1] * 3 + [2] * 3
    assert json.loads(found.to_json())["rows"][3]["date"].startswith("2008-02-01")
    line = pb.plotting.plot_prevalence(found, [1], along="date").lines[0]
    assert line.get_xdata(orig=True).astype("datetime64[D]").astype(str).tolist() == at["date"]
    told = (
        r"column 'date' is 2009-01-01 in row 0, but bs\(date, df=4\) knows 2008-01-01 to "
        r"2008-02-29,.*extrapolation='clip'"
    )
    with pytest.raises(InvalidArgumentError, match=told):
        pb.topics.prevalence(lda, at={"date": "2009-01-01"})
    with pytest.raises(InvalidTypeError, match="column 'date' holds dates in training"):
        pb.topics.prevalence(lda, at={"date": "soon"})
    page = pb.topics.report(lda, dated, tmp_path / "page.html").read_text()
    assert '"rows": ["2008-01-01", ' in page


def test_contrasts_are_of_the_same_draws(model):
    a, b = {"party": "R", "day": 1.0}, {"party": "D", "day": 1.0}
    found = pb.topics.contrast(model, a, b)
    high, low = np.array([[1.0, 1.0, 1.0]]), np.array([[1.0, 0.0, 1.0]])
    expected = by_hand(model, high) - by_hand(model, low)
    np.testing.assert_allclose(found.draws, expected, atol=1e-12)
    assert found.event == "difference"
    np.testing.assert_array_equal(pb.topics.contrast(model, a, a).draws, 0.0)
    named = copy(model).name_topics(["x", "y", "z"])
    named.vocabulary_ = np.array([f"w{number}" for number in range(9)], dtype=object)
    table = pb.topics.contrast(named, a, b).to_frame()
    order = np.argsort(-found.mean[0])
    assert table["topic"].tolist() == [named.topic_names_[k] for k in order]
    np.testing.assert_allclose(table["mean"], np.sort(found.mean[0])[::-1])
    assert table["words"][0].split()[0] == f"w{model.components_[order[0]].argmax()}"


def test_too_few_draws_are_said_once(tmp_path):
    lda = pb.LatentDirichletAllocation(3, formula="~ party", max_iter=30, random_state=0)
    with pytest.warns(UnreliableErrorWarning) as told:
        lda.fit(CORPUS)
    fewest = n_effective(lda.coefficient_draws_).min()
    # Tails of 2.5 % need (1/m + 1/n) / 2 = 0.025.
    wanted = 30 * (1 / fewest + 1 / 15) / 2 / 0.025
    text = (
        f"15 draws of coefficients are worth {fewest:.0f} .* max_iter={float(f'{wanted:.2g}'):.0f}"
    )
    assert len(told) == 1
    assert re.search(text, str(told[0].message))
    found = pb.topics.prevalence(lda, at={"party": ["D", "R"]})
    # Told once: not again for the usual level, but for others, and by a model from a file.
    low, high = found.interval()
    np.testing.assert_array_equal([low, high], [found.draws.min(axis=0), found.draws.max(axis=0)])
    lda.save(tmp_path / "lda.safetensors")
    loaded = pb.topics.prevalence(pb.load(tmp_path / "lda.safetensors"), at={"party": ["D", "R"]})
    for result, level in ((found, 0.99), (loaded, 0.95)):
        with pytest.warns(UnreliableErrorWarning, match=r"max_iter .* times as large"):
            result.interval(level)
    longer = lda.set_params(max_iter=3000).fit(CORPUS)
    assert n_effective(longer.coefficient_draws_).min() > 20


def test_average_effects_keep_the_other_covariates_of_the_documents(model):
    day = CORPUS.metadata["day"].to_numpy()
    ones = np.ones(len(day))
    rows = (np.column_stack([ones, level * ones, day]) for level in (1, 0))
    expected = [by_hand(model, x).mean(axis=1) for x in rows]
    found = pb.topics.contrast(model, {"party": "R"}, {"party": "D"}, documents=CORPUS)
    np.testing.assert_allclose(found.draws[:, 0], expected[0] - expected[1], atol=1e-12)
    whole = pb.topics.prevalence(model, documents=CORPUS)
    party = (CORPUS.metadata["party"] == "R").to_numpy()
    rows = np.column_stack([ones, party, day])
    np.testing.assert_allclose(whole.draws[:, 0], by_hand(model, rows).mean(axis=1), atol=1e-12)
    wt = np.arange(60) + 1.0
    weighted = CORPUS.metadata.assign(wt=wt)
    described = CORPUS.with_metadata(weighted)
    for documents, given in ((CORPUS, wt), (weighted, "wt"), (described, "wt")):
        found = pb.topics.prevalence(model, documents=documents, weights=given)
        averages = np.average(by_hand(model, rows), axis=1, weights=wt)
        np.testing.assert_allclose(found.draws[:, 0], averages, atol=1e-12)


def test_the_report_shows_prevalence_along_each_covariate(model, tmp_path):
    levels = pd.Series(np.arange(60) % 3, name="round")
    described = CORPUS.with_metadata(CORPUS.metadata.assign(round=levels))
    named = {"formula": "~ party + day + round", "max_iter": 3000}
    three = clone(model).set_params(**named).fit(described)
    for fitted, documents in ((model, CORPUS), (three, described)):
        page = pb.topics.report(fitted, documents, tmp_path / "page.html").read_text()
        data = json.loads(re.search(r'id="data">(.*?)</script>', page, re.DOTALL)[1])
        frame = documents.metadata
        usual = {"party": frame["party"].mode()[0], "day": frame["day"].mean(), "round": 1}
        usual = {name: usual[name] for name in frame.columns}
        for shown in data["covariates"]:
            ends = frame["day"].min(), frame["day"].max()
            known = {"party": ["D", "R"], "day": np.linspace(*ends, 21), "round": [0, 1, 2]}
            expected = pb.topics.prevalence(
                fitted, at={**usual, shown["name"]: known[shown["name"]]}
            )
            np.testing.assert_allclose(shown["mean"], expected.mean, atol=1e-5)
            lower, upper = expected.interval()
            np.testing.assert_allclose(shown["lower"], lower, atol=1e-5)
            np.testing.assert_allclose(shown["upper"], upper, atol=1e-5)
            assert (shown["values"] is None) == (shown["name"] != "day")
        assert [shown["name"] for shown in data["covariates"]] == list(frame.columns)
        assert data["covariates"][0]["rows"] == ["D", "R"]
    plain = pb.LatentDirichletAllocation(2, max_iter=10, random_state=0).fit(CORPUS)
    page = pb.topics.report(plain, CORPUS, tmp_path / "page.html").read_text()
    assert '"covariates": []' in page
