"""The plan of a choice: which fits it makes, by scores that are known beforehand."""

import numpy as np
import pytest

import polyabayes as pb
from polyabayes.sizes.choice import held_out
from polyabayes.sizes.choice.fits import FIGURES, FoldFit

N_DOCUMENTS, N_TOKENS = 200, 1_000


def fits_of(monkeypatch, score, poor=(), spread=0.0, **options):
    """The choice by these scores in nats per token, and its fits; poor fits lose 0.01.

    Scores of fits have a standard deviation of `spread`.
    """
    rng, made = np.random.default_rng(0), []
    noise = {fold: rng.normal(size=(2, N_DOCUMENTS)) for fold in range(5)}

    def fit_and_score(_model, _train, scored, _words, size, fold, _seed):
        made.append((size, fold))
        n = scored.n_documents
        shared, own = noise[fold % 5][:, :n]
        # Documents differ in the slope of their curve.
        values = N_TOKENS * (score(size) - 0.01 * ((size, fold) in poor)) + 50 * shared
        values = values + own * np.log(size)
        values = values + N_TOKENS * spread * np.random.default_rng([size, fold]).normal()
        figures, topics = np.zeros(len(FIGURES)), np.ones((size, 1), "f4")
        return FoldFit(size, fold, values, np.zeros(n), figures, topics, 0.0)

    monkeypatch.setattr(held_out, "fit_and_score", fit_and_score)
    counts = np.full((N_DOCUMENTS, 10), N_TOKENS // 10)
    lda = pb.LatentDirichletAllocation(n_jobs=1)
    found = pb.choose_n_components(lda, counts, random_state=0, **options)
    return found, made


def planted(size):
    """20 topics; further ones do next to no harm."""
    return -0.1 * max(0.0, np.log(20 / size)) - 1e-5 * size


def without_end(size):
    """Each further topic gains a little."""
    return -0.6 * size**-0.5


@pytest.mark.parametrize("groups", [None, np.arange(N_DOCUMENTS) % 10])
def test_a_plateau_takes_few_fits(monkeypatch, groups):
    """Sizes above the answer, which the data cannot tell from it, are trained on one fold."""
    found, made = fits_of(monkeypatch, planted, groups=groups)
    assert found.recommended == 20
    assert found.is_decided
    assert sorted(size for size, fold in made if fold) == [19, 19, 20, 20]
    assert len(made) == len(set(made)) <= 17


def test_a_poor_first_fit_does_not_decide(monkeypatch):
    """The planted size is behind on the first fold only."""
    found, made = fits_of(monkeypatch, planted, poor=[(20, 0)])
    assert {fold for size, fold in made if size == 20} == set(range(5))
    assert 20 in found.equally_good


@pytest.mark.filterwarnings("ignore::polyabayes.exceptions.EdgeWarning")
@pytest.mark.parametrize("spread", [0.0, 0.004])
def test_a_curve_without_a_bend_is_smooth(monkeypatch, spread):
    """Sizes within 0.1 are trained on two folds or more; the curve tells the tolerance's."""
    found, made = fits_of(monkeypatch, without_end, spread=spread)
    assert found.recommended == min(found.equally_good)
    assert found.best == 200
    for row in found.rows:
        if row["behind"] <= 0.1:
            assert row["n_folds"] > 1
            assert row["behind_std_error"] <= 0.01
            true = without_end(200) - without_end(row["size"])
            assert abs(row["behind"] - true) <= 3 * row["behind_std_error"]
    assert {row["n_folds"] for row in found.rows if row["behind"] > 0.1} == {1}
    # 131 topics lose 0.01; neighbours of a tenth are near enough.
    assert abs(found.within(0.01) - 131) <= 15
    assert len(made) == len(set(made)) <= 20
    wide, _ = fits_of(monkeypatch, without_end, spread=spread, tolerance=0.03)
    assert 60 <= wide.recommended <= 80


@pytest.mark.filterwarnings("ignore::polyabayes.exceptions.EdgeWarning")
def test_sizes_are_added_before_folds_where_few_are_near_the_best(monkeypatch):
    found, _ = fits_of(monkeypatch, lambda size: 0.15 * np.log(size), spread=0.003, sizes=200)
    n_folds = [row["n_folds"] for row in found.rows if row["behind"] <= 0.1]
    assert n_folds == [2] * 4


@pytest.mark.filterwarnings("ignore::polyabayes.exceptions.EdgeWarning")
def test_a_size_that_is_found_late_has_two_folds_too(monkeypatch):
    """The largest size is tried after the curve through the others is known."""
    monkeypatch.setitem(globals(), "N_DOCUMENTS", 100)
    options = {"spread": 0.004, "tolerance": 0.02, "n_folds": 2, "sizes": 200}
    found, made = fits_of(monkeypatch, lambda size: 0.02 * np.log(size), **options)
    assert made.index((100, 0)) > made.index((64, 1))
    rows = {row["size"]: row for row in found.rows}
    assert {row["n_folds"] for row in found.rows} == {2}
    assert rows[found.best]["probability"] == 1.0
    assert not rows[found.recommended]["dropped"]


@pytest.mark.filterwarnings("ignore::polyabayes.exceptions.EdgeWarning")
def test_sizes_that_are_given_are_trained_once(monkeypatch):
    given, made = fits_of(monkeypatch, without_end, spread=0.005, sizes=[64, 128, 200])
    assert len(made) == len(set(made)) <= 15
    assert set(given.to_frame().index) == {64, 128, 200}


def test_all_folds_of_given_sizes_are_trained_unless_they_are_behind(monkeypatch):
    _, made = fits_of(monkeypatch, planted, sizes=[3, 5, 20, 22, 24])
    # The neighbour of the best size gets three folds, since its first fit may have been poor.
    n_folds = {size: sum(size == one for one, _ in made) for size, _ in made}
    assert n_folds == {3: 1, 5: 3, 20: 5, 22: 5, 24: 5}
