"""The content of a model's file, whatever class the model is of."""

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

# Parameters that belong to the machine a model was trained on, not to the model.
OF_THE_MACHINE = ("n_jobs", "progress", "checkpoint", "checkpoint_every")

# Name of the array of bytes that holds the vocabulary, as JSON.
_VOCABULARY = "vocabulary"

# Endings of names that promise a file of another format, or a packed one.
_OTHER_FORMATS = (
    *(".pkl", ".pickle", ".joblib", ".npy", ".npz", ".json", ".h5", ".hdf5", ".pt", ".onnx"),
    *(".gz", ".bz2", ".xz", ".zip"),
)


class StoredModel(NamedTuple):
    """Contents of a model file.

    Attributes
    ----------
    class_name : str
        Name of its class.
    parameters : dict
        Arguments of the constructor.
    scalars : dict
        Fitted attributes that are single numbers or texts.
    arrays : dict of str to ndarray
        Fitted attributes that are arrays.
    vocabulary : list of str, optional
        The words.
    provenance : mapping
        Of a file that was read: version of the package, date, and the notes of the user.
    """

    class_name: str
    parameters: dict[str, Any]
    scalars: dict[str, Any]
    arrays: dict[str, NDArray[Any]]
    vocabulary: list[str] | None
    provenance: Mapping[str, Any] = MappingProxyType({})

    def write(self, path: str | os.PathLike[str], notes: Mapping[str, Any] | None = None) -> None:
        """Write a safetensors file, whole or not at all."""
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
        """Read a file that :meth:`write` wrote.

        Raises
        ------
        FileAccessError, FileFormatError
            If the file is unreadable, or holds no model.
        """
        header, arrays = read_arrays(path)
        words = arrays.pop(_VOCABULARY, None)
        try:
            vocabulary = None if words is None else json.loads(words.tobytes().decode())
            return cls(
                header["class"],
                header["parameters"],
                header["scalars"],
                arrays,
                vocabulary,
                header["provenance"],
            )
        except (KeyError, RecursionError, ValueError) as error:
            raise FileFormatError(f"{path} does not hold a whole model: {error!r}") from error


def _path_of_model(path: str | os.PathLike[str]) -> Path:
    """A path whose name does not promise what the file will not be."""
    place = checked_path(path)
    if place.suffix.lower() in _OTHER_FORMATS:
        raise InvalidArgumentError(
            f"{path} ends in {place.suffix}, and models are safetensors files, not packed: call it "
            f"{place.with_suffix('.safetensors').name}"
        )
    return place


def _provenance(notes: Mapping[str, Any] | None) -> dict[str, Any]:
    """What made a file, when, and what the user notes; SOURCE_DATE_EPOCH may give the date."""
    try:
        kept = json.loads(json.dumps({} if notes is None else notes, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise InvalidTypeError(
            f"{argument('notes')} must hold what JSON can: texts, numbers, lists, mappings; {error}"
        ) from error
    if not isinstance(kept, dict):
        raise InvalidTypeError(f"{argument('notes')} must map names to values, got {notes!r:.100}")
    seconds = int(os.environ.get("SOURCE_DATE_EPOCH", time.time()))
    date = datetime.fromtimestamp(seconds, UTC).isoformat()
    return {"version": __version__, "date": date, "notes": kept}
