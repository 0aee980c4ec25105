"""What the columns of a table hold, by their headers and values."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Any

from polyabayes.data.conversion.numbers import is_dash, is_like_a_number, number_of, read_number
from polyabayes.data.conversion.table import PLAIN_KINDS, Kind, Table
from polyabayes.data.names import NAMES
from polyabayes.exceptions import InvalidArgumentError, InvalidTypeError

_ROWS_LOOKED_AT = 100
# Begins the third header of a survey export of Qualtrics.
SECOND_HEADER = '{"ImportId"'
# Headers of names, which count no word; kinds of headers, without blanks and signs; and dates.
OF_NAMES = re.compile(r"(?i:.*[_ .-])?(?i:ids?)|.*[a-z]I[dD]s?|(?i:geneid|otuid|entrezid)")
_HEADERS = {
    kind: re.compile(f"({'|'.join(NAMES[kind])})(id|no|nr|num|number|code|barcode|name)?")
    for kind in ("times", "units", "items")
}
DATE = re.compile(r"\d+[-/.]\d+[-/.]\d+.*|\d+:\d+.*")
# Leading zeros occur only in names.
_PADDED = re.compile(r"[+-]?0[0-9]")


def headed(names: Sequence[str], headers: Collection[str]) -> str | None:
    """The column with one of these headers, the first in their order; None if there is none."""
    found = {name.lower(): name for name in reversed(names)}
    return next((found[header] for header in headers if header in found), None)


def named_as_counts(names: Sequence[str]) -> str | None:
    """The first column whose header can only be that of counts."""
    return headed(names, NAMES["count"][:-1])


def is_headed(name: str, kind: str) -> bool:
    """Whether the header is one of a kind: times, units or items."""
    return bool(_HEADERS[kind].fullmatch(_plain(name)))


def counts_nothing(name: str) -> bool:
    """Whether the header is that of names or properties, unless it is a word."""
    is_property = name.lower() in NAMES["row"] or _plain(name) in NAMES["no counts"]
    return is_property or bool(OF_NAMES.fullmatch(name))


def _plain(header: str) -> str:
    return "".join(filter(str.isalnum, header.lower()))


def names_words(table: Table, name: str) -> bool:
    """Whether a column is headed as words are, or has reads of no gene."""
    held = {x.lower() for x in table.values(name) if isinstance(x, str)}
    return _plain(name) in NAMES["words in rows"] or not held.isdisjoint(NAMES["no word"])


def are_labels(table: Table, name: str) -> bool:
    """Whether no value of a column is a number; one that should be is found when it is read."""
    if table.kind(name) not in ("name", "text", "tokens"):
        return bool(words_of(table, name))
    texts = (value for value in table.values(name) if isinstance(value, str))
    return not any(map(is_like_a_number, texts))


def words_of(table: Table, name: str) -> Any:
    """The counts by word of the first row of a column; None in another column."""
    first = next(iter(table.values(name)), None)
    are_counts = isinstance(first, dict) and all(isinstance(x, int) for x in first.values())
    return first if are_counts else None


def marks_of_presence(table: Table, names: Sequence[str]) -> dict[str, set[str]]:
    """The marks of what is there in each column of nothing but such marks."""
    marks: dict[str, set[str]] = {}
    for name in (name for name in names if table.kind(name) in PLAIN_KINDS):
        plain = {x: str(x).strip().lower() for x in table.values(name) if x is not None}
        if {*plain.values()} <= {*NAMES["present"], *NAMES["absent"]}:
            marks[name] = {x for x in plain if plain[x] in NAMES["present"]}
    return marks


def is_dated(table: Table, name: str) -> bool:
    """Whether the first value of a column is a date or a time."""
    return bool(DATE.fullmatch(str(table.values(name)[0])))


def numbers_of(table: Table, name: str) -> list[float]:
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


def holds_whole_numbers(table: Table, name: str) -> bool:
    """Whether a column holds whole numbers, and nothing else that is not missing."""
    found = numbers_of(table, name)
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
