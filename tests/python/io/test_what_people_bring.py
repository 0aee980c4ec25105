"""What people bring, by files, data frames and commands: the right number, or the remedy.

Each case is the smallest input of a kind that packages and their users met with. What has a test in
its own room is not told again here.
"""

import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import polyabayes as pb
from helpers.command_line import assert_one_error_line, run, table
from polyabayes.exceptions import (
    DataWarning,
    FileFormatError,
    InvalidArgumentError,
    InvalidTypeError,
)

EDGES = [("a", "b"), ("b", "c"), ("a", "c"), ("a", "b")]
CHAINS = [("a", "b", "b"), ("a", "c", "b"), ("c", "c", "a")]
HAIR = "hair,eye,Freq\nb,x,30\nb,y,5\nr,x,4\nr,y,20\n"
BANNER = "%%MatrixMarket matrix coordinate integer general\n3 2 3\n1 1 4\n3 2 5\n2 2 1\n"
BOM = "\ufeff"


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(name, content):
    Path(name).write_bytes(content.encode())
    return name


def write_table(name, axes, rows):
    """A table of labels in a file of any format of tensors; modes of .tns hold the labels."""
    frame = pd.DataFrame(rows, columns=axes)
    if name.endswith(".parquet"):
        frame.to_parquet(name)
    elif name.endswith(".csv"):
        frame.to_csv(name, index=False)
    else:
        pb.write_tensor(pb.CountTensor.from_frame(frame), name)
    return name


@pytest.mark.parametrize("name", ["x.csv", "x.parquet", "x.tns", "x.npz"])
@pytest.mark.parametrize(
    ("graph", "axes", "rows", "options", "nats"),
    [
        (
            "i <- r -> j",
            ["i", "j"],
            EDGES,
            ["--tied", "i,j", "--size", "r=2", "--prior", "bdeu-tokens"],
            "-8.971220",
        ),
        (
            "z1 -> z2 -> z3; z1 -> x1; z2 -> x2; z3 -> x3",
            ["x1", "x2", "x3"],
            CHAINS,
            ["--tied", "x1,x2,x3", "--tied", "z2,z3", "--prior", "flat"]
            + [option for z in ("z1", "z2", "z3") for option in ("--size", f"{z}=2")],
            "-9.077000",
        ),
    ],
    ids=["edges", "chain"],
)
def test_tied_axes_are_matched_by_label(capsys, name, graph, axes, rows, options, nats):
    path = write_table(name, axes, rows)
    assert run("evidence", graph, path, "--given-total", *options) == 0
    assert f"{nats} nats" in capsys.readouterr().out


def test_a_shared_table_is_written_once_for_all_its_nodes(here):
    path = write_table("x.csv", ["i", "j"], EDGES)
    options = ["--tied", "i,j", "--size", "r=2", "-o", "tables", "--seed", "0"]
    assert run("decompose", "i <- r -> j", path, *options) == 0
    own = {
        node: [
            (row[node], row["r"], row["probability"]) for row in table(here / f"tables/{node}.csv")
        ]
        for node in ("i", "j")
    }
    assert own["i"] == own["j"]
    assert {row[0] for row in own["i"]} == {"a", "b", "c"}


@pytest.mark.parametrize("header", ["Freq", "n", "Count", "value", "FREQ"])
@pytest.mark.parametrize("name", ["x.csv", "x.parquet"])
def test_counts_by_any_name_are_counts_of_a_table_of_factors(capsys, name, header):
    frame = pd.DataFrame({"hair": list("bbrr"), "eye": list("xyxy"), header: [30, 5, 4, 20]})
    frame.to_csv(name, index=False) if name == "x.csv" else frame.to_parquet(name)
    assert run("evidence", "hair -> eye", name, "--given-total", "--axes", "hair,eye") == 0
    assert "-12.247340 nats" in capsys.readouterr().out


