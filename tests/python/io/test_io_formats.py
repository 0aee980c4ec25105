import gzip
import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.datasets import dump_svmlight_file

from helpers.refusals import assert_refused
from helpers.small_corpus import DENSE, IDS, WORDS, dense
from polyabayes._support import files
from polyabayes.data.corpus import Corpus
from polyabayes.exceptions import FileFormatError, InvalidArgumentError, MissingDependencyError
from polyabayes.io import read_corpus, read_tensor, write_corpus

DOCWORD = "3\n3\n3\n1 1 2\n1 3 1\n3 2 3\n"


@pytest.fixture
def corpus():
    return Corpus(DENSE, WORDS, IDS)


# other formats


@pytest.mark.parametrize(
    "content", [DOCWORD, DOCWORD.rstrip(), gzip.compress(DOCWORD.encode(), mtime=0)]
)
@pytest.mark.parametrize("block_bytes", [1 << 24, 10])
def test_docword(write, monkeypatch, content, block_bytes):
    monkeypatch.setattr(files, "_BLOCK_BYTES", block_bytes)
    corpus = read_corpus(write("docword.x.txt", content), vocabulary=WORDS)
    assert dense(corpus) == DENSE.tolist()
    assert corpus.vocabulary.tolist() == WORDS


@pytest.mark.parametrize("name", ["x.mtx", "x.mtx.gz"])
def test_matrix_market(tmp_path, corpus, name):
    write_corpus(corpus, tmp_path / name)
    back = read_corpus(tmp_path / name, vocabulary=tmp_path / "x.vocab")
    assert dense(back) == DENSE.tolist()
    assert back.vocabulary.tolist() == WORDS
    assert dense(read_corpus(tmp_path / name, transpose=True)) == DENSE.T.tolist()


def test_npz_keeps_everything(tmp_path, corpus):
    write_corpus(corpus, tmp_path / "x.npz")
    back = read_corpus(tmp_path / "x.npz")
    assert dense(back) == DENSE.tolist()
    assert (back.vocabulary.tolist(), back.ids.tolist()) == (WORDS, IDS)
    assert sparse.load_npz(tmp_path / "x.npz").toarray().tolist() == DENSE.tolist()
    with np.load(tmp_path / "x.npz", allow_pickle=False) as archive:
        assert archive["vocabulary"].dtype.kind == "U"


def test_npz_is_aligned_to_the_vocabulary_asked_for(tmp_path, corpus):
    write_corpus(corpus, tmp_path / "x.npz")
    back = read_corpus(tmp_path / "x.npz", vocabulary=WORDS[::-1])
    assert dense(back) == DENSE[:, ::-1].tolist()


def test_npz_of_scipy(tmp_path, write):
    sparse.save_npz(tmp_path / "x.npz", sparse.csc_array(DENSE))
    corpus = read_corpus(tmp_path / "x.npz", vocabulary=WORDS)
    assert dense(corpus) == DENSE.tolist()
    assert (corpus.vocabulary.tolist(), corpus.ids) == (WORDS, None)
    np.savez(tmp_path / "y.npz", a=DENSE)
    for path in (tmp_path / "y.npz", write("z.npz", "no archive"), write("e.npz", b"PK\3\4")):
        assert_refused(FileFormatError, rf"{path.name} (cannot be read|is no)", read_corpus, path)


@pytest.mark.parametrize("zero_based", [True, False])
def test_svmlight(tmp_path, zero_based):
    dump_svmlight_file(DENSE, [1, 0, 1], str(tmp_path / "x.svmlight"), zero_based=zero_based)
    path = tmp_path / "x.svmlight"
    assert dense(read_corpus(path, vocabulary=WORDS)) == DENSE.tolist()
    assert read_corpus(path, n_words=9).n_words == 9
    packed = tmp_path / "x.libsvm.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert dense(read_corpus(packed, zero_based=zero_based)) == DENSE.tolist()


@pytest.mark.parametrize("name", ["x.csv", "x.csv.gz", "x.parquet"])
def test_columns_of_tables_are_those_of_the_vocabulary_asked_for(tmp_path, name):
    frame = pd.DataFrame(DENSE, columns=WORDS)
    frame.insert(0, "doc_id", IDS)
    path = tmp_path / name
    frame.to_parquet(path) if path.suffix == ".parquet" else frame.to_csv(path, index=False)
    corpus = read_corpus(path, vocabulary=WORDS[::-1])
    assert (dense(corpus), corpus.ids.tolist()) == (DENSE[:, ::-1].tolist(), IDS)


