import pickle

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import polyabayes as pb
from polyabayes.data.corpus import Corpus, as_corpus
from polyabayes.exceptions import InvalidArgumentError, InvalidCountsError, InvalidTypeError
from polyabayes.io import read_corpus, write_corpus

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


def test_bad_integers_are_refused():
    with pytest.raises(InvalidCountsError, match=r"Negative values .* -3 at document \(row\) 0"):
        as_corpus(np.array([[1, -3]]))
    with pytest.raises(InvalidCountsError, match=r"above .* 18446744073709551615"):
        as_corpus(np.array([[1, 2**64 - 1]], dtype=np.uint64))
    assert as_corpus([[2**32 - 1]]).n_tokens == 2**32 - 1


def test_nan_is_named_before_the_fractions_around_it():
    with pytest.raises(InvalidCountsError, match="NaN"):
        as_corpus([[0.5, np.nan]])


def test_negative_count_cannot_hide_in_a_duplicate():
    hidden = sparse.coo_matrix(([-1, 2], ([0, 0], [1, 1])), shape=(1, 2))
    with pytest.raises(InvalidCountsError, match="Negative values"):
        as_corpus(hidden)


def test_duplicates_may_not_sum_beyond_the_largest_count():
    large = sparse.coo_matrix(([2**32 - 1, 1], ([0, 0], [1, 1])), shape=(1, 2))
    with pytest.raises(InvalidCountsError, match=r"above 2\*\*32 - 1: 4294967296"):
        as_corpus(large)


def test_index_outside_of_a_sparse_matrix_is_refused():
    broken = sparse.csr_matrix(DENSE)
    broken.indices[0] = 9
    with pytest.raises(InvalidCountsError, match="not a valid sparse matrix"):
        as_corpus(broken)


@pytest.mark.parametrize(
    ("documents", "error", "says"),
    [
        (np.array([1, 2]), InvalidArgumentError, "Expected 2D array, got 1D.*Reshape your data"),
        (np.array(3), InvalidArgumentError, "Expected 2D array, got scalar"),
        (np.ones((2, 2, 2)), InvalidArgumentError, "Expected 2D array, got 3D"),
        (sparse.coo_array([1, 2]), InvalidArgumentError, "Expected 2D array, got 1D"),
        (
            np.empty((0, 3)),
            InvalidArgumentError,
            r"0 sample\(s\) \(shape=\(0, 3\)\) while a minimum of 1 is required\.",
        ),
        (
            sparse.csr_matrix((3, 0)),
            InvalidArgumentError,
            r"0 feature\(s\) \(shape=\(3, 0\)\) while a minimum of 1 is required\.",
        ),
        (pd.DataFrame(), InvalidArgumentError, r"0 sample\(s\)"),
        (DENSE * 1j, InvalidArgumentError, "Complex data not supported"),
        (sparse.csr_matrix(DENSE * 1j), InvalidArgumentError, "Complex data not supported"),
        (["one text", None], InvalidTypeError, "document 1 is None, not a text"),
        (["one text", 2.5], InvalidTypeError, "document 1 is 2.5, not a text"),
        (np.array([["a"]], dtype=object), InvalidTypeError, "could not convert string"),
        (
            np.array([[{"a": 1}]], dtype=object),
            InvalidTypeError,
            "argument must be .* string.* number",
        ),
        ([[1, 2], [3]], InvalidTypeError, "Corpus.from_documents"),
        (np.array([["2020-01-01"]], dtype="M8[D]"), InvalidTypeError, "datetime64"),
        (object(), InvalidTypeError, "object"),
        (pd.DataFrame({"a": ["x"], "b": [1], "c": ["y"]}), InvalidTypeError, "'?y'?"),
        (pd.DataFrame({"a": ["x"]}), InvalidArgumentError, "no column of counts, but 'a'"),
        (pd.DataFrame({"when": pd.to_datetime(["2020-01-01"])}), InvalidTypeError, "'when'"),
    ],
)
def test_what_is_no_count_matrix_is_refused(documents, error, says):
    with pytest.raises(error, match=says):
        as_corpus(documents)


