"""Draws from the posterior of allocations, against all allocations."""

import copy
import pickle
from functools import partial
from itertools import product

import numpy as np
import pytest
from scipy.special import gammaln, logsumexp, softmax

from helpers.interruption import interrupted_when_done
from helpers.networks import VECTORS, problem
from polyabayes import AllocationModel, CountTensor
from polyabayes.allocation import options as options_module
from polyabayes.allocation.inference.alignment import Numbering
from polyabayes.exceptions import Interrupted, TargetWarning, UnreliableErrorWarning

SMALL = np.array([[4, 3, 0], [0, 0, 3], [0, 0, 3]])
CUBE, FEW = (
    CountTensor.from_coo(
        [[0, 1, 1], [1, 0, 2], [2, 2, 0], [2, 1, 1]], counts, ["i", "j", "k"], [3, 3, 3]
    )
    for counts in ([3, 2, 1, 4], [2, 1, 1, 2])
)
MODELS = {
    "nmf": (AllocationModel.nmf(2), SMALL),
    # A cell whose tokens move together.
    "heavy cell": (AllocationModel.nmf(2), np.array([[33, 1], [0, 2]])),
    "cp": (AllocationModel.cp(["i", "j", "k"], 2), CUBE),
    "tucker": (AllocationModel.tucker(["i", "j", "k"], [2, 2, 2]), FEW),
    "symmetric": (AllocationModel.symmetric_cp(3, 2, ["i", "j", "k"]), CUBE),
    "nothing hidden": (AllocationModel.complete(["i", "j", "k"]), CUBE),
}


def divisions(n, n_parts):
    """All ways to give n tokens to so many topics."""
    if n_parts == 1:
        return [(n,)]
    return [(k, *rest) for k in range(n + 1) for rest in divisions(n - k, n_parts - 1)]


def all_allocations(draws):
    """Tables of counts of all allocations, and their ln π(S | T)."""
    axes, families = draws.tensor.axes, draws.families
    levels = {node: range(draws.counts[node].shape[1]) for node in families if node not in axes}
    states = [dict(zip(levels, values, strict=True)) for values in product(*levels.values())]
    every = np.array([*product(*(divisions(n, len(states)) for n in draws.tensor.counts))])
    # Tied nodes have one table.
    tables = {id(x): np.zeros((len(every), *x.shape[1:])) for x in draws.counts.values()}
    found = {node: tables[id(counts)] for node, counts in draws.counts.items()}
    for cell, place in enumerate(draws.tensor.coordinates):
        for at, state in enumerate(states):
            values = state | dict(zip(axes, place, strict=True))
            for node, family in families.items():
                found[node][:, *(values[name] for name in family)] += every[:, cell, at]
    ln_law = gammaln(draws.tensor.total + 1) - gammaln(every + 1).sum(axis=(1, 2))
    for node, table in {id(table): (node, table) for node, table in found.items()}.values():
        alpha, size = draws.alphas[node], table.shape[1]
        risings = (gammaln(alpha + table) - gammaln(alpha)).sum(axis=1)
        whole = gammaln(alpha * size + table.sum(axis=1)) - gammaln(alpha * size)
        ln_law += (risings - whole).reshape(len(every), -1).sum(axis=1)
    return found, ln_law


def n_parameters(counts):
    """Counts above zero, less those of the values of their parents, over all tables."""
    tables = {id(table): table for table in counts.values()}.values()
    used = [np.sum(table > 0, axis=1) - table.any(axis=1) for table in tables]
    return sum(each.reshape(len(each), -1).sum(axis=1) for each in used)


def by_chain(draws, values):
    """Mean over the chains, and its error."""
    means = [np.mean(np.asarray(values)[draws.chain == chain]) for chain in set(draws.chain)]
    return float(np.mean(means)), float(np.std(means, ddof=1) / np.sqrt(len(means)))


@pytest.mark.parametrize("name", ["nmf", "heavy cell", "cp", "tucker"])
def test_means_of_draws_are_those_of_all_allocations(name):
    model, data = MODELS[name]
    effort = {"n_replicates": 8, "target_std_error": 0.03, "random_state": 1}
    draws = model.sample_posterior(data, 2000, **effort)
    every, ln_law = all_allocations(draws)
    exact = np.average(n_parameters(every), weights=np.exp(ln_law))
    mean, error = by_chain(draws, n_parameters(draws.counts))
    assert abs(mean - exact) < 4 * error
    assert error < 0.1


