"""Parsing of lines of non-negative integers and counts: fast, and line by line to find errors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from polyabayes.data.counts import MAX_COUNT
from polyabayes.exceptions import FileFormatError

_MAX_DIGITS = 18
_MOST_SHOWN = 40
_BLANK = ord(" ")
_ALLOWED = b"0123456789: \t\r\n"
_DECIMAL = b"0123456789+-.eE \t\r\n"
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


def read_cells(
    path: Path,
    first_line: int,
    block: bytes,
    limits: Sequence[tuple[int, int]],
    mistake: Callable[[list[str]], str | None],
) -> NDArray[np.int64]:
    """Whole numbers within the limits of their columns, shape (n_lines, n_columns).

    The last may be a decimal such as "3.0". Blank lines are skipped. `mistake` says what is wrong
    with the fields of a line.
    """
    width = len(limits)
    table = _parse_cells(block, width)
    least, most = np.array(limits).T
    if table is not None and ((table >= least) & (table <= most)).all():
        return table

    def of_line(line: str) -> str | None:
        fields = line.split()
        return mistake(fields) if fields else None

    lines = map(str.split, checked_lines(path, first_line, block, of_line))
    rows = [[*map(int, fields[:-1]), whole_count(fields[-1])] for fields in lines if fields]
    return np.array(rows, dtype=np.int64).reshape(-1, width)


def _parse_cells(block: bytes, width: int) -> NDArray[np.int64] | None:
    """Lines of `width` integers, of which the last may be a decimal; None if there are others."""
    lines = parse_integer_lines(block)
    if lines is None:
        return _parse_decimals(block, width)
    if lines.after_colon.any() or not np.isin(lines.per_line, (0, width)).all():
        return None
    return lines.values.reshape(-1, width)


def _parse_decimals(block: bytes, width: int) -> NDArray[np.int64] | None:
    """As :func:`_parse_cells`, for counts written as decimals, up to 2**32 - 1."""
    if block.translate(None, _DECIMAL):
        return None
    text = np.frombuffer(b"\n" + block + b"\n", dtype=np.uint8)
    is_blank = text <= _BLANK
    starts = np.flatnonzero(is_blank[:-1] & ~is_blank[1:]) + 1
    per_line = np.diff(np.searchsorted(starts, np.flatnonzero(text == _NEWLINE)))
    if not (per_line[per_line > 0] == width).all():
        return None
    texts = block.split()
    # An array of strings takes the space of the longest for each.
    if max(map(len, texts), default=0) > _MOST_SHOWN:
        return None
    fields = np.array(texts, dtype=bytes).reshape(-1, width)
    try:
        places = fields[:, :-1].astype(np.int64)
        counts = fields[:, -1].astype(np.float64)
    except (ValueError, OverflowError):
        return None
    if not ((counts >= 0) & (counts <= MAX_COUNT) & (counts == np.floor(counts))).all():
        return None
    return np.column_stack([places, counts.astype(np.int64)])
