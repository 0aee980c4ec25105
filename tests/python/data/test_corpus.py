from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import polyabayes as pb
from helpers.small_models import known_lda
from polyabayes.data.corpus import Corpus, as_corpus
from polyabayes.exceptions import DataWarning, InvalidArgumentError, InvalidCountsError

DENSE = np.array([[2, 0, 1, 0], [0, 0, 0, 0], [0, 3, 0, 5]])
WORDS = ["urn", "ball", "colour", "draw"]
FORMATS = ["csr", "csc", "coo", "lil", "dok", "bsr", "dia"]


@pytest.fixture
def corpus():
    return Corpus(DENSE, WORDS, ["a", "b", "c"])


def dense(corpus):
    return corpus.counts.toarray()


class NotAnArray:
    def __init__(self, data):
        self.data = data

    def __array__(self, dtype=None, copy=None):
        return np.array(self.data, dtype=dtype)

    def __array_function__(self, func, types, args, kwargs):
        raise TypeError(f"no {func.__name__} for this one")


@pytest.mark.parametrize(
    "documents",
    [
        DENSE,
        DENSE.astype(np.float32),
        DENSE.astype(np.float16),
        DENSE.astype(np.uint8),
        DENSE.astype(np.uint64),
        DENSE.astype(object),
        DENSE.tolist(),
        np.asfortranarray(DENSE),
        np.matrix(DENSE),
        NotAnArray(DENSE),
        pd.DataFrame(DENSE),
        pd.DataFrame(DENSE).astype("Int64"),
        pd.DataFrame(DENSE).astype(object),
        pd.DataFrame.sparse.from_spmatrix(sparse.csr_matrix(DENSE)),
        pd.DataFrame(DENSE.astype(float)).astype(pd.SparseDtype(float, np.nan)),
        SimpleNamespace(
            i=[0, 2, 0, 2], p=[0, 1, 2, 3, 4], x=[2, 3, 1, 5], Dim=(3, 4), Dimnames=None
        ),
        *(sparse.csr_matrix(DENSE).asformat(name) for name in FORMATS),
        *(sparse.csr_array(DENSE.astype(float)).asformat(name) for name in FORMATS),
    ],
    ids=lambda documents: f"{type(documents).__name__}-{getattr(documents, 'dtype', '')}",
)
def test_every_container_gives_the_same_canonical_counts(documents):
    corpus = as_corpus(documents)
    assert sparse.isspmatrix_csr(corpus.counts)
    assert corpus.counts.dtype == np.int64
    assert corpus.counts.has_canonical_format
    assert corpus.counts.nnz == 4
    np.testing.assert_array_equal(dense(corpus), DENSE)
    assert corpus.vocabulary is None
    assert corpus.ids is None


OF_AXES = {"word": WORDS, "document": ["a", "b", "c"]}


@pytest.mark.parametrize("names", [{}, {"word": WORDS}, {"document": OF_AXES["document"]}, OF_AXES])
def test_axes_of_xarray_without_coordinates_go_by_place(names):
    array = pytest.importorskip("xarray").DataArray(DENSE, dims=("document", "word"), coords=names)
    corpus = as_corpus(array)
    np.testing.assert_array_equal(dense(corpus), DENSE)
    with pytest.warns(
        DataWarning, match=r"named by 'species', .*use polyabayes.Corpus.from_table\(table.T\)"
    ):
        as_corpus(array.rename(document="species"))
    words, ids = corpus.vocabulary, corpus.ids
    assert [words is None, ids is None] == ["word" not in names, "document" not in names]


def test_matrices_of_r_bring_their_names():
    rows, columns = np.nonzero(DENSE)
    names, counts = {"Docs": ["a", "b", "c"], "Terms": WORDS}, sparse.csc_array(DENSE)
    parts = {"i": rows + 1, "j": columns + 1, "v": DENSE[rows, columns], "nrow": [3], "ncol": [4]}
    turned = {"i": parts["j"], "j": parts["i"], "v": parts["v"], "nrow": [4], "ncol": [3]}
    s4 = {"i": counts.indices, "p": counts.indptr, "x": counts.data, "Dim": [3, 4]}
    for matrix in (
        {**parts, "dimnames": names},
        {**turned, "dimnames": dict(reversed(names.items()))},
        SimpleNamespace(**s4, Dimnames=[*names.values()]),
    ):
        corpus = as_corpus(matrix)
        np.testing.assert_array_equal(dense(corpus), DENSE)
        assert [*corpus.ids, *corpus.vocabulary] == ["a", "b", "c", *WORDS]


