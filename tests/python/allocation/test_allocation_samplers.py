import itertools
import math

import numpy as np
import pytest
from scipy import stats

from polyabayes import AllocationModel, CountTensor
from polyabayes.allocation.evidence import bounds
from polyabayes.exceptions import UnreliableErrorWarning

DEEP = [[4, 3, 0], [0, 0, 3], [0, 0, 3]]

READY = {
    "nmf": (AllocationModel.nmf(2), (2, 2)),
    "symmetric_nmf": (AllocationModel.symmetric_nmf(2), (2, 2)),
    "symmetric_cp": (AllocationModel.symmetric_cp(3, 2), (2, 2, 2)),
    "cp": (AllocationModel.cp(list("ijk"), 2), (2, 2, 2)),
    "tucker": (AllocationModel.tucker(["i", "j"], [2, 2]), (2, 3)),
    "pachinko": (AllocationModel.pachinko([2, 2]), (2, 3)),
    "blockmodel": (AllocationModel.blockmodel(2, 2), (2, 2, 2)),
    "hidden_markov": (AllocationModel.hidden_markov(3, 2), (2, 2, 2)),
    "hidden_markov tied": (AllocationModel.hidden_markov(3, 2, tied=True), (2, 2, 2)),
    "sum_conditioned": (AllocationModel.sum_conditioned(2), (2, 2, 2)),
    "complete": (AllocationModel.complete(list("ijk")), (2, 2, 2)),
}


@pytest.mark.parametrize("name", READY)
def test_probabilities_of_all_tensors_sum_to_one(name):
    model, shape = READY[name]
    total, n_cells = 3, math.prod(shape)
    values = []
    for tokens in itertools.combinations_with_replacement(range(n_cells), total):
        counts = np.bincount(tokens, minlength=n_cells).reshape(shape)
        values.append(model.log_evidence(counts, "exact", given_total=True).value)
    assert np.exp(values).sum() == pytest.approx(1, abs=1e-12)


def within_errors(name, method, **options):
    """An evidence that is within four of its errors of the exact value."""
    model, shape = READY[name]
    counts = np.random.default_rng(1).poisson(8 / math.prod(shape), shape)
    exact = model.log_evidence(counts, "exact")
    found = model.log_evidence(counts, method, random_state=0, **options)
    assert abs(found.value - exact.value) < 4 * found.std_error
    assert 0 < found.std_error < 0.1
    return found


@pytest.mark.parametrize("name", [name for name in READY if name != "complete"])
def test_particles_agree_with_exact_values(name):
    found = within_errors(name, "smc", n_replicates=64, n_particles=256)
    assert (found.method, found.n_replicates, found.is_unbiased) == ("smc", 64, True)


@pytest.mark.parametrize("name", [name for name in READY if name != "complete"])
def test_tempering_agrees_with_exact_values(name):
    found = within_errors(name, "tempered", n_samples=512)
    assert (found.method, found.n_replicates, found.is_unbiased) == ("tempered", 4, False)
    assert found.converged
    assert found.round_trips > 10
    assert found.sides is not None
    assert np.mean(found.sides) == pytest.approx(found.value, abs=0.1)


def test_tempering_says_when_it_has_not_converged():
    counts = np.random.default_rng(0).poisson(1.0, (12, 12))
    options = {"random_state": 0, "n_jobs": 1}
    with pytest.warns(UnreliableErrorWarning, match="not converged to the target.*n_samples"):
        short = AllocationModel.nmf(4).log_evidence(counts, "tempered", n_samples=8, **options)
    assert not short.converged
    assert (short.n_rounds, short.rounds[0].n_scans) == (1, 8)
    long = AllocationModel.nmf(4).log_evidence(counts, "tempered", **options)
    assert long.converged
    assert long.rounds[0] == short.rounds[0]
    assert long.std_error <= 0.5
    assert long.value == pytest.approx(np.mean(long.rounds[-1].values), abs=1e-9)
    given = AllocationModel.nmf(4).log_evidence(counts, "tempered", given_total=True, **options)
    shift = long.log_probability_of_total
    assert given.value == pytest.approx(long.value - shift, abs=1e-9)
    assert given.rounds[0].sides == pytest.approx(np.array(long.rounds[0].sides) - shift, abs=1e-9)


