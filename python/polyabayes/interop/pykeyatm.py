"""Keyword-assisted topic models of pykeyatm."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polyabayes._support import checks
from polyabayes.exceptions import InvalidArgumentError, InvalidTypeError, argument
from polyabayes.interop.shared import lda_of_priors
from polyabayes.models import DocumentModel, LatentDirichletAllocation

_PARTS = ("phi", "priors", "values_iter")


def from_pykeyatm(
    fit: Any, *, covariates: Any = None, random_state: Any = None
) -> LatentDirichletAllocation | DocumentModel:
    """Convert the result of ``keyATM`` or ``weightedLDA`` of pykeyatm.

    Topics are ``phi``, over keywords and other words together; priors are those of the last
    iteration, as ``phi`` is. Scores are of plain counts, also if the fit has weighted its words.

    Parameters
    ----------
    fit : mapping
        What ``pykeyatm.keyATM`` or ``pykeyatm.weightedLDA`` returns.
    covariates : array, optional
        Of the documents to score. Model "covariates": rows of
        ``fit["kept_values"]["model_settings"]["covariates_data_use"]``, standardised and with the
        column of ones as there, of shape (n_features,) or (n_documents, n_features). Model
        "dynamic": their times, from 1 on, one number or shape (n_documents,). A row for each
        document gives a DocumentModel with a prior for each.
    {seed of transform}

    Returns
    -------
    LatentDirichletAllocation or DocumentModel

    Raises
    ------
    InvalidArgumentError, InvalidTypeError
        If `fit` is of another kind, or covariates are missing, do not fit or are given for model
        "base".

    References
    ----------
    S. Eshima, K. Imai and T. Sasaki (2024). Keyword-assisted topic models. AJPS 68.

    Examples
    --------
    >>> import pandas as pd
    >>> topics = pd.DataFrame([[0.8, 0.2], [0.1, 0.9]], columns=["tax", "war"])
    >>> fit = {"phi": topics, "priors": {"alpha": [0.5, 0.5]}, "values_iter": {}}
    >>> pb.interop.from_pykeyatm(fit).vocabulary_.tolist()
    ['tax', 'war']
    """
    if not isinstance(fit, Mapping) or not all(part in fit for part in _PARTS):
        raise InvalidTypeError(
            f"{argument('fit')} must be what keyATM or weightedLDA of pykeyatm returns, got "
            f"{type(fit).__name__}"
        )
    topics = fit["phi"]
    alpha = _alpha(fit, covariates)
    words = [str(word) for word in topics.columns]
    return lda_of_priors(topics.to_numpy(dtype=np.float64), alpha, words, random_state)


def _alpha(fit: Mapping[str, Any], covariates: Any) -> NDArray[np.float64]:
    """The prior of documents with these covariates, or at these times."""
    values = fit["values_iter"]
    x = checks.floats("covariates", [] if covariates is None else covariates)
    if "Lambda_iter" in values:
        slopes = np.asarray(values["Lambda_iter"][-1], dtype=np.float64)
        wanted = f"{slopes.shape[1]} finite numbers of each document, as in covariates_data_use"
        if x.ndim not in (1, 2) or x.shape[-1] != slopes.shape[1] or not np.isfinite(x).all():
            raise InvalidArgumentError(f"{argument('covariates')} must be {wanted}; got {x!r:.80}")
        return np.asarray(np.exp(x @ slopes.T))
    if "R_iter_last" in values:
        states = np.asarray(values["R_iter_last"], dtype=np.int64)
        if x.ndim > 1 or not x.size or not np.isin(x, 1 + np.arange(len(states))).all():
            raise InvalidArgumentError(
                f"{argument('covariates')} must be times from 1 to {len(states)}; got {x!r:.80}"
            )
        last = _last(values["alpha_iter"]).pivot_table("alpha", "State", "Topic")
        return np.asarray(last.to_numpy()[states[x.astype(np.int64) - 1] - 1], dtype=np.float64)
    if covariates is not None:
        raise InvalidArgumentError(f"{argument('covariates')}: this fit depends on none")
    if "alpha_iter" not in values:
        return np.asarray(fit["priors"]["alpha"], dtype=np.float64)
    return np.asarray(_last(values["alpha_iter"]).sort_values("Topic")["alpha"], dtype=np.float64)


def _last(drawn: Any) -> Any:
    """The rows of the last iteration."""
    return drawn[drawn["Iteration"] == drawn["Iteration"].max()]
