"""Recognition of files that are not models of this package, and functions that read them."""

import gzip
import zipfile
from pathlib import Path
from typing import Any

from polyabayes._support.files import open_regular, reading
from polyabayes.exceptions import FileFormatError

_CORPUS = "counts of documents, which polyabayes.read_corpus reads"
_TABLE = "a table, which polyabayes.read_corpus reads, or polyabayes.read_tensor"
_OTHER_MODEL = "which polyabayes.interop.read_model reads"
_LOAD_IT = (
    "load it by the package that wrote it, if you trust the file, and give the model to "
    "polyabayes.log_likelihood"
)

# First bytes of a file, and its likely kind.
_BY_HEAD = {
    b"LDA\0": f"a model of tomotopy: {_LOAD_IT}",
    b"#doc source pos typeindex type topic": f"a state of MALLET, {_OTHER_MODEL}",
    b"\xac\xed": f"a file of a Java program, perhaps MALLET, {_OTHER_MODEL}",
    b"\x80": f"a pickle, perhaps of gensim or joblib: {_LOAD_IT}",
    b"PAR1": f"Parquet: {_TABLE}",
    b"\x89HDF": "HDF5, as .h5ad: read it by the package that wrote it",
}

# Ends of names of files that are text.
_BY_NAME = {
    ".tns": "a tensor, which polyabayes.read_tensor reads",
    ".csv": f"CSV: {_TABLE}",
    ".ldac": f"LDA-C: {_CORPUS}",
    ".dat": f"LDA-C: {_CORPUS}",
    ".lda-c": f"LDA-C: {_CORPUS}",
    ".mtx": f"Matrix Market: {_CORPUS}",
    ".svmlight": f"svmlight: {_CORPUS}",
    ".libsvm": f"svmlight: {_CORPUS}",
    ".txt": "text, whose words polyabayes.read_corpus counts",
    ".mallet": "text for MALLET, whose words polyabayes.read_corpus counts",
}

# A safetensors file begins with the length of its header in eight bytes, and the header with this.
_LENGTH_BYTES, _HEADER = 8, b"{"
_HEAD_BYTES = 64

_GZIP, _ZIP = b"\x1f\x8b", b"PK\x03\x04"


def refuse_other_files(path: Path) -> None:
    """Refuse a file that is recognised as something else; the message says how to read it."""
    with open_regular(path) as stream, reading(path):
        head = stream.read(_HEAD_BYTES)
        if _is_safetensors(head):
            return
        if head.startswith(_GZIP):
            with gzip.GzipFile(fileobj=stream) as unpacked:
                stream.seek(0)
                kind: str | None = _packed_kind(unpacked, path)
        else:
            kind = _kind(head, stream, path)
    if kind is not None:
        raise FileFormatError(f"{path} is not a model written by save; it looks like {kind}")


def _is_safetensors(head: bytes) -> bool:
    return head[_LENGTH_BYTES : _LENGTH_BYTES + 1] == _HEADER


def _packed_kind(stream: gzip.GzipFile, path: Path) -> str:
    head = stream.read(_HEAD_BYTES)
    if _is_safetensors(head):
        return "a model in a gzip file: unpack it first"
    if head.startswith(_ZIP):
        # The table of contents of a zip archive is at its end: reading it would unpack everything.
        return "a zip archive in a gzip file: unpack both, and name what they held"
    return _kind(head, stream, path) or "a gzip file: unpack it, and name what it held"


def _kind(head: bytes, stream: Any, path: Path) -> str | None:
    """Kind of a file by its first bytes, or by its name, which may end in .gz."""
    if head.startswith(_ZIP):
        return _zip_kind(stream)
    for begin, kind in _BY_HEAD.items():
        if head.startswith(begin):
            return kind
    return _BY_NAME.get(Path(path.name.removesuffix(".gz")).suffix.lower())


def _zip_kind(stream: Any) -> str:
    try:
        with zipfile.ZipFile(stream) as archive:
            names = archive.namelist()
    except zipfile.BadZipFile:
        return "a zip archive that is damaged or cut short"
    if names and all(name.endswith(".npy") for name in names):
        return f"an archive of arrays, .npz: {_TABLE}"
    return "a zip archive: unpack it, and name what it held"
