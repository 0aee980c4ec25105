"""Fast parsing of lines of non-negative integers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_MAX_DIGITS = 18
_ALLOWED = b"0123456789: \t\r\n"
_COLON, _NEWLINE, _ZERO, _NINE = b":\n09"


@dataclass(frozen=True)
class IntegerLines:
    """Numbers of a block of text, line after line.

    Attributes
    ----------
    values : ndarray of int64, shape (n_numbers,)
        The numbers in reading order.
    after_colon : ndarray of bool, shape (n_numbers,)
        Whether a colon stands right before the number; it is blank space otherwise.
    per_line : ndarray of int64, shape (n_lines,)
        How many numbers each line holds.
    """

    values: NDArray[np.int64]
    after_colon: NDArray[np.bool_]
    per_line: NDArray[np.int64]


def is_number(text: str | bytes) -> bool:
    """Whether the text is a non-negative integer that 64 bits can hold."""
    return len(text) <= _MAX_DIGITS and text.isascii() and text.isdigit()


def parse_integer_lines(block: bytes) -> IntegerLines | None:
    """Parse lines of integers that are separated by blank space or single colons.

    Parameters
    ----------
    block : bytes
        Whole lines; the last one without its newline.

    Returns
    -------
    IntegerLines or None
        None if there is anything but such numbers in the block.
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
