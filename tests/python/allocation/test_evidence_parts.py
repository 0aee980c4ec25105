"""The terms of the evidence of networks without hidden nodes."""

import json
import math
from dataclasses import asdict

import numpy as np
import pytest
from scipy.special import gammaln

from polyabayes import AllocationModel, CountTensor, Evidence

RNG = np.random.default_rng(5)
CUBE = CountTensor.from_dense(RNG.integers(0, 5, (2, 3, 4)), ["i", "j", "k"])
SQUARE = CountTensor.from_dense([[4, 1, 0], [2, 5, 1], [0, 0, 3]], ["i", "j"])


@pytest.mark.parametrize("given_total", [False, True])
@pytest.mark.parametrize("prior", ["bdeu", "flat"])
@pytest.mark.parametrize(
    "graph", ["i -> j -> k", "i; j; k", "i -> j <- k", "i -> j; i, j -> k", "j -> i, k"]
)
def test_parts_sum_to_the_evidence(graph, prior, given_total):
    found = AllocationModel(graph, prior=prior).log_evidence(CUBE, given_total=given_total)
    assert found.parts is not None
    assert found.parts.value == pytest.approx(found.value, abs=1e-9)
    assert [row.part for row in found.parts.rows].count("total") == (not given_total)


@pytest.mark.parametrize("prior", ["bdeu", "bdeu-tokens"])
def test_parts_of_tied_tables_sum_to_the_evidence(prior):
    model = AllocationModel("i; j", tied=[("i", "j")], prior=prior)
    found = model.log_evidence(SQUARE)
    assert found.parts is not None
    assert found.parts.value == pytest.approx(found.value, abs=1e-10)
    assert found.parts.to_frame()["nodes"].tolist() == ["i + j", "- + -", "i, j", "-"]


def test_equivalent_graphs_have_the_same_cliques_and_separators():
    found = [
        AllocationModel(graph).log_evidence(CUBE).parts
        for graph in ("i -> j -> k", "i <- j -> k", "i <- j <- k")
    ]
    for parts in found:
        assert parts is not None
        cliques = {(row.part, row.nodes, row.times) for row in parts.rows}
        assert cliques == {
            ("clique", "i, j", 1),
            ("clique", "j, k", 1),
            ("separator", "j", -1),
            ("separator", "-", -1),
            ("multiplicity", "i, j, k", 1),
            ("total", "-", 1),
        }
        assert (parts - found[0])["difference"] == pytest.approx(0.0, abs=1e-9)


def test_a_clique_is_the_sum_over_its_joint_counts():
    found = AllocationModel("i -> j -> k", concentration=2.0).log_evidence(CUBE)
    assert found.parts is not None
    (of_pair,) = [row.value for row in found.parts.rows if row.nodes == "i, j"]
    counts = CUBE.marginal("i", "j").to_dense()
    alpha = 2.0 / counts.size
    assert of_pair == pytest.approx((gammaln(alpha + counts) - gammaln(alpha)).sum(), rel=1e-12)


def test_the_difference_of_two_networks_is_that_of_their_evidences():
    first = AllocationModel("i -> j -> k").log_evidence(CUBE)
    for graph in ("i <- j; k", "i, j -> k"):
        for prior in ("bdeu", "flat"):
            second = AllocationModel(graph, prior=prior).log_evidence(CUBE)
            assert first.parts is not None
            assert second.parts is not None
            table = first.parts - second.parts
            assert math.fsum(table["difference"]) == pytest.approx(
                first.value - second.value, abs=1e-9
            )
            same = table["part"].tolist().index("multiplicity")
            assert table["difference"][same] == pytest.approx(0.0, abs=1e-12)


def test_hidden_nodes_have_no_parts_and_their_allocations_have():
    model = AllocationModel.nmf(2)
    drawn = model.simulate({"doc": 3, "word": 4}, 30, random_state=0)
    assert model.log_evidence(drawn.tensor, "smc", random_state=0).parts is None
    parts = model.log_evidence(drawn.allocation).parts
    assert parts is not None
    assert [row.nodes for row in parts.rows[:3]] == ["doc, topic", "topic, word", "topic"]
    unknown = CountTensor.from_coo([[0, 1], [0, -1]], [2, 1], ["i", "j"], unknown=-1)
    assert AllocationModel("i -> j").log_evidence(unknown, given_total=True).parts is None


def test_parts_travel_through_json():
    found = AllocationModel("i -> j").log_evidence(SQUARE)
    again = Evidence.from_plain(json.loads(json.dumps(asdict(found))))
    assert again.parts is not None
    assert found.parts is not None
    assert again.parts.rows == found.parts.rows
