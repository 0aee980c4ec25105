"""What is trained on shards, and its state between two sweeps."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from polyabayes import _core
from polyabayes.scale.exposures import Exposures

__all__ = ["ShardedModel", "ShardedState"]


class ShardedModel(NamedTuple):
    """A model to train on shards.

    Attributes
    ----------
    alpha : ndarray of shape (n_components,)
        Pseudo-counts of documents from which to start.
    beta : float
        Dirichlet parameter of the topics from which to start.
    blocked : bool
        Whether topics are drawn given weights of their document, which are drawn first.
    tables, lengths, exposed : bool
        Whether the parameters need tables of topics, lengths of documents, and, where these have
        exposures, the tokens of every topic by exposure.
    exposures : Exposures or None
        Exposures of documents.
    chain : callable or None
        Gives the chain for ``counts`` of words by topic, and for a ``state`` of it or None; None
        where there is no chain, but updates.
    """

    alpha: NDArray[np.float64]
    beta: float
    blocked: bool
    tables: bool
    lengths: bool
    exposed: bool
    exposures: Exposures | None
    chain: Callable[..., _core.ShardedChain] | None


class ShardedState(NamedTuple):
    """State of a chain on shards.

    Attributes
    ----------
    n_sweeps : int
        Sweeps done.
    parameters : ndarray
        Those of the sampler beside phi, as the compiled core orders them.
    counts : csr_array of shape (n_components, n_words)
        Tokens of each topic and word.
    """

    n_sweeps: int
    parameters: NDArray[np.float64]
    counts: sparse.csr_array
