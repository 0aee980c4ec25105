"""The bench of choices: pieces are kept, ended at their budget, and counted; data are as said."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))

from benches.choice import factors, signatures, singular, tables
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


def test_a_size_that_is_needed_costs_half_a_unit_for_each_free_parameter():
    """Topics and weights are known up to a change of basis, of size * (size - 1) parameters."""
    for n_words, n_documents, size in ((300, 300, 8), (50, 400, 3), (400, 50, 4)):
        n_free = size * (n_words - 1) + n_documents * (size - 1) - size * (size - 1)
        found = singular.learning_coefficient(n_words, n_documents, size, size)
        assert found == (n_free / 2, 1)
        for n_true in range(1, size):
            assert singular.learning_coefficient(n_words, n_documents, size, n_true)[0] < n_free / 2


def test_sbic_solves_its_equations():
    ln_likelihoods, ln_n = {2: -10.0, 3: -5.0, 4: -6.2}, np.log(20.0)
    found = singular.sbic(ln_likelihoods, 5, 6, 20.0)

    def under(size, n_true):
        slope, multiplicity = singular.learning_coefficient(5, 6, size, n_true)
        return ln_likelihoods[size] - slope * ln_n + (multiplicity - 1) * np.log(ln_n)

    for size in found:
        up_to = [n_true for n_true in found if n_true <= size]
        left = sum(np.exp(found[size] + found[n_true]) for n_true in up_to)
        right = sum(np.exp(under(size, n_true) + found[n_true]) for n_true in up_to)
        assert left == pytest.approx(right, rel=1e-12)
    # A larger size that fits hardly better is not chosen, however small the numbers.
    far = singular.sbic({2: -50_000.0, 3: -49_999.0}, 300, 300, 24_000.0)
    assert far[2] > far[3]
