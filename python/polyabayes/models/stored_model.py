"""The content of a model's file, whatever class the model is of."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from polyabayes._support.storage import read_arrays, write_arrays
from polyabayes.exceptions import FileFormatError

# Parameters that belong to the machine a model was trained on, not to the model.
OF_THE_MACHINE = ("n_jobs", "progress", "checkpoint", "checkpoint_every")

# Name of the array of bytes that holds the vocabulary, as JSON.
_VOCABULARY = "vocabulary"


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
    """

    class_name: str
    parameters: dict[str, Any]
    scalars: dict[str, Any]
    arrays: dict[str, NDArray[Any]]
    vocabulary: list[str] | None

    def write(self, path: Path) -> None:
        """Write a safetensors file, whole or not at all."""
        header = {
            "class": self.class_name,
            "parameters": self.parameters,
            "scalars": self.scalars,
        }
        arrays = dict(self.arrays)
        if self.vocabulary is not None:
            words = json.dumps(self.vocabulary, ensure_ascii=False).encode()
            arrays[_VOCABULARY] = np.frombuffer(words, dtype=np.uint8)
        write_arrays(path, header, arrays)

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
            return cls(header["class"], header["parameters"], header["scalars"], arrays, vocabulary)
        except (KeyError, RecursionError, ValueError) as error:
            raise FileFormatError(f"{path} does not hold a whole model: {error!r}") from error
