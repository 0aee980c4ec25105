import copy
import dataclasses
import itertools
import pickle
import sys

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import polyabayes as pb
from helpers.refusals import assert_refused
from polyabayes import CountTensor, exceptions as errors

AXES = ["hair", "eye"]
DENSE = np.array([[2, 0, 1], [0, 0, 0], [0, 3, 5]])
LABELS = [["black", "red", "blond"], ["brown", "blue", "green"]]
MOST = 2**63 - 1


@pytest.fixture
def tensor():
    return CountTensor.from_dense(DENSE, AXES, LABELS)


def random_array(seed, shape):
    return np.random.default_rng(seed).poisson(0.7, size=shape)


def cube(array):
    return CountTensor.from_dense(array, [f"n{axis}" for axis in range(array.ndim)])


# the form


def test_cells_are_sorted_added_up_and_positive():
    tensor = CountTensor.from_coo(
        [[2, 1], [0, 2], [2, 1], [1, 1], [0, 0]], [1, 4, 2, 0, 5], AXES, shape=(3, 4)
    )
    assert tensor.coordinates.tolist() == [[0, 0], [0, 2], [2, 1]]
    assert tensor.counts.tolist() == [5, 4, 3]
    assert (tensor.n_cells, tensor.n_axes, tensor.total) == (3, 2, 12)
    assert (tensor.shape, tensor.axes, tensor.labels) == ((3, 4), ("hair", "eye"), (None, None))
    assert repr(tensor) == "<CountTensor: hair 3 x eye 4, 3 cells, total 12>"


@pytest.mark.parametrize("shape", [(7,), (4, 5), (3, 4, 2), (2, 3, 2, 3), (1, 1, 1), (2,) * 6])
def test_arrays_are_contiguous_int64_in_lexicographic_order(shape):
    array = random_array(len(shape), shape)
    for tensor in (cube(array), cube(array).marginal(*reversed(cube(array).axes))):
        cells = [tuple(row) for row in tensor.coordinates.tolist()]
        assert cells == sorted(set(cells))
        for part in (tensor.coordinates, tensor.counts):
            assert part.dtype == np.int64
            assert part.flags.c_contiguous
        assert tensor.coordinates.shape == (tensor.n_cells, len(shape))


def test_a_tensor_never_changes(tensor):
    for array in (tensor.coordinates, tensor.counts, *tensor.labels):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        tensor.counts = DENSE
    assert_refused(TypeError, "unhashable", hash, tensor)
    assert_refused(errors.InvalidTypeError, "made by from_dense", CountTensor)


def test_the_arguments_stay_as_they_are_and_open():
    coordinates, counts = np.array([[1, 0], [0, 0]]), np.array([1, 2])
    labels = np.array(["a", "b"], dtype=object)
    tensor = CountTensor.from_coo(coordinates, counts, AXES, labels={"hair": labels})
    CountTensor.from_coo(np.empty((0, 2), dtype=np.int64), counts[:0], AXES, shape=(1, 1))
    coordinates[0], counts[0], labels[0] = 9, 9, "c"
    assert (tensor.counts.tolist(), tensor.total) == ([2, 1], 3)
    assert tensor.coordinates.tolist() == [[0, 0], [1, 0]]
    corpus = pb.Corpus(DENSE, LABELS[1], LABELS[0])
    of_corpus = CountTensor.from_corpus(corpus)
    before = of_corpus.counts.copy()
    corpus.vocabulary[0] = corpus.ids[0] = "c"
    corpus.counts.data[0] = 9
    np.testing.assert_array_equal(of_corpus.counts, before)


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda tensor: pickle.loads(pickle.dumps(tensor))]
)
def test_copies_are_equal_and_closed(tensor, copied):
    twin = copied(tensor)
    assert twin == tensor
    assert not twin.counts.flags.writeable
    assert not twin.labels[0].flags.writeable


@pytest.mark.parametrize(
    "other",
    [
        CountTensor.from_dense(DENSE, AXES),
        CountTensor.from_dense(DENSE, ["hair", "iris"], LABELS),
        CountTensor.from_dense(DENSE * 2, AXES, LABELS),
        CountTensor.from_dense(DENSE.T, AXES, LABELS),
        CountTensor.from_dense(DENSE, AXES, LABELS[::-1]),
        CountTensor.from_dense(DENSE[:, :2], AXES, {"hair": LABELS[0]}),
        DENSE.tolist(),
        None,
    ],
)
def test_other_tensors_are_not_equal(tensor, other):
    assert tensor != other
    assert tensor == CountTensor.from_dense(DENSE, AXES, dict(zip(AXES, LABELS, strict=True)))


# constructors


