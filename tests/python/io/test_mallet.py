"""Documents of MALLET; the texts are what version 2.1 prints of the lines that it imported."""

import gzip

import numpy as np
import pytest

import polyabayes as pb
from polyabayes.exceptions import FileFormatError

LINES = """d1 sport Racing horse, racing fame-photos the x1 ab größe
d2\tnews\tbusiness software "bank" transactions bank_account
d4 x
"""
COUNTS = {
    "d1": {"racing": 2, "horse": 1, "fame-photos": 1, "the": 1, "größe": 1},
    "d2": {"business": 1, "software": 1, "bank": 1, "transactions": 1, "bank_account": 1},
    "d4": {},
}


def as_dicts(corpus):
    return {
        name: {corpus.vocabulary[w]: int(n) for w, n in zip(row.indices, row.data, strict=True)}
        for name, row in zip(corpus.ids, corpus.counts, strict=True)
    }


def test_lines_that_mallet_imports_are_read(write):
    assert as_dicts(pb.read_corpus(write("x.mallet", LINES))) == COUNTS
    packed = write("x.txt.gz", gzip.compress(LINES.encode()))
    assert as_dicts(pb.read_corpus(packed, format="mallet")) == COUNTS


def test_options_are_those_of_the_import(write):
    path = write("x.mallet", LINES)
    corpus = pb.read_corpus(path, token_pattern=r"\S+", lowercase=False, stop_words=["the"])
    assert {"Racing", "horse,", '"bank"', "x1"} <= set(corpus.vocabulary)
    assert "the" not in corpus.vocabulary
    few = pb.read_corpus(path, vocabulary=["racing", "bank", "urn"])
    assert few.counts.toarray().tolist() == [[2, 0, 0], [0, 1, 0], [0, 0, 0]]


def test_instance_lists_and_files_without_words_are_refused(write):
    java = b"\xac\xed\x00\x05sr\x00\x1ccc.mallet.types.InstanceList"
    for name in ("x.mallet", "x.mallet.gz"):
        content = gzip.compress(java) if name.endswith("gz") else java
        with pytest.raises(FileFormatError, match=r"Java object.*that was imported"):
            pb.read_corpus(write(name, content))
    for text in ("", "\n\n", "d1 x 12 34\n"):
        with pytest.raises(FileFormatError):
            pb.read_corpus(write("y.mallet", text))


def test_real_documents_are_scored_as_by_hand(shared_data):
    folder = shared_data.parent / "interop" / "mallet"
    if not folder.is_dir():
        pytest.skip(f"no files of MALLET in {folder}")
    model = pb.interop.from_mallet(
        folder / "state.gz", topic_word_weights=folder / "topic_word_weights.txt.gz"
    )
    test = pb.read_corpus(folder / "test.txt.gz", format="mallet", token_pattern=r"\S+")
    with gzip.open(folder / "test.txt.gz", "rt") as stream:
        texts = [line.rstrip("\n").split("\t") for line in stream]
    assert test.ids.tolist() == [name for name, _, _ in texts]
    tokens = pb.Corpus.from_documents([words.split() for _, _, words in texts])
    np.testing.assert_array_equal(test.counts.toarray(), tokens.counts.toarray())
    found = pb.log_likelihood(model, test, "recursive", unseen="drop")
    assert found.n_unseen_tokens == 0
    assert abs(found.total + 58_199.8) < 300


@pytest.mark.parametrize("mark", ["\x85", "\u2028", "\x1c"])
def test_marks_that_are_no_ends_of_lines(write, mark):
    lines = write("y.mallet", f"d1 x urn{mark}ball urn\n")
    assert pb.read_corpus(lines, token_pattern=r"(?a:\S+)").n_tokens == 2


def test_stop_words_whose_letters_no_text_has_give_no_warning(tmp_path):
    path = tmp_path / "x.mallet"
    path.write_text("a label cat cat\nb label dog\n")
    for stop_words in ("english", ["dog", "über"]):
        corpus = pb.read_corpus(path, stop_words=stop_words)
        assert "cat" in corpus.vocabulary
