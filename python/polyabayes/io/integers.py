"""Parsing of lines of non-negative integers and counts: fast, and line by line to find errors."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from polyabayes.data.counts import MAX_COUNT
from polyabayes.exceptions import FileFormatError

_MAX_DIGITS = 18
_MOST_SHOWN = 40
_ALLOWED = b"0123456789: \t\r\n"
# Patterns of whole numbers that unsigned integers of 64 bits hold: places, counted from 1, counts,
# and decimals such as 1e+05, as R writes them.
PLACE, COUNT = rb"0*+[1-9]\d{0,17}+(?!\d)", rb"\d{1,19}+(?!\d)(?:\.0*+)?"
DECIMAL = COUNT + rb"(?:[eE]\+?\d++)?"
POINT_ZERO = re.compile(rb"(?<=[0-9])\.0*(?=\s|$)")
_LINES = rb"(?:[ \t]*+(?:%b)?[ \t\r]*+(?:\n|\Z))*+"
_COLON, _NEWLINE, _ZERO, _NINE = b":\n09"


@dataclass(frozen=True)
class IntegerLines:
    """Numbers of a block of text, line after line.

    `values` are in reading order; `after_colon` marks numbers that follow a colon instead of blank
    space; `per_line` counts the numbers of each line.
    """

    values: NDArray[np.int64]
    after_colon: NDArray[np.bool_]
    per_line: NDArray[np.int64]


def is_number(text: str | bytes) -> bool:
    """Whether the text is a non-negative integer that 64 bits can hold."""
    return len(text) <= _MAX_DIGITS and text.isascii() and text.isdigit()


def parse_integer_lines(block: bytes) -> IntegerLines | None:
    """Parse lines of integers that are separated by blank space or single colons.

    The block holds whole lines, the last one without its newline; None if there is anything but
    such numbers in it.
    """
    if block.translate(None, _ALLOWED):
        return None
    text = np.frombuffer(b"\n" + block + b"\n", dtype=np.uint8)
    is_digit = (text >= _ZERO) & (text <= _NINE)
    edges = np.flatnonzero(is_digit[1:] != is_digit[:-1]) + 1
    starts, ends = edges[::2], edges[1::2]
    colons = np.flatnonzero(text == _COLON)
    if not (is_digit[colons - 1].all() and is_digit[colons + 1].all()):
        return None
    lengths = ends - starts
    n_digits = int(lengths.max(initial=0))
    if n_digits > _MAX_DIGITS:
        return None
    values = np.zeros(len(starts), dtype=np.int64)
    for digit in range(n_digits):
        has_digit = lengths > digit
        position = starts[has_digit] + digit
        values[has_digit] = 10 * values[has_digit] + (text[position] - _ZERO)
    newlines = np.flatnonzero(text == _NEWLINE)
    per_line = np.diff(np.searchsorted(starts, newlines))
    return IntegerLines(values, text[starts - 1] == _COLON, per_line)


def whole_count(text: str) -> int:
    """A count from a text that :func:`count_mistake` has accepted."""
    return int(Decimal(text))


def shown(text: str) -> str:
    """A text of a file, shortened for a message."""
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}..."


def count_mistake(text: str, most: int = MAX_COUNT) -> str | None:
    """Why a text is not a count, or None; a decimal such as "3.0" is accepted."""
    try:
        count = Decimal(text) if text.isascii() and "_" not in text else Decimal("nan")
    except InvalidOperation:
        count = Decimal("nan")
    # The count is converted only after its size is known to be small.
    if count.is_finite() and 0 <= count <= most and count == int(count):
        return None
    limit = "2**63 - 1" if most == 2**63 - 1 else most
    return f"the count {shown(text)!r} is not a whole number from 0 to {limit}"


def checked_lines(
    path: Path, first_line: int, block: bytes, mistake: Callable[[str], str | None]
) -> Iterator[str]:
    """The lines of a block; the first that `mistake` says something about is refused."""
    for number, line in enumerate(block.split(b"\n"), start=first_line):
        text = line.decode("utf-8", "replace")
        reason = mistake(text)
        if reason:
            raise FileFormatError(f"{path}, line {number}: {reason}")
        yield text


def check_lines(
    path: Path, content: bytes, entry: bytes, what: str, line: int = 1, start: int = 0
) -> None:
    """Refuse the first line from `start` that is neither blank nor the entry, a pattern.

    `line` is the number of the first line of the content.
    """
    found = re.compile(_LINES % entry).match(content, start)
    end = found.end() if found else start
    if end < len(content):
        number = line + content.count(b"\n", 0, end)
        text = content[end : end + 100].partition(b"\n")[0].decode("utf-8", "replace").strip()
        raise FileFormatError(f"{path}, line {number}: {shown(text)!r} is not {what}")