def test_a_column_that_may_be_counts_is_named_on_the_command_line(capsys):
    path = write("x.csv", HAIR.replace("Freq", "people"))
    assert run("evidence", "hair -> eye", path, "--given-total", "--axes", "hair,eye") == 0
    assert "column 'people' is left out" in capsys.readouterr().err


CORPORA = {
    "numbered": ("x.csv", "doc_id,apple,pear\n1001,2,0\n1002,0,3\n", [], 2, 5),
    "zero-padded": ("x.csv", "sample,a,b\n001,1,2\n002,0,3\n", [], 2, 6),
    "named": ("x.csv", "case,a,b\n1001,1,2\n1002,0,3\n", ["--ids", "case"], 2, 6),
    "triplets": ("x.csv", "UserId,ItemId,Count\n7,30,2\n7,31,5\n9,30,4\n", [], 2, 11),
    "a label": ("x.csv", "text,stars\ngood cat food,5\nbad dog food,1\n", [], 5, 6),
    "year first": ("x.csv", "year,id,review\n2020,a,good cat food\n2021,b,bad dog\n", [], 5, 5),
    "a year": ("x.csv", "id,text\na,2020\nb,good food\n", [], 3, 3),
    "tidy": ("x.csv", "document,term,count\na,urn,2\nb,ball,3\n", [], 2, 5),
    "json": (
        "x.jsonl",
        '{"text": "good cat", "stars": 5}\n{"text": "dog", "stars": 1}\n',
        [],
        3,
        3,
    ),
    "genes": ("x.tsv", "gene\tc1\tc2\nA\t10\t2\nB\t5\t7\n", ["--transpose"], 2, 24),
    "semicolons": ("x.csv", "gene;c1;c2\nA;10;2\nB;5;7\n", ["--transpose"], 2, 24),
    "matrix.mm": ("x.mm", BANNER, ["--transpose"], 3, 10),
    "a mark first": ("x.csv", f"{BOM}cat,dog\n1,2\n", [], 2, 3),
    "old ends of lines": ("x.csv", "a,b\r1,2\r0,4\r", [], 2, 7),
    "mallet": ("x.mallet", "d1 lab cat dog\u2028dog\nd2 lab urn\n", [], 3, 4),
}


@pytest.mark.parametrize("case", CORPORA)
def test_corpora_are_read_right_by_commands(case):
    name, content, options, n_words, n_tokens = CORPORA[case]
    assert run("convert", write(name, content), "-o", "corpus.npz", *options) == 0
    corpus = pb.read_corpus("corpus.npz")
    assert (corpus.n_words, corpus.n_tokens) == (n_words, n_tokens)
    words = corpus.vocabulary if name != "x.mm" else []
    assert not any(word.startswith(BOM) for word in words)


