"""Tables that people bring, as files and as data frames: one rule, and the right numbers."""

import io
import json
import warnings

import numpy as np
import pandas as pd
import polars
import pytest

import polyabayes as pb
from polyabayes.exceptions import DataWarning

DOORS = ("csv", "tsv", "semicolon", "parquet", "jsonl", "pandas", "polars", "arrow", "shards")


def corpus_of(door, folder, content, **options):
    """The corpus of a table, which comes in by one of the doors."""
    frame = pd.read_csv(io.StringIO(content), keep_default_na=False)
    path = folder / f"x.{door}"
    if door == "csv":
        path.write_text(content)
    elif door == "tsv":
        frame.to_csv(path, sep="\t", index=False)
    elif door == "semicolon":
        path = folder / "x.csv"
        frame.to_csv(path, sep=";", index=False)
    elif door == "parquet":
        frame.to_parquet(path)
    elif door == "jsonl":
        frame.to_json(path, orient="records", lines=True)
    elif door == "pandas":
        return pb.Corpus(frame)
    elif door == "polars":
        return pb.Corpus(polars.from_pandas(frame))
    elif door == "arrow":
        return pb.Corpus(polars.from_pandas(frame).to_arrow())
    elif door == "shards":
        shards = pb.write_shards(frame, folder / "shards")
        return pb.Corpus(next(iter(shards.blocks(10))).counts, shards.vocabulary)
    return pb.read_corpus(path, **options)


COUNTS = {
    "numbered documents": ("doc_id,apple,pear\n1001,2,0\n1002,0,3\n", ["apple", "pear"], 5),
    "two names of rows": ("Unnamed: 0,doc_id,a,b\n1,x,1,2\n2,y,0,3\n", ["a", "b"], 6),
    "numeric words": ("doc,word,n\n7,30,2\n7,31,5\n9,30,4\n", ["30", "31"], 11),
    "words that are roles": ("doc_id,count,word,text,urn\na,1,0,2,0\nb,0,3,0,0\n", None, 6),
}


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize(("text", "words", "n_tokens"), COUNTS.values(), ids=COUNTS.keys())
def test_names_are_no_counts(tmp_path, door, text, words, n_tokens):
    corpus = corpus_of(door, tmp_path, text)
    words = ["count", "word", "text", "urn"] if words is None else words
    assert (corpus.vocabulary.tolist(), corpus.n_tokens) == (words, n_tokens)
    assert door == "shards" or corpus.ids is not None


CAT = ["bad", "cat", "dog", "food", "good"]
TEXTS = {
    "labels after": ("text,stars\ngood cat food,5\nbad dog food,1\n", CAT, 6),
    "much before": ("year,id,text\n2020,a,good cat food\n2021,b,bad dog food\n", CAT, 6),
    "a number first": ("id,text\na,2020\nb,good food\n", ["2020", "food", "good"], 3),
    "words alone": ("id,text\na,cat\nb,dog\n", ["cat", "dog"], 2),
}


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize(("text", "words", "n_tokens"), TEXTS.values(), ids=TEXTS.keys())
def test_texts_are_found(tmp_path, door, text, words, n_tokens):
    corpus = corpus_of(door, tmp_path, text)
    assert (corpus.vocabulary.tolist(), corpus.n_tokens) == (words, n_tokens)
    if door == "shards":
        return
    header = text.partition("\n")[0].split(",")
    assert (corpus.ids is not None) == ("id" in header)
    others = [name for name in header if name not in ("id", "text", "review")]
    found = [] if corpus.metadata is None else list(corpus.metadata.columns)
    assert found == others


def test_named_columns_of_counts(write):
    rows = "who,what,how_many,year\nann,urn,2,1999\nbob,urn,1,2024\nann,ball,3,1999\n"
    path = write("x.csv", rows)
    corpus = pb.read_corpus(path, document="who", word="what", count="how_many")
    assert (corpus.ids.tolist(), corpus.vocabulary.tolist()) == (["ann", "bob"], ["ball", "urn"])
    assert corpus.counts.toarray().tolist() == [[3, 2], [0, 1]]
    assert corpus.metadata["year"].tolist() == [1999, 2024]
    large = pb.read_corpus(write("v.csv", f"id,text,no\na,an urn,{2**60 + 1}\nb,a ball,7\n"))
    assert large.metadata["no"].tolist() == [2**60 + 1, 7]
    wide = write("z.csv", "no,year,urn,ball\n10,1999,1,2\n11,2024,0,3\n")
    corpus = pb.read_corpus(wide, ids="no", metadata=["year"])
    assert (corpus.n_tokens, corpus.metadata["year"].tolist()) == (6, [1999, 2024])
    with pytest.warns(DataWarning, match=r"left out: 'tf'.*differ between rows"):
        pb.read_corpus(write("w.csv", "document,word,count,tf\na,b,1,.5\na,c,2,.7\n"))


