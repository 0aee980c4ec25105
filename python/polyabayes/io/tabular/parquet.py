"""Tables in Parquet files, wide (a row a document) or long (document, word, count)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from polyabayes._support.files import content_of, open_binary, reading
from polyabayes.data.corpus import Corpus
from polyabayes.data.counts import Words
from polyabayes.data.frames import LONG_COLUMNS, long_source
from polyabayes.exceptions import FileFormatError, InvalidArgumentError, MissingDependencyError
from polyabayes.io.vocabularies import with_vocabulary

if TYPE_CHECKING:
    import pandas as pd

Layout = Literal["auto", "wide", "long"]


def read_parquet(
    path: Path,
    vocabulary: Words | None = None,
    *,
    layout: Layout = "auto",
    exposure: str | None = None,
) -> Corpus:
    """Read a Parquet file.

    Parameters
    ----------
    path : Path
        The file. A long table has the columns ``document``, ``word`` and ``count``, one line
        for each non-zero count; a wide one has a row a document and a column a word, and its
        first column holds the ids of the documents if that is text or called ``document``.
    vocabulary : ndarray of str, shape (n_words,), optional
        The words in the order wanted.
    layout : {"auto", "wide", "long"}, default="auto"
        "auto" takes the table for long if it has exactly those three columns.
    exposure : str, optional
        A further column that holds the known size of the document: the same in all lines of a
        document of a long table.

    Returns
    -------
    Corpus
        Documents in order of appearance; the words of a long table are sorted.
    """
    return _corpus(path, read_parquet_frame(path), vocabulary, layout, exposure)


def read_parquet_frame(path: Path) -> pd.DataFrame:
    """The table of a Parquet file."""
    pandas = load_pandas("Parquet")
    with open_binary(path) as stream, reading(path):
        try:
            frame: pd.DataFrame = pandas.read_parquet(stream)
        except ImportError as error:
            raise _missing("Parquet", error) from error
        if not frame.columns.is_unique:
            twice = frame.columns[frame.columns.duplicated()][0]
            raise FileFormatError(f"{path} has two columns that are called {twice!r}; rename one")
    return frame


def parquet_blocks(path: Path) -> Iterator[Corpus]:
    """Documents of a long table, whose words are found in a first pass."""
    try:
        import pyarrow.parquet as pq
    except ImportError as error:
        raise MissingDependencyError(
            "reading Parquet files needs pyarrow: pip install 'polyabayes[frames]'"
        ) from error
    with reading(path):
        file = pq.ParquetFile(path)
        distinct = (batch[0].unique().to_pylist() for batch in file.iter_batches(columns=["word"]))
        words = sorted({str(word) for some in distinct for word in some})
        column = {word: number for number, word in enumerate(words)}
    vocabulary = np.array(words, dtype=object)
    left: list[tuple[Any, int, int]] = []
    with reading(path):
        for batch in file.iter_batches(columns=["document", "word", "count"]):
            names, counts = batch["document"].to_pylist(), batch["count"].to_pylist()
            numbers = [column[str(word)] for word in batch["word"].to_pylist()]
            left.extend(zip(names, numbers, counts, strict=True))
            # The last document may go on in the next batch.
            last, start = left[-1][0], len(left)
            while start and left[start - 1][0] == last:
                start -= 1
            if start:
                yield _long_block(left[:start], vocabulary)
            left = left[start:]
    if left:
        yield _long_block(left, vocabulary)


def load_pandas(kind: str) -> Any:
    """The module pandas, which reads files of this kind."""
    try:
        import pandas
    except ImportError as error:
        raise _missing(kind, error) from error
    return pandas


def _missing(kind: str, error: ImportError) -> MissingDependencyError:
    return MissingDependencyError(
        f"reading {kind} files needs pandas and pyarrow ({error}); "
        "install them with: pip install 'polyabayes[frames]'"
    )


def _corpus(
    path: Path,
    frame: pd.DataFrame,
    vocabulary: Words | None,
    layout: Layout,
    exposure: str | None,
) -> Corpus:
    if layout not in ("auto", "wide", "long"):
        raise InvalidArgumentError(f"layout must be 'auto', 'wide' or 'long', got {layout!r}")
    if not len(frame):
        raise FileFormatError(f"{path} holds no documents")
    sizes = None
    if exposure is not None:
        if exposure not in frame.columns:
            raise FileFormatError(
                f"{path} has no column {exposure!r} of exposures, and no such file"
            )
        sizes = frame[exposure]
        frame = frame.drop(columns=exposure)
    is_long = set(frame.columns) == set(LONG_COLUMNS)
    if layout == "long" and not is_long:
        raise FileFormatError(
            f"{path} has the columns {', '.join(map(str, frame.columns[:6]))}; a long table has "
            "the columns document, word and count"
        )
    with content_of(path):
        as_long = is_long and layout != "wide"
        corpus = Corpus(*long_source(frame)) if as_long else _from_wide(frame)
        if sizes is not None:
            corpus = corpus.with_exposure(_of_documents(path, frame, sizes) if as_long else sizes)
    return with_vocabulary(corpus, vocabulary)


def _of_documents(path: Path, frame: pd.DataFrame, sizes: pd.Series[Any]) -> Any:
    """One size for each document of a long table."""
    by_document = sizes.groupby(frame["document"].to_numpy(), sort=False)
    differ = by_document.nunique(dropna=False)
    if (differ > 1).any():
        raise FileFormatError(
            f"{path}: the lines of document {differ.index[(differ > 1).to_numpy()][0]!r} have "
            "different exposures; give all lines of a document the same"
        )
    return by_document.first().to_numpy()


def _from_wide(frame: pd.DataFrame) -> Corpus:
    first = frame.columns[0]
    if first == "document" or frame[first].dtype.kind not in "biuf":
        frame = frame.set_index(first)
    return Corpus(frame)


def _long_block(cells: list[tuple[Any, int, int]], vocabulary: NDArray[np.object_]) -> Corpus:
    names = [name for name, _, _ in cells]
    rows = np.cumsum([0, *(one != other for one, other in pairwise(names))])
    columns, counts = (np.array([cell[ix] for cell in cells]) for ix in (1, 2))
    shape = (int(rows[-1]) + 1, len(vocabulary))
    return Corpus(sparse.csr_matrix((counts, (rows, columns)), shape), vocabulary)