@pytest.mark.parametrize("name", MODELS)
def test_draws_have_the_counts_and_the_law_of_an_allocation(name):
    model, data = MODELS[name]
    draws = model.sample_posterior(data, 40, random_state=0)
    every = all_allocations(draws)[1]
    for log_joint in draws.log_joint:
        assert abs(every - log_joint).min() < 1e-8
    places = draws.tensor.coordinates
    for draw in (0, len(draws) - 1):
        cells, numbers, values = draws.allocation(draw)
        np.testing.assert_array_equal(np.bincount(cells, weights=numbers), draws.tensor.counts)
        assert len({*zip(cells, *values.values(), strict=True)}) == len(cells)
        values |= {axis: places[cells, at] for at, axis in enumerate(draws.tensor.axes)}
        found = {}
        for node, family in draws.families.items():
            counts = draws.counts[node]
            table = found.setdefault(id(counts), np.zeros(counts.shape[1:]))
            np.add.at(table, tuple(values[name] for name in family), numbers)
        for node, counts in draws.counts.items():
            np.testing.assert_array_equal(counts[draw], found[id(counts)], err_msg=node)


@pytest.mark.parametrize("name", ["nmf", "cp", "tucker", "symmetric"])
def test_particles_are_draws_from_all_allocations(name):
    model, data = MODELS[name]
    # Few particles and replicates: those of one call share much, calls share nothing.
    effort = {"n_particles": 32, "n_replicates": 4, "n_sweeps": 4}
    means = []
    for seed in range(40):
        draws = model.sample_posterior(data, 50, method="smc", random_state=seed, **effort)
        means.append(draws.log_joint.mean())
        if not means[1:]:
            ln_law = all_allocations(draws)[1]
            exact = np.average(ln_law, weights=np.exp(ln_law))
        assert abs(ln_law - draws.log_joint[-1]).min() < 1e-8
    assert (len(draws), draws.evidence.method, set(draws.chain)) == (50, "smc", {0})
    error = np.std(means, ddof=1) / np.sqrt(len(means))
    assert abs(np.mean(means) - exact) < 3.5 * error
    assert error < 0.1
    alone = model.log_evidence(data, "smc", random_state=39, **effort)
    assert draws.evidence.value == pytest.approx(alone.value, abs=1e-12)


@pytest.mark.parametrize("n_topics", [2, 3])
def test_tables_and_counts_are_posterior_means_over_all_allocations(n_topics):
    data = SMALL[[0, 2]]
    model = AllocationModel.nmf(n_topics)
    # No error is small enough, so that there are as many rounds as it takes.
    with pytest.warns(UnreliableErrorWarning, match="not converged"):
        draws = model.sample_posterior(
            data, 8192, n_samples=512, n_replicates=16, target_std_error=1e-9, random_state=1
        )
    every, ln_law = all_allocations(draws)
    exact = model.log_evidence(data, "exact", given_total=True).value
    assert logsumexp(ln_law) == pytest.approx(exact, abs=1e-9)
    weights = np.exp(ln_law - exact)
    best = int(draws.log_joint.argmax())
    reference = {node: counts[best] for node, counts in draws.counts.items()}
    numbering = Numbering(draws.families, ["topic"], [])
    each = ({node: counts[i] for node, counts in every.items()} for i in range(len(ln_law)))
    numbers = [numbering.of(counts, reference) for counts in each]
    found = draws.decomposition()
    for node, family in draws.families.items():
        counts = np.array(
            [numbering.renumbered(family, *each) for each in zip(every[node], numbers, strict=True)]
        )
        pseudo = draws.alphas[node] + counts
        tables = pseudo / pseudo.sum(axis=1, keepdims=True)
        drawn = draws.alphas[node] + draws.counts[node]
        drawn /= drawn.sum(axis=1, keepdims=True)
        for mean, each, of_draws in (
            (found.tables[node], tables, drawn),
            (found.expected_counts[node], counts, draws.counts[node]),
        ):
            exact_mean = np.tensordot(weights, each, 1)
            for place in np.ndindex(exact_mean.shape):
                by_draws, error = by_chain(draws, of_draws[:, *place])
                assert mean[place] == pytest.approx(by_draws, rel=1e-9)
                assert abs(mean[place] - exact_mean[place]) < 4.5 * error, (node, place)
                assert error < 0.05 * np.ptp(each[:, *place])


# Networks that hide something, of tokens that are not all alike.
HIDING = [x for x in VECTORS if len(x["sizes"]) > len(x["visible"]) and len(x["cells"]) > 1]


