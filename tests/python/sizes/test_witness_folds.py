"""Averages over sizes against the best model, fold by fold."""

import math
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from scipy import special
from sklearn.base import clone

import polyabayes as pb
from polyabayes import priors
from polyabayes.exceptions import InvalidArgumentError, InvalidTypeError, PolyabayesError
from polyabayes.sizes.witness import WitnessSearch, cross_validate
from polyabayes.sizes.witness.adapters import NestedEstimator

DATA = pb.datasets.make_lda_corpus(30, 12, 3, document_length=15, random_state=3)


def lda(**options):
    return pb.LatentDirichletAllocation(**{"learn_priors": True, "max_iter": 20, **options})


def nested(**options):
    arguments = {"max_steps": 4, "random_state": 1, "scoring": "bound", **options}
    return WitnessSearch(lda(), priors.Poisson(2.0), **arguments)


def test_folds_compare_the_average_with_the_best(tmp_path, monkeypatch):
    search = nested(scoring="likelihood", checkpoint=tmp_path)
    here = cross_validate(search, DATA.corpus, 3)
    assert here["fold"].tolist() == [0, 1, 2]
    assert here["n_tokens"].sum() == DATA.corpus.n_tokens
    assert (here["lower"] <= here["upper"]).all()
    assert (here["n_steps"] == 4).all()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["fold-0", "fold-1", "fold-2"]
    # The second run finds all scores in the folders, and all predictions.
    monkeypatch.setattr(NestedEstimator, "_likelihood", None)
    again = cross_validate(search.set_params(checkpoint=None), DATA.corpus, 3, checkpoint=tmp_path)
    for name in here:
        assert again[name].tolist() == here[name].tolist()


def test_folds_under_further_priors_are_trained_once(monkeypatch):
    sizes: list[int] = []
    fit = pb.LatentDirichletAllocation.fit

    def spy(self, X):
        sizes.append(self.n_components)
        return fit(self, X)

    monkeypatch.setattr(pb.LatentDirichletAllocation, "fit", spy)
    further = [priors.Uniform(1, 9), priors.Geometric(0.5)]
    table = cross_validate(nested(scoring="likelihood"), DATA.corpus, 2, priors=further)
    assert sizes == [1, 2, 2, 3, 3, 4, 4] * 2
    assert table["prior"].tolist() == [repr(nested().prior), *map(repr, further)] * 2
    alone = cross_validate(
        nested(scoring="likelihood").set_params(prior=further[1]), DATA.corpus, 2
    )
    for name in ("fold", "n_steps", "best_size", "lower", "upper", "best"):
        assert table[name][2::3].tolist() == alone[name].tolist(), name
    with pytest.raises(InvalidArgumentError, match="prior must be of 1 sizes"):
        cross_validate(nested(), DATA.corpus, 2, priors=[priors.Product(*further)])
    with pytest.raises(InvalidArgumentError, match=r"begins at \(2,\)"):
        cross_validate(nested(), DATA.corpus, 2, priors=[priors.Uniform(2, 3)])
    with pytest.raises(InvalidTypeError, match="priors must be a list"):
        cross_validate(nested(), DATA.corpus, 2, priors=further[0])  # type: ignore[arg-type]


def test_groups_are_in_one_fold(monkeypatch):
    groups, seen = np.arange(30) // 5, list[Any]()
    fit = pb.LatentDirichletAllocation.fit

    def spy(self, X):
        seen.append(X.n_documents)
        return fit(self, X)

    monkeypatch.setattr(pb.LatentDirichletAllocation, "fit", spy)
    table = cross_validate(nested(max_steps=1), DATA.corpus, 4, groups=groups)
    assert sorted(seen) == [20, 20, 25, 25]
    assert table["n_tokens"].sum() == DATA.corpus.n_tokens
    with pytest.raises(InvalidArgumentError, match=r"n_folds is 7, but .* only 6 groups"):
        cross_validate(nested(), DATA.corpus, 7, groups=groups)


def test_an_executor_outlives_a_fold_that_fails():
    with ThreadPoolExecutor(1) as pool:
        with pytest.raises(InvalidArgumentError, match="scoring must be"):
            cross_validate(nested(scoring="none"), DATA.corpus, 2, executor=pool)
        assert pool.submit(int, "1").result() == 1


def test_folds_in_processes_give_the_same(tmp_path):
    search = nested(scoring="bound", max_steps=2).set_params(estimator=lda(n_jobs=1))
    here = cross_validate(search, DATA.corpus, 2)
    there = cross_validate(search, DATA.corpus, 2, n_workers=2, checkpoint=tmp_path)
    for name in here:
        assert here[name].tolist() == there[name].tolist()


def test_the_average_is_the_mean_over_sizes_by_their_posterior():
    """Exact likelihoods of all four sizes of each fold, summed here."""
    search = nested(scoring="likelihood", max_steps=None).set_params(prior=priors.Uniform(1, 4))
    search.set_params(scoring_options={"method": "exact"})
    found = cross_validate(search, DATA.corpus, 3, random_state=5)
    folds = np.empty(30, dtype=int)
    folds[np.random.default_rng(5).permutation(30)] = np.arange(30) % 3
    for fold in range(3):
        row = found.row(fold)
        here = clone(search).fit(DATA.corpus[folds != fold])
        train, test = np.array(
            [
                [
                    pb.log_likelihood(here.model(k), corpus, "exact").total
                    for corpus in (DATA.corpus[folds != fold], DATA.corpus[folds == fold])
                ]
                for k in (1, 2, 3, 4)
            ]
        ).T
        average = special.logsumexp(train + test) - special.logsumexp(train)
        assert row["lower"] <= average <= row["upper"]
        assert row["average"] == pytest.approx(average, abs=1e-9)
        held_out = DATA.corpus[folds == fold]
        assert here.score(held_out) == pytest.approx(average / held_out.n_tokens, abs=1e-9)
        assert row["upper"] - row["lower"] < 1e-8
        best = int(np.argmax(train)) + 1
        assert row["best_size"] == best
        assert row["best"] == pytest.approx(test[best - 1], abs=1e-9)
        assert row["best_std_error"] == 0.0
        assert row["n_tokens"] == DATA.corpus[folds == fold].n_tokens


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: cross_validate(nested(), DATA.corpus, 1), "n_folds must be"),
        (lambda: cross_validate(nested(), DATA.corpus, 31), "only 30 documents"),
        (
            lambda: cross_validate(WitnessSearch(math.log, priors.Poisson(2.0)), DATA.corpus),
            "a WitnessSearch of an estimator",
        ),
    ],
)
def test_mistakes(make, message):
    with pytest.raises(PolyabayesError, match=message):
        make()
