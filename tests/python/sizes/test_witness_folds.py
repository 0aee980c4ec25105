"""Averages over sizes against the best model, fold by fold."""

import math
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy import special
from sklearn.base import clone

import polyabayes as pb
from helpers.nested_searches import CORPUS, lda, nested
from polyabayes import priors
from polyabayes.exceptions import InvalidArgumentError, InvalidTypeError, PolyabayesError
from polyabayes.sizes.witness import WitnessSearch, cross_validate
from polyabayes.sizes.witness.adapters import NestedEstimator


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
    with pytest.raises(InvalidArgumentError, match="prior must be of 1 sizes"):
        cross_validate(nested(), CORPUS, 2, priors=[priors.Product(*further)])
    with pytest.raises(InvalidArgumentError, match=r"begins at \(2,\)"):
        cross_validate(nested(), CORPUS, 2, priors=[priors.Uniform(2, 3)])
    with pytest.raises(InvalidTypeError, match="priors must be a list"):
        cross_validate(nested(), CORPUS, 2, priors=further[0])  # type: ignore[arg-type]


def test_groups_are_in_one_fold(fits):
    groups = np.arange(30) // 5
    table = cross_validate(nested(max_steps=1), CORPUS, 4, groups=groups)
    assert sorted(n_documents for *_, n_documents in fits) == [20, 20, 25, 25]
    assert table["n_tokens"].sum() == CORPUS.n_tokens
    with pytest.raises(InvalidArgumentError, match=r"n_folds is 7, but .* only 6 groups"):
        cross_validate(nested(), CORPUS, 7, groups=groups)


def test_an_executor_outlives_a_fold_that_fails():
    with ThreadPoolExecutor(1) as pool:
        with pytest.raises(InvalidArgumentError, match="scoring must be"):
            cross_validate(nested(scoring="none"), CORPUS, 2, executor=pool)
        assert pool.submit(int, "1").result() == 1


def test_folds_in_processes_give_the_same(tmp_path):
    search = nested(scoring="bound", max_steps=2).set_params(estimator=lda(n_jobs=1))
    here = cross_validate(search, CORPUS, 2)
    there = cross_validate(search, CORPUS, 2, n_workers=2, checkpoint=tmp_path)
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
        train, test = np.array(
            [
                [
                    pb.log_likelihood(here.model(k), corpus, "exact").total
                    for corpus in (CORPUS[folds != fold], CORPUS[folds == fold])
                ]
                for k in (1, 2, 3, 4)
            ]
        ).T
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


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: cross_validate(nested(), CORPUS, 1), "n_folds must be"),
        (lambda: cross_validate(nested(), CORPUS, 31), "only 30 documents"),
        (
            lambda: cross_validate(WitnessSearch(math.log, priors.Poisson(2.0)), CORPUS),
            "a WitnessSearch of an estimator",
        ),
    ],
)
def test_mistakes(make, message):
    with pytest.raises(PolyabayesError, match=message):
        make()
