"""Roles of the columns of a table, and order and kind of labels: one rule for frames and files.

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

Layout = Literal["auto", "wide", "long"]
# Kinds: numbers, labels, texts of several words, lists of tokens, and others such as times.
Kind = Literal["number", "name", "text", "tokens", "other"]

_LAYOUTS = ("auto", "wide", "long")
# Headers of long tables, lower-case letters and digits only.
_DOCUMENTS = {
    *("document", "documentid", "doc", "docid", "user", "userid"),
    *("sample", "sampleid", "cell", "cellid", "barcode"),
}
_WORDS = {
    *("word", "wordid", "term", "termid", "token", "tokenid", "lemma"),
    *("feature", "featureid", "item", "itemid", "gene", "geneid"),
}
_COUNTS = ("count", "counts", "freq", "frequency", "n", "value", "values")
# Headers that can only be counts; other headers may be levels of a factor, too.
_SURE_COUNTS = _COUNTS[:4]
_TEXT = "text"
# Headers of names: unambiguous ones, and words that may be columns of counts as well.
_NAMES = re.compile(r"|ids?|unnamed: ?0|document|barcode|row ?names?|\w.*[_\W]ids?", re.IGNORECASE)
_CAMEL_ID = re.compile(r"\w*[a-z]I[dD]s?")
_NAMES_OR_WORDS = ("index", "name", "names", "sample", "cell", "doc", "gene", "key", "row")
# Mean number of words above which a column holds texts, not names such as "New York".
_WORDS_OF_NAMES = 3
_ROWS_LOOKED_AT = 100
# Ratio to all other counts above which the first column counts as numbers of documents.
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
    table. `metadata` are properties of the documents of a table of counts. `layout` is "auto",
    "wide" (a row per document) or "long" (a row per count).
    """

    text: str | None = None
    ids: str | None = None
    document: str | None = None
    word: str | None = None
    count: str | None = None
    exposure: str | None = None
    metadata: Sequence[str] = ()
    layout: Layout = "auto"

    def __post_init__(self) -> None:
        checks.choice("layout", self.layout, _LAYOUTS)

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
    """Roles of the columns of a table, as named, else by their headers and values.

    A missing column and an ambiguous table are refused.
    """
    for field in fields(NamedColumns)[:-2]:
        _check_column(table, field.name, getattr(named, field.name))
    for name in named.metadata:
        _check_column(table, "metadata", name)
    names = [name for name in table.names if name != named.exposure]
    if named.text is not None:
        return _texts_roles(table, named, names, named.text)
    rest = [name for name in names if name not in named.metadata and name != named.ids]
    is_long = named.layout == "long" or None not in (named.document, named.word)
    long = None if named.layout == "wide" else _long_columns(table, named, rest, is_long)
    if long is not None:
        return Roles("long", None, long, [name for name in names if name not in long])
    text = None if named.layout == "wide" else _text_column(table, rest)
    if text is not None:
        return _texts_roles(table, named, names, text)
    ids = named.ids or _ids_of_counts(table, rest)
    words = [name for name in rest if name != ids]
    if not words:
        raise InvalidArgumentError(
            f"{table.title} has no column of counts, but {_shown(names)}: name the column of texts "
            f"by {table.option('text')}, or the names of the documents by {table.option('ids')}"
        )
    if ids is not None and ids != named.ids and named.layout != "wide" and len(words) == 1:
        _refuse_one_word(table, ids, words[0])
    if table.row_names is None and named.layout != "wide":
        if ids is None:
            _warn_of_names(table, words)
        if named.ids is None and table.has_headers:
            _warn_of_triplets(table, rest)
    return Roles("wide", ids, words, list(named.metadata))


def _check_column(table: Table, option: str, name: str | None) -> None:
    if name is not None and name not in table.names:
        raise InvalidArgumentError(
            f"{table.option(option, name)}: {table.title} has no column {name!r}; it has "
            f"{_shown(table.names)}",
            argument=option,
            value=name,
        )


