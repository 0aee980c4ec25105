"""Items that do not tell the classes apart are found, and do not multiply the classes."""

import itertools
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import special

import polyabayes as pb
from polyabayes.latent_classes.discrimination import ItemEvidence

ROWS = np.array([(0, 0, 1), (0, 0, -1), (0, 1, 1), (1, 1, 0), (1, -1, 0), (1, 1, 0), (0, 0, 1)])
PARAMETERS = 4.0 ** np.arange(-1, 7)
# Three items tell the rows apart without error, one does not.
TELLING = np.array([(k, k, k, a) for k in (0, 1) for a in (0, 1, 1) * 2])
TELLING[2, 0] = TELLING[0, 3] = TELLING[7, 3] = -1


def ln_answers(counts, alpha):
    """Ln of the probability of counts of two answers, the last axis, under Dirichlet profiles."""
    sums = counts.sum(axis=-1)
    found = special.gammaln(counts + alpha).sum(axis=-1) - 2 * special.gammaln(alpha)
    return found + special.gammaln(2 * alpha) - special.gammaln(sums + 2 * alpha)


def ln_mean(values):
    """Ln of the mean of exp over the first axis."""
    return special.logsumexp(values, axis=0) - np.log(len(values))


def allocations(rows, n_classes):
    """Ln of the prior of each allocation of rows, and counts (items, classes, answers)."""
    for of in itertools.product(range(n_classes), repeat=len(rows)):
        counts = np.zeros((rows.shape[1], n_classes, 2))
        for row, k in zip(rows, of, strict=True):
            for item in np.flatnonzero(row >= 0):
                counts[item, k, row[item]] += 1
        yield np.bincount(of, minlength=n_classes), counts


def test_bayes_factors_are_those_of_all_allocations() -> None:
    ln_joint, ln_alike = [], []
    for sizes, counts in allocations(ROWS, 2):
        given = ln_answers(counts, 1.0).sum(axis=1)
        ln_joint.append(special.gammaln(sizes + 1.0).sum() + given.sum())
        ln_alike.append(ln_mean([ln_answers(counts.sum(axis=1), a) for a in PARAMETERS]) - given)
    posterior = special.softmax(ln_joint)
    answers = pd.DataFrame(np.where(ROWS < 0, np.nan, ROWS), columns=["a", "b", "c"])
    classes = pb.LatentClassAnalysis(2, prior="flat", random_state=0).fit(answers)
    found = ItemEvidence.of(classes._counts)
    told = [*np.exp(-found.log_bayes_factors), *found.probabilities]
    # Sets of two and of three items have equal probabilities, and there are three of two.
    ratios = np.hstack([np.exp(ln_alike), special.expit(np.log(3) - np.array(ln_alike))])
    exact = posterior @ ratios
    # Draws are hardly correlated; 100 of them are looked at.
    errors = np.sqrt(posterior @ (ratios - exact) ** 2 / 100)
    assert (np.abs(told - exact) < 4 * errors).all()
    assert (errors < 0.2 * exact).all()


def test_probabilities_are_sums_over_the_sets_of_items_that_tell() -> None:
    names = ["a", "b", "c", "d"]
    frame = pd.DataFrame(TELLING, columns=names).replace(-1, None).astype("Int64")
    classes = pb.LatentClassAnalysis([1, 2], random_state=0).fit(frame)
    table = classes.item_discrimination().to_frame()
    assert table.item[table.probability > 0.5].tolist() == ["a", "b", "c"]
    # All four items, and three of them, are equally probable, but there are four sets of three.
    masses = {(0, 1, 2, 3): 4 / 5, (0, 1, 2): 1 / 5}
    found = {}
    for n_classes in (1, 2):
        terms = []
        for sizes, counts in allocations(TELLING, n_classes):
            ln_prior = special.gammaln(sizes + 4.0).sum() - n_classes * special.gammaln(4.0)
            ln_prior += special.gammaln(4.0 * n_classes)
            ln_prior -= special.gammaln(4.0 * n_classes + len(TELLING))
            own = np.array([ln_answers(counts, a).sum(axis=1) for a in PARAMETERS])
            alike = ln_mean([ln_answers(counts.sum(axis=1), a) for a in PARAMETERS])
            for tells, mass in masses.items():
                left_out = alike.sum() - alike[list(tells)].sum()
                ln_own = ln_mean(own[:, tells].sum(axis=1))
                terms.append(np.log(mass) + ln_prior + ln_own + left_out)
        found[n_classes] = special.logsumexp(terms)
    for row in classes.choice_.rows:
        assert row["log_evidence"] == pytest.approx(found[row["n_classes"]], abs=1e-9)
    chance = special.expit(found[2] - found[1] - np.log(2))
    assert classes.choice_.probabilities[2] == pytest.approx(chance, abs=1e-9)
    assert classes.n_parameters_ == 1 + 2 * 3 + 1


def mixed(seed: int) -> pd.DataFrame:
    """Two classes by five binary items, beside ten of noise."""
    rng = np.random.default_rng(seed)
    of = rng.choice(2, size=200, p=[0.6, 0.4])
    telling = rng.random((200, 5)) < np.where(of, 0.85, 0.2)[:, None]
    columns = [f"q{n}" for n in range(5)] + [f"noise{n}" for n in range(10)]
    return pd.DataFrame(np.hstack([telling, rng.integers(5, size=(200, 10))]), columns=columns)


@pytest.mark.slow
def test_items_of_noise_do_not_multiply_classes(tmp_path: Path) -> None:
    frame = mixed(1)
    classes = pb.LatentClassAnalysis([1, 2, 3], random_state=0).fit(frame)
    alone = pb.LatentClassAnalysis([1, 2, 3], random_state=0).fit(frame.iloc[:, :5])
    assert classes.n_classes_ == 2
    for number, probability in alone.choice_.probabilities.items():
        assert classes.choice_.probabilities[number] == pytest.approx(probability, abs=0.05)
    table = classes.item_discrimination().to_frame()
    assert table.item[table.probability > 0.5].tolist() == [f"q{n}" for n in range(5)]
    noise = table.probability < 0.5
    assert table.concentration[noise].min() > table.concentration[~noise].max()
    # Items of noise have one profile, and tell nothing of a row.
    tables = classes.item_probabilities_
    assert (tables["noise3"].iloc[0] == tables["noise3"].iloc[1]).all()
    shares = frame.noise3.value_counts(normalize=True).sort_index().to_numpy()
    assert tables["noise3"].iloc[0].to_numpy() == pytest.approx(shares, abs=0.1)
    hidden = frame.assign(**dict.fromkeys(table.item[noise]))
    same = classes.predict_proba(frame)
    np.testing.assert_allclose(classes.predict_proba(hidden), same, rtol=1e-9)
    means = classes.outcome(frame, frame.q0).to_frame()["mean"]
    assert means.to_numpy() == pytest.approx(tables["q0"].iloc[:, 1].to_numpy(), abs=0.1)
    weights = np.where(np.arange(200) % 2, 1.5, 0.5)
    weighted = pb.LatentClassAnalysis(2, random_state=0).fit(frame, weights=weights)
    assert weighted._counts.tells == classes._counts.tells
    assert (weighted.item_probabilities_["noise3"].std() == 0).all()
    classes.save(tmp_path / "classes.safetensors")
    loaded = pb.load(tmp_path / "classes.safetensors")
    np.testing.assert_array_equal(loaded.predict_proba(frame), same)
    assert loaded.n_parameters_ == classes.n_parameters_ == 1 + 2 * 5 + 10 * 4
