"""Nodes that share a table: its prior, the levels of their axes, and chains of any length."""

import numpy as np
import pandas as pd
import pytest

from helpers.networks import ln_enumerated
from polyabayes import AllocationModel, CountTensor
from polyabayes.exceptions import BudgetExceededError

PRIORS = ["bdeu", "bdeu-tokens", "flat"]
MATRIX = [[4, 1, 0], [2, 5, 1], [0, 0, 3]]


def evidence(model, data):
    return model.log_evidence(data, "exact", given_total=True).value


def frame(*columns):
    """A column of letters for each text, called x1, x2, ..."""
    return pd.DataFrame({f"x{n}": list(letters) for n, letters in enumerate(columns, 1)})


def test_a_shared_table_has_the_prior_of_one_table_or_of_its_tokens():
    model = AllocationModel.symmetric_nmf
    assert evidence(model(1, prior="bdeu"), MATRIX) == pytest.approx(-17.763467, abs=5e-7)
    assert evidence(model(1), MATRIX) == pytest.approx(-16.885127, abs=5e-7)
    # Each axis alone is distributed as without the tie.
    rows = CountTensor.from_dense(np.sum(MATRIX, axis=1), ["i"])
    tied = AllocationModel("r -> i, j", {"j": 3, "r": 2}, tied=[("i", "j")])
    alone = AllocationModel("r -> i", {"r": 2})
    assert evidence(tied, rows) == pytest.approx(evidence(alone, rows), abs=1e-12)


@pytest.mark.parametrize("prior", ["bdeu", "flat"])
def test_chains_have_the_evidence_of_longer_ones_whose_last_steps_are_not_seen(prior):
    seen = CountTensor.from_frame(frame("abab", "abba", "bbab"))
    short = AllocationModel.hidden_markov(3, 2, tied=True, prior=prior)
    long = AllocationModel.hidden_markov(4, 2, tied=True, prior=prior).with_sizes(x4=2)
    assert evidence(long, seen) == pytest.approx(evidence(short, seen), abs=1e-12)


def links(frames, **options):
    return AllocationModel.symmetric_nmf(2, ("x1", "x2"), **options), frames("abaa", "bccb")


CASES = {
    "links": links,
    "chain": lambda frames, **options: (
        AllocationModel.hidden_markov(3, 2, tied=True, **options),
        frames("aac", "bcc", "bba"),
    ),
    "triples": lambda frames, **options: (
        AllocationModel.symmetric_cp(3, 2, ("x1", "x2", "x3"), **options),
        frames("abb", "bcb", "ccd"),
    ),
    "visible chain": lambda frames, **options: (
        AllocationModel("x1 -> x2 -> x3", tied=[("x2", "x3")], **options),
        frames("aab", "bcb", "cbd"),
    ),
    "block model": lambda frames, **options: (
        AllocationModel(
            "x1 -> g; x2 -> h; g, h -> x3", {"g": 2, "h": 2}, tied=[("g", "h")], **options
        ),
        frames("aab", "bcb", "stt"),
    ),
}


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("case", CASES)
def test_levels_of_tied_axes_are_matched_by_label(case, prior):
    model, table = CASES[case](frame, prior=prior)
    tied = [column for column in table if case != "block model" or column != "x3"]
    labels = sorted(set(table[tied].to_numpy().ravel()))
    others = ["s", "t"]
    values = {x: labels if x in tied else others for x in table}
    sizes = {node: len(values[node]) if node in values else 2 for node in model.graph.nodes}
    rows = [{x: values[x].index(row[x]) for x in table} for _, row in table.iterrows()]
    expected = ln_enumerated(model, sizes, rows)
    tensor = CountTensor.from_frame(table)
    assert evidence(model, tensor) == pytest.approx(expected, abs=1e-10)
    # The order of the levels, and levels that all axes list, change nothing.
    shuffled = table.copy()
    for x in tied:
        order = [label for label in reversed(labels) if x != "x2" or label in set(table[x])]
        shuffled[x] = pd.Categorical(table[x], order)
    assert evidence(model, CountTensor.from_frame(shuffled)) == pytest.approx(expected, abs=1e-10)
    shared = table.astype({x: pd.CategoricalDtype(values[x]) for x in table})
    assert evidence(model, CountTensor.from_frame(shared)) == pytest.approx(expected, abs=1e-10)


def test_results_have_the_labels_of_all_tied_axes():
    model, table = links(frame)
    tensor = CountTensor.from_frame(table)
    found = model.decompose(tensor, random_state=0)
    assert found.level_names("x1") == found.level_names("x2") == ["a", "b", "c"]
    frames = (found.to_frame(node).drop(columns=node) for node in ("x1", "x2"))
    pd.testing.assert_frame_equal(*frames)
    draws = model.sample_posterior(tensor, 20, random_state=0)
    assert draws.counts["x1"].shape[1:] == (3, 2)
    # A mask has the shape of the data; levels that the axes lend each other are observed and empty.
    observed = np.array([[False, True], [True, True]])
    known = AllocationModel.symmetric_nmf(2, ("x1", "x2"), rate=0.1)
    missing = known.predict_missing(tensor, "vb", observed=observed, random_state=0)
    assert missing.to_frame().loc[0, ["x1", "x2"]].tolist() == ["a", "b"]


