"""The graph language for any graph, not only for those that somebody thought of."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from polyabayes import AllocationModel
from polyabayes.exceptions import InvalidArgumentError, PolyabayesError

NAMES = ["doc", "topic", "word", "x1", "été", "_r"]


@st.composite
def graphs(draw):
    """Parents of every node, among the nodes before it."""
    nodes = draw(st.lists(st.sampled_from(NAMES), min_size=2, max_size=5, unique=True))
    return {
        node: draw(st.lists(st.sampled_from(nodes[:i]), unique=True)) if i else []
        for i, node in enumerate(nodes)
    }


def texts(parents, arrows, gap):
    """The graph in the language: an edge a statement, in either direction, after all nodes."""
    edges = [(parent, node) for node in parents for parent in parents[node]]
    statements = [
        f"{parent}{gap}->{gap}{node}" if forwards else f"{node}{gap}<-{gap}{parent}"
        for (parent, node), forwards in zip(edges, arrows, strict=False)
    ]
    return f"{gap};{gap}".join([f"{gap},{gap}".join(parents), *statements])


ARROWS = st.lists(st.booleans(), min_size=10, max_size=10)


@given(graphs(), ARROWS, st.sampled_from(["", " ", "  "]))
def test_text_and_graph_say_the_same(parents, arrows, gap):
    sizes = dict.fromkeys(parents, 2)
    model = AllocationModel(texts(parents, arrows, gap), sizes)
    assert {node: set(of) for node, of in model.graph.parents.items()} == {
        node: set(of) for node, of in parents.items()
    }
    again = AllocationModel(model.graph.to_text(), sizes)
    assert again.graph == model.graph


@given(graphs(), ARROWS)
def test_a_cycle_is_refused(parents, arrows):
    edges = [(parent, node) for node in parents for parent in parents[node]]
    text = texts(parents, arrows, " ")
    for parent, node in edges:
        with pytest.raises(InvalidArgumentError, match="cycl"):
            AllocationModel(f"{text}; {node} -> {parent}", dict.fromkeys(parents, 2))


@given(st.text(alphabet="ab,;<->- \n", max_size=12))
def test_any_text_is_a_graph_or_one_clear_refusal(text):
    try:
        model = AllocationModel(text, {"a": 2, "b": 2})
    except PolyabayesError:
        return
    assert set(model.graph.nodes) <= {"a", "b", "ab", "ba"} | set(text.split())


@given(st.integers(0, 2**31), st.sampled_from([(2, 3), (3, 2), (1, 4)]))
def test_order_of_rows_and_columns_does_not_change_the_evidence(seed, shape):
    rng = np.random.default_rng(seed)
    counts = rng.poisson(0.7, shape)
    model = AllocationModel.nmf(2)
    permuted = counts[rng.permutation(shape[0])][:, rng.permutation(shape[1])]
    if counts.sum():
        values = [model.log_evidence(data, "exact").value for data in (counts, permuted)]
        assert values[0] == pytest.approx(values[1], abs=1e-10)
