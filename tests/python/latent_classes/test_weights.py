"""Weights of rows: what knows those of the fit, the pseudo-posterior, and sandwich errors."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import linalg, special
from sklearn.base import clone

import polyabayes as pb
from polyabayes.exceptions import DataWarning, InvalidArgumentError, PolyabayesError
from polyabayes.latent_classes.answers import read_answers
from polyabayes.latent_classes.maximum import logit_errors
from polyabayes.latent_classes.tables import ClassTables

YES = np.array([[0.9, 0.8, 0.85, 0.2, 0.1], [0.2, 0.15, 0.3, 0.8, 0.7]])


def planted(n_rows: int, seed: int) -> pd.DataFrame:
    """Two classes; those of the second are twice as likely to be in the sample."""
    rng = np.random.default_rng(seed)
    classes = rng.choice(2, n_rows, p=[0.6 / 1.4, 0.8 / 1.4])
    answers = (rng.random((n_rows, 5)) < YES[classes]).astype(int)
    frame = pd.DataFrame(answers, columns=list("abcde"))
    return frame.assign(wt=np.where(classes == 0, 1.5, 0.75) * rng.uniform(0.8, 1.2, n_rows))


FRAME = planted(150, 4).drop(columns="wt")


def fit(**options: Any) -> Any:
    return pb.LatentClassAnalysis(2, method="em", random_state=0).fit(FRAME, **options)


@pytest.mark.parametrize("method", ["em", "bayes"])
@pytest.mark.parametrize("weights", ["column", "array"])
def test_criteria_know_the_weights_of_the_fit(method: str, weights: str, tmp_path: Path) -> None:
    frame = planted(200, 0).assign(wt=lambda x: np.arange(len(x)) % 3)
    rows, given = (frame, "wt") if weights == "column" else (frame.drop(columns="wt"), frame.wt)
    fit = pb.LatentClassAnalysis(2, method=method, random_state=0).fit(rows, weights=given)
    repeated = frame.loc[frame.index.repeat(frame.wt)].drop(columns="wt")
    alike = pb.LatentClassAnalysis(2, method=method, random_state=0).fit(repeated)
    fit.save(tmp_path / "weighted.safetensors")
    for one in (fit, pb.load(tmp_path / "weighted.safetensors")):
        for name in ("bic", "aic", "score", "entropy"):
            found = getattr(one, name)(rows)
            assert found == pytest.approx(getattr(alike, name)(repeated), rel=1e-6), name
            assert found != pytest.approx(getattr(one, name)(rows, weights=np.ones(200)), rel=1e-4)
    assert "count as often as their weights say" in " ".join(pb.cite(fit).methods.split())
    if weights == "array":
        with pytest.raises(InvalidArgumentError, match="X has other rows: give their weights"):
            fit.bic(rows[::-1])
    # Memberships of other rows need no weights.
    assert fit.predict_proba(rows[:5].drop(columns="wt", errors="ignore")).shape == (5, 2)


def test_sampling_weights_give_a_pseudo_posterior() -> None:
    frame = planted(800, 1)
    classes = pb.LatentClassAnalysis([1, 2], random_state=0).fit(frame, weights="wt")
    assert classes.n_classes_ == 2
    assert np.isnan(classes.log_evidence_)
    plain = pb.LatentClassAnalysis(2, random_state=0).fit(frame.drop(columns="wt"))
    point = pb.LatentClassAnalysis(2, method="em", random_state=0).fit(frame, weights="wt")
    # The classes have 60 and 40 % of the population, and 43 and 57 % of the sample.
    assert classes.class_weights_ == pytest.approx([0.6, 0.4], abs=0.05)
    assert plain.class_weights_ == pytest.approx([0.8 / 1.4, 0.6 / 1.4], abs=0.05)
    assert classes.class_weights_ == pytest.approx(point.class_weights_, abs=0.01)
    table, errors = (one.profiles().to_frame() for one in (classes, point))
    wide, narrow = table.upper - table.lower, errors.upper - errors.lower
    # Kish's size is right where the weights are independent of the answers, the sandwich always.
    assert 0.75 < (wide / narrow).median() < 1.35
    kish = frame.wt.sum() ** 2 / (frame.wt**2).sum()
    text = " ".join(pb.cite(classes).methods.split())
    assert f"sampling weights (column 'wt'), worth {kish:,.0f} rows (Kish)" in text
    n_rows = (classes.bic(frame) + 2 * classes.log_likelihood_) / classes.n_parameters_
    assert np.exp(n_rows) == pytest.approx(kish)


@pytest.mark.slow
def test_sampling_weights_and_a_formula() -> None:
    rng = np.random.default_rng(2)
    age = rng.normal(size=700)
    classes = (rng.random(700) < special.expit(0.3 + 1.0 * age)).astype(int)
    frame = pd.DataFrame((rng.random((700, 5)) < YES[classes]).astype(int), columns=list("abcde"))
    frame = frame.assign(age=age)
    # Rows of half the weight undo their doubling; without it, such weights distort the slope.
    is_doubled = (classes == 1) & (age > 0)
    twice = frame.loc[frame.index.repeat(1 + is_doubled)]
    undone = twice.assign(wt=np.where(twice.index.duplicated(keep=False), 0.25, 0.5))
    distorted = frame.assign(wt=np.where(is_doubled, 0.6, 1.2))
    fits = [
        pb.LatentClassAnalysis(2, formula="~ age", random_state=0).fit(rows, weights=given)
        for rows, given in ((frame, None), (undone, "wt"), (distorted, "wt"))
    ]
    plain, same, lower = (abs(one.coefficients_[1, 1]) for one in fits)
    error = fits[0].coefficient_draws_[:, 1, 1].std()
    assert same == pytest.approx(plain, abs=0.5 * error)
    assert lower < plain - error


def test_errors_are_those_of_differences() -> None:
    """Bread and meat against derivatives of the log-likelihood by finite differences."""
    frame = planted(300, 3)
    frame.iloc[::7, 1] = np.nan
    point = pb.LatentClassAnalysis(2, method="em", random_state=0).fit(frame, weights="wt")
    answers = read_answers(frame, None, "wt")
    tables = point._tables
    shares = [tables.weights[0, 1:], *(table[0, 1] for table in tables.items)]
    base = special.logit(np.concatenate(shares))

    def ln_rows(free: Any) -> Any:
        p = special.expit(free)
        items = tuple(np.stack([1 - q, q])[None] for q in p[1:].reshape(5, 2))
        return ClassTables(np.array([[1 - p[0], p[0]]]), items).ln_rows(answers.levels)

    step = 1e-4
    moves = np.eye(len(base)) * step
    scores = np.array([(ln_rows(base + m) - ln_rows(base - m)) / (2 * step) for m in moves]).T

    def value(move: Any) -> Any:
        return answers.weights @ ln_rows(base + move)

    bread = [
        [value(m - o) + value(o - m) - value(m + o) - value(-m - o) for o in moves] for m in moves
    ]
    bread = -np.array(bread) / (4 * step**2)
    meat = scores.T @ (scores * answers.weights[:, None] ** 2)
    errors = np.sqrt(np.diag(np.linalg.inv(bread) @ meat @ np.linalg.inv(bread)))
    found = logit_errors(answers, tables)
    mine = np.concatenate([found.weights[0, 1:], *(t[0, 1] for t in found.items)])
    assert mine == pytest.approx(errors, rel=1e-3)
    row = point.profiles(0.9).row(1)
    middle = special.logit(row["probability"])
    assert special.logit(row["upper"]) - middle == pytest.approx(1.6448536 * errors[0], rel=1e-3)


def test_errors_know_clusters_and_strata(tmp_path: Path) -> None:
    frame = planted(200, 5).drop(columns="wt").assign(place=range(200))
    estimator = pb.LatentClassAnalysis(2, method="em", items=list("abcde"), random_state=0)
    single = estimator.fit(frame)
    errors = logit_errors(read_answers(frame, list("abcde"), None), single._tables)
    # A cluster of two equal rows tells as much as one.
    twice = pd.concat([frame, frame], ignore_index=True)
    double = clone(estimator).fit(twice, clusters="place")
    for one, other in zip(double._errors.items, errors.items, strict=True):
        np.testing.assert_allclose(one, other * np.sqrt(200 / 199), rtol=1e-4)
    double.save(tmp_path / "double.safetensors")
    text = " ".join(pb.cite(pb.load(tmp_path / "double.safetensors")).methods.split())
    assert "Errors are those of 200 clusters in 1 strata." in text
    # One class: the share of a stratified sample of weighted clusters.
    rng = np.random.default_rng(0)
    cluster, wt = np.repeat(np.arange(50), 4), rng.uniform(0.5, 1.5, 200)
    yes = frame.a.to_numpy()
    one = pb.LatentClassAnalysis(1, method="em", items=["a", "b"], random_state=0).fit(
        frame, weights=wt, clusters=cluster, strata=cluster % 2
    )
    share = np.average(yes, weights=wt)
    sums = np.bincount(cluster, wt * (yes - share))
    variance = sum(25 * sums[at::2].var(ddof=1) for at in (0, 1)) / wt.sum() ** 2
    found = one._errors.items[0][0, 1, 0] * share * (1 - share)
    assert found == pytest.approx(np.sqrt(variance), rel=1e-4)


def test_errors_know_replicate_weights() -> None:
    frame = planted(200, 5).drop(columns="wt")
    wt = np.tile(np.random.default_rng(0).uniform(0.5, 1.5, 10), 20)
    cluster = np.repeat(np.arange(20), 10)
    others = cluster[:, None] != np.arange(20)
    left = wt[:, None] * others * 20 / 19
    point = pb.LatentClassAnalysis(2, method="em", items=list("abcde"), random_state=0)
    errors = clone(point).fit(frame, weights=wt, clusters=cluster)._errors.items
    named = frame.assign(**{f"r{n}": column for n, column in enumerate(left.T)})
    columns = [f"r{n}" for n in range(20)]
    fits = [
        clone(point)
        .set_params(items=items)
        .fit(rows, weights=wt, replicate_weights=replicates, replicate_method=method)
        for items, rows, replicates, method in (
            (point.items, frame, left, "jackknife"),
            (point.items, frame, left * np.arange(1, 21), "jackknife"),
            (None, named, columns, 19 / 20),
            (None, named, np.array(columns), [19 / 20] * 20),
            (None, named, pd.Index(columns), "jackknife"),
        )
    ]
    # A jackknife of one Newton step is the linearisation, whatever the scales of the replicates.
    for fit in fits:
        np.testing.assert_allclose(fit._errors.items, errors, rtol=1e-4)
    text = " ".join(pb.cite(fits[0]).methods.split())
    assert "Errors are those of 20 replicate weights (jackknife)." in text
    # Halves of ten pairs of clusters: all their differences, whose squares add up.
    signs = np.repeat(linalg.hadamard(16)[1:11], 2, axis=0) * np.tile([1, -1], 10)[:, None]
    halves = wt[:, None] * (1 + signs[cluster])
    found = clone(point).fit(frame, weights=wt, replicate_weights=halves, replicate_method="brr")
    strata = clone(point).fit(frame, weights=wt, clusters=cluster, strata=cluster // 2)
    np.testing.assert_allclose(found._errors.items, strata._errors.items, rtol=1e-4)
    # Fits of all replicates, each from the start, change the estimates by as much.
    refits = [clone(point).fit(frame, weights=w)._tables.items[0][0, 1] for w in left.T]
    logits = special.logit(refits)
    spread = np.sqrt(19 * logits.var(axis=0))
    np.testing.assert_allclose(spread, np.array(errors[0])[0, 1], rtol=0.2)


def test_probabilities_of_0_have_no_error() -> None:
    answers = np.repeat([[0, 0, 0], [1, 1, 1], [0, 1, 1]], [30, 20, 10], axis=0)
    fitted = pb.LatentClassAnalysis(2, method="em", random_state=0).fit(answers)
    table = fitted.profiles().to_frame()
    at_edge = (table.probability < 1e-6) | (table.probability > 1 - 1e-6)
    assert at_edge.any()
    assert table.lower.isna().equals(at_edge)


def test_values_that_are_no_answers(tmp_path: Path) -> None:
    frame = planted(80, 4).drop(columns="wt").assign(age=np.linspace(20, 70, 80))
    hidden = frame.copy()
    hidden.loc[::5, "b"] = np.nan
    hidden["c"] = pd.Categorical(np.where(frame.c == 1, "yes", "no"), ["no", "yes", "No answer"])
    coded = hidden.fillna({"b": 9}).astype({"b": int})
    coded.loc[::4, "c"], hidden.loc[::4, "c"] = "No answer", None
    hidden["c"] = hidden.c.cat.remove_categories("No answer")
    fits = [
        pb.LatentClassAnalysis(2, formula="~ age", random_state=0).fit(rows, missing=missing)
        for rows, missing in ((coded, [9, "No answer", 99]), (hidden, []))
    ]
    np.testing.assert_array_equal(*(fit.class_weights_ for fit in fits))
    fits[0].save(tmp_path / "coded.safetensors")
    again = pb.load(tmp_path / "coded.safetensors")
    np.testing.assert_array_equal(again.predict_proba(coded), fits[1].predict_proba(hidden))


@pytest.mark.filterwarnings("ignore:.* are whole numbers")
def test_weights_in_millionths_are_refused_with_the_call_that_takes_them():
    frame = pd.DataFrame({"a": ["x", "y"] * 20, "b": ["x", "x", "y", "y"] * 10})
    frame["v005"] = np.arange(40) * 10**9 + 10**9
    classes = pb.LatentClassAnalysis(2, random_state=0)
    with pytest.raises(PolyabayesError, match="the counts are the weights") as caught:
        classes.fit(frame, weights="v005")
    code = str(caught.value).partition("as of DHS, use ")[2].replace("1e6", "1e9")
    assert eval(code, {"classes": classes, "frame": frame}).n_classes_ == 2


def test_whole_weights_of_rows_alike_are_said_to_count_respondents():
    rows = pd.DataFrame({"a": [*"xxyy"] * 10, "b": [*"xyxy"] * 10})
    with pytest.warns(DataWarning, match="36 rows have the answers of others, and weights"):
        pb.LatentClassAnalysis(1, method="em").fit(rows, weights=np.arange(40) + 200)
