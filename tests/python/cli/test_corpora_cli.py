"""Documents and tables on the command line: the remedy of what cannot be read is an option."""

import pytest

import polyabayes as pb
from helpers.command_line import assert_one_error_line, run
from helpers.small_models import known_lda

TEXTS = "id,review,stars\na,good cat food,5\nb,bad dog food,1\n"
CATALOGUE = "gene;S1;S2\nA;10;2\nB;5;7\n"
TRIPLETS = "1 1 2\n1 2 3\n2 2 1\n"


@pytest.fixture
def fitted(write, tmp_path):
    """The model of a file, by one sweep."""

    def fit(name, content, *options):
        path, model = write(name, content.encode("latin-1")), tmp_path / "m.safetensors"
        status = run("fit", "lda", path, "-k", 1, "--max-iter", 2, "-o", model, *options)
        return status, pb.read_model(model) if model.exists() else None

    return fit


@pytest.mark.parametrize(
    ("name", "content", "options", "words"),
    [
        ("x.csv", TEXTS, ["--text", "review", "--stop-words", "good,bad"], ["cat", "dog", "food"]),
        (
            *("x.csv", TEXTS, ["--text", "review", "--read-option", "ngram_range=2,2"]),
            ["bad dog", "cat food", "dog food", "good cat"],
        ),
        ("x.txt", CATALOGUE, ["--format", "csv", "--transpose", "--ids", "gene"], ["A", "B"]),
        ("x.txt", TRIPLETS, ["--format", "csv", "--columns", "document,word,count"], ["1", "2"]),
        ("x.csv", "id,text\na,café\nb,thé\n", ["--encoding", "latin-1"], ["café", "thé"]),
        ("x.csv", "x,a,b\n1001,1,2\n1002,0,3\n", ["--ids", "x"], ["a", "b"]),
    ],
)
def test_columns_are_named(fitted, name, content, options, words):
    status, model = fitted(name, content, *options)
    assert status == 0
    assert model.vocabulary_.tolist() == words


def test_triplets_with_unknown_headers_are_a_warning(fitted, capsys):
    assert fitted("x.csv", "u,i,c\n7,30,2\n7,31,5\n9,30,4\n")[0] == 0
    told = "--document u --word i --count c; if not, --read-option layout=wide"
    assert told in capsys.readouterr().err


def test_rows_of_metadata_are_matched_by_a_column_of_names(tmp_path, capsys):
    corpus, table, output = (tmp_path / name for name in ("in.npz", "meta.csv", "by.csv"))
    documents = pb.Corpus([[2], [1], [3]], ["urn"], ["b", "1", "c"])
    pb.write_corpus(documents, corpus)
    lda = known_lda(1.0, [[1.0]], vocabulary=["urn"])
    lda.save(tmp_path / "m.safetensors")
    command = ["topics", tmp_path / "m.safetensors", corpus, "--metadata", table, "-o", output]
    table.write_text("size,name\n3,c\n9,a\n1,1\n2,b\n")
    assert run(*command, "--by", "size") == 0
    assert (tmp_path / "by.csv").exists()
    capsys.readouterr()
    table.write_text("name,other\nc,1\nb,c\n1,b\n")
    status = run(*command, "--by", "other")
    assert_one_error_line(status, capsys.readouterr().err, "both hold the names")


@pytest.mark.parametrize(
    ("header", "options"), [("Freq", []), ("n", []), ("zahl", ["--counts", "zahl"])]
)
def test_counts_of_a_table_of_factors(write, capsys, header, options):
    path = write("x.csv", f"hair,eye,{header}\nb,x,30\nb,y,5\nr,x,4\nr,y,20\n")
    axes = ["--axes", "hair,eye"]
    assert run("evidence", "hair -> eye", path, "--given-total", *axes, *options) == 0
    assert "-12.247340 nats" in capsys.readouterr().out
