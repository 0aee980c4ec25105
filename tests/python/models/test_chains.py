"""Several chains of one model."""

import numpy as np
import pytest
from sklearn.base import clone

import polyabayes as pb

LDA, PFA = pb.LatentDirichletAllocation, pb.PoissonFactorAnalysis
LEARNED = {
    "lda with fixed priors": (LDA(3, learn_priors=False, max_iter=36, burn_in=10, thin=4), set()),
    "lda": (LDA(3, max_iter=36, burn_in=10, thin=4), {"doc_topic_prior_sum", "topic_word_prior"}),
    "gap": (PFA(3, prior="gap", max_iter=36, burn_in=10, thin=4), set()),
    "gamma": (PFA(3, prior="gamma", max_iter=36, burn_in=10, thin=4), {"shape"}),
    "beta-gamma": (PFA(3, prior="beta-gamma", max_iter=36, burn_in=10, thin=4), {"probability"}),
    "beta-gamma-gamma": (PFA(3, max_iter=36, burn_in=10, thin=4), {"shape", "probability"}),
}


@pytest.fixture(scope="module")
def corpus():
    topics = np.kron(np.eye(3), np.full(10, 0.1))
    return pb.datasets.make_lda_corpus(
        60, topic_word=topics, document_length=30, doc_topic_prior=0.3, random_state=0
    ).corpus


@pytest.mark.parametrize(("estimator", "learned"), LEARNED.values(), ids=LEARNED)
def test_draws_are_the_kept_states(corpus, estimator, learned):
    chains = pb.sample_chains(estimator, corpus, 2, random_state=0)
    assert chains.n_iter.tolist() == [14, 18, 22, 26, 30, 34]
    assert set(chains.draws) == {"log_joint", "n_active_topics", "topic_share"} | learned
    table = chains.to_frame()
    assert len(table) == 12
    for chain, model in enumerate(chains.models):
        kept = np.isin(model.trace_.n_iter, chains.n_iter)
        joint = model.trace_.log_joint[kept]
        np.testing.assert_array_equal(chains.draws["log_joint"][chain], joint)
        # A run that ends at the last draw ends in its state.
        short = clone(model).set_params(max_iter=34).fit(corpus)
        draw = {name: values[chain, -1] for name, values in chains.draws.items()}
        shares = np.sort(short.topic_counts_ / corpus.n_tokens)[::-1]
        np.testing.assert_array_equal(draw["topic_share"], shares)
        row = table[(table["chain"] == chain) & (table["n_iter"] == 34)].iloc[0]
        assert row[["log_joint", "topic_share[0]"]].tolist() == [draw["log_joint"], shares[0]]
        assert draw["n_active_topics"] == (short.topic_counts_ > 0).sum()
        last = short.last_sample_
        if "doc_topic_prior_sum" in learned:
            assert draw["doc_topic_prior_sum"] == pytest.approx(last.doc_topic_prior.sum())
            assert draw["topic_word_prior"] == last.topic_word_prior
        for name in learned & {"shape", "probability"}:
            np.testing.assert_array_equal(draw[name], np.sort(getattr(last, name))[::-1])


def test_chains_are_models_of_other_seeds(corpus):
    estimator = LDA(3, max_iter=20, thin=2, random_state=5)
    chains = pb.sample_chains(estimator, corpus, 3, random_state=1)
    assert not hasattr(estimator, "components_")
    assert len({model.seed_ for model in chains.models}) == 3
    alone = clone(chains.models[1]).fit(corpus)
    np.testing.assert_array_equal(alone.components_, chains.models[1].components_)
    fewer = pb.sample_chains(estimator.set_params(n_jobs=1), corpus, 2, random_state=1)
    for name, draws in fewer.draws.items():
        np.testing.assert_array_equal(draws, chains.draws[name][:2])
    assert repr(chains) == "<Chains: 3 chains, 5 draws each>"
    assert "log_joint" in chains._repr_html_()
    assert "topic_share[0]" not in chains._repr_html_()


def test_the_best_chain_has_the_largest_log_joint(corpus):
    chains = pb.sample_chains(LDA(3, max_iter=20, thin=2), corpus, 3, random_state=1)
    for worst in range(3):
        chains.draws["log_joint"][worst] -= 1e6 * (worst + 1)
    assert chains.best is chains.models[0]
    chains.draws["log_joint"][0] -= 1e8
    assert chains.best is chains.models[1]


@pytest.mark.slow
def test_summary_tells_chains_that_agree_from_those_that_do_not(corpus):
    estimator = LDA(3, doc_topic_prior=0.3, max_iter=2000, thin=2, learn_priors=True)
    chains = pb.sample_chains(estimator, corpus, 4, random_state=0)
    table = chains.summary()
    assert list(table) == ["mean", "std", "mcse_mean", "ess_bulk", "ess_tail", "r_hat"]
    assert table.loc["topic_share[0]", "mean"] == chains.draws["topic_share"][..., 0].mean()
    assert table["r_hat"].drop("n_active_topics").max() < 1.05
    chains.draws["log_joint"][0] += 10 * chains.draws["log_joint"].std()
    worse = chains.summary()
    assert worse.loc["log_joint", "r_hat"] > 1.5
    assert worse.loc["log_joint", "ess_bulk"] < table.loc["log_joint", "ess_bulk"] / 5


def test_quantities_that_never_move_have_no_r_hat(corpus):
    table = pb.sample_chains(LDA(2, max_iter=20, thin=2), corpus, 2, random_state=0).summary()
    assert table.loc["n_active_topics", "mean"] == 2
    assert np.isnan(table.loc["n_active_topics", "r_hat"])


def test_aligned_draws_are_of_the_same_topics(corpus):
    lda = LDA(3, max_iter=60, thin=2)
    variables = ("phi", "theta", "z")
    chains = pb.sample_chains(lda, corpus, n_chains=3, variables=variables, random_state=0)
    aligned = chains.aligned()
    before, after = (x.draws["phi"].std(axis=(0, 1)).max() for x in (chains, aligned))
    assert after < before
    for chain, draw in ((0, 0), (1, 4), (2, 7)):
        own = aligned.topics[chain, draw]
        assert sorted(own) == [0, 1, 2]
        for name in ("phi", "theta"):
            was, now = chains.draws[name][chain, draw], aligned.draws[name][chain, draw]
            np.testing.assert_array_equal(now, was[own] if name == "phi" else was[:, own])
        was, now = chains.draws["z"][chain, draw], aligned.draws["z"][chain, draw]
        np.testing.assert_array_equal(own[now], was)
    again = aligned.aligned()
    np.testing.assert_array_equal(again.draws["phi"], aligned.draws["phi"])
