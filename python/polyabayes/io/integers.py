"""Parsing of lines of non-negative integers and counts: fast, and line by line to find errors."""

import re
from decimal import Decimal, InvalidOperation
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from polyabayes.data.counts import MAX_COUNT
from polyabayes.exceptions import FileFormatError

_MAX_DIGITS, _MOST_SHOWN = 18, 40
# Patterns of whole numbers that unsigned integers of 64 bits hold: places, counted from 1, counts,
# and decimals such as 1e+05, as R writes them.
PLACE, COUNT = rb"0*+[1-9]\d{0,17}+(?!\d)", rb"\d{1,19}+(?!\d)(?:\.0*+)?"
DECIMAL = COUNT + rb"(?:[eE]\+?\d++)?"
COMMENT = re.compile(rb"#[^\n]*")
_POINT_ZERO = re.compile(rb"(?<=[0-9])\.0*(?=\s|$)")
_LINES = rb"(?:[ \t]*+(?:%b)?[ \t\r]*+(?:\n|\Z))*+"


def is_number(text: str | bytes) -> bool:
    """Whether the text is a non-negative integer that 64 bits can hold."""
    return len(text) <= _MAX_DIGITS and text.isascii() and text.isdigit()


def numbers_of(content: bytes) -> NDArray[np.uint64]:
    """All numbers of lines that :func:`check_lines` accepts, with blanks or colons between them."""
    text = _POINT_ZERO.sub(b"", content) if b"." in content else content
    return np.fromstring(text.replace(b":", b" ").strip().decode(), np.uint64, sep=" ")


def shown(text: str) -> str:
    """A text of a file, shortened for a message."""
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}..."


def parsed_count(text: str) -> tuple[int, str]:
    """The count of a text, such as "3.0", and why it is none, empty if it is one."""
    try:
        count = Decimal(text) if "_" not in text else Decimal("nan")
    except InvalidOperation:
        count = Decimal("nan")
    # The count is converted only after its size is known to be small.
    if count.is_finite() and 0 <= count <= MAX_COUNT and count == int(count):
        return int(count), ""
    return 0, f"the count {shown(text)!r} is not a whole number from 0 to {MAX_COUNT}"


def check_lines(
    path: Path, content: bytes, entry: bytes, what: str, line: int = 1, start: int = 0
) -> None:
    """Refuse the first line from `start` that is neither blank nor the entry, a pattern.

    `line` is the number of the first line of the content.
    """
    found = re.compile(_LINES % entry).match(content, start)
    if (end := found.end() if found else start) < len(content):
        number = line + content.count(b"\n", 0, end)
        text = content[end : end + 100].partition(b"\n")[0].decode("utf-8", "replace").strip()
        raise FileFormatError(f"{path}, line {number}: {shown(text)!r} is not {what}")
