import gzip
import io
import os
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from helpers.refusals import assert_refused
from helpers.small_corpus import DENSE, IDS, WORDS, dense
from polyabayes._support import files
from polyabayes.data.corpus import Corpus
from polyabayes.exceptions import FileAccessError, FileFormatError, InvalidArgumentError
from polyabayes.io import read_corpus, vocabularies, write_corpus
from polyabayes.io.matrices import matrix_market

LDAC = "2 0:2 2:1\n0\n1 1:3\n"


@pytest.fixture
def corpus():
    return Corpus(DENSE, WORDS, IDS)


# LDA-C


@pytest.mark.parametrize("name", ["x.ldac", "x.dat", "x.lda-c", "x.LDAC"])
@pytest.mark.parametrize("text", [LDAC, LDAC.rstrip(), LDAC.replace("\n", "\r\n"), LDAC + "\n \n"])
def test_ldac(write, name, text):
    corpus = read_corpus(write(name, text))
    assert dense(corpus) == DENSE.tolist()
    assert corpus.vocabulary is None


def test_ldac_size_and_words(write, tmp_path):
    path = write("x.ldac.gz", gzip.compress(LDAC.encode()))
    write("x.vocab", "urn\nball\r\ncolour\nunused\n\n")
    corpus = read_corpus(path, vocabulary=str(tmp_path / "x.vocab"))
    assert corpus.vocabulary.tolist() == [*WORDS, "unused"]
    assert corpus.shape == (3, 4)
    assert read_corpus(path, vocabulary=WORDS).vocabulary.tolist() == WORDS
    assert read_corpus(path, n_words=7).n_words == 7
    assert read_corpus(write("empty.ldac", "0\n0\n")).shape == (2, 1)


def test_ldac_from_standard_input(monkeypatch):
    for content in (LDAC.encode(), gzip.compress(LDAC.encode())):
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(content)))
        assert dense(read_corpus("-")) == DENSE.tolist()
    assert_refused(InvalidArgumentError, "ldac only, not as csv", read_corpus, "-", format="csv")


MALFORMED = [
    *("3 0:1 1:1", "1 0:1 1:1", "2 0:1 1:", "2 0:1 :1", "1 0:1:1", "1 0 :1", "1 0: 1", "2:1 5 2:3"),
    *("1 0:1.5", "1 0:-2", "1 0:0", "1 0:4294967296", "1 -1:2", "1 9:1", "x", "1 \xb2:1"),
    "1 0:99999999999999999999",
]


@pytest.mark.parametrize("line", [*MALFORMED, ""])
@pytest.mark.parametrize("block_bytes", [1 << 24, 8])
def test_malformed_ldac_is_located(write, monkeypatch, line, block_bytes):
    monkeypatch.setattr(files, "_BLOCK_BYTES", block_bytes)
    path = write("x.ldac", f"1 4:2\n0\n2 1:1 2:2\n{line}\n1 1:1\n")
    with pytest.raises(FileFormatError) as caught:
        read_corpus(path, n_words=5)
    says = f"{line!r} is not 'M id:count" if line else "it is blank; an empty doc"
    assert str(caught.value).startswith(f"{path}, line 4: {says}")


@pytest.mark.parametrize("block_bytes", [1, 7, 64, 1 << 24])
def test_blocks_do_not_change_what_is_read(write, monkeypatch, block_bytes):
    rng = np.random.default_rng(1)
    counts = rng.poisson(0.2, size=(50, 30)) * rng.integers(1, 5000, size=(50, 30))
    path = write("x.ldac.gz", b"")
    write_corpus(counts, path)
    monkeypatch.setattr(files, "_BLOCK_BYTES", block_bytes)
    assert dense(read_corpus(path, n_words=30)) == counts.tolist()


