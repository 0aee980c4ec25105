"""Names that have a meaning in tables, by kind: headers of columns, and marks of missing values.

The lists are in ``names.txt``: a kind, a tab and its names, in the order in which they are taken.
Headers are in lower case. Kinds of patterns are joined again; those of labels that are no answers
match them in lower case, without blanks and signs. Messages, most of which offer a call, are in
``calls.txt``: a name, a tab and the text, with the places that the caller fills.
"""

import re
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from polyabayes._support.warnings import warn as warn_caller
from polyabayes.exceptions import DataWarning, InvalidArgumentError

_TEXTS = (Path(__file__).with_name(f"{x}.txt").read_text("utf-8") for x in ("names", "calls"))
_NAMES, CALLS = (dict(line.split("\t") for line in text.splitlines()) for text in _TEXTS)
NAMES = {kind: tuple(names.split("|")) for kind, names in _NAMES.items()}
# Headers of names and of measures, which count no word, words that are no genes in lower case, and
# kinds of numbers before or behind the name of a sample; headers, without blanks and signs.
_PATTERNS = (re.compile("|".join(NAMES[x])) for x in ("of names", "measured", "no word", "kinds"))
NAMED, _MEASURED, NO_WORD, OF_KINDS = _PATTERNS
_END = "|".join(NAMES["end"])
_HEADERS = {x: re.compile(f"({'|'.join(NAMES[x])})({_END})?s?") for x in NAMES["headers"]}


def say(name: str, /, *parts: Any, **named: Any) -> str:
    """A message, its places filled."""
    return CALLS[name].format(*parts, **named)


def warn(message: str) -> None:
    """Warn of data at the line that called the package."""
    warn_caller(message, DataWarning)


def refusal(name: str, /, *parts: Any, **named: Any) -> InvalidArgumentError:
    """The error of an argument, with such a message."""
    return InvalidArgumentError(say(name, *parts, **named))


def headed(names: Sequence[str], headers: Collection[str]) -> str | None:
    """The column with one of these headers, the first in their order; None if there is none."""
    found = {name.lower(): name for name in reversed(names)}
    return next((found[header] for header in headers if header in found), None)


def named_rows(names: Sequence[str]) -> str | None:
    """The first column, if its header is that of names of documents, words or rows, or of texts."""
    return headed(names[:1], (*NAMES["document"], *NAMES["word"], *NAMES["row"], *NAMES["text"]))


def names_documents(name: str) -> bool:
    """Whether the header is that of names of documents."""
    return name.lower() in NAMES["document"] or bool(NAMED.fullmatch(name))


def is_headed(name: str, kind: str) -> bool:
    """Whether the header is one of a kind, as times or units."""
    return bool(_HEADERS[kind].fullmatch(plain(name)))


def counts_nothing(name: str) -> bool:
    """Whether the header is that of names or properties, unless it is a word."""
    is_property = name.lower() in NAMES["row"] or plain(name) in NAMES["no counts"]
    return is_property or bool(NAMED.fullmatch(name) or _MEASURED.fullmatch(name))


def plain(header: str) -> str:
    """A header in lower case, without blanks and signs."""
    return "".join(filter(str.isalnum, header.lower()))
