"""Roles of the columns of a table, by their documented names or as the caller names them.

One rule for frames and files.

A table holds documents as texts or lists of tokens (a row per document), in long form (a row per
document and word) or in wide form (a row per document and a column per word).
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from polyabayes._support import checks
from polyabayes._support.output.tables import some
from polyabayes._support.warnings import warn
from polyabayes.data.conversion.numbers import (
    is_dash,
    is_like_a_number,
    number_of,
    options_of_numbers,
    read_number,
)
from polyabayes.data.counts import CountMatrix
from polyabayes.data.names import NAMES
from polyabayes.exceptions import DataWarning, InvalidArgumentError, InvalidTypeError, argument

if TYPE_CHECKING:
    import pandas as pd

# Kinds: numbers, labels, texts of several words, lists of tokens, and others such as times.
Kind = Literal["number", "name", "text", "tokens", "other"]

_ROWS_LOOKED_AT = 100
# Begins the third header of a survey export of Qualtrics.
SECOND_HEADER = '{"ImportId"'
_NOT_GIVEN: tuple[Any, ...] = (None, (), [], "auto")
_PLAIN = ("number", "name", "text")
# Ratio to all other counts above which the first column looks like numbers of documents.
_FAR_LARGER = 10
# Largest number of levels of a column of whole numbers that is taken as an axis without asking.
_FEW_LEVELS = 2
# Largest share of distinct values in a column of a long table.
_FEW_DISTINCT = 2 / 3
# Headers of names, which count no word; kinds of headers, without blanks and signs; and dates.
_OF_NAMES = re.compile(r"(?i:.*[_ .-])?(?i:ids?)|.*[a-z]I[dD]s?|(?i:geneid|otuid|entrezid)")
_HEADERS = {
    kind: re.compile(f"({'|'.join(NAMES[kind])})(id|no|nr|num|number|code|barcode|name)?")
    for kind in ("times", "units", "items")
}
_DATE = re.compile(r"\d+[-/.]\d+[-/.]\d+.*|\d+:\d+.*")
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
    that the user called; `code` is that of a data frame with its content, and `maker` takes one,
    with the options `given`.
    With `is_turned`, its rows are words. `sep` divides the fields of a file.
    """

    names: list[str]
    n_rows: int
    row_names: list[str] | None = None
    has_headers: bool = True
    title: str = "the table"
    taker: str = ""
    code: str = "table"
    maker: str = "Corpus.from_table"
    sep: str = ""
    is_turned: bool = False
    given: Mapping[str, Any] = {}

    def options(self, *names: str, **values: Any) -> str:
        """Options of tables in a message, some with values; those that are None are left out.

        If the options of numbers are needed, too, a call with all of them.
        """
        if values and self.written:
            return self.call(**values)
        given = [*((name, None) for name in names), *values.items()]
        told = [argument(*pair) for pair in given if pair[1] is not None or pair[0] in names]
        return ", ".join(told) + (f" of {self.taker}" if self.taker else "")

    @property
    def as_frame(self) -> str:
        """Code of a data frame with the content of the table, its numbers read as such."""
        told = "".join(f", {name}={value!r}" for name, value in self.written.items())
        index = ("index=False", "") if self.row_names is None else ("", ", index_col=0")
        text = f"io.StringIO({self.code}.to_csv({index[0]})){index[1]}"
        return f"pandas.read_csv({text}{told})" if told else self.code

    @cached_property
    def written(self) -> dict[str, str]:
        """Options of pandas that read the numbers of the table as they are written."""
        texts: set[str] = set()
        for name in self.names:
            held: Any = set(self.values(name)) - {None} if self.kind(name) in _PLAIN else {0}
            if all(isinstance(x, str) and (is_dash(x) or is_like_a_number(x)) for x in held):
                texts |= held
        return options_of_numbers(texts, self.sep)

    def call(self, change: str = "", **options: Any) -> str:
        """Code that reads the table, changed, with the options that the caller gave, and others."""
        told = {name: x for name, x in {**self.given, **options}.items() if x not in _NOT_GIVEN}
        code = self.as_frame + change
        if self.is_turned:
            others = f".drop(columns={list(told['metadata'])})" if "metadata" in told else ""
            return f"polyabayes.Corpus({code}{others}.set_index({told.get('ids')!r}).T)"
        named = [f"{name}={value!r}" for name, value in told.items()]
        return f"polyabayes.{self.maker}({', '.join([code, *named])})"

    def remedy(self, name: str, text: str | None) -> str:
        """What reads a table with this text in the place of a count, to end a message."""
        number = read_number((text or "-").removesuffix("%"), self.written)
        kept, told = f"`{name}` >= 0", ""
        if text in NAMES["missing"] or (number is not None and number != number):
            filled = {name: 0} if "axes" in self.given else 0
            told = f"where nothing was counted, {self.call(f'.fillna({filled})')}"
            numbers = [self.values(x) for x in self.names if self.kind(x) == "number"]
            # Notes below a table count nothing at all.
            rows = zip(*numbers, strict=True)
            if len(numbers) > 1 and all({*row} == {None} or None not in row for row in rows):
                told = f"without rows that count nothing, {self.call(f'.dropna(subset={[name]})')}"
        elif number is not None and number < 0:
            told = f"without such rows, {self.call(f'.query({kept!r})')}"
        elif number is not None and (number % 1 or str(text).endswith("%")):
            told = "weights and shares have no likelihood: bring the counts, or name a property"
            told += f" by {argument('metadata', [name])}"
        elif (self.written and number is not None) or str(text).lower() in NAMES["truth"]:
            told = f"of numbers that are written so, {self.call()}"
            if self.written.get("thousands") == "." and "decimal" not in self.written:
                told += "; of floats, " + self.call().replace(", thousands='.'", "")
        return f"; {told}" * bool(told)

    def complete(self, name: str) -> list[Any]:
        """The values of a column, none of which is missing or blank."""
        values = self.values(name)
        for row, value in enumerate(values):
            if value is None or not str(value).strip():
                told = f"leave such rows out, {self.call(f'.dropna(subset={[name]})')}"
                raise InvalidArgumentError(f"{self.place(row)}: no {name} is given: {told}")
        return values

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
        rows = zip(*(self.values(name) for name in names), strict=True)
        return len(set(map(str, rows))) == self.n_rows


