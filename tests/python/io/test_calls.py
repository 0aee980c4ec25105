"""The calls that messages offer for levels, sums, cells and signatures are right as they stand."""

import re
import sys
import warnings

import numpy as np
import pandas as pd
import pytest

import polyabayes as pb
from helpers.refusals import assert_refused, call_of
from polyabayes.exceptions import DataWarning, InvalidArgumentError, PolyabayesError

SALES = "region,product,units\nN,a,3\nN,b,4\nS,a,5\n"


@pytest.mark.parametrize("sep", [",", ";"])
def test_whole_numbers_beside_labels_are_counts_or_an_axis(tmp_path, sep):
    path = tmp_path / "x.csv"
    path.write_text(SALES.replace(",", sep))
    frame = pd.read_csv(path, sep=sep)
    for door, table in ((pb.read_tensor, path), (pb.CountTensor.from_frame, frame)):
        with pytest.raises(PolyabayesError, match="use counts='units'; if not, axes="):
            door(table)
        assert door(table, counts="units").total == 12
        assert door(table, axes=list(frame.columns)).total == 3
    assert pb.CountTensor.from_frame(frame.astype("category")).total == 3
    numbered = frame.rename(columns={"units": 0})
    assert_refused(InvalidArgumentError, "counts=0;", pb.CountTensor.from_frame, numbered)
    path.write_text("region;product;units\nN;a;2.000\nN;b;1,5\nS;a;5\n")
    with pytest.raises(PolyabayesError, match=r"holds '2\.000'") as caught:
        pb.read_tensor(path, counts="units")
    call = str(caught.value).partition("written so, ")[2]
    assert call.endswith("sep=';', thousands='.', decimal=','), counts='units')")