def test_frame_brings_words_and_ids():
    corpus = as_corpus(pd.DataFrame(DENSE, columns=WORDS, index=["a", "b", "c"]))
    assert corpus.vocabulary.tolist() == WORDS
    assert corpus.ids.tolist() == ["a", "b", "c"]
    assert as_corpus(pd.DataFrame(DENSE, columns=WORDS)).ids is None
    assert as_corpus(pd.DataFrame(DENSE)[1:]).ids.tolist() == ["1", "2"]
    with pytest.raises(InvalidArgumentError, match="'urn' twice"):
        as_corpus(pd.DataFrame(DENSE[:, :2], columns=["urn", "urn"]))


def test_missing_value_of_a_nullable_frame_is_nan():
    frame = pd.DataFrame({"urn": pd.array([1, None], dtype="Int64")})
    with pytest.raises(InvalidCountsError, match=r"NaN.*document \(row\) 1"):
        as_corpus(frame)


@pytest.mark.parametrize(
    ("arguments", "error", "says"),
    [
        ({"vocabulary": WORDS[:3]}, InvalidArgumentError, "vocabulary has 3 entries.* 4 words"),
        ({"ids": ["a"]}, InvalidArgumentError, "ids has 1 entries.* 3 documents"),
        ({"vocabulary": ["urn", "a", "b", "urn"]}, InvalidArgumentError, "'urn' twice.* at 3"),
        ({"vocabulary": [1, 2, 3, 4]}, InvalidTypeError, "entry 0 is 1 of type int"),
        ({"vocabulary": "abcd"}, InvalidTypeError, "sequence of str"),
    ],
)
def test_labels_must_fit(arguments, error, says):
    with pytest.raises(error, match=says):
        Corpus(DENSE, **arguments)


def test_sizes(corpus):
    assert (corpus.n_documents, corpus.n_words, corpus.n_tokens, len(corpus)) == (3, 4, 11, 3)
    assert corpus.shape == (3, 4)
    assert repr(corpus) == "<Corpus: 3 documents, 4 words, 11 tokens>"
    assert repr(Corpus([[1]])) == "<Corpus: 1 document, 1 word, 1 token>"


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (slice(1, None), [1, 2]),
        (slice(None, None, -1), [2, 1, 0]),
        ([2, 0, 2], [2, 0, 2]),
        (np.array([-1], dtype=np.int8), [2]),
        ([True, False, True], [0, 2]),
    ],
)
def test_rows_are_selected_in_order(corpus, rows, expected):
    part = corpus[rows]
    np.testing.assert_array_equal(dense(part), DENSE[expected])
    assert part.ids.tolist() == [["a", "b", "c"][row] for row in expected]
    assert part.vocabulary.tolist() == WORDS


@pytest.mark.parametrize(
    ("rows", "error", "says"),
    [
        ([0, 3], InvalidArgumentError, "document 3 does not exist"),
        ([-4], InvalidArgumentError, "document -4 does not exist"),
        ([True, False], InvalidArgumentError, "mask has 2 entries"),
        (slice(0, 0), InvalidArgumentError, "no documents"),
        ([], InvalidArgumentError, "no documents"),
        ([0.5], InvalidTypeError, "integer array"),
        (0, InvalidTypeError, "one-dimensional"),
    ],
)
def test_bad_selection_is_refused(corpus, rows, error, says):
    with pytest.raises(error, match=says):
        corpus[rows]


def test_scikit_learn_can_split_a_corpus(corpus):
    from sklearn.model_selection import train_test_split

    train, test = train_test_split(corpus, test_size=1, shuffle=False)
    assert (train.ids.tolist(), test.ids.tolist()) == (["a", "b"], ["c"])


@pytest.mark.parametrize(("test_size", "n_test"), [(0.2, 21), (0.985, 101), (7, 7)])
def test_split_parts_the_documents_in_order(test_size, n_test):
    corpus = Corpus(np.arange(1, 103)[:, np.newaxis])
    train, test = corpus.split(test_size, random_state=3)
    train_rows, test_rows = dense(train).ravel(), dense(test).ravel()
    assert len(test) == n_test
    assert (np.diff(train_rows) > 0).all()
    assert (np.diff(test_rows) > 0).all()
    assert set(train_rows) | set(test_rows) == set(range(1, 103))
    assert not set(train_rows) & set(test_rows)


@pytest.mark.parametrize(
    "make",
    [
        lambda: 5,
        lambda: np.int64(5),
        lambda: np.random.RandomState(5),
        lambda: np.random.default_rng(5),
        lambda: np.random.SeedSequence(5),
    ],
)
def test_split_repeats_with_the_same_random_state(make):
    corpus = Corpus(np.arange(1, 103)[:, np.newaxis])
    first, again = (dense(corpus.split(random_state=make())[1]) for _ in range(2))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, dense(corpus.split(random_state=6)[1]))


