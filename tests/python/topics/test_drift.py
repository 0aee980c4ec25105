"""Drift: the size of its test, its power, z-scores of the model, words; what is refused."""

import numpy as np
import pytest
from scipy import stats

import polyabayes as pb
from helpers.small_models import known_lda, known_pfa
from polyabayes.topics.drift import _p_value, _strata

TOPICS = np.random.default_rng(0).dirichlet(np.full(20, 0.3), 2)
MODEL = known_lda(0.5, TOPICS, random_state=0)
FAST = {"n_permutations": 499, "n_simulated": 50, "n_jobs": 1}


def documents(rng, n, lengths, topics, prior=0.5):
    theta = rng.dirichlet(np.full(len(topics), prior), n)
    return rng.multinomial(rng.integers(*lengths, n), theta @ topics)


def test_the_size_is_right_also_of_a_wrong_model_and_longer_documents():
    """p-values of 60 pairs of equal sources; those of the strata alone of 1,000."""
    others = np.random.default_rng(1).dirichlet(np.full(20, 0.5), 3)
    found = []
    for seed in range(60):
        rng = np.random.default_rng([5, seed])
        before, after = (
            documents(rng, n, lengths, others) for n, lengths in ((80, (5, 25)), (40, (10, 40)))
        )
        found.append(pb.drift(MODEL, before, after, random_state=seed, **FAST).p_value)
    assert stats.kstest(found, "uniform").pvalue > 0.001
    assert stats.binom.sf(sum(p <= 0.1 for p in found) - 1, 60, 0.1) > 0.001
    found = []
    for seed in range(1_000):
        rng = np.random.default_rng([6, seed])
        is_new = np.arange(90) >= 60
        lengths = np.where(is_new, rng.poisson(40, 90), rng.poisson(30, 90))
        # The spread of scores depends on the length, as that of heavy-tailed documents does.
        z = rng.standard_t(3, 90) * np.sqrt(lengths)
        strata = _strata(lengths, is_new, rng)
        found.append(_p_value(z, is_new, strata, 199, rng))
    for level in (0.01, 0.05, 0.2):
        assert 0.001 < stats.binom.cdf(sum(p <= level for p in found), 1_000, level) < 0.9995


def test_documents_of_the_model_have_standard_scores():
    rng = np.random.default_rng(2)
    before, after = (documents(rng, 400, (10, 60), TOPICS) for _ in range(2))
    found = pb.drift(MODEL, before, after, random_state=0)
    both = np.concatenate([found.z, found.z_reference])
    assert abs(both.mean()) < 4 * np.sqrt(2 / 400)
    assert both.std() == pytest.approx(1, abs=0.15)
    assert found.p_value > 0.001
    assert found.share_beyond < 0.05
    assert found.to_frame()["n_tokens"].tolist() == after.sum(axis=1).tolist()


def test_drift_is_found_with_its_documents_and_words():
    rng = np.random.default_rng(3)
    before, after = (documents(rng, 100, (20, 40), TOPICS) for _ in range(2))
    rare = int(TOPICS.sum(axis=0).argmin())
    after[::2, rare] += 6
    words = [f"w{i}" for i in range(20)]
    model = known_lda(0.5, TOPICS, vocabulary=words, random_state=0)
    new = pb.Corpus(np.column_stack([after, np.ones(100, int)]), vocabulary=[*words, "urn"])
    found = pb.drift(model, pb.Corpus(before, vocabulary=words), new, random_state=0)
    assert found.p_value == 1e-4
    assert found.shift < -1
    assert found.share_beyond > 0.3
    assert found.z[::2].mean() < found.z[1::2].mean() - 2
    assert found.words["word"][0] == f"w{rare}"
    assert found.words["nats"].sum() > 0.1
    assert found.words["share"].sum() == pytest.approx(1)
    assert found.unseen == pytest.approx(100 / new.n_tokens)
    assert found.unseen_reference == 0
    assert f"words that carry it: w{rare}" in str(found)
    again = pb.drift(model, pb.Corpus(before, vocabulary=words), new, random_state=0)
    np.testing.assert_array_equal(again.z, found.z)
    assert again.p_value == found.p_value


def test_exposures_and_foreign_models_are_taken():
    rng = np.random.default_rng(4)
    pfa = known_pfa([2.0, 2.0], [0.8, 0.8], TOPICS, random_state=0)
    exposure = rng.lognormal(0, 1, 300)
    rates = rng.gamma(2.0, 4.0, (300, 2)) * exposure[:, np.newaxis]
    corpus = pb.Corpus(rng.poisson(rates @ TOPICS), exposure=exposure)
    found = pb.drift(pfa, corpus[:150], corpus[150:], random_state=0)
    assert found.p_value > 0.001
    assert abs(np.mean(found.z)) < 0.5
