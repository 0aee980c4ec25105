import itertools
import json
import math
from pathlib import Path

import numpy as np
import pytest
from scipy.special import gammaln

from helpers.networks import problem
from polyabayes import AllocationModel, n_effective_parameters, plotting
from polyabayes.exceptions import BudgetExceededError, InvalidArgumentError, InvalidTypeError

VECTORS = json.loads((Path(__file__).parents[2] / "vectors" / "allocation.json").read_text())

TABLE = [[2, 1, 0], [0, 0, 3], [0, 1, 1]]


@pytest.mark.parametrize("case", VECTORS, ids=lambda case: case["name"])
def test_probabilities_of_all_allocations_sum_to_the_evidence(case):
    model, tensor = problem(case)
    n_states = math.prod(size for node, size in model.sizes.items() if node not in tensor.axes)
    n_allocations = math.prod(
        math.comb(int(count) + n_states - 1, n_states - 1) for count in tensor.counts
    )
    try:
        found = model.allocations(tensor)
    except BudgetExceededError:
        pytest.skip(f"{n_allocations:,} allocations are beyond the default budget")
    assert found.n_allocations == n_allocations
    assert found.log_evidence == pytest.approx(case["log_probability_given_total"], abs=1e-12)


def test_groups_are_those_of_plain_enumeration():
    """Equation (3.11), allocation by allocation, over two hidden values."""
    counts, a, K = np.array(TABLE), 1.3, 2
    places = np.argwhere(counts)
    one = {}
    for first in itertools.product(*(range(counts[i, j] + 1) for i, j in places)):
        S = np.zeros((3, 3, K))
        for (i, j), n in zip(places, first, strict=True):
            S[i, j] = n, counts[i, j] - n
        tables = {"topic": S.sum(axis=(0, 1)), "word": S.sum(axis=0), "doc": S.sum(axis=1)}
        ln_pi = gammaln(counts.sum() + 1) - gammaln(S + 1).sum() - rising(a, counts.sum())
        ln_pi += rising(a / K, tables["topic"])
        for name in ("word", "doc"):
            ln_pi += rising(a / (3 * K), tables[name]) - rising(a / K, tables["topic"])
        key = (round(float(ln_pi), 9), n_effective_parameters(tables))
        one[key] = one.get(key, 0) + 1
    found = AllocationModel.nmf(K, concentration=a).allocations(counts)
    keys = zip(found.log_probabilities.round(9).tolist(), found.n_parameters.tolist(), strict=True)
    assert dict(zip(keys, found.multiplicities, strict=True)) == one
    table = found.to_frame().groupby("n_parameters")["multiplicity"].sum()
    of_size = {d: sum(n for (_, size), n in one.items() if size == d) for _, d in one}
    assert table.to_dict() == of_size


def rising(x, n):
    """ln of Γ(x + n)/Γ(x), summed."""
    return float((gammaln(x + np.asarray(n)) - gammaln(x)).sum())


def test_the_histogram_counts_every_allocation_and_is_drawn():
    found = AllocationModel.nmf(3).allocations(TABLE)
    heights, edges = found.histogram(bins=20)
    assert len(edges) == 21
    assert heights.sum() == found.n_allocations == 6 * 3 * 10 * 3 * 3
    ax = plotting.plot_allocations(found, bins=20)
    assert ax.get_yscale() == "log"
    assert ax.lines[0].get_xdata()[0] == found.log_evidence
    assert ax.patches[0].get_data().values.tolist() == heights.tolist()


def test_what_cannot_be_enumerated_is_refused():
    model = AllocationModel.nmf(4)
    with pytest.raises(BudgetExceededError, match="raise budget"):
        model.allocations([[50, 3], [4, 80]])
    with pytest.raises(InvalidArgumentError, match="budget"):
        model.allocations(TABLE, budget=0)
    with pytest.raises(InvalidArgumentError, match="bins"):
        model.allocations([[1]]).histogram(bins=0)
    with pytest.raises(InvalidTypeError, match="allocations"):
        plotting.plot_allocations(3)


def test_counts_beyond_any_budget_are_refused():
    with pytest.raises(BudgetExceededError, match="take a smaller tensor or fewer hidden values"):
        AllocationModel.nmf(1000).allocations([[2000, 3]])
    found = AllocationModel.nmf(1).allocations([[10**9, 3]])
    assert found.n_allocations == 1
