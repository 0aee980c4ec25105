"""Fits and held-out scores that sizes are compared by."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone

import polyabayes as pb
from helpers.small_models import known_lda
from polyabayes.sizes.choice import held_out_scores
from polyabayes.sizes.choice.fits import comparable, repeats
from polyabayes.sizes.choice.held_out_scores import annealed, annealed_part, n_scored


def test_few_replicates_are_enough_where_words_repeat():
    """Counts by channel, each channel many times: errors of a score are far below 0.003."""
    drawn = pb.datasets.make_gamma_poisson_corpus(20, 8, 3, random_state=0).corpus
    repeated = pb.Corpus(5 * drawn.counts)
    assert repeated.n_tokens > 8 * repeated.counts.nnz
    pfa = pb.PoissonFactorAnalysis(3, max_iter=30, n_jobs=1, random_state=0).fit(repeated)
    found = annealed(pfa, repeated, 0)
    assert found.n_replicates == 4
    assert 0 < found.nats_per_token_std_error < 0.001
    exact = pb.log_likelihood(pfa, repeated, "annealed", event="sequence", given_length=True)
    error = np.hypot(found.total_std_error, exact.total_std_error)
    assert abs(found.total - exact.total) < 4 * error


def test_fits_begin_with_long_starts():
    model = pb.LatentDirichletAllocation(n_jobs=1)
    longer = clone(model).set_params(n_init=3, max_iter=40)
    made = [comparable(given, 3, 1) for given in (model, longer)]
    assert [(one._schedule().start_sweeps, one.n_init) for one in made] == [(60, 2), (12, 3)]
    # The model that was given, and others, begin as ever.
    assert (model._schedule().start_sweeps, model.n_init) == (40, 1)


@pytest.mark.filterwarnings("ignore::polyabayes.exceptions.EdgeWarning")
def test_words_repeat_as_often_as_expected_and_bursts_are_named():
    """Documents drawn from bursty topics and from others, under the model of both."""
    drawn = pb.datasets.make_lda_corpus(500, 60, 4, document_length=30, random_state=0)
    plain, bursty = (
        known_lda(drawn.doc_topic_prior, drawn.topic_word, **options)
        for options in ({}, {"topic_concentration": [2.0, 5.0, 20.0, np.inf]})
    )
    rng, lengths = np.random.default_rng(0), np.tile([2, 30, 80], 500)
    documents = pb.Corpus(bursty._draw_documents(1_500, lengths, None, rng)[0])
    for model, corpus in ((plain, drawn.corpus), (bursty, documents)):
        often, error = repeats(model, corpus)
        assert abs(often - 1) < 3 * error < 0.2
    often, error = repeats(plain, documents)
    assert often - 3 * error > 1.2
    pfa = pb.PoissonFactorAnalysis(2, max_iter=5).fit(documents)
    assert np.isnan(repeats(pfa, documents)).all()
    for concentration in (None, 9):
        model = pb.LatentDirichletAllocation(topic_concentration=concentration)
        model.set_params(max_iter=20, n_jobs=1)
        options = {"n_folds": 2, "random_state": 0}
        found = pb.choose_n_components(model, documents[:150], [2, 4], **options)
        is_hinted = 'compare it with topic_concentration="learn"' in " ".join(str(found).split())
        assert is_hinted == bool(found.hint) == (model.topic_concentration is None)


def test_rare_topics_are_scored_fast_and_nearly_as_they_are():
    drawn = pb.datasets.make_lda_corpus(20, 60, 4, random_state=0)
    prior = np.array([0.5, 0.5, 0.5, 0.0005])
    model = known_lda(prior, drawn.topic_word)
    model.n_jobs = 1
    found = annealed(model, drawn.corpus[:5], 0)
    assert model.doc_topic_prior_[3] == 0.0005
    raised = known_lda(np.maximum(prior, 0.0011), drawn.topic_word)
    exact = pb.log_likelihood(raised, drawn.corpus[:5], event="sequence", given_length=True)
    assert np.allclose(found.values, exact.values, atol=1.0)


@pytest.mark.slow
def test_corrected_filters_score_as_annealing_all_documents_does(monkeypatch):
    """Totals of two models and their difference, by filters that are low by 10 nats."""
    plain, noise = held_out_scores.filtered, np.random.default_rng(0).uniform(9.5, 10.5, 300)

    def low(*arguments):
        found = plain(*arguments)
        return replace(found, values=found.values - noise)

    monkeypatch.setattr(held_out_scores, "filtered", low)
    drawn = pb.datasets.make_lda_corpus(300, 60, 8, document_length=100, random_state=1)
    documents, scored = drawn.corpus, []
    part = annealed_part(documents)
    # 30,000 tokens are more than are annealed: documents of 10,000 tokens are.
    assert (n_scored(documents), len(part)) == (300, 100)
    assert len(annealed_part(documents[:200])) == 200
    for prior in (0.1, 1.0):
        model = known_lda(np.full(8, prior), drawn.topic_word)
        model.n_jobs = 1
        full = annealed(model, documents, 1)
        scored.append((held_out_scores.held_out_scores(model, documents, 0), full))
    for found, full in scored:
        error = np.sqrt((found.std_errors**2).sum())
        assert abs(found.values.sum() - full.total) < 4 * np.hypot(error, full.total_std_error)
        # Annealing all of them is more exact.
        assert full.total_std_error < error < 0.0005 * documents.n_tokens
    ahead, exact = (scored[0][way].values - scored[1][way].values for way in (0, 1))
    assert ahead.sum() == pytest.approx(exact.sum(), abs=0.0005 * documents.n_tokens)
    # The spread of the values is that of their documents, and of the correction.
    assert 0.95 * exact.std() < ahead.std() < 1.3 * exact.std()
