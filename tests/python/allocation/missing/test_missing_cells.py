import itertools
import json
import math
import threading
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp, softmax

import polyabayes as pb
from helpers.networks import ln_enumerated_case, problem
from polyabayes import AllocationModel, CountTensor, _core
from polyabayes.allocation.layout import lay_out
from polyabayes.exceptions import UnreliableErrorWarning

VECTORS = json.loads((Path(__file__).parents[3] / "vectors" / "missing.json").read_text())
X3 = np.ma.masked_equal([[-1, 3], [3, 3]], -1)
TABLE = np.array([[2, 0, 1], [1, 1, 0]])
OBSERVED = np.array([[True, False, True], [True, True, False]])
SEEN = np.where(OBSERVED, TABLE, 0)
NMF = AllocationModel.nmf(2, concentration=1.5, rate=0.5)

pytestmark = pytest.mark.filterwarnings("ignore::polyabayes.exceptions.UnreliableErrorWarning")


def mask(case, tensor):
    observed = np.ones(tensor.shape, dtype=bool)
    observed[tuple(np.array(case["missing"]).T)] = False
    return observed


@pytest.mark.parametrize("case", VECTORS, ids=lambda case: case["name"])
def test_exact_joint_is_that_of_rational_arithmetic(case):
    model, tensor = problem(case)
    options = {"observed": mask(case, tensor), "max_total": case["total"]}
    found = model.predict_missing(tensor, "exact", **options)
    assert found.totals[-1] == case["total"]
    assert found.totals[0] == tensor.total
    assert found.log_joint[-1] == pytest.approx(case["log_joint"], abs=1e-10)
    assert not found.std_errors.any()
    n_missing, a, b = case["total"] - tensor.total, case["concentration"], case["rate"]
    completions = itertools.combinations_with_replacement(case["missing"], n_missing)
    ln_given_total = logsumexp([ln_enumerated_case(case, cells) for cells in completions])
    ln_total = stats.nbinom.logpmf(case["total"], a, b / (1 + b))
    assert ln_given_total + ln_total == pytest.approx(case["log_joint"], abs=1e-10)


def test_shares_are_those_of_the_joint():
    found = NMF.predict_missing(SEEN, "exact", observed=OBSERVED, max_total=12)
    joint = np.exp(found.log_joint)
    assert found.evidence.value == pytest.approx(math.log(joint.sum()), abs=1e-12)
    assert found.posterior == pytest.approx(joint / joint.sum(), abs=1e-12)
    n_seen = int(SEEN.sum())
    assert found.expected_total == pytest.approx(n_seen + found.expected_counts.sum(), abs=1e-10)
    low, high = found.total_interval(0.5)
    inside = (found.totals >= low) & (found.totals <= high)
    assert found.posterior[inside].sum() >= 0.5
    assert found.posterior[found.totals < low].sum() <= 0.25
    assert found.posterior[found.totals > high].sum() <= 0.25


def test_evidence_with_all_observed_is_the_ordinary_one():
    everything = np.ones(TABLE.shape, dtype=bool)
    ordinary = NMF.log_evidence(TABLE, "exact")
    assert NMF.log_evidence(TABLE, "exact", observed=everything).value == ordinary.value
    # One total only: that the missing cells hold nothing was then seen.
    found = NMF.predict_missing(SEEN, "exact", observed=OBSERVED, max_total=int(SEEN.sum()))
    assert found.evidence.value == pytest.approx(NMF.log_evidence(SEEN, "exact").value, abs=1e-12)


def test_masked_arrays_and_tensors_say_the_same():
    masked = np.ma.array(TABLE, mask=~OBSERVED)
    tensor = CountTensor.from_dense(SEEN, ["doc", "word"])
    found = NMF.predict_missing(SEEN, "exact", observed=OBSERVED, max_total=9)
    for data, observed in ((masked, None), (tensor, OBSERVED), (tensor, OBSERVED.tolist())):
        again = NMF.predict_missing(data, "exact", observed=observed, max_total=9)
        assert np.array_equal(again.log_joint, found.log_joint)
    value = NMF.log_evidence(masked, "exact", max_total=9).value
    assert value == found.evidence.value
    assert found.coordinates.tolist() == [[0, 1], [1, 2]]