def test_generators_go_on_from_split_to_split():
    corpus = Corpus(np.arange(1, 103)[:, np.newaxis])
    for state in (np.random.default_rng(0), np.random.RandomState(0)):
        first, second = (dense(corpus.split(random_state=state)[1]) for _ in range(2))
        assert not np.array_equal(first, second)


@pytest.mark.parametrize("test_size", [0, 3, -1, 0.0, 1.0, 1.5, 0.99, True, "half", np.nan])
def test_split_leaves_documents_in_both_parts(corpus, test_size):
    with pytest.raises(InvalidArgumentError, match="test_size"):
        corpus.split(test_size)


@pytest.mark.parametrize("state", [-1, "seed", 0.5])
def test_bad_random_state_is_refused(corpus, state):
    with pytest.raises(InvalidArgumentError, match="random_state"):
        corpus.split(random_state=state)


def test_summary(corpus):
    summary = corpus.summary()
    assert (summary.n_documents, summary.n_words, summary.n_tokens) == (3, 4, 11)
    assert (summary.n_nonzero, summary.density) == (4, 4 / 12)
    assert (summary.mean_length, summary.sd_length) == (11 / 3, np.std([3, 0, 8]))
    assert (summary.min_length, summary.max_length, summary.n_empty_documents) == (0, 8, 1)
    assert "3 (1 empty)" in str(summary)
    assert "3.7 +- 3.3, from 0 to 8" in str(summary)


def test_top_words(corpus):
    assert corpus.top_words(2) == [("draw", 5), ("ball", 3)]
    assert Corpus([[1, 1, 2]]).top_words() == [(2, 2), (0, 1), (1, 1)]
    assert corpus.top_words(0) == []


def test_alignment_reorders_the_columns(corpus):
    aligned, n_dropped = corpus.aligned_to(["draw", "new", "urn", "ball", "colour"])
    np.testing.assert_array_equal(
        dense(aligned), [[0, 0, 2, 0, 1], [0, 0, 0, 0, 0], [5, 0, 0, 3, 0]]
    )
    assert n_dropped == 0
    assert aligned.counts.has_canonical_format
    assert aligned.vocabulary.tolist() == ["draw", "new", "urn", "ball", "colour"]
    assert aligned.ids.tolist() == ["a", "b", "c"]
    assert corpus.aligned_to(WORDS)[0] is corpus


def test_alignment_drops_unseen_words_only_on_request(corpus):
    with pytest.raises(InvalidArgumentError, match=r"2 words \('ball', 'draw'\).*unseen='drop'"):
        corpus.aligned_to(["urn", "colour"])
    aligned, n_dropped = corpus.aligned_to(["colour", "urn"], unseen="drop")
    np.testing.assert_array_equal(dense(aligned), [[1, 2], [0, 0], [0, 0]])
    assert n_dropped == 8


def test_word_that_never_occurs_may_be_missing():
    corpus = Corpus([[1, 0]], ["urn", "ball"])
    aligned, n_dropped = corpus.aligned_to(["urn"])
    assert (dense(aligned).tolist(), n_dropped) == ([[1]], 0)


def test_unseen_words_are_shown_in_part():
    corpus = Corpus(np.ones((1, 20), dtype=int), [f"w{i:02}" for i in range(20)])
    with pytest.raises(InvalidArgumentError, match=r"20 words \('w00', .*'w04' and 15 more\)"):
        corpus.aligned_to(["other"])


def test_alignment_refuses_what_it_cannot_do(corpus):
    with pytest.raises(InvalidArgumentError, match="no vocabulary"):
        Corpus(DENSE).aligned_to(WORDS)
    with pytest.raises(InvalidArgumentError, match="unseen must be"):
        corpus.aligned_to(WORDS, unseen="ignore")
    with pytest.raises(InvalidArgumentError, match="holds no words"):
        corpus.aligned_to([])
    with pytest.raises(InvalidArgumentError, match="'urn' twice"):
        corpus.aligned_to(["urn", "urn"])


def test_corpus_survives_pickling(corpus):
    back = pickle.loads(pickle.dumps(corpus))
    np.testing.assert_array_equal(dense(back), DENSE)
    assert back.vocabulary.tolist() == WORDS


