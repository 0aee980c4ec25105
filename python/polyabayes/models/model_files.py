"""Fitted models in files."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polyabayes._support import checks
from polyabayes._support.files import checked_path, reading
from polyabayes.exceptions import FileFormatError, InvalidArgumentError
from polyabayes.models.fitted.covariates import Design
from polyabayes.models.fitted.fitted_model import FittedModel
from polyabayes.models.fitted.stored_model import StoredModel
from polyabayes.models.other_files import refuse_other_files
from polyabayes.models.topic_model import TopicModel

# Exceptions that a damaged header or array may lead to.
_DAMAGED = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)

# Functions that make models from a file's content, by class name. Other packages register theirs;
# all other classes are topic models.
readers: dict[str, Callable[[StoredModel], Any]] = {}


def load(path: str | os.PathLike[str]) -> Any:
    """Read a model written by ``save``.

    Parameters
    ----------
    path : str or path-like
        The file.

    Returns
    -------
    fitted model
        Of the class that was saved: LatentDirichletAllocation, PoissonFactorAnalysis,
        DocumentModel, LatentClassAnalysis or LatentTransitionAnalysis. Its ``provenance_`` has the
        ``version`` of the package that wrote the file, the ``date`` (UTC) and the ``notes`` given
        to ``save``.

    Raises
    ------
    FileAccessError
        If the file is missing or unreadable.
    FileFormatError
        If it is not a complete model of polyabayes; the message says what it looks like.

    Examples
    --------
    >>> file = folder / "model.safetensors"
    >>> model.save(file)
    >>> pb.load(file).doc_topic_prior_.tolist()
    [0.1, 0.1]
    """
    place = checked_path(path)
    refuse_other_files(place)
    with reading(place):
        stored = StoredModel.read(place)
        try:
            read: Callable[[StoredModel], Any] = readers.get(stored.class_name, _made)
            model = read(stored)
        except _DAMAGED as error:
            raise FileFormatError(f"{path} does not hold a complete model: {error!r}") from error
    model.provenance_ = stored.provenance
    return model


def _made(stored: StoredModel) -> FittedModel:
    model = FittedModel.classes[stored.class_name](**stored.parameters)
    arrays, scalars = stored.arrays, stored.scalars
    normalised = model._conditions_on_length
    optional = (name for name in model._optional_arrays if name in arrays)
    names = [*model._stored(), *optional]
    for name in names:
        setattr(model, name, arrays[name])
    model._set_topic_word(arrays["components_"], stored.vocabulary, None, normalised=normalised)
    model._seal()
    model.n_iter_ = checks.whole_number("n_iter_", scalars["n_iter_"], 0)
    model.seed_ = checks.whole_number("seed_", scalars["seed_"], 0, 2**64 - 1)
    if "topic_counts_" in names:
        model.topic_counts_ = _token_counts(arrays["topic_counts_"], len(model.components_))
    if "topic_concentration_" in names:
        _check_concentrations(model)
    if "topic_word_prior_" in scalars:
        prior = checks.not_negative_number("topic_word_prior_", scalars["topic_word_prior_"])
        model.topic_word_prior_ = prior
    if "bound_" in scalars:
        model.__dict__["bound_"] = float(scalars["bound_"])
        model.__dict__["_bound_is_of"] = str(scalars["_bound_is_of"])
    for name, kind in (("_trained_on", str), ("_has_exposure", bool)):
        if name in scalars:
            setattr(model, name, kind(scalars[name]))
    if "topic_names_" in scalars:
        model.name_topics(scalars["topic_names_"])
    if "design" in scalars:
        _take_design(model, scalars["design"])
    # The core makes its own copy, and aborts the process if there is no memory for it.
    np.empty_like(model.components_)
    if model._has_likelihood():
        model._core_model()
    return model


def _take_design(model: FittedModel, content: Any) -> None:
    design = Design.from_json(content)
    if not isinstance(model, TopicModel):
        raise InvalidArgumentError(f"a {type(model).__name__} is not trained with covariates")
    model._take_design(design)
    shape = len(model.components_), len(design.names)
    if model.coefficients_.shape != shape or model.coefficient_draws_.shape[1:] != shape:
        raise InvalidArgumentError("coefficients are not one for each topic and column")


def _check_concentrations(model: Any) -> None:
    n_topics = len(model.components_)
    values = model.topic_concentration_
    draws = getattr(model, "topic_concentration_draws_", values[np.newaxis])
    same_size = values.shape == (n_topics,) and draws.shape[1:] == (n_topics,)
    if not same_size or not (values > 0).all() or not (draws > 0).all():
        raise InvalidArgumentError("topic_concentration_ is not one positive number a topic")


def _token_counts(array: NDArray[Any], n_topics: int) -> NDArray[Any]:
    numbers = array.dtype in (np.int64, np.float64)
    if not numbers or array.shape != (n_topics,) or not (array >= 0).all():
        raise InvalidArgumentError("topic_counts_ are not one number of tokens a topic")
    return array
