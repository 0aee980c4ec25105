"""Arrays that are not what they should be, at every door of the package."""

import copy
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import polyabayes as pb
from helpers.refusals import assert_refused
from polyabayes import _core
from polyabayes.exceptions import FileFormatError, InvalidCountsError, InvalidTypeError

DENSE = np.array([[1, 0, 2], [0, 3, 0]])
LDA = pb.LatentDirichletAllocation.from_parameters(
    doc_topic_prior=[0.5, 0.5], topic_word=[[0.5, 0.25, 0.25], [0.1, 0.1, 0.8]]
)
DOORS = {
    "Corpus": pb.Corpus,
    "log_likelihood": lambda matrix: pb.log_likelihood(LDA, matrix),
    "fit": lambda matrix: pb.LatentDirichletAllocation(2, max_iter=2).fit(matrix),
    "from_dense": lambda matrix: pb.CountTensor.from_dense(matrix, axes=["doc", "word"]),
    "log_evidence": lambda matrix: pb.AllocationModel.nmf(2).log_evidence(matrix),
}


def compressed(kind, indptr, indices, data):
    """A matrix of two rows or columns and three of the other, its arrays put in unchecked."""
    matrix = kind((3, 2) if kind is sparse.csc_matrix else (2, 3), dtype=np.int64)
    matrix.indptr, matrix.indices = np.array(indptr), np.array(indices)
    matrix.data = np.array(data)
    return matrix


BROKEN = {
    "falls below zero": ([0, 100_000, -1], [0, 1, 2], [1, 1, 1]),
    "falls to zero": ([0, 3, 0], [0, 1, 2], [1, 1, 1]),
    "begins above zero": ([2, 2, 3], [0, 1, 2], [1, 1, 1]),
    "begins below zero": ([-7, 2, 3], [0, 1, 2], [1, 1, 1]),
    "ends beyond the data": ([0, 2, 9], [0, 1, 2], [1, 1, 1]),
    "too short": ([0, 3], [0, 1, 2], [1, 1, 1]),
    "index too large": ([0, 2, 3], [0, 1 << 40, 2], [1, 1, 1]),
    "index negative": ([0, 2, 3], [0, -5, 2], [1, 1, 1]),
    "indices too few": ([0, 2, 3], [0, 1], [1, 1, 1]),
}


@pytest.mark.parametrize("door", DOORS.values(), ids=DOORS.keys())
@pytest.mark.parametrize("arrays", BROKEN.values(), ids=BROKEN.keys())
@pytest.mark.parametrize("kind", [sparse.csr_matrix, sparse.csc_matrix, sparse.csr_array])
def test_broken_rows_are_refused_before_they_are_followed(kind, arrays, door):
    assert_refused(InvalidCountsError, "not a valid sparse matrix", door, compressed(kind, *arrays))


@pytest.mark.parametrize("door", DOORS.values(), ids=DOORS.keys())
def test_broken_triplets_and_lists_are_refused(door):
    for row in (-1, 2, 1 << 30):
        triplets = sparse.coo_matrix(DENSE)
        triplets.row = np.array([row, 0, 1])
        assert_refused(InvalidCountsError, "not a valid sparse matrix", door, triplets)
    lists = sparse.lil_matrix(DENSE)
    lists.data[0] = [1, 2, 3, 4]
    assert_refused(InvalidCountsError, "row 0 has 2 indices, 4 counts", door, lists)
    lists = sparse.lil_matrix(DENSE)
    lists.rows[0] = [0, 1 << 40]
    assert_refused(InvalidCountsError, "not a valid sparse matrix", door, lists)


@pytest.mark.parametrize("door", DOORS.values(), ids=DOORS.keys())
def test_sparse_matrices_of_objects_are_refused(door):
    matrix = sparse.csr_matrix(DENSE)
    matrix.data = np.array(["a", None, 1.5], dtype=object)
    assert_refused(InvalidTypeError, "object", door, matrix)


