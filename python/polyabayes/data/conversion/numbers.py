"""Numbers as people write them: with separators of thousands, decimal commas, and dashes."""

import json
import re
from collections.abc import Collection, Iterable
from itertools import chain
from math import isnan
from pathlib import Path
from typing import Any

from polyabayes.data.names import NAMES

# Patterns of numbers, and options of pandas that read them, in the order in which they are tried.
_LINES = Path(__file__).with_suffix(".txt").read_text("utf-8").splitlines()
_WRITTEN = {re.compile(x): json.loads(own) for x, own in (line.split("\t") for line in _LINES)}
_KEPT_BACK = re.compile("|".join(NAMES["kept back"]))


def number_of(text: str) -> float | None:
    """The number that a text represents, or None."""
    try:
        return float(text) if "_" not in text else None
    except ValueError:
        return None


def is_like_a_number(text: str) -> bool:
    """Whether a text is a number or a price as people write it, or a truth value."""
    plain = text.strip(' $€£¥="')
    is_bool = plain.lower() in NAMES["truth"]
    return number_of(plain) is not None or is_bool or any(x.fullmatch(plain) for x in _WRITTEN)


def is_dash(text: str) -> bool:
    """Whether a text marks a cell where nothing was counted, or the count is not told."""
    return text.strip() in NAMES["dash"] or is_kept_back(text)


def is_kept_back(value: Any) -> bool:
    """Whether a value marks a count that is not told, as small ones of persons."""
    return bool(_KEPT_BACK.fullmatch(str(value).strip()))


def is_cell(text: str) -> bool:
    """Whether columns of counts may hold a text: a number, or a mark where there is none."""
    return is_like_a_number(text) or is_dash(text)


def _divides(sign: str, column: Collection[str]) -> bool:
    """Whether a sign divides thousands in a column: of all its numbers, only the large have it."""
    held = [x.strip() for x in column if not is_dash(x)]
    number = re.compile(rf"\d{{1,3}}|[1-9]\d?\d?({re.escape(sign)}\d{{3}})+")
    return 0 < sum(sign in x for x in held) < len(held) and all(map(number.fullmatch, held))


def label_order(labels: Iterable[str]) -> list[str]:
    """Sort labels: by value if all are numbers, else as text."""
    numbers = {text: number_of(text) for text in sorted(labels)}
    if any(number is None or isnan(number) for number in numbers.values()):
        return [*numbers]
    return sorted(numbers, key=lambda text: numbers[text] or 0)


def options_of_numbers(values: Iterable[Collection[Any]], sep: str) -> dict[str, Any]:
    """Options of pandas by which the texts of columns of counts are numbers; empty if none.

    In files with semicolons, and where small numbers are written without one, a point before three
    digits divides thousands; beside such columns, numbers without signs are years or codes.
    """
    # A column of nothing but marks of counts kept back has none, as asterisks in place of strands.
    kept = (y for y in values if not all(x is None or is_kept_back(x) for x in y))
    held = [{x for x in y if isinstance(x, str)} for y in kept]
    columns = [own for own in held if all(map(is_cell, own))]
    texts = {*chain(*columns)}
    dashes = sorted(filter(is_dash, texts))
    divided = {sign for sign in ".," if any(_divides(sign, own) for own in columns)}
    plain = {*chain(*(own for own in columns if divided and all(map(str.isdigit, own))))}
    numbers = {text.strip(' ="') for text in texts - plain if text not in dashes}
    is_semi, n_pointed = sep == ";", sum("." in text for text in numbers)
    may_divide = {".": 0 < n_pointed < len(numbers) + is_semi, ",": "," in divided or not is_semi}
    options: dict[str, Any] = {}
    for pattern, given in _WRITTEN.items():
        thousands = given.get("thousands", "")
        if may_divide.get(thousands, True) and all(map(pattern.fullmatch, numbers)):
            options = {name: x for name, x in given.items() if any(x in y for y in numbers)}
            if not thousands.isascii():
                options["engine"] = "python"  # Other engines of pandas ignore such separators.
            break
    return options | ({"na_values": dashes if dashes[1:] else dashes[0]} if dashes else {})


def read_number(text: str, options: dict[str, Any]) -> float | None:
    """The number of a text that is written so; NaN for a dash."""
    plain = text.strip(' ="').replace(options.get("thousands", "\0"), "")
    plain = plain.replace(options.get("decimal", "."), ".")
    return float("nan") if is_dash(plain) else number_of(plain)
