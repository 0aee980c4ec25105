"""Corpora of bursty topics of a known number: the choice of bursty topics, and that of LDA."""

from typing import NamedTuple

import numpy as np
from benches.choice.laws import bursty
from benches.choice.pieces import Case, Part, by_choice

import polyabayes as pb


class Regime(NamedTuple):
    """Topics, and the concentration around which documents draw their own."""

    n_topics: int
    concentration: int


SIZES = [(5, 20), (12, 20), (30, 20), (5, 100), (12, 100), (30, 100)]
REGIMES = {f"{size} topics, s = {s}": Regime(size, s) for size, s in SIZES}


def drawn(regime: Regime, seed: int) -> Case:
    """A corpus of the regime; sizes are found."""
    counts = bursty(np.random.default_rng([seed, *regime]), *regime)
    return Case(regime.n_topics, pb.Corpus(counts[:, counts.any(axis=0)]), [])


METHODS = {
    name: by_choice(pb.LatentDirichletAllocation(topic_concentration=s, n_jobs=1), f", {name}")
    for name, s in {"bursty topics": "learn", "LDA": None}.items()
}
BURSTS = Part("bursts", REGIMES, drawn, METHODS)