TALL = np.array([[300, 0, 2], [0, 3, 300]])
SUMS: dict[str, Any] = {
    "Corpus": lambda X: pb.Corpus(X).counts.toarray(),
    "Corpus of scipy's file": lambda X: pb.read_corpus(saved(X)).counts.toarray(),
    "from_dense": lambda X: pb.CountTensor.from_dense(X, ["doc", "word"]).to_dense(),
    "from_corpus": lambda X: pb.CountTensor.from_corpus(X).to_dense(),
    "write_corpus": lambda X: written(X).counts.toarray(),
    "write_shards": lambda X: sharded(X),
    "log_likelihood": lambda X: pb.log_likelihood(LDA, X, "exact").values,
    "score": lambda X: LDA.score(X),
    "transform": lambda X: LDA.transform(X),
    "log_evidence": lambda X: pb.AllocationModel.nmf(1).log_evidence(X, method="exact").value,
    "decompose": lambda X: pb.AllocationModel.nmf(1).decompose(X, method="vb").value,
    "fit": lambda X: pb.PoissonFactorAnalysis(1, max_iter=2, random_state=0).fit(X).components_,
}


def saved(matrix):
    path = Path(tempfile.mkdtemp()) / "x.npz"
    sparse.save_npz(path, matrix)
    return path


def written(matrix):
    path = Path(tempfile.mkdtemp()) / "x.ldac"
    pb.write_corpus(matrix, path)
    return pb.read_corpus(path)


def sharded(matrix):
    shards = pb.write_shards(matrix, tempfile.mkdtemp())
    return np.concatenate([block.counts.toarray() for block in shards.blocks(10)])


@pytest.mark.parametrize("read", SUMS.values(), ids=SUMS.keys())
@pytest.mark.parametrize("layout", ["coo", "csr", "csc", "bsr"])
def test_equal_entries_are_added_up_beyond_the_largest_number_of_their_type(layout, read):
    """300 ones of uint8 in one cell were 44, and of bool 1."""
    rows, columns = (np.repeat(index, TALL[TALL > 0]) for index in np.nonzero(TALL))
    expected = read(sparse.csr_matrix(TALL))
    for dtype in (np.uint8, bool):
        ones = np.ones(len(rows), dtype=dtype)
        entries = sparse.coo_matrix((ones, (rows, columns)), shape=TALL.shape)
        if layout != "coo":
            # SciPy's own conversions add up: the arrays are put in as they are.
            kind = {"csr": sparse.csr_matrix, "csc": sparse.csc_matrix, "bsr": sparse.bsr_matrix}
            major, minor = (columns, rows) if layout == "csc" else (rows, columns)
            order = np.argsort(major, kind="stable")
            sizes = np.bincount(major, minlength=TALL.shape[layout == "csc"])
            data = ones.reshape(-1, 1, 1) if layout == "bsr" else ones
            parts = data, minor[order], np.concatenate([[0], np.cumsum(sizes)])
            entries = kind[layout](parts, shape=TALL.shape)
        np.testing.assert_allclose(read(entries), expected, rtol=1e-12)


KINDS = ("dense", "frame", "csr", "csc", "bsr", "coo", "dia", "lil", "dok")


def arrays_of(counts):
    held = vars(counts) if sparse.issparse(counts) else {"": np.asarray(counts)}
    return {name: x for name, x in held.items() if isinstance(x, np.ndarray)}