def roles_of(table: Table, named: NamedColumns) -> Roles:
    """Roles of the columns of a table, as named, else by their documented names.

    Any other column must be a number, which counts a word; else the table is refused.
    """
    table.given = {field.name: getattr(named, field.name) for field in fields(NamedColumns)}
    for field in fields(NamedColumns)[:-1]:
        given = getattr(named, field.name)
        for name in given if field.name == "metadata" else [given]:
            if name is not None and name not in table.names:
                told = f"{table.options(**{field.name: name})}: {table.title} has no column "
                told += f"{name!r}; it has {some(table.names, 8)}"
                raise InvalidArgumentError(told, argument=field.name, value=name)
    names = [name for name in table.names if name != named.exposure]
    if named.layout == "wide":
        return _wide_roles(table, named, names, named.ids)
    others = [name for name in names if name != named.text]
    ids, own = named.ids or headed(others, NAMES["document"]), None
    if names[:1] and names[0].lower() in NAMES["row"] and names[0] != named.ids:
        # R's and pandas' own names of rows, unless there are names of documents.
        is_alone, own = ids is None and named.document is None, names[0]
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
    return _wide_roles(table, named, names, named.ids or (ids if [ids] == names[:1] else own))


def _wide_roles(table: Table, named: NamedColumns, names: list[str], ids: str | None) -> Roles:
    words = [name for name in names if name != ids and name not in named.metadata]
    labels = [name for name in words if _are_labels(table, name)]
    is_wide = named.layout == "wide"
    if not is_wide and words and (words[0] in labels or _OF_NAMES.fullmatch(words[0])):
        # Names of several kinds may be numbers.
        labels = [name for name in words if name in labels or _OF_NAMES.fullmatch(name)]
    if labels or not words:
        told = f"{table.title} has the columns {some(table.names, 8)}; "
        told += f"{repr(labels[0]) if labels else 'none'} holds no counts. "
        raise InvalidArgumentError(f"{told}{_remedy(table, names, labels or names, ids)}")
    if not is_wide and table.n_rows > 1:
        _warn_of_names(table, words, may_be_ids=table.row_names is None and ids is None)
        if table.row_names is None and named.ids is None:
            _warn_of_triplets(table, [name for name in names if name not in named.metadata])
    return Roles("wide", ids, words, list(named.metadata))


