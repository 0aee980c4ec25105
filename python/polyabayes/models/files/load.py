"""Readers of fitted models in files."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np

from polyabayes._support import checks
from polyabayes._support.files import checked_path, reading
from polyabayes.exceptions import FileFormatError, InvalidArgumentError
from polyabayes.models.files.foreign import refuse_other_files
from polyabayes.models.fitted.covariates import Design
from polyabayes.models.fitted.fitted_model import FittedModel
from polyabayes.models.fitted.stored_model import StoredModel
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
    scalars = dict(stored.scalars)
    optional = (name for name in model._optional_arrays if name in stored.arrays)
    names = [*model._stored(), *optional]
    stored.refuse_others(names)
    for name in names:
        setattr(model, name, stored.arrays[name])
    normalised, topics = model._conditions_on_length, stored.arrays["components_"]
    model._set_topic_word(topics, stored.vocabulary, None, normalised=normalised)
    if not model.components_.any():
        raise ValueError("no topic has a word")
    model.seed_ = checks.whole_number("seed_", scalars.pop("seed_"), 0, 2**64 - 1)
    model.n_iter_ = checks.whole_number("n_iter_", scalars.pop("n_iter_"), 0)
    checks.not_negative_number("topic_word_prior_", scalars.get("topic_word_prior_", 0))
    if "topic_names_" in scalars:
        model.name_topics(scalars.pop("topic_names_"))
    if "design" in scalars:
        _take_design(model, scalars.pop("design"))
    # An attribute that needs no property to be set.
    model.__dict__.update(scalars)
    # The core makes its own copy, and aborts the process if there is no memory for it.
    np.empty_like(model.components_)
    if model._has_likelihood():
        getattr(model, "_checked_model", model._core_model)()
    return model


def _take_design(model: FittedModel, content: Any) -> None:
    design = Design.from_json(content)
    if not isinstance(model, TopicModel):
        raise InvalidArgumentError(f"a {type(model).__name__} is not trained with covariates")
    model._take_design(design)
    if model.coefficients_.shape != (len(model.components_), len(design.names)):
        raise InvalidArgumentError("coefficients are not one for each topic and column")
