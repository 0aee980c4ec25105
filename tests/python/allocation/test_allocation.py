import json
import math

import numpy as np
import pytest
from scipy import sparse
from scipy.special import gammaln

import polyabayes as pb
from helpers.networks import VECTORS, ln_enumerated_case, problem
from polyabayes import AllocationModel, CountTensor, Evidence
from polyabayes.exceptions import InvalidArgumentError

TABLE = [[2, 0, 1], [1, 1, 0], [0, 3, 1]]
DEEP = [[4, 3, 0], [0, 0, 3], [0, 0, 3]]


@pytest.mark.parametrize("case", VECTORS, ids=lambda case: case["name"])
def test_exact_evidence_is_that_of_rational_arithmetic(case):
    model, tensor = problem(case)
    evidence = model.log_evidence(tensor, "exact")
    assert evidence.value == pytest.approx(case["log_evidence"], abs=1e-10)
    assert evidence.std_error == 0
    given = model.log_evidence(tensor, "exact", given_total=True)
    assert given.value == pytest.approx(case["log_probability_given_total"], abs=1e-10)
    assert evidence.value == given.value + evidence.log_probability_of_total
    assert given.value == pytest.approx(ln_enumerated_case(case), abs=1e-10)


@pytest.mark.parametrize("case", VECTORS, ids=lambda case: case["name"])
@pytest.mark.parametrize("method", ["vb", "dual-em"])
def test_coordinate_ascent_never_descends_and_stays_below_the_evidence(case, method):
    model, tensor = problem(case)
    is_apart = case["name"].startswith(("markov", "pachinko-three")) and "tied" not in case["name"]
    if method == "dual-em" and is_apart:
        with pytest.raises(InvalidArgumentError, match="need all of them in one clique"):
            model.decompose(tensor, method)
        return
    found = model.decompose(tensor, method, max_iter=60, tol=1e-14, n_restarts=3, random_state=5)
    assert (np.diff(found.trace) > -1e-10).all()
    assert found.value < case["log_probability_given_total"] + 1e-10


def test_best_bounds_of_the_toy_matrices(shared_vectors):
    toys = json.loads((shared_vectors / "toy_matrices.json").read_text())

    for name, value in toys["best_elbo"].items():
        matrix, rank, concentration = name.split()[:3]
        model = AllocationModel.nmf(int(rank[2:]), concentration=float(concentration[2:]))
        bound = model.log_evidence(toys[matrix], "vb", n_restarts=200, random_state=0)
        assert bound.value == pytest.approx(value, abs=1e-9), name


def test_saturated_graph_has_a_closed_form():
    counts = np.array(TABLE)
    a, total = 1.7, counts.sum()
    b = a / total
    alpha = a / counts.size
    terms = gammaln(alpha + counts) - gammaln(alpha) - gammaln(counts + 1)
    expected = a * math.log(b) - (a + total) * math.log(b + 1) + terms.sum()
    for text in ("i -> j", "j -> i"):
        for method in ("exact", "tempered", "auto"):
            model = AllocationModel(text, concentration=a, axes=["i", "j"])
            found = model.log_evidence(counts, method, random_state=0)
            assert found.value == pytest.approx(expected, abs=1e-12)
            assert (found.method, found.std_error) == ("exact", 0)


@pytest.mark.parametrize("method", ["auto", "exact", "smc", "tempered"])
@pytest.mark.parametrize("scale", [1, 10**6])
def test_one_hidden_value_is_exact_by_any_method(method, scale):
    """One allocation, however many tokens; the two nodes of the chain are in cliques apart."""
    counts = scale * np.array([[3, 0, 1], [2, 2, 5]])
    apart = AllocationModel("i -> j").log_evidence(counts).value
    together = AllocationModel("i, j").log_evidence(counts).value
    for text, sizes, expected in [
        ("i <- r -> j", {"r": 1}, together),
        ("r -> i, j; i -> j", {"r": 1}, apart),
    ]:
        found = AllocationModel(text, sizes).log_evidence(counts, method)
        assert (found.method, found.std_error, found.n_replicates) == ("exact", 0, 0)
        assert found.value == pytest.approx(expected, rel=1e-12)


def test_draws_of_one_hidden_value_are_the_data():
    counts = 10**6 * np.array([[3, 0, 1], [2, 2, 5]])
    model = AllocationModel("i <- r -> s; s -> j", {"r": 1, "s": 1})
    draws = model.sample_posterior(counts, 3)
    assert draws.evidence.method == "exact"
    assert len(draws) == 3
    evidence = model.log_evidence(counts, given_total=True)
    assert draws.log_joint == pytest.approx(evidence.value, rel=1e-12)
    assert draws.counts["s"].tolist() == 3 * [[[counts.sum()]]]
    assert draws.counts["j"][0, :, 0].tolist() == counts.sum(axis=0).tolist()


