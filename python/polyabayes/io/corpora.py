"""Reading and writing corpora of any format."""

from __future__ import annotations

import inspect
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from polyabayes._support import checks
from polyabayes._support.files import checked_path, read_lines, within_memory
from polyabayes.data.conversion.numbers import number_of
from polyabayes.data.corpus import Corpus, as_corpus
from polyabayes.data.names import refusal
from polyabayes.exceptions import FileFormatError
from polyabayes.io.cells import read_h5ad
from polyabayes.io.formats import OPTIONS_OF_TABLES, READERS, WRITERS, reader_of, writer_of
from polyabayes.io.matrices.npz import write_npz
from polyabayes.io.tabular.corpora import read_csv, read_json_lines, read_parquet
from polyabayes.io.vocabularies import VocabularyLike, resolve_vocabulary, with_vocabulary


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
    layer: str | None = None,
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
        ``.svmlight``, ``.libsvm``, ``.svm``      svmlight; its labels are ignored
        ``docword*.txt``                          UCI bag of words
        ``.tns``                                  FROSTT with two axes: documents and words
        ``.csv``, ``.tsv``, ``.all``,             a column of texts; or a row per document and a
        ``.parquet``, ``.jsonl``                  column per word; or columns of documents, words
                                                  and counts
        ``.h5ad``, ``.h5``                        AnnData; Cell Ranger: cells and genes
        ``.txt``                                  text, one document per line; or a delimited
                                                  table, if an option of tables is given
        ``.mallet``                               text that MALLET imports (``name label text`` on
                                                  each line)
        a folder                                  10x Genomics, also with the name of a sample
                                                  before the names; or text, one document per
                                                  ``.txt`` file
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
        Tables: the column of texts or of lists of tokens. Default: a column ``text`` or
        ``tokens``. All other columns become metadata.
    ids : str, optional
        Tables: the column with names of documents. Default: a column ``document``, ``doc_id``,
        ``document_id``, ``doc`` or ``id``, in counts only if it is the first; or a first column
        without a name, as R writes it.
    document, word, count : str, optional
        Tables with a row per count: the columns of documents, words and counts. Default: a column
        with a name of documents, a column ``word``, ``term``, ``token``, ``feature``, ``gene`` or
        ``MutationType``, and a column ``count``, ``counts``, ``freq``, ``frequency``, ``n`` or
        ``value``. Without a column of counts,
        `document` and `word` must be given: each row is a token. For 10x Genomics, `word` is
        ``"id"`` or ``"name"`` of the features.
    metadata : sequence of str, optional
        Tables of counts: columns that are properties of the documents, not words; with `transpose`,
        properties of the words, which are left out. In tables of texts, all other columns are
        metadata; name the column of texts here to keep it, too.
    sep : str, optional
        Delimited files: the separator. Default: that of a first line ``sep=;``, else the one of
        ``, ; |`` and tab that the header and most lines have as often, or else the most frequent.
    columns : sequence of str, optional
        Delimited files: names of the columns of a file without a header.
    transpose : bool, default=False
        Matrix Market and tables of counts: whether rows are words and columns are documents. `ids`
        are the words then; default: a first column with a name of words or of documents.
    layer : str, optional
        ``.h5ad``: the layer of counts, or ``"X"``, as for :meth:`Corpus.from_anndata`.
    **options
        Texts: those of :meth:`Corpus.from_documents`, such as ``stop_words``, ``min_df``, ``stem``
        and ``on_empty``. Formats: ``n_words`` (ldac, svmlight), ``zero_based`` (svmlight),
        ``skiprows`` (csv), ``feature_type`` (10x; default "Gene Expression"),
        and ``layout="wide"`` (tables: all columns that have no other role count words, whatever
        their names).

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
        If columns that are read as counts look like names, documents are dropped, or lines of a
        text are blank.

    Examples
    --------
    >>> file = folder / "reviews.csv"
    >>> _ = file.write_text("id,review,stars\na,An urn of balls,5\nb,Balls again,1\n")
    >>> corpus = pb.read_corpus(file, text="review", stop_words=["an", "of"])
    >>> corpus.vocabulary.tolist(), corpus.metadata["stars"].tolist()
    (['again', 'balls', 'urn'], [5, 1])
    """
    # Parameters that go to the reader of a format as they are.
    given = {x: y for x, y in [*locals().items()] if x in {*OPTIONS_OF_TABLES, "layer"}}
    given["transpose"] = checks.flag("transpose", transpose) or None
    options |= {name: value for name, value in given.items() if value is not None}
    path = checked_path(path)
    if encoding is not None and not isinstance(vocabulary, (str, os.PathLike)):
        options["encoding"] = encoding
    reader = reader_of(path, format, READERS, options)
    taken = inspect.signature(reader).parameters
    words = resolve_vocabulary(vocabulary, encoding or "utf-8")
    parts = {"encoding": encoding, "vocabulary": words}
    options |= {name: x for name, x in parts.items() if x is not None and name in taken}
    is_name = isinstance(exposure, str) and not Path(exposure).is_file()
    is_table = reader in (read_csv, read_parquet, read_json_lines)
    is_column = is_table and is_name and exposure != "total"
    options |= {"exposure": exposure} if is_column else {}
    with within_memory(path):
        corpus = with_vocabulary(reader(path, **options), words)
    if exposure is None or is_column:
        return corpus
    is_known = is_name and (exposure == "total" or reader is read_h5ad)
    if not is_known and isinstance(exposure, (str, os.PathLike)):
        path = checked_path(exposure, "exposure")
        if None in (exposure := list(map(number_of, " ".join(read_lines(path)).split()))):
            raise FileFormatError(f"{path}: number {exposure.index(None) + 1} is no size")
    return corpus.with_exposure(exposure)


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
    writer, documents = writer_of(path, WRITERS), as_corpus(corpus, "corpus")
    if documents.exposure is not None and writer is not write_npz:
        raise refusal("exposed", path)
    writer(documents, path)
