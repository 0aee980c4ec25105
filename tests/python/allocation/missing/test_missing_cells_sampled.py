"""Sampled evidence and totals of missing cells: within their errors of exact values."""

import numpy as np
import pytest

from polyabayes import AllocationModel

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
