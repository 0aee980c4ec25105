"""Covariates of class membership: the sampler, coefficients, doors, files and refusals."""

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import polyabayes as pb
from polyabayes.latent_classes.chains import ChainPrior, Chains, Waves
from polyabayes.latent_classes.membership import sweeps

ITEMS = list("abcdef")
# Ln of the odds of class 1 against class 0: intercept, age, and party r against l.
PLANTED = np.array([-2.2, 0.04, 1.0])


def planted(n_rows: int, seed: int) -> tuple[pd.DataFrame, Any]:
    """Rows of two classes that depend on age and party, and their classes."""
    rng = np.random.default_rng(seed)
    age, party = rng.normal(45, 15, n_rows), rng.choice(["l", "r"], n_rows)
    ln_odds = np.stack([np.ones(n_rows), age, party == "r"], axis=1) @ PLANTED
    classes = (rng.random(n_rows) < 1 / (1 + np.exp(-ln_odds))).astype(int)
    yes = np.array([[0.8, 0.7, 0.2, 0.3, 0.8, 0.2], [0.2, 0.3, 0.8, 0.8, 0.3, 0.7]])
    frame = pd.DataFrame((rng.random((n_rows, 6)) < yes[classes]).astype(int), columns=ITEMS)
    return frame.assign(age=age, party=party), classes


FRAME, _ = planted(60, 4)
ANSWERS, AGE = FRAME[ITEMS], FRAME[["age"]]
fit = pb.LatentClassAnalysis(2, random_state=0).fit
PARTY = FRAME[[*ITEMS, "party"]]
BY_PARTY = cache(lambda: pb.LatentClassAnalysis(2, formula="~ party", random_state=0).fit(PARTY))


@pytest.mark.slow
def test_draws_are_calibrated() -> None:
    """Ranks of what data are simulated from among draws are even (Talts et al. 2018)."""
    n_rows, n_items, n_data, n_draws = 40, 4, 60, 9
    ranks = np.empty((n_data, 3))
    for data in range(n_data):
        rng = np.random.default_rng([data, 5])
        values = rng.choice([-1.0, 0.0, 1.0], size=n_rows)
        covariates = np.stack([np.ones(n_rows), values], axis=1)
        spread = np.sqrt(0.5 / rng.standard_gamma(1.0))
        ln_sizes = np.log(rng.standard_gamma(np.ones(2)))
        true = np.stack([ln_sizes, rng.normal(0, spread, 2)], axis=1)
        weights = np.exp(covariates @ true.T)
        of = (rng.random(n_rows) * weights.sum(axis=1) > weights[:, 0]).astype(int)
        tables = rng.dirichlet(np.ones(2), size=(n_items, 2))
        levels = (rng.random((n_rows, n_items)) > tables[:, of, 0].T).astype(int)
        levels[rng.random(levels.shape) < 0.1] = -1
        waves = Waves.of(levels[:, None], np.arange(4)[None], (2,) * 4, False, covariates)
        table = np.array([[[0.6, 0.4], [0.4, 0.6]]])
        start = Chains(np.full((1, 2), 0.5), np.zeros((1, 0, 2, 2)), (table,) * 4)
        chain = sweeps(start, waves, ChainPrior(1.0, 1.0, [1.0]), rng)

        # What no numbering of the classes changes.
        def told(coefficients: Any, classes: Any) -> list[float]:
            apart = coefficients[0] - coefficients[1]
            return [abs(apart[0]), abs(apart[1]), abs(classes.mean() - 0.5) + 1e-9 * apart[1] ** 2]

        mine, below = told(true, of), np.zeros(3)
        for sweep, (counts, drawn) in zip(range(30 + 12 * n_draws), chain, strict=False):
            if sweep >= 30 and (sweep - 29) % 12 == 0:
                below += np.array(told(drawn.coefficients[0], counts.classes[0])) < mine
        ranks[data] = below
    for column in ranks.T:
        counts = np.bincount((column // 2).astype(int), minlength=5)
        assert stats.chisquare(counts).pvalue > 0.005, counts


def test_a_row_counts_as_often_as_its_weight_says() -> None:
    frame, _ = planted(40, 9)
    weights = np.arange(40) % 3
    frame.loc[0, "age"] = 1e5
    fit = pb.LatentClassAnalysis(2, items=ITEMS, formula="~ age", random_state=0).fit
    weighted = fit(frame, weights=weights).coefficient_draws_
    repeated = fit(frame.loc[np.repeat(frame.index, weights)]).coefficient_draws_
    np.testing.assert_array_equal(weighted, repeated)


@pytest.mark.slow
def test_coefficients_hold_what_was_planted() -> None:
    frame, classes = planted(1500, 1)
    found = pb.LatentClassAnalysis(2, formula="~ age + party", random_state=0).fit(frame)
    assert found.feature_names_in_.tolist() == ITEMS
    assert found.covariate_names_ == ["Intercept", "age", "party[T.r]"]
    assert np.isnan(found.log_evidence_)
    assert found.n_parameters_ == 3 + 2 * 6
    is_larger = classes.mean() > 0.5
    table = found.effects(0.99).to_frame()
    truth = -PLANTED if is_larger else PLANTED
    assert ((table.lower < truth) & (truth < table.upper)).all()
    assert table.coefficient.to_numpy() == pytest.approx(found.coefficients_[1])


def test_without_an_effect_memberships_are_those_of_no_covariates() -> None:
    frame, _ = planted(400, 2)
    shuffled = frame[["age"]].sample(frac=1, random_state=0, ignore_index=True)
    plain = pb.LatentClassAnalysis(2, random_state=0).fit(frame[ITEMS])
    found = pb.LatentClassAnalysis(2, random_state=0).fit(frame[ITEMS], covariates=shuffled)
    apart = found.predict_proba(frame[ITEMS], covariates=shuffled) - plain.predict_proba(frame)
    assert abs(apart).mean() < 0.02
    assert found.class_weights_ == pytest.approx(plain.class_weights_, abs=0.02)
    low, high = found.effects(0.99).row(1)["lower"], found.effects(0.99).row(1)["upper"]
    assert low < 0 < high


def test_doors_files_and_threads_give_the_same(tmp_path: Path) -> None:
    frame, classes = planted(300, 3)
    found = pb.LatentClassAnalysis(2, formula="~ age + party", random_state=0).fit(frame)
    other = pb.LatentClassAnalysis(2, random_state=0, n_jobs=1)
    other.fit(frame[ITEMS], covariates=frame[["age", "party"]])
    np.testing.assert_array_equal(found.coefficient_draws_, other.coefficient_draws_)
    shares = found.predict_proba(frame)
    given = {"age": frame.age.to_numpy(), "party": frame.party.to_numpy()}
    np.testing.assert_array_equal(shares, other.predict_proba(frame[ITEMS], covariates=given))
    hits = np.mean(found.predict(frame) == classes)
    assert max(hits, 1 - hits) > 0.85
    found.save(tmp_path / "classes.safetensors")
    loaded = pb.load(tmp_path / "classes.safetensors")
    np.testing.assert_array_equal(loaded.predict_proba(frame), shares)
    np.testing.assert_array_equal(loaded.coefficient_draws_, found.coefficient_draws_)
    assert loaded.score(frame) == found.score(frame)
    assert found.score(frame) == pytest.approx(found.log_likelihood_ / len(frame), rel=1e-14)
    assert found.residuals(frame, n_samples=50).p_value > 0.01
    rows, of = found.sample(2, covariates=frame[:5], random_state=1)
    assert rows.shape == (10, 6)
    assert of.shape == (10,)
