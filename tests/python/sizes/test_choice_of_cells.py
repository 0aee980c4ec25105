"""A choice from AnnData, with the total of each cell and its donor: the same as by hand."""

import numpy as np
import pytest

import polyabayes as pb

anndata = pytest.importorskip("anndata")
pd = pytest.importorskip("pandas")

PFA = pb.PoissonFactorAnalysis(max_iter=10, n_jobs=1)
COUNTS = pb.datasets.make_gamma_poisson_corpus(36, 20, 2, random_state=0).corpus.counts.toarray()
COUNTS[COUNTS.sum(axis=1) == 0, 0] = 1
DONORS = np.arange(36) % 12
SHORT = {"n_folds": 2, "random_state": 0}


def cells():
    found = anndata.AnnData(
        np.log1p(COUNTS),
        obs=pd.DataFrame(
            {"donor": pd.Categorical([f"d{donor}" for donor in DONORS]), "depth": 1.0 + DONORS},
            index=[f"cell{number}" for number in range(36)],
        ),
    )
    found.layers["counts"] = COUNTS
    return found


def values(choice):
    return [(row["size"], row["score"], row["behind_std_error"]) for row in choice.rows]


@pytest.mark.filterwarnings("ignore::polyabayes.exceptions.EdgeWarning")
@pytest.mark.parametrize("exposure", ["total", "depth"])
def test_cells_are_chosen_for_as_documents_are(exposure):
    found = pb.choose_n_components(
        PFA, cells(), [1, 2], layer="counts", exposure=exposure, groups="donor", **SHORT
    )
    totals = COUNTS.sum(axis=1)
    by_hand = totals / totals.mean() if exposure == "total" else 1.0 + DONORS
    # Labels in the order of the donors' names, which is how groups are numbered.
    labels = [f"d{donor}" for donor in DONORS]
    corpus = pb.Corpus(COUNTS).with_exposure(by_hand)
    expected = pb.choose_n_components(PFA, corpus, [1, 2], groups=labels, **SHORT)
    assert values(found) == values(expected)
    without = pb.choose_n_components(PFA, COUNTS, [1, 2], groups=labels, **SHORT)
    assert values(found) != values(without)


def test_a_column_called_total_comes_first():
    named = pb.Corpus(COUNTS).with_metadata({"total": 1.0 + DONORS})
    one, other = (
        pb.choose_n_components(PFA, named, [2], exposure=exposure, **SHORT)
        for exposure in ("total", 1.0 + DONORS)
    )
    assert values(one) == values(other)
