"""What scoring refuses, and what its results hold."""

import pickle
import re
import weakref
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

import polyabayes as pb
from helpers.small_models import COUNTS, gamma_poisson, lda
from polyabayes import exceptions as errors
from polyabayes.likelihood.reliability import caveats
from polyabayes.models.fitted import fitted_model


def test_derived_quantities():
    documents = pb.Corpus(COUNTS, ids=["a", "b", "c"])
    options = {"event": "sequence", "n_replicates": 8, "random_state": 0}
    result = pb.log_likelihood(gamma_poisson(), documents, "smc", **options)
    n_tokens = COUNTS.sum()
    assert result.total == pytest.approx(result.values.sum(), rel=1e-15)
    assert result.nats_per_token == pytest.approx(result.total / n_tokens, rel=1e-15)
    assert result.nats_per_token_std_error == result.total_std_error / n_tokens
    assert result.perplexity == pytest.approx(np.exp(-result.total / n_tokens), rel=1e-14)
    for level in (0.5, 0.95):
        t = stats.t(7).ppf((1 + level) / 2)
        for bound, sign in zip(result.interval(level), (-1, 1), strict=True):
            expected = result.values + sign * t * result.std_errors
            np.testing.assert_allclose(bound, expected, rtol=1e-14)
        z = stats.norm.ppf((1 + level) / 2)
        expected = result.total + np.array([-z, z]) * result.total_std_error
        np.testing.assert_allclose(result.total_interval(level), expected, rtol=1e-14)
    assert "3 documents (exact 1, smc 2)" in repr(result)
    copy = pickle.loads(pickle.dumps(result))
    assert (copy.total, copy.method, list(copy.ids)) == (result.total, "smc", ["a", "b", "c"])


def test_tables_hold_every_document():
    documents = pb.Corpus(COUNTS, ids=["a", "b", "ü"])
    result = pb.log_likelihood(lda(), documents, "smc", random_state=0)
    frame = result.to_frame()
    assert frame["document"].tolist() == ["a", "b", "ü"]
    assert frame["method"].tolist() == ["smc", "exact", "smc"]
    columns = {"n_tokens": result.n_tokens, "n_eff": result.n_effs}
    columns |= {"log_likelihood": result.values, "std_error": result.std_errors}
    for name, values in columns.items():
        np.testing.assert_array_equal(frame[name], values)
    assert result.to_arrow().to_pydict() == frame.to_dict("list")
    assert pb.log_likelihood(lda(), COUNTS).to_frame()["document"].tolist() == [0, 1, 2]


def test_results_can_be_compared():
    one, other = (pb.log_likelihood(lda(), COUNTS, "smc", random_state=seed) for seed in (0, 1))
    assert one != other
    assert one == one


def test_huge_perplexity_is_infinite():
    model, document = gamma_poisson(1e5, 0.5), [[1, 0, 0, 0]]
    assert pb.log_likelihood(model, document, event="sequence").perplexity == np.inf


def test_counts_have_no_perplexity():
    """A bag is as probable as all its orders together: no number of equally probable words."""
    result = pb.log_likelihood(lda(), COUNTS, event="counts")
    assert np.isnan(result.perplexity)
    assert "perplexity" not in repr(result)
    found = pb.compare({"one": lda(), "other": lda(0.1)}, COUNTS, event="counts")
    assert found.to_frame()["perplexity"].isna().all()
    assert "nan" not in str(found)


def test_unreliable_errors_are_reported():
    topics = [[0.9, 0.1, 0.0, 0.0], [0.0, 0.0, 0.5, 0.5]]
    with pytest.warns(errors.UnreliableErrorWarning, match=r"document 1 .*method='auto'"):
        result = pb.log_likelihood(
            lda(0.1, topics), [[1, 0, 0, 0], [300] * 4], "direct", n_samples=5, random_state=0
        )
    assert result.n_effs[1] == 0


@pytest.mark.parametrize("method", ["direct", "mean-field", "left-to-right", "l2r", "harmonic"])
def test_weights_of_heavy_tails_have_no_reliable_error(method):
    """Replicates that average such weights agree on values far too low, harmonic means too high."""
    law = {"document_length": 60, "topic_word_prior": 0.3, "random_state": 3}
    data = pb.datasets.make_lda_corpus(40, 1000, 20, **law)
    model = lda(0.25, data.topic_word)
    long_run = {"n_samples": 2_000, "n_replicates": 32, "random_state": 1}
    truth = pb.log_likelihood(model, data.corpus, "annealed", **long_run)
    with pytest.warns(errors.UnreliableErrorWarning, match=r"vary too much.*method='auto'"):
        found = pb.log_likelihood(model, data.corpus, method, random_state=0)
    error = np.hypot(found.std_errors, truth.std_errors)
    is_far, is_heavy = np.abs(found.values - truth.values) > 4 * error, found.n_effs == 0
    assert is_heavy.sum() > 20
    if method in {"mean-field", "harmonic"}:
        assert is_far.sum() >= 10
        assert is_heavy[is_far].all()


