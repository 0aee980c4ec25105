"""Draws of topics, topic weights and topics of tokens: by callbacks and by several chains."""

import copy
import pickle

import numpy as np
import pytest

import polyabayes as pb
from polyabayes import exceptions as errors
from polyabayes.models import latent_draws

LDA, PFA = pb.LatentDirichletAllocation, pb.PoissonFactorAnalysis
EVERY = ("phi", "theta", "z")
KINDS = {
    "lda": LDA(3, doc_topic_prior=[0.2, 0.5, 1.0], max_iter=20, thin=2),
    "lda with learned priors": LDA(3, learn_priors=True, max_iter=20, thin=2),
    "gap": PFA(3, prior="gap", shape=[0.3, 1.0, 2.0], max_iter=20, thin=2),
    "beta-gamma-gamma": PFA(3, max_iter=20, thin=2),
}


def make_corpus(*, exposed=False):
    topics = np.kron(np.eye(3), np.full(4, 0.25))
    made = pb.datasets.make_lda_corpus(
        12, topic_word=topics, document_length=15, doc_topic_prior=0.3, random_state=0
    ).corpus
    counts = made.counts.toarray()
    counts[5] = 0
    sizes = np.linspace(0.5, 3, 12) if exposed else None
    return pb.Corpus(counts, [f"w{i}" for i in range(12)], [f"d{i}" for i in range(12)], sizes)


def token_axes(corpus):
    cells = corpus.counts.tocoo()
    return np.repeat(cells.row, cells.data), np.repeat(cells.col, cells.data)


def tallies(corpus, z, n_topics):
    """Tokens of documents and topics, and of topics and words."""
    documents, words = token_axes(corpus)
    by_document = np.zeros((corpus.n_documents, n_topics))
    by_word = np.zeros((n_topics, corpus.n_words))
    np.add.at(by_document, (documents, z), 1)
    np.add.at(by_word, (z, words), 1)
    return by_document, by_word


def dirichlet_moments(parameters):
    """Mean and variance of the entries of Dirichlet rows."""
    total = parameters.sum(axis=1, keepdims=True)
    mean = parameters / total
    return mean, mean * (1 - mean) / (total + 1)


def gamma_moments(shapes, rates):
    return shapes / rates, shapes / rates**2


class Snapshots:
    """A callback that keeps draws, and many of the same state at the last look."""

    def __init__(self, n_draws=0):
        self.n_draws, self.seen, self.many, self.sample = n_draws, [], [], None

    def __call__(self, model):
        self.seen.append(model.posterior_draw())
        if model.n_iter_ == model.max_iter:
            self.sample = model.last_sample_
            self.many = [model.posterior_draw(random_state=seed) for seed in range(self.n_draws)]


@pytest.mark.parametrize("exposed", [False, True])
@pytest.mark.parametrize("estimator", KINDS.values(), ids=KINDS)
def test_draws_have_the_moments_of_the_state(estimator, exposed):
    if exposed and isinstance(estimator, LDA):
        pytest.skip("LDA has no use for exposures")
    corpus = make_corpus(exposed=exposed)
    snapshots = Snapshots(4000)
    model = copy.deepcopy(estimator).set_params(random_state=0)
    model.fit(corpus, callback=snapshots, eval_every=10)
    by_document, by_word = tallies(corpus, snapshots.many[0]["z"], 3)
    np.testing.assert_array_equal(by_word.sum(axis=1), model.topic_counts_)
    sample = snapshots.sample
    if isinstance(model, LDA):
        beta = sample.topic_word_prior
        theta = dirichlet_moments(sample.doc_topic_prior + by_document)
    else:
        beta, p = 0.1, sample.probability
        sizes = np.ones(12) if corpus.exposure is None else corpus.exposure
        theta = gamma_moments(sample.shape + by_document, (1 - p) / p + sizes[:, np.newaxis])
    expected = {"theta": theta, "phi": dirichlet_moments(beta + by_word)}
    for name, (mean, variance) in expected.items():
        draws = np.array([draw[name] for draw in snapshots.many])
        z_mean = (draws.mean(axis=0) - mean) / np.sqrt(variance / len(draws))
        assert np.abs(z_mean).max() < 4.5, name
        squares = (draws - mean) ** 2
        z_variance = (squares.mean(axis=0) - variance) / (squares.std(axis=0) / len(draws) ** 0.5)
        # Squares of skewed variates: their own error is from few large ones.
        assert np.median(np.abs(z_variance)) < 1.2, name
        assert np.abs(z_variance).max() < 8, name
    for draw in snapshots.many[:5]:
        np.testing.assert_allclose(draw["phi"].sum(axis=1), 1, rtol=1e-12)
        np.testing.assert_array_equal(draw["z"], snapshots.many[0]["z"])


