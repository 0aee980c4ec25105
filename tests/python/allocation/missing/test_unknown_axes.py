"""Tokens that do not show all axes: unanswered items, sequences of unequal length."""

import math
from collections import Counter

import numpy as np
import pandas as pd
import pytest

from helpers.networks import ln_enumerated
from polyabayes import AllocationModel, CountTensor, read_tensor, write_tensor

AXES = ["a", "b", "c"]
ROWS = [(0, 0, 1), (0, None, 1), (1, 1, None), (None, 1, 0), (1, None, None), (0, 0, 1)]
ROWS += [(1, 1, 0), (None, 0, 1)]
GRAPHS = {
    "classes": ("r -> a, b, c", {"r": 2}),
    "classes below an item": ("a -> r -> b; r -> c", {"r": 2}),
    "collider": ("a, b -> r -> c", {"r": 2}),
    "two hidden nodes": ("r -> s; r -> a; s -> b, c", {"r": 2, "s": 2}),
    "items alone": ("a -> b -> c", {}),
    "hidden leaf": ("a -> b -> r; b -> c", {"r": 2}),
}


def frame(rows):
    return pd.DataFrame(rows, columns=AXES).astype(pd.CategoricalDtype([0, 1]))


def enumerated(model, rows):
    sizes = {node: model.sizes.get(node) or 2 for node in model.graph.nodes}
    return ln_enumerated(model, sizes, [dict(zip(AXES, row, strict=True)) for row in rows])


def evidence(model, data, method="exact", **options):
    return model.log_evidence(data, method, given_total=True, random_state=1, **options)


def fitted(name="classes"):
    data = CountTensor.from_frame(frame(ROWS))
    return AllocationModel(*GRAPHS[name]).decompose(data, random_state=0)


@pytest.mark.parametrize("name", GRAPHS)
def test_every_method_has_the_enumerated_evidence(name):
    graph, sizes = GRAPHS[name]
    model = AllocationModel(graph, sizes, 0.7)
    rows = [*ROWS[:4], (None, None, None)]
    exact, data = enumerated(model, rows), CountTensor.from_frame(frame(rows))
    assert data.total == 5
    assert evidence(model, data).value == pytest.approx(exact, abs=1e-11)
    for method in ("smc", "tempered"):
        found = evidence(model, data, method)
        assert abs(found.value - exact) < 4 * found.std_error + 1e-9
        assert found.std_error < 0.2
    assert evidence(model, data, "vb").value < exact + 1e-9


def test_equivalent_graphs_agree_and_probabilities_sum_to_one():
    one, other = (AllocationModel(*GRAPHS[name]) for name in list(GRAPHS)[:2])
    data = CountTensor.from_frame(frame(ROWS))
    assert evidence(one, data).value == pytest.approx(evidence(other, data).value, abs=1e-12)
    # Over all observed parts of two tokens that show a and b, and b alone.
    collider, total = AllocationModel(*GRAPHS["collider"]), 0.0
    for a, b, alone in np.ndindex(2, 2, 2):
        rows = [(a, b, None), (None, alone, None)]
        total += np.exp(evidence(collider, CountTensor.from_frame(frame(rows))).value)
    assert total == pytest.approx(1.0, abs=1e-12)


def test_a_token_that_shows_nothing_changes_the_total_alone():
    model, nothing = AllocationModel.cp(AXES, 2, rate=0.5), [(None, None, None)]
    short, long = (CountTensor.from_frame(frame(rows)) for rows in (ROWS, ROWS + nothing))
    found, more = model.log_evidence(short), model.log_evidence(long)
    assert evidence(model, long).value == pytest.approx(evidence(model, short).value, abs=1e-12)
    totals = more.log_probability_of_total - found.log_probability_of_total
    assert more.value - found.value == pytest.approx(totals, abs=1e-12)


@pytest.mark.parametrize("method", ["vb", "em", "ml", "dual-em", "icm", "gibbs", "smc", "tempered"])
def test_decompositions_count_what_tokens_show(method):
    data = CountTensor.from_frame(frame(ROWS))
    found = AllocationModel.cp(AXES, 2).decompose(data, method, random_state=0)
    answered = {"a": 6, "b": 6, "c": 6, "r": 8}
    for node, n in answered.items():
        assert found.expected_counts[node].sum() == pytest.approx(n)
        np.testing.assert_allclose(found.tables[node].sum(axis=0), 1)
    # Rows are expected among those that show as much.
    weights, *items = (found.tables[node] for node in ("r", *AXES))
    for (cell, _), fitted in zip(
        zip(data.coordinates, data.counts, strict=True), found.fitted_counts, strict=True
    ):
        seen = cell >= 0
        probability = weights.copy()
        for item, level in zip(items, cell, strict=True):
            probability *= item[level] if level >= 0 else 1
        alike = data.counts[((data.coordinates >= 0) == seen).all(axis=1)].sum()
        share = alike / data.total
        assert fitted == pytest.approx(found.intensity * share * probability.sum())


