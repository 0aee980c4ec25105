import itertools
import re
import sys

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, strategies as st

from polyabayes import AllocationModel
from polyabayes.allocation.graphs.graph import Graph, directed
from polyabayes.exceptions import InvalidArgumentError, MissingDependencyError, PolyabayesError


@pytest.mark.parametrize(
    ("text", "parents"),
    [
        ("doc -> topic -> word", {"doc": (), "topic": ("doc",), "word": ("topic",)}),
        ("word <- topic -> doc", {"word": ("topic",), "topic": (), "doc": ("topic",)}),
        ("i <- r -> j; r -> k", {"i": ("r",), "r": (), "j": ("r",), "k": ("r",)}),
        (
            "i <- r; j <- s; k <- t; t -> s; t, s -> r",
            {"i": ("r",), "r": ("t", "s"), "j": ("s",), "s": ("t",), "k": ("t",), "t": ()},
        ),
        ("r -> i, j", {"r": (), "i": ("r",), "j": ("r",)}),
        ("a, b -> c, d", {"a": (), "b": (), "c": ("a", "b"), "d": ("a", "b")}),
        ("b <- a, c", {"b": ("a", "c"), "a": (), "c": ()}),
        ("a", {"a": ()}),
        ("a, b; c;", {"a": (), "b": (), "c": ()}),
        (" a->b\n;\tb  -> c_1 ", {"a": (), "b": ("a",), "c_1": ("b",)}),
        ("1 -> 2", {"1": (), "2": ("1",)}),
        ("Straße->темы; हिंदी <- темы", {"Straße": (), "темы": ("Straße",), "हिंदी": ("темы",)}),
    ],
)
def test_texts_are_read(text, parents):
    graph = Graph.parse(text)
    assert graph.parents == parents
    assert graph.nodes == tuple(parents)
    assert Graph.parse(graph.to_text()) == graph


def test_networkx_has_the_same_edges_and_families():
    graph = Graph.parse("i <- r; j <- s; k <- t; t -> s; t, s -> r")
    other = graph.to_networkx()
    assert set(other) == set(graph.nodes)
    assert set(other.edges) == {
        ("r", "i"),
        ("s", "j"),
        ("t", "k"),
        ("t", "s"),
        ("t", "r"),
        ("s", "r"),
    }
    assert graph.family("r") == ("r", "t", "s")
    order = {node: place for place, node in enumerate(graph.order)}
    assert all(order[tail] < order[head] for tail, head in other.edges)


@pytest.mark.parametrize(
    ("text", "added"),
    [
        ("a - b - c - a; c - d", set()),
        ("a - b - c - d", set()),
        ("a - b - c - d - a", {frozenset("ac"), frozenset("bd")}),
        ("a -> c <- b", {frozenset("ab")}),
        ("a -> b -> a", set()),
        ("a -> b -> c -> a", set()),
        ("a, b; c - d", set()),
    ],
)
def test_graphs_without_directions_get_few_edges(text, added):
    _, edges = directed(text)
    found = {frozenset(edge) for edge in edges}
    assert found <= added
    assert len(found) == (1 if added else 0)


@pytest.mark.parametrize("seed", range(30))
def test_directed_graphs_are_decomposable_and_say_no_more_than_the_chordal_one(seed):
    rng = np.random.default_rng(seed)
    given = nx.gnp_random_graph(7, 0.4, seed=int(rng.integers(2**31)))
    nodes = [f"n{node}" for node in given]
    text = "; ".join([", ".join(nodes), *(f"n{one} - n{other}" for one, other in given.edges)])
    graph, added = directed(text)
    chordal = nx.Graph(graph.to_networkx())
    assert nx.is_chordal(chordal)
    named = nx.relabel_nodes(given, dict(enumerate(nodes)))
    difference = {frozenset(edge) for edge in chordal.edges} - {frozenset(e) for e in named.edges}
    assert difference == {frozenset(edge) for edge in added}
    # Married parents: no independence is added by the directions.
    for node in graph.nodes:
        for pair in itertools.combinations(graph.parents[node], 2):
            assert chordal.has_edge(*pair)


def test_models_tell_which_edges_were_added():
    model = AllocationModel.from_undirected("a - b - c - d - a", concentration=2.0)
    (edge,) = model.added_edges
    assert set(edge) in ({"a", "c"}, {"b", "d"})
    assert re.search(f"added {edge[0]} - {edge[1]}>$", repr(model))
    assert model.concentration == 2.0
    assert AllocationModel.from_undirected("a - b").added_edges == ()


def test_networkx_is_asked_for_by_name_of_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "networkx", None)
    with pytest.raises(MissingDependencyError, match=r"polyabayes\[graph\]"):
        AllocationModel.from_undirected("a - b")
    with pytest.raises(MissingDependencyError, match=r"polyabayes\[graph\]"):
        Graph.parse("a -> b").to_networkx()


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
