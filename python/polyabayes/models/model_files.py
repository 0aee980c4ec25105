"""Fitted models in files."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from polyabayes._support import checks
from polyabayes._support.files import checked_path
from polyabayes._support.storage import read_arrays, write_arrays
from polyabayes.exceptions import FileFormatError, InvalidArgumentError

if TYPE_CHECKING:
    from polyabayes.models.topic_model import TopicModel

# Classes of models by name; every subclass of TopicModel enters itself.
CLASSES: dict[str, type[TopicModel]] = {}

# Fitted attributes that a file holds where the model has them.
_SCALARS = ("n_iter_", "seed_", "topic_word_prior_", "bound_", "_bound_is_of")

# What a header or an array comes to that is not what it should be.
_DAMAGED = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)

# Parameters that belong to the machine a model was trained on, not to the model.
_OF_THE_MACHINE = ("n_jobs", "progress", "checkpoint", "checkpoint_every")


def write_model(model: TopicModel, path: Path) -> None:
    """Write a fitted model to a safetensors file."""
    parameters = model.get_params(deep=False)
    header = {
        "class": type(model).__name__,
        "parameters": {k: v for k, v in parameters.items() if k not in _OF_THE_MACHINE},
        "scalars": {name: getattr(model, name) for name in _SCALARS if hasattr(model, name)},
    }
    names = [*model._stored(), *(["topic_counts_"] if hasattr(model, "topic_counts_") else [])]
    arrays = {name: getattr(model, name) for name in names}
    if model.vocabulary_ is not None:
        words = json.dumps(model.vocabulary_.tolist(), ensure_ascii=False).encode()
        arrays["vocabulary"] = np.frombuffer(words, dtype=np.uint8)
    write_arrays(path, header, arrays)


def load(path: str | os.PathLike[str]) -> TopicModel:
    """Read a model that ``save`` wrote.

    Parameters
    ----------
    path : str or path-like
        The file.

    Returns
    -------
    LatentDirichletAllocation or PoissonFactorAnalysis
        The fitted model.

    Raises
    ------
    FileAccessError
        If the file is missing or unreadable.
    FileFormatError
        If it is not a whole polyabayes model.
    """
    header, arrays = read_arrays(checked_path(path))
    try:
        # A file says nothing of the machine that reads it, least of all where it shall write.
        parameters = {k: v for k, v in header["parameters"].items() if k not in _OF_THE_MACHINE}
        model = CLASSES[header["class"]](**parameters)
        stored = model._stored()
        words = arrays.pop("vocabulary", None)
        vocabulary = None if words is None else json.loads(words.tobytes().decode())
        normalised = model._conditions_on_length
        model._set_topic_word(arrays["components_"], vocabulary, None, normalised=normalised)
        for name in stored:
            setattr(model, name, arrays[name])
        scalars = header["scalars"]
        model.n_iter_ = checks.whole_number("n_iter_", scalars["n_iter_"], 0)
        model.seed_ = checks.whole_number("seed_", scalars["seed_"], 0, 2**64 - 1)
        if "topic_counts_" in arrays:
            model.topic_counts_ = _token_counts(arrays["topic_counts_"], len(model.components_))
        if "topic_word_prior_" in scalars:
            prior = checks.not_negative_number("topic_word_prior_", scalars["topic_word_prior_"])
            model.topic_word_prior_ = prior
        if "bound_" in scalars:
            model.__dict__["bound_"] = float(scalars["bound_"])
            model.__dict__["_bound_is_of"] = str(scalars["_bound_is_of"])
        if model._has_likelihood():
            model._core_model()
    except (
        ArithmeticError,
        AttributeError,
        LookupError,
        RecursionError,
        TypeError,
        ValueError,
    ) as error:
        raise FileFormatError(f"{path} does not hold a whole model: {error!r}") from error
    return model


def _token_counts(array: NDArray[Any], n_topics: int) -> NDArray[Any]:
    numbers = array.dtype in (np.int64, np.float64)
    if not numbers or array.shape != (n_topics,) or not (array >= 0).all():
        raise InvalidArgumentError("topic_counts_ are not one number of tokens a topic")
    return array
