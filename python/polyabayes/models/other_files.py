"""Files that hold no model of ours: what they look like, and what reads them."""

from __future__ import annotations

from pathlib import Path

from polyabayes._support.files import reading
from polyabayes.exceptions import FileFormatError

__all__ = ["refuse_other_files"]

_CORPUS = "counts of documents, which polyabayes.read_corpus reads"
_TABLE = "a table, which polyabayes.read_corpus reads, or polyabayes.read_tensor"
_OTHER_MODEL = "which polyabayes.interop.read_model reads"

# First bytes of a file, and what it then looks like.
_BY_HEAD = {
    b"LDA\0": f"a model of tomotopy, {_OTHER_MODEL}",
    b"#doc source pos typeindex type topic": f"a state of MALLET, {_OTHER_MODEL}",
    b"\xac\xed": f"a file of a Java program, perhaps MALLET, {_OTHER_MODEL}",
    b"\x80": (
        "a pickle: polyabayes.interop.read_model reads those of gensim; load others in Python, if "
        "you trust them, and give the model to polyabayes.log_likelihood"
    ),
    b"PK\x03\x04": f"an archive of arrays, as .npz: {_TABLE}",
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


def refuse_other_files(path: Path) -> None:
    """Refuse a file that looks like something else than a model of ours.

    Raises
    ------
    FileAccessError
        If the file is missing or unreadable.
    FileFormatError
        If it does; the message names the function that reads it.
    """
    with reading(path), path.open("rb") as stream:
        head = stream.read(64)
    if head[_LENGTH_BYTES : _LENGTH_BYTES + 1] == _HEADER:
        return
    kinds = [kind for begin, kind in _BY_HEAD.items() if head.startswith(begin)]
    suffix = Path(path.name.removesuffix(".gz")).suffix.lower()
    kind = kinds[0] if kinds else _BY_NAME.get(suffix)
    if kind is not None:
        raise FileFormatError(f"{path} is no model that save wrote; it looks like {kind}")