def test_masked_counts_are_refused():
    with pytest.raises(InvalidCountsError, match="masked entries"):
        Corpus(np.ma.masked_equal([[5, 3], [4, 0]], 4))


METADATA = {"year": [1999, 2024, 2001], "party": ["left", "right", "left"]}


def test_metadata_stays_with_its_documents():
    corpus = Corpus(DENSE, WORDS, ["a", "b", "c"], metadata=METADATA)
    assert corpus.metadata.index.tolist() == ["a", "b", "c"]
    for part, years in (
        (corpus[[2, 0]], [2001, 1999]),
        (corpus.aligned_to(WORDS[::-1])[0], METADATA["year"]),
        (corpus.with_exposure(2.0), METADATA["year"]),
        (Corpus(corpus), METADATA["year"]),
        (pickle.loads(pickle.dumps(corpus)), METADATA["year"]),
    ):
        assert part.metadata["year"].tolist() == years
        assert part.metadata.index.tolist() == part.ids.tolist()
    train, test = corpus.split(1, random_state=0)
    assert sorted([*train.metadata["year"], *test.metadata["year"]]) == [1999, 2001, 2024]
    unnamed = Corpus(DENSE, metadata=pd.DataFrame(METADATA, index=[7, 8, 9]))
    assert unnamed.metadata.index.tolist() == [0, 1, 2]
    assert unnamed[1:].metadata.index.tolist() == [0, 1]
    assert unnamed.with_metadata(None).metadata is None


def test_metadata_survives_a_file(tmp_path):
    frame = pd.DataFrame(METADATA).astype({"party": pd.CategoricalDtype(["right", "left", "none"])})
    frame["day"] = pd.to_datetime(["2020-01-01", None, "2020-03-01"])
    corpus = Corpus(DENSE, WORDS, ["a", "b", "c"], metadata=frame)
    write_corpus(corpus, tmp_path / "x.npz")
    back = read_corpus(tmp_path / "x.npz")
    pd.testing.assert_frame_equal(back.metadata, corpus.metadata)
    with pytest.raises(InvalidTypeError, match=r"metadata has a column .*one type"):
        write_corpus(Corpus(DENSE, metadata={"mixed": [1, "a", None]}), tmp_path / "y.npz")
    assert not (tmp_path / "y.npz").exists()


@pytest.mark.parametrize(
    ("metadata", "error", "says"),
    [
        ({"year": [1, 2]}, InvalidArgumentError, "metadata has 2 rows for 3 documents"),
        ({"year": [1, 2, 3], "day": [1]}, InvalidArgumentError, "one value for each document"),
        ([1, 2, 3], InvalidTypeError, "metadata must be a DataFrame or map names"),
        (pd.DataFrame([[1, 2]] * 3, columns=["a", "a"]), InvalidArgumentError, "called 'a'"),
    ],
)
def test_metadata_must_fit(metadata, error, says):
    with pytest.raises(error, match=says):
        Corpus(DENSE, metadata=metadata)


def test_documents_by_name_and_one_by_one(corpus):
    assert corpus["b"].ids.tolist() == ["b"]
    assert corpus[["c", "a"]].ids.tolist() == ["c", "a"]
    assert [document.n_tokens for document in corpus] == [3, 0, 8]
    assert [document.ids.tolist() for document in corpus] == [["a"], ["b"], ["c"]]
    for name, says in (("z", "no document has the id 'z'"), ("a", "several documents")):
        with pytest.raises(InvalidArgumentError, match=says):
            Corpus(DENSE, ids=["a", "a", "b"])[name]
    with pytest.raises(InvalidArgumentError, match="the corpus has no ids"):
        Corpus(DENSE)["a"]


def test_filter(corpus):
    assert corpus.filter(min_df=1).n_words == 4
    many = Corpus([[1, 1, 0], [1, 0, 2], [1, 0, 0]], ["the", "urn", "ball"])
    assert many.filter(max_df=0.9).vocabulary.tolist() == ["urn", "ball"]
    assert many.filter(min_df=2).vocabulary.tolist() == ["the"]
    assert many.filter(max_df=2, min_tokens=2).counts.toarray().tolist() == [[0, 2]]
    assert many.filter(stop_words=["urn"]).vocabulary.tolist() == ["the", "ball"]
    for options, says in (
        ({"min_df": 4}, "leaves no words"),
        ({"min_tokens": 9}, "leaves no documents"),
        ({"min_tokens": -1}, "min_tokens must be at least 0"),
        ({"max_df": 1.5}, "max_df must be an int"),
    ):
        with pytest.raises((InvalidArgumentError, InvalidTypeError), match=says):
            many.filter(**options)


