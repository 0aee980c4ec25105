"""Counts like those of mutational signatures: 96 channels, loads over orders of magnitude.

Signatures are sparse but for one or two flat ones; each sample has some of them, with loads that
are log-normal, so that a few samples hold most of the counts.
"""

from typing import NamedTuple

import numpy as np
from benches.choice.factors import METHODS
from benches.choice.pieces import Case, Part, by_choice

import polyabayes as pb

N_CHANNELS = 96


class Regime(NamedTuple):
    """How samples are drawn: a signature is in a sample with probability `share`."""

    n_signatures: int = 5
    n_flat: int = 1
    n_samples: int = 100
    share: float = 0.5
    median_load: float = 300.0
    spread: float = 1.0


REGIMES = {
    "5 signatures": Regime(),
    "5, few samples": Regime(n_samples=30),
    "5, low loads": Regime(median_load=50.0),
    "10, 2 of them flat": Regime(n_signatures=10, n_flat=2, n_samples=200, share=0.3),
}


def drawn(regime: Regime, seed: int) -> Case:
    """Samples x channels."""
    rng = np.random.default_rng(seed)
    n_sparse = regime.n_signatures - regime.n_flat
    signatures = np.vstack(
        [
            rng.dirichlet(np.full(N_CHANNELS, 0.1), n_sparse),
            rng.dirichlet(np.full(N_CHANNELS, 5.0), regime.n_flat),
        ]
    )
    shape = (regime.n_samples, regime.n_signatures)
    active = rng.random(shape) < regime.share
    # Every sample has one signature at least.
    active[np.arange(regime.n_samples), rng.integers(regime.n_signatures, size=shape[0])] = True
    loads = active * regime.median_load * rng.lognormal(0.0, regime.spread, shape)
    counts = rng.poisson(loads @ signatures)
    counts = counts[counts.sum(axis=1) > 0]
    return Case(regime.n_signatures, counts, list(range(1, 2 * regime.n_signatures + 3)))


CHOOSE = by_choice(pb.PoissonFactorAnalysis())
SIGNATURES = Part(
    "signatures", REGIMES, drawn, {"choose": CHOOSE, **METHODS}, rests_on="pfa, beta-gamma-gamma"
)
