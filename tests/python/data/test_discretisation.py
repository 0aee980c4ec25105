import numpy as np
import pandas as pd
import pytest

from polyabayes import discretise
from polyabayes.exceptions import InvalidArgumentError, InvalidTypeError

FRAME = pd.DataFrame(
    {
        "sex": ["f", "m", "f", "m", "f", "m"],
        "length": [9.0, 1.0, 1.1, 5.0, 5.1, 0.9],
        "rings": [1, 2, 2, 8, 9, 1],
        "gap": [1.0, np.nan, 2.0, 3.0, 4.0, 5.0],
        "endless": [1.0, 2.0, np.inf, 3.0, 4.0, 5.0],
    },
    index=list("uvwxyz"),
)


def test_levels_are_clusters_in_the_order_of_their_centres():
    tensor = discretise(FRAME, ["length", "rings"], 3, factors=["sex"], random_state=0)
    assert tensor.axes == ("sex", "length", "rings")
    assert tensor.marginal("length").to_dense().tolist() == [3, 2, 1]
    # Centres 1, 5.05 and 9; bounds half-way between them.
    assert tensor.labels[1].tolist() == ["[0.9, 3.025)", "[3.025, 7.025)", "[7.025, 9]"]
    assert tensor.marginal("sex", "length").to_dense().tolist() == [[1, 1, 1], [2, 1, 0]]


def test_every_column_may_have_a_number_of_its_own():
    tensor = discretise(FRAME, ["length", "rings"], {"length": 3, "rings": 2}, random_state=0)
    assert tensor.shape == (3, 2)
    assert tensor.marginal("rings").to_dense().tolist() == [4, 2]


def test_labels_are_as_long_as_it_takes_to_differ():
    frame = pd.DataFrame({"x": 1 + np.array([0.0, 1e-9, 1e-6, 1.001e-6])})
    tensor = discretise(frame, ["x"], 2, random_state=0)
    assert tensor.to_dense().tolist() == [2, 2]
    assert len(set(tensor.labels[0])) == 2


def test_missing_values_are_axes_that_a_row_does_not_show():
    frame = FRAME.assign(sex=["f", None, "f", "m", "f", "m"], gap=[1.0, np.nan, 1.5, 4.0, 4.5, 5.0])
    tensor = discretise(frame, ["gap", "rings"], 2, factors=["sex"], random_state=0)
    assert tensor.total == 6
    assert tensor.labels[1].tolist() == ["[1, 2.875)", "[2.875, 5]"]
    ((row, count),) = [
        (cell, n)
        for cell, n in zip(tensor.coordinates.tolist(), tensor.counts, strict=True)
        if -1 in cell
    ]
    assert (row, count) == ([-1, -1, 0], 1)


def test_the_same_seed_gives_the_same_levels():
    frame = pd.DataFrame({"x": np.random.default_rng(0).gamma(2, size=500)})
    assert discretise(frame, ["x"], 6, random_state=3) == discretise(
        frame, ["x"], 6, random_state=3
    )


def test_abalones(shared_data):
    frame = pd.read_csv(shared_data / "abalone.csv")
    tensor = discretise(frame, ["length", "height", "rings"], 4, factors=["sex"], random_state=0)
    assert (tensor.total, tensor.shape) == (4177, (3, 4, 4, 4))
    for axis in ("length", "height", "rings"):
        counts = tensor.marginal(axis).to_dense()
        ordered = frame[axis].sort_values().to_numpy()
        means = [part.mean() for part in np.split(ordered, np.cumsum(counts)[:-1])]
        # Levels are runs of the sorted values, each nearest to its own mean.
        nearest = np.abs(ordered[:, np.newaxis] - means).argmin(axis=1)
        np.testing.assert_array_equal(np.bincount(nearest), counts)


@pytest.mark.parametrize(
    ("columns", "n_levels", "factors", "says"),
    [
        (["width"], 2, [], "no columns called 'width'"),
        (["length"], 2, ["width"], "no columns called 'width'"),
        (["sex"], 2, [], "column 'sex' holds .*, not numbers; name it in factors"),
        (["endless"], 2, [], "column 'endless' is infinite at row w"),
        (["rings"], 5, [], "column 'rings' has 4 distinct values, fewer than n_levels=5"),
        (["rings"], 1, [], "n_levels must be at least 2"),
        (["rings"], 2.5, [], "n_levels must be an int"),
        (["rings"], {"length": 2}, [], "n_levels has no entry for column 'rings'"),
        ("rings", 2, [], "columns must be a sequence of str"),
        (["rings"], 2, ["rings"], "'rings' twice"),
    ],
)
def test_bad_tables_are_refused(columns, n_levels, factors, says):
    with pytest.raises((InvalidArgumentError, InvalidTypeError), match=says):
        discretise(FRAME, columns, n_levels, factors=factors)


def test_arrays_have_no_columns():
    with pytest.raises(InvalidTypeError, match="must be a table of pandas, polars or pyarrow"):
        discretise(np.ones((3, 2)), ["a"], 2)
