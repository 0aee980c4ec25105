import itertools
import math

import numpy as np
import pytest
from scipy.special import gammaln

import polyabayes as pb
from helpers.small_models import known_lda, known_pfa, ln_urn_sum
from polyabayes import exceptions as errors
from polyabayes.likelihood.methods import METHODS

PRIOR = np.array([0.4, 0.9, 0.2])
SHAPE, PROBABILITY = np.array([0.7, 1.3, 0.4]), np.array([0.6, 0.25, 0.8])
TOPICS = np.array([[0.5, 0.3, 0.2, 0.0], [0.1, 0.2, 0.3, 0.4], [0.0, 0.6, 0.1, 0.3]])
RATES = TOPICS * [[2.0], [0.5], [1.0]]
PAIRS = [
    ([2, 0, 1, 0], [0, 1, 0, 1]),
    ([1, 1, 0, 0], [1, 0, 1, 1]),
    ([3, 0, 0, 0], [0, 0, 0, 2]),
    ([0, 0, 0, 0], [1, 2, 0, 0]),
    ([0, 1, 2, 1], [0, 0, 1, 0]),
]
OBSERVED, HELD_OUT = (np.array(part) for part in zip(*PAIRS, strict=True))


def lda(prior=PRIOR, topics=TOPICS, **options):
    return known_lda(prior, topics, random_state=0, **options)


def pfa(topics=RATES, **options):
    return known_pfa(SHAPE, PROBABILITY, topics, random_state=0, **options)


MODELS = {"lda": lda(), "pfa": pfa()}


@pytest.fixture(scope="module")
def data():
    """Documents that mix their topics, divided, and a model of either kind."""
    made = pb.datasets.make_lda_corpus(
        8, 40, 3, document_length=24, doc_topic_prior=0.5, topic_word_prior=0.5, random_state=2
    )
    models = {"lda": lda(0.5, made.topic_word), "pfa": pfa(made.topic_word * [[2.0], [0.5], [1.0]])}
    return models, *pb.split_tokens(made.corpus, random_state=3)


def test_parts_restore_the_documents_and_keep_their_names():
    counts = np.random.default_rng(0).poisson(1.0, (30, 9))
    counts[:3] = 0
    counts[1:3, 4] = 1, 2
    words, ids = list("abcdefghi"), [f"document {i}" for i in range(30)]
    corpus = pb.Corpus(counts, words, ids)
    for share in (0.001, 0.3, 0.5, 0.999):
        parts = pb.split_tokens(corpus, share, random_state=0)
        np.testing.assert_array_equal(sum(part.counts.toarray() for part in parts), counts)
        expected = np.floor(share * counts.sum(axis=1))
        np.testing.assert_array_equal(parts[1].counts.sum(axis=1).A1, expected)
        for part in parts:
            assert (part.vocabulary.tolist(), part.ids.tolist()) == (words, ids)
            assert (part.counts.data > 0).all()


def test_split_repeats_with_its_seed():
    one, again, other = (pb.split_tokens(np.full((9, 9), 3), random_state=s)[1] for s in (1, 1, 2))
    assert (one.counts != again.counts).nnz == 0 < (one.counts != other.counts).nnz


def test_every_token_is_as_likely_to_be_held_out():
    document = np.array([6, 2, 1])
    held_out = pb.split_tokens(np.tile(document, (4_000, 1)), random_state=0)[1].counts.toarray()
    std_errors = held_out.std(axis=0) / math.sqrt(4_000)
    assert (np.abs(held_out.mean(axis=0) - document * 4 / 9) < 4 * std_errors).all()


def test_huge_counts_are_divided():
    observed, held_out = pb.split_tokens([[600_000_000, 3, 300_000_000]], random_state=0)
    assert (observed.n_tokens, held_out.n_tokens) == (450_000_002, 450_000_001)
    # Standard deviation of the first word: about 7,000.
    assert held_out.counts[0, 0] == pytest.approx(300_000_000, abs=50_000)


@pytest.mark.parametrize("name", MODELS)
def test_exact_values_against_all_assignments(name):
    scale = PROBABILITY / (1 - PROBABILITY + PROBABILITY * RATES.sum(axis=1))
    a, q = (PRIOR, TOPICS) if name == "lda" else (SHAPE, scale[:, np.newaxis] * RATES)
    # The last column weighs a token whose word is not known: the sum over all words.
    q = np.c_[q, q.sum(axis=1)]
    expected = [
        ln_urn_sum([*(first + second), 0], a, q) - ln_urn_sum([*first, second.sum()], a, q)
        for first, second in zip(OBSERVED, HELD_OUT, strict=True)
    ]
    result = pb.log_completion(MODELS[name], OBSERVED, HELD_OUT, "exact")
    np.testing.assert_allclose(result.values, expected, atol=1e-11)
    np.testing.assert_array_equal(result.n_tokens, HELD_OUT.sum(axis=1))
    assert result.total_std_error == 0


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("observed", [[0, 0, 0, 0], [4, 0, 1, 0], [7, 20, 3, 15]])
@pytest.mark.parametrize(("n", "event"), [(1, "sequence"), (1, "counts"), (3, "counts")])
def test_probabilities_of_all_completions_sum_to_one(name, observed, n, event):
    words = itertools.combinations_with_replacement(range(4), n)
    held_out = np.array([np.bincount(bag, minlength=4) for bag in words])
    documents = np.tile(observed, (len(held_out), 1))
    result = pb.log_completion(MODELS[name], documents, held_out, "exact", event=event)
    assert np.exp(result.values).sum() == pytest.approx(1, abs=1e-12)


