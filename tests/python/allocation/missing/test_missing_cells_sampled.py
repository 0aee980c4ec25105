"""Sampled evidence and totals of missing cells: within their errors of exact values."""

import warnings

import numpy as np
import pytest
from scipy import stats

from polyabayes import AllocationModel
from polyabayes.exceptions import BudgetExceededError, UnreliableErrorWarning

OBSERVED = np.array([[True, False, True], [True, True, False]])
SEEN = np.where(OBSERVED, [[2, 0, 1], [1, 1, 0]], 0)
NMF = AllocationModel.nmf(2, concentration=1.5, rate=0.5)


def assert_within_errors(found, exact, largest):
    """Every value is within four of its errors of the exact one, and no error above the largest."""
    pairs = [
        (found.log_joint, found.std_errors, exact.log_joint),
        (found.posterior, found.posterior_std_errors, exact.posterior),
        (found.expected_counts, found.expected_std_errors, exact.expected_counts),
        ([found.evidence.value], [found.evidence.std_error], [exact.evidence.value]),
    ]
    for values, errors, truths in pairs:
        assert np.all(np.abs(np.subtract(values, truths)) < 4 * np.array(errors))
        assert np.all(np.array(errors) < largest)


@pytest.mark.filterwarnings("ignore::polyabayes.exceptions.UnreliableErrorWarning")
def test_smc_agrees_with_exact_values():
    exact = NMF.predict_missing(SEEN, "exact", observed=OBSERVED, max_total=12)
    found = NMF.predict_missing(
        SEEN, "smc", observed=OBSERVED, max_total=12, n_replicates=40, random_state=1
    )
    assert found.evidence.method == "smc"
    assert found.evidence.is_unbiased
    assert_within_errors(found, exact, largest=0.02)
    again = NMF.predict_missing(
        SEEN, "smc", observed=OBSERVED, max_total=12, n_replicates=40, random_state=1, n_jobs=1
    )
    assert np.array_equal(again.log_joint, found.log_joint)
    assert np.array_equal(again.expected_counts, found.expected_counts)


@pytest.mark.slow
def test_intervals_cover():
    rng = np.random.default_rng(1)
    factor, rounding = stats.t.ppf(0.975, 15), 1e-12
    covered = {"evidence": [], "joint": [], "counts": []}
    while len(covered["evidence"]) < 200:
        rank, shape, n_tokens = int(rng.integers(1, 4)), rng.integers(2, 4, 2), rng.integers(4, 13)
        left, right = (rng.dirichlet(np.ones(size), rank) for size in shape)
        counts = rng.multinomial(n_tokens, (left.T @ right / rank).ravel()).reshape(shape)
        observed = np.ones(shape, dtype=bool)
        observed.ravel()[rng.choice(counts.size, rng.integers(1, 3), replace=False)] = False
        data = np.where(observed, counts, 0)
        a = float(rng.choice([0.5, 2, 6]))
        model = AllocationModel.nmf(rank, concentration=a, rate=a / float(n_tokens))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UnreliableErrorWarning)
            last = int(data.sum()) + 8
            try:
                exact = model.predict_missing(
                    data, "exact", observed=observed, max_total=last, budget=5e7
                )
            except BudgetExceededError:
                continue
            found = model.predict_missing(
                data,
                "smc",
                observed=observed,
                max_total=last,
                n_particles=200,
                random_state=len(covered),
            )
        low, high = found.evidence.interval()
        covered["evidence"].append(low <= exact.evidence.value <= high)
        off = np.abs(found.log_joint - exact.log_joint)
        covered["joint"].extend(off <= factor * found.std_errors + rounding)
        off = np.abs(found.expected_counts - exact.expected_counts)
        covered["counts"].extend(off <= factor * found.expected_std_errors + rounding)
    for what, inside in covered.items():
        assert np.mean(inside) > 0.92, what