def test_a_table_of_counts_is_no_table_of_factors(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.csv").write_text(",Jan,Feb\nN,1,3\nS,2,4\n")
    call = call_of(PolyabayesError, pb.read_tensor, "x.csv")
    found = eval(call, {"polyabayes": pb, "pandas": pd})
    assert (found.total, found.labels[0].tolist()) == (10, ["N", "S"])


def last_call_of(door, table):
    """The code after the last "use" of what a door says of a table, as a warning or an error."""
    with warnings.catch_warnings(record=True, action="always") as told:
        try:
            door(table)
        except PolyabayesError as error:
            told = [error]
    return str(getattr(told[-1], "message", told[-1])).rpartition("use ")[2]


@pytest.mark.parametrize("index", [["hair"], ["hair", "sex"]])
def test_cross_tables_enter_by_the_calls_that_all_doors_of_tensors_name(
    index, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    counts = pd.MultiIndex.from_product([[*"abc"], [*"fm"], [*"xyz"]], names=["hair", "sex", "eye"])
    rows = pd.DataFrame({"n": np.arange(18) ** 2 % 19 + 1}, counts).reset_index()
    kinds = {"values": "n", "aggfunc": "sum", "margins": True}
    table = rows.pivot_table(index=index, columns="eye", **kinds)
    table.to_csv("x.csv")
    frame, from_frame = pd.read_csv("x.csv"), pb.CountTensor.from_frame
    expected = rows.groupby([*index, "eye"])["n"].sum().tolist()
    names = {"polyabayes": pb, "CountTensor": pb.CountTensor, "pandas": pd}
    for door, own in (
        (pb.read_tensor, "x.csv"),
        (from_frame, frame),
        (from_frame, table),
        (pb.LatentClassAnalysis(2).fit, frame),
        (lambda table: pb.CountTensor.from_dense(table, ["row", "eye"]), table),
    ):
        call = last_call_of(door, own)
        argument = call.partition("from_frame(")[2]
        if argument:
            # The next door tells of the sums.
            own = eval(argument[:-1], names | {"frame": own})
            call = last_call_of(from_frame, own)
        found = eval(call, names | {"frame": own})
        assert found.counts.tolist() == expected, call


def test_packed_columns_of_eurostat_are_taken_apart(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [
        "sex,geo\\TIME_PERIOD\t2020 \t2021 ",
        "F,AT\t45 \t46 ",
        "F,IE\t17 b\t: ",
        "M,AT\t40 \t41 p",
    ]
    (tmp_path / "x.tsv").write_text("\n".join(rows))
    call = last_call_of(pb.read_tensor, "x.tsv")
    found = eval(call, {"polyabayes": pb, "pandas": pd})
    assert (found.axes, found.counts.tolist()) == (
        ("sex", "geo_TIME_PERIOD", "time"),
        [45, 46, 17, 40, 41],
    )


def test_sums_among_the_cells_are_a_warning_with_the_call_that_leaves_them_out():
    table = pd.DataFrame([[2, 3], [0, 5]], index=["A", "B"], columns=["tea", "mug"])
    table.loc["T"] = table.sum()
    table["Both sexes"] = table.sum(axis=1)
    frame = table.stack().rename_axis(["shop", "the item"]).reset_index(name="n").assign(flag=None)
    with pytest.warns(DataWarning, match="'T', 'Both sexes' of 'shop', 'the item'") as caught:
        pb.CountTensor.from_frame(frame, ["shop", "the item"])
    call = str(caught[0].message).partition("use ")[2]
    assert eval(call, {"polyabayes": pb, "frame": frame}).total == 10
    with pytest.warns(DataWarning, match="sums .*'T'"), pytest.warns(match="sums .*'Both sexes'"):
        pb.Corpus(table)
    wide = pd.DataFrame({"a": [1, 2, 3], "b": [0, 4, 4]}, [("N", 1), ("S", 2), ("All", "")])
    with pytest.warns(DataWarning, match=r"documents .*'All'; if so, use"):
        assert pb.Corpus(wide, metadata=wide[::-1]).metadata["a"].tolist() == [1, 2, 3]


def test_answers_of_files_and_frames_are_looked_at_alike(tmp_path):
    path, frame = tmp_path / "x.csv", pd.DataFrame({"q1": ["Yes", "No", "yes ", "-9"] * 10})
    frame["q2"] = [1.0, 2.0, np.nan, 2.0] * 10
    frame.to_csv(path, index=False)
    for door, table in ((pb.read_tensor, path), (pb.CountTensor.from_frame, frame)):
        of_case = pytest.warns(DataWarning, match="differ only in case or blanks")
        with pytest.warns(DataWarning, match="mark missing") as marked, of_case as caught:
            assert door(table).labels[1].tolist() == ["1", "2"]
        names = {"frame": frame, "pandas": pd, "polyabayes": pb}
        call = str(marked[0].message).partition("use ")[2].partition(";")[0]
        with of_case:
            assert eval(call, names).labels[0].tolist() == ["No", "Yes", "yes "]
        fixed = eval(str(caught[-1].message).rpartition("use ")[2], names)
        found = pb.CountTensor.from_frame(fixed, missing=["-9"])
        assert found.labels[0].tolist() == ["No", "Yes"]
    fruit = pd.DataFrame({"a": ["Apple", None, "Apple"], "b": [None, "Pear", "Pear"]})
    fruit.to_csv(path, index=False)
    for door, table in ((pb.read_tensor, path), (pb.CountTensor.from_frame, fruit)):
        with pytest.warns(DataWarning, match="one answer or none: if blanks") as caught:
            door(table)
        call = str(caught[0].message).rpartition("use ")[2]
        fixed = pb.CountTensor.from_frame(eval(call, {"frame": fruit, "pandas": pd}))
        assert fixed.to_dense().tolist() == [[0, 1], [1, 1]]
    monkey = pd.DataFrame({"q1": ["Response", "a", "b"], "q2": ["Open-Ended Response", "c", "d"]})
    with pytest.warns(DataWarning, match=r"frame.drop\(index=\[0\]\)"):
        pb.CountTensor.from_frame(monkey)


def test_signatures_with_words_in_rows_are_refused_with_the_call_that_turns_them():
    topics = pd.DataFrame({"S1": [0.5, 0.2, 0.3], "S2": [0.1, 0.1, 0.8]}, index=["x", "y", "z"])
    for table in (topics, topics.rename_axis("Type").reset_index()):
        for make in (
            lambda topics: pb.DocumentModel.mixture(topics, [0.5, 0.5]),
            lambda topics: pb.LatentDirichletAllocation.from_parameters(
                topic_word=topics, doc_topic_prior=1.0
            ),
        ):
            call = call_of(InvalidArgumentError, make, table)
            turned = eval(call, {"topic_word": table})
            assert make(turned).vocabulary_.tolist() == ["x", "y", "z"]


def test_further_headers_of_a_survey_are_left_out_with_a_warning(tmp_path):
    path = tmp_path / "x.csv"
    second = '"{""ImportId"":""_r""}","{""ImportId"":""Q1""}"'
    rows = "".join(f"R_{row},{answer}\n" for row, answer in enumerate(["an urn", "a ball"]))
    path.write_text(f"Id,Q1\nResponse ID,Why?\n{second}\n{rows}")
    with pytest.warns(DataWarning, match="lines 2 to 3 are further headers of a survey"):
        corpus = pb.read_corpus(path, text="Q1")
    assert (corpus.ids.tolist(), corpus.vocabulary.tolist()) == (
        ["R_0", "R_1"],
        ["an", "ball", "urn"],
    )
    frame = pd.read_csv(path)
    call = call_of(PolyabayesError, pb.Corpus.from_table, frame, text="Q1", ids="Id")
    assert "ids='Id'" in call
    found = eval(call, {"polyabayes": pb, "table": frame})
    assert found.counts.toarray().tolist() == corpus.counts.toarray().tolist()


def test_numbers_among_named_properties_are_warned_of_and_other_numbers_are_not():
    plots = pd.DataFrame({"Achi": [1, 3, 0, 0], "Agro": [0, 0, 4, 8], "Poa": [4, 2, 7, 2]})
    env = {"Use": [*"hpph"], "Moist": [1, 1, 2, 5], "Soil": [*"abbc"], "pH": [5, 6, 6, 5]}
    every = ["Use", "Soil", "Moist", "pH"]
    for table in (pd.DataFrame({**plots, **env}), pd.DataFrame({**env, **plots})):
        with pytest.warns(DataWarning, match=re.escape(f"use metadata={every}; if not, layout=")):
            pb.Corpus.from_table(table, metadata=["Use", "Soil"])
        found = pb.Corpus.from_table(table, metadata=every)
        assert found.counts.toarray().tolist() == plots.to_numpy().tolist()
        assert pb.Corpus.from_table(table, metadata=["Use", "Soil"], layout="wide").n_words == 5
    notes = {"Use": [*"hpph"], "Notes": [*"abca"]}
    pb.Corpus.from_table(pd.DataFrame({"id": [*"abcd"], **notes, **plots}), metadata=[*notes])
    pb.Corpus.from_table(plots.assign(Notes=[*"abca"], Tea=[0, 1, 5, 1]), metadata=["Notes"])


def test_calls_keep_what_the_caller_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    orders = "order,sku,quantity\n1,tea,3\n1,mug,-2\n2,tea,5\n"
    genes = "G;chr;S1;S2\nG1;c1;1.000;2\nG2;c2;0;3\n"
    for text, options, expected in (
        (orders, {"document": "order", "word": "sku", "count": "quantity"}, [[3], [5]]),
        (genes, {"ids": "G", "metadata": ["chr"], "transpose": True}, [[1000, 0], [2, 3]]),
        ("wk,tea,Notes,mug\nw1,1,x,\nw2,0,y,3\n", {"ids": "wk"}, [[1, 0], [0, 3]]),
        ("caf\xe9,t\xe9\nt\xe9,no,caf\xe9\n", {"encoding": "latin-1"}, [[1, 0, 1], [1, 1, 1]]),
    ):
        (tmp_path / "x.csv").write_text(text, options.get("encoding"))
        with pytest.raises(PolyabayesError) as caught:
            pb.read_corpus("x.csv", **options)
        call = re.search(r"(polyabayes\.Corpus.*?\))(; (of floats|if its).*)?$", str(caught.value))[
            1
        ]
        names = {**sys.modules, "polyabayes": pb}
        assert eval(call, names).counts.toarray().tolist() == expected
