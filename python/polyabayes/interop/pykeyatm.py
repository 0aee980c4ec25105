"""Keyword-assisted topic models of pykeyatm."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from polyabayes._support.arrays import Floats
from polyabayes.exceptions import InvalidArgumentError, InvalidTypeError, argument
from polyabayes.interop.shared import covariate_rows, lda_of_priors
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


def _alpha(fit: Mapping[str, Any], covariates: Any) -> Floats:
    """The prior of documents with these covariates, or at these times."""
    values = fit["values_iter"]
    if "Lambda_iter" in values:
        slopes = np.asarray(values["Lambda_iter"][-1], dtype=np.float64)
        x = covariate_rows(covariates, slopes.shape[1], "as in covariates_data_use")
        return np.asarray(np.exp(x @ slopes.T))
    if "R_iter_last" in values:
        states = np.asarray(values["R_iter_last"], dtype=np.int64)
        times = np.asarray(() if covariates is None else covariates)
        if times.ndim > 1 or not times.size or not np.isin(times, 1 + np.arange(len(states))).all():
            raise InvalidArgumentError(
                f"covariates must be times from 1 to {len(states)}, got {covariates!r:.80}"
            )
        alpha = _last(values).pivot_table("alpha", "State", "Topic").to_numpy(dtype=np.float64)
        return np.asarray(alpha[states[times.astype(np.int64) - 1] - 1])
    if covariates is not None:
        raise InvalidArgumentError(f"{argument('covariates')}: this fit depends on none")
    is_drawn = "alpha_iter" in values
    alpha = _last(values).sort_values("Topic")["alpha"] if is_drawn else fit["priors"]["alpha"]
    return np.asarray(alpha, dtype=np.float64)


def _last(values: Mapping[str, Any]) -> Any:
    """The priors of the last iteration."""
    drawn = values["alpha_iter"]
    return drawn[drawn["Iteration"] == drawn["Iteration"].max()]