MIXED, ROW = [[5, 3, 0], [0, 8, 9], [2, 1, 14]], np.array([[200_000, 3, 40]])
# The topics of a table of one row add up to one Dirichlet law of its cells.
OF_ROW = stats.dirichlet_multinomial.logpmf(ROW[0], np.full(3, 1 / 3), ROW.sum())


@pytest.mark.parametrize(
    ("model", "counts", "options", "exact"),
    [
        # Two states that hardly any table shares: the chains must cross from one to the other.
        *((AllocationModel.nmf(2, concentration=a), MIXED, {}, None) for a in (1e-2, 1e-4)),
        # A table of one cell has probability 1, however many tokens there are.
        *((AllocationModel.nmf(k), [[500]], {"n_samples": 64}, 0.0) for k in (2, 8)),
        *((AllocationModel.nmf(k), [[10_000]], {"n_samples": 64}, 0.0) for k in (2, 8)),
        pytest.param(
            *(AllocationModel.nmf(3), ROW, {"method": "auto"}, OF_ROW), marks=pytest.mark.slow
        ),
    ],
)
def test_tempering_finds_the_evidence_of_small_concentrations_and_heavy_cells(
    model, counts, options, exact
):
    options = {"method": "tempered", "given_total": True, "random_state": 0, **options}
    found = model.log_evidence(counts, **options)
    assert found.method == "tempered"
    if exact is None:
        exact = model.log_evidence(counts, "exact", given_total=True).value
    assert abs(found.value - exact) < 4 * found.std_error < 1


