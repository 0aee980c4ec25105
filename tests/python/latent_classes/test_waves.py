"""Latent transition analysis: evidences by enumeration, planted chains, missing waves, refusals."""

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import special

import polyabayes as pb
from polyabayes.allocation.inference.draws import ln_table
from polyabayes.exceptions import DataWarning, PolyabayesError
from polyabayes.latent_classes.chains import ChainPrior, Waves, sampled

TRANSITIONS = np.array([[0.85, 0.15], [0.3, 0.7]])
YES = np.array([[0.9, 0.8, 0.85, 0.2], [0.2, 0.1, 0.3, 0.8]])
WAVES = [[f"{item}{wave}" for item in "abcd"] for wave in (1, 2)]
ITEMS = [*WAVES[0], *WAVES[1]]


def planted(n_rows: int, seed: int) -> tuple[pd.DataFrame, Any]:
    """Two waves of four items, and the classes of the rows in them."""
    rng = np.random.default_rng([seed, 9])
    first = rng.choice(2, n_rows, p=[0.6, 0.4])
    then = (rng.random(n_rows) < TRANSITIONS[first, 1]).astype(int)
    parts = [(rng.random((n_rows, 4)) < YES[of]).astype(int) for of in (first, then)]
    frame = pd.DataFrame(np.hstack(parts), columns=[name for wave in WAVES for name in wave])
    return frame, np.stack([first, then], axis=1)


@pytest.mark.parametrize(("is_invariant", "is_stationary"), [(True, False), (False, True)])
def test_evidences_are_those_of_all_paths(is_invariant: bool, is_stationary: bool) -> None:
    # Three waves of two items; -1 is missing.
    rows = np.array(
        [[[0, 0], [0, 1], [-1, -1]], [[1, 1], [1, -1], [0, 0]], [[0, 1], [1, 1], [1, 1]]]
    )
    prior = ChainPrior(1.0, 0.5, (0.5, 2.0))
    slots = np.tile([0, 1], (3, 1)) + (0 if is_invariant else 2) * np.arange(3)[:, None]
    n_tables = slots.max() + 1
    terms = []
    for alpha in prior.items:
        for path in itertools.product(range(2), repeat=9):
            of = np.reshape(path, (3, 3))
            moves, answers = np.zeros((2, 2, 2)), np.zeros((n_tables, 2, 2))
            for row, wave in itertools.product(range(3), range(3)):
                if wave:
                    moves[0 if is_stationary else wave - 1, of[row, wave - 1], of[row, wave]] += 1
                for slot, answer in zip(slots[wave], rows[row, wave], strict=True):
                    if answer >= 0:
                        answers[slot, of[row, wave], answer] += 1
            tables = [(np.bincount(of[:, 0], minlength=2), prior.weights)]
            tables += [(table, prior.transitions) for table in moves]
            tables += [(table, alpha) for table in answers]
            terms.append(sum(ln_table(table.T[None], own)[0] for table, own in tables))
    exact = special.logsumexp(terms) - np.log(2)
    waves = Waves.of(rows, slots, (2,) * n_tables, is_stationary)
    seeds = map(np.random.SeedSequence, range(60))
    ratios = np.exp([sampled(waves, prior, 2, 24, seed)[0] - exact for seed in seeds])
    assert ratios.mean() == pytest.approx(1, abs=4 * ratios.std() / np.sqrt(60))
    assert ratios.std() < 0.5


