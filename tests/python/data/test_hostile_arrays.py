"""Arrays that are not what they should be, at every door of the package."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse

import polyabayes as pb
from polyabayes import _core
from polyabayes.exceptions import InternalError, InvalidCountsError, InvalidTypeError

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


def compressed(kind: Any, indptr: list[int], indices: list[int], data: list[int]) -> Any:
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
def test_broken_rows_are_refused_before_they_are_followed(
    kind: Any, arrays: Any, door: Any
) -> None:
    with pytest.raises(InvalidCountsError, match="not a valid sparse matrix"):
        door(compressed(kind, *arrays))


@pytest.mark.parametrize("door", DOORS.values(), ids=DOORS.keys())
def test_broken_triplets_and_lists_are_refused(door: Any) -> None:
    for row in (-1, 2, 1 << 30):
        triplets = sparse.coo_matrix(DENSE)
        triplets.row = np.array([row, 0, 1])
        with pytest.raises(InvalidCountsError, match="not a valid sparse matrix"):
            door(triplets)
    lists = sparse.lil_matrix(DENSE)
    lists.data[0] = [1, 2, 3, 4]
    with pytest.raises(InvalidCountsError, match="row 0 has 2 indices for 4 counts"):
        door(lists)
    lists = sparse.lil_matrix(DENSE)
    lists.rows[0] = [0, 1 << 40]
    with pytest.raises(InvalidCountsError, match="not a valid sparse matrix"):
        door(lists)


@pytest.mark.parametrize("door", DOORS.values(), ids=DOORS.keys())
def test_sparse_matrices_of_objects_are_refused(door: Any) -> None:
    matrix = sparse.csr_matrix(DENSE)
    matrix.data = np.array(["a", None, 1.5], dtype=object)
    with pytest.raises(InvalidTypeError, match="object"):
        door(matrix)


def swapped(array: Any) -> Any:
    return array.astype(array.dtype.newbyteorder(">"))


@pytest.mark.parametrize("layout", ["csr", "csc", "bsr", "coo", "dia"])
def test_sparse_matrices_of_either_byte_order_are_read(layout: str) -> None:
    matrix = sparse.csr_matrix(DENSE).asformat(layout)
    for part in ("data", "indices", "indptr"):
        if hasattr(matrix, part):
            setattr(matrix, part, swapped(getattr(matrix, part)))
    np.testing.assert_array_equal(pb.Corpus(matrix).counts.toarray(), DENSE)


@pytest.mark.parametrize("dtype", [">i8", ">i4", ">u2", ">f8", ">f4", ">f2"])
def test_dense_counts_of_either_byte_order_are_read(dtype: str) -> None:
    np.testing.assert_array_equal(pb.Corpus(DENSE.astype(dtype)).counts.toarray(), DENSE)
    tensor = pb.CountTensor.from_dense(DENSE.astype(dtype), axes=["doc", "word"])
    np.testing.assert_array_equal(tensor.to_dense(), DENSE)


def test_parameters_of_either_byte_order_are_read() -> None:
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
def test_the_core_checks_for_itself(indptr: Any, indices: Any, data: Any) -> None:
    parts = [np.array(part, dtype=np.int64) for part in (indptr, indices, data)]
    with pytest.raises(InvalidCountsError):
        _core.Documents(3, *parts)


@pytest.mark.parametrize("in_pool", [False, True])
def test_a_panic_is_an_error_that_says_how_to_report_it(
    in_pool: bool, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(InternalError, match=r"index 3 is out.*report this line") as caught:
        _core.panic("index 3 is out", in_pool)
    assert isinstance(caught.value, RuntimeError)
    assert "convert.rs" in str(caught.value)
    captured = capfd.readouterr()
    assert (captured.out, captured.err) == ("", "")
