"""NumPy archives of count tensors."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from polyabayes._support.files import content_of, replacing
from polyabayes.data.names import say
from polyabayes.data.tensors.tensor import CountTensor
from polyabayes.exceptions import FileFormatError
from polyabayes.io.archives import read_archive

_PARTS = ("coordinates", "counts", "shape", "axes")


def read_tensor_npz(path: Path, axes: Sequence[str] | None = None) -> CountTensor:
    """Read the arrays that :func:`write_tensor_npz` writes; nothing in them is executed.

    The arrays are ``coordinates`` of shape (n_cells, n_axes), ``counts``, ``shape``, ``axes`` and,
    for each axis with labels, ``labels_NAME``. `axes` override the names in the file.
    """
    arrays = read_archive(path, _PARTS, prefix="labels_")
    if lacking := [part for part in _PARTS if part not in arrays]:
        raise FileFormatError(say("no tensor", path, lacking[0]))
    names, shape = arrays["axes"].ravel().tolist(), arrays["shape"].ravel().tolist()
    if others := arrays.keys() - {f"labels_{name}" for name in names} - set(_PARTS):
        raise FileFormatError(f"{path} holds the array {min(others)!r:.60}, but no such axis")
    labels = [arrays.get(f"labels_{name}") for name in names]
    with content_of(path):
        cells, named = (arrays["coordinates"], arrays["counts"]), names if axes is None else axes
        return CountTensor.from_coo(*cells, named, shape, labels, unknown=-1)


def write_tensor_npz(tensor: CountTensor, path: Path) -> None:
    """Write coordinates, counts, shape, axes and labels."""
    arrays: dict[str, Any] = {name: np.asarray(getattr(tensor, name)) for name in _PARTS}
    held = zip(tensor.axes, tensor.labels, strict=True)
    arrays |= {f"labels_{name}": own.astype(str) for name, own in held if own is not None}
    with replacing(path) as handle:
        np.savez_compressed(handle, **arrays)
