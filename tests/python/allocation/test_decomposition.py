import math

import numpy as np
import pandas as pd
import pytest
from sklearn.decomposition import NMF

from polyabayes import AllocationModel, CountTensor, Decomposition, n_effective_parameters
from polyabayes.allocation.inference.contraction import Factor, contract
from polyabayes.allocation.options import DECOMPOSITIONS

DEEP = np.array([[4, 3, 0], [0, 0, 3], [0, 0, 3]])
CELLS = [[0, 1, 1], [1, 0, 2], [2, 2, 0], [2, 1, 1]]
CUBE = CountTensor.from_coo(CELLS, [3, 2, 1, 4], ["i", "j", "k"], [3, 3, 3])

MODELS = {
    "cp": AllocationModel.cp(["i", "j", "k"], 2),
    "tucker": AllocationModel.tucker(["i", "j", "k"], [2, 2, 3]),
    "blockmodel": AllocationModel.blockmodel(2, 3, ["i", "j", "k"]),
    "sum-conditioned": AllocationModel.sum_conditioned(2),
    "complete": AllocationModel.complete(["i", "j", "k"]),
    "symmetric": AllocationModel.symmetric_cp(3, 2, ["i", "j", "k"]),
    "larger than its axis": AllocationModel("r -> i, j, k", {"r": 2, "j": 5}),
}


def by_definition(found):
    """All cells by one sum over the joint values of all nodes."""
    letters = dict(zip(found.tables, "abcdefghijklmnop", strict=False))
    terms = ["".join(letters[name] for name in found.families[node]) for node in found.tables]
    out = "".join(letters[axis] for axis in found.tensor.axes)
    dense = found.intensity * np.einsum(f"{','.join(terms)}->{out}", *found.tables.values())
    return dense[tuple(slice(size) for size in found.tensor.shape)]


@pytest.mark.parametrize("name", MODELS)
def test_reconstruction_and_errors_follow_from_the_tables(name):
    found = MODELS[name].decompose(CUBE, random_state=0)
    expected, counts = by_definition(found), CUBE.to_dense()
    np.testing.assert_allclose(found.reconstruction(), expected, rtol=1e-12)
    fitted = expected[tuple(CUBE.coordinates.T)]
    np.testing.assert_allclose(found.fitted_counts, fitted, rtol=1e-12)
    outside = found.intensity - expected.sum()
    if name != "larger than its axis":
        assert outside == pytest.approx(0, abs=1e-12)
        assert found.squared_error == pytest.approx(((counts - expected) ** 2).sum(), rel=1e-12)
    ratio = np.where(counts > 0, counts, 1) / expected
    kl = (counts * np.log(ratio) - counts + expected).sum() + outside
    assert found.kl_error == pytest.approx(kl, rel=1e-10)


@pytest.mark.parametrize("method", DECOMPOSITIONS)
@pytest.mark.parametrize("name", MODELS)
def test_tables_are_posterior_means_of_counts_that_add_up(name, method):
    model = MODELS[name]
    found = model.decompose(CUBE, method, random_state=0)
    assert found.method == method
    # Tables are means over draws of the counts, of which the other methods have one.
    draws = {node: counts[np.newaxis] for node, counts in found.expected_counts.items()}
    if method == "tempered":
        draws = model.sample_posterior(CUBE, random_state=0).counts
    for node, table in found.tables.items():
        n_tied = max([len(tie) for tie in model.tied if node in tie], default=1)
        counts = found.expected_counts[node]
        assert counts.sum() == pytest.approx(n_tied * CUBE.total, rel=1e-9)
        assert (counts >= 0).all()
        alpha = 0 if method == "ml" else n_tied / counts.size
        weights = alpha + draws[node]
        weights += weights.sum(axis=1, keepdims=True) == 0
        expected = (weights / weights.sum(axis=1, keepdims=True)).mean(axis=0)
        np.testing.assert_allclose(table, expected, rtol=1e-12)
    assert found.intensity == CUBE.total  # the rate is 1 / T
    marginal = found.expected_counts["i"].reshape(3, -1).sum(axis=1)
    if not model.tied:
        np.testing.assert_allclose(marginal, CUBE.marginal("i").to_dense(), rtol=1e-9)


@pytest.mark.parametrize("concentration", [0.01, 1.0, 100.0])
def test_values_are_those_of_equivalent_graphs_where_one_allocation_is_possible(concentration):
    rows = CountTensor.from_coo([[0, 0], [0, 1], [1, 1]], [2, 1, 1], ["x", "a"])
    graphs = ("x -> c -> a", "c -> x, a", "a -> c -> x")
    models = [AllocationModel(graph, {"c": 1}, concentration) for graph in graphs]
    exact = models[0].log_evidence(rows, "exact", given_total=True).value
    for method in DECOMPOSITIONS:
        values = [model.decompose(rows, method, random_state=0).value for model in models]
        np.testing.assert_allclose(values, values[0], rtol=1e-10)
        if method == "ml":
            assert values[0] == pytest.approx(-2.537023, abs=5e-7)
        elif method not in ("em", "icm", "smc"):  # densities of tables, labelled tokens
            assert values[0] == pytest.approx(exact, abs=1e-9)


