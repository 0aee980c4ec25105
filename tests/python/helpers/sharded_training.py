"""Models of one corpus in memory, and blocks so small that a shard has several."""

from functools import cache

import numpy as np

import polyabayes as pb

N_WORDS = 40
DATA = pb.datasets.make_lda_corpus(60, N_WORDS, 3, document_length=25, random_state=0)
NONE = np.zeros((1, N_WORDS), int)
# Empty documents first, within and last, and a run of them that may fill a shard.
CORPUS = pb.Corpus(
    np.concatenate([NONE, DATA.corpus.counts[:30].toarray(), *[NONE] * 20]).tolist()
    + np.concatenate([DATA.corpus.counts[30:].toarray(), NONE]).tolist(),
    vocabulary=[f"w{i}" for i in range(N_WORDS)],
)
SETTINGS = {"max_iter": 14, "burn_in": 8, "thin": 2, "random_state": 3}
MODELS = {
    "fixed": {},
    "learned": {"learn_priors": True},
    "starts": {"n_init": 3, "learn_priors": True},
    "own alpha": {"doc_topic_prior": [0.5, 0.25, 2.0, 0.1], "burn_in": 1},
}
PFA_MODELS = {
    "gap": {"prior": "gap", "shape": 0.5},
    "gamma": {"prior": "gamma", "probability": 0.6, "n_init": 2},
    "beta-gamma": {"prior": "beta-gamma", "shape": [0.5, 0.25, 2.0, 0.1]},
    "beta-gamma-gamma": {"shape_mean": 0.5},
}
# The same on documents of different exposures.
EXPOSED_MODELS = {f"exposed {kind}": options for kind, options in PFA_MODELS.items()}
EXPOSED = CORPUS.with_exposure(np.random.default_rng(1).choice([0.5, 1.0, 1.5, 3.7], 82))
# The same on counts so large that they are split over the topics.
LARGE_MODELS = {"large beta-gamma-gamma": PFA_MODELS["beta-gamma-gamma"]}
LARGE = pb.Corpus(90 * CORPUS.counts, CORPUS.vocabulary).with_exposure(EXPOSED.exposure)


def lda(kind, **options):
    return pb.LatentDirichletAllocation(4, **{**SETTINGS, **MODELS[kind], **options})


def new_model(kind, **options):
    """LDA or Poisson factor analysis."""
    if kind in MODELS:
        return lda(kind, **options)
    own = (PFA_MODELS | EXPOSED_MODELS | LARGE_MODELS)[kind]
    return pb.PoissonFactorAnalysis(4, **{**SETTINGS, **own, **options})


def corpus_of(kind):
    return LARGE if kind in LARGE_MODELS else EXPOSED if kind in EXPOSED_MODELS else CORPUS


def looks_of(kind):
    return {"eval_corpus": corpus_of(kind)[:5], "eval_every": 4}


@cache
def in_memory(kind):
    corpus = corpus_of(kind)
    return new_model(kind).fit(corpus, **looks_of(kind))


def assert_same(found, expected):
    is_lda = isinstance(expected, pb.LatentDirichletAllocation)
    learned = ("doc_topic_prior_", "topic_word_prior_") if is_lda else ("shape_", "probability_")
    for name in ("components_", "topic_counts_", "vocabulary_", *learned):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name), name)
    for name in ("n_iter_", "seed_", "n_features_in_", "n_active_"):
        assert getattr(found, name) == getattr(expected, name), name
    for name in ("n_iter", "log_joint", "held_out"):
        pair = (getattr(model.trace_, name) for model in (found, expected))
        np.testing.assert_array_equal(*pair, name)
    for one, other in zip(found.last_sample_, expected.last_sample_, strict=True):
        np.testing.assert_array_equal(one, other)
