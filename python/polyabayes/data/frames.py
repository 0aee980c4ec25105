"""Tables whose rows are documents as text or tokens, or single counts, as counts."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import sparse

from polyabayes.data import sources
from polyabayes.data.counts import checked_words
from polyabayes.data.sources import Source
from polyabayes.exceptions import (
    InvalidArgumentError,
    InvalidCountsError,
    InvalidTypeError,
    MissingDependencyError,
)

if TYPE_CHECKING:
    import pandas as pd

LONG_COLUMNS = ("document", "word", "count")
# Columns that hold texts and names by custom.
_TEXT, _ID = "text", "id"
# Rows that are looked at to tell a column of texts from one of names.
_ROWS_LOOKED_AT = 100
# Kinds of columns that hold numbers and times.
_OTHER_KINDS = "biufcmM"


class Texts(NamedTuple):
    """The documents of a table, uncounted.

    Attributes
    ----------
    documents : list of str, or list of sequences of str
        Texts, or tokens.
    ids : list of str or None
        Names of the documents.
    are_tokens : bool
        Which of the two.
    """

    documents: list[Any]
    ids: list[str] | None
    are_tokens: bool


def frame_of(table: Any) -> pd.DataFrame | None:
    """A pandas DataFrame of a table of pandas, polars, pyarrow or Hugging Face; None for others.

    Tables are met through the Arrow C stream, datasets of Hugging Face by their own choice of rows;
    neither package is imported.

    Raises
    ------
    InvalidTypeError
        If `table` is several datasets, or one that is only streamed.
    MissingDependencyError
        If pandas and pyarrow are not there to read it.
    """
    loaded = sys.modules.get("pandas")
    if isinstance(table, np.ndarray):
        return None
    if loaded is not None and isinstance(table, loaded.DataFrame):
        return table  # type: ignore[no-any-return]
    kind = _dataset_kind(table)
    if not kind and not hasattr(table, "__arrow_c_stream__"):
        return None
    if kind in ("DatasetDict", "IterableDatasetDict"):
        raise InvalidTypeError(
            f"a {kind} holds several datasets ({', '.join(map(repr, table))}): choose one of them, "
            f"as in datasets[{next(iter(table), 'train')!r}]"
        )
    if kind == "IterableDataset":
        raise InvalidTypeError(
            "an IterableDataset has no table: count its tokens as they come, by "
            "Corpus.from_documents(row['text'].split() for row in dataset)"
        )
    try:
        import pandas
        import pyarrow
    except ImportError as error:
        raise MissingDependencyError(
            f"reading a {type(table).__name__} needs pandas and pyarrow: pip install "
            "'polyabayes[frames]'"
        ) from error
    # The table of a dataset lacks its selections, shuffles and splits; its rows do not.
    found = table.with_format("arrow")[:] if kind else pyarrow.table(table)
    if not any(map(pyarrow.types.is_nested, found.schema.types)):
        return found.to_pandas()  # type: ignore[no-any-return]
    # pandas has no arrays of some lists that Arrow knows, as polars' of string views.
    columns = [pandas.Series(column.to_pylist()) for column in found.columns]
    return pandas.concat(columns, axis=1, keys=found.column_names)


def _dataset_kind(table: Any) -> str:
    """Name of the class of Hugging Face that a table is of, or nothing."""
    for base in type(table).__mro__:
        if base.__module__.partition(".")[0] == "datasets" and "Dataset" in base.__name__:
            return base.__name__
    return ""


def texts_of(table: Any, column: str | None = None) -> Texts | None:
    """Documents of a table that holds them as texts or tokens; None for anything else.

    Parameters
    ----------
    table : DataFrame, polars or pyarrow table, Hugging Face dataset, or anything else
        Its documents are the only column of token lists, else the column called ``text``, else the
        only column of strings, if most of these hold spaces, as texts do and names do not. A column
        ``id`` names them, else an index of pandas that is not the default one.
    column : str, optional
        The column of the documents.

    Raises
    ------
    InvalidArgumentError
        If there is no such column, or if a document is missing.
    InvalidTypeError
        If the column holds neither texts nor tokens.
    """
    frame = frame_of(table)
    if frame is None:
        return None
    if column is None:
        column = _column_of(frame)
        if column is None:
            return None
    elif column not in frame.columns:
        known = ", ".join(repr(name) for name in frame.columns[:8])
        raise InvalidArgumentError(f"the table has no column {column!r}; it has {known}")
    kind = _kind_of(frame[column])
    if not kind:
        raise InvalidTypeError(
            f"column {column!r} holds {frame[column].dtype}, neither texts nor lists of tokens"
        )
    missing = frame[column].isna().to_numpy()
    if missing.any():
        raise InvalidArgumentError(
            f"row {int(np.argmax(missing))} has no document in column {column!r}: leave it out"
        )
    return Texts(frame[column].tolist(), _ids_of(frame), kind == "tokens")


def _column_of(frame: pd.DataFrame) -> str | None:
    named = [
        name
        for name, dtype in frame.dtypes.items()
        if getattr(dtype, "kind", "O") not in _OTHER_KINDS and name != _ID
    ]
    kinds = {name: _kind_of(frame[name]) for name in named}
    tokens = [name for name, kind in kinds.items() if kind == "tokens"]
    if len(tokens) == 1:
        return tokens[0]  # type: ignore[return-value]
    if kinds.get(_TEXT) == "text":
        return _TEXT
    strings = [name for name, kind in kinds.items() if kind == "text"]
    if len(strings) != 1 or _is_long(frame):
        return None
    shown = frame[strings[0]].dropna().head(_ROWS_LOOKED_AT)
    holds_spaces = [" " in text.strip() for text in shown]
    return strings[0] if 2 * sum(holds_spaces) > len(holds_spaces) else None  # type: ignore[return-value]


def _kind_of(column: Any) -> str:
    """Whether a column holds texts, tokens or, as an empty string, neither."""
    # Two columns of one name come as a frame.
    if column.ndim != 1 or getattr(column.dtype, "kind", "O") in _OTHER_KINDS:
        return ""
    held = column.dropna().head(_ROWS_LOOKED_AT).tolist()
    if held and all(isinstance(value, str) for value in held):
        return "text"
    is_list = held and all(isinstance(value, (list, tuple, np.ndarray)) for value in held)
    return "tokens" if is_list and all(isinstance(x, str) for row in held for x in row) else ""


def _ids_of(frame: pd.DataFrame) -> list[str] | None:
    if _ID in frame.columns:
        return [str(label) for label in frame[_ID]]
    is_default = frame.index.equals(frame.reset_index(drop=True).index)
    return None if is_default else [str(label) for label in frame.index]


def counted_texts(
    found: Texts, vocabulary: Any = None, options: Mapping[str, Any] | None = None
) -> Source:
    """Count documents of a table; texts by scikit-learn's CountVectorizer.

    Parameters
    ----------
    found : Texts
        The documents.
    vocabulary : sequence of str, optional
        The words of the columns. Others are left out of texts, and refused among tokens.
    options : mapping, optional
        Options of CountVectorizer.
    """
    if found.are_tokens:
        if options:
            raise InvalidArgumentError(
                f"{', '.join(options)}: options of texts, but the column holds lists of tokens"
            )
        counts, words, _ = sources.tokens(found.documents, vocabulary)
        return Source(counts, words, found.ids)
    from sklearn.feature_extraction.text import CountVectorizer

    words = None if vocabulary is None else checked_words(vocabulary).tolist()
    try:
        vectoriser = CountVectorizer(vocabulary=words, **(options or {}))
        counts = vectoriser.fit_transform(found.documents)
    except (TypeError, ValueError) as error:
        raise InvalidArgumentError(f"the words of the texts cannot be counted: {error}") from error
    return Source(counts, [str(word) for word in vectoriser.get_feature_names_out()], found.ids)


def documents_of(frame: pd.DataFrame) -> Source | None:
    """Counts of a table of texts, of tokens, or of documents, words and counts.

    Returns
    -------
    Source or None
        None for tables of a row a document and a column a word.
    """
    found = texts_of(frame)
    if found is not None:
        return counted_texts(found)
    return long_source(frame) if _is_long(frame) else None


def _is_long(frame: pd.DataFrame) -> bool:
    return set(frame.columns) == set(LONG_COLUMNS)


def long_source(frame: pd.DataFrame) -> Source:
    """Counts of a table with a row for each document, word and count; the words are sorted.

    Raises
    ------
    InvalidArgumentError, InvalidCountsError
        If an entry is missing, or a count is no number.
    """
    for column in LONG_COLUMNS:
        missing = frame[column].isna().to_numpy()
        if missing.any():
            raise InvalidArgumentError(
                f"row {int(np.argmax(missing)) + 1} of the table: no {column} is given"
            )
    rows, documents = frame["document"].factorize()
    columns, words = frame["word"].factorize(sort=True)
    counts = frame["count"].to_numpy()
    if counts.dtype.kind not in "iuf":
        raise InvalidCountsError(f"the column count holds {frame['count'].dtype}, not numbers")
    matrix = sparse.coo_matrix((counts, (rows, columns)), shape=(len(documents), len(words)))
    return Source(matrix, [str(word) for word in words], [str(label) for label in documents])


def with_named_rows(frame: pd.DataFrame) -> pd.DataFrame:
    """A table that came without an index, its first column of text as the names of the rows."""
    first = frame.columns[0] if len(frame.columns) else None
    if first is not None and frame[first].dtype.kind not in "biuf" and len(frame.columns) > 1:
        return frame.set_index(first)
    return frame
