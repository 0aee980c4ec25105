"""Sampled evidence and totals of missing cells: within their errors of exact values."""

import math
import warnings

import numpy as np
import pytest
from scipy import special, stats

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


@pytest.mark.filterwarnings("ignore:totals beyond the last")
def test_tempering_agrees_with_exact_values():
    exact = NMF.predict_missing(SEEN, "exact", observed=OBSERVED, max_total=12)
    options = {"n_replicates": 16, "target_std_error": 0.05, "random_state": 1}
    found = NMF.predict_missing(SEEN, "tempered", observed=OBSERVED, max_total=12, **options)
    assert found.evidence.method == "tempered"
    assert found.evidence.converged
    assert not found.evidence.is_unbiased
    assert_within_errors(found, exact, largest=0.1)
    value = NMF.log_evidence(SEEN, "tempered", observed=OBSERVED, max_total=12, **options)
    assert value.value == found.evidence.value
    assert value.rounds == found.evidence.rounds


def exact_completion(n, b, d, most):
    """ln Pr(T, X) of [[n, b], [?, d]] under two topics with rate 1/n, and the expected missing
    count, by all ways in which the tokens of each cell divide, `most` in the missing one.
    """

    def ln_rising(x, count):
        return special.gammaln(x + count) - special.gammaln(x)

    def ln_topic(cells):
        (n, b), (m, d) = cells[:2], cells[2:]
        total = n + b + m + d
        sides = [n + b, m + d, n + m, b + d]
        ways = sum(special.gammaln(cell + 1) for cell in cells)
        return sum(ln_rising(0.25, side) for side in sides) - ln_rising(0.5, total) - ways

    splits = np.ix_(np.arange(n + 1), np.arange(b + 1), np.arange(d + 1))
    ln_joint = np.empty(most + 1)
    for m in range(most + 1):
        total = n + b + d + m
        one = [*(axis[..., None] for axis in splits), np.arange(m + 1)]
        cells = [one[0], one[1], one[3], one[2]]
        others = [whole - cell for whole, cell in zip([n, b, m, d], cells, strict=True)]
        ln_total = -total * math.log1p(1 / n) - math.log1p(n)
        ln_law = special.gammaln(total + 1) - ln_rising(1.0, total)
        ln_joint[m] = ln_total + ln_law + special.logsumexp(ln_topic(cells) + ln_topic(others))
    weights = np.exp(ln_joint - ln_joint.max())
    return ln_joint, float(weights @ np.arange(most + 1) / weights.sum())


@pytest.mark.filterwarnings("ignore:totals beyond the last")
def test_tempering_finds_rare_tables_under_which_missing_cells_hold_most():
    ln_joint, expected = exact_completion(30, 1, 2, 120)
    found = AllocationModel.nmf(2, rate=1 / 30).predict_missing(
        [[30, 1], [0, 2]],
        observed=[[True, True], [False, True]],
        max_total=153,
        n_replicates=16,
        random_state=0,
    )
    assert found.evidence.method == "tempered"
    gap = abs(found.evidence.value - special.logsumexp(ln_joint))
    assert gap < 4 * found.evidence.std_error < 0.5
    assert abs(found.expected_counts[0] - expected) < 4 * found.expected_std_errors[0] < 10
    assert (abs(found.log_joint - ln_joint) < 4 * found.std_errors).all()
    assert (found.std_errors[:60] < 0.2).all()


# A model, counts of which -1 is missing, options, largest errors of the evidence and of the
# expected count, and where exact sums take long their values.
HARD = {
    # Many missing tokens and the tables hold each other: neither moves far, given the other.
    "as many missing as observed": (
        AllocationModel.nmf(1, rate=1 / 2000),
        [[2000, 1], [-1, 2]],
        {"n_samples": 256, "n_replicates": 16},
        (1, 400),
        (),
    ),
    # Tokens that are drawn given tables, and tables given tokens, hold each other. The values are
    # sums over all allocations: python benches/tempering.py missing.
    "heavy cells among topics": (
        AllocationModel.nmf(2, rate=1 / 3000),
        [[3000, 1], [-1, 2]],
        {},
        (0.6, 800),
        (-17.4555, 1695.2),
    ),
    # Tables of a concentration far below 1 hold probabilities of e^-1000.
    "tiny concentration": (
        AllocationModel.nmf(2, concentration=0.02, rate=0.1),
        [[3, 1], [-1, 2]],
        {"max_total": 40, "n_samples": 256, "n_replicates": 8},
        (0.4, 1),
        (),
    ),
}


@pytest.mark.parametrize("name", HARD)
def test_tempering_finds_what_chains_rarely_reach(name):
    model, counts, options, largest, truth = HARD[name]
    counts = np.ma.masked_equal(counts, -1)
    if not truth:
        exact = model.predict_missing(counts, "exact", max_total=options.get("max_total"))
        truth = exact.evidence.value, exact.expected_counts[0]
    found = model.predict_missing(counts, "tempered", random_state=0, **options)
    error, error_of_count = found.evidence.std_error, found.expected_std_errors[0]
    assert abs(found.evidence.value - truth[0]) < 4 * error < largest[0]
    assert abs(found.expected_counts[0] - truth[1]) < 4 * error_of_count < largest[1]


def test_auto_tempers_what_is_too_much_for_an_exact_sum():
    rng = np.random.default_rng(1)
    tables = [rng.dirichlet([0.3] * 8, 3) for _ in range(2)]
    counts = rng.multinomial(150, np.einsum("ki,kj->ij", *tables).ravel() / 3).reshape(8, 8)
    observed = rng.random((8, 8)) > 0.1
    model = AllocationModel.nmf(3, rate=1e-3)
    found = model.predict_missing(np.where(observed, counts, 0), observed=observed, random_state=0)
    assert found.evidence.method == "tempered"
    errors = found.expected_std_errors + np.sqrt(np.maximum(found.expected_counts, 1))
    assert (abs(found.expected_counts - counts[~observed]) < 5 * errors).all()
    low, high = found.total_interval(0.999)
    assert low <= counts.sum() <= high


@pytest.mark.slow
def test_intervals_cover():
    rng = np.random.default_rng(1)
    factor, rounding = stats.t.ppf(0.975, 3), 1e-12
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