def test_nan_marks_missing_cells_where_it_is_said_to():
    floats = holed(np.nan)
    found = NMF.predict_missing(SEEN, "exact", observed=OBSERVED, max_total=9)
    for data, observed in ((floats, "nan"), (floats.tolist(), "nan"), (floats, ~np.isnan(floats))):
        again = NMF.predict_missing(data, "exact", observed=observed, max_total=9)
        assert np.array_equal(again.log_joint, found.log_joint)
        assert np.array_equal(again.coordinates, found.coordinates)
        evidence = NMF.log_evidence(data, "exact", observed=observed, max_total=9)
        assert evidence.value == found.evidence.value
    # Nothing is missing where nothing is NaN.
    for data in (TABLE.astype(float), TABLE, TABLE.tolist()):
        whole = NMF.log_evidence(data, "exact", observed="nan")
        assert whole.value == NMF.log_evidence(TABLE, "exact").value


TENSOR = CountTensor.from_dense(TABLE, ["doc", "word"])


def holed(value):
    """The table with this value in the cells that are not observed."""
    return np.where(OBSERVED, TABLE.astype(float), value)


def test_frames_name_the_cells():
    labels = [["a", "b"], ["x", "y", "z"]]
    tensor = CountTensor.from_dense(SEEN, ["doc", "word"], labels)
    found = NMF.predict_missing(tensor, "exact", observed=OBSERVED, max_total=9)
    frame = found.to_frame()
    assert frame["doc"].tolist() == ["a", "b"]
    assert frame["word"].tolist() == ["y", "z"]
    assert np.array_equal(frame["expected_count"], found.expected_counts)
    totals = found.totals_to_frame()
    assert totals["total"].tolist() == list(range(5, 10))
    assert np.array_equal(totals["posterior"], found.posterior)
    text = repr(found)
    assert text.startswith("<MissingCells: 2 missing, 5 tokens observed, ")
    assert "(exact)" in text


ONE_GAP = np.ma.masked_equal([[5, 3], [-1, 1]], -1)
THREE_GAPS = np.ma.masked_equal([[3, 2], [-1, -1], [-1, 0]], -1)


