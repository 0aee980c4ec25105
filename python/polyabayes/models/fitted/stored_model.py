"""The content of a model's file, for any class of model."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from polyabayes import __version__
from polyabayes._support.files import checked_path
from polyabayes._support.storage import read_arrays, write_arrays
from polyabayes.exceptions import FileFormatError, InvalidArgumentError, InvalidTypeError, argument

# Parameters of the machine that trained the model, not of the model.
OF_THE_MACHINE = ("n_jobs", "progress", "checkpoint", "checkpoint_every")

# Name of the array of bytes that holds the vocabulary, as JSON.
_VOCABULARY = "vocabulary"

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
            return cls(
                header["class"],
                # A file must not set options of the machine that reads it, as paths to write to.
                {k: v for k, v in header["parameters"].items() if k not in OF_THE_MACHINE},
                header["scalars"],
                arrays,
                vocabulary,
                header["provenance"],
            )
        except (AttributeError, KeyError, RecursionError, ValueError) as error:
            raise FileFormatError(f"{path} does not hold a complete model: {error!r}") from error


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
