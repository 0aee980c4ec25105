"""The commands about topics."""

import io
import sys

import pandas as pd
import pytest

import polyabayes as pb
from helpers.command_line import run, table
from helpers.small_models import known_lda


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    path = tmp_path_factory.mktemp("corpus") / "corpus.npz"
    drawn = pb.datasets.make_lda_corpus(120, 40, 3, random_state=0).corpus
    words = [f"w{column}" for column in range(40)]
    pb.write_corpus(pb.Corpus(drawn.counts, words), path)
    return str(path)


def test_the_number_of_topics_is_chosen(corpus, tmp_path, capsys):
    sizes = tmp_path / "sizes.csv"
    options = ["--sizes", "1,3,8", "--folds", "2", "--max-iter", "40", "--seed", "0", "--jobs", "1"]
    assert run("choose", "lda", corpus, *options, "-o", sizes) == 0
    assert capsys.readouterr().out.startswith("best by held-out: 3")
    rows = table(sizes)
    assert [row["size"] for row in rows] == ["1", "3", "8"]


@pytest.fixture(scope="module")
def model(corpus, tmp_path_factory):
    path = str(tmp_path_factory.mktemp("model") / "lda.safetensors")
    lda = pb.LatentDirichletAllocation(3, max_iter=40, random_state=0)
    lda.fit(pb.read_corpus(corpus)).save(path)
    return path


def test_a_word_that_the_output_cannot_show_is_named(tmp_path, monkeypatch, capsys):
    words, (model, corpus) = ["\u00e9", "b"], (tmp_path / "lda.safetensors", tmp_path / "two.npz")
    known_lda(0.3, [[0.5, 0.5], [0.1, 0.9]], vocabulary=words).save(model)
    pb.write_corpus(pb.Corpus([[3, 1], [0, 2]], words), corpus)
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), "ascii"))
    assert run("topics", model, corpus) == 2
    assert r"'\xe9' cannot be written in ascii: set PYTHONUTF8=1" in capsys.readouterr().err


def test_topics_are_printed_and_written(corpus, model, tmp_path, capsys):
    assert run("topics", model, corpus, "--words", "4") == 0
    lines = capsys.readouterr().out.splitlines()
    assert [len(line.split()) for line in lines] == [6, 6, 6]
    assert run("topics", model, corpus, "-o", tmp_path / "topics.csv") == 0
    rows = table(tmp_path / "topics.csv")
    assert [row["topic"] for row in rows] == [line.split()[0] for line in lines]
    assert {"coherence", "exclusivity", "words"} <= rows[0].keys()
    assert run("topics", model, corpus, "-o", tmp_path / "report.html") == 0
    assert "<title>lda</title>" in (tmp_path / "report.html").read_text()


def test_scores_are_printed_where_no_file_is_named(corpus, model, capsys):
    assert run("score", model, corpus, "--seed", "0") == 0
    assert "nats per token" in capsys.readouterr().out


