"""Metadata are matched with documents by name, or refused with the call that does it."""

import pandas as pd
import pytest

import polyabayes as pb
from helpers.refusals import assert_refused, call_of
from polyabayes.exceptions import DataWarning, InvalidArgumentError


def test_metadata_are_matched_by_a_column_of_names():
    corpus = pb.Corpus([[3, 0], [0, 5], [1, 1]], ids=["d1", "d2", "d4"])

    def parties(metadata):
        return corpus.with_metadata(metadata).metadata["party"].tolist()

    rows = pd.DataFrame({"doc_id": ["d2", "d1", "d3", "d4"], "party": ["B", "A", "C", "D"]})
    polars = pytest.importorskip("polars")
    for metadata in (rows, rows.rename(columns={"doc_id": "speech"}), polars.from_pandas(rows)):
        assert parties(metadata) == ["A", "B", "D"]
    other = pd.DataFrame({"doc_id": ["d1", "d2", "d3"], "party": ["A", "B", "C"]})
    names = {"metadata": other, "corpus": corpus}
    call = call_of(InvalidArgumentError, corpus.with_metadata, other)
    assert parties(eval(call, names))[:2] == ["A", "B"]
    assert parties(other.drop(columns="doc_id")) == ["A", "B", "C"]
    both = pd.DataFrame({"a": ["d2", "d1", "d4"], "b": ["d4", "d2", "d1"]})
    assert_refused(InvalidArgumentError, "say which by", corpus.with_metadata, both)


def test_metadata_with_names_spelt_otherwise_are_matched_with_a_warning():
    corpus = pb.Corpus([[1], [2], [3]], ids=["d1", "d2", "d10"])
    for spelt in (
        ["D2", "D10", "D1"],
        [" d2", "d10 ", "d1"],
        ["x/d2.txt", "x/d10.txt", "x/d1.txt"],
    ):
        rows = pd.DataFrame({"respondent": spelt, "year": [2, 10, 1]})
        for metadata in (rows, rows.set_index("respondent")):
            with pytest.warns(DataWarning, match="spelt otherwise"):
                assert corpus.with_metadata(metadata).metadata["year"].tolist() == [1, 2, 10]
    padded = pb.Corpus([[1], [2]], ids=["01", "02"])
    with pytest.warns(DataWarning, match="spelt otherwise"):
        found = padded.with_metadata(pd.DataFrame({"id": [2, 1], "year": [2, 1]}))
    assert found.metadata["year"].tolist() == [1, 2]
    for index in ([2, 0, 1], [11, 12, 13]):
        rows = pd.DataFrame({"year": [2, 10, 1]}, index=index)
        call = call_of(InvalidArgumentError, corpus.with_metadata, rows)
        assert corpus.with_metadata(eval(call, {"metadata": rows})).metadata["year"].iloc[0] == 2