@pytest.mark.parametrize(
    ("kind", "read"),
    [
        (kind, read)
        for kind in KINDS
        for name, read in SUMS.items()
        if kind in KINDS[2:7] or name != "Corpus of scipy's file"
        if kind != "frame" or name not in ("log_evidence", "decompose")
    ],
)
def test_nothing_that_is_handed_in_is_written_to(kind, read):
    counts: Any = TALL.astype(np.uint16)
    if kind == "frame":
        counts = pd.DataFrame(counts)
    elif kind != "dense":
        counts = sparse.coo_matrix(counts).asformat(kind)
    for array in arrays_of(counts).values():
        array.flags.writeable = kind == "lil"  # Objects, which SciPy itself reads only so.
    before = copy.deepcopy(counts)
    read(counts)
    expected, found = arrays_of(before), arrays_of(counts)
    assert expected.keys() == found.keys()
    for name, array in expected.items():
        assert (array.dtype, array.tolist()) == (found[name].dtype, found[name].tolist())
    if kind == "dok":
        assert dict(before) == dict(counts)


def test_unknown_members_of_archives_are_refused(tmp_path):
    corpus = pb.Corpus(DENSE, ["urn", "ball", "law"][: DENSE.shape[1]], list("xyz")[: len(DENSE)])
    tensor = pb.CountTensor.from_corpus(corpus)
    for name, write, read, thing in (
        ("corpus", pb.write_corpus, pb.read_corpus, corpus),
        ("tensor", pb.write_tensor, pb.read_tensor, tensor),
    ):
        write(thing, tmp_path / f"{name}.npz")
        content = (tmp_path / f"{name}.npz").read_bytes()
        with zipfile.ZipFile(tmp_path / f"{name}.npz") as archive:
            members = archive.namelist()
        for member in members:
            for place in range(len(member.removesuffix(".npy"))):
                one = member.encode()
                flipped = bytearray(one)
                flipped[place] ^= 1
                (tmp_path / "x.npz").write_bytes(content.replace(one, bytes(flipped)))
                with pytest.raises(FileFormatError):
                    read(tmp_path / "x.npz")


def swapped(array):
    return array.astype(array.dtype.newbyteorder(">"))


@pytest.mark.parametrize("layout", ["csr", "csc", "bsr", "coo", "dia"])
def test_sparse_matrices_of_either_byte_order_are_read(layout):
    matrix = sparse.csr_matrix(DENSE).asformat(layout)
    for part in ("data", "indices", "indptr"):
        if hasattr(matrix, part):
            setattr(matrix, part, swapped(getattr(matrix, part)))
    np.testing.assert_array_equal(pb.Corpus(matrix).counts.toarray(), DENSE)


@pytest.mark.parametrize("dtype", [">i8", ">i4", ">u2", ">f8", ">f4", ">f2"])
def test_dense_counts_of_either_byte_order_are_read(dtype):
    np.testing.assert_array_equal(pb.Corpus(DENSE.astype(dtype)).counts.toarray(), DENSE)
    tensor = pb.CountTensor.from_dense(DENSE.astype(dtype), axes=["doc", "word"])
    np.testing.assert_array_equal(tensor.to_dense(), DENSE)


def test_parameters_of_either_byte_order_are_read():
    parts = {
        "doc_topic_prior": LDA.doc_topic_prior_.astype(">f8"),
        "topic_word": LDA.components_.astype(">f8"),
    }
    other = pb.LatentDirichletAllocation.from_parameters(**parts)
    assert pb.log_likelihood(other, DENSE).total == pb.log_likelihood(LDA, DENSE).total


@pytest.mark.parametrize(
    ("indptr", "indices", "data"),
    [
        ([0, 100_000, -1], [0, 1, 2], [1, 1, 1]),
        ([0, 3, 0], [0, 1, 2], [1, 1, 1]),
        ([-(2**63), 0, 3], [0, 1, 2], [1, 1, 1]),
        ([0, 2, 2**63 - 1], [0, 1, 2], [1, 1, 1]),
        ([0, 2, 3], [0, -1, 2], [1, 1, 1]),
        ([0, 2, 3], [0, 1, 2], [1, 1, -(2**63)]),
    ],
)
def test_the_core_checks_for_itself(indptr, indices, data):
    parts = [np.array(part, dtype=np.int64) for part in (indptr, indices, data)]
    with pytest.raises(InvalidCountsError):
        _core.Documents(3, *parts)