def test_booleans_count_once():
    np.testing.assert_array_equal(dense(as_corpus(DENSE > 0)), DENSE > 0)


def test_duplicates_are_summed_and_zeros_dropped_without_touching_the_argument():
    data, indices, indptr = [3, 0, 1, 2], [2, 0, 1, 2], [0, 4]
    given = sparse.csr_matrix((np.array(data, dtype=np.int64), indices, indptr), shape=(1, 3))
    corpus = as_corpus(given)
    np.testing.assert_array_equal(dense(corpus), [[0, 1, 5]])
    np.testing.assert_array_equal(corpus.counts.indices, [1, 2])
    assert given.data.tolist() == data
    assert given.indices.tolist() == indices


def test_canonical_counts_are_not_copied():
    given = sparse.csr_matrix(DENSE.astype(np.int64))
    assert np.shares_memory(as_corpus(given).counts.data, given.data)
    assert np.shares_memory(as_corpus(given).counts.indices, given.indices)
    corpus = Corpus(given)
    assert as_corpus(corpus) is corpus
    assert as_corpus([[2**32 - 1]]).n_tokens == 2**32 - 1


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (np.nan, "Input x contains NaN: nan"),
        (np.inf, "Input x contains infinity: inf"),
        (-np.inf, "Input x contains infinity: -inf"),
        (-1, "Negative values in data passed to x: -1"),
        (0.5, "x contains fractional counts: 0.5"),
        (2.0**32, "x contains a count above .* 4294967296"),
        (1e300, "x contains a count above .* 1e.300"),
    ],
)
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_matrix, sparse.csc_array, list])
def test_bad_count_is_refused_with_its_place(value, says, container):
    counts = DENSE.astype(float)
    counts[2, 1] = value
    documents = counts.tolist() if container is list else container(counts)
    with pytest.raises(InvalidCountsError, match=rf"{says}.* at document \(row\) 2, word .* 1\b"):
        as_corpus(documents, "x")


def test_frame_brings_words_and_ids():
    corpus = as_corpus(pd.DataFrame(DENSE, columns=WORDS, index=["a", "b", "c"]))
    assert corpus.vocabulary.tolist() == WORDS
    assert corpus.ids.tolist() == ["a", "b", "c"]
    assert as_corpus(pd.DataFrame(DENSE, columns=WORDS)).ids is None
    assert as_corpus(pd.DataFrame(DENSE)[1:]).ids.tolist() == ["1", "2"]
    with pytest.raises(InvalidArgumentError, match="'urn' twice"):
        as_corpus(pd.DataFrame(DENSE[:, :2], columns=["urn", "urn"]))


def test_sizes(corpus):
    assert (corpus.n_documents, corpus.n_words, corpus.n_tokens, len(corpus)) == (3, 4, 11, 3)
    assert corpus.shape == (3, 4)
    assert repr(corpus) == "<Corpus: 3 documents, 4 words, 11 tokens>"
    assert repr(Corpus([[1]])) == "<Corpus: 1 document, 1 word, 1 token>"


def test_summary(corpus):
    summary = corpus.summary()
    assert (summary.n_documents, summary.n_words, summary.n_tokens) == (3, 4, 11)
    assert (summary.n_nonzero, summary.density) == (4, 4 / 12)
    assert (summary.mean_length, summary.sd_length) == (11 / 3, np.std([3, 0, 8]))
    assert (summary.min_length, summary.max_length, summary.n_empty_documents) == (0, 8, 1)
    assert "3 (1 empty)" in str(summary)
    assert "3.7 ± 3.3, from 0 to 8" in str(summary)


