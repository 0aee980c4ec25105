"""Likelihoods of documents under bursty topics, against sums over all topics of all tokens."""

from itertools import product

import numpy as np
import pytest
from scipy.special import gammaln, logsumexp

import polyabayes as pb
from helpers.small_models import known_lda, known_pfa

PHI = np.array([[0.55, 0.3, 0.1, 0.05], [0.1, 0.2, 0.3, 0.4], [0.25, 0.0, 0.05, 0.7]])
ALPHA = np.array([0.4, 0.9, 0.15])
R, P = np.array([0.7, 1.3, 0.4]), np.array([0.6, 0.3, 0.5])
DOCUMENTS = [[3, 0, 2, 1], [1, 1, 1, 1], [0, 0, 5, 1], [2, 3, 0, 0]]
CONCENTRATIONS = [[2.5, 0.3, np.inf], [40.0, 1e3, 5.0], [np.inf, np.inf, 0.1]]


def lda(s, n_topics=3, **options):
    return known_lda(ALPHA[:n_topics], PHI[:n_topics], topic_concentration=s, **options)


def pfa(s):
    return known_pfa(R, P, PHI, topic_concentration=s)


def allocations(a, s, document, scale=1.0):
    """Weights of all topics of all tokens, and the tokens of each topic."""
    words, rate = np.repeat(np.arange(4), document), 1 / np.asarray(s)
    ln_weights, totals = [], []
    scale = np.broadcast_to(scale, len(a))
    for topics in product(range(len(a)), repeat=len(words)):
        n, c, ln_weight = np.zeros(len(a)), np.zeros((len(a), 4)), 0.0
        for k, w in zip(topics, words, strict=True):
            weight = (a[k] + n[k]) * scale[k] * (PHI[k, w] + rate[k] * c[k, w])
            ln_weight += np.log(weight / (1 + rate[k] * n[k])) if weight else -np.inf
            n[k] += 1
            c[k, w] += 1
        ln_weights.append(ln_weight)
        totals.append(n)
    return np.array(ln_weights), np.array(totals)


def true_lda(s, document, a=ALPHA):
    ln_sum = logsumexp(allocations(a, s, document)[0])
    return ln_sum + gammaln(a.sum()) - gammaln(a.sum() + sum(document))


@pytest.mark.parametrize("s", CONCENTRATIONS)
def test_exact_sums_are_sums_over_all_allocations(s):
    found = pb.log_likelihood(lda(s), DOCUMENTS, "exact")
    expected = [true_lda(s, document) for document in DOCUMENTS]
    np.testing.assert_allclose(found.values, expected, rtol=1e-12)
    # Two topics take the totals of topics, whatever the length.
    two = pb.log_likelihood(lda(s[:2], 2), DOCUMENTS, "exact").values
    expected = [true_lda(s[:2], document, ALPHA[:2]) for document in DOCUMENTS]
    np.testing.assert_allclose(two, expected, rtol=1e-12)
    scale = P  # The rows sum to 1: 1 - p + p = 1.
    counts = pb.log_likelihood(pfa(s), DOCUMENTS, "exact").values
    expected = [
        logsumexp(allocations(R, s, document, scale)[0])
        + R @ np.log1p(-P)
        - gammaln(np.array(document) + 1).sum()
        for document in DOCUMENTS
    ]
    np.testing.assert_allclose(counts, expected, rtol=1e-12)


def test_one_topic_is_a_dirichlet_multinomial():
    document, s = np.array([500, 3, 0, 40]), 7.5
    a = s * PHI[0]
    expected = gammaln(s) - gammaln(s + document.sum()) + (gammaln(a + document) - gammaln(a)).sum()
    assert pb.log_likelihood(lda([s], 1), [document], "exact").total == pytest.approx(expected)


def test_large_concentrations_are_lda():
    plain = pb.log_likelihood(lda(None), DOCUMENTS, "exact").values
    found = pb.log_likelihood(lda(1e12), DOCUMENTS, "exact").values
    np.testing.assert_allclose(found, plain, atol=1e-6)
    infinite = pb.log_likelihood(lda(np.inf), DOCUMENTS, "annealed", random_state=0).values
    assert (
        infinite == pb.log_likelihood(lda(None), DOCUMENTS, "annealed", random_state=0).values
    ).all()


