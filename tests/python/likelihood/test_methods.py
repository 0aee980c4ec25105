"""What holds of every method of log_likelihood."""

import numpy as np
import pytest

import polyabayes as pb

pytestmark = pytest.mark.filterwarnings("ignore::polyabayes.exceptions.UnreliableErrorWarning")


@pytest.fixture(scope="module")
def data() -> pb.datasets.SyntheticLDA:
    return pb.datasets.make_lda_corpus(12, 60, 3, document_length=15, random_state=0)


def test_the_recursion_claims_no_error(data):
    result = pb.log_likelihood(models_of_lda(data), data.corpus, "recursive")
    assert np.isfinite(result.values).all()
    assert np.isnan(result.std_errors).all()
    assert np.isnan(result.total_std_error)


@pytest.mark.parametrize("method", ["smc", "smc-lookahead"])
def test_errors_hold_for_long_documents(method):
    data = pb.datasets.make_lda_corpus(150, 300, 3, document_length=300, random_state=1)
    model = models_of_lda(data)
    exact = pb.log_likelihood(model, data.corpus, "exact")
    result = pb.log_likelihood(model, data.corpus, method, random_state=2)
    lower, upper = result.interval(0.95)
    assert ((lower <= exact.values) & (exact.values <= upper)).mean() >= 0.90
    assert abs(result.total - exact.total) < 3 * result.total_std_error


@pytest.mark.slow
@pytest.mark.parametrize("n_topics", [2, 3, 4])
def test_errors_hold_for_many_documents(n_topics):
    data = pb.datasets.make_lda_corpus(2000, 300, n_topics, document_length=100, random_state=3)
    model = models_of_lda(data)
    exact = pb.log_likelihood(model, data.corpus, "exact", budget=1e11)
    result = pb.log_likelihood(model, data.corpus, "smc-lookahead", random_state=4)
    lower, upper = result.interval(0.95)
    covered = ((lower <= exact.values) & (exact.values <= upper)).mean()
    # The part of the error for what the draws cannot see errs on the safe side.
    assert 0.92 <= covered <= 0.99
    assert abs(result.total - exact.total) < 3 * result.total_std_error


@pytest.mark.parametrize("n_topics", [2, 3, 4, 5])
@pytest.mark.parametrize("prior", [1e-99, 1e-50, 1e-24, 1e-8, 0.1, 1e8, 1e14])
def test_topics_without_common_words_have_a_closed_form(n_topics, prior):
    model = pb.LatentDirichletAllocation.from_parameters(
        doc_topic_prior=prior, topic_word=np.eye(n_topics)
    )
    # One token of each topic: a^K / (K a)_K.
    ks = np.arange(n_topics)
    expected = n_topics * np.log(prior) - np.log(n_topics * prior + ks).sum()
    for method in ("exact", "smc", "smc-lookahead"):
        result = pb.log_likelihood(model, np.ones((1, n_topics), dtype=int), method, random_state=0)
        assert result.total == pytest.approx(expected, rel=1e-11), method


def models_of_lda(data: pb.datasets.SyntheticLDA) -> pb.LatentDirichletAllocation:
    return pb.LatentDirichletAllocation.from_parameters(
        doc_topic_prior=data.doc_topic_prior, topic_word=data.topic_word
    )
