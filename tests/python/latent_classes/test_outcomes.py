"""Outcomes by class: coverage on planted sets, limits, weights and refusals."""

from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import polyabayes as pb

YES = np.array([[0.8, 0.75, 0.8, 0.7, 0.75], [0.25, 0.2, 0.3, 0.25, 0.2]])
MEANS, SHARES = np.array([0.0, 1.5]), np.array([0.2, 0.7])
METHODS = ("draws", "bch", "three-step")


def planted(n_rows: int, seed: int) -> tuple[Any, Any, Any]:
    """Answers, and a numeric and a categorical outcome of two classes."""
    rng = np.random.default_rng([seed, 8])
    classes = rng.choice(2, n_rows, p=[0.6, 0.4])
    answers = (rng.random((n_rows, 5)) < YES[classes]).astype(int)
    numbers = rng.normal(MEANS[classes], np.array([1.0, 0.6])[classes])
    return answers, numbers, np.where(rng.random(n_rows) < SHARES[classes], "yes", "no")


ROWS, NUMBERS, _ = planted(60, 60)


@cache
def fitted(method: str) -> pb.LatentClassAnalysis:
    return pb.LatentClassAnalysis(2, method=method, random_state=0).fit(ROWS)


@pytest.mark.slow
def test_intervals_cover_what_was_planted() -> None:
    hits, misses = dict.fromkeys(METHODS, 0), {name: [] for name in (*METHODS, "naive")}
    for seed in range(14):
        answers, numbers, votes = planted(400, seed)
        fit = pb.LatentClassAnalysis(2, prior="flat", random_state=0).fit(answers)
        # The first class is that of more answers 1.
        order = np.argsort(-fit._tables.mean().items[0][0, 1])
        assert fit.entropy(answers) < 0.75
        for name in METHODS:
            for y, truth in ((numbers, MEANS), (votes, SHARES)):
                found = fit.outcome(answers, y, method=name)
                parts = found.lower, found.values, found.upper
                lower, value, upper = (table[order, -1] for table in parts)
                hits[name] += int(((lower < truth) & (truth < upper)).sum())
                misses[name].append(value - truth)
        means = [numbers[fit.predict(answers) == k].mean() for k in order]
        misses["naive"].append(np.array(means) - MEANS)
    for name in METHODS:
        # One in a thousand valid intervals of 95 % are fewer.
        assert hits[name] >= stats.binom.ppf(0.001, 4 * 14, 0.95), name
        errors = np.array(misses[name])
        assert (abs(errors.mean(axis=0)) < 4 * errors.std(axis=0) / np.sqrt(len(errors))).all()
    # What the assignment alone gives is nearer to the mean of all.
    assert np.array(misses["naive"]).mean(axis=0)[0] > 0.05


def test_certain_members_have_the_means_of_their_rows() -> None:
    rng = np.random.default_rng(0)
    answers = np.repeat([[0] * 12, [1] * 12], [60, 40], axis=0)
    numbers = rng.normal(size=100)
    fit = pb.LatentClassAnalysis(2, prior="flat", random_state=0).fit(answers)
    for name in METHODS:
        found = fit.outcome(answers, numbers, method=name, level=0.9)
        for k, rows in enumerate((numbers[:60], numbers[60:])):
            error = rows.std(ddof=1) / np.sqrt(len(rows))
            assert found.values[k, 0] == pytest.approx(rows.mean(), abs=0.15 * error)
            width = found.upper[k, 0] - found.lower[k, 0]
            assert width == pytest.approx(2 * 1.66 * error, rel=0.12)


@pytest.mark.parametrize("method", ["bch", "three-step"])
def test_weights_repeat_rows_and_missing_outcomes_are_left_out(method: str) -> None:
    answers, numbers, votes = planted(200, 50)
    weights = np.arange(200) % 3
    frame = pd.DataFrame(answers, columns=list("abcde")).assign(wt=weights, vote=votes)
    fit = pb.LatentClassAnalysis(2, items=list("abcde"), method="em", random_state=0)
    fit.fit(frame, weights="wt")
    again = np.repeat(np.arange(200), weights)
    for y in (numbers, frame.vote):
        found = fit.outcome(frame, y, method=method)
        options = {"method": method, "weights": np.ones(len(again))}
        repeated = fit.outcome(frame.iloc[again], np.asarray(y)[again], **options)
        np.testing.assert_allclose(found.values, repeated.values, rtol=1e-6)
    assert fit.outcome(frame, "vote").method == "three-step"
    gaps = frame.vote.where(np.arange(200) % 4 > 0)
    kept = fit.outcome(frame[gaps.notna()], gaps.dropna(), method=method)
    found = fit.outcome(frame, gaps, method=method)
    np.testing.assert_array_equal(found.values, kept.values)
    text = " ".join(pb.cite(found).methods.split())
    assert f"of {kept.n_rows} rows in 2 classes, are by " in text
    assert found.to_frame().columns.tolist() == ["class", "answer", "probability", "lower", "upper"]
    assert found.to_frame().answer.tolist() == ["no", "yes"] * 2