def test_ml_has_the_likelihood_of_the_answers():
    data = CountTensor.from_frame(frame(ROWS))
    found = AllocationModel.cp(AXES, 1).decompose(data, "ml", random_state=0)
    # Independent items: shares among the answers.
    columns = zip(AXES, zip(*ROWS, strict=True), strict=True)
    shares = {axis: np.bincount([x for x in own if x is not None]) / 6 for axis, own in columns}
    for axis in AXES:
        np.testing.assert_allclose(found.tables[axis][:, 0], shares[axis], atol=1e-8)
    ln_rows = sum(
        np.log(shares[axis][value])
        for row in ROWS
        for axis, value in zip(AXES, row, strict=True)
        if value is not None
    )
    patterns = Counter(tuple(value is None for value in row) for row in ROWS)
    ln_orders = sum(math.lgamma(n + 1) for n in patterns.values())
    ln_orders -= sum(math.lgamma(n + 1) for n in Counter(ROWS).values())
    assert found.value == pytest.approx(ln_rows + ln_orders, abs=1e-7)


def test_draws_fill_in_what_tokens_do_not_show():
    model = AllocationModel(*GRAPHS["collider"])
    data = CountTensor.from_frame(frame(ROWS[:4]))
    draws = model.sample_posterior(data, 40, random_state=0)
    cells, numbers, values = draws.allocation(0)
    assert set(values) == {"a", "b", "r"}
    assert numbers.sum() == 4
    shown = data.coordinates[cells]
    for column, axis in enumerate("ab"):
        assert ((values[axis] >= 0) == (shown[:, column] < 0)).all()
    # Nothing of the third row depends on r.
    assert ((values["r"] < 0) == (shown[:, 2] < 0)).all()
    assert (draws.counts["r"].sum(axis=(1, 2, 3)) == 3).all()
    assert (draws.counts["c"].sum(axis=(1, 2)) == 3).all()


def test_sequences_may_end_early():
    sequences = ["aba", "ab", "bb", "a"]
    table = pd.DataFrame([list(text) for text in sequences], columns=["x1", "x2", "x3"])
    data = CountTensor.from_frame(table, missing=[])
    model = AllocationModel.hidden_markov(3, 2, tied=True)
    sizes = dict.fromkeys(model.graph.nodes, 2)
    rows = [
        {x: None if v is None else "ab".index(v) for x, v in row.items()}
        for row in table.astype(object).where(table.notna(), None).to_dict("records")
    ]
    exact = ln_enumerated(model, sizes, rows)
    assert evidence(model, data).value == pytest.approx(exact, abs=1e-11)
    found = model.decompose(data, "ml", random_state=0)
    assert found.expected_counts["x1"].sum() == pytest.approx(8)  # symbols
    assert found.expected_counts["h2"].sum() == pytest.approx(4)  # transitions between them


def test_frames_keep_rows_with_missing_values():
    rows = frame(ROWS)
    data = CountTensor.from_frame(rows)
    assert not data.is_complete
    assert data.total == len(ROWS)
    again = CountTensor.from_frame(data.to_frame(), counts="count")
    assert again == data
    assert data.marginal("a").total == len(ROWS)
    floats = CountTensor.from_frame(pd.DataFrame({"q": [1.0, np.nan, 2.0]}))
    assert floats.labels[0].tolist() == ["1", "2"]


def test_files_keep_what_tokens_do_not_show(tmp_path):
    data = CountTensor.from_frame(frame(ROWS))
    write_tensor(data, tmp_path / "rows.npz")
    assert read_tensor(tmp_path / "rows.npz") == data
    write_tensor(data, tmp_path / "rows.csv")
    assert (tmp_path / "rows.csv").read_text().split()[:2] == ["a,b,c,count", ",0,1,1"]
    cells = data.coordinates
    again = CountTensor.from_coo(cells, data.counts, AXES, labels=data.labels, unknown=-1)
    assert again == data


def test_level_probabilities_are_those_of_the_tables():
    data = CountTensor.from_frame(frame(ROWS))
    found = AllocationModel.cp(AXES, 2).decompose(data, "gibbs", random_state=0)
    probabilities = found.level_probabilities(frame(ROWS))
    ln_rows = found.log_likelihood(frame(ROWS))
    for row, probability, ln_row in zip(ROWS, probabilities, ln_rows, strict=True):
        expected = found.tables["r"].copy()
        for axis, value in zip(AXES, row, strict=True):
            expected *= 1 if value is None else found.tables[axis][value]
        np.testing.assert_allclose(probability, expected / expected.sum())
        assert ln_row == pytest.approx(np.log(expected.sum()))
    np.testing.assert_allclose(found.level_probabilities(data), found.level_probabilities())
    # The level of an axis is predicted from the others.
    b = found.level_probabilities(frame(ROWS), "b")
    np.testing.assert_allclose(b, probabilities_without(found, "b"), rtol=1e-12)
    two = fitted("two hidden nodes")
    assert two.level_probabilities(node="s").shape == (data.n_cells, 2)


def probabilities_without(found, axis):
    """p(axis | the other answers) by the sum over classes."""
    expected = []
    for row in ROWS:
        weights = found.tables["r"].copy()
        for name, value in zip(AXES, row, strict=True):
            weights *= 1 if value is None or name == axis else found.tables[name][value]
        expected.append(found.tables[axis] @ weights / weights.sum())
    return np.array(expected)