@pytest.mark.parametrize(
    ("texts", "shape"),
    [
        (["i <- r -> j", "i -> r -> j", "j -> r -> i"], (2, 3)),
        (["i <- r -> j; r -> k", "i -> r -> j; r -> k", "k -> r; r -> i, j"], (2, 2, 2)),
        (["i -> r -> s -> j", "j -> s -> r -> i", "i <- r -> s -> j"], (2, 2)),
        (["i -> j; i, j -> k", "k -> j; k, j -> i"], (2, 3, 2)),
    ],
)
def test_markov_equivalent_graphs_have_equal_evidence(texts, shape):
    counts = np.random.default_rng(0).poisson(0.8, shape)
    tensor = CountTensor.from_dense(counts, list("ijk")[: len(shape)])
    values = [
        AllocationModel(text, {node: 2 for node in "rs" if node in text}, 0.9).log_evidence(
            tensor, "exact"
        )
        for text in texts
    ]
    assert np.ptp([value.value for value in values]) < 1e-12
    assert values[0].n_tokens == counts.sum() > 3


def test_flat_tables_need_not_agree():
    flat = [
        AllocationModel(text, {"r": 2}, prior="flat", axes=["i", "j"]).log_evidence(
            [[3, 1], [0, 2]]
        )
        for text in ("i <- r -> j", "i -> r -> j")
    ]
    assert abs(flat[0].value - flat[1].value) > 0.01
    ones = AllocationModel("i <- r -> j", {"r": 2}, prior=dict.fromkeys("irj", 1.0))
    assert ones.log_evidence([[3, 1], [0, 2]]).value == flat[0].value


def test_data_may_be_tensors_corpora_and_bare_matrices():
    counts = np.array([[2, 0, 1], [1, 1, 0]])
    model = AllocationModel("word <- topic -> doc", {"topic": 2})
    assert model.axes == ("doc", "word")
    tensor = CountTensor.from_dense(counts, ["doc", "word"])
    corpus = pb.Corpus(counts, ["a", "b", "c"])
    values = {
        model.log_evidence(data).value
        for data in (counts, counts.tolist(), sparse.csr_array(counts), corpus, tensor)
    }
    assert len(values) == 1
    assert model.log_evidence(tensor.marginal("word", "doc")).value == pytest.approx(values.pop())
    larger = AllocationModel("word <- topic -> doc", {"topic": 2, "word": 9, "doc": 2})
    assert larger.log_evidence(tensor).value < model.log_evidence(tensor).value


def test_empty_tensor_has_the_probability_of_its_total():
    empty = CountTensor.from_coo(np.empty((0, 2), int), [], ["doc", "word"], [2, 3])
    model = AllocationModel.nmf(2, concentration=1.5, rate=0.5)
    for method in ("auto", "exact", "smc", "tempered", "vb"):
        evidence = model.log_evidence(empty, method)
        assert evidence.value == pytest.approx(1.5 * math.log(0.5 / 1.5), abs=1e-12)
    without = AllocationModel.nmf(2)
    given = without.log_evidence(empty, given_total=True)
    assert given.value == 0
    assert math.isnan(given.log_probability_of_total)


def test_cost_is_known_before_anything_runs():
    cost = AllocationModel.nmf(3).cost(DEEP)
    assert cost == (13, 4, 3, 3 * 3 + 3 * 3 + 3)
    chain = AllocationModel.pachinko([4, 5]).cost(DEEP)
    assert chain.n_states == 4 * 5
    huge = AllocationModel.nmf(10**4).cost(np.eye(100, dtype=int))
    assert huge.n_marginals == 201 * 10**4


def test_models_show_what_they_are():
    model = AllocationModel.symmetric_nmf(3, concentration=0.5, rate=2, prior="flat")
    expected = "r -> i, j; r 3; concentration 0.5; rate 2; tied i, j; prior flat"
    assert repr(model) == f"<AllocationModel: {expected}>"
    evidence = Evidence(-1.5, 0.25, "smc", True, -1.0, 3, True, False, 4, 3.0, 0.1)
    assert repr(evidence) == "<Evidence: -1.50 ± 0.25 nats (smc, 4 replicates, given the total)>"
    zero = Evidence(-1e-17, 0.0, "exact", False, 0.0, 0, True, False, 0, np.inf, 0.1)
    assert repr(zero) == "<Evidence: 0.000000 nats (exact)>"