def test_axes_without_labels_are_matched_by_position():
    model, table = links(frame)
    shared = table.astype(pd.CategoricalDtype(["a", "b", "c"]))
    tensor = CountTensor.from_frame(shared)
    bare = CountTensor.from_coo(tensor.coordinates, tensor.counts, tensor.axes, tensor.shape)
    assert evidence(model, bare) == evidence(model, tensor)


@pytest.mark.parametrize("method", ["vb", "em", "ml"])
def test_long_tied_chains_are_summed_forwards_and_backwards(method):
    steps, rng = 30, np.random.default_rng(3)
    model = AllocationModel.hidden_markov(steps, 2, tied=True)
    coordinates = np.unique(rng.integers(0, 3, (20, steps)), axis=0)
    counts = np.ones(len(coordinates), dtype=int)
    data = CountTensor.from_coo(coordinates, counts, model.axes, [3] * steps)
    found = model.decompose(data, method, random_state=0, n_restarts=2)
    assert found.has_converged
    assert (np.diff(found.trace) >= -1e-9).all()
    assert found.expected_counts["x1"].sum() == pytest.approx(steps * data.total)
    # The tables explain the sequences as the scaled forward recursion of Rabiner (1989) says.
    start, move, emit = (found.tables[node] for node in ("h1", "h2", "x1"))
    ln_likelihood = 0.0
    for row in data.coordinates:
        forward = start * emit[row[0]]
        for symbol in row[1:]:
            forward = (move @ forward) * emit[symbol]
        ln_likelihood += np.log(forward.sum())
    fitted = found.fitted_counts / found.intensity
    assert np.log(fitted).sum() == pytest.approx(ln_likelihood, rel=1e-10)
    with pytest.raises(BudgetExceededError, match=r"joint states .*take method='vb'"):
        model.log_evidence(data, "tempered")


def sticky_sequences(n, steps):
    """Letters of chains that stay where they are at most steps."""
    rng = np.random.default_rng(0)
    stays = rng.random((n, steps)) < 0.85
    hidden = np.where(stays, 0, 1).cumsum(axis=1) % 2
    letters = np.where(rng.random((n, steps)) < 0.75, np.array(["a", "c"])[hidden], "b")
    return [list(map(str, row)) for row in letters]


@pytest.mark.slow
@pytest.mark.parametrize(("n_states", "steps"), [(2, 14), (3, 9)])
def test_states_drawn_step_by_step_have_the_enumerated_evidence(n_states, steps):
    (row,) = sticky_sequences(1, steps)
    letters = np.array([["abc".index(letter) for letter in row]])
    # Levels that do not occur are levels of the axes, too: all have three.
    shape, axes = [3] * steps, [f"x{n}" for n in range(1, steps + 1)]
    data = CountTensor.from_coo(letters, [1], axes, shape)
    model = AllocationModel.hidden_markov(steps, n_states, tied=True)
    found = model.log_evidence(data, given_total=True, random_state=0)
    assert (found.method, found.converged) == ("smc", True)
    assert found.std_error < 0.05
    sizes = {node: n_states if node.startswith("h") else 3 for node in model.graph.nodes}
    expected = ln_enumerated(model, sizes, [dict(zip(axes, letters[0].tolist(), strict=True))])
    assert abs(found.value - expected) < 4 * found.std_error


# Evidence and its error by the identity of Chib (1995, "Marginal likelihood from the Gibbs output")
# along 6,000 Gibbs draws of tables and states, of which the first eighth is left out.
@pytest.mark.slow
@pytest.mark.parametrize(("steps", "value", "error"), [(24, -430.01, 0.04), (30, -542.27, 0.04)])
def test_evidence_of_long_tied_chains_is_that_of_another_method(steps, value, error):
    model = AllocationModel.hidden_markov(steps, 2, tied=True)
    found = model.log_evidence(sticky_sequences(20, steps), given_total=True, random_state=0)
    assert (found.method, found.converged) == ("smc", True)
    assert found.std_error < 0.5
    assert abs(found.value - value) < 4 * np.hypot(found.std_error, error)


def test_sequences_of_unequal_length_are_a_list():
    model = AllocationModel.hidden_markov(3, 2, tied=True)
    rows = [["a", "b", "b"], ["a", "c"], ["c"]]
    table = pd.DataFrame([["a", "b", "b"], ["a", "c", None], ["c", None, None]])
    tensor = CountTensor.from_frame(table.set_axis(model.axes, axis=1))
    assert evidence(model, rows) == evidence(model, tensor)
