"""Corpora on the command line: raw tables become clean corpora, duplicates are found."""

import numpy as np
import pytest

import polyabayes as pb
from helpers.command_line import assert_one_error_line, run
from polyabayes import exceptions as errors
from polyabayes.cli import signatures, values

REVIEWS = """id,review,stars
a,The cat likes good cat food,5
b,,1
c,A dog likes bad dog food,2
d,The cat likes good cat food,4
d,home,3
"""


@pytest.fixture
def reviews(tmp_path):
    path = tmp_path / "reviews.csv"
    path.write_text(REVIEWS)
    return path


def test_a_table_of_texts_becomes_a_clean_corpus(reviews, tmp_path, capsys):
    clean = tmp_path / "clean.npz"
    reviews.write_text(REVIEWS.replace("d,home", "e,home"))
    reading = ["--text", "review", "--ids", "id", "--stop-words", "english"]
    convert = ["convert", reviews, "-o", clean, *reading]
    assert_one_error_line(run(*convert), capsys.readouterr().err, "line 3.*--on-empty drop")
    options = ["--on-empty", "drop", "--drop-duplicates", "words", "--min-tokens", "2"]
    with_pairs = ["--read-option", "ngram_range=1,2"]
    assert run(*convert, *options, *with_pairs) == 0
    assert "left out 1 document equal to an earlier one" in capsys.readouterr().err
    found = pb.read_corpus(clean)
    assert found.ids.tolist() == ["a", "c"]
    assert found.metadata["stars"].tolist() == [5, 2]
    assert {"cat", "good cat"} <= set(found.vocabulary)
    with pytest.warns(errors.DataWarning, match="1 document without words dropped, at line 3"):
        expected = pb.read_corpus(
            reviews,
            text="review",
            ids="id",
            stop_words="english",
            on_empty="drop",
            ngram_range=(1, 2),
        ).filter(min_tokens=2)
    expected = expected[~expected.duplicated()]
    np.testing.assert_array_equal(found.counts.toarray(), expected.counts.toarray())


def test_documents_of_the_training_are_left_out_of_others(reviews, tmp_path, capsys):
    train, test = tmp_path / "train.npz", tmp_path / "test.npz"
    reading = ["--text", "review", "--ids", "id", "--on-empty", "keep"]
    words = ["cat", "food", "good", "likes", "the"]
    pb.write_corpus(pb.Corpus([[2, 1, 1, 1, 1]], words, ["z"]), train)
    assert run("convert", reviews, "-o", test, *reading, "--not-in", train) == 0
    assert "left out 2 documents also in" in capsys.readouterr().err
    assert pb.read_corpus(test).ids.tolist() == ["b", "c", "d"]
    by_id = ["--drop-duplicates", "ids"]
    assert run("convert", reviews, "-o", test, *reading, *by_id) == 0
    assert pb.read_corpus(test).ids.tolist() == ["a", "b", "c", "d"]
    bad = run("convert", reviews, "-o", test, *reading, "--drop-duplicates", "texts")
    error = capsys.readouterr().err.splitlines()[-1]
    assert_one_error_line(bad, error, "--drop-duplicates must be one of 'words', 'ids'")


def test_a_split_tells_of_documents_in_both_parts(reviews, tmp_path, capsys):
    parts = ["--train", tmp_path / "a.npz", "--test", tmp_path / "b.npz", "--seed", "0"]
    table = tmp_path / "meta.csv"
    table.write_text("part\nx\nx\nx\ny\ny\n")
    options = ["--text", "review", "--on-empty", "keep", "--metadata", table, "--groups", "part"]
    assert run("split", reviews, *parts, *options, "--test-size", "2") == 0
    assert "1 document of" in capsys.readouterr().err
    assert pb.read_corpus(tmp_path / "b.npz").metadata["part"].tolist() == ["x", "x", "x"]


def test_rows_of_metadata_are_matched_by_a_column_of_names(tmp_path, capsys):
    corpus, table, output = (tmp_path / name for name in ("in.npz", "meta.csv", "out.npz"))
    pb.write_corpus(pb.Corpus([[2], [1], [3]], ["urn"], ["b", "1", "c"]), corpus)
    reading = ["convert", corpus, "-o", output, "--metadata", table]
    table.write_text("size,name\n3,c\n9,a\n1,1\n2,b\n")
    assert run(*reading) == 0
    assert pb.read_corpus(output).metadata["size"].tolist() == [2, 1, 3]
    table.write_text("size\n2\n1\n3\n")
    assert run(*reading) == 0
    assert pb.read_corpus(output).metadata["size"].tolist() == [2, 1, 3]
    table.write_text("name,other\nc,1\nb,c\n1,b\n")
    assert_one_error_line(
        run(*reading), capsys.readouterr().err.splitlines()[-1], "both hold the names"
    )


def test_a_document_without_words_does_not_shift_the_metadata_of_others(tmp_path, capsys):
    corpus, table, output = (tmp_path / name for name in ("in.csv", "meta.csv", "out.npz"))
    names = [f"d{number:02}" for number in range(40)]
    lines = "".join(f"{name},urn,1\n" for name in names if name != "d08")
    corpus.write_text(f"document,word,count\n{lines}")
    reading = ["convert", corpus, "-o", output, "--metadata", table]
    table.write_text("doc_id,number\n" + "".join(f"{name},{int(name[1:])}\n" for name in names))
    assert run(*reading) == 0
    found = pb.read_corpus(output)
    assert found.metadata["number"].tolist() == [int(name[1:]) for name in found.ids]
    table.write_text(table.read_text().replace("d39", "d40"))
    capsys.readouterr()
    assert_one_error_line(run(*reading), capsys.readouterr().err, "no row for 'd39'")


