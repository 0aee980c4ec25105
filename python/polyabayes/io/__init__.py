"""Reading and writing corpora and count tensors, with one module per format."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from polyabayes._support.files import STANDARD_INPUT, checked_path, reading
from polyabayes.data.corpus import Corpus, as_corpus
from polyabayes.data.tensors.cells import checked_axes
from polyabayes.data.tensors.tensor import CountTensor
from polyabayes.exceptions import FileAccessError, InvalidArgumentError, InvalidTypeError, argument
from polyabayes.io.cells import matrix_of_folder, read_10x, read_h5ad
from polyabayes.io.docword import read_docword
from polyabayes.io.exposures import resolve_exposure
from polyabayes.io.ldac import read_ldac, write_ldac
from polyabayes.io.mallet import read_mallet
from polyabayes.io.matrix_market import read_matrix_market, write_matrix_market
from polyabayes.io.npz import read_npz, write_npz
from polyabayes.io.shards import write_shards
from polyabayes.io.svmlight import read_svmlight
from polyabayes.io.tabular.corpora import read_csv, read_json_lines, read_parquet
from polyabayes.io.tabular.factor_tables import (
    read_factor_csv,
    read_factor_parquet,
    write_factor_csv,
)
from polyabayes.io.tensors.npz import read_tensor_npz, write_tensor_npz
from polyabayes.io.tensors.tns import read_tns, read_tns_corpus, write_tns
from polyabayes.io.text import read_text, refuse_tables
from polyabayes.io.vocabularies import VocabularyLike, resolve_vocabulary

__all__ = ["read_corpus", "read_tensor", "write_corpus", "write_shards", "write_tensor"]

T = TypeVar("T")

_READERS: dict[str, Callable[..., Corpus]] = {
    "ldac": read_ldac,
    "mtx": read_matrix_market,
    "npz": read_npz,
    "svmlight": read_svmlight,
    "docword": read_docword,
    "csv": read_csv,
    "tns": read_tns_corpus,
    "parquet": read_parquet,
    "jsonl": read_json_lines,
    "h5ad": read_h5ad,
    "10x": read_10x,
    "text": read_text,
    "mallet": read_mallet,
}
_WRITERS: dict[str, Callable[[Corpus, Path], None]] = {
    "ldac": write_ldac,
    "mtx": write_matrix_market,
    "npz": write_npz,
}
_TENSOR_READERS: dict[str, Callable[..., CountTensor]] = {
    "tns": read_tns,
    "npz": read_tensor_npz,
    "csv": read_factor_csv,
    "parquet": read_factor_parquet,
}
_TENSOR_WRITERS: dict[str, Callable[[CountTensor, Path], None]] = {
    "tns": write_tns,
    "npz": write_tensor_npz,
    "csv": write_factor_csv,
}
_FORMAT_OF_SUFFIX = {
    ".ldac": "ldac",
    ".dat": "ldac",
    ".lda-c": "ldac",
    ".mtx": "mtx",
    ".mm": "mtx",
    ".npz": "npz",
    ".svmlight": "svmlight",
    ".libsvm": "svmlight",
    ".csv": "csv",
    ".tsv": "csv",
    ".tab": "csv",
    ".all": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".h5ad": "h5ad",
    ".parquet": "parquet",
    ".txt": "text",
    ".mallet": "mallet",
    ".tns": "tns",
}
# Options that only tables have: a .txt file with one of them is no text.
_OPTIONS_OF_TABLES = {
    *("text", "ids", "document", "word", "count", "metadata", "layout"),
    *("sep", "columns", "transpose", "quotechar", "skiprows"),
}


def read_corpus(
    path: str | os.PathLike[str],
    *,
    vocabulary: VocabularyLike | None = None,
    exposure: Any = None,
    format: str | None = None,  # noqa: A002
    encoding: str | None = None,
    text: str | None = None,
    ids: str | None = None,
    document: str | None = None,
    word: str | None = None,
    count: str | None = None,
    metadata: Sequence[str] | None = None,
    sep: str | None = None,
    columns: Sequence[str] | None = None,
    transpose: bool = False,
    layout: str | None = None,
    layer: str | None = None,
    stop_words: str | Sequence[str] | None = None,
    min_df: float | None = None,
    max_df: float | None = None,
    ngram_range: Sequence[int] | None = None,
    stem: str | None = None,
    on_empty: str | None = None,
    **options: Any,
) -> Corpus:
    r"""Read a corpus from a file or a folder.

    Parameters
    ----------
    path : str or path
        The format follows from the name:

        ========================================  ==============================================
        ``.ldac``, ``.dat``, ``.lda-c``           LDA-C: ``M id:count ...``, ids counted from 0
        ``.mtx``, ``.mm``                         Matrix Market
        ``.npz``                                  :func:`write_corpus`, ``scipy.sparse.save_npz``
        ``.svmlight``, ``.libsvm``                svmlight; its labels are ignored
        ``docword*.txt``                          UCI bag of words
        ``.tns``                                  FROSTT with two axes: documents and words
        ``.csv``, ``.tsv``, ``.all``,             a column of texts; or a row per document and a
        ``.parquet``, ``.jsonl``                  column per word; or columns of documents, words
                                                  and counts
        ``.h5ad``                                 AnnData: cells and genes
        ``.txt``                                  text, one document per line; or a delimited
                                                  table, if an option of tables is given
        ``.mallet``                               text that MALLET imports (``name label text`` on
                                                  each line), or MALLET's print of instances
        a folder                                  10x Genomics; or text, one document per ``.txt``
                                                  file
        ========================================  ==============================================

        Any file may be gzipped, with a name that ends in ``.gz``. ``"-"`` reads LDA-C from standard
        input.
    vocabulary : path or sequence of str, optional
        The words, as a sequence or a file with one word per line. For formats that hold their
        words, it sets the order of the columns.
    exposure : str, path, float or array of shape (n_documents,), optional
        Known sizes of the documents, which multiply their Poisson rates: numbers, a column of a
        table or of ``obs``, ``"total"`` for the total count of each document divided by the mean
        total, or a text file with one number per line. Overrides exposures in a ``.npz`` file.
    format : str, optional
        The format, if the name does not show it: ``"ldac"``, ``"mtx"``, ``"npz"``, ``"svmlight"``,
        ``"docword"``, ``"tns"``, ``"csv"``, ``"parquet"``, ``"jsonl"``, ``"h5ad"``, ``"text"``,
        ``"mallet"`` or ``"10x"``.
    encoding : str, default="utf-8"
        Encoding of texts, tables and the vocabulary.
    text : str, optional
        Tables: the column of texts. Default: the only column of token lists, else the column
        ``text``, else the only column with values of several words. All other columns become
        metadata.
    ids : str, optional
        Tables: the column with names of documents. Default: a column with a name such as ``id``,
        or the first column of a table of counts if it is not numeric.
    document, word, count : str, optional
        Tables with a row per count: the columns of documents, words and counts, if they have other
        names. Without a column of counts, each row counts once. For 10x Genomics, `word` is
        ``"id"`` or ``"name"`` of the features.
    metadata : sequence of str, optional
        Tables of counts: columns that are properties of the documents, not words. In tables of
        texts, all other columns are metadata; name the column of texts here to keep it, too.
    sep : str, optional
        Delimited files: the separator. Default: the most frequent of ``, ; |`` and tab in the
        header.
    columns : sequence of str, optional
        Delimited files: names of the columns of a file without a header.
    transpose : bool, default=False
        Matrix Market and tables of counts: whether rows are words and columns are documents.
    layout : str, optional
        Tables of counts: ``"wide"`` (a row per document) or ``"long"`` (a row per count). MALLET:
        ``"lines"``, ``"printed"``, ``"matrix"`` or ``"svmlight"``. Default: detected from the
        content.
    layer : str, optional
        ``.h5ad``: the layer of counts; default ``X``.
    stop_words : str or sequence of str, optional
        Texts: words to drop, or a language, such as ``"english"``.
    min_df, max_df : int or float, optional
        Texts: smallest and largest number of documents with a word; floats are shares.
    ngram_range : sequence of int, optional
        Texts: shortest and longest run of words to count, as ``(1, 2)``.
    stem : str, optional
        Texts: language of the Snowball stemmer, such as ``"english"``; needs the extra ``stem``.
    on_empty : {"raise", "drop", "keep"}, optional
        Texts: what to do with documents without words. Default: keep them, but refuse missing
        values of a table.
    **options
        Options of the format: ``n_words`` (ldac, svmlight), ``zero_based`` (svmlight),
        ``quotechar`` and ``skiprows`` (csv), and options of scikit-learn's ``CountVectorizer``,
        such as ``token_pattern`` (texts).

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
        If the format is unknown or lacks an option, or the vocabulary does not fit the counts.
    MissingDependencyError
        If the format needs an optional dependency that is not installed.

    Warns
    -----
    DataWarning
        If the role of a column is ambiguous, or documents are dropped.

    Examples
    --------
    >>> file = folder / "reviews.csv"
    >>> _ = file.write_text("id,review,stars\na,An urn of balls,5\nb,Balls again,1\n")
    >>> corpus = pb.read_corpus(file, text="review", stop_words=["an", "of"])
    >>> corpus.vocabulary.tolist(), corpus.metadata["stars"].tolist()
    (['again', 'balls', 'urn'], [5, 1])
    """
    path = checked_path(path)
    named = {
        "text": text,
        "ids": ids,
        "document": document,
        "word": word,
        "count": count,
        "metadata": metadata,
        "sep": sep,
        "columns": columns,
        "transpose": transpose or None,
        "layout": layout,
        "layer": layer,
        "stop_words": stop_words,
        "min_df": min_df,
        "max_df": max_df,
        "ngram_range": None if ngram_range is None else tuple(ngram_range),
        "stem": stem,
        "on_empty": on_empty,
    }
    options.update({name: value for name, value in named.items() if value is not None})
    if encoding is not None and not isinstance(vocabulary, (str, os.PathLike)):
        options["encoding"] = encoding
    reader = _reader(path, format, _READERS, "ldac", options)
    if encoding is not None and "encoding" in inspect.signature(reader).parameters:
        options["encoding"] = encoding
    words = resolve_vocabulary(vocabulary, encoding or "utf-8")
    is_name = isinstance(exposure, str) and not Path(exposure).is_file()
    is_table = reader in (read_csv, read_parquet, read_json_lines)
    if is_table and is_name and exposure != "total":
        return reader(path, words, exposure=exposure, **options)
    corpus = reader(path, words, **options)
    if is_name and (exposure == "total" or reader is read_h5ad):
        return corpus.with_exposure(exposure)
    return corpus if exposure is None else corpus.with_exposure(resolve_exposure(exposure))


def write_corpus(corpus: Any, path: str | os.PathLike[str]) -> None:
    """Write a corpus to a file, completely or not at all.

    Parameters
    ----------
    corpus : Corpus, sparse matrix, array or DataFrame of shape (n_documents, n_words)
        The documents.
    path : str or path
        The format follows from the name: ``.ldac``, ``.ldac.gz``, ``.mtx``, ``.mtx.gz`` or
        ``.npz``. Only ``.npz`` keeps words, ids, exposures and metadata. Other formats write the
        words to a file of the same name with the ending ``.vocab``.

    Raises
    ------
    FileAccessError
        If the file cannot be written.
    InvalidArgumentError
        If the format is unknown or cannot hold the words, or the exposures.

    Examples
    --------
    >>> corpus = pb.Corpus([[1, 0, 2], [0, 3, 0]], vocabulary=["urn", "ball", "draw"])
    >>> pb.write_corpus(corpus, folder / "two.npz")
    >>> pb.read_corpus(folder / "two.npz").vocabulary.tolist()
    ['urn', 'ball', 'draw']
    """
    path = checked_path(path)
    writer, documents = _writer(path, _WRITERS), as_corpus(corpus, "corpus")
    if documents.exposure is not None and writer is not write_npz:
        raise InvalidArgumentError(
            f"{path} cannot hold the exposure of the documents: write a .npz file, or omit it "
            "by corpus.with_exposure(None)"
        )
    writer(documents, path)


def read_tensor(
    path: str | os.PathLike[str],
    axes: Sequence[str] | None = None,
    *,
    format: str | None = None,  # noqa: A002
    counts: str | None = None,
    sep: str | None = None,
    columns: Sequence[str] | None = None,
    encoding: str | None = None,
    **options: Any,
) -> CountTensor:
    """Read a count tensor from a file.

    Parameters
    ----------
    path : str or path
        The format follows from the name:

        ========================================  ==============================================
        ``.tns``                                  FROSTT: ``i j k count``, counted from 1; names,
                                                  sizes and labels of the axes are in a file of
                                                  the same name with the ending ``.modes.json``
        ``.npz``                                  :func:`write_tensor`
        ``.csv``, ``.tsv``, ``.parquet``          a column per axis, and optionally one of counts
        ========================================  ==============================================

        Any file may be gzipped, with a name that ends in ``.gz``. ``"-"`` reads FROSTT from
        standard input.
    axes : sequence of str, optional
        For ``.csv`` and ``.parquet``, the columns that are axes; else new names of the axes.
    format : {"tns", "npz", "csv", "parquet"}, optional
        The format, if the name does not show it.
    counts : str, optional
        Tables: the column of counts. Default: a column with a name such as ``count`` or ``freq``,
        or ``n`` or ``value`` if no two rows have the same levels; else each row counts once.
    sep : str, optional
        Delimited files: the separator. Default: the most frequent of ``, ; |`` and tab in the
        header.
    columns : sequence of str, optional
        Delimited files: names of the columns of a file without a header.
    encoding : str, default="utf-8"
        Encoding of a delimited file.
    **options
        Options of the format: ``shape`` (tns), the sizes of the axes if there is no
        ``.modes.json``; ``quotechar`` and ``skiprows`` (csv).

    Returns
    -------
    CountTensor
        The counts.

    Raises
    ------
    FileAccessError
        If the file is missing or cannot be read.
    FileFormatError
        If its content is not what the format promises; the message names the line.
    InvalidArgumentError
        If the format is unknown or lacks an option.
    MissingDependencyError
        If the format needs an optional dependency that is not installed.

    Warns
    -----
    DataWarning
        If an unused column may hold the counts.

    Examples
    --------
    >>> file = folder / "counts.tns"
    >>> pb.write_tensor(pb.CountTensor.from_dense([[4, 0], [1, 2]], ["hair", "eye"]), file)
    >>> pb.read_tensor(file, ["hair", "eye"])
    <CountTensor: hair 2 x eye 2, 3 cells, total 7>
    """
    path = checked_path(path)
    named = {"counts": counts, "sep": sep, "columns": columns, "encoding": encoding}
    options.update({name: value for name, value in named.items() if value is not None})
    reader = _reader(path, format, _TENSOR_READERS, "tns", options)
    is_table = reader in (read_factor_csv, read_factor_parquet)
    # Names of columns that are not valid in a graph are changed for the axes.
    names = [axes] if isinstance(axes, str) else axes
    if names is not None and not is_table:
        names = checked_axes(names)
    return reader(path, names, **options)


def write_tensor(tensor: CountTensor, path: str | os.PathLike[str]) -> None:
    """Write a count tensor to a file, completely or not at all.

    Parameters
    ----------
    tensor : CountTensor
        The counts.
    path : str or path
        The format follows from the name: ``.tns`` or ``.tns.gz``, with the axes in a file of the
        same name with the ending ``.modes.json``; ``.npz``, which keeps everything; ``.csv`` or
        ``.csv.gz``, which lose levels that do not occur and the order of levels.

    Raises
    ------
    FileAccessError
        If the file cannot be written.
    InvalidArgumentError
        If the format is unknown or cannot hold the labels.
    InvalidTypeError
        If `tensor` is not a CountTensor.

    Examples
    --------
    >>> tensor = pb.CountTensor.from_dense([[4, 0], [1, 2]], ["hair", "eye"])
    >>> pb.write_tensor(tensor, folder / "counts.npz")
    >>> pb.read_tensor(folder / "counts.npz").to_dense().tolist()
    [[4, 0], [1, 2]]
    """
    if not isinstance(tensor, CountTensor):
        raise InvalidTypeError(f"tensor must be a CountTensor, got {type(tensor).__name__}")
    path = checked_path(path)
    _writer(path, _TENSOR_WRITERS)(tensor, path)


def _reader(
    path: Path,
    name: str | None,
    readers: dict[str, Callable[..., T]],
    piped: str,
    options: dict[str, Any],
) -> Callable[..., T]:
    """Reader of format `name`, by default from the path; `piped` reads standard input."""
    with reading(path):
        if path != STANDARD_INPUT and not path.exists():
            raise FileAccessError(f"{path} does not exist")
        if path.is_dir() and "text" not in readers:
            raise FileAccessError(f"cannot read {path}: it is a folder")
    if name is None:
        name = piped if path == STANDARD_INPUT else _format_of(path, list(readers))
        if name == "text" and not path.is_dir():
            if options.keys() & _OPTIONS_OF_TABLES:
                name = "csv"
            else:
                refuse_tables(path)
    if name not in readers:
        raise InvalidArgumentError(
            _other_reader(path, name) or f"unknown format {name!r}; known are {', '.join(readers)}"
        )
    if path == STANDARD_INPUT and name != piped:
        raise InvalidArgumentError(f"standard input is read as {piped} only, not as {name}")
    try:
        inspect.signature(readers[name]).bind(path, None, **options)
    except TypeError as error:
        other = f"another format is named by {argument('format')}"
        raise InvalidArgumentError(f"the format {name}: {error}; {other}") from error
    return readers[name]


def _other_reader(path: Path, name: str) -> str:
    """Name of the other function, if it reads this format; else empty."""
    if name in _TENSOR_READERS:
        return f"{path} is a tensor, of format {name!r}: polyabayes.read_tensor reads it"
    if name in _READERS:
        return (
            f"{path} is a corpus, of format {name!r}: polyabayes.read_corpus reads it, and "
            "CountTensor.from_corpus makes it a tensor"
        )
    return ""


def _writer(path: Path, writers: dict[str, Callable[[T, Path], None]]) -> Callable[[T, Path], None]:
    name = _format_of(path, list(writers))
    if name not in writers or (name == "npz" and path.suffix == ".gz"):
        endings = [f".{known}" for known in writers]
        endings += [f"{ending}.gz" for ending in endings if ending != ".npz"]
        raise InvalidArgumentError(
            f"{path} cannot be written; its name must end in {', '.join(endings)}"
        )
    return writers[name]


def _format_of(path: Path, known: list[str]) -> str:
    if path.is_dir():
        return "text" if matrix_of_folder(path) is None else "10x"
    name = path.name.removesuffix(".gz")
    if name.startswith("docword") and name.endswith(".txt"):
        return "docword"
    suffix = Path(name).suffix.lower()
    if suffix not in _FORMAT_OF_SUFFIX:
        raise InvalidArgumentError(
            f"the name of {path} does not show its format; known formats are {', '.join(known)}"
        )
    return _FORMAT_OF_SUFFIX[suffix]