@pytest.mark.parametrize("case", HIDING, ids=lambda case: case["name"])
def test_gibbs_sampling_visits_allocations_by_their_probability(case):
    model, data = problem(case)
    effort = {"n_particles": 8, "n_replicates": 2}
    draws = model.sample_posterior(data, 1, method="smc", random_state=0, **effort)
    ln_law = all_allocations(draws)[1]
    levels, place = np.unique(ln_law.round(8), return_inverse=True)
    expected = np.bincount(place, softmax(ln_law))
    trace = model.decompose(data, "gibbs", max_iter=40_000, random_state=2).trace
    visits = (abs(trace[:, np.newaxis] - levels) < 1e-7).reshape(40, -1, len(levels)).mean(axis=1)
    assert visits.sum() == pytest.approx(40)
    error = visits.std(axis=0, ddof=1) / np.sqrt(40)
    # Levels too rare for batches to tell their error are left to the others, whose sum is 1.
    off = abs(visits.mean(axis=0) - expected)[expected > 0.002]
    assert (off <= 4.5 * error[expected > 0.002] + 1e-12).all()
    assert error.max() < 0.02


def test_draws_are_copied_and_pickled():
    model = AllocationModel.symmetric_cp(3, 2, ["i", "j", "k"])
    draws = model.sample_posterior(CUBE, 8, random_state=0)
    for other in (pickle.loads(pickle.dumps(draws)), copy.deepcopy(draws)):
        np.testing.assert_array_equal(other.log_joint, draws.log_joint)
        for mine, theirs in zip(draws.allocation(3)[:2], other.allocation(3)[:2], strict=True):
            np.testing.assert_array_equal(mine, theirs)
        np.testing.assert_array_equal(other.tables()["i"], draws.tables()["i"])
        # Tied nodes have one table still.
        assert other.counts["i"] is other.counts["k"]


def calls(model, n_draws, **options):
    """The functions that draw from the posterior."""
    return {
        "sample_posterior": partial(model.sample_posterior, planted(), n_draws, **options),
        "decompose": partial(model.decompose, planted(), "tempered", **options),
    }


@pytest.mark.parametrize("name", ["sample_posterior", "decompose"])
def test_ctrl_c_keeps_the_draws(name, monkeypatch):
    options = {"target_std_error": 1e-9, "n_samples": 2**20, "random_state": 0}
    call = calls(AllocationModel.nmf(3), 40, **options)[name]
    with interrupted_when_done(10, monkeypatch, options_module), pytest.raises(Interrupted) as stop:
        call()
    found = stop.value.partial
    if name == "decompose":
        assert found.tables["word"].sum(axis=0) == pytest.approx(1)
        assert found.method == "tempered"
        return
    assert len(found) == 40
    assert len(set(np.bincount(found.chain))) == 1
    assert found.evidence.n_rounds >= 10
    assert not found.evidence.converged
    options |= {"n_samples": found.evidence.rounds[2].n_scans}
    with pytest.warns(UnreliableErrorWarning, match="not converged"):
        whole = AllocationModel.nmf(3).log_evidence(planted(), "tempered", **options)
    assert found.evidence.rounds[: whole.n_rounds] == whole.rounds
    assert "stopped with" in str(stop.value)
    np.testing.assert_array_equal(found.counts["topic"].sum(axis=1), planted().sum())


def planted():
    """Three groups that cannot be mistaken for each other."""
    return np.kron(np.eye(3, dtype=int), np.array([[9, 4], [5, 8]]))


def test_draws_have_the_numbers_of_the_most_probable():
    model = AllocationModel.nmf(3)
    draws = model.sample_posterior(planted(), 64, random_state=2)
    words = draws.counts["word"]
    assert len({tuple(counts.argmax(axis=1)) for counts in words}) == 1
    assert words.std(axis=0).max() < 4.0
    found = draws.decomposition()
    np.testing.assert_allclose(found.expected_counts["word"], words.mean(axis=0))
    np.testing.assert_allclose(np.sort(found.tables["topic"]), [1 / 3] * 3, atol=0.05)


@pytest.mark.slow
def test_fits_have_the_moments_of_the_posterior():
    """A cell's probability has E p = Pr(X + e) (X_c + 1) / ((T + 1) Pr(X)), and E p² likewise."""
    model, total = AllocationModel.nmf(2), SMALL.sum()
    effort = {"n_replicates": 8, "target_std_error": 0.02, "random_state": 3}
    draws = model.sample_posterior(SMALL, 4096, **effort)

    def ln_evidence(cell, more):
        counts = SMALL.copy()
        counts[*cell] += more
        return model.log_evidence(counts, "exact", given_total=True).value

    for place, cell in enumerate(draws.tensor.coordinates):
        n, least = SMALL[*cell], ln_evidence(cell, 0)
        first = np.exp(ln_evidence(cell, 1) - least) * (n + 1) / (total + 1)
        second = np.exp(ln_evidence(cell, 2) - least) * (n + 1) * (n + 2)
        second /= (total + 1) * (total + 2)
        fits = draws._fits[:, place] / draws.intensity
        for exact, drawn in ((first, fits), (second, fits**2)):
            mean, error = by_chain(draws, drawn)
            assert abs(mean - exact) < 4.5 * error
            assert error < 0.05 * exact
        assert draws.fitted_counts[place] == pytest.approx(draws.intensity * fits.mean())
        assert draws.fitted_std[place] == pytest.approx(draws.intensity * fits.std())


