import gzip
import io
import json
import sys
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import polyabayes as pb
from helpers.refusals import assert_refused
from polyabayes import CountTensor, read_tensor, write_tensor
from polyabayes._support import files
from polyabayes.exceptions import (
    FileAccessError,
    FileFormatError,
    InvalidArgumentError,
    MissingDependencyError,
)

AXES = ["hair", "eye", "sex"]
SHAPE = (3, 4, 2)
LABELS = [["red", 'so "called"', "a, b"], ["10", "9", "01", "NA"], ["ü\r\n", " "]]
BIG = 2_819_662_855_499
TNS = "# hair eye sex count\n1 1 1 32\n1 3 2 11\n\n3 4 2 5 # the last\n"
ARRAYS = {"coordinates": np.array([[0, 1]]), "counts": np.array([1])}
ARRAYS |= {"shape": np.array([2, 2]), "axes": np.array(["i", "j"])}
MODES = {
    "modes": [
        {"name": "hair", "size": 3},
        {"name": "eye", "size": 4, "labels": ["a", "b", "c", "d"]},
        {"name": "sex", "size": 2, "labels": None},
    ]
}


def random_tensor(labels, seed=0):
    counts = np.random.default_rng(seed).poisson(0.8, size=SHAPE)
    counts[1, 2, 1] = BIG
    return CountTensor.from_dense(counts, AXES, labels)


def by_label(tensor):
    frame = tensor.to_frame()
    keys = zip(*(frame[axis].astype(str) for axis in tensor.axes), strict=True)
    return dict(zip(keys, frame["count"], strict=True))


# round trips


@pytest.mark.parametrize("name", ["x.tns", "x.tns.gz", "x.npz"])
@pytest.mark.parametrize("labels", [None, LABELS, [None, LABELS[1], None]])
def test_everything_comes_back(tmp_path, name, labels):
    tensor = random_tensor(labels)
    write_tensor(tensor, tmp_path / name)
    assert read_tensor(tmp_path / name) == tensor
    renamed = read_tensor(tmp_path / name, ["i", "j", "k"])
    assert renamed == tensor.rename({"hair": "i", "eye": "j", "sex": "k"})


@pytest.mark.filterwarnings("ignore:answers that may mark missing ones")
@pytest.mark.parametrize("name", ["x.csv", "x.csv.gz"])
@pytest.mark.parametrize("labels", [None, LABELS, [None, LABELS[1], None]])
def test_csv_keeps_cells_by_their_labels(tmp_path, name, labels):
    tensor = random_tensor(labels)
    write_tensor(tensor, tmp_path / name)
    back = read_tensor(tmp_path / name)
    assert back.axes == tensor.axes
    assert by_label(back) == by_label(tensor)
    assert back.counts.max() == BIG
    again = tmp_path / "again.csv"
    write_tensor(back, again)
    assert read_tensor(again) == back


@pytest.mark.filterwarnings("ignore:answers that may mark missing ones")
def test_parquet(tmp_path):
    tensor = random_tensor(LABELS)
    tensor.to_frame().to_parquet(tmp_path / "x.parquet")
    assert read_tensor(tmp_path / "x.parquet") == tensor
    tensor.to_frame("n").to_parquet(tmp_path / "y.parquet")
    back = read_tensor(tmp_path / "y.parquet", ["sex", "hair"], counts="n")
    assert back == tensor.marginal("sex", "hair")


@pytest.mark.parametrize("name", ["x.tns", "x.tns.gz", "x.npz"])
def test_empty_tensors_and_the_largest_count(tmp_path, name):
    empty = CountTensor.from_coo([], [], AXES, SHAPE)
    write_tensor(empty, tmp_path / name)
    assert read_tensor(tmp_path / name) == empty
    most = CountTensor.from_coo([[10**15]], [2**63 - 1], ["i"])
    write_tensor(most, tmp_path / name)
    assert read_tensor(tmp_path / name) == most


def test_many_cells_are_written_in_pieces(tmp_path):
    rng = np.random.default_rng(0)
    coordinates = rng.integers(0, [900, 800, 700], size=(200_000, 3))
    tensor = CountTensor.from_coo(coordinates, rng.integers(1, BIG, size=200_000), AXES)
    write_tensor(tensor, tmp_path / "x.tns")
    assert read_tensor(tmp_path / "x.tns") == tensor


# FROSTT


@pytest.mark.parametrize(
    "content", [TNS, TNS.replace("\n", "\r\n"), gzip.compress(TNS.encode(), mtime=0)]
)
@pytest.mark.parametrize("block_bytes", [1 << 24, 10])
def test_tns(write, monkeypatch, content, block_bytes):
    monkeypatch.setattr(files, "_BLOCK_BYTES", block_bytes)
    tensor = read_tensor(write("x.tns", content))
    assert tensor.axes == ("mode1", "mode2", "mode3")
    assert tensor.shape == (3, 4, 2)
    assert tensor.coordinates.tolist() == [[0, 0, 0], [0, 2, 1], [2, 3, 1]]
    assert tensor.counts.tolist() == [32, 11, 5]
    assert read_tensor(write("y.tns", content), AXES, shape=(3, 4, 5)).shape == (3, 4, 5)


@pytest.mark.parametrize(
    ("count", "is_read_as"), [("3.0", 3), ("3.", 3), ("0", 0), (f"{2**63 - 12}", 2**63 - 12)]
)
def test_tns_of_other_numbers(write, count, is_read_as):
    tensor = read_tensor(write("x.tns", TNS.replace("32", count).replace("5 #", "0 #")))
    assert tensor.total == 11 + is_read_as


