"""Whose evidence of a candidate counts: particles, or tempering."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import polyabayes as pb
from polyabayes.allocation.options import Run
from polyabayes.sizes.evidence.concentrations import Concentrations
from polyabayes.sizes.evidence.staged import Networks, StagedComparison


@pytest.mark.parametrize("converged", [True, False])
@pytest.mark.filterwarnings("ignore::polyabayes.exceptions.UnreliableErrorWarning")
def test_tempering_counts_if_it_has_converged(monkeypatch, converged):
    counts = np.random.default_rng(0).poisson(3.0, (6, 6))
    tensor = pb.CountTensor.from_dense(counts, axes=["doc", "word"])
    networks = Networks(tensor, lambda one: pb.AllocationModel.nmf(one[0][0]))
    run = Run.of(random_state=0, n_jobs=1, progress=False)
    compared = StagedComparison(networks, Concentrations.even([None]), {(3,): 0.0}, 0, run)
    one = ((3,), 0)
    compared.look(one, 0)
    particles = compared.evidences[one]
    assert particles.method == "smc"
    higher = replace(particles, value=particles.value + 50, std_error=0.01, converged=converged)
    draws = SimpleNamespace(evidence=replace(higher, log_probability_of_total=0.0))
    monkeypatch.setattr(pb.AllocationModel, "sample_posterior", lambda *_, **__: draws)
    compared._temper(one)
    found = compared.evidences[one]
    assert found.value == particles.value + (50 if converged else 0)
    # They contradict one another.
    assert found.std_error >= 50
    assert not found.converged
