"""Structural topic models of R's stm."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polyabayes._support.files import checked_path, content_of, open_regular, reading
from polyabayes._support.optional import import_optional
from polyabayes.exceptions import FileFormatError, InvalidArgumentError, InvalidTypeError, argument
from polyabayes.models import DocumentModel
from polyabayes.models.fitted_topics import normalised

# Names of the parts that identify a fit among lists of R.
_PARTS = ("mu", "sigma", "beta", "vocab", "settings")


def from_stm(
    fit: Any, *, name: str | None = None, level: str | None = None, random_state: Any = None
) -> DocumentModel:
    """Convert a fit of R's stm: topics, and a logistic normal prior that depends on covariates.

    p(words | theta) = prod_n sum_k theta_k topic_kw, theta = softmax(eta, 0), eta ~ N(x gamma,
    sigma). What stm reports is a variational bound of this likelihood.

    Parameters
    ----------
    fit : path-like or mapping
        A file written by R's ``save`` or ``saveRDS`` (needs the package rdata), or the result of
        ``rdata.read_rda`` or ``rdata.read_rds``.
    name : str, optional
        Name of the fit in a file of several objects.
    level : str, optional
        Level of the content covariate of the documents to score, if the fit has such a covariate.
    {seed of transform}

    Returns
    -------
    DocumentModel
        With prevalence covariates, its ``covariates=`` are a data frame of these covariates, which
        the names of the fit's design matrix tell (products and levels, too), or rows of that matrix
        (``model.matrix(formula, data)``, with the column of ones), as splines need.

    Raises
    ------
    FileAccessError, FileFormatError
        If the file cannot be read, or is not a file of R.
    InvalidArgumentError, InvalidTypeError
        If there is no fit of stm, there are several, or the level is unknown.
    MissingDependencyError
        If a file is given, and rdata is not installed.

    References
    ----------
    M. Roberts, B. Stewart and E. Airoldi (2016). A model of text for experimentation in the social
    sciences. JASA 111.

    Examples
    --------
    >>> stm = pb.interop.from_stm("gadarianFit.RData")  # doctest: +SKIP
    >>> result = pb.log_likelihood(stm, documents, covariates=survey)  # doctest: +SKIP
    """
    parts = _fit_in(fit, name)
    settings, topics = parts["settings"], np.exp(_topics_at(parts, level))
    gamma = parts["mu"].get("gamma")
    if gamma is None:
        # A correlated topic model: all columns equal the mean of its prior.
        prior: dict[str, Any] = {"mean": np.asarray(parts["mu"]["mu"], dtype=np.float64)[:, 0]}
    else:
        prior = {"coefficients": np.asarray(gamma, dtype=np.float64).T}
    design = settings["covariates"]["X"] if gamma is not None else None
    return DocumentModel.logistic_normal(
        normalised(topics, "beta of the fit"),
        covariance=np.asarray(parts["sigma"], dtype=np.float64),
        covariate_names=_names_of(design),
        vocabulary=[str(word) for word in parts["vocab"]],
        random_state=random_state,
        **prior,
    )


def _fit_in(fit: Any, name: str | None) -> Mapping[str, Any]:
    source = "fit"
    if isinstance(fit, (str, os.PathLike)):
        source, fit = str(fit), _read(fit)
    if not isinstance(fit, Mapping):
        raise InvalidTypeError(
            f"fit must be a file of R or what rdata reads from one, got {type(fit).__name__}"
        )
    if _is_fit(fit):
        return fit
    fits = {str(key): value for key, value in fit.items() if _is_fit(value)}
    if name is not None:
        fits = {key: value for key, value in fits.items() if key == name}
    if len(fits) != 1:
        found = ", ".join(map(str, fit)) or "nothing"
        which = "no fit of stm" if not fits else "several fits: choose one by name="
        raise InvalidArgumentError(f"{source} holds {which}; it holds {found:.200}")
    return next(iter(fits.values()))


def _is_fit(value: Any) -> bool:
    return isinstance(value, Mapping) and all(part in value for part in _PARTS)


def _read(path: Any) -> Any:
    rdata = import_optional("rdata", "files of R need rdata")
    file = checked_path(path, "fit")
    with open_regular(file) as stream, reading(file), content_of(file):
        try:
            # Bytes that are no file of R end in many kinds of errors.
            return rdata.conversion.convert(rdata.parser.parse_file(stream))
        except OSError:
            raise
        except Exception as error:
            raise FileFormatError(f"{file} is no .RData or .rds file: {error}") from error


def _topics_at(parts: Mapping[str, Any], level: str | None) -> NDArray[np.float64]:
    """Ln of the topics, at a level of the content covariate if there is one."""
    tables = parts["beta"]["logbeta"]
    levels = parts["settings"]["covariates"].get("yvarlevels")
    known = [] if levels is None else [str(found) for found in np.ravel(levels)]
    if len(tables) == 1:
        if level is not None:
            raise InvalidArgumentError(f"{argument('level')}: the fit has no content covariate")
        return np.asarray(tables[0], dtype=np.float64)
    if level not in known:
        raise InvalidArgumentError(
            f"{argument('level')} must be one of {', '.join(known[:8])}: topics have words of "
            f"their own at each level of the content covariate; got {level!r:.100}"
        )
    return np.asarray(tables[known.index(level)], dtype=np.float64)


def _names_of(design: Any) -> list[str] | None:
    """Names of the columns of the design matrix; None if the file lacks them."""
    names = getattr(design, "columns", None)
    if names is None and hasattr(design, "dims"):
        names = design.coords.get(design.dims[1])
    return None if names is None else [str(name) for name in np.asarray(names)]
