"""scHPF, by objects that publish what it publishes: it is in no package index."""

import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from scipy import special

import polyabayes as pb

CAPACITIES = np.array([0.5, 2.0, 8.0])
COUNTS = np.array([[3, 0, 1], [0, 2, 0], [1, 0, 0]])


class scHPF:  # noqa: N801
    """The published attributes of a trained model."""

    a, ap, bp = 0.3, 1.5, 0.6

    def __init__(self):
        self.xi = SimpleNamespace(e_x=CAPACITIES)
        # Genes x factors, in single precision as scHPF may keep them.
        self.beta = SimpleNamespace(e_x=np.array([[2.0, 0.1], [0.25, 1.0], [0.5, 0.5]], np.float32))


scHPF.__module__ = "schpf.scHPF_"


def by_hand(counts, capacity):
    """ln p of a cell's counts given its capacity, by quadrature over both weights."""
    nodes, weights = special.roots_genlaguerre(60, scHPF.a - 1)
    theta = np.stack(np.meshgrid(nodes, nodes), axis=-1).reshape(-1, 2) / capacity
    weight = np.multiply.outer(weights, weights).ravel() / special.gamma(scHPF.a) ** 2
    rates = theta @ np.asarray(scHPF().beta.e_x, dtype=float).T
    ln_p = (counts * np.log(rates) - rates - special.gammaln(counts + 1)).sum(axis=1)
    return np.log((weight * np.exp(ln_p)).sum())


def test_given_the_capacities_the_likelihood_is_that_of_the_model():
    theirs = scHPF()
    model, exposure = pb.interop.from_schpf(theirs), pb.interop.schpf_exposure(theirs)
    found = pb.log_likelihood(model, COUNTS, exposure=exposure).values
    expected = [by_hand(row, xi) for row, xi in zip(COUNTS, CAPACITIES, strict=True)]
    assert found == pytest.approx(expected, rel=1e-6)
    # Exposure 1 is a cell of the capacity ap / bp.
    typical = pb.log_likelihood(theirs, COUNTS).values
    assert typical == pytest.approx([by_hand(row, 2.5) for row in COUNTS], rel=1e-6)


def test_it_is_recognised_and_compared():
    theirs = scHPF()
    exposure = pb.interop.schpf_exposure(theirs)
    found = pb.compare({"schpf": theirs}, COUNTS, event="counts", exposure=exposure)
    ours = pb.log_likelihood(pb.interop.from_schpf(theirs), COUNTS, exposure=exposure)
    assert found.results["schpf"].total == pytest.approx(ours.total, rel=1e-12)
    named = pb.interop.from_schpf(theirs, vocabulary=["ACTB", "CD3E", "MS4A1"])
    assert named.vocabulary_.tolist() == ["ACTB", "CD3E", "MS4A1"]


def test_nothing_of_the_package_is_imported(monkeypatch):
    trap = ModuleType("schpf")
    trap.__getattr__ = lambda name: pytest.fail(f"schpf.{name} was asked for")
    monkeypatch.setitem(sys.modules, "schpf", trap)
    assert pb.interop.from_schpf(scHPF()).components_.shape == (2, 3)


def changed(**attributes):
    theirs = scHPF()
    vars(theirs).update(attributes)
    return theirs