def test_topics_of_a_saved_model_are_drawn(corpus, model, tmp_path):
    words = tmp_path / "words.txt"
    words.write_text("".join(f"other{column}\n" for column in range(40)))
    asked = {
        "topics.svg": ["topics", model, "--words", "3"],
        "renamed.svg": ["topics", model, "--vocabulary", words],
        "similarity.png": ["similarity", model],
        "weights.pdf": ["weights", model, "--on", corpus],
    }
    for name, arguments in asked.items():
        assert run("plot", *arguments, "-o", tmp_path / name) == 0
    assert (tmp_path / "similarity.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "weights.pdf").read_bytes().startswith(b"%PDF")
    assert "<!-- other" in (tmp_path / "renamed.svg").read_text()
    assert "<!-- other" not in (tmp_path / "topics.svg").read_text()


def test_covariates_come_from_a_table_beside_the_documents(corpus, tmp_path, capsys):
    model, meta = tmp_path / "by.safetensors", tmp_path / "meta.csv"
    levels = ["a", "b", "c"] * 40
    meta.write_text("\n".join(["rating,day", *(f"{x},{i}" for i, x in enumerate(levels))]))
    given = ["--metadata", meta]
    fit = ["fit", "lda", corpus, "-k", "3", "-o", model, "--max-iter", "20", "--seed", "0"]
    assert run(*fit, *given, "--prevalence", "~ rating + day") == 0
    documents = pb.read_corpus(corpus).with_metadata({"rating": levels, "day": range(120)})
    fitted = pb.load(model)
    assert fitted.covariate_names_.tolist() == ["Intercept", "rating[T.b]", "rating[T.c]", "day"]
    scores = tmp_path / "scores.csv"
    assert run("score", model, corpus, *given, "-o", scores, "--seed", "3") == 0
    expected = pb.log_likelihood(fitted, documents, random_state=3).values
    found = [float(row["log_likelihood"]) for row in table(scores)]
    assert found == pytest.approx(expected.tolist())
    capsys.readouterr()
    assert run("topics", model, corpus, *given, "--by", "rating") == 0
    lines = capsys.readouterr().out.splitlines()
    ratings = [line for line in lines if line.startswith("rating")]
    assert ratings == [f"rating={level}  40 documents" for level in "abc"]
    # Nothing tells how documents of one day vary.
    assert run("topics", model, corpus, *given, "--by", "day") == 0
    told = capsys.readouterr()
    assert "no intervals: each document has a value of day of its own" in told.err
    assert "nan" not in told.out
    assert run("score", model, corpus) == 2
    assert "--metadata: the prior" in capsys.readouterr().err


@pytest.fixture
def named(tmp_path):
    """A model and a corpus with ids and groups, as files."""
    corpus = pb.Corpus(
        [[9, 0, 1], [8, 1, 0], [0, 9, 1], [1, 7, 0]],
        ["urn", "ball", "law"],
        ["=a", "b", "c", "d"],
        metadata={"year": [1999, 1999, 2024, 2024]},
    )
    phi = [[0.8, 0.1, 0.1], [0.1, 0.8, 0.1]]
    lda = known_lda(0.1, phi, vocabulary=corpus.vocabulary, random_state=0)
    pb.write_corpus(corpus, tmp_path / "corpus.npz")
    lda.save(tmp_path / "lda.safetensors")
    return tmp_path / "lda.safetensors", tmp_path / "corpus.npz", corpus, lda


def test_topic_weights_are_written_with_ids_and_deviations(named, tmp_path, capsys):
    model, path, corpus, lda = named
    expected = lda.topic_weights(corpus)
    assert run("transform", model, path) == 0
    rows = table(capsys.readouterr().out)
    assert [row["document"] for row in rows] == ["'=a", "'=a", "b", "b", "c", "c", "d", "d"]
    assert [float(row["std"]) for row in rows] == expected.std.ravel().tolist()
    assert run("transform", model, path, "-o", tmp_path / "weights.parquet", "--jobs", "1") == 0
    found = pd.read_parquet(tmp_path / "weights.parquet")
    pd.testing.assert_frame_equal(found, expected.to_frame())
    other = tmp_path / "other.npz"
    pb.write_corpus(pb.Corpus([[2, 1]], ["urn", "zebra"]), other)
    assert run("transform", model, other, "--unseen", "drop") == 0


def test_means_of_groups_have_intervals_and_a_picture(named, tmp_path, capsys):
    model, path, corpus, lda = named
    by = ["--by", "year"]
    assert run("topics", model, path, *by, "-o", tmp_path / "by.csv") == 0
    expected = pb.topics.by_group(lda, corpus, "year").to_frame()
    for column in ("lower", "mean", "upper"):
        found = [float(row[column]) for row in table(tmp_path / "by.csv")]
        assert found == expected[column].tolist()
    picture = tmp_path / "by.svg"
    assert run("plot", "groups", model, "--on", path, *by, "-o", picture) == 0
    assert "<!-- 2024 -->" in picture.read_text()
    assert run("plot", "groups", model, "--on", path, "--by", "month", "-o", picture) == 2
    assert "no such column; there are 'year'" in capsys.readouterr().err


def test_no_terminal_takes_a_word_or_name_for_a_command(tmp_path, capsys, monkeypatch):
    words = ["a\x1b[2J", "\x1b]0;title\x07b", "é"]
    documents, fitted = tmp_path / "corpus.npz", tmp_path / "lda.safetensors"
    pb.write_corpus(pb.Corpus([[3, 1, 0], [0, 2, 4]], words, ["\x1b[1m", "d"]), documents)
    lda = pb.LatentDirichletAllocation(2, max_iter=5, random_state=0)
    lda.fit(pb.read_corpus(documents)).save(fitted)
    assert run("topics", fitted, documents) == 0
    assert run("score", "no\x1b[31m\udcff.safetensors", documents) == 2
    found = capsys.readouterr()
    assert "\x1b" not in found.out + found.err
    assert r"a\x1b[2J" in found.out
    assert r"no\x1b[31m\udcff.safetensors" in found.err
    assert run("transform", fitted, documents) == 0
    assert "\n\x1b[1m,0," in capsys.readouterr().out
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert run("transform", fitted, documents) == 0
    assert "\n\\x1b[1m,0," in capsys.readouterr().out


def test_files_whose_names_are_no_text_are_scored(model, tmp_path):
    texts, scores = tmp_path / "texts", tmp_path / "scores.csv"
    texts.mkdir()
    for name in ("x\udcff.txt", "two  blanks.txt"):
        (texts / name).write_text("w1 w2 w2")
    assert run("score", model, texts, "--unseen", "drop", "-o", scores) == 0
    ids = [row["document"] for row in table(scores)]
    assert ids == ["two  blanks.txt", r"x\xff.txt"]
    pb.write_corpus(pb.read_corpus(texts), tmp_path / "corpus.npz")
    assert pb.read_corpus(tmp_path / "corpus.npz").ids.tolist() == ids
