"""What holds of every method of log_likelihood."""

import re

import numpy as np
import pytest

import polyabayes as pb
from helpers.small_models import known_lda
from polyabayes import exceptions as errors
from polyabayes.likelihood.methods import ESTIMATORS, METHODS

SAMPLERS = sorted(set(METHODS) - {"auto", "exact", "recursive"})

pytestmark = pytest.mark.filterwarnings("ignore::polyabayes.exceptions.UnreliableErrorWarning")


@pytest.fixture(scope="module")
def data():
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


RIDGE = [[0.7, 0.69, 0.05], [0.3, 0.31, 0.95]]
SIMILAR = [[0.4, 0.5, 0.3], [0.6, 0.5, 0.7]]


@pytest.mark.parametrize(
    ("topics", "counts", "name", "default", "least"),
    [
        (RIDGE, [200, 200], "population-monte-carlo", (2_000, 20_000), 2_000),
        (SIMILAR, [9, 9], "stratified-importance", (64, 200_000), 64),
    ],
)
def test_results_name_the_draws_of_topic_weights(topics, counts, name, default, least):
    model = known_lda([0.1, 0.13, 0.08], np.transpose(topics))
    exact = pb.log_likelihood(model, [counts], "exact").total

    def score(**options):
        found = pb.log_likelihood(model, [counts], "annealed", random_state=0, **options)
        assert found.is_unbiased
        return found

    drawn = score()
    assert abs(drawn.total - exact) < 4 * drawn.total_std_error
    assert drawn.methods.tolist() == list(drawn.cost) == [name]
    assert default[0] <= drawn.sizes[0] <= default[1]
    assert score(n_samples=5_000).sizes.tolist() == [5_000]
    assert score(n_samples=5).sizes.tolist() == [least]
    # Chains where a start is asked for, though they are slow here.
    chains = [score(options={"start": start}) for start in ("mean-field", "lowered")]
    assert all(found.methods.tolist() == ["annealed"] for found in chains)
    assert len({found.total for found in (drawn, *chains)}) == 3


@pytest.mark.parametrize("method", [m for m in SAMPLERS if m != "annealed"])
def test_topics_that_replicates_may_all_miss_are_a_doubt(method):
    topics = np.full((4, 8), 0.01) + np.kron(np.eye(4), [0.46, 0.46])
    topics /= topics.sum(axis=1, keepdims=True)
    document = [[2, 2, 2, 2, 0, 0, 0, 0]]

    def score(prior):
        model = known_lda(prior, topics)
        return pb.log_likelihood(model, document, method, random_state=0)

    for prior in (1e-3, [0.5, 1e-5, 1e-5, 1e-5], [0.5, 0.005, 0.005, 0.005]):
        with pytest.warns(errors.UnreliableErrorWarning, match=r"tiny priors.*: 1, document 0"):
            assert np.isnan(score(prior).n_effs).all()
    assert np.isfinite(score(0.5).n_effs).all()


def test_the_documented_methods_are_those_of_the_core():
    text = pb.log_likelihood.__doc__
    # Name of each method and its row of the table; the cost ends the first line.
    rows = re.split(
        r"^ {8}``\"([a-z0-9-]+)\"``  ", text.split("\n\n        The cost is")[0], flags=re.M
    )
    assert set(rows[1::2]) == set(METHODS)
    for name, row in zip(rows[1::2], rows[2::2], strict=True):
        cost = re.split(r" {2,}", row.partition("\n")[0].strip())[1:]
        assert METHODS[name].cost.startswith(" ".join(cost)), name
        assert METHODS[name].is_unbiased or not re.search(r"\bunbiased\b", row), name
        assert not METHODS[name].is_unbiased or not re.search(r"\bbiased\b|too high", row), name
    for name in set(ESTIMATORS) - set(METHODS):
        assert f'``"{name}"``' in text
        assert ESTIMATORS[name].cost in " ".join(text.split())


@pytest.mark.parametrize("n_topics", [2, 3, 4, 5])
@pytest.mark.parametrize("prior", [1e-99, 1e-50, 1e-24, 1e-8, 0.1, 1e8, 1e14])
def test_topics_without_common_words_have_a_closed_form(n_topics, prior):
    model = known_lda(prior, np.eye(n_topics))
    # One token of each topic: a^K / (K a)_K.
    ks = np.arange(n_topics)
    expected = n_topics * np.log(prior) - np.log(n_topics * prior + ks).sum()
    for method in ("exact", "smc", "smc-lookahead"):
        result = pb.log_likelihood(model, np.ones((1, n_topics), dtype=int), method, random_state=0)
        assert result.total == pytest.approx(expected, rel=1e-11), method


def models_of_lda(data):
    return known_lda(data.doc_topic_prior, data.topic_word)