TEXTS = "id,review,stars\na,good cat food,5\nb,bad dog food,1\n"
CATALOGUE = "gene;S1;S2\nA;10;2\nB;5;7\n"
MATRIX = "%%MatrixMarket matrix coordinate integer general\n3 2 3\n1 1 4\n3 2 5\n2 2 1\n"
TRIPLETS = "1 1 2\n1 2 3\n2 2 1\n"


@pytest.mark.parametrize(
    ("name", "content", "options", "shape", "n_tokens"),
    [
        ("x.csv", TEXTS, ["--text", "review", "--stop-words", "good,bad"], (2, 3), 4),
        ("x.txt", CATALOGUE, ["--sep", ";", "--transpose", "--ids", "gene"], (2, 2), 24),
        ("x.txt", CATALOGUE, ["--format", "csv", "--transpose", "--ids", "gene"], (2, 2), 24),
        ("x.txt", TRIPLETS, ["--format", "csv", "--columns", "document,word,count"], (2, 2), 6),
        (
            "x.csv",
            "u,i,x\n1,7,5\n2,7,6\n",
            ["--document", "u", "--word", "i", "--count", "x"],
            (2, 1),
            11,
        ),
        ("x.csv", "x,a,b\n1001,1,2\n1002,0,3\n", ["--ids", "x"], (2, 2), 6),
    ],
)
def test_columns_are_named(write, tmp_path, name, content, options, shape, n_tokens):
    train, test = tmp_path / "train.npz", tmp_path / "test.npz"
    status = run("split", write(name, content), "--train", train, "--test", test, *options,
                 "--test-size", 1, "--seed", 0)  # fmt: skip
    parts = pb.read_corpus(train), pb.read_corpus(test)
    assert status == 0
    assert (sum(part.n_documents for part in parts), parts[0].n_words) == shape
    assert sum(part.n_tokens for part in parts) == n_tokens


def test_encodings_and_metadata(write, tmp_path):
    text = "id,text,year\na,café noir,1\nb,thé vert,2\nc,thé noir,2\n"
    path = write("x.csv", text.encode("latin-1"))
    parts = [tmp_path / "train.npz", tmp_path / "test.npz"]
    out = ["--train", parts[0], "--test", parts[1], "--groups", "year", "--test-size", 1]
    assert run("split", path, *out, "--encoding", "latin-1", "--seed", 1) == 0
    both = [pb.read_corpus(part) for part in parts]
    assert "café" in both[0].vocabulary
    years = [set(part.metadata["year"]) for part in both]
    assert not years[0] & years[1]
    assert sorted(name for part in both for name in part.ids) == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("name", "content", "options", "says"),
    [
        ("x.txt", CATALOGUE, [], "looks like a table of 3 columns.*--format csv"),
        ("x.txt", TRIPLETS, [], "--format csv, --columns document,word,count"),
        ("x.txt", "café\n", [], "not valid utf-8; try --encoding latin-1"),
        ("x.csv", TEXTS, ["--text", "nope"], "--text nope: .* it has 'id', 'review', 'stars'"),
        ("x.csv", TEXTS, ["--ids", "nope"], "--ids nope: .* no column 'nope'"),
        ("x.csv", TEXTS, ["--text", "review", "--min-df", "3"], "the words cannot be counted"),
        ("x.ldac", "1 0:2\n", ["--sep", ";"], "the format ldac: .*sep"),
        ("x.csv", "1,6,2\n1,7,5\n3,6,4\n", [], "--columns document,word,count"),
        ("x.csv", "a,b\nthe urn,a ball\nan urn,the ball\n", [], "--text a, .*--metadata-columns b"),
        ("x.csv", "who,n_urns\nann,5\nbob,1\n", [], "--text who, .* --ids who"),
        ("x.mtx", MATRIX, ["--vocabulary", "w.vocab"], "other axis.*--transpose"),
    ],
)
def test_the_remedy_is_an_option(
    write, tmp_path, monkeypatch, capsys, name, content, options, says
):
    monkeypatch.chdir(tmp_path)
    write("w.vocab", "a\nb\nc\n")
    path = write(name, content.encode("latin-1"))
    parts = ["--train", tmp_path / "a.npz", "--test", tmp_path / "b.npz"]
    status = run("split", path, *parts, "--test-size", 1, *options)
    assert_one_error_line(status, capsys.readouterr().err, says)


def test_triplets_with_unknown_headers_are_a_warning(write, tmp_path, capsys):
    path = write("x.csv", "u,i,c\n7,30,2\n7,31,5\n9,30,4\n")
    assert run("convert", path, "-o", tmp_path / "x.npz") == 0
    assert "--document u, --word i and --count c; if not, --read-option layout=wide" in (
        capsys.readouterr().err
    )


@pytest.mark.parametrize(
    ("header", "options"), [("Freq", []), ("n", []), ("zahl", ["--counts", "zahl"])]
)
def test_counts_of_a_table_of_factors(write, capsys, header, options):
    path = write("x.csv", f"hair,eye,{header}\nb,x,30\nb,y,5\nr,x,4\nr,y,20\n")
    axes = ["--axes", "hair,eye"]
    assert run("evidence", "hair -> eye", path, "--given-total", *axes, *options) == 0
    assert "-12.247340 nats" in capsys.readouterr().out


@pytest.mark.parametrize(("text", "value"), [("2", 2), ("0.5", 0.5), ("1.0", 1.0)])
def test_numbers_of_documents_are_whole_and_shares_are_not(text, value):
    found = values.how_to_read(signatures.documented("Corpus.from_documents").parameters["max_df"])
    read = found["type"](text)
    assert (read, type(read)) == (value, type(value))