@pytest.mark.parametrize(
    "array",
    [
        DENSE.tolist(),
        DENSE.astype(float),
        DENSE.astype(np.float16),
        DENSE.astype(np.uint64),
        DENSE.astype(np.int8),
        DENSE.astype(object),
        np.asfortranarray(DENSE),
        pd.DataFrame(DENSE),
        pd.DataFrame(DENSE).astype("Int64"),
        *(sparse.csr_matrix(DENSE).asformat(name) for name in ("csr", "csc", "coo", "lil", "bsr")),
        sparse.coo_array(DENSE.astype(float)),
        sparse.coo_matrix(([1, 1, 1, 3, 5], ([0, 0, 0, 2, 2], [0, 0, 2, 1, 2]))),
    ],
    ids=lambda array: f"{type(array).__name__}-{getattr(array, 'dtype', '')}",
)
def test_every_container_gives_the_same_tensor(tensor, array):
    assert CountTensor.from_dense(array, AXES, LABELS) == tensor


@pytest.mark.parametrize("shape", [(7,), (4, 5), (3, 4, 2), (2, 3, 2, 3)])
@pytest.mark.parametrize("with_labels", [True, False])
def test_all_constructors_agree(shape, with_labels):
    array = random_array(7, shape)
    axes = [f"n{axis}" for axis in range(array.ndim)]
    labels = [[f"l{level:02}" for level in range(size)] for size in shape] if with_labels else None
    tensor = CountTensor.from_dense(array, axes, labels)
    np.testing.assert_array_equal(tensor.to_dense(), array)
    cells = np.argwhere(array >= 0)
    shuffled = np.random.default_rng(0).permutation(np.repeat(cells, array.ravel(), axis=0))
    ones = np.ones(len(shuffled), dtype=bool)
    assert CountTensor.from_coo(cells, array.ravel(), axes, None, labels) == tensor
    assert CountTensor.from_coo(shuffled, ones, axes, shape, labels) == tensor
    if with_labels:
        frame = tensor.to_frame()
        assert CountTensor.from_frame(frame, counts="count") == tensor
        observations = frame.loc[frame.index.repeat(frame["count"])].sample(frac=1, random_state=0)
        assert CountTensor.from_frame(observations.drop(columns="count")) == tensor


def test_a_frame_is_the_cells(tensor):
    frame = tensor.to_frame("n")
    assert frame.columns.tolist() == ["hair", "eye", "n"]
    assert frame["hair"].tolist() == ["black", "black", "blond", "blond"]
    assert frame["eye"].cat.categories.tolist() == LABELS[1]
    assert frame["n"].tolist() == [2, 1, 3, 5]
    assert CountTensor.from_dense(DENSE, AXES).to_frame()["eye"].tolist() == [0, 2, 1, 2]


def test_labels_of_a_frame_are_sorted_values_and_categories():
    frame = pd.DataFrame(
        {
            "number": [10, 9, 10],
            "text": ["b", "a", "b"],
            "flag": [True, False, True],
            "size": pd.Categorical(["s", "l", "s"], categories=["s", "m", "l"]),
            "day": pd.to_datetime(["2024-02-01", "2024-01-01", "2024-02-01"]),
            "n": pd.array([1, 2, 3], dtype="Int64"),
        }
    )
    tensor = CountTensor.from_frame(frame, ["number", "text", "flag", "size"], counts="n")
    assert [labels.tolist() for labels in tensor.labels] == [
        ["9", "10"],
        ["a", "b"],
        ["False", "True"],
        ["s", "m", "l"],
    ]
    assert tensor.coordinates.tolist() == [[0, 0, 0, 2], [1, 1, 1, 0]]
    assert tensor.counts.tolist() == [2, 4]
    assert CountTensor.from_frame(frame, ["day"]).total == 6


def test_a_corpus_is_a_tensor_of_documents_and_words():
    corpus = pb.Corpus(DENSE, vocabulary=LABELS[1], ids=LABELS[0])
    tensor = CountTensor.from_corpus(corpus)
    assert tensor == CountTensor.from_dense(DENSE, ["doc", "word"], LABELS)
    bare = CountTensor.from_corpus(DENSE, axes=AXES)
    assert bare == CountTensor.from_dense(DENSE, AXES)


def test_one_axis_one_cell_and_no_cells():
    assert CountTensor.from_dense([4], ["i"]).to_dense().tolist() == [4]
    empty = CountTensor.from_dense(np.zeros((2, 3), dtype=int), AXES)
    assert (empty.total, empty.n_cells, empty.shape) == (0, 0, (2, 3))
    assert empty == CountTensor.from_coo([], [], AXES, shape=(2, 3))
    assert empty.marginal("eye").to_dense().tolist() == [0, 0, 0]
    assert empty.to_dense().tolist() == [[0] * 3] * 2
    assert len(empty.to_frame()) == 0
    assert CountTensor.from_coo([], [], ["i"], labels=[["a", "b"]]).shape == (2,)
    none_seen = pd.DataFrame({"i": pd.Categorical([], categories=["a", "b"])})
    assert CountTensor.from_frame(none_seen).shape == (2,)


# marginals and names


