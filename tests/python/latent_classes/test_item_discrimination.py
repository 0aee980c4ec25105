"""Items that do not tell the classes apart are found, named and warned of."""

import itertools
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import special

import polyabayes as pb
from polyabayes.exceptions import DataWarning, NotFittedError
from polyabayes.latent_classes.discrimination import ItemEvidence

ROWS = np.array([(0, 0, 1), (0, 0, -1), (0, 1, 1), (1, 1, 0), (1, -1, 0), (1, 1, 0), (0, 0, 1)])
PARAMETERS = 4.0 ** np.arange(-1, 7)


def ln_answers(counts, alpha):
    """Ln of the probability of counts of two answers, the last axis, under Dirichlet profiles."""
    sums = counts.sum(axis=-1)
    found = special.gammaln(counts + alpha).sum(axis=-1) - 2 * special.gammaln(alpha)
    return found + special.gammaln(2 * alpha) - special.gammaln(sums + 2 * alpha)


def test_bayes_factors_are_those_of_all_allocations() -> None:
    ln_joint, ln_alike, ln_own = [], [], []
    for of in itertools.product(range(2), repeat=len(ROWS)):
        counts = np.zeros((3, 2, 2))
        for row, k in zip(ROWS, of, strict=True):
            for item in np.flatnonzero(row >= 0):
                counts[item, k, row[item]] += 1
        sizes = np.bincount(of, minlength=2)
        given = ln_answers(counts, 1.0).sum(axis=1)
        ln_joint.append(special.gammaln(sizes + 1.0).sum() + given.sum())
        own = np.array([ln_answers(counts, alpha).sum(axis=1) for alpha in PARAMETERS])
        alike = [ln_answers(counts.sum(axis=1), alpha) for alpha in PARAMETERS]
        ln_alike.append(special.logsumexp(alike, axis=0) - np.log(8) - given)
        common = special.logsumexp(own.sum(axis=1)) - np.log(8)
        ln_own.append((special.logsumexp(own, axis=0) - np.log(8)).sum() - common)
    posterior = special.softmax(ln_joint)
    answers = pd.DataFrame(np.where(ROWS < 0, np.nan, ROWS), columns=["a", "b", "c"])
    classes = pb.LatentClassAnalysis(2, prior="flat", random_state=0).fit(answers)
    found = ItemEvidence.of(classes._counts)
    told = [*np.exp(-found.log_bayes_factors), np.exp(found.log_own)]
    ratios = np.exp(np.column_stack([ln_alike, ln_own]))
    exact = posterior @ ratios
    # Draws are hardly correlated; 100 of them are looked at.
    errors = np.sqrt(posterior @ (ratios - exact) ** 2 / 100)
    assert (np.abs(told - exact) < 4 * errors).all()
    assert (errors < 0.2 * exact).all()


def mixed(seed: int) -> pd.DataFrame:
    """Two classes by five binary items, beside ten of noise."""
    rng = np.random.default_rng(seed)
    of = rng.choice(2, size=200, p=[0.6, 0.4])
    telling = rng.random((200, 5)) < np.where(of, 0.85, 0.2)[:, None]
    columns = [f"q{n}" for n in range(5)] + [f"noise{n}" for n in range(10)]
    return pd.DataFrame(np.hstack([telling, rng.integers(5, size=(200, 10))]), columns=columns)


@pytest.mark.parametrize("seed", [0, 1])
def test_items_of_noise_are_named_and_the_others_choose_right(seed: int) -> None:
    frame = mixed(seed)
    with pytest.warns(
        DataWarning, match=r"10 of 15 items hardly .* \(noise0, noise1, .*, \.\.\.\)"
    ):
        noisy = pb.LatentClassAnalysis([1, 2, 3, 4], random_state=0).fit(frame)
    table = noisy.item_discrimination().to_frame()
    telling = table.item[table.log_bayes_factor >= np.log(20)].tolist()
    assert telling == [f"q{n}" for n in range(5)]
    is_noise = ~table.item.isin(telling)
    assert table.concentration[is_noise].min() > table.concentration[~is_noise].max()
    with warnings.catch_warnings():
        warnings.simplefilter("error", DataWarning)
        chosen = pb.LatentClassAnalysis([1, 2, 3, 4], random_state=0).fit(frame[telling])
    assert chosen.n_classes_ == 2


def test_items_of_one_concentration_are_not_warned_of() -> None:
    n_several = 0
    for seed in range(10):
        rng = np.random.default_rng([seed, 3])
        of = rng.choice(3, size=150, p=[0.5, 0.3, 0.2])
        tables = rng.dirichlet(np.ones(3), size=(8, 3))
        answers = np.array([[rng.choice(3, p=table[k]) for table in tables] for k in of])
        with warnings.catch_warnings():
            warnings.simplefilter("error", DataWarning)
            n_several += (
                pb.LatentClassAnalysis([1, 2, 3], random_state=0).fit(answers).n_classes_ > 1
            )
    assert n_several == 10


def test_points_have_no_draws_to_tell_items_apart() -> None:
    point = pb.LatentClassAnalysis(2, method="em", random_state=0).fit(mixed(0))
    with pytest.raises(NotFittedError, match="draws"):
        point.item_discrimination()
