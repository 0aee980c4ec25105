"""Models from files of other programs; nothing that a file holds is run."""

from __future__ import annotations

import csv
import io
import os
import pickle
import warnings
from pathlib import Path

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


@pytest.mark.parametrize(
    ("bomb", "match"),
    [
        # Python's own interpreter makes a memo of 32 GiB of this.
        (b"]r\xff\xff\xff\x7f.", "no LdaModel"),
        # And ends by a signal where it hashes tuples nested this deep.
        (b"}N" + b"\x85" * 300_000 + b"Ns.", "neither word nor number"),
        (b"\x80\x04\x8f(N" + b"\x85" * 300_000 + b"\x90.", "no LdaModel"),
        (b"\x96" + b"\xff" * 7 + b"\x0f.", "only 1 remain"),
        (b"cnumpy\nvoid\nJ\xff\xff\xff\x7f\x85R.", "numpy.void, which is no data"),
        (b"cnumpy\ndtype\nX\x02\x00\x00\x00O8\x85R.", "of the type 'O8'"),
        (
            b"c_codecs\nencode\nX\x01\x00\x00\x00ap0\nX\x06\x00\x00\x00latin1\x86R0g0\n" * 9,
            "damaged",
        ),
        (b"\x80\x04", "exhausted"),
        (b"(t}b.", "a state has no object"),
        (b"NNR.", "cannot be"),
        (b"0.", "a value is missing"),
        (b"h\x05.", "leads nowhere"),
        (b"L" + b"9" * 5_000 + b"L\n.", "digits"),
    ],
)
def test_no_pickle_takes_the_process_down(gensim_lda, tmp_path, bomb, match):
    gensim_lda.save(os.fspath(tmp_path / "lda"))
    head = b"\x80\x02" if not bomb.startswith(b"\x80") else b""
    (tmp_path / "lda").write_bytes(head + bomb)
    with pytest.raises(errors.FileFormatError, match=match):
        pb.interop.read_model(tmp_path / "lda")


def test_another_model_of_gensim_is_no_plain_lda(tmp_path):
    models, corpora = pytest.importorskip("gensim.models"), pytest.importorskip("gensim.corpora")
    dictionary = corpora.Dictionary(TEXTS)
    bags = [dictionary.doc2bow(text) for text in TEXTS]
    authors = {"a": list(range(8)), "b": list(range(8, 16))}
    model = models.AuthorTopicModel(bags, 2, id2word=dictionary, author2doc=authors)
    model.save(os.fspath(tmp_path / "lda"))
    with pytest.raises(errors.FileFormatError, match="weights of their authors"):
        pb.interop.read_model(tmp_path / "lda")


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_every_protocol_of_pickles_gives_equal_arrays(gensim_lda, tmp_path, protocol):
    wanted = pb.interop.from_gensim(gensim_lda)
    gensim_lda.save(os.fspath(tmp_path / "lda"), pickle_protocol=protocol)
    read = pb.interop.read_model(tmp_path / "lda")
    np.testing.assert_array_equal(read.components_, wanted.components_)
    assert read.vocabulary_.tolist() == wanted.vocabulary_.tolist()


def test_attributes_of_gensim_that_are_no_numbers_are_refused(gensim_lda, tmp_path):
    nested = [0.5]
    for _ in range(60):
        nested = [nested, nested]
    gensim_lda.alpha = nested
    gensim_lda.save(os.fspath(tmp_path / "lda"))
    with pytest.raises(errors.FileFormatError, match="a list holds what is no number"):
        pb.interop.read_model(tmp_path / "lda")


def test_topics_that_no_memory_holds_are_refused(tmp_path):
    words = "".join(f"{row} w{row} 0:1\n" for row in range(60_000))
    (tmp_path / "counts.txt").write_text(f"{words}60000 last 99999:1\n")
    with pytest.raises(errors.FileFormatError, match="100,000 topics of 60,001 words"):
        pb.interop.from_mallet(
            word_topic_counts=tmp_path / "counts.txt", doc_topic_prior=0.1, topic_word_prior=0.01
        )


@pytest.mark.slow
def test_a_file_that_tomotopy_never_ends_to_load():
    pytest.importorskip("tomotopy")
    found = Path(__file__).parents[2] / "vectors" / "hostile" / "endless.tomotopy.bin"
    with pytest.raises(errors.FileFormatError, match=r"did not load .* in 4 s"):
        pb.interop.read_model(found)
