"""Tables, texts and columns by name on the command line."""

import pytest

import polyabayes as pb
from helpers.command_line import assert_one_error_line, run
from polyabayes.cli import signatures, values

REVIEWS = "id,review,stars\na,good cat food,5\nb,bad dog food,1\n"
CATALOGUE = "gene;S1;S2\nA;10;2\nB;5;7\n"
MATRIX = "%%MatrixMarket matrix coordinate integer general\n3 2 3\n1 1 4\n3 2 5\n2 2 1\n"
TRIPLETS = "1 1 2\n1 2 3\n2 2 1\n"


@pytest.mark.parametrize(
    ("name", "content", "options", "shape", "n_tokens"),
    [
        ("x.csv", REVIEWS, ["--text", "review", "--stop-words", "good,bad"], (2, 3), 4),
        ("x.txt", CATALOGUE, ["--sep", ";", "--transpose"], (2, 2), 24),
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
        ("x.csv", REVIEWS, ["--text", "nope"], "--text nope: .* it has 'id', 'review', 'stars'"),
        ("x.csv", REVIEWS, ["--ids", "nope"], "--ids nope: .* no column 'nope'"),
        ("x.csv", REVIEWS, ["--text", "review", "--min-df", "3"], "the words cannot be counted"),
        ("x.ldac", "1 0:2\n", ["--sep", ";"], "the format ldac: .*sep"),
        ("x.csv", "1,6,2\n1,7,5\n3,6,4\n", [], "--columns document,word,count"),
        ("x.csv", "a,b\nthe urn,a ball\nan urn,the ball\n", [], "name one by --text"),
        ("x.csv", "who,n_urns\nann,5\nbob,1\n", [], "--text who .* or by --ids who"),
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
    assert "--document u, --word i and --count c; if not, --layout wide" in (
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
    found = values.how_to_read(signatures.documented("read_corpus").parameters["max_df"])
    read = found["type"](text)
    assert (read, type(read)) == (value, type(value))
