"""Documents of a corpus selected, split, aligned and filtered, with their metadata."""

import pickle

import numpy as np
import pandas as pd
import pytest

from helpers.refusals import assert_refused
from polyabayes.data.corpus import Corpus
from polyabayes.exceptions import DataWarning, InvalidArgumentError, InvalidTypeError
from polyabayes.io import read_corpus, write_corpus

DENSE = np.array([[2, 0, 1, 0], [0, 0, 0, 0], [0, 3, 0, 5]])
WORDS = ["urn", "ball", "colour", "draw"]
METADATA = {"year": [1999, 2024, 2001], "party": ["left", "right", "left"]}


@pytest.fixture
def corpus():
    return Corpus(DENSE, WORDS, ["a", "b", "c"])


def dense(corpus):
    return corpus.counts.toarray()


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


def test_split_repeats_with_the_same_random_state():
    corpus = Corpus(np.arange(1, 103)[:, np.newaxis])
    first, again, other = (dense(corpus.split(random_state=seed)[1]) for seed in (5, 5, 6))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_generators_go_on_from_split_to_split():
    corpus = Corpus(np.arange(1, 103)[:, np.newaxis])
    for state in (np.random.default_rng(0), np.random.RandomState(0)):
        first, second = (dense(corpus.split(random_state=state)[1]) for _ in range(2))
        assert not np.array_equal(first, second)


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
    # A word that never occurs may be missing.
    aligned, n_dropped = Corpus([[1, 0]], ["urn", "ball"]).aligned_to(["urn"])
    assert (dense(aligned).tolist(), n_dropped) == ([[1]], 0)


def test_alignment_drops_unseen_words_only_on_request(corpus):
    with pytest.raises(InvalidArgumentError, match=r"2 words \('ball', 'draw'\).*unseen='drop'"):
        corpus.aligned_to(["urn", "colour"])
    aligned, n_dropped = corpus.aligned_to(["colour", "urn"], unseen="drop")
    np.testing.assert_array_equal(dense(aligned), [[1, 2], [0, 0], [0, 0]])
    assert n_dropped == 8


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
    frame["wave"] = pd.Categorical([3, 1, None], [3, 2, 1], ordered=True)
    frame["flag"] = pd.Categorical([True, False, True])
    corpus = Corpus(DENSE, WORDS, ["a", "b", "c"], metadata=frame)
    write_corpus(corpus, tmp_path / "x.npz")
    back = read_corpus(tmp_path / "x.npz")
    pd.testing.assert_frame_equal(back.metadata, corpus.metadata)
    months = pd.Categorical(pd.period_range("2020-01", periods=3, freq="M"))
    for bad in ([1, "a", None], pd.cut([1.0, 2.0, 3.0], 2), months):
        with pytest.raises(InvalidTypeError, match=r"metadata cannot be written .*one type"):
            write_corpus(Corpus(DENSE, metadata=pd.DataFrame({"x": bad})), tmp_path / "y.npz")
    assert not (tmp_path / "y.npz").exists()


def test_documents_by_name_and_one_by_one(corpus):
    assert corpus["b"].ids.tolist() == ["b"]
    assert corpus[["c", "a"]].ids.tolist() == ["c", "a"]
    assert [document.n_tokens for document in corpus] == [3, 0, 8]
    assert [document.ids.tolist() for document in corpus] == [["a"], ["b"], ["c"]]
    for name, says in (("z", "no document has the id 'z'"), ("a", "several documents")):
        with pytest.raises(InvalidArgumentError, match=says):
            Corpus(DENSE, ids=["a", "c", "b"])[[0, 0, 2]][name]
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
        assert_refused((InvalidArgumentError, InvalidTypeError), says, many.filter, **options)


def test_duplicates(corpus):
    with pytest.warns(DataWarning, match="'b' and perhaps others name several documents"):
        twice = Corpus(DENSE[[0, 2, 0]], WORDS, ["a", "b", "b"])
    assert twice.duplicated().tolist() == [False, False, True]
    assert twice.duplicated(by="ids").tolist() == [False, False, True]
    assert twice.duplicated(other=corpus[["a"]]).tolist() == [True, False, True]
    assert twice.duplicated("ids", corpus).tolist() == [True, True, True]
    with pytest.raises(InvalidArgumentError, match="other has other words"):
        twice.duplicated(other=Corpus([[1, 2]]))
    assert_refused(InvalidArgumentError, "no ids", Corpus(DENSE).duplicated, by="ids")


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
        assert_refused(InvalidArgumentError, says, corpus.split, 0.2, 0, **options)
