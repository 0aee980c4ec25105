"""Measurement invariance: against the sum over all allocations, planted items, and refusals."""

import itertools
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import special

import polyabayes as pb
from polyabayes.allocation.inference.draws import ln_table

ROWS = np.array([(0, 0), (0, 1), (1, 1), (0, 1), (1, 1), (1, 0), (1, 0)])
GROUPS = np.array([0, 0, 0, 0, 1, 1, 1])


def summed() -> np.ndarray:
    """P(weights differ), of each item, and of 0, 1 and 2 items, over all classes of all rows."""
    sets = list(itertools.product([0, 1], repeat=3))
    terms = []
    for of in itertools.product(range(2), repeat=len(ROWS)):
        parts = []
        columns = [(of, 0), *((column, of) for column in ROWS.T)]
        for levels, classes in columns:
            table = np.zeros((2, 2, 2))
            np.add.at(table, (GROUPS, np.array(levels), np.array(classes)), 1.0)
            alike = ln_table(table.sum(axis=0, keepdims=True), 1.0).sum()
            parts.append((alike, ln_table(table, 1.0).sum()))
        # One of two items differs with probability 1/6 each, none and both with 1/3.
        terms.append([sum(p[s] for p, s in zip(parts, one, strict=True)) for one in sets])
    prior = np.log([1 / 6 if one[1] != one[2] else 1 / 3 for one in sets])
    posterior = special.softmax(special.logsumexp(terms, axis=0) + prior)
    chosen = np.array(sets)
    numbers = chosen[:, 1:].sum(axis=1)
    return np.concatenate([posterior @ chosen, np.bincount(numbers, posterior)])


def test_probabilities_are_those_of_all_allocations() -> None:
    classes = pb.LatentClassAnalysis(2, prior="flat", random_state=0).fit(ROWS)
    found = classes.invariance(ROWS, GROUPS, n_samples=600)
    told = [found.weights_differ, *found.probabilities, *found.answer.values()]
    # Means of 2,400 conditional probabilities, whose deviation is about 0.1.
    assert told == pytest.approx(summed(), abs=0.015)
    assert told != pytest.approx([0.5, 0.5, 0.5, *[1 / 3] * 3], abs=0.015)


@pytest.mark.slow
def test_items_that_differ_are_found(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    groups = np.repeat(["a", "b"], 300)
    of = (rng.random(600) < np.where(groups == "b", 0.6, 0.35)).astype(int)
    yes = np.where(of == 0, 0.8, 0.2)[:, None].repeat(6, axis=1)
    yes[groups == "b", 1] += np.where(of[groups == "b"] == 0, -0.3, 0.3)
    frame = pd.DataFrame(rng.random((600, 6)) < yes, columns=list("uvwxyz")).astype("object")
    frame = frame.mask(rng.random(frame.shape) < 0.1).assign(group=groups, wt=1)
    frame.loc[::100, "group"] = None
    items = list("uvwxyz")
    classes = pb.LatentClassAnalysis(2, items=items, random_state=0).fit(frame, weights="wt")
    found = classes.invariance(frame, "group")
    assert (found.groups, found.n_rows) == (("a", "b"), 594)
    table = found.to_frame().set_index("item").probability
    assert table["v"] > 0.95 > 0.5 > table.drop("v").max()
    assert found.answer["partial"] > 0.95 < found.weights_differ
    assert "that probably differ: v (" in " ".join(pb.cite(found).methods.split())
    classes.save(tmp_path / "classes.safetensors")
    again = pb.load(tmp_path / "classes.safetensors").invariance(frame, "group")
    assert again.answer == found.answer
    # Sampling weights: all rows count half as much together, so that less is sure.
    half = classes.invariance(frame, "group", weights=np.tile([0.05, 1.55], 300))
    assert half.probabilities[1] < table["v"]
    # The same classes with their groups in name only.
    same = classes.invariance(frame, rng.permutation(groups))
    assert same.answer["invariant"] > 0.5 > same.weights_differ