@pytest.mark.parametrize("tied", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_heavy_cells_move_where_hidden_nodes_are_summed_out_apart(tied):
    model = AllocationModel.hidden_markov(3, 2, tied=tied)
    counts = np.zeros((2, 2, 2), np.int64)
    counts[0, 1, 0], counts[1, 1, 1] = 300, 200
    effort = {"n_particles": 5000, "n_sweeps": 0, "given_total": True, "random_state": 0}
    reference = model.log_evidence(counts, "smc", **effort)
    found = model.log_evidence(counts, "tempered", n_samples=256, given_total=True, random_state=0)
    error = math.hypot(reference.std_error, found.std_error)
    assert abs(found.value - reference.value) < 4 * error
    assert error < 0.5
    assert found.converged
    assert found.round_trips > 0


def test_without_a_round_trip_tempering_has_not_converged():
    rng = np.random.default_rng(0)
    first, second = rng.dirichlet(np.full(12, 0.1), 6), rng.dirichlet(np.full(12, 0.1), 6)
    counts = rng.multinomial(600, (first.T @ second / 6).ravel()).reshape(12, 12)
    with pytest.warns(UnreliableErrorWarning, match="0 round trips: all replicates may miss"):
        found = AllocationModel.nmf(6).log_evidence(
            counts, "tempered", n_samples=16, target_std_error=1e3, random_state=0
        )
    assert (found.round_trips, found.converged) == (0, False)


# Weights of this network are below the range of double precision.
MANY = [f"n{axis}" for axis in range(14)]
TINY = AllocationModel.cp(MANY, 2, concentration=1e-20, rate=1.0)
FEW = CountTensor.from_coo(np.eye(14, dtype=int)[:3], [1, 2, 1], MANY, [2] * 14)


def test_tempering_is_held_against_a_lower_bound(monkeypatch):
    """Replicates that agree on a value below the bound are not believed."""
    rng = np.random.default_rng(0)
    shares, tables = rng.dirichlet(np.ones(8)), rng.dirichlet(np.full(12, 0.2), (2, 8))
    counts = rng.multinomial(2000, ((tables[0].T * shares) @ tables[1]).ravel()).reshape(12, 12)
    # A bound that lies above the evidence plays one that all replicates have missed.
    monkeypatch.setattr(bounds, "_MARGIN", -300.0)
    with pytest.warns(UnreliableErrorWarning, match="a lower bound of the evidence lies .* above"):
        found = AllocationModel.nmf(8).log_evidence(
            counts, "tempered", n_samples=1, n_replicates=2, random_state=0, target_std_error=1e3
        )
    monkeypatch.undo()
    assert found.value < found.lower_bound
    assert found.std_error > found.lower_bound - found.value
    assert not found.converged
    low, high = found.interval(0.95)
    assert low < found.lower_bound < high
    settled = AllocationModel.nmf(2).log_evidence(DEEP, "tempered", random_state=0)
    assert settled.converged
    assert settled.lower_bound < settled.value
    # The bound of one topic is its evidence, but for rounding.
    exact, vb = (AllocationModel.nmf(1).log_evidence(counts, name) for name in ("exact", "vb"))
    assert vb.value == pytest.approx(exact.value, rel=1e-12)


def few_topics():
    """A small concentration: nearly all tokens are in one of four topics."""
    rng = np.random.default_rng(0)
    first, second = rng.dirichlet(np.full(12, 0.5), 2)
    noise = rng.dirichlet(np.full(144, 0.3)).reshape(12, 12)
    counts = rng.multinomial(300, (0.5 * np.outer(first, second) + 0.5 * noise).ravel())
    return AllocationModel.symmetric_nmf(4, concentration=1e-3), counts.reshape(12, 12)


def test_tempering_that_does_not_come_back_from_few_topics_has_not_converged():
    model, data = few_topics()
    options = {"random_state": 0, "given_total": True}
    with pytest.warns(UnreliableErrorWarning, match="tempering has not converged"):
        found = model.log_evidence(data, "tempered", n_samples=128, **options)
    size = {"n_particles": 4000, "n_sweeps": 0, "random_state": 1}
    with pytest.warns(UnreliableErrorWarning, match="concentration is so small"):
        smc = model.log_evidence(data, "smc", given_total=True, **size)
    assert smc.std_error < 0.5
    # The best bound known is by particles.
    assert model.log_evidence(data, "vb", **options).value + 50 < found.lower_bound < smc.value
    assert not found.converged
    assert abs(found.value - smc.value) < 4 * found.std_error


TUCKER = AllocationModel.tucker(("i", "j", "k"), (2, 2, 2), concentration=5)


# 300 tokens in 8 x 8 x 8 cells, on which four replicates without moves agree three nats too low.
# The evidence is that of eight long replicates of tempering.
DIGITS = (
    "1000030220201205100013101000000130410816202203332130010300100400"
    "0000000000010100200002010000000032201500111000115011010100100000"
    "0000000120100002010003220000000041100010400003213000120020000000"
    "0000000100000111001100000000000000200002001100010001000100000010"
    "0000000110010002000003100000000040200113001103040010010201000000"
    "1000000000000002000001110000000012200310103001202010120100000000"
    "0000000020100003002004120000000020200504102102040020040500200101"
    "0000000010000000001001020000000000000102000001030010010000100000"
)
TOKENS = np.array(list(DIGITS), dtype=int).reshape(8, 8, 8)
TUCKER_EVIDENCE, TUCKER_ERROR = -422.05, 0.14


@pytest.mark.filterwarnings("ignore::polyabayes.exceptions.UnreliableErrorWarning")
@pytest.mark.parametrize("method", ["smc", "auto"])
@pytest.mark.parametrize("seeds", [range(2), pytest.param(range(2, 15), marks=pytest.mark.slow)])
def test_estimates_without_a_warning_are_within_their_errors(method, seeds):
    n_converged = 0
    for seed in seeds:
        found = TUCKER.log_evidence(TOKENS, method, given_total=True, random_state=seed)
        error = math.hypot(found.std_error, TUCKER_ERROR)
        assert found.converged == (not found.doubt)
        n_converged += found.converged
        if found.converged:
            assert abs(found.value - TUCKER_EVIDENCE) < 4 * error < 3
    assert 2 * n_converged >= len(seeds)


@pytest.mark.filterwarnings("ignore::polyabayes.exceptions.UnreliableErrorWarning")
def test_particles_without_moves_are_not_believed_where_they_miss_a_mode():
    for seed in range(6):
        found = TUCKER.log_evidence(
            TOKENS, "smc", given_total=True, n_sweeps=0, n_particles=1000, random_state=seed
        )
        assert not found.converged
    few = TUCKER.log_evidence(
        TOKENS, "smc", given_total=True, n_sweeps=0, n_particles=16, n_replicates=4, random_state=0
    )
    assert few.doubt


@pytest.mark.parametrize(
    "options",
    [
        {"resample_below": 0},
        {"resample_below": 1.0},
        {"resampling": "multinomial", "resample_below": 1},
        {"resampling": "stratified"},
        {"resampling": "residual"},
        {"order": "sorted"},
        {"order": [3, 0, 2, 1]},
        {"order": np.array([1, 0, 3, 2])},
    ],
)
def test_options_of_smc_leave_it_unbiased(options):
    model = AllocationModel.nmf(3)
    exact = model.log_evidence(DEEP, "exact").value
    found = model.log_evidence(
        DEEP, "smc", n_particles=256, n_replicates=64, random_state=3, **options
    )
    assert abs(found.value - exact) < 4 * found.std_error < 0.3


def test_the_order_of_tokens_matters_to_smc():
    model = AllocationModel.pachinko([2, 3])
    one, other = (
        model.log_evidence(DEEP, "smc", order=order, random_state=0).value
        for order in ([0, 1, 2, 3], [3, 2, 1, 0])
    )
    assert one != other


def test_bounds_close_with_temperatures():
    model, shape = AllocationModel.cp(["i", "j"], 3), {"i": 6, "j": 5}
    wide, narrow = (
        model.bidirectional_bounds(shape, 200, n_samples=n, n_replicates=2, random_state=1)
        for n in (5, 2000)
    )
    assert wide.gap > narrow.gap
    assert abs(narrow.gap) < 4 * narrow.gap_std_errors


def test_auto_is_exact_where_that_is_quick_and_else_chooses_by_a_pilot():
    assert AllocationModel.nmf(2).log_evidence(DEEP).method == "exact"
    wide = np.random.default_rng(0).poisson(1.0, (12, 12))
    found = AllocationModel.nmf(4).log_evidence(wide, n_replicates=2, random_state=0)
    assert (found.method, found.n_replicates) == ("tempered", 2)
    # Few cells of large counts.
    few = np.diag([300, 200, 100])
    for seed in range(3):
        found = AllocationModel.nmf(4).log_evidence(few, random_state=seed)
        assert found.method == "smc"
        alone = AllocationModel.nmf(4).log_evidence(few, "smc", random_state=seed)
        assert (found.value, found.std_error) == (alone.value, alone.std_error)


@pytest.mark.filterwarnings("ignore::polyabayes.exceptions.UnreliableErrorWarning")
def test_auto_passes_the_options_on_and_chooses_what_takes_them():
    model, wide = AllocationModel.nmf(4), np.random.default_rng(0).poisson(1.0, (12, 12))
    shared = {"n_replicates": 3, "random_state": 0}
    for options in (
        {"n_particles": 32},
        {"order": "sorted"},
        {"order": np.arange(np.count_nonzero(wide))},
        {"resampling": "residual", "resample_below": 1},
        {"order": "sorted", "budget": 100.0},
    ):
        found = model.log_evidence(wide, **options, **shared)
        assert (found.method, found.n_replicates) == ("smc", 3)
        options.pop("budget", None)
        assert found.value == model.log_evidence(wide, "smc", **options, **shared).value
    few, size = np.diag([300, 200, 100]), {"n_samples": 128, "random_state": 0}
    for options in ({}, {"target_std_error": 3.0}):
        found = model.log_evidence(few, **size, **options)
        assert found.method == "tempered"
        assert found.value == model.log_evidence(few, "tempered", **size, **options).value
    # Exact values need none of the options.
    assert AllocationModel.nmf(2).log_evidence(DEEP, order="sorted").method == "exact"


def test_intervals_hold_the_value_and_widen():
    evidence = AllocationModel.nmf(3).log_evidence(DEEP, "smc", random_state=0, n_replicates=4)
    low, high = evidence.interval(0.5)
    lower, higher = evidence.interval()
    assert lower < low < evidence.value < high < higher
    half_width = stats.t.ppf(0.975, 3) * evidence.std_error
    assert higher - evidence.value == pytest.approx(half_width)
    exact = AllocationModel.nmf(3).log_evidence(DEEP, "exact")
    assert exact.interval() == (exact.value, exact.value)


@pytest.mark.filterwarnings("ignore:replicates with a quarter")
def test_intervals_cover_as_promised():
    """4 replicates, 400 seeds: 95 % within 4 standard errors of a binomial share, or more.

    The error of smc is the larger of two, one of which chance hardly touches: there are more by
    Student's law, and as many by the normal one. Chance lets its two sizes differ in one seed of a
    hundred at most, within 4 standard errors of that share.
    """
    model = AllocationModel.nmf(3)
    exact = model.log_evidence(DEEP, "exact").value
    covered = near = doubted = 0
    for seed in range(400):
        effort = {"n_replicates": 4, "n_particles": 64, "n_jobs": 1}
        found = model.log_evidence(DEEP, "smc", random_state=seed, **effort)
        low, high = found.interval()
        covered += low <= exact <= high
        near += abs(found.value - exact) < 1.96 * found.std_error
        doubted += bool(found.doubt)
    assert covered / 400 > 0.95 - 4 * math.sqrt(0.95 * 0.05 / 400)
    assert abs(near / 400 - 0.95) < 4 * math.sqrt(0.95 * 0.05 / 400)
    assert doubted / 400 < 0.01 + 4 * math.sqrt(0.01 * 0.99 / 400)


def test_replicates_that_differ_much_raise_doubts():
    counts = np.random.default_rng(0).poisson(2, (10, 10))
    effort = {"n_particles": 16, "n_replicates": 16, "random_state": 0}
    with pytest.warns(UnreliableErrorWarning, match="raise n_particles") as caught:
        found = AllocationModel.nmf(5).log_evidence(counts, "smc", **effort)
    assert caught[0].filename == __file__
    assert found.n_eff < 0.37 * 16


@pytest.mark.parametrize("graph", ["i <- r -> j", "i -> r -> j"])
def test_particles_of_tiny_concentrations_are_not_believed(graph):
    """Replicates of particles agree on a value 0.3 nats, seven of their errors, too low."""
    model = AllocationModel(graph, {"r": 2}, concentration=1e-5)
    table = np.diag([9, 7, 8])
    exact = model.log_evidence(table, "exact", given_total=True).value
    found = model.log_evidence(table, budget=1.0, given_total=True, random_state=0)
    assert found.method == "tempered"
    for seed in range(5):
        found = model.log_evidence(table, budget=1.0, given_total=True, random_state=seed)
        low, high = found.interval(0.999)
        assert low < exact < high
        with pytest.warns(UnreliableErrorWarning, match="may leave hidden states"):
            filtered = model.log_evidence(table, "smc", given_total=True, random_state=seed)
        assert not filtered.converged
        assert np.isnan(filtered.n_eff)
    usual = AllocationModel(graph, {"r": 2}, concentration=1.0)
    assert usual.log_evidence(table, "smc", given_total=True, random_state=0).converged
