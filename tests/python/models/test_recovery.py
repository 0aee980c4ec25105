"""Topics that made a corpus are found again."""

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


@pytest.mark.parametrize(
    "model",
    [
        pb.LatentDirichletAllocation(8, max_iter=100),
        pb.LatentDirichletAllocation(8, fit_method="em", learn_priors=True),
        pb.PoissonFactorAnalysis(8, max_iter=100),
    ],
)
def test_every_seed_finds_every_topic(model):
    # From uniform topics about one seed in three misses one.
    data = pb.datasets.make_lda_corpus(
        800, 300, 8, document_length=60, doc_topic_prior=0.1, random_state=0
    )
    for seed in range(4):
        model.set_params(random_state=seed).fit(data.corpus)
        cosines = matched_cosines(model.components_, data.topic_word)
        assert (cosines > 0.97).all(), (seed, cosines)