def test_doubtful_documents_are_done_again():
    """One of 1,500 documents, whose first replicates differ too much."""
    rng = np.random.default_rng(1)
    topics = rng.dirichlet(np.full(200, 0.3), 8) * 0.999 + 0.001 / 200
    weights = rng.dirichlet(np.full(8, 0.1), 1500)
    rows = np.array([rng.multinomial(150, p) for p in weights[:404] @ topics])[400:]
    model = lda(0.1, topics)
    with pytest.warns(errors.UnreliableErrorWarning, match="document 3 first"):
        once = pb.log_likelihood(model, rows, "annealed", random_state=0)
    found = pb.log_likelihood(model, rows, random_state=0)
    assert found.sizes[3] > once.sizes[3]
    assert found.n_effs[3] > 0.37 * 16 > once.n_effs[3]
    error = np.hypot(found.std_errors[3], once.std_errors[3])
    assert abs(found.values[3] - once.values[3]) < 4 * error
    assert (found.values[:3] == once.values[:3]).all()
    streamed = pb.log_likelihood(model, (rows[[row]] for row in range(4)), random_state=0)
    assert (streamed.values == found.values).all()
    # A budget says how far "auto" is exact, and refuses none of the longer runs.
    budgeted = pb.log_likelihood(model, rows, budget=10, random_state=0)
    assert (budgeted.values == found.values).all()


@pytest.mark.parametrize("method", ["auto", "exact", "smc", "smc-lookahead", "direct"])
def test_empty_documents(method):
    result = pb.log_likelihood(lda(), [[0] * 4], method)
    assert (result.total, result.std_errors[0], result.methods[0]) == (0, 0, "exact")
    means = result.nats_per_token, result.nats_per_token_std_error, result.perplexity
    assert np.isnan(means).all()
    model = gamma_poisson()
    nothing = 0.7 * np.log(0.4) + 1.3 * np.log(0.75)
    assert pb.log_likelihood(model, [[0] * 4], method).total == pytest.approx(nothing, rel=1e-14)
    given = pb.log_likelihood(model, [[0] * 4], method, given_length=True)
    assert given.total == pytest.approx(0, abs=1e-14)


@pytest.mark.parametrize("method", ["auto", "exact", "smc", "smc-lookahead", "direct"])
@pytest.mark.parametrize("make", [lda, gamma_poisson])
def test_impossible_words_give_minus_infinity_and_a_warning(make, method):
    model = make(topics=[[0.5, 0.5, 0.0], [0.25, 0.75, 0.0]])
    documents = pb.Corpus([[1, 0, 1], [1, 2, 0]], ids=["strange", "fine"])
    with pytest.warns(errors.ImpossibleDocumentWarning, match="'strange'"):
        result = pb.log_likelihood(model, documents, method, random_state=0)
    lower, upper = result.interval()
    assert result.values[0] == lower[0] == upper[0] == -np.inf
    assert result.std_errors[0] == 0
    assert np.isfinite(result.values[1])
    assert result.total == result.nats_per_token == -np.inf
    assert result.total_interval() == (-np.inf, -np.inf)
    assert result.perplexity == np.inf or result.event == "counts"
    assert np.isfinite([result.total_std_error, result.nats_per_token_std_error]).all()


def test_exact_requests_above_the_budget_say_what_they_cost():
    data = pb.datasets.make_lda_corpus(3, 40, 4, document_length=60, random_state=0)
    corpus, model = data.corpus, lda(0.1, data.topic_word)
    with pytest.raises(errors.BudgetExceededError) as caught:
        pb.log_likelihood(model, corpus, "exact", budget=1000)
    for part in ("document 0", "60 tokens", "4 topics", "multiply-adds", "budget", "smc-lookahead"):
        assert part in str(caught.value)
    estimate = float(re.search(r"about ([\d.e+]+) multiply-adds", str(caught.value))[1])
    assert np.isfinite(pb.log_likelihood(model, corpus, "exact", budget=1.1 * estimate).total)


def test_documents_without_tokens_have_scores_and_no_mean():
    model, empty = lda(), np.zeros((2, 4), dtype=np.int64)
    assert model.score_samples(empty).tolist() == [0.0, 0.0]
    found = pb.log_likelihood(model, empty)
    assert "0.000000 nats, no tokens" in repr(found)
    one_empty = np.array([[2, 1, 0, 0], [0, 0, 0, 0]])
    assert model.score(one_empty) == model.score(one_empty[:1])


def told_by(result):
    return str(errors.PolyabayesWarning(str(caveats(result)[0])))