def _remedy(table: Table, names: list[str], labels: list[str], ids: str | None) -> str:
    """Options that read a table, by how it looks: they are for the caller, and never taken."""
    names = [name for name in names if name.lower() not in NAMES["row"]] or names
    if not table.n_rows or names in ([], [ids]):
        return "Give a table with rows and columns"
    kinds = {name: table.kind(name) for name in names}
    labels = [name for name in names if name in labels or _are_labels(table, name)]
    numbers = [name for name in names if name not in labels and name != ids]
    others = [x for x in names if (x in labels or _counts_nothing(x)) and x != ids]
    whole = [x for x in numbers if x not in others and _holds_whole_numbers(table, x)]
    frame = f"{table.as_frame}.set_index({labels})"
    is_file = table.as_frame.startswith("pandas.") and "io.StringIO" not in table.as_frame
    are_data = any(number_of(name) is not None or _DATE.fullmatch(name) for name in names)
    if is_file and are_data and named_rows(names) is None:
        told = table.options(columns=columns_of(len(table.names), len(labels)))
        turned = f" (and {table.options(transpose=True)} if its rows are words)"
        turned = f", {table.options(transpose=True)}" if _names_words(table, names[0]) else turned
        return f"If its first line is no header, use {told}{turned * (len(labels) == 1)}"
    if of_words := [name for name in names if _words_of(table, name)]:
        index = "" if ids is None else f", {table.as_frame}[{ids!r}]"
        code = f"pandas.DataFrame([*{table.as_frame}[{of_words[0]!r}]]{index}).fillna(0)"
        return f"With a count by word in each row, use polyabayes.Corpus({code})"
    marks = _marks_of_presence(table, [name for name in labels if name != ids])
    named = [x for x in names if x == ids or (x in labels and x not in marks)]
    if any(marks.values()) and not whole and len(named) < 2:
        code = table.as_frame + (f".set_index({named[0]!r})" if named else "")
        code += f"{list(marks)}".join("[]") * bool(numbers)
        code += f".isin({sorted(set().union(*marks.values()))})"
        code += ".T" * _names_words(table, names[0])
        return f"With marks of what is there, use polyabayes.Corpus({code})"
    if numbers and max((x for name in numbers for x in _numbers(table, name)), default=2) < 1:
        call = "polyabayes.LatentDirichletAllocation.from_parameters(doc_topic_prior=1.0, "
        return f"Topics or signatures, with words in rows, are read by {call}topic_word={frame}.T)"
    word, count = headed(names, NAMES["word"]), headed(names, NAMES["count"] + NAMES["may count"])
    left = {word, count, *others} - {*labels}
    units = [name for name in names if _is_headed(name, "units")]
    document = next((x for x in (*units, names[0], *labels) if x not in left), names[0])
    is_long = len(names) > 1 and (word in labels or not table.are_distinct([document]))
    texts = [x for x in labels if kinds[x] in ("text", "tokens") and not _is_dated(table, x)]
    if len(whole) > 1 or is_long:  # Names of two words are no texts.
        texts = [x for x in texts if len(str(table.values(x)).split()) > 2.5 * table.n_rows]
    is_turned = names[0] in labels and whole and None in (word, count)
    is_turned = is_turned and _names_words(table, names[0])
    rows = [name for name in labels if table.are_distinct([name]) and ids is None]
    plain = [name for name in rows if name not in texts and not _is_dated(table, name)]
    own = next(iter(plain or rows), None)
    own = names[0] if is_turned or (not rows and labels == names[:1]) else own
    given = {"ids": own, "metadata": [name for name in others if name != own] or None}
    wide, turned = table.options(**given), table.options(**given, transpose=True)
    by = own or ids
    left_out = [name for name in others if name not in labels]
    code = f"polyabayes.Corpus({table.as_frame}{f'.drop(columns={left_out})' * bool(left_out)}"
    if by is None:
        wide = f"{code}.set_index({labels}))"
    if not is_file or table.written or by is None or not table.are_distinct([by]):
        turned = f"{code}.set_index({labels}).T)"
    if is_turned:
        return f"If its rows are words, use {turned}"
    found: list[str] = []
    if is_long:
        terms = [name for name in names if name not in (document, count)]
        terms = [x for x in terms if not _is_dated(table, x)] or terms
        items = [x for x in terms if _is_headed(x, "items")]
        items += [x for x in terms if kinds[x] != "number"]
        term = word or (items or terms)[0]
        told = table.options(document=document, word=term, count=count)
        if count is None:
            after = [table.options(count=x) for x in names[names.index(term) + 1 :] if x in whole]
            told += f" (and {after[0]} if that counts)" if after else " (each row counts once)"
        found.append(f"with a row for each word of a document, use {told}")
    are_texts = not (numbers or found) and isinstance(table.values(labels[0])[0], str)
    if word not in labels and (texts or are_texts):
        kept = [x for x in texts or labels if not (_OF_NAMES.fullmatch(x) or _is_dated(table, x))]
        text = max(kept or labels, key=lambda x: len("".join(map(str, table.values(x)[-2:]))))
        refuse_other_kinds(table, text)
        told = table.options(text=text, ids=None if own in texts or own == text else own)
        found.append(f"with a text in each row, use {told}")
    if (len(whole) > 1 and not (found and count)) or not found:
        found.append(f"with counts in each row, use {wide}; if its rows are words, {turned}")
    told = "; ".join(found)
    return told[:1].upper() + told[1:]


