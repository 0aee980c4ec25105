"""The bench of choices: pieces are kept, ended at their budget, and counted; data are as said."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))

from benches.choice import factors, signatures, tables
from benches.choice.pieces import Case


@pytest.mark.parametrize("part", [tables.TABLES, signatures.SIGNATURES], ids=lambda part: part.name)
def test_tables_have_the_rank_they_are_said_to_have(part):
    for regime in part.regimes.values():
        case = part.drawn(regime, 0)
        assert case.truth in case.sizes
        assert case.data.min() >= 0
        np.testing.assert_array_equal(part.drawn(regime, 0).data, case.data)


def test_factors_are_those_of_the_table():
    shares = np.einsum("iz,jz,kz->ijk", *(np.random.default_rng(0).random((3, 4, 2)) ** 4))
    counts = np.round(1e6 * shares).astype(np.int64)
    found = factors.product(factors.fitted(counts, 2, 0))
    np.testing.assert_allclose(found, counts, rtol=0.02, atol=1e-3 * counts.max())
    assert found.sum() == pytest.approx(counts.sum(), rel=1e-6)


def test_criteria_find_the_blocks_of_a_clear_table():
    blocks = np.kron(np.eye(3, dtype=np.int64), np.full((4, 4), 40))
    case = Case(3, blocks, [1, 2, 3, 4, 5])
    named = {
        name: choice.size
        for method in factors.METHODS.values()
        for name, choice in method(case).items()
    }
    assert named["BIC"] == 3
    assert named["largest silhouette over starts (NMFk)"] == 3
    assert named["stability of clusters (cNMF)"] == 3