@pytest.mark.parametrize(
    ("text", "hidden", "tied", "classes"),
    [
        ("r; i r; j r", ["r"], [], [["r"]]),
        ("r; s r; i r; j s", ["r", "s"], [], [["r"], ["s"]]),
        ("a; b a; c b; x a; y b; z c", [*"abc"], [("b", "c"), ("x", "y", "z")], [["a", "b", "c"]]),
    ],
)
def test_changed_numbers_are_found(text, hidden, tied, classes):
    families = {family[0]: tuple(family.split()) for family in text.split("; ")}
    numbering = Numbering(families, hidden, tied)
    rng, size = np.random.default_rng(0), 4
    first = {node: nodes[0] for nodes in tied for node in nodes}
    tables = {node: rng.dirichlet([0.2] * size, size).T * 90 for node in families}
    tables = {
        node: tables[first.get(node, node)][(slice(None), *[slice(None)] * (len(family) - 1))]
        if len(family) > 1
        else tables[node][:, 0]
        for node, family in families.items()
    }
    for _ in range(20):
        orders = {
            node: order for nodes in classes for order in [rng.permutation(size)] for node in nodes
        }
        changed = {
            node: numbering.renumbered(families[node], table, orders)
            for node, table in tables.items()
        }
        found = numbering.of(changed, tables)
        for node in hidden:
            np.testing.assert_array_equal(orders[node][found[node]], np.arange(size))


def test_draws_of_tables_are_dirichlet():
    model = AllocationModel.nmf(2, concentration=3.0)
    draws = model.sample_posterior(SMALL, 2000, random_state=0)
    tables = draws.tables(random_state=1)
    alpha = {node: draws.alphas[node] + counts for node, counts in draws.counts.items()}
    for node, table in tables.items():
        np.testing.assert_allclose(table.sum(axis=1), 1, rtol=1e-12)
        mean = alpha[node] / alpha[node].sum(axis=1, keepdims=True)
        spread = np.sqrt(mean * (1 - mean) / (alpha[node].sum(axis=1, keepdims=True) + 1))
        errors = ((table - mean) / spread).mean(axis=0) * np.sqrt(len(draws))
        assert abs(errors).max() < 4.5
    again = draws.tables()
    assert all((again[node] == table).all() for node, table in draws.tables().items())


def test_arviz_reads_the_draws():
    pytest.importorskip("arviz")
    draws = AllocationModel.nmf(2).sample_posterior(SMALL, 40, random_state=3)
    data = draws.to_inference_data()
    assert data.posterior["p_word"].dims == ("chain", "draw", "word", "topic")
    assert data.posterior.sizes["chain"] == 4
    np.testing.assert_array_equal(data.sample_stats["lp"].to_numpy().ravel(), draws.log_joint)
    frame = draws.to_frame()
    assert frame.columns.tolist() == ["chain", "log_joint"]
    assert len(frame) == 40


@pytest.mark.parametrize("name", ["sample_posterior", "decompose"])
def test_doubts_are_told_where_the_call_is(name):
    options = {"n_samples": 1, "target_std_error": 1e-6, "random_state": 0}
    call = calls(AllocationModel.nmf(4), 8, **options)[name]
    with pytest.warns(UnreliableErrorWarning, match="not converged") as told:
        call()
    assert {warning.filename for warning in told} == {__file__}


def test_there_are_as_many_draws_as_asked_for():
    model = AllocationModel.nmf(2)
    assert len(model.sample_posterior(SMALL, 5000, random_state=0)) == 5000
    # Rounds of 8, 16, ... 128 scans.
    effort = {"n_samples": 200, "target_std_error": 1.0, "random_state": 0}
    with pytest.warns(TargetWarning, match=r"^512 draws, not 3,000: n_samples=200 .* to 1,500"):
        draws = model.sample_posterior(SMALL, 3000, **effort)
    assert len(draws) == 512
    # Short rounds are no doubt.
    assert draws.evidence.converged
    model.decompose(SMALL, "tempered", n_samples=64, target_std_error=1.0, random_state=0)