def _shown(names: Sequence[str]) -> str:
    more = f" and {len(names) - _N_SHOWN:,} more" if len(names) > _N_SHOWN else ""
    return ", ".join(map(repr, names[:_N_SHOWN])) + more


def _texts_roles(table: Table, named: NamedColumns, names: list[str], text: str) -> Roles:
    others = [name for name in names if name != text]
    ids = named.ids or next((name for name in others if _is_of_names(table, name)), None)
    kept = [name for name in names if name not in (ids, text) or name in named.metadata]
    return Roles("texts", ids, [text], kept)


def _long_columns(
    table: Table, named: NamedColumns, names: list[str], is_long: bool
) -> list[str] | None:
    """Columns of documents, words and counts; None if the table is not long."""
    document = named.document or _headed(names, _DOCUMENTS)
    word = named.word or _headed(names, _WORDS)
    count = named.count or _headed(names, _COUNTS)
    if None not in (document, word) and (is_long or count is not None):
        found = [name for name in (document, word, count) if name is not None]
        # A wide table may have words with these names; it has further columns of counts.
        if is_long or len(names) == len(found) or table.kind(found[1]) != "number":
            return found
    if is_long or named.count is not None:
        raise InvalidArgumentError(
            f"{table.title} has the columns {_shown(names)}; a long table has columns of documents "
            f"and of words: name them by {table.option('document')} and {table.option('word')}"
        )
    if len(names) != 3 or _plain(names[2]) not in _COUNTS or _TEXT in map(_plain, names):
        return None
    if all(table.kind(name) in ("name", "text") for name in names[:2]):
        return names
    return names if all(map(is_header_of_ids, names[:2])) else None


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _headed(names: Sequence[str], headers: Collection[str]) -> str | None:
    """The first column with one of these headers, in the order of the headers if they have one."""
    found = {_plain(name): name for name in reversed(names) if _plain(name) in headers}
    order = headers if isinstance(headers, tuple) else found
    return next((found[header] for header in order if header in found), None)


def _text_column(table: Table, names: list[str]) -> str | None:
    """The column of texts or of lists of tokens; None in a table of counts."""
    # Wide tables have by far the most columns; numeric columns are skipped.
    kinds = {name: table.kind(name) for name in names}
    tokens = [name for name, kind in kinds.items() if kind == "tokens"]
    if len(tokens) == 1:
        return tokens[0]
    headed = [name for name in names if _plain(name) == _TEXT and kinds[name] in ("name", "text")]
    if headed:
        return headed[0]
    texts = {name: _n_words(table, name) for name, kind in kinds.items() if kind == "text"}
    n_numbers = sum(kind == "number" for kind in kinds.values())
    if n_numbers > 1 and len(texts) == 1:
        # Rows of counts may have names of several words.
        texts = {name: n for name, n in texts.items() if n > _WORDS_OF_NAMES or name != names[0]}
    if len(texts) > 1:
        raise InvalidArgumentError(
            f"{table.title} has {len(texts)} columns that may hold the texts "
            f"({_shown(list(texts))}): name one by {table.option('text')}"
        )
    return next(iter(texts), None)


def _n_words(table: Table, name: str) -> float:
    """Mean number of words of the first values."""
    shown = [value for value in table.values(name) if value][:_ROWS_LOOKED_AT]
    return sum(len(value.split()) for value in shown) / max(len(shown), 1)


def _ids_of_counts(table: Table, names: list[str]) -> str | None:
    """The first column, if it holds names of documents."""
    if not names:
        return None
    first = names[0]
    if _is_of_names(table, first):
        return first
    if table.kind(first) not in ("name", "text"):
        return None
    if not any(isinstance(value, str) for value in table.values(first)):
        raise InvalidArgumentError(
            f"column {first!r} of {table.title} is categorical, and its levels are numbers: if "
            f"they name the documents, use {table.option('ids', first)}; if they are counts, make "
            "them integers"
        )
    return first


