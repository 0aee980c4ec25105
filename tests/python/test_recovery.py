"""Topics that made a corpus are found again."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

import polyabayes as pb

LDA, PFA = pb.LatentDirichletAllocation, pb.PoissonFactorAnalysis


def matched_cosines(learned, true):
    """Cosine of each true topic and the learned one that it is matched with."""
    learned = learned / np.linalg.norm(learned, axis=1, keepdims=True)
    true = true / np.linalg.norm(true, axis=1, keepdims=True)
    cosines = learned @ true.T
    return cosines[linear_sum_assignment(-cosines)]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("cls", [LDA, PFA])
def test_ten_topics_of_two_thousand_documents(cls, seed):
    if cls is LDA:
        data = pb.datasets.make_lda_corpus(2_000, 500, 10, random_state=seed)
        model = LDA(10, random_state=seed)
    else:
        data = pb.datasets.make_gamma_poisson_corpus(2_000, 500, 10, random_state=seed)
        model = PFA(10, random_state=seed)
    cosines = matched_cosines(model.fit(data.corpus).components_, data.topic_word)
    assert (cosines > 0.95).all(), cosines
