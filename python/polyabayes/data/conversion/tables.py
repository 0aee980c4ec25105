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
from polyabayes._support.output.tables import some
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
# Begins the third header of a survey export of Qualtrics.
_SECOND = '{"ImportId"'
# Ratio to all other counts above which the first column looks like numbers of documents.
_FAR_LARGER = 10
# Largest share of distinct values in a column of a long table.
_FEW_DISTINCT = 2 / 3
# Headers of names, which count no word; dates; and what is meant as a number.
_OF_NAMES = re.compile(r"(?i:.*[_ .-])?(?i:ids?)|.*[a-z]I[dD]s?")
_DATE = re.compile(r"\d+[-/.]\d+[-/.]\d+.*")
_LIKE_A_NUMBER = re.compile(r"\s*[+-]?\d[\d.,' ]*%?\s*")
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
        if isinstance(self.metadata, str):
            object.__setattr__(self, "metadata", [self.metadata])
        role_of: dict[str, str] = {}
        for field in fields(self)[:-2]:
            name = getattr(self, field.name)
            other = field.name if name is None else role_of.setdefault(str(name), field.name)
            if other != field.name:
                rule = f"and {argument(other, name)}: one column cannot be both; name another one"
                raise InvalidArgumentError(f"{argument(field.name, name)} {rule}")

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
    that the user called. `as_frame` is the code of a data frame with its content.
    """

    names: list[str]
    n_rows: int
    row_names: list[str] | None = None
    has_headers: bool = True
    title: str = "the table"
    taker: str = ""
    as_frame: str = "table"

    def options(self, *names: str, **values: Any) -> str:
        """Options of tables in a message, some with values; those that are None are left out."""
        given = [argument(name) for name in names]
        given += [argument(*named) for named in values.items() if named[1] is not None]
        told = ", ".join(given)
        return told + (f" of {self.taker}" if self.taker else "")

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
                    f"{table.options(**{field.name: name})}: {table.title} has no column {name!r}; "
                    f"it has {some(table.names, 8)}",
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
    is_wide = named.layout == "wide"
    if not is_wide and words and (words[0] in labels or _OF_NAMES.fullmatch(words[0])):
        # Names of several kinds may be numbers.
        labels = [name for name in words if name in labels or _OF_NAMES.fullmatch(name)]
    if labels or not words:
        raise InvalidArgumentError(
            f"{table.title} has the columns {some(table.names, 8)}; "
            f"{repr(labels[0]) if labels else 'none'} holds no counts. "
            f"{_remedy(table, names, labels or names, ids)}"
        )
    if table.row_names is None and not is_wide and table.n_rows > 1:
        others = [name for name in names if name not in named.metadata]
        _warn_of_names(table, words if ids is None else [], [] if named.ids else others)
    return Roles("wide", ids, words, list(named.metadata))


def _remedy(table: Table, names: list[str], labels: list[str], ids: str | None) -> str:
    """Options that read a table, by how it looks: they are for the caller, and never taken."""
    names = [name for name in names if name.lower() not in _ROW_NAMES] or names
    if not table.n_rows or names in ([], [ids]):
        return "Give a table with rows and columns"
    kinds = {name: table.kind(name) for name in names}
    labels = [name for name in names if name in labels or kinds[name] != "number"]
    numbers = [name for name in names if name not in labels and name != ids]
    whole = [name for name in numbers if _holds_whole_numbers(table, name)]
    frame = f"{table.as_frame}.set_index({labels})"
    is_file = table.as_frame != "table"
    if "read_csv" in table.as_frame and any(number_of(name) is not None for name in names):
        columns = table.options(columns=columns_of(len(names), len(labels)))
        return f"If its first line is no header, use {columns}"
    if numbers and not whole:
        call = "polyabayes.LatentDirichletAllocation.from_parameters(doc_topic_prior=1.0, "
        return f"Topics or signatures, with words in rows, are read by {call}topic_word={frame}.T)"
    word, count = headed(names, _WORD_NAMES), headed(names, COUNT_NAMES)
    if labels == [word] == names[:1]:
        call = table.options(transpose=True) if is_file else f"polyabayes.Corpus({frame}.T)"
        return f"If its rows are words, use {call}"
    found: list[str] = []
    document = next((name for name in (names[0], *labels) if name not in (word, count)), names[0])
    if len(names) > 1 and (word in labels or not table.are_distinct([document])):
        others = [name for name in names if name not in (document, count)]
        others = [x for x in others if not _DATE.fullmatch(str(table.values(x)[0]))] or others
        term = word or next((name for name in others if kinds[name] != "number"), others[0])
        after = [x for x in names[names.index(term) + 1 :] if kinds[x] == "number"]
        count = count or next((name for name in after[:1] if name in whole), None)
        named = table.options(document=document, word=term, count=count)
        found.append(f"with a row for each word of a document, use {named}")
    texts = [name for name in labels if kinds[name] in ("text", "tokens")]
    rows = [name for name in labels if table.are_distinct([name]) and ids is None]
    own = next((name for name in rows if name not in texts), rows[0] if rows else None)
    are_texts = not numbers and isinstance(table.values(labels[0])[0], str)
    if word not in labels and (texts or are_texts):
        text = max(texts or labels, key=lambda x: len("".join(map(str, table.values(x)[-2:]))))
        refuse_other_kinds(table, text)
        named = table.options(text=text, ids=None if own in texts or own == text else own)
        found.append(f"with a text in each row, use {named}")
    if len(whole) > 1 or not found:
        properties = [name for name in names if name not in (ids, own, *whole)] or None
        named = table.options(ids=own, metadata=properties)
        turned = table.options(transpose=True) if is_file else f"of its {frame}.T"
        if own is None and ids is None:
            named, turned = f"polyabayes.Corpus({frame})", f"of its {frame}.T"
        found.append(f"with counts in each row, use {named} (and {turned} if its rows are words)")
    told = "; ".join(found)
    return told[:1].upper() + told[1:]


def _are_labels(table: Table, name: str) -> bool:
    """Whether no value of a column is a number; one that should be is found when it is read."""
    if table.kind(name) not in ("name", "text", "tokens"):
        return False
    texts = (value for value in table.values(name) if isinstance(value, str))
    return not any(number_of(x) is not None or _LIKE_A_NUMBER.fullmatch(x) for x in texts)


def headed(names: Sequence[str], headers: Collection[str]) -> str | None:
    """The column with one of these headers, the first in their order; None if there is none."""
    found = {name.lower(): name for name in reversed(names)}
    return next((found[header] for header in headers if header in found), None)


def columns_of(n_columns: int, n_labels: int) -> list[str]:
    """Names for the columns of a table without a header, so many of which are no numbers."""
    if n_columns == 3 and n_labels != 1:
        return ["document", "word", "count"]
    return ["id"] * (n_labels > 0) + [f"word{k}" for k in range(n_labels > 0, n_columns)]


def named_rows(names: Sequence[str]) -> str | None:
    """The first column, if its header is that of names of documents, words or rows, or of texts."""
    return headed(names[:1], (*DOCUMENT_NAMES, *_WORD_NAMES, *_ROW_NAMES, *_TEXT_NAMES))


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
            f"{table.title} has the columns {some(names, 8)}; a long table has columns of "
            f"documents and of words: name them by {table.options('document', 'word')}"
        )
    # A wide table may have words with these names; it has further columns of counts.
    if None in (document, word) or (len(names) > len(found) and table.kind(found[1]) == "number"):
        return []
    if count is None:
        raise InvalidArgumentError(
            f"{table.title} has the columns {some(names, 8)}, and no counts: if each row is one "
            f"token, say so by {table.options(document=document, word=word)}; else name the counts "
            f"by {table.options('count')}"
        )
    return found


def _text_column(table: Table, names: list[str]) -> str | None:
    """The column of texts or of lists of tokens; None in a table of counts."""
    headers = [name for name in names if name.lower() in _TEXT_NAMES]
    found = [name for name in headers if table.kind(name) != "number"]
    if len(found) > 1:
        raise InvalidArgumentError(
            f"{table.title} has the columns {some(found, 8)}: name the texts by "
            f"{table.options(text=found[0])}"
        )
    return found[0] if found else None


def _warn_of_names(table: Table, words: list[str], names: list[str]) -> None:
    """Warn of columns of a wide table that look like names, though they are read as counts.

    The first of the words has different values, far larger than all others; or the names are those
    of triplets (document, word, count): pairs that differ, each part in several rows.
    """
    if len(words) > 1 and table.are_distinct(words[:1]):
        counts = table.counts(words)
        if counts[:, 0].min() >= _FAR_LARGER * max(1, int(counts[:, 1:].max())):
            warn(
                f"column {words[0]!r} of {table.title} is read as counts of a word, but its values "
                "are all different and far larger than the other counts: if they name the "
                f"documents, use {table.options(ids=words[0])}; if not, use "
                f"{table.options(layout='wide')}",
                DataWarning,
            )
    if table.has_headers and len(names) == 3 <= table.n_rows:
        most = _FEW_DISTINCT * table.n_rows
        is_few = [len(set(table.values(name))) <= most for name in names[:2]]
        are_counts = _holds_whole_numbers(table, names[2]) and table.counts(names[2:]).min()
        if all(is_few) and table.are_distinct(names[:2]) and are_counts:
            options = table.options(**dict(zip(("document", "word", "count"), names, strict=True)))
            warn(
                f"{some(names)} of {table.title} are read as rows of counts, but look like a "
                f"document, a word and a count: if they are, use {options}; if not, "
                f"{table.options(layout='wide')}",
                DataWarning,
            )


def count_column(table: Table, axes: Sequence[str] | None, counts: str | None) -> str | None:
    """The column of counts of a table of factors, by its name; None if each row counts once.

    A warning is given if an unused integer column may hold the counts, because all rows have
    distinct levels. R's and pandas' own names of rows are refused as an axis.
    """
    if axes is None and table.names[:1] and table.names[0].lower() in _ROW_NAMES:
        factors = [name for name in table.names[1:] if name.lower() not in COUNT_NAMES]
        raise InvalidArgumentError(
            f"the first column, {table.names[0]!r}, has no name, and may number the rows: name "
            f"the others by {argument('axes', factors)}"
        )
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
    return headed(names, COUNT_NAMES[:-1])


def _holds_whole_numbers(table: Table, name: str) -> bool:
    if table.kind(name) != "number":
        return False
    try:
        return all(value is not None and float(value) % 1 == 0 for value in table.values(name))
    except (TypeError, ValueError, OverflowError):
        return False


def refuse_other_kinds(table: Table, name: str) -> None:
    """Refuse a named column of documents that holds neither texts nor tokens."""
    kind, values = table.kind(name), table.values(name)
    if any(isinstance(value, bytes) for value in values):
        raise InvalidTypeError(
            f"column {name!r} of {table.title} holds bytes, not texts: decode it, as by "
            f"{table.as_frame}[{name!r}].str.decode('utf-8')"
        )
    if kind not in ("name", "text", "tokens"):
        content = "numbers" if kind == "number" else "neither numbers nor text"
        raise InvalidTypeError(
            f"column {name!r} of {table.title} holds {content}, neither texts nor lists of tokens"
        )
    if any(isinstance(value, str) and value.startswith(("['", '["')) for value in values):
        raise InvalidTypeError(
            f"column {name!r} of {table.title} holds lists written as texts: make them lists, as "
            f"by {table.as_frame}[{name!r}].map(ast.literal_eval)"
        )
    header = [row for row, x in enumerate(values) if isinstance(x, str) and x.startswith(_SECOND)]
    if header:
        raise InvalidArgumentError(
            f"{table.place(header[-1])} is a further header of a survey: use polyabayes.Corpus."
            f"from_table({table.as_frame}.iloc[{header[-1] + 1}:], text={name!r})"
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
