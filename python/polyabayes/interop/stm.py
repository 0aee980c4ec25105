"""Structural topic models of R's stm, and of its port structural-topic-model."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from polyabayes._support.arrays import Floats
from polyabayes._support.files import checked_path, content_of, open_regular, reading
from polyabayes._support.optional import import_optional
from polyabayes.data.counts import words_of
from polyabayes.exceptions import FileFormatError, InvalidArgumentError, InvalidTypeError, argument
from polyabayes.interop.shared import attribute
from polyabayes.likelihood.foreign import adapter
from polyabayes.models import DocumentModel
from polyabayes.models.fitted.covariate_tables import covariate_frame, dates_in, with_days
from polyabayes.models.fitted.covariates import design_of
from polyabayes.models.fitted_topics import normalised

# A column of a spline in a design matrix of R, and the degree of its polynomials.
_SPLINE, _DEGREE = re.compile(r"\bs\((?:\w+\$)?(\w+)(?:, *(?:df *= *)?(\d+))?\)(\d+)"), 3
# Names of the parts that identify a fit among lists of R.
_PARTS = ("mu", "sigma", "beta", "vocab", "settings")


@adapter("stm")
def from_stm(
    fit: Any,
    *,
    name: str | None = None,
    level: Any = None,
    covariates: Any = None,
    vocabulary: Any = None,
    random_state: Any = None,
) -> DocumentModel:
    """Convert a fit of stm: topics, and a logistic normal prior that depends on covariates.

    p(words | theta) = prod_n sum_k theta_k topic_kw, theta = softmax(eta, 0), eta ~ N(x gamma,
    sigma). What stm reports is a variational bound of this likelihood.

    Parameters
    ----------
    fit : path-like, mapping or StructuralTopicModel
        A file written by R's ``save`` or ``saveRDS`` (needs the package rdata), the result of
        ``rdata.read_rda`` or ``rdata.read_rds``, or a fitted model of Python's
        structural-topic-model.
    name : str, optional
        Name of the fit in a file of several objects.
    level : optional
        Level of the content covariate of the documents to score, if the fit has such a covariate.
    covariates : DataFrame or mapping, optional
        Covariates of the training documents, in their order, if the formula of the fit has splines
        such as ``s(day)``: a fit of R keeps the values of its splines, but not their knots.
    vocabulary : sequence of str of length n_words, optional
        The words of a StructuralTopicModel, which does not keep them.
    {seed of transform}

    Returns
    -------
    DocumentModel
        With prevalence covariates, its ``covariates=`` are a data frame of these covariates, which
        the names of the fit's design matrix tell (products and levels, too), or rows of that matrix
        (``model.matrix(formula, data)``, with the column of ones). A StructuralTopicModel has no
        names: its ``covariates=`` are rows with the column of ones.

    Raises
    ------
    FileAccessError, FileFormatError
        If the file cannot be read, or is not a file of R.
    InvalidArgumentError, InvalidTypeError
        If there is no fit of stm, there are several, the level is unknown, or the covariates are
        not those of the training documents.
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
    is_python = type(fit).__name__ == "StructuralTopicModel"
    if vocabulary is not None and not is_python:
        raise InvalidArgumentError(f"{argument('vocabulary')}: a fit of R keeps its own words")
    parts = _of_python(fit, vocabulary) if is_python else _fit_in(fit, name)
    settings, topics = parts["settings"], np.exp(_topics_at(parts, level))
    gamma = parts["mu"].get("gamma")
    if gamma is None:
        # A correlated topic model: all columns equal the mean of its prior.
        prior: dict[str, Any] = {"mean": np.asarray(parts["mu"]["mu"], dtype=np.float64)[:, 0]}
    else:
        prior = {"coefficients": np.asarray(gamma, dtype=np.float64).T}
    design = settings["covariates"]["X"] if gamma is not None else None
    names = _names_of(design)
    if covariates is not None:
        if names is None:
            raise InvalidArgumentError(
                f"{argument('covariates')}: the fit keeps no named design matrix whose splines "
                "they could tell"
            )
        names = _with_knots(names, covariates, design)
    return DocumentModel.logistic_normal(
        normalised(topics, "beta of the fit"),
        covariance=np.asarray(parts["sigma"], dtype=np.float64),
        covariate_names=names,
        vocabulary=parts["vocab"],
        random_state=random_state,
        **prior,
    )


