"""Fits of different sizes that may be compared: starts that find every topic."""

from __future__ import annotations

from typing import Any

from sklearn.base import clone

from polyabayes.models.fitting import LONG_START

# Starts of a fit that is compared with fits of other sizes; the best of them goes on.
_STARTS = 2


def comparable(model: Any, size: int, seed: int) -> Any:
    """A clone of so many topics that begins with long starts.

    A fit that merges two topics scores below as many topics well found, so that larger sizes win.
    Every size begins anew with the same number of sweeps: on AP a fit that goes on from that of a
    smaller size gains 0.02 nats per token, as its sweeps are added to those of the smaller one, and
    sizes with longer chains of fits behind them would win.
    """
    made = clone(model).set_params(n_components=size, random_state=seed)
    made.set_params(n_init=max(made.n_init, _STARTS))
    made._start = LONG_START
    return made


def comparable_sweeps(model: Any) -> int:
    """Sweeps of a fit by :func:`comparable`, those of its starts included."""
    burn_in = model.max_iter // 2 if model.burn_in is None else model.burn_in
    n_sweeps: int = model.max_iter + max(model.n_init, _STARTS) * LONG_START.n_sweeps(burn_in)
    return n_sweeps
