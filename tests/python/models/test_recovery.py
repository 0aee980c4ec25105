"""Topics that made a corpus are found again."""

import pytest

import polyabayes as pb


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
    law = {"document_length": 60, "doc_topic_prior": 0.1, "random_state": 0}
    data = pb.datasets.make_lda_corpus(800, 300, 8, **law)
    for seed in range(4):
        model.set_params(random_state=seed).fit(data.corpus)
        cosines = pb.topics.match_topics(data.topic_word, model).similarities
        assert (cosines > 0.97).all(), (seed, cosines)
