"""What holds of every method of log_likelihood."""

import numpy as np
import pytest

import polyabayes as pb
from polyabayes import exceptions as errors
from polyabayes.likelihood.methods import METHODS

UNBIASED = {
    "annealed",
    "auto",
    "chib",
    "direct",
    "exact",
    "l2r",
    "left-to-right",
    "mean-field",
    "smc",
    "smc-lookahead",
}
SAMPLERS = sorted(set(METHODS) - {"auto", "exact", "recursive"})

pytestmark = pytest.mark.filterwarnings("ignore::polyabayes.exceptions.UnreliableErrorWarning")


@pytest.fixture(scope="module")
def data() -> pb.datasets.SyntheticLDA:
    return pb.datasets.make_lda_corpus(12, 60, 3, document_length=15, random_state=0)


def models(data: pb.datasets.SyntheticLDA) -> dict[str, object]:
    return {
        "lda": models_of_lda(data),
        "pfa": pb.PoissonFactorAnalysis.from_parameters(
            shape=[0.7, 1.3, 0.4], probability=[0.9, 0.6, 0.8], topic_word=data.topic_word
        ),
    }


@pytest.mark.parametrize("name", ["lda", "pfa"])
@pytest.mark.parametrize("method", sorted(UNBIASED))
def test_unbiased_methods_agree_with_the_exact_values(data, name, method):
    model = models(data)[name]
    exact = pb.log_likelihood(model, data.corpus, "exact")
    options = {"n_samples": 500} if method == "annealed" else {}
    result = pb.log_likelihood(model, data.corpus, method, random_state=1, **options)
    assert result.is_unbiased
    # Skewed estimates may be low by several of their own errors; the mean document is not.
    deviations = (result.values - exact.values) / np.maximum(result.std_errors, 1e-12)
    assert abs(np.median(deviations)) < 2.5
    assert (result.values - exact.values).max() < 1


def test_flags_say_which_methods_are_biased(data):
    model = models(data)["lda"]
    flags = {
        method: pb.log_likelihood(model, data.corpus, method, n_replicates=2).is_unbiased
        for method in METHODS
    }
    assert {method for method, unbiased in flags.items() if unbiased} == UNBIASED


@pytest.mark.parametrize("method", SAMPLERS)
def test_same_seed_same_bits_for_any_threads(data, method):
    model = models(data)["pfa"]
    one, two, other = (
        pb.log_likelihood(
            model, data.corpus, method, n_replicates=2, random_state=seed, n_jobs=n_jobs
        ).values
        for seed, n_jobs in ((3, 1), (3, 2), (4, 2))
    )
    np.testing.assert_array_equal(one, two)
    assert (one != other).any()


def test_the_recursion_claims_no_error(data):
    result = pb.log_likelihood(models(data)["lda"], data.corpus, "recursive")
    assert np.isfinite(result.values).all()
    assert np.isnan(result.std_errors).all()
    assert np.isnan(result.total_std_error)


@pytest.mark.parametrize("method", METHODS)
def test_topics_that_cannot_produce_a_word_never_get_it(method):
    model = pb.LatentDirichletAllocation.from_parameters(
        doc_topic_prior=0.3, topic_word=[[0.5, 0.5, 0.0, 0.0], [0.0, 0.25, 0.75, 0.0]]
    )
    documents = [[3, 2, 4, 0], [0, 0, 0, 0], [0, 1, 0, 0]]
    result = pb.log_likelihood(model, documents, method, random_state=0)
    assert np.isfinite(result.values).all()
    assert result.values[1] == 0
    with pytest.warns(errors.ImpossibleDocumentWarning):
        assert np.isneginf(pb.log_likelihood(model, [[1, 0, 0, 1]], method).values[0])


@pytest.mark.parametrize("method", SAMPLERS)
@pytest.mark.parametrize(
    ("option", "value"), [("n_samples", 0), ("n_particles", 0), ("n_replicates", 1)]
)
def test_sizes_of_nothing_are_refused(data, method, option, value):
    with pytest.raises(errors.InvalidArgumentError, match=option):
        pb.log_likelihood(models(data)["lda"], data.corpus, method, **{option: value})


def test_an_unknown_method_is_told_the_known_ones(data):
    with pytest.raises(errors.InvalidArgumentError) as caught:
        pb.log_likelihood(models(data)["lda"], data.corpus, "laplace")
    assert all(repr(method) in str(caught.value) for method in METHODS)


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
