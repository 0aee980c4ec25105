"""Decompositions of tensors with cells that were not observed."""

import numpy as np
import pytest
from scipy import sparse, stats

from polyabayes import AllocationModel, CountTensor

RNG = np.random.default_rng(3)
OBSERVED = RNG.random((5, 6)) > 0.25
TABLE = np.where(OBSERVED, RNG.poisson(6 * RNG.dirichlet(np.ones(6), 5) * 5), 0)
NMF = AllocationModel.nmf(2, concentration=3.0, rate=0.1)


def predicted(found):
    return found.intensity * np.einsum("k,ik,jk->ij", *(found.tables[n] for n in NODES))


NODES = ("topic", "doc", "word")


def tensor_of(table):
    return CountTensor.from_dense(table, ["doc", "word"])


def test_the_bound_is_that_of_the_evidence():
    found = NMF.decompose(TABLE, observed=OBSERVED, random_state=1)
    same = NMF.predict_missing(TABLE, "vb", observed=OBSERVED, random_state=1)
    assert found.is_lower_bound
    assert found.value == same.evidence.value
    assert np.isnan(found.log_probability_of_total)
    assert np.array_equal(found.missing_cells, same.coordinates)
    for node in NODES:
        assert found.expected_counts[node].sum() == pytest.approx(same.expected_total, rel=1e-8)
    assert found.intensity == pytest.approx((3.0 + same.expected_total) / 1.1, rel=1e-8)
    assert (np.diff(found.trace) > -1e-9).all()


def test_largest_likelihood_of_one_group_fills_a_gap_by_its_row_and_column():
    table = np.ma.masked_equal([[-1, 30], [20, 60]], -1)
    model = AllocationModel.nmf(1, rate=0.1)
    found = model.decompose(table, "ml", random_state=0, max_iter=5000, tol=1e-14)
    assert found.missing_counts == pytest.approx([10], rel=1e-5)
    assert found.intensity == pytest.approx(120, rel=1e-5)
    # The three cells are met: Poisson laws at their own counts.
    largest = sum(stats.poisson.logpmf(n, n) for n in (30, 20, 60))
    assert found.value == pytest.approx(largest, abs=1e-6)
    assert (np.diff(found.trace) > -1e-9).all()


@pytest.mark.parametrize("method", ["vb", "em"])
def test_tables_predict_the_missing_cells(method):
    found = NMF.decompose(TABLE, method, observed=OBSERVED, random_state=0)
    everywhere = predicted(found)
    np.testing.assert_allclose(found.reconstruction(), everywhere, rtol=1e-12)
    np.testing.assert_allclose(found.missing_counts, everywhere[~OBSERVED], rtol=1e-12)
    off = (TABLE - everywhere)[OBSERVED]
    assert found.squared_error == pytest.approx((off**2).sum(), rel=1e-10)
    counts, fitted = TABLE[OBSERVED], everywhere[OBSERVED]
    terms = counts * np.log(np.where(counts, counts, 1) / fitted) - counts + fitted
    assert found.kl_error == pytest.approx(terms.sum(), rel=1e-10)
    frame = found.missing_to_frame()
    assert frame[["doc", "word"]].to_numpy().tolist() == np.argwhere(~OBSERVED).tolist()
    assert np.array_equal(frame["expected_count"], found.missing_counts)
    assert f" nats, {np.count_nonzero(~OBSERVED)} cells missing, " in repr(found)


ALPHA = 1.5


def log_density(tables):
    """ln p(X_observed, θ), the intensity integrated out."""
    law = stats.dirichlet
    prior = sum(law.logpdf(c, np.full(len(c), ALPHA)) for t in tables for c in np.atleast_2d(t.T))
    cells = np.einsum("k,ik,jk->ij", *tables)[OBSERVED]
    share, counts = cells.sum(), TABLE[OBSERVED]
    total = stats.nbinom.logpmf(counts.sum(), 3.0, 0.1 / (0.1 + share))
    return float(prior + total + stats.multinomial.logpmf(counts, counts.sum(), cells / share))


def test_em_climbs_to_a_mode_of_the_tables():
    model = AllocationModel.nmf(2, concentration=3.0, rate=0.1, prior=dict.fromkeys(NODES, ALPHA))
    options = {"max_iter": 100_000, "tol": 1e-15, "n_restarts": 2}
    found = model.decompose(TABLE, "em", observed=OBSERVED, random_state=0, **options)
    modes = [found.expected_counts[node] + ALPHA - 1 for node in NODES]
    modes = [mode / mode.sum(axis=0) for mode in modes]
    assert found.value == pytest.approx(log_density(modes), abs=1e-8)
    assert (np.diff(found.trace) > -1e-9).all()
    rng = np.random.default_rng(0)
    for step in np.repeat([1e-3, 1e-2, 0.1], 20):
        near = [mode * np.exp(step * rng.standard_normal(mode.shape)) for mode in modes]
        assert log_density([n / n.sum(axis=0) for n in near]) < found.value


def test_nothing_missing_is_the_ordinary_decomposition():
    everything = np.ones(TABLE.shape, dtype=bool)
    found = NMF.decompose(TABLE, observed=everything, random_state=0)
    same = NMF.decompose(TABLE, random_state=0)
    assert found.value == same.value
    assert found.missing_counts.shape == (0,)


def test_graphs_with_visible_tables_and_ties():
    chain = AllocationModel("i -> r -> j; i -> j", {"r": 2}, rate=0.2)
    symmetric = AllocationModel.symmetric_nmf(2, rate=0.2)
    table = np.array([[4, 1, 0], [0, 0, 3], [2, 0, 5]])
    observed = np.array([[True, True, False], [True, False, True], [True, True, True]])
    for model in (chain, symmetric):
        bound = model.predict_missing(table, "vb", observed=observed, random_state=0)
        found = model.decompose(table, observed=observed, random_state=0)
        assert found.value == bound.evidence.value
        for node, table_of in found.tables.items():
            np.testing.assert_allclose(table_of.sum(axis=0), 1, rtol=1e-12, err_msg=node)
        assert np.isfinite(found.missing_counts).all()
        assert found.reconstruction()[~observed] == pytest.approx(found.missing_counts)


@pytest.mark.parametrize("make", [np.asarray, np.float64, sparse.csr_matrix, tensor_of])
def test_what_masked_cells_hold_is_ignored(make):
    """Entries are held out by a mask, whatever stands in them."""
    full = np.where(OBSERVED, TABLE, 7)
    wanted = NMF.decompose(np.where(OBSERVED, TABLE, 0), observed=OBSERVED, random_state=0)
    found = NMF.decompose(make(full), observed=OBSERVED, random_state=0)
    assert found.value == wanted.value
    np.testing.assert_array_equal(found.missing_counts, wanted.missing_counts)
    held_out = NMF.log_evidence(make(full), "vb", observed=OBSERVED, random_state=0)
    again = NMF.log_evidence(np.where(OBSERVED, TABLE, 0), "vb", observed=OBSERVED, random_state=0)
    assert held_out.value == again.value
    bad = np.where(OBSERVED, TABLE, -0.5)
    assert NMF.decompose(bad, observed=OBSERVED, random_state=0).value == wanted.value
