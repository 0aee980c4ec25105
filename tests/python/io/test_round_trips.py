"""Every writer, and the reader of its format, for any counts, words and labels."""

import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as arrays

import polyabayes as pb
from polyabayes.exceptions import PolyabayesError

COUNTS = arrays.arrays(
    np.int64,
    st.tuples(st.integers(1, 5), st.integers(1, 5)),
    elements=st.one_of(st.just(0), st.integers(0, 5), st.integers(0, 2**31 - 1)),
)
# One line each: no control characters, no surrogates, something to see.
NAMES = st.text(
    st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp", "Zs"]), min_size=1, max_size=5
)


@st.composite
def corpora(draw):
    counts = draw(COUNTS)
    words = draw(st.lists(NAMES, min_size=counts.shape[1], max_size=counts.shape[1], unique=True))
    return pb.Corpus(counts, vocabulary=words)


@pytest.mark.parametrize("name", ["x.ldac", "x.ldac.gz", "x.mtx", "x.npz"])
@given(corpus=corpora())
def test_a_corpus_comes_back(name, corpus):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        pb.write_corpus(corpus, path)
        words = None if name.endswith(".npz") else corpus.vocabulary.tolist()
        back = pb.read_corpus(path, vocabulary=words)
    assert np.array_equal(back.counts.toarray(), corpus.counts.toarray())
    assert back.vocabulary.tolist() == corpus.vocabulary.tolist()


@st.composite
def tensors(draw):
    shape = draw(st.lists(st.integers(1, 3), min_size=1, max_size=3))
    counts = draw(arrays.arrays(np.int64, tuple(shape), elements=st.integers(0, 10**12)))
    axes = ["i", "j", "k"][: len(shape)]
    labels = [
        draw(st.none() | st.lists(NAMES, min_size=size, max_size=size, unique=True))
        for size in shape
    ]
    return pb.CountTensor.from_dense(counts, axes, labels)


@pytest.mark.parametrize("name", ["x.tns", "x.tns.gz", "x.npz"])
@given(tensor=tensors())
def test_a_tensor_comes_back(name, tensor):
    with tempfile.TemporaryDirectory() as folder:
        pb.write_tensor(tensor, Path(folder) / name)
        assert pb.read_tensor(Path(folder) / name) == tensor


@pytest.mark.parametrize("name", ["x.ldac", "docword.x.txt", "x.tns", "x.svmlight"])
@given(content=st.text("0123456789: -.#\n", max_size=30))
def test_any_text_is_read_or_refused_in_one_line(name, content):
    read = pb.read_tensor if name.endswith(".tns") else pb.read_corpus
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_text(content)
        message = ""
        try:
            read(path)
        except PolyabayesError as error:
            message = str(error)
    assert not message or (str(path) in message and "\n" not in message)
