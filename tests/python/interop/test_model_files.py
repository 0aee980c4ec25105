"""Models from files of other programs; nothing that a file holds is run."""

from __future__ import annotations

import csv
import io
import os
import pickle
import warnings

import joblib
import numpy as np
import pytest
from sklearn.decomposition import LatentDirichletAllocation

import polyabayes as pb
from polyabayes import exceptions as errors
from polyabayes.cli import main

TEXTS = [["urn", "ball", "urn"], ["gene", "cell"], ["ball", "urn"], ["cell", "gene", "gene"]] * 4
STATE = """#doc source pos typeindex type topic
#alpha : 0.5 0.25
#beta : 0.1
0 NA 0 0 urn 0
0 NA 1 1 ball 0
1 NA 0 2 gene 1
"""


@pytest.fixture
def gensim_lda():
    models, corpora = pytest.importorskip("gensim.models"), pytest.importorskip("gensim.corpora")
    dictionary = corpora.Dictionary(TEXTS)
    bags = [dictionary.doc2bow(text) for text in TEXTS]
    return models.LdaModel(bags, 2, dictionary, alpha="auto", random_state=0)


@pytest.mark.parametrize("separately", [None, ["sstats"]])
def test_gensim_files_are_read_as_data(gensim_lda, tmp_path, separately):
    gensim_lda.save(os.fspath(tmp_path / "lda"))
    if separately:
        gensim_lda.state.save(os.fspath(tmp_path / "lda.state"), separately=separately)
        assert (tmp_path / "lda.state.sstats.npy").exists()
    wanted = pb.interop.from_gensim(gensim_lda)
    for place in (tmp_path / "lda", tmp_path):
        read = pb.interop.read_model(place)
        np.testing.assert_array_equal(read.components_, wanted.components_)
        np.testing.assert_array_equal(read.doc_topic_prior_, wanted.doc_topic_prior_)
        assert read.vocabulary_.tolist() == wanted.vocabulary_.tolist()


class Evil:
    """A pickle that would make a file when it is loaded."""

    def __reduce__(self):
        return os.mkdir, (os.environ["EVIL"],)


def test_no_code_of_a_pickle_runs(gensim_lda, tmp_path, monkeypatch):
    trace = tmp_path / "trace"
    monkeypatch.setenv("EVIL", os.fspath(trace))
    gensim_lda.save(os.fspath(tmp_path / "lda"))
    for name in ("lda", "lda.state", "lda.id2word"):
        whole = (tmp_path / name).read_bytes()
        (tmp_path / name).write_bytes(pickle.dumps(Evil()))
        with pytest.raises(errors.FileFormatError, match="mkdir"):
            pb.interop.read_model(tmp_path / "lda")
        (tmp_path / name).write_bytes(whole[: len(whole) // 2])
        with pytest.raises(errors.FileFormatError, match="damaged"):
            pb.interop.read_model(tmp_path / "lda")
        (tmp_path / name).write_bytes(whole)
    assert not trace.exists()


def test_joblib_is_refused(tmp_path):
    fitted = LatentDirichletAllocation(2).fit([[1, 2], [3, 4]])
    joblib.dump(fitted, tmp_path / "lda.joblib")
    with pytest.raises(errors.FileFormatError, match="load them in Python"):
        pb.interop.read_model(tmp_path / "lda.joblib")


def test_tomotopy_files_are_loaded_beside(tmp_path):
    tomotopy = pytest.importorskip("tomotopy")
    model = tomotopy.LDAModel(k=2, seed=1)
    for text in TEXTS:
        model.add_doc(text)
    model.set_word_prior("urn", [2.0, 0.1])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        model.train(20, workers=1)
    model.save(os.fspath(tmp_path / "lda.bin"))
    read, wanted = pb.interop.read_model(tmp_path / "lda.bin"), pb.interop.from_tomotopy(model)
    np.testing.assert_array_equal(read.components_, wanted.components_)
    assert read.vocabulary_.tolist() == wanted.vocabulary_.tolist()
    # tomotopy would end this process.
    (tmp_path / "lda.bin").write_bytes(b"LDA\0" + bytes(60))
    with pytest.raises(errors.FileFormatError, match="tomotopy cannot read"):
        pb.interop.read_model(tmp_path / "lda.bin")


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


def test_the_command_line_scores_and_compares_them(gensim_lda, tmp_path, capsys):
    gensim_lda.save(os.fspath(tmp_path / "lda"))
    (tmp_path / "state.txt").write_text(STATE)
    corpus = pb.Corpus.from_documents([["urn", "ball"], ["gene"]])
    pb.write_corpus(corpus, tmp_path / "corpus.npz")
    place = [os.fspath(tmp_path / name) for name in ("lda", "corpus.npz")]
    assert main(["score", *place, "-o", "-"]) == 0
    shown = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    values = pb.log_likelihood(gensim_lda, corpus).values
    assert [float(row["log_likelihood"]) for row in shown] == pytest.approx(values.tolist())
    state = os.fspath(tmp_path / "state.txt")
    assert main(["compare", place[0], state, "--on", place[1]]) == 0
    assert {line.split()[0] for line in capsys.readouterr().out.splitlines()[1:]} == {
        "lda",
        "state",
    }
    assert main(["score", os.fspath(tmp_path / "nothing"), place[1], "-o", "-"]) == 2