def _plain(header: str) -> str:
    return "".join(filter(str.isalnum, header.lower()))


def _names_words(table: Table, name: str) -> bool:
    """Whether a column is headed as words are, or has reads of no gene."""
    held = {x.lower() for x in table.values(name) if isinstance(x, str)}
    return _plain(name) in NAMES["words in rows"] or not held.isdisjoint(NAMES["no word"])


def _is_headed(name: str, kind: str) -> bool:
    return bool(_HEADERS[kind].fullmatch(_plain(name)))


def _counts_nothing(name: str) -> bool:
    """Whether the header is that of names or properties, unless it is a word."""
    is_property = name.lower() in NAMES["row"] or _plain(name) in NAMES["no counts"]
    return is_property or bool(_OF_NAMES.fullmatch(name))


def _marks_of_presence(table: Table, names: Sequence[str]) -> dict[str, set[str]]:
    """The marks of what is there in each column of nothing but such marks."""
    marks: dict[str, set[str]] = {}
    for name in (name for name in names if table.kind(name) in _PLAIN):
        plain = {x: str(x).strip().lower() for x in table.values(name) if x is not None}
        if {*plain.values()} <= {*NAMES["present"], *NAMES["absent"]}:
            marks[name] = {x for x in plain if plain[x] in NAMES["present"]}
    return marks


def _is_dated(table: Table, name: str) -> bool:
    return bool(_DATE.fullmatch(str(table.values(name)[0])))


def _are_labels(table: Table, name: str) -> bool:
    """Whether no value of a column is a number; one that should be is found when it is read."""
    if table.kind(name) not in ("name", "text", "tokens"):
        return bool(_words_of(table, name))
    texts = (value for value in table.values(name) if isinstance(value, str))
    return not any(map(is_like_a_number, texts))


def _words_of(table: Table, name: str) -> Any:
    """The counts by word of the first row of a column; None in another column."""
    first = next(iter(table.values(name)), None)
    are_counts = isinstance(first, dict) and all(isinstance(x, int) for x in first.values())
    return first if are_counts else None


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
    return headed(names[:1], (*NAMES["document"], *NAMES["word"], *NAMES["row"], *NAMES["text"]))


