"""Models as safetensors files: arrays and text, no code."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save as to_bytes

from polyabayes._model import TopicModel
from polyabayes.exceptions import FileAccessError, FileFormatError, InvalidTypeError
from polyabayes.io._files import reading, replacing
from polyabayes.lda import LatentDirichletAllocation
from polyabayes.pfa import PoissonFactorAnalysis

__all__ = ["load", "save"]

_FORMAT = "polyabayes model 1"
_CLASSES: dict[str, type[TopicModel]] = {
    "LatentDirichletAllocation": LatentDirichletAllocation,
    "PoissonFactorAnalysis": PoissonFactorAnalysis,
}
_ARRAYS = {
    "LatentDirichletAllocation": ("components_", "doc_topic_prior_"),
    "PoissonFactorAnalysis": ("components_", "shape_", "probability_"),
}
# What a fitted model has beside its arrays.
_SCALARS = ("n_iter_", "seed_", "topic_word_prior_")


def save(model: TopicModel, path: str | os.PathLike[str]) -> None:
    """Write a fitted model; the file takes its name only when it is complete.

    Parameters
    ----------
    model : LatentDirichletAllocation or PoissonFactorAnalysis
        The model.
    path : str or path-like
        The file, by custom ``*.safetensors``.

    Raises
    ------
    FileAccessError
        If the file cannot be written.
    NotFittedError
        If there is nothing to write.
    """
    name = type(model).__name__
    if name not in _CLASSES:
        raise InvalidTypeError(f"cannot save a {name}; models are {', '.join(_CLASSES)}")
    model._check_fitted()
    arrays = {array: np.ascontiguousarray(getattr(model, array)) for array in _ARRAYS[name]}
    scalars = {key: getattr(model, key) for key in _SCALARS if hasattr(model, key)}
    metadata = {
        "format": _FORMAT,
        "class": name,
        "parameters": json.dumps(model.get_params(), default=_plain),
        "scalars": json.dumps(scalars),
    }
    if model.vocabulary_ is not None:
        words = json.dumps(model.vocabulary_.tolist(), ensure_ascii=False).encode()
        arrays["vocabulary"] = np.frombuffer(words, dtype=np.uint8)
    with replacing(Path(path)) as stream:
        stream.write(to_bytes(arrays, metadata))


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
    file = Path(path)
    with reading(file):
        file.open("rb").close()
    try:
        with safe_open(file, framework="numpy") as content:
            metadata = content.metadata() or {}
            arrays = {key: content.get_tensor(key) for key in content.keys()}  # noqa: SIM118
    except SafetensorError as error:
        raise FileFormatError(
            f"{file} is not a whole safetensors file ({error}); save the model again"
        ) from error
    except OSError as error:
        raise FileAccessError(f"cannot read {file}: {error}") from error
    if metadata.get("format") != _FORMAT:
        raise FileFormatError(
            f"{file} is a safetensors file, but not a model of this version of polyabayes "
            f"(format {metadata.get('format')!r}, expected {_FORMAT!r})"
        )
    try:
        return _restored(metadata, arrays)
    except (KeyError, TypeError, ValueError) as error:
        raise FileFormatError(f"{file} does not hold a whole model: {error}") from error


def _restored(metadata: dict[str, str], arrays: dict[str, NDArray[Any]]) -> TopicModel:
    name = metadata["class"]
    model = _CLASSES[name](**json.loads(metadata["parameters"]))
    vocabulary = None
    if "vocabulary" in arrays:
        vocabulary = json.loads(arrays["vocabulary"].tobytes().decode())
    model._set_topic_word(
        arrays["components_"], vocabulary, None, normalised=name == "LatentDirichletAllocation"
    )
    for key in _ARRAYS[name]:
        setattr(model, key, arrays[key])
    for key, value in json.loads(metadata["scalars"]).items():
        setattr(model, key, value)
    model._core_model()
    return model


def _plain(value: Any) -> Any:
    """Parameters as JSON: arrays as lists; a random state that is no number is left out."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, np.generic):
        return value.item()
    return None