def _of_python(model: Any, vocabulary: Any) -> dict[str, Any]:
    """The parts of a StructuralTopicModel under the names that R gives them."""
    package = "structural-topic-model"
    topics, mean, levels, gamma, covariance = (
        attribute(model, name, package)
        for name in ("components_", "mu_", "content_levels_", "gamma_", "sigma_")
    )
    with np.errstate(divide="ignore"):
        tables = np.log([topics] if levels is None else model.aspect_components_)
    return {
        "mu": {"mu": np.transpose(np.atleast_2d(mean)), "gamma": gamma},
        "sigma": covariance,
        "beta": {"logbeta": tables},
        "vocab": words_of(vocabulary, np.shape(topics)[1], f"the {type(model).__name__}"),
        "settings": {"covariates": {"X": None, "yvarlevels": levels}},
    }


def _fit_in(fit: Any, name: str | None) -> Mapping[str, Any]:
    source = "fit"
    if isinstance(fit, (str, os.PathLike)):
        source, fit = str(fit), _read(fit)
    if not isinstance(fit, Mapping):
        raise InvalidTypeError(
            f"fit must be a file of R or what rdata reads from one, got {type(fit).__name__}"
        )
    if _is_fit(fit):
        return {**fit, "vocab": [str(word) for word in fit["vocab"]]}
    fits = {str(key): value for key, value in fit.items() if _is_fit(value)}
    if name is not None:
        fits = {key: value for key, value in fits.items() if key == name}
    if len(fits) != 1:
        found = ", ".join(map(str, fit)) or "nothing"
        which = "no fit of stm" if not fits else "several fits: choose one by name="
        raise InvalidArgumentError(f"{source} holds {which}; it holds {found:.200}")
    return _fit_in(next(iter(fits.values())), None)


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


def _topics_at(parts: Mapping[str, Any], level: str | None) -> Floats:
    """Ln of the topics, at a level of the content covariate if there is one."""
    tables = parts["beta"]["logbeta"]
    levels = parts["settings"]["covariates"].get("yvarlevels")
    known = [] if levels is None else [str(found) for found in np.ravel(levels)]
    if len(tables) == 1:
        if level is not None:
            raise InvalidArgumentError(f"{argument('level')}: the fit has no content covariate")
        return np.asarray(tables[0], dtype=np.float64)
    if str(level) not in known:
        raise InvalidArgumentError(
            f"{argument('level')} must be one of {', '.join(known[:8])}: topics have words of "
            f"their own at each level of the content covariate; got {level!r:.100}"
        )
    return np.asarray(tables[known.index(str(level))], dtype=np.float64)


def _names_of(design: Any) -> list[str] | None:
    """Names of the columns of the design matrix; None if the file lacks them."""
    names = getattr(design, "columns", None)
    if names is None and hasattr(design, "dims"):
        names = design.coords.get(design.dims[1])
    return None if names is None else [str(name) for name in np.asarray(names)]


def _with_knots(names: list[str], covariates: Any, design: Any) -> list[str]:
    """Names of the columns, those of splines with the knots that R's ``s`` puts at quantiles."""
    frame = covariate_frame(covariates)
    if frame is None:
        raise InvalidTypeError(f"{argument('covariates')} must be a data frame or a mapping")

    def with_knots(spline: re.Match[str]) -> str:
        column, df, place = spline.groups()
        if column not in frame:
            raise InvalidArgumentError(f"{argument('covariates')} has no column {column!r}")
        x = with_days(frame, dates_in(frame))[column].to_numpy(dtype=np.float64)
        n_inner = int(df or min(10, len(np.unique(x)) - 1)) - _DEGREE
        knots = np.quantile(x, np.linspace(0, 1, n_inner + 2)[1:-1]).tolist()
        ends = f"lower_bound={float(x.min())}, upper_bound={float(x.max())}"
        return f"bs({column}, knots={knots}, {ends})[{place}]"

    found = [_SPLINE.sub(with_knots, name) for name in names]
    made, kept = design_of(frame, found), np.asarray(design)
    if made.shape != kept.shape or not np.allclose(made, kept, rtol=0, atol=1e-8):
        raise InvalidArgumentError(
            f"{argument('covariates')} do not give the design of the fit, of shape {kept.shape}: "
            "give those of its training documents, in their order"
        )
    return found
