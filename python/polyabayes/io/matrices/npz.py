"""NumPy archives: those of ``scipy.sparse.save_npz``, with further parts of a corpus."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from polyabayes._support.files import content_of, refuse_announced, replacing
from polyabayes._support.storage.frames import frame_bytes, frame_of_bytes
from polyabayes.data.corpus import Corpus
from polyabayes.exceptions import FileFormatError
from polyabayes.io.archives import read_archive

# Layouts of sparse matrices of SciPy, and the arrays of their places.
_COMPRESSED, _NAMES = ("indices", "indptr"), ("vocabulary", "ids", "exposure", "metadata")
_LAYOUTS: dict[str, tuple[str, ...]] = {"coo": ("row", "col"), "dia": ("offsets",)}
_LAYOUTS |= dict.fromkeys(("csr", "csc", "bsr"), _COMPRESSED)
_PARTS = ("format", "shape", "data", *_COMPRESSED, "row", "col", "offsets", "_is_array", *_NAMES)


def read_npz(path: Path) -> Corpus:
    """Read a sparse matrix and, if present, words, ids, exposures and metadata.

    The file is from :func:`polyabayes.io.write_corpus` or ``scipy.sparse.save_npz``.
    """
    arrays = read_archive(path, _PARTS)
    with content_of(path):
        parts: dict[str, Any] = {name: arrays.get(name) for name in _NAMES}
        if parts["metadata"] is not None:
            parts["metadata"] = frame_of_bytes(path, parts["metadata"])
        return Corpus(_matrix(path, arrays), **parts)


def _matrix(path: Path, arrays: dict[str, NDArray[Any]]) -> Any:
    """The sparse matrix as stored; its indices are not checked yet."""
    kind = arrays["format"].item() if "format" in arrays and arrays["format"].size == 1 else None
    kind = kind.decode("ascii", "replace") if isinstance(kind, bytes) else kind
    parts = _LAYOUTS.get(str(kind), ("",))
    if not {"shape", "data", *parts} <= arrays.keys():
        raise FileFormatError(f"{path} does not hold the arrays of scipy.sparse.save_npz")
    shape = arrays["shape"].ravel().tolist()
    if len(shape) != 2 or not all(isinstance(size, int) and size >= 0 for size in shape):
        raise FileFormatError(f"{path}: the shape {shape} is not that of documents x words")
    refuse_announced(path, *shape)
    places: tuple[Any, ...] = tuple(arrays[part] for part in parts)
    places = (places,) if kind == "coo" else places
    return getattr(sparse, f"{kind}_matrix")((arrays["data"], *places), shape=shape)


def write_npz(corpus: Corpus, path: Path) -> None:
    """Write all of a corpus; ``scipy.sparse.load_npz`` reads the counts back too."""
    counts = corpus.counts
    arrays: dict[str, Any] = {"format": np.array(b"csr"), "shape": np.array(counts.shape)}
    arrays |= {name: getattr(counts, name) for name in ("data", *_COMPRESSED)}
    held = ((name, getattr(corpus, name)) for name in _NAMES[:3])
    arrays |= {name: x.astype(str) if x.dtype == object else x for name, x in held if x is not None}
    if corpus.metadata is not None:
        arrays["metadata"] = np.frombuffer(frame_bytes(corpus.metadata), dtype=np.uint8)
    with replacing(path) as handle:
        np.savez_compressed(handle, **arrays)
