"""The compiled model is made once and kept, and never older than the arrays that it is made of."""

import copy
import gc
import pickle
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

import polyabayes as pb
from helpers.small_models import known_lda, known_pfa
from polyabayes.likelihood import core_parts
from polyabayes.models.fitted import kept_columns

Model = Any
TOPICS = np.array([[0.4, 0.3, 0.2, 0.1], [0.1, 0.1, 0.2, 0.6]])
OTHERS = TOPICS[:, ::-1].copy()
DOCUMENTS = np.array([[2, 0, 1, 0], [0, 3, 0, 1], [1, 1, 1, 1]])
MAKERS = {
    "lda": lambda topics: known_lda([0.3, 0.5], topics, random_state=0),
    "pfa": lambda topics: known_pfa([0.7, 1.2], [0.5, 0.6], topics, random_state=0),
    "dirichlet": lambda topics: pb.DocumentModel.dirichlet(topics, [0.3, 0.5], random_state=0),
    "mixture": lambda topics: pb.DocumentModel.mixture(
        5 * topics, [0.3, 0.7], is_dirichlet=True, random_state=0
    ),
    "logistic-normal": lambda topics: pb.DocumentModel.logistic_normal(
        topics, mean=[0.1], covariance=[[0.8]], random_state=0
    ),
    "softmax": lambda topics: pb.DocumentModel.logistic_normal(
        topics, mean=[0.1, 0.0], covariance=np.eye(2), decoder="softmax", random_state=0
    ),
}


@pytest.fixture
def n_made(monkeypatch):
    """One entry for each compiled model that is made."""
    made = []
    core_model = core_parts.CoreParts.core_model

    def counted(parts):
        made.append(None)
        return core_model(parts)

    monkeypatch.setattr(core_parts.CoreParts, "core_model", counted)
    return made


def scores(model):
    return pb.log_likelihood(model, DOCUMENTS, random_state=1).values


def assert_like_new(model, fresh):
    np.testing.assert_array_equal(scores(model), scores(fresh))
    np.testing.assert_array_equal(model.transform(DOCUMENTS), fresh.transform(DOCUMENTS))


@pytest.mark.parametrize("kind", MAKERS)
def test_one_compiled_model_serves_every_call(kind, n_made):
    model = MAKERS[kind](TOPICS)
    first = scores(model)
    np.testing.assert_array_equal(scores(model), first)
    model.transform(DOCUMENTS)
    model.score(DOCUMENTS)
    model.perplexity(DOCUMENTS)
    model.score_samples(DOCUMENTS)
    assert len(n_made) == 1
    np.testing.assert_array_equal(scores(MAKERS[kind](TOPICS)), first)


def test_threads_share_one_compiled_model(n_made):
    model = MAKERS["lda"](TOPICS)
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda _: scores(model), range(40)))
    assert len(n_made) == 1
    assert all((values == found[0]).all() for values in found)


@pytest.mark.parametrize("kind", MAKERS)
def test_replaced_arrays_are_seen(kind):
    model, fresh = MAKERS[kind](TOPICS), MAKERS[kind](OTHERS)
    scores(model)
    model.components_ = fresh.components_.copy()
    if hasattr(fresh, "word_prior_"):
        model.word_prior_ = fresh.word_prior_.copy()
    assert_like_new(model, fresh)


@pytest.mark.parametrize("kind", MAKERS)
def test_arrays_of_the_caller_may_change_later(kind):
    topics = TOPICS.copy()
    model = MAKERS[kind](topics)
    scores(model)
    topics[:] = OTHERS
    assert_like_new(model, MAKERS[kind](TOPICS))


@pytest.mark.parametrize(
    ("kind", "name"), [("lda", "doc_topic_prior_"), ("pfa", "shape_"), ("dirichlet", "prior_")]
)
def test_parameters_changed_in_place_are_seen(kind, name):
    model = MAKERS[kind](TOPICS)
    before, parameters = scores(model), getattr(model, name).copy()
    setattr(model, name, parameters)
    np.testing.assert_array_equal(scores(model), before)
    parameters[:] = [2.0, 0.1]
    assert (scores(model) != before).any()