@pytest.mark.slow
def test_planted_chains_are_found(tmp_path: Path) -> None:
    frame, classes = planted(200, 4)
    model = pb.LatentTransitionAnalysis([1, 2], random_state=0).fit(frame, waves=WAVES)
    assert model.n_classes_ == 2
    assert model.choice_.probabilities[2] > 0.9
    assert model.log_evidence_ == pytest.approx(model.choice_.rows[1]["log_evidence"])
    table = model.transitions(0.99).to_frame()
    assert table[["wave", "from", "to"]].to_numpy().tolist() == [
        [0, *pair] for pair in itertools.product(range(2), repeat=2)
    ]
    assert ((table.lower < TRANSITIONS.ravel()) & (TRANSITIONS.ravel() < table.upper)).all()
    assert (table.upper - table.lower).max() < 0.5
    assert model.transition_probabilities_.sum(axis=2) == pytest.approx(1.0)
    assert model.transition_probabilities_.ravel() == pytest.approx(table.probability.to_numpy())
    profiles = model.profiles(0.99).to_frame()
    for item, yes in zip(WAVES[0], YES.T, strict=True):
        rows = profiles[(profiles.item == item) & (profiles.answer == "1")]
        assert ((rows.lower < yes) & (yes < rows.upper)).all()
        assert model.item_probabilities_[item]["1"].to_numpy() == pytest.approx(rows.probability)
    assert (model.predict(frame) == classes).mean() > 0.85
    members = model.predict_proba(frame)
    assert members.sum(axis=2) == pytest.approx(1.0)
    ax = pb.plotting.plot_transitions(model, 0.99)
    for row, text in zip(table.itertuples(), ax.texts, strict=True):
        assert text.get_position() == (row.to, row._2)
        told = f"{row.probability:.2f}\n{row.lower:.2f} to {row.upper:.2f}"
        assert text.get_text() == told
    model.save(tmp_path / "waves.safetensors")
    loaded = pb.load(tmp_path / "waves.safetensors")
    np.testing.assert_array_equal(loaded.predict_proba(frame), members)
    assert loaded.choice_.rows == model.choice_.rows
    assert loaded.profiles().to_frame().equals(model.profiles().to_frame())
    assert pb.cite(loaded).methods == pb.cite(model).methods
    text = " ".join(pb.cite(model).methods.split())
    assert "latent transition analysis of 2 waves of 4 items, with the same answers" in text
    assert "Of 1 to 2 classes, 2 have a posterior probability" in text


def test_the_chain_tells_of_missing_waves() -> None:
    frame, _ = planted(150, 1)
    gone = frame.copy().astype("Int64")
    gone.loc[::3, WAVES[1]] = pd.NA
    coded = gone.fillna(9)
    fits = [
        pb.LatentTransitionAnalysis(2, random_state=0, n_jobs=n_jobs).fit(
            rows, waves=WAVES, missing=missing
        )
        for rows, missing, n_jobs in ((gone, [], 1), (coded, [9], 2))
    ]
    np.testing.assert_array_equal(*(fit.transition_probabilities_ for fit in fits))
    shares = fits[0].predict_proba(gone)
    np.testing.assert_array_equal(shares, fits[1].predict_proba(coded))
    # Of a wave without answers, the transitions from the class before it are known.
    expected = shares[::3, 0] @ fits[0].transition_probabilities_[0]
    assert shares[::3, 1] == pytest.approx(expected, abs=0.02)
    assert fits[0].transition_probabilities_[0] == pytest.approx(TRANSITIONS, abs=0.15)


@pytest.mark.slow
def test_the_first_class_depends_on_covariates(tmp_path: Path) -> None:
    rng = np.random.default_rng(7)
    age = rng.normal(45, 15, 600)
    first = (rng.random(600) < special.expit(-0.5 + 0.06 * (age - 45))).astype(int)
    then = (rng.random(600) < TRANSITIONS[first, 1]).astype(int)
    parts = [(rng.random((600, 4)) < YES[of]).astype(int) for of in (first, then)]
    frame = pd.DataFrame(np.hstack(parts), columns=ITEMS).assign(age=age)
    # Sequences of one wave.
    frame.loc[::4, WAVES[1]] = np.nan
    model = pb.LatentTransitionAnalysis(2, formula="~ age", random_state=0)
    model.fit(frame, waves=WAVES)
    table = model.effects(0.99).to_frame()
    truth = np.array([-0.5 - 0.06 * 45, 0.06]) * (1 if model.class_weights_[0] > 0.5 else -1)
    assert ((table.lower < truth) & (truth < table.upper)).all()
    assert table.lower[1] > 0
    moves = model.transitions(0.99).to_frame()
    assert ((moves.lower < TRANSITIONS.ravel()) & (TRANSITIONS.ravel() < moves.upper)).all()
    assert model.class_weights_ == pytest.approx(np.bincount(first) / 600, abs=0.05)
    # A row without answers has the first class that its covariates give.
    empty = frame[:5].assign(**dict.fromkeys(ITEMS))
    odds = special.logit(model.predict_proba(empty)[:, 0, 1])
    design = np.stack([np.ones(5), frame.age[:5]], axis=1)
    assert odds == pytest.approx(design @ model.coefficients_[1], abs=0.05)
    given = model.predict_proba(frame.drop(columns="age"), covariates=frame[["age"]])
    model.save(tmp_path / "waves.safetensors")
    again = pb.load(tmp_path / "waves.safetensors")
    np.testing.assert_array_equal(again.predict_proba(frame), given)
    assert "a regression on covariates (~ age)" in " ".join(pb.cite(again).methods.split())
    with pytest.raises(PolyabayesError, match="no column 'age'"):
        model.predict(frame.drop(columns="age"))


