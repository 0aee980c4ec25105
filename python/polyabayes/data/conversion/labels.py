"""Labels that may be numbers: their order and kind."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from math import isnan
from typing import Literal

_ROWS_LOOKED_AT = 100
# Leading zeros occur only in names.
_PADDED = re.compile(r"[+-]?0[0-9]")


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


def kind_of_strings(values: Sequence[str]) -> Literal["number", "name", "text"]:
    """Kind of non-empty strings: numbers, names, or texts of several words."""
    if all(number_of(value) is not None and not _PADDED.match(value) for value in set(values)):
        return "number"
    shown = [" " in value.strip() for value in values[:_ROWS_LOOKED_AT]]
    return "text" if 2 * sum(shown) > len(shown) else "name"
