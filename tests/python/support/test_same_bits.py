"""Equal seeds give equal bits for any number of threads, and other seeds give other bits."""

from functools import partial

import numpy as np
import pytest
from sklearn.base import clone

import polyabayes as pb
from helpers.small_models import known_lda, known_pfa

LDA, PFA = pb.LatentDirichletAllocation, pb.PoissonFactorAnalysis
PRIORS = ["gap", "gamma", "beta-gamma", "beta-gamma-gamma"]
COUNTS = np.random.default_rng(0).poisson(1.5, (20, 6))
TOPICS = np.random.default_rng(1).dirichlet(np.ones(6), 3)
HALVES = pb.split_tokens(np.random.default_rng(2).poisson(4, (8, 6)), random_state=3)
SCORED = {"lda": known_lda(0.5, TOPICS), "pfa": known_pfa([0.7, 1.3, 0.4], 0.6, 2 * TOPICS)}
EM = {"fit_method": "em", "learn_priors": True, "max_iter": 5}
TRAINED = {
    "lda": LDA(4, max_iter=12),
    **{prior: PFA(4, prior=prior, max_iter=12) for prior in PRIORS},
    "nmf": PFA(4, prior="nmf", n_init=2, max_iter=12),
    "em": LDA(4, **EM),
    "em, grown": LDA(6, init=LDA(4, random_state=0, **EM).fit(COUNTS), **EM),
}
# So many documents that threads share them.
MANY = pb.datasets.make_lda_corpus(200, 300, 5, document_length=80, random_state=0).corpus
MANY = MANY.with_metadata({"side": np.arange(200) % 2, "day": np.arange(200.0) / 200})
SHARED = {
    "lda": LDA(6, learn_priors=False, n_init=2),
    "lda, many topics": LDA(200),
    "lda, covariates": LDA(6, formula="~ side + day"),
    "pfa": PFA(6, n_init=2),
}
NMF = pb.AllocationModel.nmf(3)
TABLE = [[4, 3, 0], [0, 0, 3], [0, 0, 3]]


def arrays_of(model):
    """Parameters, trace, weights and scores of a fitted model."""
    names = ("doc_topic_prior_", "shape_", "probability_", "bound_")
    found = [model.components_, *(getattr(model, x) for x in names if hasattr(model, x))]
    found += [list(model.trace_._columns().values())[1], model.transform(COUNTS)]
    if model._has_likelihood():
        found += [model.score_samples(COUNTS), model.topic_weights(COUNTS).std]
    return found


def trained(model, **run):
    return arrays_of(clone(model).set_params(**run).fit(COUNTS))


def trained_on_many(model, **run):
    found = clone(model).set_params(max_iter=8, **run).fit(MANY)
    return [found.components_, found.last_sample_[0], found.trace_.log_joint, found.topic_counts_]


def in_batches(**run):
    model = LDA(3, max_iter=20).set_params(**run)
    return [model.partial_fit(COUNTS[:10]).partial_fit(COUNTS[10:]).components_]


def completed(model, method, **run):
    found = pb.log_completion(model, *HALVES, method, n_particles=9, n_samples=9, **run)
    return [found.values]


def bounded(method, options=None, **run):
    sizes = {"n_documents": 6, "document_length": 50, "n_samples": 20, "n_particles": 20}
    found = pb.bidirectional_bounds(SCORED["lda"], method, options=options, **sizes, **run)
    errors = found.lower_std_errors, found.upper_std_errors
    return [found.lower, found.upper, *errors, found.sizes, found.data.counts.toarray()]


def with_own_priors(order=slice(None), **run):
    """Scores of documents with priors of their own, which stay with them in any order."""
    priors = np.random.default_rng(4).gamma(0.5, size=(20, 3))
    options = {"n_samples": 20, "doc_topic_prior": priors[order], **run}
    return [pb.log_likelihood(SCORED["lda"], COUNTS[order], "annealed", **options).values[order]]


def network_bounds(**run):
    sizes = {"n_samples": 5, "n_replicates": 2}
    found = NMF.bidirectional_bounds({"doc": 6, "word": 5}, 200, **sizes, **run)
    return [found.lower, found.upper]


def evidence(method, **run):
    return [NMF.log_evidence(TABLE, method, **run).value]


def decomposed(method, **run):
    found = NMF.decompose(TABLE, method, max_iter=40, **run)
    return [found.value, *found.tables.values()]


def drawn(**run):
    found = NMF.sample_posterior(TABLE, 40, **run)
    return [found.log_joint, found.evidence.value, found.counts["word"]]


CALLS = {
    **{f"fit {name}": partial(trained, model) for name, model in TRAINED.items()},
    **{f"fit {x}, threads": partial(trained_on_many, model) for x, model in SHARED.items()},
    "partial_fit": in_batches,
    **{
        f"completion {name} {method}": partial(completed, model, method)
        for name, model in SCORED.items()
        for method in ("smc-lookahead", "smc", "annealed", "left-to-right", "chib")
    },
    **{f"bounds {method}": partial(bounded, method) for method in ("annealed", "smc")},
    "bounds smc-lookahead": partial(bounded, "smc-lookahead"),
    "bounds from the prior": partial(bounded, "annealed", {"start": "prior"}),
    "priors of documents": with_own_priors,
    "bounds of a network": network_bounds,
    "evidence smc": partial(evidence, "smc", n_replicates=3),
    "evidence tempered": partial(
        evidence, "tempered", n_replicates=3, n_samples=128, target_std_error=100.0
    ),
    "draws tempered": drawn,
    "draws smc": partial(drawn, method="smc"),
}
# Different starts may lead to one and the same mode.
MODES = {
    "bound vb": partial(evidence, "vb", max_iter=50, n_restarts=3),
    "tables vb": partial(decomposed, "vb"),
    "tables gibbs": partial(decomposed, "gibbs"),
}


@pytest.mark.filterwarnings("ignore::polyabayes.exceptions.UnreliableErrorWarning")
@pytest.mark.parametrize("name", CALLS | MODES)
def test_bits_depend_on_the_seed_only(name):
    call = (CALLS | MODES)[name]
    expected = call(random_state=7, n_jobs=1)
    for n_jobs in (2, 4, None):
        for one, other in zip(call(random_state=7, n_jobs=n_jobs), expected, strict=True):
            np.testing.assert_array_equal(one, other)
    if name in CALLS:
        assert np.any(call(random_state=8, n_jobs=1)[0] != expected[0])


def test_priors_stay_with_their_documents():
    turned = with_own_priors(slice(None, None, -1), random_state=7)
    np.testing.assert_array_equal(turned, with_own_priors(random_state=7))
