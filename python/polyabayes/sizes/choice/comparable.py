"""Fits of different sizes that may be compared: starts that find every topic."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from sklearn.base import clone

from polyabayes.models.fitting import LONG_START, OtherStart, StartLength
from polyabayes.models.latent_draws import TokenTopics

# Growing from fewer topics: the start, and topics at first for each that is asked for and at most.
# Of 50 topics all but 0.1 are then kept apart; 30 sweeps, or 1.5 times as many, merge one or two.
GROWN_START, _GROWN_WIDTH, _MOST_FIRST = StartLength(60, 0.6), 2.0, 2048
# Starts of a fit that is compared with fits of other sizes; the best of them goes on.
_STARTS = 2


def comparable(model: Any, size: int, seed: int, smaller: TokenTopics | None = None) -> Any:
    """A clone of so many topics that begins with long starts, or grows from fewer topics.

    A fit that merges two topics scores below as many topics well found, so that larger sizes win.
    Growing from the topics of all tokens in a smaller fit finds topics as well (each is split, and
    the surplus is merged as in any start), and takes two thirds of the time.
    """
    made = clone(model).set_params(n_components=size, random_state=seed)
    if smaller is None:
        made.set_params(n_init=max(made.n_init, _STARTS))
        made._start = LONG_START
        return made
    n_first = min(math.ceil(_GROWN_WIDTH * size), max(size, _MOST_FIRST))
    topics = smaller.split(n_first, np.random.default_rng([seed, n_first]))
    burn_in = made.max_iter // 2 if made.burn_in is None else made.burn_in
    saved = burn_in - burn_in // 2
    made.set_params(n_init=1, burn_in=burn_in - saved, max_iter=made.max_iter - saved)
    made._start = OtherStart(n_first, topics, GROWN_START.n_sweeps(burn_in))
    return made


def comparable_sweeps(model: Any) -> int:
    """Sweeps of a fit by :func:`comparable`, those of its starts included."""
    burn_in = model.max_iter // 2 if model.burn_in is None else model.burn_in
    n_sweeps: int = model.max_iter + max(model.n_init, _STARTS) * LONG_START.n_sweeps(burn_in)
    return n_sweeps
