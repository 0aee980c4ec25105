"""Searches over trained models, checkpoints, interruptions and folds."""

import math
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from scipy import special
from sklearn.base import clone

import polyabayes as pb
from helpers.nested_searches import CORPUS, assert_same_search, lda, nested
from polyabayes import priors
from polyabayes.exceptions import Interrupted, InvalidArgumentError
from polyabayes.sizes.witness import Score, WitnessSearch, cross_validate
from polyabayes.sizes.witness.adapters import NestedEstimator, degrees_of_freedom, starts_afresh


def test_every_size_is_trained_from_the_one_below_and_afresh(fits):
    search = nested().fit(CORPUS)
    grown = [(1, None), (2, 1), (2, None), (3, 2), (3, None), (4, 3), (4, None)]
    assert [row[:3] for row in fits] == [(*row, "em") for row in grown]
    assert len({row[3] for row in fits}) == 1
    assert fits[0][3] is not None
    assert [search.model(k).components_.shape for k in (1, 4)] == [(1, 12), (4, 12)]
    # Models do not hold on to those they were trained from.
    assert search.model(4).init is None
    assert search.bounds_["log_score"].tolist() == [search.model(k).bound_ for k in (1, 2, 3, 4)]
    assert search.model() is search.model(search.best_)


def test_fresh_starts_thin_out():
    fresh = [size for size in range(1, 151) if starts_afresh(size)]
    assert fresh[:10] == list(range(1, 11))
    assert len(fresh) == 38
    ratios = np.array(fresh[11:]) / np.array(fresh[10:-1])
    assert ((ratios > 1.0) & (ratios < 1.2)).all()


def test_scores_rise_and_are_no_worse_than_fresh_fits():
    data = pb.datasets.make_lda_corpus(80, 40, 4, document_length=40, random_state=0)
    search = WitnessSearch(
        lda(random_state=7), priors.Poisson(2.0), max_steps=9, scoring="bound"
    ).fit(data.corpus)
    scores = search.bounds_["log_score"]
    assert (np.diff(scores) >= 0).all()
    for size in range(1, 10):
        fresh = lda(n_components=size, fit_method="em", random_state=7)
        assert scores[size - 1] >= fresh.fit(data.corpus).bound_


def test_the_witness_is_kept_where_the_likelihood_falls(monkeypatch):
    found = {1: -9.0, 2: -7.0, 3: -8.0, 4: -6.0}

    def likelihood(_, model, __):
        return Score(found[len(model.components_)], 0.1)

    monkeypatch.setattr(NestedEstimator, "_likelihood", likelihood)
    search = nested(scoring="likelihood", upper=lambda _: 0.0).fit(CORPUS)
    assert search.bounds_["log_score"].tolist() == [-9.0, -7.0, -7.0, -6.0]
    assert [len(search.model(k).components_) for k in (1, 2, 3, 4)] == [1, 2, 2, 4]


def test_a_lower_bound_as_score_is_flagged():
    search = nested().fit(CORPUS)
    assert search.holds_ == {"lower": True, "upper": False, "posterior": False, "predictive": False}
    likelihood = nested(scoring="likelihood", max_steps=1).fit(CORPUS)
    assert all(likelihood.holds_.values())


def test_likelihoods_as_scores_carry_their_errors():
    options = {"method": "annealed", "n_samples": 50, "n_replicates": 4}
    search = nested(scoring="likelihood", scoring_options=options, max_steps=2).fit(CORPUS)
    expected = pb.log_likelihood(search.model(2), CORPUS, random_state=1, **options)
    assert search.bounds_["std_error"][1] > 0
    # The seed of the search is drawn from random_state, so only the errors bind the two.
    error = math.hypot(expected.total_std_error, search.bounds_["std_error"][1])
    assert abs(search.bounds_["log_score"][1] - expected.total) < 5 * error
    counts = CORPUS.counts.toarray().astype(float)
    shares = counts / counts.sum(axis=1, keepdims=True)
    ceiling = (counts * np.log(np.where(shares > 0, shares, 1.0))).sum()
    assert search.log_ceiling_ == pytest.approx(ceiling, rel=1e-11)


