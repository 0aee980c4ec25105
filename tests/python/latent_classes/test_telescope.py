"""Classes of 93 children beside the posterior that R's package telescope prints of them."""

import itertools

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

import polyabayes as pb

# Children by the items F, C and M (Stern et al. 1994).
FEAR = [5, 15, 3, 2, 0, 2, 0, 0, 2, 4, 1, 0, 4, 4, 3, 1, 1, 3, 2, 1, 0, 4, 1, 3, 1, 2, 4, 2]
FEAR += [2, 1, 3, 3, 2, 2, 7, 3]
# Results of version 0.2-0, from 500 draws: the share of draws with two classes that hold a child;
# the shares below each quartile of α; the first weight of two classes, and the profiles of both.
QUARTILES = [1.109833, 2.491861, 4.706211]
PRINTED = [0.5, 0.25, 0.5, 0.75, 0.5378, 0.62, 0.28, 0.10, 0.67, 0.11, 0.22, 0.22, 0.57, 0.13, 0.08]
PRINTED += [0.07, 0.31, 0.63, 0.27, 0.31, 0.42, 0.14, 0.16, 0.41, 0.28]
# Draws of a chain are correlated: standard deviations among 118 parts of as many draws of another
# chain of the same kind. Those of the profiles are below 0.01 with the rounding.
ERRORS = [0.083, 0.026, 0.030, 0.027, *[0.01] * 21]


def posterior(most: int, n_alphas: int, seed: int) -> NDArray[np.float64]:
    """What telescope prints, P(K ≤ 2, 3, 4) and children of class 0, by evidences and draws of K.

    K - 1 is from BNB(1, 4, 3), α from F(6, 3), class weights from Dirichlet(α/K), answers from
    Dirichlet(1). `most` classes stand for more, too; one class, of probability 0.0003, is left out.
    """
    rng, law = np.random.default_rng(seed), stats.betanbinom(1, 4, 3, loc=1)
    tensor = pb.CountTensor.from_dense(np.reshape(FEAR, (3, 3, 4)), axes=list("FCM"))
    sums = np.zeros(65)
    for k, nth in itertools.product(range(2, most + 1), range(n_alphas)):
        alpha = stats.f.ppf((nth + rng.random()) / n_alphas, 6, 3)
        below = [*np.clip(n_alphas * stats.f.cdf(QUARTILES, 6, 3) - nth, 0, 1), k < 3, k < 4, k < 5]
        prior = {"class": alpha / k, **dict.fromkeys("FCM", 1)}
        model = pb.AllocationModel("class -> F, C, M", {"class": k}, prior=prior)
        draws = model.sample_posterior(tensor, method="smc", n_sweeps=1, random_state=rng)
        is_filled, tables = draws.counts["class"] > 0, draws.tables()
        is_two = is_filled.sum(axis=1) == 2
        # Class 0 is the one of two that gives the first answer to F more often.
        order = np.argsort(np.where(is_filled, -tables["F"][:, 0], 0), axis=1)[is_two, None, :2]
        joined = [tables["class"][:, None], *(tables[item] for item in "FCM")]
        two = np.take_along_axis(np.concatenate(joined, axis=1)[is_two], order, axis=2)
        two[:, 0] /= two[:, 0].sum(axis=1, keepdims=True)
        cells = np.einsum("daz,dfz,dcz,dmz->dfcmz", *np.split(two, [1, 4, 7], axis=1))
        members = (cells[..., 0] / cells.sum(axis=-1)).reshape(-1, 36)
        of_two = np.hstack([two[:, 0, :1], two[:, 1:, 0], two[:, 1:, 1], members]).sum(axis=0)
        ln_rows = draws.evidence.value - draws.evidence.log_probability_of_total
        mass = np.exp(ln_rows) * (law.pmf(k) if k < most else law.sf(k - 1))
        sums += mass * np.array([1, is_two.mean(), *below, *(of_two / len(draws))])
    of_two = sums[8:] / sums[1]
    n_first = np.sum(FEAR, where=of_two[21:] > 0.5)
    return np.array([*(sums[1:5] / sums[0]), *of_two[:21], *(sums[5:8] / sums[0]), n_first])


@pytest.mark.slow
def test_classes_of_children_are_those_that_telescope_prints() -> None:
    repeats = np.array([posterior(6, 8, seed) for seed in range(4)])
    means, errors = repeats.mean(axis=0), repeats.std(axis=0, ddof=1) / 2
    assert (np.abs(means[:-4] - PRINTED) < 3 * np.hypot(errors[:-4], ERRORS)).all()
    # Quartiles of K are 2, 3 and 4: the shares are between a quarter and the next.
    assert (np.abs(means[-4:-1] - [0.375, 0.625, 0.875]) < 0.125 + 3 * 0.074).all()
    # The final partition has 51 and 42 children.
    assert repeats[:, -1].tolist() == [51] * 4