def test_topics_of_a_model_cannot_change_unseen():
    model = MAKERS["lda"](TOPICS)
    with pytest.raises(ValueError, match="read-only"):
        model.components_[:] = OTHERS
    # An array of the caller's is compared by its content.
    mine = TOPICS.copy()
    model.components_ = mine
    scores(model)
    mine[:] = OTHERS
    assert_like_new(model, MAKERS["lda"](OTHERS))
    # A read-only view of writable memory is compared by its content, too.
    view = mine[:]
    view.setflags(write=False)
    model.components_ = view
    scores(model)
    mine[:] = TOPICS
    assert_like_new(model, MAKERS["lda"](TOPICS))
    # An array that was made writable again is compared by its content, too.
    own = MAKERS["lda"](TOPICS)
    scores(own)
    own.components_.setflags(write=True)
    own.components_[:] = OTHERS
    assert_like_new(own, MAKERS["lda"](OTHERS))


@pytest.mark.parametrize("method", ["gibbs", "em"])
def test_another_fit_is_seen(method):
    model = pb.LatentDirichletAllocation(2, fit_method=method, max_iter=5, random_state=0)
    before = scores(model.fit(DOCUMENTS))
    after = scores(model.fit(DOCUMENTS[::-1, ::-1]))
    np.testing.assert_array_equal(after, scores(clone(model).fit(DOCUMENTS[::-1, ::-1])))
    assert (before != after).any()


@pytest.mark.parametrize("kind", MAKERS)
@pytest.mark.parametrize(
    "duplicate", [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))]
)
def test_copies_carry_no_compiled_model(kind, duplicate, n_made):
    model = MAKERS[kind](TOPICS)
    size, names = len(pickle.dumps(model)), set(vars(model))
    expected = scores(model)
    assert (len(pickle.dumps(model)), set(vars(model))) == (size, names)
    copied = duplicate(model)
    n_before = len(n_made)
    for _ in range(2):
        np.testing.assert_array_equal(scores(copied), expected)
    assert len(n_made) == n_before + 1


def test_a_model_of_a_file_is_compiled_once(tmp_path, n_made):
    MAKERS["lda"](TOPICS).save(tmp_path / "model.safetensors")
    n_made.clear()
    model = pb.load(tmp_path / "model.safetensors")
    assert_like_new(model, model)
    assert len(n_made) == 1


def test_the_compiled_model_goes_with_its_owner():
    model = MAKERS["lda"](TOPICS)
    scores(model)
    gc.collect()
    n_kept = len(core_parts._kept)
    del model
    gc.collect()
    assert len(core_parts._kept) == n_kept - 1


def test_columns_of_words_are_kept_and_never_older_than_the_words(monkeypatch):
    made: list[None] = []
    columns_of_words = kept_columns.columns_of_words

    def counted(vocabulary):
        made.append(None)
        return columns_of_words(vocabulary)

    monkeypatch.setattr(kept_columns, "columns_of_words", counted)
    model = MAKERS["lda"](TOPICS)
    model.vocabulary_ = np.array(["a", "b", "c", "d"], dtype=object)
    documents = [["d", "d", "a"]]
    first = pb.log_likelihood(model, documents).values
    np.testing.assert_array_equal(first, pb.log_likelihood(model, [[1, 0, 0, 2]]).values)
    model.transform(documents)
    np.testing.assert_array_equal(pb.log_likelihood(model, documents).values, first)
    assert len(made) == 1
    copied = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(pb.log_likelihood(copied, documents).values, first)
    with pytest.raises(ValueError, match="read-only"):
        model.vocabulary_[:] = ["d", "b", "c", "a"]
    model.vocabulary_ = np.array(["d", "b", "c", "a"], dtype=object)
    other = pb.log_likelihood(model, documents).values
    np.testing.assert_array_equal(other, pb.log_likelihood(model, [[2, 0, 0, 1]]).values)
    assert other != first
