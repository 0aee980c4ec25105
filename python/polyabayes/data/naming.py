"""Rows and columns of tables matched with documents and words: by name where both have names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from polyabayes._support import checks
from polyabayes._support.output.tables import some
from polyabayes.data.conversion.frames import frame_of
from polyabayes.data.conversion.tables import DOCUMENT_NAMES
from polyabayes.data.counts import columns_of_words
from polyabayes.exceptions import InvalidArgumentError, argument


def rows_by_name(name: str, rows: Any, names: Any) -> Any:
    """Rows of a table or a corpus in the order of `names`, of documents or other rows.

    The index of the rows names them, or else a column with all names. Rows without names, and rows
    for data without names, are returned unchanged: they are matched by place. Other names are
    refused; an index of whole numbers that are no names only counts rows.
    """
    rows = rows if (frame := frame_of(rows)) is None else frame
    index, is_frame = checks.index_of(rows), hasattr(rows, "iloc")
    index = index if is_frame else getattr(rows, "ids", None)
    if names is None or index is None:
        return rows
    wanted, mine = list(map(str, names)), list(map(str, index))
    if mine == wanted:
        return rows
    known = set(mine)
    if not known.issuperset(wanted):
        are_numbers = index.dtype.kind in "iu" or _is_range(wanted)
        if are_numbers and (_is_range(mine) or known.isdisjoint(wanted)):
            is_table = hasattr(rows, "columns") and not _is_range(wanted)
            return _rows_by_column(name, rows, wanted) if is_table else rows
        remedy, other = (".loc[names]", ".to_numpy()") if is_frame else ("[names]", ".counts")
        raise _other_names(name, mine, wanted, name + remedy, name + other)
    return (rows.iloc if is_frame else rows)[_places(name, mine, wanted)]


def columns_by_name(name: str, values: Any, names: Any) -> Any:
    """The same of the columns of a frame, or of the entries of a Series."""
    turned = values.T if hasattr(values, "columns") else values
    found = rows_by_name(name, turned, names)
    return found.T if turned is not values else found


def by_topic(name: str, values: Any, topic_word: Any, axes: Sequence[int] = (1,)) -> Any:
    """Values of topics in the order of the rows of a frame of topics: entries, or axes of a frame.

    There may be values for the first topics only.
    """
    topics, index = checks.index_of(topic_word), checks.index_of(values)
    if topics is not None and index is not None:
        for axis in axes if hasattr(values, "columns") else (0,):
            match = columns_by_name if axis else rows_by_name
            values = match(name, values, topics[: values.shape[axis]])
    return values


def _is_range(labels: list[str]) -> bool:
    return labels == list(map(str, range(len(labels))))


def _rows_by_column(name: str, frame: Any, wanted: list[str]) -> Any:
    """Rows by a column with the names of all documents; refused if a column names others."""
    texts = {column: [str(value) for value in frame[column]] for column in frame.columns}
    found = [
        column
        for column, held in texts.items()
        if (_names_documents(column) or frame[column].dtype.kind not in "biufc")
        and set(held).issuperset(wanted)
    ]
    # Several columns may hold the names: those that agree with the order of the rows need no other.
    if any(texts[column] == wanted for column in found):
        return frame
    if len(found) > 1:
        raise InvalidArgumentError(
            f"{argument(name)}: columns {found[0]!r} and {found[1]!r} both hold the names of all "
            f"documents: say which by {name}.set_index({found[0]!r})"
        )
    if found:
        return frame.iloc[_places(name, texts[found[0]], wanted)]
    for column, held in texts.items():
        if _names_documents(column):
            of_column = f"{name}.set_index({column!r}).loc[corpus.ids]"
            raise _other_names(name, held, wanted, of_column, f"{name}.drop(columns={column!r})")
    return frame


def _names_documents(column: Any) -> bool:
    return str(column).lower() in DOCUMENT_NAMES


def _places(name: str, mine: list[str], wanted: list[str]) -> list[int]:
    place = {label: row for row, label in reversed(list(enumerate(mine)))}
    for row, label in enumerate(mine):
        if row != place[label] and label in set(wanted):
            raise checks.wrong(
                name, label, f"has several rows for {label!r}: drop all but one of them"
            )
    return [place[label] for label in wanted]


def _other_names(
    name: str, mine: list[str], wanted: list[str], remedy: str, other: str
) -> InvalidArgumentError:
    known = set(mine)
    missing = [label for label in wanted if label not in known]
    return checks.wrong(
        name,
        missing[0],
        f"has no row for {some(missing)} of the data, but has {some(mine)}: rows are matched by "
        f"name; use {remedy} where they have the names, or {other} if the order is right",
    )


def topics_by_name(name: str, topics: Any, vocabulary: Any) -> tuple[Any, Any]:
    """Topics and their words; columns of a table are words, in the order of `vocabulary` if given.

    Topics without names of columns are returned unchanged.
    """
    frame = frame_of(topics)
    if frame is None or not all(isinstance(column, str) for column in frame.columns):
        return topics, vocabulary
    words, column_of = columns_of_words(list(frame.columns))
    if vocabulary is None or np.array_equal(words, vocabulary := np.asarray(vocabulary, object)):
        return frame.to_numpy(), words
    if set(words) != set(vocabulary):
        others = sorted(set(words) ^ set(map(str, vocabulary)))
        raise checks.wrong(
            name,
            None,
            f"has other columns than {argument('vocabulary')}: {some(others)} are in one of them "
            f"only; give the words of the columns, or {name}.to_numpy() if the order is right",
        )
    return frame.to_numpy()[:, [column_of[word] for word in vocabulary]], vocabulary