def _long_columns(table: Table, named: NamedColumns, names: list[str]) -> list[str]:
    """Columns of documents, words and, if any, counts; empty if the table is not long."""
    document = named.document or headed(names, NAMES["document"])
    word = named.word or headed(names, NAMES["word"])
    count = named.count or headed(names, NAMES["count"])
    found = [name for name in (document, word, count) if name is not None]
    if None not in (named.document, named.word) or (named.count and None not in (document, word)):
        return found
    if (named.document, named.word, named.count) != (None, None, None):
        told = f"{table.title} has the columns {some(names, 8)}; a long table has columns "
        told += f"of documents and of words: name them by {table.options('document', 'word')}"
        raise InvalidArgumentError(told)
    # A wide table may have words with these names; it has further columns of counts.
    if None in (document, word) or (len(names) > len(found) and table.kind(found[1]) == "number"):
        return []
    if count is None:
        told = f"{table.title} has the columns {some(names, 8)}, and no counts: if each row "
        told += f"is one token, say so by {table.options(document=document, word=word)}; "
        raise InvalidArgumentError(f"{told}else name the counts by {table.options('count')}")
    return found


def _text_column(table: Table, names: list[str]) -> str | None:
    """The column of texts or of lists of tokens; None in a table of counts."""
    headers = [name for name in names if name.lower() in NAMES["text"]]
    found = [name for name in headers if table.kind(name) != "number"]
    if len(found) > 1:
        told = f"name the texts by {table.options(text=found[0])}"
        raise InvalidArgumentError(f"{table.title} has the columns {some(found, 8)}: {told}")
    return found[0] if found else None


def _warn_of_names(table: Table, words: list[str], *, may_be_ids: bool) -> None:
    """Warn of columns of a wide table that look like names or properties, but are read as counts.

    Their headers say so, and their values all differ or none is 0; or those of the first column
    differ and are far larger than all others.
    """
    first = words[:1] if may_be_ids and len(words) > 1 else []
    units = [x for x in first if _is_headed(x, "units") or _is_headed(x, "times")]
    told = [name for name in words if _counts_nothing(name) and name not in units]
    told = [x for x in told if table.n_rows > _FEW_LEVELS or x.lower() in NAMES["row"]]
    columns = {name: table.counts([name]).toarray().ravel() for name in units + told}
    odd = [x for x, held in columns.items() if held.all() or len({*held}) == len(held)]
    if first and first[0] not in odd and table.are_distinct(first):
        counts = table.counts(words)
        is_far = counts[:, 0].min() >= _FAR_LARGER * max(1, int(counts[:, 1:].max()))
        odd = first * bool(is_far) + odd
    if odd:
        ids = odd[0] if odd[:1] == first and (units or not _counts_nothing(odd[0])) else None
        options = table.options(ids=ids, metadata=[name for name in odd if name != ids] or None)
        told_of = f"are read as counts of words, but look like names or properties: {some(odd)}"
        told_of += f"; if they are, use {options}; if not, {table.options(layout='wide')}"
        warn(f"columns of {table.title} {told_of}", DataWarning)


def _warn_of_triplets(table: Table, names: Sequence[str]) -> None:
    """Warn of columns read as counts that look like triplets of document, word and count.

    Their pairs differ, each part in several rows.
    """
    if table.has_headers and len(names) == 3 <= table.n_rows:
        most = _FEW_DISTINCT * table.n_rows
        is_few = [len(set(table.values(name))) <= most for name in names[:2]]
        are_counts = _holds_whole_numbers(table, names[2]) and table.counts(names[2:]).min()
        if all(is_few) and table.are_distinct(names[:2]) and are_counts:
            options = table.options(**dict(zip(("document", "word", "count"), names, strict=True)))
            told = f"{some(names)} of {table.title} are read as rows of counts, "
            told += "but look like a document, a word and a count: if they are, use "
            warn(f"{told}{options}; if not, {table.options(layout='wide')}", DataWarning)