def test_tns_with_modes(write):
    write("x.modes.json", json.dumps(MODES))
    tensor = read_tensor(write("x.tns.gz", gzip.compress(TNS.encode())))
    assert (tensor.axes, tensor.shape) == (("hair", "eye", "sex"), SHAPE)
    assert tensor.labels[0] is None
    assert tensor.labels[1].tolist() == ["a", "b", "c", "d"]
    assert read_tensor(write("x.tns", ""), ["i", "j", "k"]).axes == ("i", "j", "k")


def test_standard_input(monkeypatch):
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(TNS.encode())))
    assert read_tensor("-", AXES).total == 48
    with pytest.raises(InvalidArgumentError, match="standard input is read as tns only"):
        read_tensor("-", format="csv")


# tables


def test_csv_of_observations(write):
    path = write("x.csv", "rings,sex\n10,M\n9,F\n10,M\n")
    tensor = read_tensor(path)
    assert tensor.axes == ("rings", "sex")
    assert [labels.tolist() for labels in tensor.labels] == [["9", "10"], ["F", "M"]]
    assert tensor.to_dense().tolist() == [[1, 0], [0, 2]]
    assert read_tensor(path, ["sex"]).to_dense().tolist() == [1, 2]


@pytest.mark.filterwarnings("ignore:answers that may mark missing ones")
def test_csv_of_counts(write):
    path = write("x.csv", f"i,j,count\nNA,01,{BIG}\nnull,1.0,2\nNA,01,1\n")
    tensor = read_tensor(path)
    assert by_label(tensor) == {("NA", "01"): BIG + 1, ("null", "1.0"): 2}
    assert read_tensor(path, ["i"]) == tensor.marginal("i")
    assert read_tensor(path, ["i", "count"]).shape == (2, 3)
    tabbed = write("y.csv", f"i\tn\na\t{2**63 - 1}\nb\t0\n")
    assert read_tensor(tabbed, counts="n", sep="\t").counts.tolist() == [2**63 - 1]


def test_tables_need_pandas(write, monkeypatch):
    path = write("x.csv", "i\na\n")
    monkeypatch.setitem(sys.modules, "pandas", None)
    assert_refused(MissingDependencyError, r"polyabayes\[frames\]", read_tensor, path)


# archives


def test_archives_hold_plain_arrays(tmp_path):
    write_tensor(random_tensor(LABELS), tmp_path / "x.npz")
    with np.load(tmp_path / "x.npz", allow_pickle=False) as archive:
        assert set(archive) == {"coordinates", "counts", "shape", "axes"} | {
            f"labels_{axis}" for axis in AXES
        }


def test_what_is_no_archive_of_a_tensor(tmp_path, write):
    pb.write_corpus(pb.Corpus([[1, 2]]), tmp_path / "x.npz")
    with pytest.raises(FileFormatError, match=r"no array 'coordinates'.*read_corpus"):
        read_tensor(tmp_path / "x.npz")
    with (tmp_path / "y.npz").open("wb") as file:
        np.save(file, np.ones(3))
    assert_refused(FileFormatError, "a single array", read_tensor, tmp_path / "y.npz")
    whole = (tmp_path / "x.npz").read_bytes()
    for content in (b"", b"no archive", whole[: len(whole) // 2]):
        assert_refused(FileFormatError, r"z\.npz", read_tensor, write("z.npz", content))


# names and options


def test_a_format_may_be_named(write):
    assert read_tensor(write("x.zip", TNS), format="tns").total == 48


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    old = random_tensor(LABELS)
    for name in ("x.tns", "x.npz", "x.csv"):
        write_tensor(old, tmp_path / name)
        before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
        with monkeypatch.context() as patch:
            patch.setattr(
                files.Path, "replace", lambda *_: (_ for _ in ()).throw(OSError(28, "full"))
            )
            with pytest.raises(FileAccessError, match="full"):
                write_tensor(random_tensor(LABELS, seed=1), tmp_path / name)
        assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


# real tensors


@pytest.mark.parametrize(
    ("name", "axes", "shape", "n_cells", "total", "largest"),
    [
        ("icews14.tns.gz", "sender receiver action", (184, 184, 173), 6585, 15366, 54),
        ("letter_bigrams.csv", "first second", (26, 26), 669, BIG, 100_272_945_963),
    ],
)
def test_real_tensors(shared_data, tmp_path, name, axes, shape, n_cells, total, largest):
    tensor = read_tensor(shared_data / name)
    assert (tensor.axes, tensor.shape) == (tuple(axes.split()), shape)
    assert (tensor.n_cells, tensor.total, tensor.counts.max()) == (n_cells, total, largest)
    assert all(labels is not None for labels in tensor.labels)
    write_tensor(tensor, tmp_path / "x.tns.gz")
    assert read_tensor(tmp_path / "x.tns.gz") == tensor


def test_real_observations(shared_data):
    tensor = read_tensor(shared_data / "abalone.csv", ["sex", "rings"])
    assert tensor.marginal("sex").to_dense().tolist() == [1307, 1342, 1528]
    assert tensor.labels[1].tolist() == sorted(tensor.labels[1].tolist(), key=int)
    frame = pd.read_csv(shared_data / "abalone.csv")
    assert CountTensor.from_frame(frame, ["sex", "rings"]) == tensor
