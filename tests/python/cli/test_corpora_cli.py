"""Corpora on the command line: raw tables become clean corpora, duplicates are found."""

import numpy as np
import pytest

import polyabayes as pb
from helpers.command_line import assert_one_error_line, run
from polyabayes import exceptions as errors

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
    assert "matched with documents by column 'name'" in capsys.readouterr().err
    assert pb.read_corpus(output).metadata["size"].tolist() == [2, 1, 3]
    table.write_text("size\n2\n1\n3\n")
    assert run(*reading) == 0
    assert pb.read_corpus(output).metadata["size"].tolist() == [2, 1, 3]
    table.write_text("name,other\nc,1\nb,c\n1,b\n")
    assert_one_error_line(run(*reading), capsys.readouterr().err.splitlines()[-1], "both have")
