"""Reading and writing corpora, one module a format."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from polyabayes.corpus import Corpus, as_corpus
from polyabayes.exceptions import FileAccessError, InvalidArgumentError
from polyabayes.io._files import STANDARD_INPUT, VocabularyLike, reading, resolve_vocabulary
from polyabayes.io.docword import read_docword
from polyabayes.io.ldac import read_ldac, write_ldac
from polyabayes.io.matrix_market import read_matrix_market, write_matrix_market
from polyabayes.io.npz import read_npz, write_npz
from polyabayes.io.svmlight import read_svmlight
from polyabayes.io.tables import read_csv, read_parquet
from polyabayes.io.text import read_text

__all__ = ["read_corpus", "write_corpus"]

_READERS: dict[str, Callable[..., Corpus]] = {
    "ldac": read_ldac,
    "mtx": read_matrix_market,
    "npz": read_npz,
    "svmlight": read_svmlight,
    "docword": read_docword,
    "csv": read_csv,
    "parquet": read_parquet,
    "text": read_text,
}
_WRITERS: dict[str, Callable[[Corpus, Path], None]] = {
    "ldac": write_ldac,
    "mtx": write_matrix_market,
    "npz": write_npz,
}
_FORMAT_OF_SUFFIX = {
    ".ldac": "ldac",
    ".dat": "ldac",
    ".lda-c": "ldac",
    ".mtx": "mtx",
    ".npz": "npz",
    ".svmlight": "svmlight",
    ".libsvm": "svmlight",
    ".csv": "csv",
    ".parquet": "parquet",
    ".txt": "text",
}


def read_corpus(
    path: str | os.PathLike[str],
    *,
    vocabulary: VocabularyLike | None = None,
    format: str | None = None,  # noqa: A002
    **options: Any,
) -> Corpus:
    """Read a corpus from a file or a folder.

    Parameters
    ----------
    path : str or path
        The format follows from the name:

        ========================================  ==============================================
        ``.ldac``, ``.dat``, ``.lda-c``           LDA-C: ``M id:count ...``, ids counted from 0
        ``.mtx``                                  Matrix Market
        ``.npz``                                  :func:`write_corpus`, ``scipy.sparse.save_npz``
        ``.svmlight``, ``.libsvm``                svmlight; its labels are left out
        ``docword*.txt``                          UCI bag of words
        ``.csv``, ``.parquet``                    a row a document, or columns document, word
                                                  and count
        ``.txt``                                  text, one document a line
        a folder                                  text, one document a ``.txt`` file
        ========================================  ==============================================

        Any file may be gzipped, its name then ends in ``.gz``. ``"-"`` reads LDA-C from
        standard input.
    vocabulary : path or sequence of str, optional
        The words, as a file with one word a line or as a sequence. For formats that hold the
        words themselves, it is the order of columns wanted.
    format : {"ldac", "mtx", "npz", "svmlight", "docword", "csv", "parquet", "text"}, optional
        The format, where the name does not tell.
    **options
        Options of the format: ``n_words`` (ldac, svmlight), ``transpose`` (mtx),
        ``zero_based`` (svmlight), ``layout`` (csv, parquet), ``encoding``, ``stem`` and those
        of scikit-learn's ``CountVectorizer`` (text), those of ``pandas.read_csv`` (csv).

    Returns
    -------
    Corpus
        The documents.

    Raises
    ------
    FileAccessError
        If the file or folder is missing or cannot be read.
    FileFormatError
        If its content is not what the format promises; the message names the line.
    InvalidArgumentError
        If the format is unknown or does not have such an option, or if the vocabulary does
        not fit the counts.
    MissingDependencyError
        If the format needs an optional dependency that is not installed.
    """
    path = Path(path)
    with reading(path):
        if path != STANDARD_INPUT and not path.exists():
            raise FileAccessError(f"{path} does not exist")
    name = format or ("ldac" if path == STANDARD_INPUT else _format_of(path, list(_READERS)))
    if name not in _READERS:
        raise InvalidArgumentError(f"unknown format {name!r}; known are {', '.join(_READERS)}")
    if path == STANDARD_INPUT and name != "ldac":
        raise InvalidArgumentError(f"standard input is read as ldac only, not as {name}")
    reader = _READERS[name]
    try:
        inspect.signature(reader).bind(path, None, **options)
    except TypeError as error:
        raise InvalidArgumentError(f"the format {name}: {error}") from error
    return reader(path, resolve_vocabulary(vocabulary), **options)


def write_corpus(corpus: Any, path: str | os.PathLike[str]) -> None:
    """Write a corpus to a file; the file is either complete or not there.

    Parameters
    ----------
    corpus : Corpus, sparse matrix, array or DataFrame of shape (n_documents, n_words)
        The documents.
    path : str or path
        The format follows from the name: ``.ldac``, ``.ldac.gz``, ``.mtx``, ``.mtx.gz`` or
        ``.npz``. Only ``.npz`` keeps the ids of the documents and holds the words itself; for
        the others the words go to a file of the same name that ends in ``.vocab``.

    Raises
    ------
    FileAccessError
        If the file cannot be written.
    InvalidArgumentError
        If the format is unknown or cannot hold the words.
    """
    path = Path(path)
    name = _format_of(path, list(_WRITERS))
    if name not in _WRITERS or (name == "npz" and path.suffix == ".gz"):
        raise InvalidArgumentError(
            f"{path} cannot be written; its name must end in .ldac, .ldac.gz, .mtx, .mtx.gz or .npz"
        )
    _WRITERS[name](as_corpus(corpus, "corpus"), path)


def _format_of(path: Path, known: list[str]) -> str:
    if path.is_dir():
        return "text"
    name = path.name.removesuffix(".gz")
    if name.startswith("docword") and name.endswith(".txt"):
        return "docword"
    suffix = Path(name).suffix.lower()
    if suffix not in _FORMAT_OF_SUFFIX:
        raise InvalidArgumentError(
            f"the name of {path} does not tell its format; known formats are {', '.join(known)}"
        )
    return _FORMAT_OF_SUFFIX[suffix]
