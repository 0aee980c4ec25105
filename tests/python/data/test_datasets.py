import dataclasses
import importlib.util
import re
import sys
from importlib.machinery import ModuleSpec

import numpy as np
import pytest
from scipy import stats

from helpers.refusals import assert_refused
from polyabayes.datasets import load_python_docs, make_gamma_poisson_corpus, make_lda_corpus
from polyabayes.exceptions import MissingDependencyError

MAKERS = [make_lda_corpus, make_gamma_poisson_corpus]


def lengths(corpus):
    return np.asarray(corpus.counts.sum(axis=1)).ravel()


def assert_mean(samples, expected):
    """The mean of independent samples lies within 4 of its standard errors."""
    error = np.std(samples) / np.sqrt(len(samples))
    assert abs(np.mean(samples) - expected) < 4 * error


@pytest.mark.parametrize("make", MAKERS)
def test_shapes_and_truth(make):
    made = make(30, 20, 4, random_state=0)
    assert made.corpus.shape == (30, 20)
    assert made.topic_word.shape == (4, 20)
    assert made.doc_topic.shape == (30, 4)
    np.testing.assert_allclose(made.topic_word.sum(axis=1), 1.0)
    with pytest.raises(dataclasses.FrozenInstanceError):
        made.corpus = None


@pytest.mark.parametrize("make", MAKERS)
def test_same_random_state_same_corpus(make):
    first, again, other = (make(30, 20, 4, random_state=seed).corpus for seed in (1, 1, 2))
    assert (first.counts != again.counts).nnz == 0
    assert (first.counts != other.counts).nnz > 0


@pytest.mark.parametrize("make", MAKERS)
def test_large_vocabulary_needs_no_dense_table(make):
    made = make(20_000, 1_000_000, 2, random_state=0)
    assert made.corpus.shape == (20_000, 1_000_000)
    assert made.corpus.n_tokens > 100_000


@pytest.mark.parametrize("make", MAKERS)
def test_given_topics_are_used(make):
    topics = np.array([[0.5, 0.5, 0.0, 0.0], [0.0, 0.0, 0.2, 0.8]])
    made = make(4000, topic_word=topics, random_state=0)
    np.testing.assert_array_equal(made.topic_word, topics)
    totals = np.asarray(made.corpus.counts.sum(axis=0)).ravel()
    assert stats.binomtest(totals[0], totals[:2].sum(), 0.5).pvalue > 1e-4
    assert stats.binomtest(totals[2], totals[2:].sum(), 0.2).pvalue > 1e-4


def test_lda_lengths():
    assert (lengths(make_lda_corpus(50, 20, 3, document_length=17).corpus) == 17).all()
    wanted = np.arange(50)
    made = make_lda_corpus(50, 20, 3, document_length=wanted)
    np.testing.assert_array_equal(lengths(made.corpus), wanted)


def test_lda_with_a_word_a_topic_is_dirichlet_multinomial():
    prior, n_tokens = np.array([0.5, 1.0, 2.5]), 12
    made = make_lda_corpus(
        20_000,
        topic_word=np.eye(3),
        doc_topic_prior=prior,
        document_length=n_tokens,
        random_state=3,
    )
    np.testing.assert_array_equal(made.doc_topic_prior, prior)
    counts = made.corpus.counts.toarray()
    mean = prior / prior.sum()
    variance = n_tokens * mean * (1 - mean) * (n_tokens + prior.sum()) / (1 + prior.sum())
    for topic in range(3):
        assert_mean(counts[:, topic], n_tokens * mean[topic])
        assert_mean((counts[:, topic] - n_tokens * mean[topic]) ** 2, variance[topic])
        assert_mean(counts[:, topic] - n_tokens * made.doc_topic[:, topic], 0.0)


def test_gamma_poisson_with_a_word_a_topic_is_negative_binomial():
    shape, probability = np.array([0.5, 3.0]), np.array([0.8, 0.3])
    made = make_gamma_poisson_corpus(
        20_000, topic_word=np.eye(2), shape=shape, probability=probability, random_state=4
    )
    counts = made.corpus.counts.toarray()
    for topic in range(2):
        law = stats.nbinom(shape[topic], 1 - probability[topic])
        assert_mean(counts[:, topic], law.mean())
        assert_mean((counts[:, topic] - law.mean()) ** 2, law.var())
        assert_mean(counts[:, topic] == 0, law.pmf(0))
        assert_mean(counts[:, topic] - made.doc_topic[:, topic], 0.0)


def test_gamma_poisson_rates_need_not_sum_to_one():
    made = make_gamma_poisson_corpus(
        20_000, topic_word=[[3.0, 1.0]], shape=2.0, probability=0.5, random_state=5
    )
    counts = made.corpus.counts.toarray()
    assert_mean(counts[:, 0], 6.0)
    assert_mean(counts[:, 1], 2.0)


@pytest.fixture(scope="module")
def python_docs():
    return load_python_docs()


def test_python_docs_follow_their_rules(python_docs):
    words = python_docs.vocabulary
    assert all(re.fullmatch("[a-z]{3,}", word) for word in words)
    assert not {"the", "and", "with"} & set(words)
    frequencies = np.asarray((python_docs.counts > 0).sum(axis=0)).ravel()
    assert frequencies.min() >= 5
    assert frequencies.max() <= 0.5 * len(python_docs)


def test_python_docs_hold_the_counts_of_the_texts(python_docs):
    from pydoc_data.topics import topics

    expected = re.findall(r"\bstatement\b", topics["if"].lower())
    row = python_docs.ids.tolist().index("topic:if")
    column = python_docs.vocabulary.tolist().index("statement")
    assert python_docs.counts[row, column] == len(expected) > 0


def test_python_docs_without_their_sources(monkeypatch):
    spec = ModuleSpec("argparse", loader=None)
    with monkeypatch.context() as patch:
        patch.setattr(importlib.util, "find_spec", lambda _: spec)
        assert_refused(MissingDependencyError, "without the source of _pydecimal", load_python_docs)
    monkeypatch.setitem(sys.modules, "pydoc_data.topics", None)
    assert_refused(MissingDependencyError, "without pydoc_data", load_python_docs)


def test_python_docs_leave_out_modules_of_other_versions(monkeypatch, python_docs):
    find_spec = importlib.util.find_spec

    def find_fewer(name):
        if name.startswith("xmlrpc"):
            raise ModuleNotFoundError(name)
        return None if name == "turtle" else find_spec(name)

    monkeypatch.setattr(importlib.util, "find_spec", find_fewer)
    left = set(load_python_docs().ids)
    gone = {name.split(".")[0] for name in set(python_docs.ids) - left}
    assert gone == {"turtle", "xmlrpc"}
