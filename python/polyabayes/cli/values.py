"""Readers of option values: by the annotation of the parameter, else by the form of the text."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from polyabayes.exceptions import PolyabayesError

if TYPE_CHECKING:
    from polyabayes.sizes import priors

# Class in `polyabayes.priors` of each distribution, and the types of its numbers.
_DISTRIBUTIONS: dict[str, tuple[str, tuple[type, ...]]] = {
    "poisson": ("Poisson", (float,)),
    "geometric": ("Geometric", (float,)),
    "negative-binomial": ("NegativeBinomial", (float, float)),
    "uniform": ("Uniform", (int, int)),
}
_PRIORS = "poisson:MEAN, geometric:P, negative-binomial:MEAN,SHAPE or uniform:LOW,HIGH"

# Largest number of sizes of one --try.
_MOST_SIZES = 10_000


class _Collect(argparse.Action):
    """Gathers pairs of name and value in a dictionary."""

    def __call__(self, _parser: Any, namespace: Any, pair: Any, _flag: Any = None) -> None:
        name, value = pair
        setattr(namespace, self.dest, {**(getattr(namespace, self.dest) or {}), name: value})


def value(text: str) -> Any:
    """A number, true or false, text, or several of these parted by commas.

    Examples
    --------
    >>> value("0.5"), value("2"), value("1,2"), value("auto")
    (0.5, 2, [1, 2], 'auto')
    """
    values = several(text)
    return values[0] if len(values) == 1 else values


def several(text: str) -> list[Any]:
    """Values parted by commas."""
    return [_one(part.strip()) for part in text.split(",")]


def _one(text: str) -> Any:
    for read in (int, float):
        with suppress(ValueError):
            return read(text)
    return {"true": True, "false": False}.get(text.lower(), text)


def number(text: str) -> float:
    """A whole number, or another one."""
    found = _one(text)
    if not isinstance(found, int | float):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number")
    return found


def names(text: str) -> list[str]:
    """Names parted by commas."""
    return [name.strip() for name in text.split(",")]


def named_value(text: str) -> tuple[str, Any]:
    """An option of a method by its name."""
    name, equals, given = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form NAME=VALUE")
    return name, value(given)


def named_size(text: str) -> tuple[str, int | None]:
    """A size by its node; None where it is searched."""
    name, equals, size = text.partition("=")
    if not (equals and (size == "?" or size.isdecimal())):
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form NODE=N")
    return name, None if size == "?" else int(size)


def named_sizes(text: str) -> tuple[str, range]:
    """A range of sizes by its node."""
    found = re.fullmatch(r"(.*?)=(\d+)\.\.(\d+)", text)
    if not found:
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form NODE=N..M")
    first, last = int(found[2]), int(found[3])
    if not first:
        raise argparse.ArgumentTypeError(f"{text!r} begins at 0; the least size is 1")
    if first > last:
        raise argparse.ArgumentTypeError(f"{text!r} holds no size: {first} is above {last}")
    if last - first >= _MOST_SIZES:
        raise argparse.ArgumentTypeError(
            f"{text!r} holds more than {_MOST_SIZES:,} sizes; try fewer, or use polyabayes search"
        )
    return found[1], range(first, last + 1)


def prior(text: str) -> priors.SizePrior:
    """Prior of a size, as ``poisson:5``, or of several, as ``poisson:5*geometric:0.5``."""
    from polyabayes.sizes import priors

    parts = [_distribution(part.strip()) for part in text.split("*")]
    return parts[0] if len(parts) == 1 else priors.Product(*parts)


def _distribution(text: str) -> priors.UnivariatePrior:
    from polyabayes.sizes import priors

    name, _, values = text.partition(":")
    kind, types = _DISTRIBUTIONS.get(name, ("", ()))
    try:
        read = [convert(part) for convert, part in zip(types, values.split(","), strict=True)]
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not one of {_PRIORS}") from None
    try:
        made: priors.UnivariatePrior = getattr(priors, kind)(*read)
    except PolyabayesError as error:
        raise argparse.ArgumentTypeError(f"{text!r}: {error}") from None
    return made


# Reader and name in the help of a value by the beginning of its annotation; the first match counts.
# A value of any other annotation is read by its form.
_READERS: tuple[tuple[str, Callable[[str], Any], str], ...] = (
    ("tuple[str, range]", named_sizes, "NODE=N..M"),
    ("SizePrior", prior, "NAME:NUMBERS"),
    ("list[priors.SizePrior]", prior, "NAME:NUMBERS"),
    ("Mapping[str, int", named_size, "NODE=N"),
    ("Mapping", named_value, "NAME=VALUE"),
    ("Sequence[Sequence[str]]", names, "A,B,..."),
    ("Sequence[str]", names, "A,B,..."),
    ("Sequence", several, "N,N,..."),
    ("Iterable", several, "N,N,..."),
    ("str | Sequence", value, "A[,B,...]"),
    ("str", str, "TEXT"),
    ("list[str]", str, "TEXT"),
    ("VocabularyLike", str, "FILE"),
    ("int |", value, "N|VALUE"),
    ("int", int, "N"),
    ("float", number, "X"),
)
# Parameters that are names of files, folders or columns, whatever their annotation.
_NAMES = ("checkpoint", "exposure", "groups", "times")


def how_to_read(name: str, annotation: str, default: Any) -> dict[str, Any]:
    """Arguments of ``add_argument`` for a parameter, by its name, annotation and default."""
    kind = annotation.removesuffix(" | None")
    if kind == "bool":
        is_off = default is False and name != "progress"
        return {"action": "store_true" if is_off else argparse.BooleanOptionalAction}
    kind = "str" if name in _NAMES else kind
    found = (row[1:] for row in _READERS if kind.startswith(row[0]))
    read, metavar = next(found, (value, "VALUE"))
    made = {"type": read, "metavar": metavar}
    if kind.startswith("Mapping"):
        return {**made, "action": _Collect}
    return {**made, "action": "append"} if is_repeatable(annotation) else made


def is_repeatable(annotation: str) -> bool:
    """Whether an option of this type is given once for each of several values."""
    return annotation.startswith(("Mapping", "Sequence[S", "list"))