def test_warnings_name_arguments_that_the_call_takes_and_their_values():
    data = pb.datasets.make_lda_corpus(1, 60, 20, document_length=300, random_state=0)
    model = lda(0.02, data.topic_word)
    for method, size in (("annealed", "n_samples"), ("smc", "n_particles")):
        few = {size: 3, "random_state": 0}
        with pytest.warns(errors.UnreliableErrorWarning) as caught:
            pb.log_likelihood(model, data.corpus, method, **few)
        told = str(caught[0].message)
        assert int(re.search(rf"use {size}=(\d+), they had up to 3$", told)[1]) > 3
    shaky = replace(
        pb.log_likelihood(model, data.corpus, "annealed", n_samples=50, random_state=0),
        n_effs=np.array([2.0]),
    )
    # ln(16 / 2) / 0.16 = 13 times as many, rounded up.
    assert told_by(shaky).endswith("use n_samples=700, they had up to 50")
    biased = replace(shaky, methods=np.array(["left-to-right-particle"]), n_effs=np.array([16.0]))
    assert told_by(biased).startswith("documents scored by a biased method")
    assert told_by(biased).endswith("score them by method='auto'")


def test_warnings_of_estimators_name_the_function_that_takes_the_argument(monkeypatch):
    model = lda()
    shaky = pb.log_likelihood(model, COUNTS, "annealed", n_samples=5, random_state=0)
    monkeypatch.setattr(
        fitted_model, "log_likelihood", lambda *_, **__: replace(shaky, n_replicates=10**6)
    )
    for scored in (model.score, model.score_samples, model.perplexity):
        with pytest.warns(errors.UnreliableErrorWarning) as caught:
            scored(COUNTS)
        assert "use polyabayes.log_likelihood(model, X, n_samples=" in str(caught[0].message)
        assert caught[0].filename == __file__


def stream_of(corpus, size=7):
    return (corpus[start : start + size] for start in range(0, corpus.n_documents, size))


@pytest.fixture(scope="module")
def thirty():
    counts = np.random.default_rng(0).poisson(1.0, (30, 4))
    names = [f"d{row}" for row in range(30)]
    return pb.Corpus(counts, ids=names, exposure=np.repeat([1.0, 2.0], 15))


@pytest.mark.parametrize("options", [{}, {"doc_topic_prior": np.full((30, 2), 0.5)}])
def test_blocks_of_an_iterator_give_the_bits_of_a_corpus(thirty, options):
    whole = pb.log_likelihood(lda(), thirty, random_state=0, **options)
    found = pb.log_likelihood(lda(), stream_of(thirty), random_state=0, **options)
    np.testing.assert_array_equal(found.values, whole.values)
    np.testing.assert_array_equal(found.ids, thirty.ids)
    assert found.total_std_error == whole.total_std_error
    assert found.nats_per_token == whole.nats_per_token
    target = {"total_std_error": 1.0, "random_state": 0} | options
    totals = [pb.log_likelihood(lda(), x, **target).total for x in (thirty, stream_of(thirty))]
    assert totals[0] == totals[1]


def test_blocks_of_an_iterator_keep_their_exposures_and_unseen_words(thirty):
    model = gamma_poisson(vocabulary=list("abcd"))
    words = pb.Corpus(thirty.counts, list("abxd"), exposure=thirty.exposure)
    options = {"unseen": "drop", "missing_words": "zero", "random_state": 0}
    whole = pb.log_likelihood(model, words, **options)
    found = pb.log_likelihood(model, stream_of(words), **options)
    np.testing.assert_array_equal(found.values, whole.values)
    assert found.n_unseen_tokens == whole.n_unseen_tokens > 0


def test_a_block_is_scored_and_forgotten_before_the_one_after_the_next():
    alive = []

    def blocks():
        for _ in range(5):
            block = pb.Corpus(COUNTS)
            alive.append(weakref.ref(block))
            assert sum(held() is not None for held in alive) <= 2
            yield block
            del block

    assert len(pb.log_likelihood(lda(), blocks()).values) == 15


def test_what_a_stopped_iterator_gave_is_kept():
    def blocks():
        yield pb.Corpus(COUNTS)
        raise KeyboardInterrupt

    with pytest.raises(errors.Interrupted) as stopped:
        pb.log_likelihood(lda(), blocks())
    whole = pb.log_likelihood(lda(), COUNTS)
    np.testing.assert_array_equal(stopped.value.partial.values, whole.values)


def test_bags_of_an_iterator_are_documents():
    bags = [[(0, 2), (3, 1)], [(1, 1), (2, 4)]]
    found = pb.log_likelihood(lda(), iter(bags))
    np.testing.assert_array_equal(found.values, pb.log_likelihood(lda(), bags).values)