def test_iterations_go_on_until_they_have_converged():
    # Two classes of weak items: the likelihood is nearly flat.
    rng = np.random.default_rng(0)
    items = rng.integers(0, 2, (400, 4))
    counts = CountTensor.from_frame(pd.DataFrame(items, columns=list("abcd")))
    model = AllocationModel.cp(list("abcd"), 3)
    found = model.decompose(counts, "ml", n_restarts=1, tol=1e-12, random_state=0)
    assert found.has_converged
    assert len(found.trace) > 1000
    assert not model.decompose(counts, "ml", n_restarts=1, max_iter=9, random_state=0).has_converged


def test_displays_name_the_objective_and_count_the_iterations():
    model, data = AllocationModel.nmf(2, rate=0.1), [[4, 3, 0], [0, 0, 3]]
    named = {
        "vb": "ln P(X | T) >= ",
        "em": "ln p(X, θ | T) = ",
        "icm": "ln p(S, θ | T) = ",
        "ml": "ln P(X | θ, T) = ",
        "dual-em": "ln P(S | T) = ",
        "gibbs": "ln P(S | T) = ",
    }
    for method, text in named.items():
        found = model.decompose(data, method, max_iter=2, random_state=0)
        assert f"; {text}{found.value:z,.2f} nats, " in repr(found)
    once = model.decompose(data, max_iter=1, random_state=0)
    assert repr(once).endswith(" nats, 1 iteration>")
    part = model.decompose([[4, np.nan], [1, 3]], "ml", observed="nan", random_state=0)
    assert part.objective == "ln P(X | θ)"
    assert part.reached(1).startswith("ln P(X | θ) = -")


def test_bound_is_that_of_the_evidence():
    model = AllocationModel.nmf(3)
    found = model.decompose(DEEP, random_state=0)
    bound = model.log_evidence(DEEP, "vb", random_state=0)
    assert found.value + found.log_probability_of_total == pytest.approx(bound.value, abs=1e-12)
    assert found.is_lower_bound
    assert bound.is_lower_bound
    assert not bound.is_unbiased
    assert bound.interval() == (bound.value, np.inf)


def test_largest_likelihood_of_as_many_groups_as_rows_is_that_of_the_shares():
    found = AllocationModel.nmf(3).decompose(DEEP, "ml", random_state=0)
    counts = DEEP[DEEP > 0]
    arrangements = math.lgamma(DEEP.sum() + 1) - sum(math.lgamma(n + 1) for n in counts)
    largest = arrangements + (counts * np.log(counts / DEEP.sum())).sum()
    assert largest - 1e-4 < found.value < largest + 1e-9
    np.testing.assert_allclose(found.reconstruction(), DEEP, atol=1e-3)


LARGER = np.random.default_rng(2).poisson(np.outer([3, 9, 1, 5], [4, 1, 2, 6, 1]) / 4)


def test_the_largest_likelihood_is_the_least_kl_divergence():
    """KL-NMF and LDA are one network (section 3.5 of Cemgil et al. 2019)."""
    tables = AllocationModel.nmf(2).decompose(LARGER, "ml", random_state=0).tables
    fitted = LARGER.sum() * (tables["doc"] * tables["topic"]) @ tables["word"].T
    divergences = []
    for seed in range(4):
        options = {"beta_loss": "kullback-leibler", "solver": "mu", "init": "random"}
        least = NMF(2, max_iter=5_000, tol=0, random_state=seed, **options)
        weights = least.fit_transform(LARGER.astype(float))
        divergences.append(kl(weights @ least.components_))
    assert kl(fitted) == pytest.approx(min(divergences), abs=1e-4)


def kl(fitted):
    """Generalised Kullback-Leibler divergence of the counts from a fit, in nats."""
    seen = LARGER > 0
    logs = LARGER[seen] * np.log(LARGER[seen] / fitted[seen])
    return float(logs.sum() - LARGER.sum() + fitted.sum())


def test_largest_likelihood_asks_nothing_of_the_prior():
    one, other = (
        AllocationModel.nmf(2, concentration=a, rate=b).decompose(DEEP, "ml", random_state=0)
        for a, b in ((1e-3, 0.1), (50.0, 3.0))
    )
    assert one.value == other.value
    assert one.intensity == other.intensity == DEEP.sum()
    np.testing.assert_array_equal(one.tables["word"], other.tables["word"])


@pytest.mark.parametrize("seed", range(3))
def test_good_modes_of_a_planted_tensor_are_found(seed):
    """At least as likely as the truth; and what the others explain is as near as the truth."""
    rng, shape, R = np.random.default_rng(seed), (15, 12, 10), 6
    axes = [rng.dirichlet([0.2] * n, R) for n in shape]
    truth = 5000 * np.einsum("r,ri,rj,rk->ijk", rng.dirichlet([2] * R), *axes)
    counts = rng.multinomial(5000, truth.ravel() / 5000).reshape(shape)
    seen = counts > 0
    kl = (counts[seen] * np.log(counts[seen] / truth[seen])).sum()
    model = AllocationModel.cp(["i", "j", "k"], R)
    assert model.decompose(counts, "ml", random_state=seed).kl_error < kl
    for method in ("vb", "em"):
        assert model.decompose(counts, method, random_state=seed).kl_error < 1.25 * kl