def count_column(table: Table, axes: Sequence[str] | None, counts: str | None) -> str | None:
    """The column of counts of a table of factors, by its name; None if each row counts once.

    A warning is given if an unused integer column may hold the counts, because all rows have
    distinct levels; without axes, such a column of many values beside labels is refused. So are R's
    and pandas' own names of rows.
    """
    if axes is None and table.names[:1] and table.names[0].lower() in NAMES["row"]:
        factors = [name for name in table.names[1:] if name.lower() not in NAMES["count"]]
        code = f"{table.as_frame}.set_index({table.names[0] or 'Unnamed: 0'!r})"
        code = f", or, of a table of counts, use polyabayes.CountTensor.from_dense({code}, "
        code = f"{code}['row', 'column'])" * (not _numbers(table, table.names[0]))
        told = f"{argument('axes', factors)}{code}"
        told = f"has no name, and may number the rows: name the others by {told}"
        raise InvalidArgumentError(f"the first column, {table.names[0]!r}, {told}")
    if counts is not None:
        return counts
    free = [name for name in table.names if name not in (axes or ())]
    found = headed(free, NAMES["count"])
    if found is not None and len(table.names) > 1 and not _are_labels(table, found):
        return found
    if table.n_rows < 2 or not set(axes or ()) <= set(table.names):
        return None
    wholes = [name for name in free if _holds_whole_numbers(table, name)]
    others = axes or [name for name in table.names if name not in wholes[-1:]]
    if not wholes or not table.are_distinct(others):
        return None
    are_labels = [_are_labels(table, name) for name in others]
    told = "no two rows have the same levels: if it holds the counts, use "
    if axes is not None:
        told = f"is left out and each row counts once, but {told}"
        warn(f"column {wholes[0]!r} {told}{argument('counts', wholes[0])}", DataWarning)
    elif any(are_labels) and len(set(_numbers(table, wholes[-1]))) > _FEW_LEVELS:
        told += f"{argument('counts', wholes[-1])}; if not, {argument('axes', table.names)}"
        raise InvalidArgumentError(f"column {wholes[-1]!r} may hold counts, as {told}")
    return None


def named_as_counts(names: Sequence[str]) -> str | None:
    """The first column whose header can only be that of counts."""
    return headed(names, NAMES["count"][:-1])


def _numbers(table: Table, name: str) -> list[float]:
    """The numbers of a column, without missing ones; empty if it holds others, or categories."""
    held = [x for x in table.values(name) if x is not None and not is_dash(str(x))]
    if table.kind(name) != "number" and not all(isinstance(x, str) for x in held):
        return []
    try:
        found = [read_number(x, table.written) if isinstance(x, str) else float(x) for x in held]
    except (TypeError, ValueError, OverflowError):
        return []
    are_names = any(isinstance(x, str) and _PADDED.match(x) for x in held)
    return [] if are_names or None in found else found  # type: ignore[return-value]


def _holds_whole_numbers(table: Table, name: str) -> bool:
    found = _numbers(table, name)
    return bool(found) and all(number % 1 == 0 for number in found)


def refuse_other_kinds(table: Table, name: str) -> None:
    """Refuse a named column of documents that holds neither texts nor tokens."""
    kind, values = table.kind(name), table.values(name)
    if any(isinstance(value, bytes) for value in values):
        told = f"decode it, as by {table.as_frame}[{name!r}].str.decode('utf-8')"
        raise InvalidTypeError(f"column {name!r} of {table.title} holds bytes, not texts: {told}")
    if kind not in ("name", "text", "tokens"):
        content = "numbers" if kind == "number" else "neither numbers nor text"
        told = "neither texts nor lists of tokens"
        raise InvalidTypeError(f"column {name!r} of {table.title} holds {content}, {told}")
    if any(isinstance(value, str) and value.startswith(("['", '["')) for value in values):
        told = f"column {name!r} of {table.title} holds lists written as texts: make them lists, "
        raise InvalidTypeError(f"{told}as by {table.as_frame}[{name!r}].map(ast.literal_eval)")
    header = [row for row, value in enumerate(values) if str(value).startswith(SECOND_HEADER)]
    if header:
        told = f"{table.place(header[-1])} is a further header of a survey: "
        told += f"use polyabayes.Corpus.from_table({table.as_frame}.iloc[{header[-1] + 1}:], "
        raise InvalidArgumentError(f"{told}text={name!r})")


def kind_of_strings(values: Sequence[str]) -> Kind:
    """Kind of non-empty strings: numbers, names, or texts of several words."""
    if all(number_of(value) is not None and not _PADDED.match(value) for value in set(values)):
        return "number"
    shown = [" " in value.strip() for value in values[:_ROWS_LOOKED_AT]]
    return "text" if 2 * sum(shown) > len(shown) else "name"