@pytest.mark.parametrize(
    ("model", "table"),
    [
        (NMF, np.ma.masked_equal([[2, 0, 1], [1, 1, -1]], -1)),
        (AllocationModel.nmf(1, concentration=1.0, rate=0.5), ONE_GAP),
        (AllocationModel.nmf(2, concentration=4.0, rate=0.4), ONE_GAP),
        (AllocationModel("doc, word", {}, 2.0, 0.05), ONE_GAP),
        (AllocationModel.nmf(1, concentration=0.1, rate=0.02), ONE_GAP),
        (AllocationModel.nmf(1, concentration=1.0, rate=0.5), THREE_GAPS),
    ],
)
def test_totals_go_on_until_little_is_left(model, table):
    whole = model.predict_missing(table, "exact")
    value = whole.evidence.value
    assert whole.log_remainder < value + math.log(1e-9)
    assert whole.evidence.log_remainder == whole.log_remainder
    totals = whole.totals[: len(whole.totals) // 2 : 4].tolist()
    with pytest.warns(UnreliableErrorWarning, match="raise max_total"):
        parts = [model.predict_missing(table, "exact", max_total=total) for total in totals]
    for part in parts:
        beyond = math.log(math.exp(value) - math.exp(part.evidence.value))
        assert beyond <= part.log_remainder + 1e-6
        assert part.log_remainder <= part.log_remainder_bound + 1e-12


@pytest.mark.parametrize("concentration", [1e-3, 1e-20])
def test_the_bound_of_next_to_nothing_is_finite(concentration):
    """The intensity of a vanishing prior without a token is below all doubles, its ln is not."""
    model = AllocationModel.nmf(2, concentration=concentration, rate=1.0)
    table = np.ma.masked_equal([[0, 0], [0, -1]], -1)
    bound = model.predict_missing(table, "vb", random_state=0).evidence.value
    assert np.isfinite(bound)
    assert bound < model.predict_missing(table, "exact").evidence.value + 1e-10


@pytest.mark.parametrize(
    "table", [np.ma.array(THREE_GAPS, mask=[[0, 0], [1, 0], [0, 0]]), THREE_GAPS]
)
def test_the_bound_is_the_evidence_of_a_sure_prior(table):
    """Nothing is lost by taking intensity and tables apart where the prior leaves no doubt."""
    model = AllocationModel.nmf(1, concentration=1e6, rate=1e5)
    found = model.predict_missing(table, "vb", random_state=0, max_iter=500)
    exact = model.predict_missing(table, "exact", max_total=40)
    assert found.evidence.value == pytest.approx(exact.evidence.value, abs=1e-3)
    assert found.expected_counts == pytest.approx(exact.expected_counts, abs=1e-3)


@pytest.mark.filterwarnings("ignore:particles seldom find")
def test_auto_is_exact_where_quick_and_smc_elsewhere():
    assert NMF.log_evidence(SEEN, observed=OBSERVED, max_total=9).method == "exact"
    rng = np.random.default_rng(0)
    counts = rng.poisson(3, (6, 6))
    observed = np.ones((6, 6), dtype=bool)
    observed[0, :3] = False
    model = AllocationModel.nmf(3, concentration=9.0, rate=0.1)
    found, same = (
        model.predict_missing(
            np.where(observed, counts, 0), method, observed=observed, random_state=0
        )
        for method in ("auto", "smc")
    )
    assert found.evidence.method == "smc"
    assert np.array_equal(found.log_joint, same.log_joint)


def test_particles_of_missing_cells_warn():
    with pytest.warns(UnreliableErrorWarning, match="seldom find the rare tables"):
        found = NMF.predict_missing(SEEN, "smc", observed=OBSERVED, random_state=0)
    assert "method='vb'" in found.evidence.doubt


@pytest.mark.parametrize("case", VECTORS, ids=lambda case: case["name"])
def test_the_bound_is_one(case):
    model, tensor = problem(case)
    observed = mask(case, tensor)
    found = model.predict_missing(tensor, "vb", observed=observed, random_state=0)
    assert found.evidence.is_lower_bound
    exact = model.predict_missing(tensor, "exact", observed=observed, max_total=tensor.total + 6)
    most = np.logaddexp(exact.evidence.value, exact.log_remainder)
    assert found.evidence.value < most + 1e-10
    assert found.posterior.sum() == pytest.approx(1, abs=1e-8)
    missing = found.expected_counts.sum()
    assert found.expected_total == pytest.approx(tensor.total + missing, abs=1e-6)


def test_plot_of_the_total():
    pytest.importorskip("matplotlib").use("Agg")
    found = NMF.predict_missing(SEEN, "exact", observed=OBSERVED, max_total=12)
    ax = pb.plotting.plot_total(found)
    totals, posterior = ax.lines[0].get_data()
    assert np.array_equal(totals, found.totals)
    assert np.array_equal(posterior, found.posterior)
    assert ax.get_xlabel() == "total of all cells"
    ax.figure.clear()


def test_vb_ends_where_weights_underflow():
    rng = np.random.default_rng(0)
    table, observed = rng.poisson(2, (20, 20)), rng.random((20, 20)) > 0.5
    table[~observed] = 0
    model = AllocationModel.nmf(4, concentration=0.1, rate=1e-4)
    found = model.predict_missing(table, "vb", observed=observed, random_state=0)
    assert np.isfinite(found.evidence.value)
    assert np.isfinite(found.expected_counts).all()


def test_laying_out_many_missing_cells_lets_other_threads_run():
    observed = np.random.default_rng(0).random((1000, 600)) > 0.5
    layout = lay_out(NMF, CountTensor.from_dense(observed.astype(int), ["doc", "word"]))
    missing = np.argwhere(~observed).ravel()
    ticks, done = [0], threading.Event()

    def tick():
        while not done.wait(0.001):
            ticks[0] += 1

    clock = threading.Thread(target=tick)
    clock.start()
    try:
        core = _core.IncompleteAllocation(layout.core, missing, 0.5)
    finally:
        done.set()
        clock.join()
    assert core.n_missing == np.count_nonzero(~observed)
    # It takes some tenths of a second; with the lock held there would be one tick at most.
    assert ticks[0] > 10


def assert_within_errors(found, exact, largest):
    """Every value is within four of its errors of the exact one, and no error above the largest."""
    pairs = [
        (found.log_joint, found.std_errors, exact.log_joint),
        (found.posterior, found.posterior_std_errors, exact.posterior),
        (found.expected_counts, found.expected_std_errors, exact.expected_counts),
        ([found.evidence.value], [found.evidence.std_error], [exact.evidence.value]),
    ]
    for values, errors, truths in pairs:
        assert np.all(np.abs(np.subtract(values, truths)) < 4 * np.array(errors) + 1e-12)
        assert np.all(np.array(errors) < largest)


KINDS = {
    "mixture": AllocationModel("t -> i, j", {"t": 2}, 1.5, 0.8),
    "tied": AllocationModel("t -> i, j", {"t": 2}, 1.5, 0.8, tied=[("i", "j")]),
    "tied, nothing hidden": AllocationModel("i, j", {}, 1.5, 0.8, tied=[("i", "j")]),
    "an edge of axes": AllocationModel("i -> j", {}, 1.5, 0.8),
    "a core": AllocationModel("t -> i, s; s -> j", {"t": 2, "s": 2}, 1.5, 0.8),
    "cliques": AllocationModel("j -> k; j, k -> r; k, r -> i", {"r": 2}, 1.5, 0.8),
}


@pytest.mark.parametrize("model", KINDS.values(), ids=KINDS)
def test_sums_are_those_over_all_completions(model):
    shape = (3, 3, 2)[: len(model.axes)]
    counts, observed = np.zeros(shape, int), np.ones(shape, bool)
    for cell, count in (((0, 0, 0), 2), ((0, 2, 1), 1), ((1, 2, 0), 1)):
        counts[cell[: len(shape)]] = count
    missing = [cell[: len(shape)] for cell in ((0, 1, 1), (2, 0, 0))]
    values = []
    for first, second in itertools.product(range(5), repeat=2):
        counts[missing[0]], counts[missing[1]] = first, second
        if first + second <= 4:
            values.append((model.log_evidence(counts, "exact").value, first, second))
    value, *expected = np.transpose(values)
    observed[tuple(np.transpose(missing))] = False
    options = {"observed": observed, "random_state": 1}
    exact = model.predict_missing(counts * observed, "exact", max_total=8, **options)
    assert exact.evidence.value == pytest.approx(logsumexp(value), abs=1e-11)
    np.testing.assert_allclose(exact.expected_counts, expected @ softmax(value), atol=1e-11)
    sizes = {"max_total": 8, "n_replicates": 40, "n_particles": 400}
    found = model.predict_missing(counts * observed, "smc", **sizes, **options)
    assert found.evidence.method == "smc"
    assert found.evidence.is_unbiased
    assert_within_errors(found, exact, largest=0.02)
    bound = model.predict_missing(counts * observed, "vb", **options)
    assert bound.evidence.value < np.logaddexp(exact.evidence.value, exact.log_remainder)
