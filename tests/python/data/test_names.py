"""Metadata are matched with documents by name, or refused with the call that does it."""

import re

import numpy as np
import pandas as pd
import pytest

import polyabayes as pb
from helpers.refusals import assert_refused, call_of
from polyabayes.exceptions import DataWarning, InvalidArgumentError, PolyabayesError


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
        ["x/d2.sorted.bam", "x/d10.sorted.bam", "x/d1.sorted.bam"],
    ):
        rows = pd.DataFrame({"respondent": spelt, "year": [2, 10, 1]})
        for metadata in (rows, rows.set_index("respondent")):
            with pytest.warns(DataWarning, match="spelt otherwise"):
                assert corpus.with_metadata(metadata).metadata["year"].tolist() == [1, 2, 10]
    for ids, name, own in (
        (["01", "02"], "id", [2, 1]),
        (["1", "2"], "user_id", ["2.0", "1.0"]),
        (["P1_counts.v2", "P2_counts.v2"], "sample", ["P2", "P1"]),
    ):
        rows = pd.DataFrame({name: own, "year": [2, 1]})
        for metadata in (rows, rows.set_index(name)):
            with pytest.warns(DataWarning, match="spelt otherwise"):
                found = pb.Corpus([[1], [2]], ids=ids).with_metadata(metadata)
            assert found.metadata["year"].tolist() == [1, 2]
    rows = pd.DataFrame({"user_id": [2.0, 1.0], "year": [2, 1]})
    assert pb.Corpus([[1], [2]], ids=["1", "2"], metadata=rows).metadata["year"].tolist() == [1, 2]
    for index in ([2, 0, 1], [11, 12, 13]):
        rows = pd.DataFrame({"year": [2, 10, 1]}, index=index)
        call = call_of(InvalidArgumentError, corpus.with_metadata, rows)
        assert corpus.with_metadata(eval(call, {"metadata": rows})).metadata["year"].iloc[0] == 2


@pytest.mark.parametrize(
    ("ids", "names"),
    [
        (["p.v1", "p.v2"], ["p.v2", "p.v3"]),
        (["s1.train", "s1.test"], ["s1.a", "s1.b"]),
        (["0", "00"], ["000", "0000"]),
        (["a/1", "b/1"], ["c/1", "d/1"]),
        (["d1", "d2"], ["D1", "d2", "d1 "]),
    ],
)
def test_names_of_other_documents_are_not_taken_by_place(ids, names):
    corpus = pb.Corpus([[1], [2]], ids=ids)
    rows = pd.DataFrame({"year": range(len(names))}, index=names)
    for values in (rows, rows.rename_axis("id").reset_index()):
        assert_refused(InvalidArgumentError, "matched by name", corpus.with_metadata, values)


def test_the_warning_of_spelling_quotes_names_of_one_document():
    corpus = pb.Corpus([[1], [2]], ids=["2.txt", "10.txt"])
    for names in (["10", "2.txt"], ["2.txt", "10"]):
        rows = pd.DataFrame({"year": [int(name[:2].strip(".")) for name in names]}, index=names)
        with pytest.warns(DataWarning, match="as '10' among them and '10.txt' in the data"):
            assert corpus.with_metadata(rows).metadata["year"].tolist() == [2, 10]


def test_topics_of_frames_are_told_the_call_that_makes_them_topics():
    def read(topic_word):
        model = pb.LatentDirichletAllocation.from_parameters(
            doc_topic_prior=1.0, topic_word=topic_word
        )
        return model.components_.tolist()

    topics = pd.DataFrame([[0.25, 0.75], [0.5, 0.5]], columns=["urn", "ball"])
    turned = topics.T.rename_axis("word").set_axis(["t1", "t2"], axis=1).reset_index()
    named = topics.assign(topic=["t1", "t2"])
    for frame in (named, turned, topics.astype(str)):
        call = call_of(InvalidArgumentError, read, frame)
        np.testing.assert_allclose(read(eval(call, {"topic_word": frame})), topics)
    assert read(topics.astype(object)) == topics.to_numpy().tolist()


def test_totals_are_told_of_columns_with_percent_signs():
    frame = pd.DataFrame({"share %": ["a", "b", "Total"], "n": [1, 2, 3]})
    with pytest.warns(DataWarning, match=r"rows\[\['share %'\]\]"):
        assert pb.CountTensor.from_frame(frame).counts.sum() == 6
    causes = {"cause": [*"aaabbb"], "sex": ["f", "m", "Both"] * 2, "n": [1, 2, 3, 4, 0, 4]}
    frame = pd.DataFrame({**causes, "vector": [f"v{k}" for k in range(6)]})
    frame.attrs["code"] = "pandas.read_csv('x.csv', dtype={'vector': 'str'})"
    for axes in (["cause", "sex", "vector"], ["cause"]):
        with pytest.warns(DataWarning, match=r"rows\[\['sex'\]\]"):
            pb.CountTensor.from_frame(frame, axes, "n")