def test_frames_have_labels_and_all_cells():
    labels = {"doc": ["d0", "d1", "d2"]}
    tensor = CountTensor.from_dense(DEEP, ["doc", "word"], labels)
    found = AllocationModel.nmf(2).decompose(tensor, random_state=0)
    frame = found.to_frame("doc")
    assert frame.columns.tolist() == ["doc", "topic", "probability", "expected_count"]
    assert frame["doc"].tolist() == ["d0", "d0", "d1", "d1", "d2", "d2"]
    assert frame["topic"].tolist() == [0, 1] * 3
    np.testing.assert_array_equal(frame["probability"], found.tables["doc"].ravel())
    assert frame.groupby("topic")["probability"].sum().tolist() == pytest.approx([1, 1])


def test_sparsity_is_that_of_hoyer():
    def decomposition(table):
        tensor = CountTensor.from_dense([1], ["i"])
        tables, nothing = {"i": np.array(table)}, np.zeros(1)
        found = (1.0, nothing, 0.0, True, 0.0, "vb", tensor, np.empty((0, 1), dtype=np.int64), 0.0)
        return Decomposition(tables, tables, {"i": ("i",)}, *found)

    assert decomposition([0.25] * 4).sparsity == {"i": pytest.approx(0, abs=1e-12)}
    assert decomposition([0, 1.0, 0, 0]).sparsity == {"i": pytest.approx(1)}
    mixed = decomposition([[0.5, 0.0], [0.5, 1.0]]).sparsity["i"]
    assert mixed == pytest.approx(0.5)
    assert math.isnan(decomposition([1.0]).sparsity["i"])


def test_effective_parameters_are_the_slope_at_vanishing_concentration():
    """ln π(S | T) = d ln a + O(1): a saturated tensor is its own allocation."""
    model = AllocationModel.complete(["i", "j"])
    found = model.decompose(DEEP)
    values = [
        AllocationModel.complete(["i", "j"], concentration=a)
        .log_evidence(DEEP, given_total=True)
        .value
        for a in (1e-8, 1e-9)
    ]
    assert n_effective_parameters(found) == (DEEP > 0).sum() - 1
    slope = (values[0] - values[1]) / math.log(10)
    assert slope == pytest.approx(n_effective_parameters(found), abs=1e-6)


def test_effective_parameters_of_counts():
    assert n_effective_parameters({"topic": [3, 1], "word": [[2, 0], [1, 1]]}) == 2
    assert n_effective_parameters({"topic": [4, 0], "word": [[4, 0], [0, 0]]}) == 0
    assert n_effective_parameters({"topic": [3.6, 0.4], "word": [[3.6, 0.4]]}, threshold=0.1) == 1
    symmetric = AllocationModel.symmetric_nmf(1).decompose([[1, 1], [0, 2]])
    assert n_effective_parameters(symmetric) == 1


def test_empty_tensors_have_prior_tables():
    empty = CountTensor.from_coo(np.empty((0, 2), int), [], ["doc", "word"], [2, 3])
    found = AllocationModel.nmf(2, rate=1.0).decompose(empty, max_iter=5)
    np.testing.assert_allclose(found.tables["word"], 1 / 3)
    assert found.fitted_counts.shape == (0,)
    assert found.intensity == 0.5


def test_chunks_of_cells_do_not_change_what_is_fitted(monkeypatch):
    found = MODELS["tucker"].decompose(CUBE, random_state=0)
    whole = found.fitted_counts
    monkeypatch.setattr("polyabayes.allocation.inference.decomposition._CHUNK", 1)
    again = MODELS["tucker"].decompose(CUBE, random_state=0)
    np.testing.assert_allclose(again.fitted_counts, whole, rtol=1e-12)


def test_many_nodes_are_contracted():
    """More nodes than there are letters for one sum."""
    links = [Factor(np.full((2, 2), 0.5), (f"n{i}", f"n{i + 1}")) for i in range(80)]
    np.testing.assert_allclose(contract(links, ("n80",)), [1.0, 1.0])


def test_a_frame_without_a_node_holds_all_tables():
    found = AllocationModel.nmf(2).decompose([[3, 1, 0], [0, 2, 4]], random_state=0)
    frame = found.to_frame()
    assert list(frame.columns) == ["node", "level", "given", "probability", "expected_count"]
    assert len(frame) == 2 + 2 * 2 + 2 * 3
    for node in ("doc", "topic", "word"):
        own = frame[frame["node"] == node]
        np.testing.assert_array_equal(own["probability"], found.to_frame(node)["probability"])
        assert (own.groupby("given")["probability"].sum() - 1).abs().max() < 1e-12
    assert "topic" in found._repr_html_()
