"""Values of options: sizes, priors and other things that have a form of their own."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from polyabayes.exceptions import PolyabayesError

if TYPE_CHECKING:
    from polyabayes import priors

# Class in `polyabayes.priors` of each law, and the types of its numbers.
_LAWS: dict[str, tuple[str, tuple[type, ...]]] = {
    "poisson": ("Poisson", (float,)),
    "geometric": ("Geometric", (float,)),
    "negative-binomial": ("NegativeBinomial", (float, float)),
    "uniform": ("Uniform", (int, int)),
}

# Sizes that are tried one after the other.
_MOST_SIZES = 10_000


class Collect(argparse.Action):
    """Gathers pairs of name and value in a dictionary."""

    def __call__(self, _parser: Any, namespace: Any, pair: Any, _flag: Any = None) -> None:
        """Add a pair."""
        name, value = pair
        setattr(namespace, self.dest, {**(getattr(namespace, self.dest) or {}), name: value})


def prior(text: str) -> priors.SizePrior:
    """Prior of a size, as ``poisson:5``, or of several, as ``poisson:5*geometric:0.5``."""
    from polyabayes import priors

    laws = [_law(part.strip()) for part in text.split("*")]
    return laws[0] if len(laws) == 1 else priors.Product(*laws)


def _law(text: str) -> priors.UnivariatePrior:
    from polyabayes import priors

    name, _, numbers = text.partition(":")
    law, types = _LAWS.get(name, ("", ()))
    try:
        values = [kind(part) for kind, part in zip(types, numbers.split(","), strict=True)]
    except ValueError:
        known = "poisson:MEAN, geometric:P, negative-binomial:MEAN,SHAPE or uniform:LOW,HIGH"
        raise argparse.ArgumentTypeError(f"{text!r} is not one of {known}") from None
    try:
        made: priors.UnivariatePrior = getattr(priors, law)(*values)
    except PolyabayesError as error:
        raise argparse.ArgumentTypeError(f"{text!r}: {error}") from None
    return made


def names(text: str) -> list[str]:
    """Names parted by commas."""
    return [name.strip() for name in text.split(",")]


def whole_numbers(text: str) -> list[int]:
    """Whole numbers parted by commas."""
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no list of whole numbers") from None


def numbers(text: str) -> float | list[float]:
    """A number, or several parted by commas."""
    try:
        values = [float(part) for part in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no number or list of numbers") from None
    return values[0] if len(values) == 1 else values


def named_size(text: str) -> tuple[str, int | None]:
    """A size by its node; None where it is searched."""
    name, equals, value = text.partition("=")
    if equals and value == "?":
        return name, None
    if not (equals and value.isdecimal()):
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form NODE=N")
    return name, int(value)


def named_sizes(text: str) -> tuple[str, range]:
    """A range of sizes by its node."""
    name, equals, value = text.partition("=")
    first, dots, last = value.partition("..")
    if not (equals and dots and first.isdecimal() and last.isdecimal()):
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form NODE=N..M")
    if not int(first):
        raise argparse.ArgumentTypeError(f"{text!r} begins at 0; the least size is 1")
    if int(first) > int(last):
        raise argparse.ArgumentTypeError(f"{text!r} holds no size: {first} is above {last}")
    if int(last) - int(first) >= _MOST_SIZES:
        raise argparse.ArgumentTypeError(
            f"{text!r} holds more than {_MOST_SIZES:,} sizes; try fewer, or use polyabayes search"
        )
    return name, range(int(first), int(last) + 1)


def named_value(text: str) -> tuple[str, int | str]:
    """An option of a method by its name."""
    name, equals, value = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form NAME=VALUE")
    return name, int(value) if value.isdecimal() else value


def share_or_number(text: str) -> float:
    """A whole number, or a share."""
    try:
        return int(text) if text.isdecimal() else float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number") from None