@pytest.mark.parametrize("read", ["frame", "file"])
def test_a_first_column_of_large_different_numbers_is_a_warning(write, read):
    for header in ("nut", "customer"):
        text = f"{header},apple,pear\n1001,2,0\n1002,0,3\n"
        frame = pd.read_csv(io.StringIO(text))
        with pytest.warns(DataWarning, match=f"like names.* ids='{header}'") as caught:
            corpus = pb.Corpus(frame) if read == "frame" else pb.read_corpus(write("x.csv", text))
        assert corpus.n_tokens == 2008
    assert caught[0].filename == __file__
    with warnings.catch_warnings(action="error"):
        assert pb.read_corpus(write("x.csv", text), layout="wide").n_tokens == 2008
        assert pb.read_corpus(write("x.csv", text), ids="customer").n_tokens == 5


@pytest.mark.parametrize("door", DOORS)
def test_triplets_with_unknown_headers_are_a_warning(tmp_path, door):
    text = "u,i,c\n7,30,2\n7,31,5\n9,30,4\n"
    columns = text.partition("\n")[0].split(",")
    named = dict(zip(("document", "word", "count"), columns, strict=True))
    says = ".*".join(f"{role}='{name}'" for role, name in named.items())
    with pytest.warns(DataWarning, match=f"look like a document.*{says}.*layout='wide'"):
        corpus_of(door, tmp_path, text)
    if door in ("pandas", "polars", "arrow", "shards"):
        return
    with warnings.catch_warnings(action="error"):
        corpus = corpus_of(door, tmp_path, text, **named)
        assert (corpus.vocabulary.tolist(), corpus.n_tokens) == (["30", "31"], 11)
        assert corpus_of(door, tmp_path, text, layout="wide").n_documents == 3


def test_matches_of_players_are_no_counts_but_may_be_words():
    table = pd.DataFrame({"Player": ["A", "B", "C"], "Apps": [12, 22, 17], "Goals": [0, 2, 1]})
    with pytest.warns(DataWarning, match=r"properties: 'Apps'; .* metadata=\['Apps'\]"):
        pb.Corpus.from_table(table, ids="Player")
    with warnings.catch_warnings(action="error"):
        books = table.rename(columns={"Player": "book"})
        assert pb.Corpus.from_table(books, ids="book").n_words == 2


def test_files_of_anndata(tmp_path):
    anndata = pytest.importorskip("anndata")
    cells = anndata.AnnData(np.array([[2.0, 0.0], [1.0, 3.0]]))
    cells.layers["twice"] = 2 * cells.X
    cells.obs["donor"] = ["a", "b"]
    cells.write_h5ad(tmp_path / "x.h5ad")
    corpus = pb.read_corpus(tmp_path / "x.h5ad")
    assert (corpus.n_tokens, corpus.metadata["donor"].tolist()) == (6, ["a", "b"])
    assert pb.read_corpus(tmp_path / "x.h5ad", layer="twice").n_tokens == 12


def test_tensors_of_two_axes_are_corpora(write):
    write(
        "x.modes.json", json.dumps({"modes": [{"name": "d", "size": 2}, {"name": "w", "size": 3}]})
    )
    assert pb.read_corpus(write("x.tns", "1 1 2\n2 3 1\n")).shape == (2, 3)


def test_a_byte_order_mark_is_no_letter(write):
    path = write("x.ldac", "2 0:1 1:2\n".encode("utf-8-sig"))
    words = write("x.vocab", "cat\r\ndog\r\n".encode("utf-8-sig"))
    corpus = pb.read_corpus(path, vocabulary=words)
    assert (corpus.vocabulary.tolist(), corpus.n_tokens) == (["cat", "dog"], 3)
    text = write("x.txt", "cat dog\n".encode("utf-8-sig"))
    assert pb.read_corpus(text, token_pattern=r"\S+").vocabulary.tolist() == ["cat", "dog"]