def test_few_replicates_have_few_degrees_of_freedom():
    model = lda(n_components=2, fit_method="em", random_state=0).fit(CORPUS)
    options = {"method": "annealed", "n_samples": 10, "n_replicates": 4, "random_state": 0}
    one = pb.log_likelihood(model, CORPUS[:1], **options)
    assert degrees_of_freedom(one) == pytest.approx(3.0)
    twice = pb.log_likelihood(model, CORPUS[[0, 0, 0]], **options)
    assert degrees_of_freedom(twice) == pytest.approx(3.0)
    distinct = np.unique(CORPUS.counts.toarray(), axis=0)
    many = pb.log_likelihood(model, distinct, **options)
    variances = many.std_errors**2
    # By Welch and Satterthwaite, all documents with three.
    expected = variances.sum() ** 2 / (variances**2 / 3).sum()
    assert degrees_of_freedom(many) == pytest.approx(expected)
    assert 3 < expected <= 3 * len(variances)
    assert degrees_of_freedom(pb.log_likelihood(model, CORPUS, "exact")) == math.inf


def test_a_search_goes_on_where_it_was(tmp_path, fits):
    whole = nested(max_steps=6).fit(CORPUS)
    nested(max_steps=3, checkpoint=tmp_path).fit(CORPUS)
    fits.clear()
    resumed = nested(max_steps=6, checkpoint=tmp_path).fit(CORPUS)
    assert [row[0] for row in fits] == [4, 4, 5, 5, 6, 6]
    assert_same_search(whole, resumed)
    for k in (1, 6):
        assert (resumed.model(k).components_ == whole.model(k).components_).all()


def test_a_seed_nobody_gave_is_kept_by_the_checkpoint(tmp_path):
    one = nested(checkpoint=tmp_path, random_state=None).fit(CORPUS)
    two = nested(checkpoint=tmp_path, random_state=None).fit(CORPUS)
    assert_same_search(one, two)


@pytest.mark.parametrize(
    ("options", "corpus", "message"),
    [
        ({}, CORPUS[:20], "its corpus is '.*', here it is"),
        ({"prior": priors.Poisson(3.0)}, CORPUS, r"its prior is 'Poisson\(mean=2.0"),
        ({"estimator": lda(doc_topic_prior=0.3)}, CORPUS, "its doc_topic_prior of the"),
        ({"scoring": "likelihood"}, CORPUS, "its scoring is 'bound', here"),
        ({"random_state": 2}, CORPUS, "its seed is"),
        ({"strategy": "widest"}, CORPUS, "its strategy is 'successor'"),
    ],
)
def test_another_search_is_refused(tmp_path, options, corpus, message):
    nested(checkpoint=tmp_path, max_steps=1).fit(CORPUS)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(InvalidArgumentError, match=f"is of another search: {message}"):
        nested(checkpoint=tmp_path).set_params(**options).fit(corpus)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_search_that_is_refused_leaves_no_folder(tmp_path):
    for options in ({"bound": "x"}, {"scoring": "x"}, {"level": 2.0}):
        with pytest.raises(InvalidArgumentError):
            nested(checkpoint=tmp_path / "state", **options).fit(CORPUS)
    assert not (tmp_path / "state").exists()


def after(name, content):
    """Search in this folder after a file of this content is written."""
    Path(name).write_bytes(content)
    return nested(checkpoint=".").fit(CORPUS)


def test_failures_and_zeros_survive_the_checkpoint(tmp_path):
    def score(k):
        if k == 2:
            raise RuntimeError("no")
        return -math.inf if k == 1 else (-1.0 / k, 0.01 / k, 7.0)

    search = WitnessSearch(score, priors.Uniform(1, 5), checkpoint=tmp_path, random_state=0)
    with pytest.warns(pb.exceptions.ScoreWarning):
        whole = clone(search).fit()
    again = search.fit()
    np.testing.assert_array_equal(whole.bounds_["log_score"], again.bounds_["log_score"])
    np.testing.assert_array_equal(whole.bounds_["upper"], again.bounds_["upper"])
    assert whole.trace_ == again.trace_


def test_ctrl_c_keeps_what_there_is(tmp_path):
    def score(k):
        if k == 4:
            raise KeyboardInterrupt
        return -3.0 / k

    search = WitnessSearch(score, priors.Poisson(2.0), checkpoint=tmp_path, random_state=0)
    with pytest.raises(Interrupted, match="stopped after 3 steps") as interruption:
        search.fit()
    partial = interruption.value.partial
    assert partial is search
    assert partial.bounds_["size"].tolist() == [1, 2, 3]
    assert partial.stop_reason_ == "interrupted"
    search.set_params(estimator=lambda k: -3.0 / k, checkpoint=None).fit()
    assert len(list(tmp_path.glob("score-*.safetensors"))) == 3


