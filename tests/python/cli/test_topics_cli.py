"""The commands about topics."""

import pytest

import polyabayes as pb
from command_line import table
from polyabayes.cli import main


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
    assert main(["choose", "lda", corpus, *options, "-o", str(sizes)]) == 0
    shown = capsys.readouterr()
    assert shown.err.splitlines()[1].startswith("polyabayes: about 6 fits, ")
    assert shown.out.startswith("best by held-out: 3")
    rows = table(sizes)
    assert [row["size"] for row in rows] == ["1", "3", "8"]
    assert main(["choose", "lda", corpus, "--sizes", "1,x"]) == 2
    assert "no list of whole numbers" in capsys.readouterr().err


def test_topics_are_printed_and_written(corpus, tmp_path, capsys):
    model = str(tmp_path / "lda.safetensors")
    fit = ["fit", "lda", corpus, "-k", "3", "-o", model, "--max-iter", "40", "--seed", "0"]
    assert main(fit) == 0
    capsys.readouterr()
    assert main(["topics", model, corpus, "--words", "4"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [len(line.split()) for line in lines] == [6, 6, 6]
    assert main(["topics", model, corpus, "-o", str(tmp_path / "topics.csv")]) == 0
    rows = table(tmp_path / "topics.csv")
    assert [row["topic"] for row in rows] == [line.split()[0] for line in lines]
    assert {"coherence", "exclusivity", "words"} <= rows[0].keys()
    assert main(["topics", model, corpus, "-o", str(tmp_path / "report.html")]) == 0
    assert "<title>lda</title>" in (tmp_path / "report.html").read_text()


def test_scores_are_printed_where_no_file_is_named(corpus, tmp_path, capsys):
    model = str(tmp_path / "lda.safetensors")
    fit = ["fit", "lda", corpus, "-k", "2", "-o", model, "--max-iter", "20", "--seed", "0"]
    assert main(fit) == 0
    capsys.readouterr()
    assert main(["score", model, corpus, "--seed", "0"]) == 0
    assert "nats per token" in capsys.readouterr().out


def test_topics_of_a_saved_model_are_drawn(corpus, tmp_path, capsys):
    model = str(tmp_path / "lda.safetensors")
    fit = ["fit", "lda", corpus, "-k", "2", "-o", model, "--max-iter", "20", "--seed", "0"]
    assert main(fit) == 0
    words = tmp_path / "words.txt"
    words.write_text("".join(f"other{column}\n" for column in range(40)))
    asked = {
        "topics.svg": ["topics", model, "--words", "3"],
        "renamed.svg": ["topics", model, "--vocabulary", str(words)],
        "similarity.png": ["similarity", model],
        "weights.pdf": ["weights", model, "--on", corpus],
    }
    for name, arguments in asked.items():
        assert main(["plot", *arguments, "-o", str(tmp_path / name)]) == 0
    assert (tmp_path / "similarity.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "weights.pdf").read_bytes().startswith(b"%PDF")
    assert "<!-- other" in (tmp_path / "renamed.svg").read_text()
    assert "<!-- other" not in (tmp_path / "topics.svg").read_text()
    capsys.readouterr()
    picture = str(tmp_path / "never.png")
    assert main(["plot", "weights", model, "-o", picture]) == 2
    assert "needs documents: give --on CORPUS" in capsys.readouterr().err
    assert main(["plot", "topics", model, "--on", corpus, "-o", picture]) == 2
    assert "has no use for --on CORPUS" in capsys.readouterr().err
    assert main(["plot", "topics", model, "-o", str(tmp_path / "topics.txt")]) == 2
    assert "must end in .png or .pdf or .svg" in capsys.readouterr().err
    assert not (tmp_path / "never.png").exists()


def test_covariates_come_from_a_table_beside_the_documents(corpus, tmp_path, capsys):
    model, meta = str(tmp_path / "by.safetensors"), tmp_path / "meta.csv"
    levels = ["a", "b", "c"] * 40
    meta.write_text("\n".join(["rating,day", *(f"{x},{i}" for i, x in enumerate(levels))]))
    given = ["--metadata", str(meta)]
    fit = ["fit", "lda", corpus, "-k", "3", "-o", model, "--max-iter", "20", "--seed", "0"]
    assert main([*fit, *given, "--prevalence", "~ rating + day"]) == 0
    documents = pb.read_corpus(corpus).with_metadata({"rating": levels, "day": range(120)})
    fitted = pb.load(model)
    assert fitted.covariate_names_.tolist() == ["Intercept", "rating[T.b]", "rating[T.c]", "day"]
    scores = tmp_path / "scores.csv"
    assert main(["score", model, corpus, *given, "-o", str(scores), "--seed", "3"]) == 0
    expected = pb.log_likelihood(fitted, documents, random_state=3).values
    found = [float(row["log_likelihood"]) for row in table(scores)]
    assert found == pytest.approx(expected.tolist())
    capsys.readouterr()
    assert main(["topics", model, corpus, *given, "--by", "rating"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if line.startswith("rating")] == [
        f"rating={level}  40 documents" for level in "abc"
    ]
    assert main(["topics", model, corpus, *given, "--by", "rating", "-o", "x.html"]) == 2
    assert "--by makes a table" in capsys.readouterr().err
    assert main(["score", model, corpus]) == 2
    assert "covariates" in capsys.readouterr().err
    assert main([*fit, "--prevalence", "~ rating", "--metadata", str(tmp_path / "no.csv")]) == 2