def test_probabilities_of_all_documents_of_a_length_sum_to_one():
    words = np.array(list(product(range(4), repeat=3)))
    rows = np.array([np.bincount(row, minlength=4) for row in words])
    values = pb.log_likelihood(lda(CONCENTRATIONS[0]), rows, "exact").values
    assert np.exp(values).sum() == pytest.approx(1.0, abs=1e-12)


METHODS = [
    ("annealed", {}),
    ("annealed", {"options": {"start": "prior"}}),
    ("annealed", {"options": {"start": "lowered"}}),
    ("smc", {"n_particles": 100}),
    ("smc-lookahead", {"n_particles": 100}),
    ("left-to-right", {}),
    ("left-to-right-sequential", {"n_particles": 100}),
    ("chib", {}),
    ("direct", {"n_samples": 1_500}),
]


@pytest.mark.parametrize(("method", "options"), METHODS)
@pytest.mark.filterwarnings("ignore::polyabayes.exceptions.UnreliableErrorWarning")
def test_estimates_are_right_within_their_errors(method, options):
    for s in CONCENTRATIONS[:2]:
        for model in (lda(s), pfa(s)):
            exact = pb.log_likelihood(model, DOCUMENTS, "exact").values
            run = {"n_replicates": 200, "random_state": 3} | options
            found = pb.log_likelihood(model, DOCUMENTS, method, **run)
            error = np.abs(found.values - exact) / found.std_errors
            assert error.max() < 4, (method, error)
            assert found.std_errors.max() < 0.25


@pytest.mark.parametrize("s", [3.0, 1e4])
def test_a_word_may_have_hundreds_of_tokens(s):
    model, document = lda(s, 2), [[900, 0, 0, 40]]
    exact = pb.log_likelihood(model, document, "exact").total
    found = pb.log_likelihood(model, document, "annealed", n_samples=100, random_state=0)
    assert found.total == pytest.approx(exact, abs=4 * found.total_std_error)
    assert found.total_std_error < 0.3


@pytest.mark.parametrize("s", [1e-5, 1e-40, [1e-9, 1e-3, np.inf]])
@pytest.mark.parametrize("rare", [1.0, 1e-5])
def test_words_part_where_concentrations_are_tiny(s, rare):
    documents = [*DOCUMENTS, [30, 0, 6, 1]]
    options = {"doc_topic_prior": np.tile(ALPHA * [1.0, rare, 1.0], (5, 1))}
    exact = pb.log_likelihood(lda(s), documents, "exact", **options).values
    found = pb.log_likelihood(lda(s), documents, "annealed", random_state=0, **options)
    np.testing.assert_array_less(np.abs(found.values - exact), 4 * found.std_errors)
    assert np.abs(found.values - exact).max() < 0.5


def test_a_run_of_a_bursty_document_counts_six_times():
    call = {"method": "annealed", "n_samples": 2_000, "budget": 16 * 2_000 * 3 * 40 * 5}
    with pytest.raises(pb.exceptions.BudgetExceededError, match=r"2\.3e7"):
        pb.log_likelihood(lda(3.0), [[10, 10, 10, 10]], **call)
    pb.log_likelihood(lda(None), [[10, 10, 10, 10]], random_state=0, **call)


# A topic that rarely has the first token of a word, but then all: of 200, or of those of two words.
TOGETHER = [
    ([0.81, 0.28], [116.0, 0.18], [[1.0, 0.0, 0.0], [0.6, 0.12, 0.28]], [200, 7, 1]),
    (
        [0.02, 0.0014],
        [1300.0, 0.48],
        [[0.4, 0.03, 0.57, 0.0], [0.1, 0.8, 0.0, 0.1]],
        [200, 9, 200, 0],
    ),
]


