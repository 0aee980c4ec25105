"""Values of options by the types of their parameters, and those that have a form of their own."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from polyabayes.cli.signatures import Parameter
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

# Most sizes that one evidence after the other is computed for.
_MOST_SIZES = 10_000


class _Collect(argparse.Action):
    """Gathers pairs of name and value in a dictionary."""

    def __call__(self, _parser: Any, namespace: Any, pair: Any, _flag: Any = None) -> None:
        name, value = pair
        setattr(namespace, self.dest, {**(getattr(namespace, self.dest) or {}), name: value})


def number(text: str) -> float:
    """A whole number, or another one."""
    try:
        return int(text) if text.isdecimal() else float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number") from None


def numbers(text: str) -> float | list[float] | str:
    """A number, or several parted by commas; ``auto`` is for the function to understand."""
    if text == "auto":
        return text
    try:
        values = [float(part) for part in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no number or list of numbers") from None
    return values[0] if len(values) == 1 else values


def whole_numbers(text: str) -> list[int]:
    """Whole numbers parted by commas."""
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no list of whole numbers") from None


def number_or_text(text: str) -> int | str:
    """A whole number, or text where it is none."""
    return int(text) if text.isdecimal() else text


def names(text: str) -> list[str]:
    """Names parted by commas."""
    return [name.strip() for name in text.split(",")]


def name_or_names(text: str) -> str | list[str]:
    """A name, or several parted by commas."""
    return names(text) if "," in text else text


def named_value(text: str) -> tuple[str, Any]:
    """An option of a method by its name: numbers, true or false, or text."""
    name, equals, value = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form NAME=VALUE")
    if value.lower() in ("true", "false"):
        return name, value.lower() == "true"
    parts = value.split(",")
    if len(parts) > 1 and all(part.isdecimal() for part in parts):
        return name, tuple(map(int, parts))
    try:
        return name, number(value)
    except argparse.ArgumentTypeError:
        return name, value


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


# Annotations and docstrings' types, the first that matches, with what reads a value and its name
# in the help. A parameter that matches none, or a reader that is None, is no option.
_READERS: tuple[tuple[str, Callable[[str], Any] | None, str], ...] = (
    (r"^(?:str|Any)\b.*?: \{", str, "NAME"),
    (r": str or sequence of str", name_or_names, "A[,B,...]"),
    (r"Executor|callable|array of bool", None, ""),
    (r"^int \| Iterable", whole_numbers, "N[,N,...]"),
    (r"^int \| str", number_or_text, "N|TEXT"),
    (r"^int\b", int, "N"),
    (r"^RandomState|^Any: None, int", int, "N"),
    (r": float or int|: int or float", number, "X"),
    (r"^float\b", float, "X"),
    (r"^tuple\[str, range\]", named_sizes, "NODE=N..M"),
    (r"SizePrior", prior, "NAME:NUMBERS"),
    (r"^Mapping\[str, int", named_size, "NODE=N"),
    (r"^Mapping\b", named_value, "NAME=VALUE"),
    (r"^(?:Sequence\[)+str\]", names, "A,B,..."),
    (r"^Sequence\[int\]", whole_numbers, "N,N"),
    (r": iterable of int", whole_numbers, "N,N,..."),
    (r"path|^str\b|: str\b", str, "TEXT"),
    (r": array of shape \(n_documents|or array of shape \(n_documents", None, ""),
    (r"float", numbers, "X[,X,...]"),
)


def how_to_read(parameter: Parameter) -> dict[str, Any] | None:
    """Arguments of ``add_argument`` for a parameter; None where no text can stand for it."""
    kind = parameter.annotation.replace(" | None", "")
    if kind == "bool":
        if parameter.default == "False" and parameter.name != "progress":
            return {"action": "store_true"}
        return {"action": argparse.BooleanOptionalAction}
    told = f"{kind}: {parameter.wording}"
    read, metavar = next((row[1:] for row in _READERS if re.search(row[0], told)), (None, ""))
    if read is None:
        return None
    made = {"type": read, "metavar": metavar}
    if kind.startswith("Mapping"):
        return {**made, "action": _Collect}
    return {**made, "action": "append"} if is_repeatable(parameter) else made


def is_repeatable(parameter: Parameter) -> bool:
    """Whether the option is given once for each of several values."""
    return parameter.annotation.startswith(("Mapping", "Sequence[S", "list"))
