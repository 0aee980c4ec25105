"""Models from files: ours and MALLET's; those of other packages are loaded by these."""

import csv
import io
import os

import joblib
import pytest
from sklearn.decomposition import LatentDirichletAllocation

import polyabayes as pb
from polyabayes import exceptions as errors
from polyabayes.cli import main

STATE = """#doc source pos typeindex type topic
#alpha : 0.5 0.25
#beta : 0.1
0 NA 0 0 urn 0
0 NA 1 1 ball 0
1 NA 0 2 gene 1
"""


def test_files_of_other_packages_are_refused_with_the_way_on(tmp_path):
    fitted = LatentDirichletAllocation(2).fit([[1, 2], [3, 4]])
    joblib.dump(fitted, tmp_path / "lda.joblib")
    (tmp_path / "lda.bin").write_bytes(b"LDA\0" + bytes(60))
    for name in ("lda.joblib", "lda.bin"):
        with pytest.raises(errors.FileFormatError, match="load it by the package that wrote it"):
            pb.interop.read_model(tmp_path / name)


def test_a_folder_of_mallet_is_read_by_what_its_files_hold(tmp_path):
    (tmp_path / "state.txt").write_text(STATE)
    alone = pb.interop.read_model(tmp_path / "state.txt")
    assert alone.vocabulary_.tolist() == ["urn", "ball", "gene"]
    (tmp_path / "counts.txt").write_text("0 urn 0:1\n1 ball 0:1\n2 gene 1:1\n3 never\n")
    read = pb.interop.read_model(tmp_path)
    assert read.vocabulary_.tolist() == ["urn", "ball", "gene", "never"]
    (tmp_path / "other.txt").write_text(STATE)
    with pytest.raises(errors.FileFormatError, match="2 states of MALLET; name one file"):
        pb.interop.read_model(tmp_path)


def test_the_command_line_scores_and_compares_them(tmp_path, capsys):
    theirs = LatentDirichletAllocation(2, random_state=0).fit([[1, 2, 0], [3, 0, 4]])
    ours = pb.interop.from_sklearn(theirs, ["urn", "ball", "gene"])
    saved = os.fspath(tmp_path / "lda.safetensors")
    ours.save(saved)
    (tmp_path / "state.txt").write_text(STATE)
    corpus = pb.Corpus.from_documents([["urn", "ball"], ["gene"]])
    pb.write_corpus(corpus, tmp_path / "corpus.npz")
    place = [os.fspath(tmp_path / name) for name in ("state.txt", "corpus.npz")]
    assert main(["score", *place, "-o", "-"]) == 0
    shown = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    values = pb.log_likelihood(pb.interop.from_mallet(place[0]), corpus).values
    assert [float(row["log_likelihood"]) for row in shown] == pytest.approx(values.tolist())
    assert main(["compare", saved, place[0], "--on", place[1]]) == 0
    table = capsys.readouterr().out.splitlines()[1:3]
    assert {line.split()[0] for line in table} == {"lda", "state"}
    assert main(["score", os.fspath(tmp_path / "nothing"), place[1], "-o", "-"]) == 2


def test_topics_that_no_memory_holds_are_refused(tmp_path):
    words = "".join(f"{row} w{row} 0:1\n" for row in range(60_000))
    (tmp_path / "counts.txt").write_text(f"{words}60000 last 99999:1\n")
    with pytest.raises(errors.FileFormatError, match="100,000 topics of 60,001 words"):
        pb.interop.from_mallet(
            word_topic_counts=tmp_path / "counts.txt", doc_topic_prior=0.1, topic_word_prior=0.01
        )