def test_weights_repeat_rows_and_waves_may_differ() -> None:
    frame, _ = planted(30, 2)
    frame[WAVES[1]] = frame[WAVES[1]].replace({0: "no", 1: "yes"})
    weights = np.arange(30) % 3
    options: Any = {"is_invariant": False, "is_stationary": True, "random_state": 0}
    fit = pb.LatentTransitionAnalysis(2, **options).fit(frame, waves=WAVES, weights=weights)
    repeated = frame.loc[np.repeat(frame.index, weights)]
    again = pb.LatentTransitionAnalysis(2, **options).fit(repeated, waves=WAVES)
    assert fit.log_evidence_ == again.log_evidence_
    assert list(fit.item_probabilities_) == [name for wave in WAVES for name in wave]
    assert fit.item_probabilities_["a2"].columns.tolist() == ["no", "yes"]
    assert fit.predict_proba(frame).shape == (30, 2, 2)


@pytest.mark.slow
def test_sampling_weights_give_a_pseudo_posterior() -> None:
    frame, classes = planted(500, 5)
    # Those who begin in the second class are twice as likely to be in the sample.
    wt = np.where(classes[:, 0] == 1, 0.7, 1.4)
    model = pb.LatentTransitionAnalysis(2, random_state=0).fit(frame, waves=WAVES, weights=wt)
    share = np.average(classes[:, 0] == 0, weights=wt)
    assert model.class_weights_[0] == pytest.approx(share, abs=0.04)
    plain = pb.LatentTransitionAnalysis(2, random_state=0).fit(frame, waves=WAVES)
    assert plain.class_weights_[0] < share - 0.1
    text = " ".join(pb.cite(model).methods.split())
    assert f"worth {wt.sum() ** 2 / (wt**2).sum():,.0f} rows (Kish)" in text
    assert np.isnan(model.log_evidence_)


FRAME, _ = planted(30, 3)


def fit(waves: Any, rows: Any = FRAME, **options: Any) -> Any:
    return pb.LatentTransitionAnalysis(1, random_state=0).fit(rows, waves=waves, **options)


def test_answers_that_differ_between_waves_are_a_warning() -> None:
    rows = FRAME.assign(**FRAME[WAVES[1]].replace({0: "no", 1: "yes"}))
    same = rows.assign(**FRAME[WAVES[0]].replace({0: "no", 1: "YES"}))
    for frame, told in ((rows, "'0', '1', 'no', 'yes'"), (same, "'YES', 'no', 'yes'")):
        with pytest.warns(DataWarning, match=f"have the answers {told}.*replace"):
            fit(WAVES, frame)


def test_damaged_files_are_refused(tmp_path: Path) -> None:
    known = fit(WAVES)
    known._chains.weights[3] = 0.5
    known.save(tmp_path / "damaged.safetensors")
    with pytest.raises(PolyabayesError, match="does not hold a complete model"):
        pb.load(tmp_path / "damaged.safetensors")