def test_top_words(corpus):
    assert corpus.top_words(2) == [("draw", 5), ("ball", 3)]
    assert Corpus([[1, 1, 2]]).top_words() == [(2, 2), (0, 1), (1, 1)]
    assert corpus.top_words(0) == []


BAGS = [[(0, 2), (2, 1)], [], [(1, 3)]]
TOKENS = [["urn", "ball", "urn"], [], ["ball"]]


@pytest.mark.parametrize("kind", [list, tuple, iter, lambda rows: (row for row in rows)])
def test_lists_and_streams_of_bags_tokens_texts_and_blocks(kind):
    assert dense(as_corpus(kind(BAGS))).tolist() == [[2, 0, 1], [0, 0, 0], [0, 3, 0]]
    assert dense(as_corpus(kind(TOKENS))).tolist() == [[1, 2], [0, 0], [1, 0]]
    assert dense(as_corpus(kind(["the urn", "", "the the"]))).tolist() == [[1, 1], [0, 0], [2, 0]]
    blocks = [Corpus(DENSE, WORDS, list("abc")), Corpus(DENSE[:1], WORDS, ["d"])]
    if kind in (list, iter):
        joined = as_corpus(kind(blocks))
        assert (joined.n_documents, joined.ids.tolist()) == (4, ["a", "b", "c", "d"])
        with pytest.raises(InvalidArgumentError, match="block 1 of documents has other words"):
            as_corpus(kind([blocks[0], Corpus(DENSE)]))


@pytest.mark.parametrize("empty", [[[]], [[], []]])
def test_empty_documents_have_their_likelihood_in_every_form(empty):
    model = known_lda(0.5, [[0.5, 0.25, 0.25]], vocabulary=["a", "b", "c"])
    assert pb.log_likelihood(model, empty).values.tolist() == [0.0] * len(empty)
    assert Corpus.from_documents(empty).n_tokens == 0
    found = Corpus.from_documents([["urn"]], vocabulary=iter(["ball", "urn"]))
    assert found.counts.toarray().tolist() == [[0, 1]]


def test_words_with_their_columns_are_taken_in_the_order_of_the_columns():
    corpora = pytest.importorskip("gensim.corpora")
    gensim = corpora.Dictionary([["urn", "ball"]])
    for vocabulary in (gensim, gensim.token2id, {"urn": 1, "ball": np.int64(0)}):
        assert Corpus([[(0, 2), (1, 1)]], vocabulary).vocabulary.tolist() == ["ball", "urn"]
    assert Corpus([[2, 0, 1]], {"c": 2, "a": 0}).vocabulary.tolist() == ["a", "#1", "c"]


def test_every_door_takes_bags_and_streams_of_them():
    model = known_lda(0.5, [[0.5, 0.2, 0.2, 0.1], [0.1, 0.1, 0.1, 0.7]])
    matrix = [[2, 0, 1, 0], [0, 0, 0, 0], [0, 3, 0, 0]]
    doors = {
        "log_likelihood": lambda X: pb.log_likelihood(model, X, "exact").values,
        "compare": lambda X: pb.compare({"a": model, "b": model}, X).to_frame().iloc[:, 1],
        "transform": lambda X: model.transform(X),
        "score": lambda X: model.score(X),
        "completion": lambda X: pb.completion_perplexity(model, X, random_state=0).value,
        "fit": lambda X: pb.LatentDirichletAllocation(1, max_iter=2, random_state=0).fit(X).seed_,
        "diagnostics": lambda X: pb.topics.diagnostics(model, X, n_words=2).tokens,
        "coherence": lambda X: pb.topics.coherence(model, X, n_words=2),
        "top documents": lambda X: pb.topics.top_documents(model, X).shares,
        "pyLDAvis": lambda X: pb.interop.pyldavis_arguments(model, X)["doc_topic_dists"],
        "score_samples": lambda X: model.score_samples(X),
    }
    for name, door in doors.items():
        expected = np.asarray(door(matrix), dtype=float)
        for bags in (BAGS, iter(BAGS)):
            found = np.asarray(door(bags), dtype=float)
            np.testing.assert_allclose(found, expected, rtol=1e-12, err_msg=name)