@pytest.mark.parametrize("shape", [(6,), (4, 5), (3, 4, 2), (2, 3, 2, 3)])
def test_marginals_are_sums(shape):
    array = random_array(11, shape)
    tensor = cube(array)
    for size in range(1, len(shape) + 1):
        for kept in itertools.permutations(range(len(shape)), size):
            others = tuple(set(range(len(shape))) - set(kept))
            expected = array.sum(axis=others).transpose(np.argsort(np.argsort(kept)))
            marginal = tensor.marginal(*(f"n{axis}" for axis in kept))
            np.testing.assert_array_equal(marginal.to_dense(), expected)
            assert marginal.total == tensor.total


def test_marginals_and_renamed_tensors_keep_labels(tensor):
    marginal = tensor.marginal("eye", "hair")
    assert marginal == CountTensor.from_dense(DENSE.T, AXES[::-1], LABELS[::-1])
    renamed = tensor.rename({"hair": "eye", "eye": "hair"})
    assert renamed == CountTensor.from_dense(DENSE, AXES[::-1], LABELS)
    assert np.shares_memory(renamed.counts, tensor.counts)
    assert tensor.rename({}) == tensor


# size


def test_dense_arrays_are_refused_before_they_take_memory(tensor):
    assert tensor.to_dense(max_bytes=72).tolist() == DENSE.tolist()
    with pytest.raises(errors.BudgetExceededError, match=r"takes 72 bytes, above max_bytes=71"):
        tensor.to_dense(max_bytes=71)
    wide = CountTensor.from_coo([[10**12, 0, 5]], [1], ["i", "j", "k"], shape=(10**13,) * 3)
    assert_refused(errors.BudgetExceededError, f"takes {8 * 10**39:,} bytes", wide.to_dense)
    assert wide.marginal("k").coordinates.tolist() == [[5]]


def test_large_counts_are_exact():
    for total in (2_819_662_855_499, 2**53 + 1, MOST):
        tensor = CountTensor.from_coo([[1], [0], [1]], [total - 3, 1, 2], ["i"])
        assert tensor.total == total
        assert tensor.marginal("i").counts.tolist() == [1, total - 1]
        assert CountTensor.from_frame(tensor.to_frame(), counts="count").total == total
    assert CountTensor.from_dense(np.array([MOST], dtype=np.uint64), ["i"]).total == MOST
    assert CountTensor.from_dense(np.array([MOST], dtype=object), ["i"]).total == MOST


def test_a_million_cells():
    rng = np.random.default_rng(0)
    coordinates = rng.integers(0, [1000, 1000, 500], size=(10**6, 3))
    tensor = CountTensor.from_coo(coordinates, np.ones(10**6, dtype=int), ["i", "j", "k"])
    tensor.marginal("k", "i")
    np.testing.assert_array_equal(
        tensor.marginal("k").to_dense(), np.bincount(coordinates[:, 2], minlength=500)
    )


def test_sparse_arrays_of_any_number_of_axes():
    for shape in ((5,), (2, 3, 4)):
        array = random_array(3, shape)
        assert CountTensor.from_dense(sparse.coo_array(array), cube(array).axes) == cube(array)


# A table for rows of refusals.txt.
FRAME = pd.DataFrame(
    {
        "sex": ["f", None, "m"],
        "age": [1, 2, 1],
        "holes": [1, np.nan, 2],
        "below": [1, -1, 2],
        "text": ["1", "2", "x"],
        "a b": ["u", "v", "w"],
        "lists": [[1], [2], [1]],
    },
    index=["x", "y", "z"],
)


def test_frames_need_pandas(tensor, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    assert_refused(errors.MissingDependencyError, r"polyabayes\[frames\]", tensor.to_frame)
    assert_refused(errors.InvalidTypeError, "frame must be a table", CountTensor.from_frame, 5)


def test_tables_of_counts_bring_their_labels():
    table = pd.DataFrame([[2, 0], [1, 3]], index=["brown", "blue"], columns=["x", "y"])
    tensor = CountTensor.from_dense(table, ["eye", "hair"])
    assert [labels.tolist() for labels in tensor.labels] == [["brown", "blue"], ["x", "y"]]
    numbered = CountTensor.from_dense(table.reset_index(drop=True), ["eye", "hair"])
    assert numbered.labels[0] is None
    given = CountTensor.from_dense(table, ["eye", "hair"], {"eye": ["a", "b"]})
    assert given.labels[1] is None


def test_a_class_of_its_own_is_made_in_the_same_ways():
    own = type("Own", (CountTensor,), {}).from_dense([[1, 2], [0, 3]], ["i", "j"])
    assert own.marginal("j").to_dense().tolist() == [1, 5]


def test_columns_of_any_name_and_package_are_axes():
    table = pd.DataFrame({"hair colour": ["b", "r", "b"], "Sepal.Length": [1, 2, 1]})
    tensor = CountTensor.from_frame(table)
    assert tensor.axes == ("hair_colour", "Sepal_Length")
    assert CountTensor.from_frame(table, ["hair colour"]).axes == ("hair_colour",)
    polars = pytest.importorskip("polars")
    assert CountTensor.from_frame(polars.DataFrame(table.to_dict("list"))) == tensor
