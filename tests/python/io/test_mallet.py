"""Documents of MALLET; the texts are what version 2.1 prints of the lines that it imported."""

import gzip

import numpy as np
import pytest

import polyabayes as pb
from helpers.refusals import assert_refused
from polyabayes.exceptions import FileFormatError, InvalidArgumentError

LINES = """d1 sport Racing horse, racing fame-photos the x1 ab größe
d2\tnews\tbusiness software "bank" transactions bank_account
d4 x
"""
COUNTS = {
    "d1": {"racing": 2, "horse": 1, "fame-photos": 1, "the": 1, "größe": 1},
    "d2": {"business": 1, "software": 1, "bank": 1, "transactions": 1, "bank_account": 1},
    "d4": {},
}
SEQUENCES = """name: d1
target: sport
input: 0: racing (0)
1: horse (1)
2: racing (0)
3: fame-photos (2)
4: the (3)
5: größe (4)

name: d2
target: news
input: 0: business (5)
1: software (6)
2: bank (7)
3: transactions (8)
4: bank_account (9)

name: d4
target: x
input:{}
""".format(" ")
VECTORS = """d1\tsport\tracing(0)=2.0
horse(1)=1.0
fame-photos(2)=1.0
the(3)=1.0
größe(4)=1.0

d2\tnews\tbusiness(5)=1.0
software(6)=1.0
bank(7)=1.0
transactions(8)=1.0
bank_account(9)=1.0

d4\tx\tracing(0)=0.0

"""
SPARSE = """d1 sport  racing:0 2  horse:1 1  fame-photos:2 1  the:3 1  größe:4 1
d2 news  business:5 1  software:6 1  bank:7 1  transactions:8 1  bank_account:9 1
d4 x  racing:0 0

"""
INDEXED = """d1 sport racing:0 horse:1 racing:0 fame-photos:2 the:3 größe:4

d2 news business:5 software:6 bank:7 transactions:8 bank_account:9

d4 x


"""


def as_dicts(corpus):
    return {
        name: {corpus.vocabulary[w]: int(n) for w, n in zip(row.indices, row.data, strict=True)}
        for name, row in zip(corpus.ids, corpus.counts, strict=True)
    }


@pytest.mark.parametrize("text", [LINES, SEQUENCES, VECTORS, SPARSE, INDEXED])
def test_each_form_of_mallet_is_told_by_its_content(write, text):
    assert as_dicts(pb.read_corpus(write("x.mallet", text))) == COUNTS
    packed = write("x.txt.gz", gzip.compress(text.encode()))
    assert as_dicts(pb.read_corpus(packed, format="mallet")) == COUNTS


def test_words_without_their_numbers_and_prefixes_are_read(write):
    plain = SPARSE.replace(":0", "").replace(":1", "").replace(":2", "")
    found = as_dicts(pb.read_corpus(write("x.mallet", plain), layout="matrix"))
    assert found["d1"]["racing"] == 2
    counts = {"a": {"the": 2, "don't": 1}, "b": {"the": 1}}
    svmlight = pb.read_corpus(write("y.mallet", "a\tthe:2 don't:1\nb\tthe:1.0\n"))
    assert svmlight.counts.toarray().tolist() == [[1, 2], [0, 1]]
    assert svmlight.vocabulary.tolist() == sorted(counts["a"])
    assert svmlight.ids is None


def test_options_are_those_of_the_import(write):
    path = write("x.mallet", LINES)
    corpus = pb.read_corpus(path, token_pattern=r"\S+", lowercase=False, stop_words=["the"])
    assert {"Racing", "horse,", '"bank"', "x1"} <= set(corpus.vocabulary)
    assert "the" not in corpus.vocabulary
    few = pb.read_corpus(path, vocabulary=["racing", "bank", "urn"])
    assert few.counts.toarray().tolist() == [[2, 0, 0], [0, 1, 0], [0, 0, 0]]
    with pytest.raises(InvalidArgumentError, match="lowercase: options of lines"):
        pb.read_corpus(write("y.mallet", SEQUENCES), lowercase=False)
    with pytest.raises(InvalidArgumentError, match="layout must be one of"):
        pb.read_corpus(path, layout="binary")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (SEQUENCES.replace("2: racing (0)\n", ""), 5),
        (SEQUENCES.replace("3: fame-photos (2)", "3: fame-pho"), 6),
        (SEQUENCES[: SEQUENCES.index("3: trans")], 10),
        (VECTORS.replace("the(3)=1.0", "the(3)=0.5"), 4),
        (VECTORS[:-2], 13),
        (SEQUENCES + "Rewriting extended pipe\n", 21),
    ],
)
def test_damage_is_named_by_its_line(write, text, line):
    assert_refused(FileFormatError, f"line {line} is", pb.read_corpus, write("x.mallet", text))


def test_instance_lists_and_files_without_words_are_refused(write):
    java = b"\xac\xed\x00\x05sr\x00\x1ccc.mallet.types.InstanceList"
    for name in ("x.mallet", "x.mallet.gz"):
        content = gzip.compress(java) if name.endswith("gz") else java
        with pytest.raises(FileFormatError, match=r"Java object.*--print-instances"):
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
    text = f"name: d1\ntarget: x\ninput: 0: urn{mark}ball (0)\n1: urn (1)\n\n"
    assert pb.read_corpus(write("x.mallet", text)).n_tokens == 2
    lines = write("y.mallet", f"d1 x urn{mark}ball urn\n")
    assert pb.read_corpus(lines, token_pattern=r"(?a:\S+)").n_tokens == 2


@pytest.mark.parametrize(
    "text", ["d1\tx\turn(0)=DIGITS.0\n\n", "d1 x  urn:0 DIGITS\n", "x urn:DIGITS\n"]
)
def test_counts_of_thousands_of_digits(write, text):
    path = write("x.mallet", text.replace("DIGITS", "9" * 4400))
    with pytest.raises(FileFormatError, match=r"the count '9+\.\.\.' is not a whole number"):
        pb.read_corpus(path)


def test_stop_words_whose_letters_no_text_has_give_no_warning(tmp_path):
    path = tmp_path / "x.mallet"
    path.write_text("a label cat cat\nb label dog\n")
    for stop_words in ("english", ["dog", "über"]):
        corpus = pb.read_corpus(path, stop_words=stop_words)
        assert "cat" in corpus.vocabulary