def test_other_encodings_and_ends_of_lines(write):
    words = write("x.vocab", "caf\xe9\nth\xe9\n".encode("latin-1"))
    path = write("x.ldac", "2 0:1 1:2\n")
    corpus = pb.read_corpus(path, vocabulary=words, encoding="cp1252")
    assert corpus.vocabulary.tolist() == ["café", "thé"]


@pytest.mark.parametrize(
    ("header", "options"),
    [("total", {"counts": "total"})]
    + [(header, {}) for header in ("count", "Count", "Freq", "_freq", "n", "value")],
)
@pytest.mark.parametrize("name", ["x.csv", "x.tsv", "x.parquet"])
def test_counts_by_another_name(tmp_path, name, header, options):
    frame = pd.DataFrame({"hair": list("bbrr"), "eye": list("xyxy"), header: [30, 5, 4, 20]})
    path = tmp_path / name
    if path.suffix == ".parquet":
        frame.to_parquet(path)
    else:
        frame.to_csv(path, index=False, sep="\t" if path.suffix == ".tsv" else ",")
    tensor = pb.read_tensor(path, ["hair", "eye"], **options)
    assert tensor.total == 59
    assert pb.CountTensor.from_frame(frame, ["hair", "eye"], **options) == tensor
    model = pb.AllocationModel("hair -> eye")
    evidence = model.log_evidence(tensor, given_total=True).value
    assert evidence == pytest.approx(-12.247340, abs=1e-6)
    assert options or pb.read_tensor(path) == pb.CountTensor.from_frame(frame) == tensor


def test_columns_may_have_names_that_a_graph_cannot(write):
    path = write("x.csv", "hair colour,Eye.x,n\nb,x,3\nb,y,5\n")
    for axes in (None, ["hair colour", "Eye.x"]):
        tensor = pb.read_tensor(path, axes)
        assert (tensor.axes, tensor.total) == (("hair_colour", "Eye_x"), 8)
    assert pb.read_tensor(path, "Eye.x").axes == ("Eye_x",)


def test_a_column_that_may_be_counts_is_not_left_out_in_silence(write):
    path = write("x.csv", "hair,eye,total\nb,x,30\nb,y,5\n")
    with pytest.warns(DataWarning, match=r"column 'total' is left out.* counts='total'"):
        assert pb.read_tensor(path, ["hair", "eye"]).total == 2
    people = pd.DataFrame({"id": range(40), "hair": [*"bbrr"] * 10, "eye": [*"xyxx"] * 10})
    for name, own in (("age", 30), ("year", 1990), ("kind", 7), ("born", 1950), ("children", 0)):
        table = people.assign(**{name: (people["id"] % 3) * (name != "kind") + own})
        assert pb.CountTensor.from_frame(table, ["hair", "eye"]).total == 40


def test_empty_and_missing_texts(write):
    content = "id,text\na,the urn\nb,\nc,the\nd,\n"
    path = write("x.csv", content)
    with pytest.warns(DataWarning, match=r"3 documents .* at line 3, line 4, line 5"):
        corpus = pb.read_corpus(path, on_empty="drop", stop_words=["the"])
    assert corpus.ids.tolist() == ["a"]


def test_numbers_of_metadata_may_be_missing_as_r_writes_them(tmp_path):
    (tmp_path / "days.csv").write_text('"id","day","text"\n"a",1,"red urn"\n"b",NA,"red ball"\n')
    days = pb.read_corpus(tmp_path / "days.csv").metadata["day"]
    np.testing.assert_array_equal(days, [1, np.nan])


@pytest.mark.parametrize("door", ["csv", "pandas"])
def test_metadata_that_only_one_row_of_a_document_has_are_kept(door, tmp_path):
    content = "document,word,count,shop,till,by\na,urn,1,N,1,\na,ball,2,,2,x\nb,urn,3,S,1,y\n"
    (tmp_path / "x.csv").write_text(content)
    source = tmp_path / "x.csv" if door == "csv" else pd.read_csv(tmp_path / "x.csv")
    read = pb.read_corpus if door == "csv" else pb.Corpus
    with pytest.warns(DataWarning, match="left out: 'till'"):
        assert read(source).metadata.to_dict("list") == {"shop": ["N", "S"], "by": ["x", "y"]}