def test_duplicates(corpus):
    twice = Corpus(DENSE[[0, 2, 0]], WORDS, ["a", "b", "b"])
    assert twice.duplicated().tolist() == [False, False, True]
    assert twice.duplicated(by="ids").tolist() == [False, False, True]
    assert twice.duplicated(other=corpus[["a"]]).tolist() == [True, False, True]
    assert twice.duplicated("ids", corpus).tolist() == [True, True, True]
    with pytest.raises(InvalidArgumentError, match="other has 2 words, this corpus"):
        twice.duplicated(other=Corpus([[1, 2]]))
    with pytest.raises(InvalidArgumentError, match="no ids"):
        Corpus(DENSE).duplicated(by="ids")


def test_documents_of_another_vocabulary_are_equal_where_their_words_are():
    test = Corpus([[1, 2], [0, 1]], ["urn", "ball"])
    train = Corpus([[2, 0, 1], [1, 3, 0], [1, 4, 0]], ["ball", "law", "urn"])
    assert test.duplicated(other=train).tolist() == [True, False]
    assert test.duplicated(other=train[[1]]).tolist() == [False, False]


def test_splits_by_groups_and_strata():
    labels = np.repeat(["x", "y"], [20, 80])
    groups = np.arange(100) // 4
    corpus = Corpus(np.ones((100, 1), int), metadata={"label": labels, "group": groups})
    train, test = corpus.split(25, 0, stratify="label")
    assert test.metadata["label"].value_counts().to_dict() == {"y": 20, "x": 5}
    train, test = corpus.split(0.2, 0, groups="group")
    assert len(test) == 20
    assert not set(train.metadata["group"]) & set(test.metadata["group"])
    again = corpus.split(0.2, 0, groups=groups)[1]
    assert again.metadata["group"].tolist() == test.metadata["group"].tolist()
    for options, says in (
        ({"groups": "group", "stratify": "label"}, "exclude each other"),
        ({"groups": "day"}, "groups='day'.* no such column; there are 'label', 'group'"),
        ({"groups": [1, 2]}, "one label for each of the 100 documents"),
        ({"groups": np.zeros(100)}, "1 groups cannot be divided"),
    ):
        with pytest.raises(InvalidArgumentError, match=says):
            corpus.split(0.2, 0, **options)


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
    model = pb.LatentDirichletAllocation.from_parameters(
        doc_topic_prior=0.5, topic_word=[[0.5, 0.25, 0.25]], vocabulary=["a", "b", "c"]
    )
    assert pb.log_likelihood(model, empty).values.tolist() == [0.0] * len(empty)
    assert Corpus.from_documents(empty).n_tokens == 0


def test_every_door_takes_bags_and_streams_of_them():
    model = pb.LatentDirichletAllocation.from_parameters(
        doc_topic_prior=0.5, topic_word=[[0.5, 0.2, 0.2, 0.1], [0.1, 0.1, 0.1, 0.7]]
    )
    matrix = [[2, 0, 1, 0], [0, 0, 0, 0], [0, 3, 0, 0]]
    doors = {
        "log_likelihood": lambda X: pb.log_likelihood(model, X, "exact").values,
        "compare": lambda X: pb.compare({"a": model, "b": model}, X).to_frame().iloc[:, 1],
        "transform": lambda X: model.transform(X),
        "score": lambda X: model.score(X),
        "completion": lambda X: pb.completion_perplexity(model, X, random_state=0).value,
        "fit": lambda X: pb.LatentDirichletAllocation(1, max_iter=2, random_state=0).fit(X).seed_,
        "prevalence": lambda X: pb.topics.diagnostics(model, X, n_words=2).to_frame()["tokens"],
    }
    for name, door in doors.items():
        expected = np.asarray(door(matrix), dtype=float)
        for bags in (BAGS, iter(BAGS)):
            found = np.asarray(door(bags), dtype=float)
            np.testing.assert_allclose(found, expected, rtol=1e-12, err_msg=name)
