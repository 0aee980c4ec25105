"""What a choice will take is told before: by short fits, for given sizes and for found ones."""

import pytest
from sklearn.base import clone

import polyabayes as pb
import polyabayes.exceptions as errors
from polyabayes.sizes.choice import cost

LDA = pb.LatentDirichletAllocation(max_iter=30, n_jobs=1)


def test_the_cost_goes_on_from_short_fits_to_all_sweeps(corpus, monkeypatch):
    """By a clock that stands: a second to begin, and a quarter of one a topic and sweep.

    60 sweeps, after two starts of 0.6 times the 30 of the burn-in.
    """

    def timed(model, _train, size, n_sweeps):
        return 1 + 0.25 * size * n_sweeps, model

    monkeypatch.setattr(cost, "_timed_fit", timed)
    monkeypatch.setattr(cost, "_seconds_of_scores", lambda *_: 0.0)
    monkeypatch.setattr(cost.time, "perf_counter", lambda: 0.0)
    model = clone(LDA).set_params(max_iter=60)
    told = pb.choice_cost(model, corpus, [2, 8], n_folds=3)
    assert (told.n_fits, told.sizes, told.seconds_per_fit) == (6, (2, 8), (49.0, 193.0))
    assert told.seconds == pytest.approx(3 * (49 + 193))
    assert str(told) == (
        "about 6 fits, 49 s each with 2 topics and 3 minutes with 8: "
        "12 minutes in all, one after another"
    )


def test_the_cost_is_told_of_every_model(corpus):
    told = pb.choice_cost(pb.PoissonFactorAnalysis(max_iter=20, n_jobs=1), corpus, [4])
    assert told.n_fits == 5
    assert told.seconds > 0


def test_the_cost_of_sizes_that_are_found_is_that_of_a_usual_search(corpus):
    told = pb.choice_cost(LDA, corpus, n_folds=3, max_fits=20)
    assert (told.n_fits, told.sizes) == (14, (2, 32))
    # As many documents as there are, 60, are the most topics.
    most, seconds = told.beyond
    assert most == 60
    assert seconds > told.seconds
    assert str(told).endswith(" if more topics are better up to 60")
    fewer = pb.choice_cost(LDA, corpus, n_folds=3, max_fits=5)
    assert fewer.n_fits == 5
    # The largest and two between with all folds.
    assert cost.work_of_found(32, 3) == {2: 1, 4: 1, 8: 1, 16: 1, 19: 3, 23: 3, 27: 1, 32: 3}
    bounded = pb.choice_cost(LDA, corpus, n_folds=3, max_size=48)
    assert (bounded.sizes, bounded.beyond) == ((2, 48), None)


def test_the_cost_refuses_what_the_choice_refuses(corpus):
    with pytest.raises(errors.InvalidTypeError, match="model must be a"):
        pb.choice_cost("lda", corpus)
    with pytest.raises(errors.InvalidArgumentError, match="sizes is empty"):
        pb.choice_cost(LDA, corpus, [])


def test_no_more_topics_than_documents_are_looked_for():
    few = pb.datasets.make_lda_corpus(20, 40, 3, document_length=50, random_state=0).corpus
    cost = pb.choice_cost(LDA, few)
    assert (cost.sizes, cost.beyond) == ((2, 20), None)