def test_mappings_are_matched_by_name_as_frames_are():
    rows = {"id": ["d2", "d1"], "y": ["two", "one"]}
    corpus = pb.Corpus([[1], [2]], ids=["d1", "d2"], metadata=rows)
    for found in (corpus, corpus.with_metadata(rows)):
        assert found.metadata["y"].tolist() == ["one", "two"]
    named = {"id": ["d2", "d1"], "y": pd.Series(["two", "one"], ["d2", "d1"])}
    assert corpus.with_metadata(named).metadata["y"].tolist() == ["one", "two"]
    ages = {"d2": [9.0], "d1": [1.0]}
    model = pb.DocumentModel.dirichlet([[1.0], [1.0]], coefficients=[[0.5], [-0.5]])
    expected = model.transform(corpus, covariates=[[1.0], [9.0]])
    by_column = {"doc_id": ["d2", "d1"], "age": [9.0, 1.0]}
    for rows in (ages, by_column, pd.DataFrame(by_column), {"age": [1.0, 9.0]}):
        np.testing.assert_array_equal(model.transform(corpus, covariates=rows), expected)
    by_id = {"d2": 9.0, "d1": 1.0}
    np.testing.assert_array_equal(model.transform(corpus, covariates=by_id), expected)
    days = {"d2": pd.Timestamp(9), "d1": None}
    assert corpus.with_metadata(days).metadata["0"].isna().tolist() == [True, False]
    other = {"d1": [1.0], "d3": [9.0]}
    call = call_of(InvalidArgumentError, model.transform, corpus, covariates=other)
    found = eval(call, {"covariates": other, "corpus": corpus, "pandas": pd})
    assert found[0].isna().tolist() == [False, True]


def test_levels_of_rows_are_columns_of_factors(tmp_path):
    events = pd.DataFrame({"doc": list("aab"), "word": list("xyy")})
    sums = events.assign(n=1).groupby(["doc", "word"])[["n"]].sum()
    table = pd.crosstab(events["doc"], events["word"])
    expected = pb.CountTensor.from_frame(events)
    call = call_of(InvalidArgumentError, pb.CountTensor.from_frame, table)
    sums.to_parquet(tmp_path / "x.parquet")
    for found in (
        pb.CountTensor.from_frame(sums),
        pb.CountTensor.from_frame(table.stack().to_frame("n")),
        pb.CountTensor.from_frame(sums.assign(m=2), ["doc", "word"], "n"),
        pb.read_tensor(tmp_path / "x.parquet"),
        eval(call, {"CountTensor": pb.CountTensor, "frame": table}),
    ):
        assert found.axes == expected.axes
        np.testing.assert_array_equal(found.to_dense(), expected.to_dense())
    for corpus in (pb.Corpus(sums), pb.read_corpus(tmp_path / "x.parquet")):
        np.testing.assert_array_equal(corpus.counts.toarray(), [[1, 1], [0, 1]])


def test_tables_of_factors_are_divided_at_tabs_and_warn_of_missing_levels(tmp_path):
    path = tmp_path / "x.tsv"
    path.write_text("hair, colour\teye\nred\tN/A\nNA\tblue\n")
    told = r"use polyabayes.read_tensor\(.*, format='csv', .*missing=\['NA', 'N/A'\]\)"
    with pytest.warns(DataWarning, match=told):
        assert [len(labels) for labels in pb.read_tensor(path).labels] == [2, 2]
    tensor = pb.read_tensor(path, missing=["NA", "N/A"])
    assert [labels.tolist() for labels in tensor.labels] == [["red"], ["blue"]]


def test_calls_for_frames_of_pages_pairs_and_points_are_right_as_they_stand():
    pages = pd.DataFrame({"p": ["A", "p", "B"], "tea": ["2", "tea", "3"]})
    pairs = pd.DataFrame([["mug", 2, "tea", 1], ["tea", 3, None, None]])
    pairs.columns = ["product", "qty", "product.1", "qty.1"]
    nested = pd.DataFrame(
        {"who": [{"id": 1, "name": "A"}, {"id": 2, "name": "B"}], "w": ["x", "y"]}
    )
    for table, given, expected in (
        (pages, {"ids": "p"}, [[2], [3]]),
        (pairs, {}, [[2, 1], [0, 3]]),
        (nested, {"document": "who", "word": "w"}, [[1, 0], [0, 1]]),
    ):
        with pytest.raises(PolyabayesError) as caught:
            pb.Corpus.from_table(table, **given)
        call = re.search(r"use (polyabayes.*\))", str(caught.value))[1]
        found = eval(call, {"polyabayes": pb, "pandas": pd, "table": table})
        assert found.counts.toarray().tolist() == expected
    divided = pd.DataFrame({"tea": [1.365, 2.4], "mug": [1.25, 710.0]})
    with pytest.raises(PolyabayesError, match=r"read the file by thousands='\.'$"):
        pb.Corpus(divided)
    with pytest.raises(PolyabayesError, match=r"use .*\.round\("):
        pb.Corpus(divided.replace(1.25, 0.25))
