"""Fits of R's fastTopics, from tables of F and L."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from scipy.special import digamma, polygamma

from polyabayes._support import checks
from polyabayes._support.arrays import Floats
from polyabayes._support.files import checked_path
from polyabayes._support.warnings import warn
from polyabayes.data.counts import words_of
from polyabayes.exceptions import FileFormatError, InvalidArgumentError, PriorWarning
from polyabayes.interop.shared import lda_of
from polyabayes.io.tabular.delimited import DelimitedTable, Dialect
from polyabayes.models import LatentDirichletAllocation
from polyabayes.models.fitted_topics import normalised

_MOST_STEPS = 1000


def from_fasttopics(
    F: Any,
    L: Any = None,
    *,
    doc_topic_prior: Any = None,
    vocabulary: Any = None,
    minval: float = 1e-10,
    random_state: Any = None,
) -> LatentDirichletAllocation:
    """Convert a fit of fastTopics: a multinomial topic model or a Poisson factorisation.

    fastTopics maximises the likelihood, without a prior of the topic weights. Give
    `doc_topic_prior`, or `L`: a Dirichlet distribution is then fitted to its rows by maximum
    likelihood. A Poisson factorisation becomes the equivalent multinomial model
    (``poisson2multinom``): with u_k = sum_j F_jk, topics are F_jk / u_k and weights L_ik u_k
    divided by row sums.

    Parameters
    ----------
    F : array, DataFrame of shape (n_words, n_components), or path
        ``fit$F``, or the path of a table written by R's ``write.csv(fit$F, ...)`` with row names.
    L : array, DataFrame of shape (n_documents, n_components), or path, optional
        ``fit$L``, or the path of such a table.
    doc_topic_prior : float or array of shape (n_components,), optional
        Dirichlet parameters of the topic weights.
    vocabulary : sequence of str of length n_words, optional
        The words; default: the row names of `F`.
    minval : float, default=1e-10
        Smallest probability of a word in a topic before normalisation. Maximum likelihood gives
        zeros, which would make held-out words impossible.
    {seed of transform}

    Returns
    -------
    LatentDirichletAllocation

    Raises
    ------
    InvalidArgumentError
        If shapes do not fit, or there is no prior.
    FileFormatError, FileAccessError
        If a table cannot be read.

    References
    ----------
    Carbonetto et al. (2021). Non-negative matrix factorization algorithms greatly improve topic
    model fits. arXiv:2105.13440.

    Examples
    --------
    >>> fit = pb.interop.from_fasttopics([[8.0, 0.0], [2.0, 5.0]], doc_topic_prior=0.5)
    >>> fit.components_.round(3).tolist()
    [[0.8, 0.2], [0.0, 1.0]]
    """
    table, names = _table(F, "F")
    checks.positive_number("minval", minval)
    scale = table.sum(axis=0)
    topics = normalised(table.T, "F")
    if doc_topic_prior is None:
        if L is None:
            raise InvalidArgumentError(
                "fastTopics has no prior of the topic weights: give doc_topic_prior, or L to fit "
                "one"
            )
        loadings, _ = _table(L, "L")
        if loadings.shape[1] != len(topics):
            raise InvalidArgumentError(
                f"L has {loadings.shape[1]} columns, F has {len(topics)}: one for each topic"
            )
        weights = normalised(loadings * scale, "L", "document", "topic")
        doc_topic_prior = dirichlet_of(np.maximum(weights, minval))
        warn(
            "fastTopics has no prior of the topic weights: likelihoods use a Dirichlet "
            "distribution fitted to L",
            PriorWarning,
        )
    words = words_of(names if vocabulary is None else vocabulary, topics.shape[1], "F")
    topics = normalised(np.maximum(topics, minval), "F")
    return lda_of(topics, doc_topic_prior, words, random_state)


def _table(value: Any, name: str) -> tuple[Floats, list[str] | None]:
    """Values and row names of an array, a DataFrame or a table that R wrote."""
    if isinstance(value, (str, os.PathLike)):
        return _read(value, name)
    matrix = checks.matrix(name, value)
    index = getattr(value, "index", None)
    if index is None or callable(index) or np.asarray(index).dtype.kind in "iu":
        return matrix, None
    return matrix, [str(row) for row in index]


def _read(path: Any, name: str) -> tuple[Floats, list[str]]:
    table = DelimitedTable(checked_path(path, name), Dialect())
    rows, *topics = table.names
    if not (topics and table.n_rows):
        raise FileFormatError(
            f"{path} is no table with a header, row names and a column a topic, as write.csv writes"
        )
    values = np.column_stack([table.numbers(topic) for topic in topics]).astype(np.float64)
    return values, list(map(str, table.values(rows)))


def dirichlet_of(weights: Floats) -> Floats:
    """Maximum likelihood of Dirichlet parameters by Newton's method (Minka 2000).

    Weights are positive; rows sum to 1.
    """
    target = np.log(weights / weights.sum(axis=1, keepdims=True)).mean(axis=0)
    alpha = np.full(len(target), 1.0)
    for _ in range(_MOST_STEPS):
        gradient = digamma(alpha.sum()) - digamma(alpha) + target
        curvature = -polygamma(1, alpha)
        total = polygamma(1, alpha.sum())
        shared = (gradient / curvature).sum() / (1 / total + (1 / curvature).sum())
        step = (gradient - shared) / curvature
        following = alpha - step
        # A step beyond the boundary is cut to half the way to it.
        following = np.where(following > 0, following, alpha / 2)
        if np.allclose(following, alpha, rtol=1e-10, atol=0):
            return following
        alpha = following
    return alpha
