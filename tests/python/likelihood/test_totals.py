"""Totals of corpora to a standard error that is asked for."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy import sparse, stats

import polyabayes as pb
from polyabayes.likelihood import blocks, totals
from polyabayes.likelihood.blocks import BlockScores
from polyabayes.likelihood.totals import Population, score_to_target

N_TOPICS, N_WORDS = 5, 60
TOPICS = np.random.default_rng(3).dirichlet(np.full(N_WORDS, 0.4), N_TOPICS)
MODEL = pb.LatentDirichletAllocation.from_parameters(doc_topic_prior=0.2, topic_word=TOPICS)
# Long enough to be sampled, short enough for exact values.
DATA = pb.datasets.make_lda_corpus(
    30, document_length=60, topic_word=TOPICS, doc_topic_prior=0.2, random_state=1
)


@pytest.fixture(scope="module")
def exact():
    return pb.log_likelihood(MODEL, DATA.corpus, "exact", budget=1e10).total


@pytest.mark.filterwarnings("ignore::polyabayes.exceptions.TargetWarning")
def test_totals_are_within_their_errors_and_these_within_the_target(exact):
    z, errors = [], []
    for seed in range(20):
        found = pb.log_likelihood(MODEL, DATA.corpus, total_std_error=3.0, random_state=seed)
        errors.append(found.total_std_error)
        assert found.reached.all() == (found.total_std_error <= 3.0)
        assert set(found.methods.tolist()) == {"annealed"}
        assert (found.log_bias == 0).all()
        z.append((found.total - exact) / found.total_std_error)
    assert np.median(errors) <= 3.0
    assert abs(np.mean(z)) < 4 / np.sqrt(len(z))
    assert np.mean(np.abs(z) < 1.96) >= 0.88


@pytest.fixture(scope="module")
def many():
    """Documents of which a sample tells the total; some of them many times, and some exact."""
    short = pb.datasets.make_lda_corpus(
        700, document_length=25, topic_word=TOPICS, doc_topic_prior=0.2, random_state=2
    ).corpus.counts
    rows = [*range(600), *(5 for _ in range(40)), *(7 for _ in range(10))]
    return pb.Corpus(sparse.vstack([short[rows], short[600:].minimum(1)], "csr"))


@pytest.mark.slow
def test_a_sample_of_the_documents_tells_the_total(many):
    expected = pb.log_likelihood(MODEL, many, "exact", budget=1e10).total
    z, shares, values = [], [], []
    for seed in range(60):
        found = pb.log_likelihood(MODEL, many, total_std_error=25.0, random_state=seed)
        assert found.total_std_error <= 25
        assert found.reached.all()
        z.append((found.total - expected) / found.total_std_error)
        shares.append(np.mean(found.sizes > found.sizes[found.sizes > 0].min()))
        values.append(found.values)
    assert np.mean(shares) < 0.4
    assert abs(np.mean(z)) < 4 / np.sqrt(len(z))
    assert np.mean(np.abs(z) < 1.96) >= 0.88
    assert np.std(z) > 0.5
    # Copies are one document.
    assert all((x[600:640] == x[5]).all() for x in values)


def test_equal_counts_of_other_exposures_are_drawn_apart():
    """They are different documents: drawn together, they would tell of each other alone."""
    counts = pb.datasets.make_lda_corpus(
        60, document_length=25, topic_word=TOPICS, doc_topic_prior=0.2, random_state=2
    ).corpus.counts
    model = pb.PoissonFactorAnalysis.from_parameters(shape=0.2, probability=0.99, topic_word=TOPICS)
    exposure = 1.0 + 1e-3 * np.arange(1_200)
    corpus = pb.Corpus(counts[np.tile(np.arange(60), 20)], exposure=exposure)
    expected = pb.log_likelihood(model, corpus, "exact", budget=1e10).total
    z = []
    for seed in range(12):
        found = pb.log_likelihood(model, corpus, total_std_error=25.0, random_state=seed)
        z.append((found.total - expected) / found.total_std_error)
    assert np.abs(z).max() < 4
    assert np.mean(np.abs(z) < 1.96) >= 0.8


def test_totals_of_logistic_normals():
    model = pb.DocumentModel.logistic_normal(TOPICS, np.zeros(N_TOPICS), 2.0 * np.eye(N_TOPICS))
    rng = np.random.default_rng(0)
    corpus = rng.poisson(60 * rng.dirichlet(np.full(N_TOPICS, 0.3), 150) @ TOPICS)
    expected = pb.log_likelihood(model, corpus, n_samples=200, random_state=1)
    z = []
    for seed in range(20):
        found = pb.log_likelihood(model, corpus, total_std_error=8.0, random_state=seed)
        assert found.total_std_error <= 8
        error = np.hypot(found.total_std_error, expected.total_std_error)
        z.append((found.total - expected.total) / error)
    assert np.mean(np.abs(z) < 1.96) >= 0.85
    assert np.std(z) > 0.3


class _Known:
    """Scores of documents whose runs are low by known gaps, the less the longer they are."""

    def __init__(self, groups, gaps):
        self.groups, self.gaps, self.n_scored = groups, gaps, dict[int, int]()

    def __call__(self, rows, *, n_temperatures):
        self.n_scored[n_temperatures] = self.n_scored.get(n_temperatures, 0) + len(rows)
        scores = BlockScores.none(len(rows))
        scores.values[:] = -self.gaps[self.groups[rows]] / n_temperatures
        scores.std_errors[:], scores.variances[:] = 1e-4, 1.0 / n_temperatures
        scores.sizes[:] = n_temperatures
        return scores


@pytest.mark.parametrize(
    ("n_copies", "n_single", "target"),
    [(1, 20_000, 200.0), (4_000, 10_000, 2_500.0), (400, 10_000, 600.0)],
)
def test_totals_of_many_documents_and_of_many_copies(n_copies, n_single, target):
    """Longer runs are of ever fewer documents; those of many copies are among them."""
    groups = np.concatenate([np.repeat(np.arange(39), n_copies), 39 + np.arange(n_single)])
    n_groups = 39 + n_single
    gaps = np.exp(np.random.default_rng(0).normal(0, 0.8, n_groups))
    n_tokens = np.random.default_rng(1).integers(50, 150, n_groups)[groups]
    z = []
    for seed in range(60):
        uniforms = np.random.default_rng(seed).random(n_groups)[groups]
        known = _Known(groups, gaps)
        found = score_to_target(known, Population(groups, n_tokens, uniforms), target)
        own = (np.bincount(groups, weights=found.scores.std_errors) ** 2).sum()
        error = np.hypot(np.sqrt(own), found.shared_std_error)
        assert error <= target
        z.append(found.scores.values.sum() / error)
        n_scored = [known.n_scored[size] for size in sorted(known.n_scored)]
        assert n_scored[0] == n_groups or n_scored[1] == n_groups
        assert n_scored[-1] < n_groups / 4
    assert np.mean(np.abs(z) < 1.96) >= 0.85
    assert np.max(np.abs(z)) < 4.5


@pytest.mark.parametrize("target", ["total_std_error", "nats_per_token_std_error"])
def test_bits_depend_on_neither_threads_nor_blocks_nor_storage(many, target, tmp_path, monkeypatch):
    monkeypatch.setattr(blocks, "_TOKENS", (256, 2**16))
    settings = {target: {"total_std_error": 25.0}.get(target, 0.002), "random_state": 1}
    one = pb.log_likelihood(MODEL, many, n_jobs=1, **settings)
    shards = pb.write_shards(many, tmp_path, 3)
    with ThreadPoolExecutor(2) as pool:
        others = [
            pb.log_likelihood(MODEL, many, n_jobs=2, **settings),
            pb.log_likelihood(MODEL, many, executor=pool, **settings),
            pb.log_likelihood(MODEL, shards, **settings),
        ]
    for other in others:
        np.testing.assert_array_equal(other.values, one.values)
        np.testing.assert_array_equal(other.std_errors, one.std_errors)
        assert other.total_std_error == one.total_std_error
    assert getattr(one, target) <= settings[target]


def test_more_effort_goes_where_the_error_is(exact):
    loose = pb.log_likelihood(MODEL, DATA.corpus, total_std_error=100.0, random_state=0)
    close = pb.log_likelihood(MODEL, DATA.corpus, total_std_error=0.5, random_state=0)
    assert close.total_std_error < loose.total_std_error
    assert (close.sizes >= loose.sizes).all()
    assert close.sizes.sum() > 2 * loose.sizes.sum()
    assert abs(close.total - exact) < 4 * close.total_std_error


def test_a_target_that_is_missed_is_told(monkeypatch):
    monkeypatch.setattr(totals, "_MOST_TEMPERATURES", 20)
    with pytest.warns(pb.exceptions.TargetWarning, match=r"not the 0\.01 asked for"):
        found = pb.log_likelihood(MODEL, DATA.corpus, total_std_error=0.01, random_state=0)
    assert not found.reached.any()
    assert found.total_std_error > 0.01


def test_the_bias_of_long_runs_of_all_documents_is_known_from_the_pilot(many, monkeypatch):
    """A target so small that only the longest runs count; shorter ones have few documents."""
    monkeypatch.setattr(totals, "_MOST_TEMPERATURES", 20)
    expected = pb.log_likelihood(MODEL, many, "exact", budget=1e10).total
    with pytest.warns(pb.exceptions.TargetWarning, match=r"not the 0\.001 asked for"):
        found = pb.log_likelihood(MODEL, many, total_std_error=1e-3, random_state=0)
    assert set(found.sizes[found.methods == "annealed"]) == {18}
    assert abs(found.total - expected) < 4 * found.total_std_error < np.inf


def test_what_is_cheap_is_exact():
    short = pb.log_likelihood(MODEL, np.eye(N_WORDS, dtype=int)[:4], total_std_error=1.0)
    assert set(short.methods.tolist()) == {"exact"}
    assert short.total_std_error == 0


def compared(**options):
    other = pb.LatentDirichletAllocation.from_parameters(doc_topic_prior=0.5, topic_word=TOPICS)
    return pb.compare({"one": MODEL, "other": other}, DATA.corpus, **options)


def test_a_comparison_stops_below_the_error_between_documents():
    found = compared(error_share=0.3, random_state=0)
    difference, std_error = found.difference("one", "other")
    assert 0 < found.error_share <= 0.3
    assert f"differences are estimated to {found.error_share:.0%}" in str(found)
    full = compared(error_share=None, random_state=0)
    assert np.isnan(full.error_share)
    assert "estimated to" not in str(full)
    expected, std_error_of_all = full.difference("one", "other")
    assert abs(difference - expected) < 4 * 0.3 * std_error
    assert std_error == pytest.approx(std_error_of_all, rel=0.5)
    assert compared(random_state=0).error_share <= 0.1
    assert [*compared(method="annealed", random_state=0).estimation_errors] == []


def test_the_error_of_a_difference_holds():
    """Mean squares of errors in units of the reported ones: 20 seeds against long runs."""
    long = compared(method="annealed", n_samples=3000, random_state=1)
    expected, _ = long.difference("one", "other")
    errors = []
    for seed in range(20):
        found = compared(error_share=0.3, random_state=seed)
        error = max(found.estimation_errors.values()) / DATA.corpus.n_tokens
        errors.append((found.difference("one", "other")[0] - expected) / error)
    assert np.mean(np.square(errors)) < stats.chi2(20).ppf(0.999) / 20
    assert np.abs(errors).max() < 4
