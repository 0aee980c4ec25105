"""Traces of training."""

from __future__ import annotations

from dataclasses import dataclass

from polyabayes._support.arrays import Floats, Integers
from polyabayes._support.results import Record


@dataclass(frozen=True, repr=False, eq=False)
class TrainingTrace(Record):
    """Trace of training, recorded every ``eval_every`` sweeps.

    Attributes
    ----------
    n_iter : ndarray of int
        Sweeps done.
    log_joint : ndarray
        ln of the joint density of words, topics of tokens and parameters, in nats, up to a
        constant; with bursty topics, given phi: it falls where the burn-in ends, and phi begins
        to be drawn. For NMF, ln of the Poisson likelihood of the
        training counts given topics and weights, including all constants.
    held_out : ndarray
        Nats per token of ``eval_corpus`` under the current model; NaN without one.
    held_out_std_error : ndarray
        Standard error of ``held_out``.
    seconds : ndarray
        Seconds since training started or resumed, without evaluations.

    Examples
    --------
    >>> counts = [[3, 1, 0, 0], [2, 2, 0, 0], [0, 0, 1, 3], [0, 0, 2, 2]]
    >>> lda = pb.LatentDirichletAllocation(2, max_iter=20, random_state=0).fit(counts)
    >>> lda.trace_.n_iter.tolist(), lda.trace_.log_joint.shape
    ([10, 20], (2,))
    """

    n_iter: Integers
    log_joint: Floats
    held_out: Floats
    held_out_std_error: Floats
    seconds: Floats


@dataclass(frozen=True, repr=False, eq=False)
class BoundTrace(Record):
    """Trace of variational EM, by iteration.

    Attributes
    ----------
    n_iter : ndarray of int
        Iterations done; the first entry is the start.
    bound : ndarray
        Quantity that EM climbs, in nats: the lower bound of ln p(words | parameters) of the
        training documents, plus ln of the prior density of the topics,
        Dirichlet(1 + `topic_word_prior`), relative to its maximum. The estimator's ``bound_`` is
        the first part alone.

    Examples
    --------
    >>> counts = [[3, 1, 0, 0], [2, 2, 0, 0], [0, 0, 1, 3], [0, 0, 2, 2]]
    >>> lda = pb.LatentDirichletAllocation(2, fit_method="em", max_iter=5, random_state=0)
    >>> bool((lda.fit(counts).trace_.bound < 0).all())
    True
    """

    n_iter: Integers
    bound: Floats