def is_header_of_ids(name: str) -> bool:
    """Whether a column with this header holds names of rows."""
    return bool(_NAMES.fullmatch(name) or _CAMEL_ID.fullmatch(name))


def _is_of_names(table: Table, name: str) -> bool:
    """Whether a column has a header of names; with a doubtful header, numbers must be distinct."""
    if is_header_of_ids(name):
        return True
    if name.lower() not in _NAMES_OR_WORDS:
        return False
    if table.kind(name) != "number":
        return True
    values = [float(value or 0) for value in table.values(name)]
    return len(values) > 1 and any(
        values == [float(first + row) for row in range(len(values))] for first in (0, 1)
    )


def _refuse_one_word(table: Table, first: str, word: str) -> None:
    """Refuse a column of labels and one of numbers: one-word texts, or counts of a word."""
    kinds = table.kind(first), table.kind(word)
    if kinds == ("name", "number") and not _is_of_names(table, first):
        raise InvalidArgumentError(
            f"{table.title} has the columns {first!r} and {word!r}: name the first by "
            f"{table.option('text', first)} if it holds the texts, or by "
            f"{table.option('ids', first)} if {word!r} counts a word"
        )


def _warn_of_names(table: Table, words: list[str]) -> None:
    """Warn if the first column of counts looks like numbers of documents."""
    if len(words) < 2 or table.n_rows < 2 or table.kind(words[0]) != "number":
        return
    if not table.are_distinct(words[:1]):
        return
    counts = table.counts(words)
    first, largest = counts[:, 0].toarray(), int(counts[:, 1:].max())
    is_far_larger = first.min() >= _FAR_LARGER * max(1, largest)
    if is_far_larger or words[0].lower() in _NAMES_OR_WORDS:
        doubt = " and far larger than the other counts" if is_far_larger else ""
        warn(
            f"column {words[0]!r} of {table.title} is read as counts of a word, but its values are "
            f"all different{doubt}: if they name the documents, use "
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
    """The column of counts of a table of factors; None if each row counts once.

    A warning is given if an unused integer column may hold the counts, because all rows have
    distinct levels.
    """
    if counts is not None:
        return counts
    free = [name for name in table.names if name not in (axes or ())]
    sure = named_as_counts(free)
    if sure is not None and len(table.names) > 1:
        return sure
    if not set(axes or ()) <= set(table.names):
        return None
    wholes = [name for name in free if _holds_whole_numbers(table, name)]
    perhaps = _headed(wholes, _COUNTS)
    others = [other for other in table.names if other != perhaps]
    if perhaps is not None and others and table.are_distinct(axes or others):
        return perhaps
    if axes is not None and wholes and table.n_rows > 1 and table.are_distinct(axes):
        warn(
            f"column {wholes[0]!r} is left out and each row counts once, but no two rows have "
            f"the same levels: if it holds the counts, use {argument('counts', wholes[0])}",
            DataWarning,
        )
    return None


def named_as_counts(names: Sequence[str]) -> str | None:
    """The first column whose header says that it holds counts, such as ``count`` or ``freq``."""
    return _headed(names, _SURE_COUNTS)


def _holds_whole_numbers(table: Table, name: str) -> bool:
    if table.kind(name) != "number":
        return False
    try:
        return all(value is not None and float(value) % 1 == 0 for value in table.values(name))
    except (TypeError, ValueError, OverflowError):
        return False


def refuse_other_kinds(table: Table, name: str) -> None:
    """Refuse a named column of documents that holds neither texts nor tokens."""
    if table.kind(name) not in ("name", "text", "tokens"):
        raise InvalidTypeError(
            f"column {name!r} of {table.title} holds {_CONTENT[table.kind(name)]}, neither texts "
            "nor lists of tokens"
        )


_CONTENT: dict[str, str] = {"number": "numbers", "other": "neither numbers nor text"}


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
