import pytest
from hypothesis import given, strategies as st

from polyabayes import AllocationModel
from polyabayes.allocation.graphs.graph import Graph
from polyabayes.exceptions import InvalidArgumentError, PolyabayesError


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
    assert set(other.edges) == {tuple(edge) for edge in ("ri", "sj", "tk", "ts", "tr", "sr")}
    assert graph.family("r") == ("r", "t", "s")
    order = {node: place for place, node in enumerate(graph.order)}
    assert all(order[tail] < order[head] for tail, head in other.edges)


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
    found = {node: set(of) for node, of in model.graph.parents.items()}
    assert found == {node: set(of) for node, of in parents.items()}
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
