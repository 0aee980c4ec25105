"""Topics that made a corpus are found again."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

import polyabayes as pb


def matched_cosines(learned, true):
    """Cosine of each true topic and the learned one that it is matched with."""
    learned = learned / np.linalg.norm(learned, axis=1, keepdims=True)
    true = true / np.linalg.norm(true, axis=1, keepdims=True)
    cosines = learned @ true.T
    return cosines[linear_sum_assignment(-cosines)]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_pfa_finds_ten_topics_of_two_thousand_documents(seed):
    data = pb.datasets.make_gamma_poisson_corpus(2_000, 500, 10, random_state=seed)
    model = pb.PoissonFactorAnalysis(10, random_state=seed).fit(data.corpus)
    cosines = matched_cosines(model.components_, data.topic_word)
    assert (cosines > 0.95).all(), cosines


@pytest.mark.slow
def test_lda_finds_ten_topics_of_two_thousand_documents():
    # One chain may stay where two topics share a component and another has two: such a mode is
    # thousands of nats worse, so that the log joint tells which chain to take.
    data = pb.datasets.make_lda_corpus(2_000, 500, 10, random_state=0)
    estimator = pb.LatentDirichletAllocation(10)
    chains = pb.sample_chains(estimator, data.corpus, 4, random_state=0)
    best = chains.models[chains.draws["log_joint"].mean(axis=1).argmax()]
    cosines = matched_cosines(best.components_, data.topic_word)
    assert (cosines > 0.95).all(), cosines