@pytest.mark.parametrize(("alpha", "s", "phi", "document"), TOGETHER)
def test_tokens_of_a_word_change_their_topic_together(alpha, s, phi, document):
    model = known_lda(alpha, phi, topic_concentration=s)
    exact = pb.log_likelihood(model, [document], "exact").total
    for seed in range(5):
        found = pb.log_likelihood(model, [document], "annealed", random_state=seed)
        assert found.total == pytest.approx(exact, abs=4 * found.total_std_error)
        assert found.total_std_error < 0.15


def test_one_topic_may_have_all_tokens_of_a_word():
    """It is the only one, or the only one that can produce the word."""
    documents = [[500, 3, 0, 40], [7, 0, 0, 0]]
    exact = pb.log_likelihood(lda([7.5], 1), documents, "exact").values
    found = pb.log_likelihood(lda([7.5], 1), documents, "annealed", random_state=0).values
    np.testing.assert_allclose(found, exact, rtol=1e-9)
    phi, s = [[0.0, 1.0], [0.001, 0.999]], [1e-3, 1e9]
    two = known_lda([5.0, 1e-4], phi, topic_concentration=s)
    exact = pb.log_likelihood(two, [[400, 30]], "exact").total
    found = pb.log_likelihood(two, [[400, 30]], "annealed", random_state=0)
    assert found.total == pytest.approx(exact, abs=4 * found.total_std_error + 1e-6)
    assert found.total_std_error < 0.3


def test_threads_and_order_do_not_matter():
    rows = np.random.default_rng(0).poisson(3, (12, 4))
    call = {"method": "annealed", "random_state": 1}
    one = pb.log_likelihood(lda(CONCENTRATIONS[0]), rows, n_jobs=1, **call).values
    two = pb.log_likelihood(lda(CONCENTRATIONS[0]), rows[::-1], n_jobs=2, **call).values
    assert (one == two[::-1]).all()


def test_completion_is_a_conditional_probability():
    s, observed, nexts = CONCENTRATIONS[0], [2, 0, 1, 1], np.eye(4, dtype=int)
    found = pb.log_completion(lda(s), [observed] * 4, nexts, method="exact")
    expected = [true_lda(s, observed + one) - true_lda(s, observed) for one in nexts]
    np.testing.assert_allclose(found.values, expected, rtol=1e-11)


def test_topic_weights_are_posterior_means():
    s, document = CONCENTRATIONS[0], DOCUMENTS[0]
    ln_weights, totals = allocations(ALPHA, s, document)
    balls = np.exp(ln_weights - logsumexp(ln_weights)) @ totals + ALPHA
    expected = balls / balls.sum()
    draws = [lda(s, random_state=seed).transform([document])[0] for seed in range(40)]
    np.testing.assert_allclose(np.mean(draws, axis=0), expected, atol=0.02)


def test_simulated_documents_repeat_their_words_and_are_bracketed():
    model = lda(1.0)
    bounds = pb.bidirectional_bounds(model, n_documents=20, document_length=30, random_state=0)
    gap = bounds.upper - bounds.lower
    error = np.hypot(bounds.upper_std_errors, bounds.lower_std_errors)
    assert (gap > -4 * error).all()
    assert np.abs(gap).max() < 2


def test_models_of_other_packages_take_a_concentration():
    from sklearn.decomposition import LatentDirichletAllocation

    theirs = LatentDirichletAllocation(2, random_state=0).fit(DOCUMENTS)
    plain = pb.log_likelihood(theirs, DOCUMENTS, "exact")
    bursty = pb.log_likelihood(theirs, DOCUMENTS, "exact", topic_concentration=2.0)
    assert not np.allclose(plain.values, bursty.values)
    infinite = pb.log_likelihood(theirs, DOCUMENTS, "exact", topic_concentration=np.inf)
    assert (infinite.values == plain.values).all()


def test_words_left_out_take_their_pseudo_counts_along():
    model = lda([3.0, 8.0, np.inf], vocabulary=[*"abcd"])
    kept = np.array([True, False, True, True])
    part = model._of_words(kept)
    mass = PHI[:, kept].sum(axis=1)
    np.testing.assert_allclose(part.topic_concentration_, [3.0 * mass[0], 8.0 * mass[1], np.inf])