@pytest.mark.filterwarnings("ignore::polyabayes.exceptions.UnreliableErrorWarning")
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("method", sorted(set(METHODS) - {"exact", "harmonic", "recursive"}))
def test_estimates_are_within_their_errors_of_the_exact_values(data, name, method):
    models, *parts = data
    exact = pb.log_completion(models[name], *parts, "exact")
    sizes = {"n_samples": 1_000, "n_particles": 20}
    budget = 100 if method == "auto" else None
    result = pb.log_completion(models[name], *parts, method, random_state=4, budget=budget, **sizes)
    assert (np.abs(result.values - exact.values) < 5 * result.std_errors).all()
    assert (result.std_errors < 0.5).all()
    assert set(result.methods) == {{"auto": "smc-lookahead"}.get(method, method)}


@pytest.mark.filterwarnings("ignore::polyabayes.exceptions.UnreliableErrorWarning")
@pytest.mark.parametrize("name", MODELS)
def test_methods_without_a_known_error(data, name):
    models, *parts = data
    exact, high, screen = (
        pb.log_completion(models[name], *parts, method, random_state=0)
        for method in ("exact", "harmonic", "recursive")
    )
    assert (high.values > exact.values).mean() > 0.7
    assert np.median(np.abs(screen.values - exact.values)) < 1
    assert np.isnan(screen.std_errors).all()


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("method", ["exact", "smc-lookahead", "recursive"])
def test_counts_add_the_number_of_orders(name, method):
    sequence, counts = (
        pb.log_completion(
            MODELS[name], OBSERVED, HELD_OUT, method, event=event, random_state=0
        ).values
        for event in ("sequence", "counts")
    )
    orders = gammaln(HELD_OUT.sum(axis=1) + 1) - gammaln(HELD_OUT + 1).sum(axis=1)
    np.testing.assert_allclose(counts - sequence, orders, rtol=0, atol=1e-12)


@pytest.mark.parametrize("make", [lda, pfa])
@pytest.mark.parametrize("method", METHODS)
def test_impossible_and_empty_parts(make, method):
    model = make(topics=np.array([[0.5, 0.5, 0, 0], [0.2, 0, 0.8, 0], [0, 0.9, 0.1, 0]]))
    observed = [[2, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 1], [0, 0, 0, 0]]
    held_out = [[0, 0, 0, 0], [0, 0, 1, 1], [1, 0, 0, 0], [0, 0, 0, 0]]
    with pytest.warns(errors.ImpossibleDocumentWarning, match="document 1"):
        result = pb.log_completion(model, observed, held_out, method)
    np.testing.assert_array_equal(result.values, [0, -np.inf, np.nan, 0])
    np.testing.assert_array_equal(result.std_errors, 0)


def test_words_are_aligned_and_unseen_ones_dropped():
    model = lda(vocabulary=["a", "b", "c", "d"])
    observed = pb.Corpus([[1, 5, 2]], ["c", "zebra", "a"])
    held_out = pb.Corpus([[1, 1, 3]], ["d", "b", "yak"])
    result = pb.log_completion(model, observed, held_out, unseen="drop")
    expected = pb.log_completion(MODELS["lda"], OBSERVED[:1], HELD_OUT[:1])
    assert (result.total, result.n_unseen_tokens) == (expected.total, 8)
    with pytest.raises(errors.PolyabayesError, match="zebra"):
        pb.log_completion(model, observed, held_out)


@pytest.mark.parametrize("method", ["exact", "smc"])
def test_perplexity_is_that_of_the_same_division(data, method):
    models, observed, held_out = data
    documents = observed.counts + held_out.counts
    rng = np.random.default_rng(6)
    parts = pb.split_tokens(documents, 0.3, rng)
    result = pb.log_completion(models["lda"], *parts, method, random_state=rng)
    options = {"held_out": 0.3, "random_state": 6}
    perplexity = pb.completion_perplexity(models["lda"], documents, method, **options)
    assert perplexity.value == pytest.approx(math.exp(-result.total / parts[1].n_tokens), rel=1e-12)
    expected = perplexity.value * result.total_std_error / parts[1].n_tokens
    assert perplexity.std_error == pytest.approx(expected, rel=1e-12)
    assert (perplexity.std_error == 0) == (method == "exact")


@pytest.mark.parametrize("make", [lda, pfa])
def test_plug_in_perplexity_is_its_formula(data, make):
    models, *parts = data
    model = models[make.__name__]
    observed, held_out = (part.counts.toarray() for part in parts)
    rates = model.transform(observed) @ model.components_
    rates /= rates.sum(axis=1, keepdims=True)
    expected = np.exp(-(held_out * np.log(rates)).sum() / held_out.sum())
    assert pb.plug_in_perplexity(model, *parts) == pytest.approx(expected, rel=1e-12)
    uniform = make(topics=np.full((3, 4), 0.25))
    assert pb.plug_in_perplexity(uniform, OBSERVED, HELD_OUT) == pytest.approx(4, rel=1e-12)
    lacking = make(topics=np.array([[0.5, 0.5, 0, 0]] * 3))
    assert pb.plug_in_perplexity(lacking, [[1, 1, 0, 0]], [[1, 0, 0, 1]]) == math.inf


def test_perplexities_without_held_out_tokens_are_nan():
    documents = [[1, 0, 0, 0], [0, 0, 0, 0]]
    assert math.isnan(pb.completion_perplexity(MODELS["lda"], documents).value)
    assert math.isnan(pb.plug_in_perplexity(MODELS["pfa"], documents, np.zeros((2, 4), dtype=int)))
