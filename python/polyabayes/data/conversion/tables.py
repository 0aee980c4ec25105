"""Roles of the columns of a table, by their documented names or as the caller names them.

One rule for frames and files.

A table holds documents as texts or lists of tokens (a row per document), in long form (a row per
document and word) or in wide form (a row per document and a column per word).
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, fields
from math import isnan
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from polyabayes._support import checks
from polyabayes._support.warnings import warn
from polyabayes.data.counts import CountMatrix
from polyabayes.exceptions import DataWarning, InvalidArgumentError, InvalidTypeError, argument

if TYPE_CHECKING:
    import pandas as pd

# Kinds: numbers, labels, texts of several words, lists of tokens, and others such as times.
Kind = Literal["number", "name", "text", "tokens", "other"]

# Headers with a role, in any case; the first in this order is taken.
DOCUMENT_NAMES = ("document", "doc_id", "document_id", "doc", "id")
_WORD_NAMES = ("word", "term", "token", "feature", "gene", "mutationtype")
COUNT_NAMES = ("count", "counts", "freq", "frequency", "n", "value")
_TEXT_NAMES = ("text", "tokens")
# Names of rows as R and pandas write them, in the first column.
_ROW_NAMES = ("", "unnamed: 0")
_ROWS_LOOKED_AT = 100
# Ratio to all other counts above which the first column looks like numbers of documents.
_FAR_LARGER = 10
# Largest share of distinct values in a column of a long table.
_FEW_DISTINCT = 2 / 3
_N_SHOWN = 8
# Leading zeros occur only in names.
_PADDED = re.compile(r"[+-]?0[0-9]")


@dataclass(frozen=True)
class NamedColumns:
    """Columns that the caller has named.

    `text` holds texts or lists of tokens. `document`, `word` and `count` are columns of a long
    table. `metadata` are properties of the documents of a table of counts. With the `layout`
    "wide", all further columns count words, whatever their names.
    """

    text: str | None = None
    ids: str | None = None
    document: str | None = None
    word: str | None = None
    count: str | None = None
    exposure: str | None = None
    metadata: Sequence[str] = ()
    layout: Literal["auto", "wide"] = "auto"

    def __post_init__(self) -> None:
        checks.choice("layout", self.layout, ("auto", "wide"))

    @classmethod
    def taken_from(cls, options: dict[str, Any]) -> NamedColumns:
        """The columns that options name; other options are left."""
        names = [field.name for field in fields(cls) if field.name in options]
        return cls(**{name: options.pop(name) for name in names})


class Roles(NamedTuple):
    """Roles of the columns of a table.

    `layout` is "texts", "long" or "wide". `columns` are, by layout: the column of texts; the
    columns of documents, words and, unless each row counts once, counts; the columns of all words.
    `metadata` are the other columns.
    """

    layout: Literal["texts", "long", "wide"]
    ids: str | None
    columns: list[str]
    metadata: list[str]


class Table(ABC):
    """A table of named columns.

    `row_names` are names of rows outside the columns, such as the index of a data frame.
    `has_headers` says whether columns have names, not just numbers. Error messages call the table
    by its title. `taker` is the function that takes the options of tables, if it is not the one
    that the user called.
    """

    names: list[str]
    n_rows: int
    row_names: list[str] | None = None
    has_headers: bool = True
    title: str = "the table"
    taker: str = ""

    def option(self, name: str, value: Any = None) -> str:
        """A reference to an option of tables in a message."""
        return argument(name, value) + (f" of {self.taker}" if self.taker else "")

    @abstractmethod
    def kind(self, name: str) -> Kind:
        """Kind of a column."""

    @abstractmethod
    def values(self, name: str) -> list[Any]:
        """The values of a column; None if missing."""

    @abstractmethod
    def counts(self, names: Sequence[str]) -> CountMatrix:
        """Columns of counts, checked; an error names the place."""

    @abstractmethod
    def numbers(self, name: str) -> Any:
        """A column of numbers as an array of integers or floats; an error names the place."""

    @abstractmethod
    def place(self, row: int) -> str:
        """Place of a row, for error messages."""

    @abstractmethod
    def data_frame(self, names: Sequence[str]) -> pd.DataFrame:
        """Columns as a data frame of pandas."""

    def are_distinct(self, names: Sequence[str]) -> bool:
        """Whether no two rows have the same values in these columns."""
        rows = list(zip(*(self.values(name) for name in names), strict=True))
        try:
            return len(set(rows)) == len(rows)
        except TypeError:  # Lists cannot be levels.
            return False


def roles_of(table: Table, named: NamedColumns) -> Roles:
    """Roles of the columns of a table, as named, else by their documented names.

    Any other column must be a number, which counts a word; else the table is refused.
    """
    for field in fields(NamedColumns)[:-1]:
        given = getattr(named, field.name)
        for name in given if field.name == "metadata" else [given]:
            if name is not None and name not in table.names:
                raise InvalidArgumentError(
                    f"{table.option(field.name, name)}: {table.title} has no column {name!r}; it "
                    f"has {_shown(table.names)}",
                    argument=field.name,
                    value=name,
                )
    names = [name for name in table.names if name != named.exposure]
    if named.layout == "wide":
        return _wide_roles(table, named, names, named.ids)
    others = [name for name in names if name != named.text]
    ids = named.ids or headed(others, DOCUMENT_NAMES)
    if names[:1] and names[0].lower() in _ROW_NAMES and names[0] != named.ids:
        # R's and pandas' own names of rows, unless there are names of documents.
        is_alone = ids is None and named.document is None
        ids, names = (names[0], names) if is_alone else (ids, names[1:])
    rest = [name for name in names if name not in named.metadata and name != named.ids]
    text = named.text
    if text is None:
        long = _long_columns(table, named, rest)
        if long:
            return Roles("long", None, long, [name for name in names if name not in long])
        text = _text_column(table, rest)
    if text is not None:
        kept = [name for name in names if name not in (ids, text) or name in named.metadata]
        return Roles("texts", ids, [text], kept)
    # Words of a wide table may have the name of a role; names of documents come first.
    return _wide_roles(table, named, names, named.ids or (ids if [ids] == names[:1] else None))


def _wide_roles(table: Table, named: NamedColumns, names: list[str], ids: str | None) -> Roles:
    words = [name for name in names if name != ids and name not in named.metadata]
    labels = [name for name in words if _are_labels(table, name)]
    if labels or not words:
        raise InvalidArgumentError(
            f"{table.title} has the columns {_shown(table.names)}; "
            f"{repr(labels[0]) if labels else 'none'} holds no counts. {_remedy(table, labels)}"
        )
    if table.row_names is None and named.layout != "wide":
        if ids is None:
            _warn_of_names(table, words)
        if named.ids is None and table.has_headers:
            _warn_of_triplets(table, [name for name in names if name not in named.metadata])
    return Roles("wide", ids, words, list(named.metadata))


def _remedy(table: Table, labels: list[str]) -> str:
    """How to name columns of labels: those of a long table, of texts, or names and properties."""
    word, count = headed(table.names, _WORD_NAMES), headed(table.names, COUNT_NAMES)
    of_taker = f" of {table.taker}" if table.taker else ""
    documents = [name for name in labels if name not in (word, count)]
    if word and documents:
        counts = "" if count is None else f", {argument('count', count)}"
        return (
            f"With a row for each word of a document, use {argument('document', documents[0])}, "
            f"{argument('word', word)}{counts}{of_taker}"
        )
    text = next((name for name in labels if table.kind(name) in ("text", "tokens")), None)
    names = next((name for name in labels if name != text), text)
    return (
        f"Name texts by {argument('text', text or names)}, names of documents by "
        f"{argument('ids', names)}, properties by {argument('metadata', [names])}{of_taker}; or, "
        f"with a row a count, {argument('document')}, {argument('word')} and {argument('count')}"
    )


def _are_labels(table: Table, name: str) -> bool:
    """Whether no value of a column is a number; one that should be is found when it is read."""
    if table.kind(name) not in ("name", "text", "tokens"):
        return False
    return not any(isinstance(x, str) and number_of(x) is not None for x in table.values(name))


def _shown(names: Sequence[str]) -> str:
    more = f" and {len(names) - _N_SHOWN:,} more" if len(names) > _N_SHOWN else ""
    return ", ".join(map(repr, names[:_N_SHOWN])) + more


def headed(names: Sequence[str], headers: Collection[str]) -> str | None:
    """The column with one of these headers, the first in their order; None if there is none."""
    found = {name.lower(): name for name in reversed(names)}
    return next((found[header] for header in headers if header in found), None)


def named_rows(names: Sequence[str]) -> str | None:
    """The first column, if its header is that of names of documents, words or rows."""
    return headed(names[:1], (*DOCUMENT_NAMES, *_WORD_NAMES, *_ROW_NAMES))


def _long_columns(table: Table, named: NamedColumns, names: list[str]) -> list[str]:
    """Columns of documents, words and, if any, counts; empty if the table is not long."""
    document = named.document or headed(names, DOCUMENT_NAMES)
    word = named.word or headed(names, _WORD_NAMES)
    count = named.count or headed(names, COUNT_NAMES)
    found = [name for name in (document, word, count) if name is not None]
    if None not in (named.document, named.word) or (named.count and None not in (document, word)):
        return found
    if (named.document, named.word, named.count) != (None, None, None):
        raise InvalidArgumentError(
            f"{table.title} has the columns {_shown(names)}; a long table has columns of documents "
            f"and of words: name them by {table.option('document')} and {table.option('word')}"
        )
    # A wide table may have words with these names; it has further columns of counts.
    if None in (document, word) or (len(names) > len(found) and table.kind(found[1]) == "number"):
        return []
    if count is None:
        raise InvalidArgumentError(
            f"{table.title} has the columns {_shown(names)}, and no counts: if each row is one "
            f"token, say so by {table.option('document', document)} and "
            f"{table.option('word', word)}; else name the counts by {table.option('count')}"
        )
    return found


def _text_column(table: Table, names: list[str]) -> str | None:
    """The column of texts or of lists of tokens; None in a table of counts."""
    headers = [name for name in names if name.lower() in _TEXT_NAMES]
    found = [name for name in headers if table.kind(name) in ("name", "text", "tokens")]
    if len(found) > 1:
        raise InvalidArgumentError(
            f"{table.title} has the columns {_shown(found)}: name the texts by "
            f"{table.option('text', found[0])}"
        )
    return found[0] if found else None


def _warn_of_names(table: Table, words: list[str]) -> None:
    """Warn if the first column of counts looks like numbers of documents."""
    if len(words) < 2 or table.n_rows < 2 or not table.are_distinct(words[:1]):
        return
    counts = table.counts(words)
    if counts[:, 0].toarray().min() >= _FAR_LARGER * max(1, int(counts[:, 1:].max())):
        warn(
            f"column {words[0]!r} of {table.title} is read as counts of a word, but its values are "
            "all different and far larger than the other counts: if they name the documents, use "
            f"{table.option('ids', words[0])}; if not, use {table.option('layout', 'wide')}",
            DataWarning,
        )


def _warn_of_triplets(table: Table, names: list[str]) -> None:
    """Warn if rows of a wide table look like triplets (document, word, count).

    The first two values are distinct as pairs, both repeat in other rows, and the third is
    positive.
    """
    if len(names) != 3 or table.n_rows < 3 or not _holds_whole_numbers(table, names[2]):
        return
    repeats = (len(set(table.values(name))) <= _FEW_DISTINCT * table.n_rows for name in names[:2])
    if not (all(repeats) and table.are_distinct(names[:2])):
        return
    if all(float(value) > 0 for value in table.values(names[2])):
        document, word, count = names
        warn(
            f"{_shown(names)} of {table.title} are read as rows of counts, but look like a "
            f"document, a word and a count: if they are, use "
            f"{table.option('document', document)}, {table.option('word', word)} and "
            f"{table.option('count', count)}; if not, {table.option('layout', 'wide')}",
            DataWarning,
        )


def count_column(table: Table, axes: Sequence[str] | None, counts: str | None) -> str | None:
    """The column of counts of a table of factors, by its name; None if each row counts once.

    A warning is given if an unused integer column may hold the counts, because all rows have
    distinct levels.
    """
    if counts is not None:
        return counts
    free = [name for name in table.names if name not in (axes or ())]
    found = headed(free, COUNT_NAMES)
    if found is not None and len(table.names) > 1 and not _are_labels(table, found):
        return found
    if axes is None or table.n_rows < 2 or not set(axes) <= set(table.names):
        return None
    wholes = [name for name in free if _holds_whole_numbers(table, name)]
    if wholes and table.are_distinct(axes):
        warn(
            f"column {wholes[0]!r} is left out and each row counts once, but no two rows have "
            f"the same levels: if it holds the counts, use {argument('counts', wholes[0])}",
            DataWarning,
        )
    return None


def named_as_counts(names: Sequence[str]) -> str | None:
    """The first column whose header can only be that of counts."""
    return headed(names, COUNT_NAMES[:4])


def _holds_whole_numbers(table: Table, name: str) -> bool:
    if table.kind(name) != "number":
        return False
    try:
        return all(value is not None and float(value) % 1 == 0 for value in table.values(name))
    except (TypeError, ValueError, OverflowError):
        return False


def refuse_other_kinds(table: Table, name: str) -> None:
    """Refuse a named column of documents that holds neither texts nor tokens."""
    kind = table.kind(name)
    if kind not in ("name", "text", "tokens"):
        content = "numbers" if kind == "number" else "neither numbers nor text"
        raise InvalidTypeError(
            f"column {name!r} of {table.title} holds {content}, neither texts nor lists of tokens"
        )


def label_order(labels: Iterable[str]) -> list[str]:
    """Sort labels: by value if all are numbers, else as text."""
    texts = sorted(labels)
    numbers = [number_of(text) for text in texts]
    if any(number is None or isnan(number) for number in numbers):
        return texts
    return [texts[place] for place in sorted(range(len(texts)), key=lambda k: numbers[k] or 0)]


def number_of(text: str) -> float | None:
    """The number that a text represents, or None."""
    try:
        return float(text) if text.isascii() and "_" not in text else None
    except ValueError:
        return None


def kind_of_strings(values: Sequence[str]) -> Kind:
    """Kind of non-empty strings: numbers, names, or texts of several words."""
    if all(number_of(value) is not None and not _PADDED.match(value) for value in set(values)):
        return "number"
    shown = [" " in value.strip() for value in values[:_ROWS_LOOKED_AT]]
    return "text" if 2 * sum(shown) > len(shown) else "name"
