"""Exposures of documents while a model is trained on shards: files that all workers read."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from polyabayes._support.files import reading, replacing
from polyabayes.scale.array_files import append_arrays, mapped_array, mapped_arrays
from polyabayes.scale.shards import HEADERS

__all__ = ["Exposures", "Tokens", "numbered", "read_exposures", "read_tokens", "write_exposures"]

# First entry of each topic and the end; numbers of exposures and tokens of entries.
Tokens = tuple[NDArray[np.uint64], NDArray[np.uint32], NDArray[np.uint32]]


class Exposures(NamedTuple):
    """Exposures of all documents.

    Attributes
    ----------
    values : ndarray of shape (n_exposures,)
        The different ones, increasing.
    numbers : ndarray of uint32, shape (n_documents,)
        Which of them each document has.
    """

    values: NDArray[np.float64]
    numbers: NDArray[np.uint32]

    def n_documents(self) -> NDArray[np.uint64]:
        """Documents of each of the different ones."""
        return np.bincount(self.numbers).astype(np.uint64)

    def of(self, start: int, stop: int) -> NDArray[np.float64]:
        """Those of consecutive documents."""
        exposures: NDArray[np.float64] = self.values[self.numbers[start:stop]]
        return exposures


def numbered(exposure: NDArray[np.float64] | None) -> Exposures | None:
    """Exposures by their numbers; None where all are 1, which is the same as none."""
    if exposure is None or (exposure == 1.0).all():
        return None
    values, numbers = np.unique(exposure, return_inverse=True)
    return Exposures(values, numbers.astype(np.uint32))


def write_exposures(path: Path, exposures: Exposures) -> None:
    """Write exposures of all documents."""
    with replacing(path) as stream:
        append_arrays(stream, (exposures.values, exposures.numbers))


def read_exposures(path: Path) -> Exposures:
    """Map the file that :func:`write_exposures` wrote."""
    with reading(path), HEADERS, path.open("rb") as stream:
        return Exposures(mapped_array(stream, path), mapped_array(stream, path))


def read_tokens(path: Path) -> list[Tokens]:
    """Map the tokens of every topic by exposure, of all blocks of a shard."""
    with reading(path), HEADERS:
        arrays: list[Any] = mapped_arrays(path)
    return list(zip(arrays[::3], arrays[1::3], arrays[2::3], strict=True))