def test_equal_draws_for_any_threads_and_workers(spawned):
    corpus = make_corpus()
    found = []
    for n_jobs in (1, 3):
        estimator = LDA(3, max_iter=20, thin=2, n_jobs=n_jobs)
        found.append(pb.sample_chains(estimator, corpus, 3, variables=EVERY, random_state=1))
    spread = {"random_state": 1, "executor": spawned}
    estimator = LDA(3, max_iter=20, thin=2)
    found.append(pb.sample_chains(estimator, corpus, 3, variables=EVERY, **spread))
    for other in found[1:]:
        for name, draws in found[0].draws.items():
            np.testing.assert_array_equal(other.draws[name], draws)
        for mine, first in zip(other.models, found[0].models, strict=True):
            np.testing.assert_array_equal(mine.components_, first.components_)
    assert all(model.n_jobs is None for model in found[-1].models)


def test_asking_for_variables_changes_no_other_bit():
    corpus, estimator = make_corpus(), PFA(3, max_iter=20, thin=2)
    plain = pb.sample_chains(estimator, corpus, 2, random_state=1)
    asked = pb.sample_chains(estimator, corpus, 2, variables=["z", "phi"], random_state=1)
    assert plain.corpus is None
    assert set(asked.draws) == {*plain.draws, "phi", "z"}
    for name, draws in plain.draws.items():
        np.testing.assert_array_equal(asked.draws[name], draws)
    for one, other in zip(plain.models, asked.models, strict=True):
        np.testing.assert_array_equal(one.components_, other.components_)
    assert asked.summary().equals(plain.summary())


def test_chains_hold_what_a_callback_reads():
    corpus, estimator = make_corpus(), LDA(3, max_iter=20, burn_in=10, thin=2)
    chains = pb.sample_chains(estimator, corpus, 2, variables=EVERY, random_state=1)
    snapshots = Snapshots()
    seed = chains.models[1].seed_
    copy.deepcopy(chains.models[1]).fit(corpus, callback=snapshots, eval_every=2)
    assert chains.models[1].seed_ == seed
    for draw, seen in enumerate(snapshots.seen[5:]):
        for name in EVERY:
            np.testing.assert_array_equal(chains.draws[name][1, draw], seen[name])
    assert {name: chains.draws[name].shape for name in EVERY} == {
        "phi": (2, 5, 3, 12),
        "theta": (2, 5, 12, 3),
        "z": (2, 5, corpus.n_tokens),
    }
    assert chains.draws["z"].dtype == np.uint16


def test_changing_a_draw_does_not_change_the_chain():
    corpus = make_corpus()

    def spoil(model):
        model.posterior_draw("z")["z"][:] = 0

    model = LDA(3, max_iter=20, random_state=0)
    spoiled = copy.deepcopy(model).fit(corpus, callback=spoil, eval_every=5)
    np.testing.assert_array_equal(spoiled.components_, model.fit(corpus).components_)


def test_a_model_keeps_topics_of_tokens_no_longer_than_its_callback():
    corpus, copies = make_corpus(), []

    def keep(model):
        copies.extend([copy.deepcopy(model), pickle.loads(pickle.dumps(model))])
        assert model.posterior_draw(["theta", "phi"]).keys() == {"phi", "theta"}

    model = LDA(3, max_iter=20, random_state=0).fit(corpus, callback=keep, eval_every=20)
    for one in (*copies, model):
        phi = one.posterior_draw("phi")["phi"]
        np.testing.assert_array_equal(phi, model.posterior_draw("phi")["phi"])
        for name in ("theta", "z"):
            with pytest.raises(errors.InvalidArgumentError, match="callback"):
                one.posterior_draw(name)