def test_damaged_gzip(write):
    rng = np.random.default_rng(2)
    lines = [f"1 {word}:{n}" for word, n in rng.integers(1, 999, size=(5000, 2))]
    packed = gzip.compress("\n".join(lines).encode())
    with pytest.raises(FileFormatError, match=r"x\.ldac\.gz is damaged .*\(after line [1-9]\d*\)"):
        read_corpus(write("x.ldac.gz", packed[: len(packed) // 2]))
    with pytest.raises(FileFormatError, match="damaged"):
        read_corpus(write("x.ldac.gz", packed[:-8] + b"?" * 8))
    assert_refused(FileFormatError, "is not a gzip file", read_corpus, write("x.ldac.gz", LDAC))
    with pytest.raises(FileFormatError, match="damaged"):
        read_corpus(write("x.mtx.gz", packed[: len(packed) // 2]))


def test_real_corpora(shared_data):
    ap = read_corpus(shared_data / "ap.ldac.gz", vocabulary=shared_data / "ap.vocab")
    assert (ap.n_documents, ap.n_words, ap.n_tokens) == (2246, 10473, 435838)
    assert ap.counts.nnz == 302031
    assert ap.top_words(1) == [("i", 2073)]
    news = read_corpus(shared_data / "20ng.ldac.gz", vocabulary=shared_data / "20ng.vocab")
    summary = news.summary()
    assert (summary.n_documents, summary.n_words, summary.n_tokens) == (18805, 20956, 2436517)
    assert (summary.n_nonzero, summary.n_empty_documents) == (1581640, 0)
    assert (round(summary.mean_length, 1), round(summary.sd_length, 1)) == (129.6, 262.6)


# vocabularies


def test_lines_of_vocabularies_are_words_whatever_they_hold(write):
    for text in ("c\t1\t9\nc\t2\t4\n", "area 51\ncatch 22\n", '"\na,b\n' + "x" * (1 << 18)):
        assert vocabularies.resolve_vocabulary(write("v", text))[0] == text.splitlines()[0]
    assert vocabularies.resolve_vocabulary(write("v.tsv", "urn\t12\nlaw\t3\n"))[0] == "urn"


# read_corpus and write_corpus


def test_unreadable_folder(tmp_path, monkeypatch):
    def refuse(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("os.scandir", refuse)
    assert_refused(FileAccessError, "Permission denied", read_corpus, tmp_path)


@pytest.mark.parametrize("name", ["x.ldac", "x.1.ldac.gz"])
def test_writing_ldac(tmp_path, corpus, name):
    write_corpus(corpus, tmp_path / name)
    content = (tmp_path / name).read_bytes()
    content = gzip.decompress(content) if name.endswith(".gz") else content
    assert content.decode() == LDAC
    vocabulary = tmp_path / name.replace(".ldac", ".vocab").removesuffix(".gz")
    assert vocabulary.read_text() == "urn\nball\ncolour\n"
    assert {path.name for path in tmp_path.iterdir()} == {name, vocabulary.name}


def test_writing_repeats_byte_for_byte(tmp_path, corpus):
    write_corpus(corpus, tmp_path / "a.ldac.gz")
    write_corpus(corpus, tmp_path / "b.ldac.gz")
    assert (tmp_path / "a.ldac.gz").read_bytes() == (tmp_path / "b.ldac.gz").read_bytes()


def test_bare_matrix_is_written_without_words(tmp_path):
    write_corpus(DENSE, tmp_path / "x.ldac")
    assert [path.name for path in tmp_path.iterdir()] == ["x.ldac"]


@pytest.mark.parametrize("name", ["x.npz", "x.mtx"])
def test_failed_writing_leaves_the_old_file_and_its_words(tmp_path, corpus, monkeypatch, name):
    path = tmp_path / name
    write_corpus(corpus, path)
    before = {one.name: one.read_bytes() for one in tmp_path.iterdir()}

    def fail(handle, *_, **__):
        handle.write(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(matrix_market, "mmwrite", fail)
    monkeypatch.setattr(np, "savez_compressed", fail)
    new = [f"new{word}" for word in range(corpus.n_words)]
    with pytest.raises(FileAccessError, match=rf"cannot write .*{name}: No space left"):
        write_corpus(Corpus(corpus.counts, new), path)
    assert {one.name: one.read_bytes() for one in tmp_path.iterdir()} == before


def test_files_are_on_the_disk_before_they_take_their_name(tmp_path, monkeypatch):
    events = []
    plain = {"fsync": os.fsync, "replace": os.replace}

    def recorded(name):
        def call(*arguments, **options):
            events.append(name)
            return plain[name](*arguments, **options)

        return call

    for name in plain:
        monkeypatch.setattr(os, name, recorded(name))
    write_corpus(Corpus([[1, 2]]), tmp_path / "x.npz")
    # The content, the name, the folder that holds the name.
    assert events == ["fsync", "replace", "fsync"]