def test_folds_compare_the_average_with_the_best(tmp_path, monkeypatch):
    search = nested(scoring="likelihood", checkpoint=tmp_path)
    here = cross_validate(search, CORPUS, 3)
    assert here["fold"].tolist() == [0, 1, 2]
    assert here["n_tokens"].sum() == CORPUS.n_tokens
    assert (here["lower"] <= here["upper"]).all()
    assert (here["n_steps"] == 4).all()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["fold-0", "fold-1", "fold-2"]
    # The second run finds all scores in the folders, and all predictions.
    monkeypatch.setattr(NestedEstimator, "_likelihood", None)
    again = cross_validate(search.set_params(checkpoint=None), CORPUS, 3, checkpoint=tmp_path)
    for name in here:
        assert again[name].tolist() == here[name].tolist()


def test_folds_under_further_priors_are_trained_once(fits):
    further = [priors.Uniform(1, 9), priors.Geometric(0.5)]
    table = cross_validate(nested(scoring="likelihood"), CORPUS, 2, priors=further)
    assert [size for size, *_ in fits] == [1, 2, 2, 3, 3, 4, 4] * 2
    assert table["prior"].tolist() == [repr(nested().prior), *map(repr, further)] * 2
    alone = cross_validate(nested(scoring="likelihood").set_params(prior=further[1]), CORPUS, 2)
    for name in ("fold", "n_steps", "best_size", "lower", "upper", "best"):
        assert table[name][2::3].tolist() == alone[name].tolist(), name


def test_groups_are_in_one_fold(fits):
    groups = np.arange(30) // 5
    table = cross_validate(nested(max_steps=1), CORPUS, 4, groups=groups)
    assert sorted(n_documents for *_, n_documents in fits) == [20, 20, 25, 25]
    assert table["n_tokens"].sum() == CORPUS.n_tokens


def test_an_executor_outlives_a_fold_that_fails():
    with ThreadPoolExecutor(1) as pool:
        with pytest.raises(InvalidArgumentError, match="scoring must be"):
            cross_validate(nested(scoring="none"), CORPUS, 2, executor=pool)
        assert pool.submit(int, "1").result() == 1


def test_folds_in_processes_give_the_same(tmp_path, spawned):
    search = nested(scoring="bound", max_steps=2).set_params(estimator=lda(n_jobs=1))
    here = cross_validate(search, CORPUS, 2)
    there = cross_validate(search, CORPUS, 2, executor=spawned, checkpoint=tmp_path)
    for name in here:
        assert here[name].tolist() == there[name].tolist()


def test_the_average_is_the_mean_over_sizes_by_their_posterior():
    """Exact likelihoods of all four sizes of each fold, summed here."""
    search = nested(scoring="likelihood", max_steps=None).set_params(prior=priors.Uniform(1, 4))
    search.set_params(scoring_options={"method": "exact"})
    found = cross_validate(search, CORPUS, 3, random_state=5)
    folds = np.empty(30, dtype=int)
    folds[np.random.default_rng(5).permutation(30)] = np.arange(30) % 3
    for fold in range(3):
        row = found.row(fold)
        here = clone(search).fit(CORPUS[folds != fold])
        models = [here.model(k) for k in (1, 2, 3, 4)]
        train, test = (
            np.array([pb.log_likelihood(model, CORPUS[rows], "exact").total for model in models])
            for rows in (folds != fold, folds == fold)
        )
        average = special.logsumexp(train + test) - special.logsumexp(train)
        assert row["lower"] <= average <= row["upper"]
        assert row["average"] == pytest.approx(average, abs=1e-9)
        held_out = CORPUS[folds == fold]
        assert here.score(held_out) == pytest.approx(average / held_out.n_tokens, abs=1e-9)
        assert row["upper"] - row["lower"] < 1e-8
        best = int(np.argmax(train)) + 1
        assert row["best_size"] == best
        assert row["best"] == pytest.approx(test[best - 1], abs=1e-9)
        assert row["best_std_error"] == 0.0
        assert row["n_tokens"] == CORPUS[folds == fold].n_tokens


def test_a_doubt_names_the_argument_of_the_search():
    few = {"scoring_options": {"method": "smc", "n_particles": 2}, "random_state": 0}
    lda = pb.LatentDirichletAllocation(max_iter=20)
    search = WitnessSearch(lda, priors.Uniform(2, 2), scoring="likelihood", **few)
    corpus = pb.datasets.make_lda_corpus(10, 40, 3, document_length=300, random_state=0).corpus
    told = r"scoring_options=dict\(n_particles=\d+\)"
    with pytest.warns(pb.exceptions.UnreliableErrorWarning, match=told):
        search.fit(corpus)