def test_csv_of_many_blocks(tmp_path):
    """Plain blocks, quoted ones and floats take turns; all have the counts that pandas reads."""
    path = tmp_path / "x.csv"
    counts = np.random.default_rng(0).poisson(0.7, (9000, 60))
    frame = pd.DataFrame(counts, columns=[f"w{k}" for k in range(60)])
    frame.insert(0, "id", [f"d{k}" if k % 2500 else f'd "{k}",\n' for k in range(9000)])
    frame.to_csv(path, index=False)
    corpus = read_corpus(path)
    assert np.array_equal(corpus.counts.toarray(), counts)
    assert corpus.ids.tolist() == frame["id"].tolist()
    lines = path.read_text().replace(",3", ",3.0").splitlines(keepends=True)
    path.write_text("".join(lines))
    assert np.array_equal(read_corpus(path).counts.toarray(), counts)


def test_csv_needs_no_other_parser(write, monkeypatch):
    """A damaged file has ended the process within pandas: no file is handed to it."""
    for reader in ("read_csv", "read_table", "to_numeric"):
        monkeypatch.setattr(pd, reader, None)
    assert dense(read_corpus(write("x.csv", "a,b\n1,2\n"))) == [[1, 2]]
    assert dense(read_corpus(write("x.csv", "document,word,count\n1,b,2\n"))) == [[2]]
    corpus = read_corpus(write("x.csv", "id,text,n\n1,the urn,2\n"))
    assert (corpus.ids.tolist(), corpus.vocabulary.tolist()) == (["1"], ["the", "urn"])
    corpus = read_corpus(write("x.csv", "n,text,t\n1,an urn,2\n2,ball,3\n"), exposure="t")
    assert (corpus.ids, corpus.exposure.tolist()) == (None, [2, 3])
    assert read_tensor(write("x.csv", "i,count\n1,3\n")).total == 3


def test_missing_pandas_is_named(write, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingDependencyError, match=r"polyabayes\[frames\]"):
        read_corpus(write("x.parquet", "PAR1"))


# text


def test_lines_of_text(write):
    path = write("x.txt", "The urn, the ball\n-\nthe Urn été\n")
    corpus = read_corpus(path)
    assert corpus.vocabulary.tolist() == ["ball", "the", "urn", "été"]
    assert dense(corpus) == [[1, 2, 1, 0], [0, 0, 0, 0], [0, 1, 1, 1]]
    corpus = read_corpus(path, stop_words="english", lowercase=False, ngram_range=(1, 2))
    words = ["The", "The urn", "Urn", "Urn été", "ball", "urn", "urn ball", "été"]
    assert corpus.vocabulary.tolist() == words
    assert read_corpus(path, min_df=2).vocabulary.tolist() == ["the", "urn"]
    assert dense(read_corpus(path, vocabulary=["urn", "other"])) == [[1, 0], [0, 0], [1, 0]]
    assert read_corpus(write("y.txt", "été".encode("latin-1")), encoding="latin-1").n_words == 1


def test_folder_of_text(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "b.txt").write_text("urn\nurn\n")
    (tmp_path / "sub" / "a.txt").write_text("ball")
    (tmp_path / "notes.md").write_text("other")
    corpus = read_corpus(tmp_path)
    assert corpus.ids.tolist() == ["b.txt", "sub/a.txt"]
    assert corpus.vocabulary.tolist() == ["ball", "urn"]
    assert dense(corpus) == [[0, 2], [1, 0]]
    empty = tmp_path / "empty"
    empty.mkdir()
    assert_refused(FileFormatError, r"no \.txt file", read_corpus, empty)


class FakeStemmer(ModuleType):
    def algorithms(self):
        return ["english"]

    def Stemmer(self, language):  # noqa: N802
        if language != "english":
            raise KeyError(language)
        return SimpleNamespace(stemWords=lambda words: [word.rstrip("s") for word in words])


def test_stemming_comes_after_stop_words_and_before_ngrams(write, monkeypatch):
    monkeypatch.setitem(sys.modules, "Stemmer", FakeStemmer("Stemmer"))
    path = write("x.txt", "urns balls urn this")
    corpus = read_corpus(path, stem="english", stop_words="english", ngram_range=(1, 2))
    assert corpus.vocabulary.tolist() == ["ball", "ball urn", "urn", "urn ball"]
    assert dense(corpus) == [[1, 1, 2, 1]]
    with pytest.raises(InvalidArgumentError, match=r"stem must be .*english"):
        read_corpus(path, stem="klingon")
    with pytest.raises(InvalidArgumentError, match="words only"):
        read_corpus(path, stem="english", analyzer="char")


def test_stemming_without_its_library(write, monkeypatch):
    monkeypatch.setitem(sys.modules, "Stemmer", None)
    with pytest.raises(MissingDependencyError, match=r"polyabayes\[stem\]"):
        read_corpus(write("x.txt", "urns"), stem="english")