def test_shards_have_topics_only(tmp_path):
    corpus, seen = make_corpus(), []
    shards = pb.write_shards(corpus, tmp_path)

    def keep(model):
        seen.append(model.posterior_draw("phi")["phi"])
        with pytest.raises(errors.InvalidArgumentError, match="documents in memory"):
            model.posterior_draw("theta")

    model = LDA(3, max_iter=20, random_state=0)
    model.fit(shards, callback=keep, eval_every=10)
    snapshots = Snapshots()
    model.fit(corpus, callback=snapshots, eval_every=10)
    for one, other in zip(seen, snapshots.seen, strict=True):
        np.testing.assert_array_equal(one, other["phi"])


def test_draws_that_do_not_fit_are_refused_before_any_work(monkeypatch):
    corpus, model = make_corpus(), LDA(3, max_iter=20, thin=2)
    # Five draws of two chains, which are put together.
    needed = 2 * 2 * 5 * (8 * 3 * 12 + 8 * 12 * 3 + 2 * corpus.n_tokens)
    monkeypatch.setattr(latent_draws, "memory_of_machine", lambda: needed)
    pb.sample_chains(model, corpus, 2, variables=EVERY, random_state=0)
    monkeypatch.setattr(latent_draws, "memory_of_machine", lambda: needed - 1)
    pb.sample_chains(model, corpus, 2, variables=["phi", "z"], random_state=0)
    monkeypatch.setattr(LDA, "fit", None)
    with pytest.raises(errors.BudgetExceededError, match=f"{needed:,} bytes.* raise thin"):
        pb.sample_chains(model, corpus, 2, variables=EVERY)


def test_an_interruption_keeps_the_draws_of_whole_chains(monkeypatch):
    fit, fits = LDA.fit, []

    def broken(model, *rest, **named):
        fits.append(model)
        if len(fits) == 3:
            raise errors.Interrupted("stopped", model)
        return fit(model, *rest, **named)

    corpus, model = make_corpus(), LDA(3, max_iter=20, thin=2)
    whole = pb.sample_chains(model, corpus, 2, variables=EVERY, random_state=0)
    monkeypatch.setattr(LDA, "fit", broken)
    with pytest.raises(errors.Interrupted, match="chain 3 of 4") as caught:
        pb.sample_chains(model, corpus, 4, variables=EVERY, random_state=0)
    for name in EVERY:
        np.testing.assert_array_equal(caught.value.partial.draws[name], whole.draws[name])


@pytest.mark.parametrize("variables", [EVERY, ("phi",), ("theta",), ("z",)])
def test_inference_data_hold_the_draws_and_name_words_documents_and_tokens(variables):
    corpus = make_corpus()
    pfa = PFA(3, max_iter=20, thin=2)
    chains = pb.sample_chains(pfa, corpus, 2, variables=variables, random_state=0)
    data = chains.to_inference_data()
    np.testing.assert_array_equal(data["sample_stats"]["lp"], chains.draws.pop("log_joint"))
    dims = dict.fromkeys(("topic_share", "shape", "probability"), ("rank",))
    dims |= {"phi": ("topic", "word"), "theta": ("document", "topic"), "z": ("token",)}
    assert set(data["posterior"].data_vars) == set(chains.draws)
    for name, draws in chains.draws.items():
        np.testing.assert_array_equal(data["posterior"][name], draws)
        assert data["posterior"][name].dims == ("chain", "draw", *dims.get(name, ()))
    if "phi" in variables:
        assert data["posterior"]["word"].values.tolist() == list(corpus.vocabulary)
    if "theta" in variables:
        assert data["posterior"]["document"].values.tolist() == list(corpus.ids)
    if "z" in variables:
        documents, words = token_axes(corpus)
        np.testing.assert_array_equal(data["constant_data"]["token_document"], documents)
        np.testing.assert_array_equal(data["constant_data"]["token_word"], words)
        assert data["constant_data"]["token_word"].dims == ("token",)