REFUSED = {
    "catalogue as text": ("x.txt", "Type\tS1\tS2\nA[C>A]A\t5\t7\n" * 2, [], "--format csv"),
    "bare triplets": ("x.csv", "1,6,2\n1,7,5\n3,6,4\n", [], "--columns document,word,count"),
    "two texts": ("x.csv", "a,b\nthe urn,a ball\nan urn,the ball\n", [], "name one by --text"),
    "one word": ("x.csv", "who,n_urns\nann,5\nbob,1\n", [], "--text who .* or by --ids who"),
    "no column": ("x.csv", "id,text\na,urn\n", ["--text", "body"], "no column 'body'"),
    "missing texts": ("x.csv", "id,text\na,urn\nb,\n", [], "line 3: .*--on-empty drop"),
    "transposed": ("x.mtx", BANNER, ["--vocabulary", "w.vocab"], "other axis.*--transpose"),
    "latin-1": ("x.txt", "caf\udce9\n", [], "--encoding latin-1"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_corpora_that_may_be_two_things_are_refused_by_commands(here, capsys, case):
    name, content, options, says = REFUSED[case]
    write("w.vocab", f"{BOM}a\r\nb\r\nc\r\n")
    (here / name).write_bytes(content.encode("utf-8", "surrogateescape"))
    status = run("convert", name, "-o", "corpus.npz", *options)
    assert_one_error_line(status, capsys.readouterr().err, says)


@pytest.mark.parametrize("features", ["features.tsv", "genes.tsv"])
def test_folders_of_10x_are_cells_of_genes(here, capsys, features):
    (here / "cells").mkdir()
    write("cells/matrix.mtx", BANNER)
    write(f"cells/{features}", "G1\tTBCE\tGene\nG2\tACT\tGene\nG3\tTBCE\tGene\n")
    write("cells/barcodes.tsv", "AAC-1\nAAG-1\n")
    assert run("convert", "cells", "-o", "cells.npz", "--word", "name") == 0
    assert "got a number" in capsys.readouterr().err
    corpus = pb.read_corpus("cells.npz")
    assert corpus.vocabulary.tolist() == ["TBCE", "ACT", "TBCE-1"]
    assert (corpus.ids.tolist(), corpus.n_tokens) == (["AAC-1", "AAG-1"], 10)


def test_folders_of_texts_are_all_texts_and_nothing_else(here):
    names = ["a.txt", "B.TXT", ".hidden.txt", "._a.txt", ".ipynb_checkpoints/a-checkpoint.txt"]
    (here / "texts/.ipynb_checkpoints").mkdir(parents=True)
    for name in names:
        (here / "texts" / name).write_bytes(b"\x00\xff" if name == "._a.txt" else b"urn ball")
    assert run("convert", "texts", "-o", "x.npz") == 0
    assert pb.read_corpus("x.npz").ids.tolist() == ["B.TXT", "a.txt"]


def test_vocabularies_have_no_mark_and_any_encoding(here):
    write("x.ldac", "2 0:1 1:2\n")
    write("x.vocab", f"{BOM}cat\r\ndog\r\n")
    assert run("convert", "x.ldac", "-o", "x.npz", "--vocabulary", "x.vocab") == 0
    assert pb.read_corpus("x.npz").vocabulary.tolist() == ["cat", "dog"]
    (here / "l.vocab").write_bytes("caf\xe9\nth\xe9\n".encode("latin-1"))
    options = ["--vocabulary", "l.vocab", "--encoding", "latin-1"]
    assert run("convert", "x.ldac", "-o", "l.npz", *options) == 0
    assert pb.read_corpus("l.npz").vocabulary.tolist() == ["caf\xe9", "th\xe9"]


def test_shards_of_wide_tables_and_of_texts_say_what_they_read():
    frame = pd.DataFrame({"doc_id": [1001, 1002], "apple": [2, 0], "pear": [0, 3]})
    assert pb.write_shards(frame, "frame").n_tokens == 5
    frame.to_parquet("wide.parquet")
    with pytest.raises(FileFormatError, match=r"no column 'count'.*read_corpus"):
        pb.write_shards("wide.parquet", "shards")
    assert pb.write_shards(pb.read_corpus("wide.parquet"), "read").n_tokens == 5
    long = pd.DataFrame({"u": [7, 7, 9], "i": [30, 31, 30], "c": [2, 5, 4]})
    with pytest.warns(DataWarning, match="look like a document, a word and a count"):
        pb.write_shards(long, "long")
    named = pb.Corpus.from_table(long, document="u", word="i", count="c")
    assert pb.write_shards(named, "named").n_tokens == 11


def test_adapters_take_labels_and_refuse_what_is_missing():
    polars = pytest.importorskip("polars")
    frame = pd.DataFrame({"hair colour": list("bbrr"), "Eye.x": list("xyxy"), "n": [30, 5, 4, 20]})
    model = pb.AllocationModel("hair_colour -> Eye_x")
    for data in (frame, polars.from_pandas(frame)):
        tensor = pb.CountTensor.from_frame(data, ["hair colour", "Eye.x"])
        value = model.log_evidence(tensor, given_total=True).value
        assert value == pytest.approx(-12.247340, abs=5e-7)
    square = pd.DataFrame([[30, 5], [4, 20]], ["b", "r"], ["x", "y"])
    labels = pb.CountTensor.from_dense(square, ["hair", "eye"]).labels
    assert [names.tolist() for names in labels] == [["b", "r"], ["x", "y"]]
    with pytest.raises(InvalidArgumentError, match="no document in column 'text' at row 1"):
        pb.Corpus(pd.DataFrame({"text": ["cat", None]}))
    with pytest.raises(InvalidTypeError, match="document 1 is None"):
        pb.Corpus(["cat", None])


@pytest.mark.parametrize("documents", [[[], [(0, 2), (3, 1)]], [[0] * 4, [2, 0, 0, 1]]])
def test_bags_small_vocabularies_and_empty_folds_are_no_walls(documents):
    phi = [[0.4, 0.3, 0.2, 0.1], [0.1, 0.2, 0.3, 0.4]]
    make = pb.LatentDirichletAllocation.from_parameters
    lda = make(doc_topic_prior=0.1, topic_word=phi, vocabulary=list("abcd"), random_state=0)
    corpus = pb.Corpus(documents, list("abcd"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        values = pb.log_likelihood(lda, documents).values
        assert values[0] == 0.0
        np.testing.assert_array_equal(values, pb.log_likelihood(lda, corpus).values)
        found, expected = (
            pb.completion_perplexity(lda, X, random_state=0) for X in (documents, corpus)
        )
        assert found.value == expected.value
        assert len(pb.topics.diagnostics(lda, documents).words[0]) == 4
        assert len(pb.topics.coherence([["a", "b"], ["c", "d"]], corpus)) == 2
        model = pb.LatentDirichletAllocation(max_iter=4, random_state=0)
        many = pb.Corpus([[0, 0], [2, 1], [0, 0], [1, 2], [3, 3], [0, 0]])
        # Three documents have tokens: so many folds, each of which has one.
        choice = pb.choose_n_components(model, many, [1, 2], random_state=0)
        assert np.isfinite(choice.to_frame()["score"]).all()


NAMES = ["x", "y", "z"]
NAMED = pb.Corpus([[2, 0], [1, 1], [0, 3]], ids=NAMES)
TOPICS = [[0.7, 0.3], [0.2, 0.8]]
OWN = pd.DataFrame([[1.0, 0.1], [1.0, 0.5], [1.0, 0.9]], index=NAMES)
LDA = pb.LatentDirichletAllocation.from_parameters(doc_topic_prior=1.0, topic_word=TOPICS)
PFA = pb.PoissonFactorAnalysis.from_parameters(topic_word=TOPICS, shape=1.0, probability=0.5)
DMR = pb.DocumentModel.dirichlet(TOPICS, coefficients=[[0.0, 1.5], [0.0, -1.5]])


def fitted_by_covariates(rows):
    model = pb.LatentDirichletAllocation(2, max_iter=3, random_state=0)
    corpus = pb.Corpus(np.eye(9, 5, dtype=int) + 1, ids=[f"d{n}" for n in range(9)])
    column = pd.DataFrame({"age": np.arange(9.0) ** 2})
    index = corpus.ids if rows.index[0] == "x" else corpus.ids[::-1]
    return model.fit(corpus, covariates=column.set_axis(index)).coefficients_


@pytest.mark.parametrize(
    "call",
    [
        lambda rows: pb.log_likelihood(DMR, NAMED, covariates=rows).values,
        lambda rows: pb.log_likelihood(LDA, NAMED, doc_topic_prior=rows).values,
        lambda rows: pb.log_likelihood(PFA, NAMED, shape=rows).values,
        lambda rows: pb.log_likelihood(PFA, NAMED, exposure=rows[1]).values,
        lambda rows: pb.Corpus(NAMED.counts, ids=NAMES, exposure=rows[1]).exposure,
        lambda rows: pb.Corpus(NAMED.counts, ids=NAMES, metadata=rows).metadata["1"],
        lambda rows: NAMED.with_metadata(rows).metadata["1"],
        lambda rows: NAMED.split(1, 0, groups=rows[1])[1].ids == "x",
        fitted_by_covariates,
    ],
)
def test_rows_of_pandas_that_name_the_documents_in_another_order_are_refused(call):
    expected = call(OWN)
    with pytest.raises(InvalidArgumentError, match="matched by place"):
        call(OWN[::-1])
    if call is not fitted_by_covariates:
        # Other names, and mere numbers, have nothing to say about the order.
        np.testing.assert_array_equal(call(OWN.set_axis(["a", "b", "c"])), expected)
        np.testing.assert_array_equal(call(OWN.reset_index(drop=True)), expected)


def test_weights_and_covariates_of_rows_in_another_order_are_refused():
    answers = pd.DataFrame({"q1": list("yynn") * 3, "q2": list("ynyn") * 3, "q3": list("yynn") * 3})
    ages = pd.DataFrame({"age": np.arange(12.0)})
    by_age = pb.LatentClassAnalysis(2, random_state=0).fit(answers, covariates=ages)
    for call in (
        lambda: pb.LatentClassAnalysis(2, method="em").fit(answers, weights=ages["age"][::-1]),
        lambda: pb.LatentClassAnalysis(2, random_state=0).fit(answers, covariates=ages[::-1]),
        lambda: by_age.predict_proba(answers, covariates=ages[::-1]),
    ):
        with pytest.raises(InvalidArgumentError, match="matched by place"):
            call()


def test_a_first_column_of_numeric_categories_is_not_dropped_as_names():
    frame = pd.DataFrame({"urn": [3, 1], "ball": [0, 2]})
    with pytest.raises(InvalidArgumentError, match="ids='urn'"):
        pb.Corpus(frame.astype("category"))
    named = frame.astype({"urn": "category"})
    assert pb.Corpus.from_table(named, ids="urn").ids.tolist() == ["3", "1"]


def test_ids_beyond_the_dictionary_are_refused():
    with pytest.raises(InvalidArgumentError, match="id 9, but the largest id of the dict"):
        pb.Corpus.from_gensim([[(0, 1)], [(9, 1)]], {0: "urn", 1: "ball"})


def test_a_header_that_names_the_ids_is_not_shifted_by_a_further_field():
    write("x.csv", "id,urn,ball\nd1,3,0,5\n")
    with pytest.raises(FileFormatError, match="4 fields, more than the 3"):
        pb.read_corpus("x.csv")
    write("x.csv", "id,review\n1,good, nice urn\n2,bad, old ball\n")
    with pytest.raises(FileFormatError, match="3 fields, more than the 2"):
        pb.read_corpus("x.csv")


def test_metadata_that_name_the_documents_in_another_order_do_not_describe_others():
    write("x.csv", "id,urn,ball\nd1,3,0\nd2,0,5\n")
    write("meta.csv", "id,year\nd2,1999\nd1,2024\n")
    with pytest.raises(InvalidArgumentError, match="another order than their ids, 'd2' first"):
        pb.read_corpus("x.csv").with_metadata(pd.read_csv("meta.csv"))
    write("same.csv", "id,year\nd1,2024\nd2,1999\n")
    corpus = pb.read_corpus("x.csv").with_metadata(pd.read_csv("same.csv"))
    assert corpus["d1"].metadata["year"].tolist() == [2024]
    parts = ["--test-size", "1", "--train", "a.npz", "--test", "b.npz", "--seed", "0"]
    assert run("split", "x.csv", "--metadata", "same.csv", *parts) == 0
    assert run("split", "x.csv", "--metadata", "meta.csv", *parts) == 0
    years = pd.concat([pb.read_corpus(part).metadata["year"] for part in ("a.npz", "b.npz")])
    assert years.to_dict() == {"d1": 2024, "d2": 1999}
