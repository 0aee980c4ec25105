"""The content of a model's file, for any class of model."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from polyabayes import __version__
from polyabayes._support.files import checked_path
from polyabayes._support.storage.arrays import read_arrays, write_arrays
from polyabayes.exceptions import FileFormatError, InvalidArgumentError, InvalidTypeError, argument

# Parameters of the machine that trained the model, not of the model.
OF_THE_MACHINE = ("n_jobs", "progress", "checkpoint", "checkpoint_every")

# Name of the array of bytes that holds the vocabulary, as JSON.
_VOCABULARY = "vocabulary"

_MOST, _LEAST = float(np.finfo(float).max), float(np.finfo(float).tiny)
# Arrays of all kinds of models: sizes, of which equal letters are equal and a star is any, or
# another number of sizes; kinds of numbers; the smallest and the largest number, if any.
_ARRAYS: dict[str, tuple[str, str, float | None, float]] = {
    # Loadings of a softmax may be negative; other topics refuse negative weights themselves.
    "components_": ("k w", "f", -_MOST, _MOST),
    "doc_topic_prior_": ("k", "f", _LEAST, _MOST),
    "shape_": ("k", "f", _LEAST, _MOST),
    "probability_": ("k", "f", _LEAST, 1 - 2**-53),
    "topic_counts_": ("k", "if", 0, _MOST),
    "topic_concentration_": ("k", "f", 1e-60, np.inf),
    "topic_concentration_draws_": ("n k", "f", _LEAST, np.inf),
    "coefficients_": ("c p", "f", -_MOST, _MOST),
    "coefficient_draws_": ("m c p", "f", -_MOST, _MOST),
    "prior_": ("c|d c", "f", -_MOST, _MOST),
    "covariance_": ("c c", "f", -_MOST, _MOST),
    "bias_": ("w", "f", -_MOST, _MOST),
    "word_prior_": ("k w", "f", _LEAST, _MOST),
    "vocabulary_sizes_": ("v", "i", 1, _MOST),
    # Latent classes.
    "classes": ("n k", "iuf", 0, _MOST),
    "item": ("n * k", "iuf", 0, _MOST),
    "error_classes": ("e k", "f", None, 0),
    "error_item": ("e * k", "f", None, 0),
    "coefficients": ("n k p", "f", -_MOST, _MOST),
    "weights": ("r", "f", 0, _MOST),
    "transitions": ("n s k k", "f", 0, 1),
}
_NUMBER = (int, float)
_PLAIN = (bool, str, *_NUMBER)
# Other fitted attributes of all kinds of models, with their kinds as :func:`_is_of` takes them.
_SCALARS: dict[str, Any] = {
    **dict.fromkeys(("n_iter_", "seed_"), int),
    **dict.fromkeys(("topic_word_prior_", "bound_", "log_evidence_", "log_likelihood_"), _NUMBER),
    **dict.fromkeys(("_bound_is_of", "_trained_on"), str),
    "_has_exposure": bool,
    "topic_names_": [str],
    "items": [str],
    "labels": [[str]],
    "choice": [int, str, [{str: (*_NUMBER, None)}]],
    "occupied": [[int, float]],
    "missing": {str: [(*_PLAIN, None)]},
    "alphas": [_NUMBER],
    "tells": [bool],
    "sampling": str,
    "waves": [[_PLAIN]],
    "weights": {
        "column": (str, None),
        "fingerprint": str,
        "n_effective": _NUMBER,
        "are_sampling": bool,
    },
    "design": {
        "names": [str],
        "levels": {str: [_PLAIN]},
        "columns": ([str], None),
        "formula": (str, None),
        "transforms": list,
        "means": [_NUMBER],
        "deviations": [_NUMBER],
        "dates": [str],
    },
}

# Endings of names of other formats or of compressed files.
_OTHER_FORMATS = (
    *(".pkl", ".pickle", ".joblib", ".npy", ".npz", ".json", ".h5", ".hdf5", ".pt", ".onnx"),
    *(".gz", ".bz2", ".xz", ".zip"),
)


class StoredModel(NamedTuple):
    """Contents of a model file; scalars and arrays are fitted attributes."""

    class_name: str
    parameters: dict[str, Any]
    scalars: dict[str, Any]
    arrays: dict[str, NDArray[Any]]
    vocabulary: list[str] | None
    # Version of the package, date, and notes of the user, of a file that was read.
    provenance: Mapping[str, Any] = MappingProxyType({})

    def write(self, path: str | os.PathLike[str], notes: Mapping[str, Any] | None = None) -> None:
        """Write a safetensors file, completely or not at all."""
        place = _path_of_model(path)
        header = {
            "class": self.class_name,
            "parameters": self.parameters,
            "scalars": self.scalars,
            "provenance": _provenance(notes),
        }
        arrays = dict(self.arrays)
        if self.vocabulary is not None:
            words = json.dumps(self.vocabulary, ensure_ascii=False).encode()
            arrays[_VOCABULARY] = np.frombuffer(words, dtype=np.uint8)
        write_arrays(place, header, arrays)

    @classmethod
    def read(cls, path: Path) -> StoredModel:
        """Read a file written by :meth:`write`."""
        header, arrays = read_arrays(path)
        words = arrays.pop(_VOCABULARY, None)
        try:
            vocabulary = None if words is None else json.loads(words.tobytes().decode())
            _check(header["scalars"], arrays)
            return cls(
                header["class"],
                # A file must not set options of the machine that reads it, as paths to write to.
                {k: v for k, v in header["parameters"].items() if k not in OF_THE_MACHINE},
                header["scalars"],
                arrays,
                vocabulary,
                header["provenance"],
            )
        except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
            raise FileFormatError(f"{path} does not hold a complete model: {error!r}") from error

    def refuse_others(self, names: Collection[str]) -> None:
        """Refuse arrays that this model does not have."""
        if others := self.arrays.keys() - set(names):
            raise ValueError(f"there is the array {min(others)!r}, which this model does not have")


def _check(scalars: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
    """Refuse attributes of unknown names, or of other kinds, shapes or ranges than their rows."""
    for name, value in scalars.items():
        if not _is_of(value, _SCALARS[name]):
            raise ValueError(f"{name} is {value!r:.60}")
    sizes: dict[str, int] = {}
    for name, array in arrays.items():
        shapes, kinds, low, high = _ARRAYS[name.rstrip("0123456789")]
        shape = next((x for x in map(str.split, shapes.split("|")) if len(x) == array.ndim), None)
        if shape is None or array.dtype.kind not in kinds or array.dtype.itemsize < 8:
            raise ValueError(f"{name} is an array of {array.dtype} and shape {array.shape}")
        for letter, size in zip(shape, array.shape, strict=True):
            if letter != "*" and sizes.setdefault(letter, size) != size:
                raise ValueError(f"{name} has the shape {array.shape}, unlike other arrays")
        if low is not None and array.size and not low <= array.min() <= array.max() <= high:
            raise ValueError(f"{name} holds numbers outside of {low:g} to {high:g}")


def _is_of(value: Any, kind: Any) -> bool:
    """Whether a value of JSON is of a kind.

    A kind is a type or None; a tuple of kinds; a list, of one kind or of one for each entry; or a
    dict, of ``{str: kind}`` or of one for each key.
    """
    if isinstance(kind, tuple):
        return any(_is_of(value, one) for one in kind)
    if isinstance(kind, list):
        kinds = kind * len(value) if isinstance(value, list) and len(kind) == 1 else kind
        same = isinstance(value, list) and len(value) == len(kinds)
        return same and all(map(_is_of, value, kinds))
    if isinstance(kind, dict):
        known = dict.fromkeys(value, kind[str]) if isinstance(value, dict) and str in kind else kind
        same = isinstance(value, dict) and value.keys() == known.keys()
        return same and all(_is_of(value[name], known[name]) for name in known)
    return value is None if kind is None else type(value) is kind


def _path_of_model(path: str | os.PathLike[str]) -> Path:
    """Check that the name of a path does not end as another format."""
    place = checked_path(path)
    if place.suffix.lower() in _OTHER_FORMATS:
        raise InvalidArgumentError(
            f"{path} ends in {place.suffix}, but models are uncompressed safetensors files: call "
            f"it {place.with_suffix('.safetensors').name}"
        )
    return place


def _provenance(notes: Mapping[str, Any] | None) -> dict[str, Any]:
    """Version, date and notes of a file; SOURCE_DATE_EPOCH overrides the date."""
    try:
        kept = json.loads(json.dumps({} if notes is None else notes, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise InvalidTypeError(
            f"{argument('notes')} must be valid JSON: texts, numbers, lists, mappings; {error}"
        ) from error
    if not isinstance(kept, dict):
        raise InvalidTypeError(f"{argument('notes')} must map names to values, got {notes!r:.100}")
    seconds = int(os.environ.get("SOURCE_DATE_EPOCH", time.time()))
    date = datetime.fromtimestamp(seconds, UTC).isoformat()
    return {"version": __version__, "date": date, "notes": kept}
