"""Checks of scalar and array parameters, shared by estimators and functions."""

import numbers
import os
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from polyabayes._support.arrays import Floats
from polyabayes._support.machine import memory_of_machine
from polyabayes.exceptions import (
    BudgetExceededError,
    InvalidArgumentError,
    InvalidTypeError,
    argument,
)

_MOST_THREADS = 1024


def whole_number(name: str, value: Any, least: int = 1, most: int | None = None) -> int:
    """`value` as an int of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise wrong_type(name, value, f"must be an int, got {value!r:.100}")
    found = int(value)
    if found < least or (most is not None and found > most):
        limit = f"at least {least}" if most is None else f"between {least} and {most}"
        raise wrong(name, value, f"must be {limit}, got {value!s:.100}", (least, most))
    return found


def positive_number(name: str, value: Any) -> float:
    """`value` as a positive, finite float."""
    found = number(name, value)
    if not (found > 0 and np.isfinite(found)):
        raise wrong(name, value, f"must be positive and finite, got {value!r:.100}")
    return found


def not_negative_number(name: str, value: Any) -> float:
    """`value` as a finite float of at least 0."""
    found = number(name, value)
    if not (found >= 0 and np.isfinite(found)):
        raise wrong(name, value, f"must be finite and not negative, got {value!r:.100}")
    return found


def share(name: str, value: Any) -> float:
    """`value` as a float strictly between 0 and 1."""
    found = positive_number(name, value)
    if not found < 1:
        raise wrong(name, value, f"must be strictly between 0 and 1, got {value!r}", (0, 1))
    return found


def choice(name: str, value: Any, choices: tuple[str, ...]) -> str:
    """`value` if it is one of `choices`."""
    if not isinstance(value, str) or value not in choices:
        known = ", ".join(repr(known) for known in choices)
        raise wrong(name, value, f"must be one of {known}; got {value!r}", choices)
    return value


def text(name: str, value: Any) -> str:
    """`value` as a str."""
    if not isinstance(value, str):
        raise wrong_type(name, value, f"must be a str, got {value!r:.100}")
    return value


def flag(name: str, value: Any) -> bool:
    """`value` as True or False."""
    if not isinstance(value, (bool, np.bool_)):
        raise wrong_type(name, value, f"must be True or False, got {value!r:.100}")
    return bool(value)


def fits(name: str, value: int, n_bytes: float) -> None:
    """Refuse `value` things of `n_bytes` each that the machine has no memory for."""
    needed, there_are = value * n_bytes, memory_of_machine()
    if needed > there_are:
        rule = (
            f"is {value:,}: that takes at least {needed / 2**30:,.1f} GiB of the "
            f"{there_are / 2**30:,.1f} that the machine has; ask for fewer"
        )
        message, limit = f"{argument(name)} {rule}", int(there_are // n_bytes)
        raise BudgetExceededError(message, argument=name, value=value, limit=limit)


def vector(name: str, value: Any, size: int) -> Floats:
    """One number for all, or one each, as an array of shape (size,)."""
    array = floats(name, value)
    if array.ndim > 1 or array.shape not in ((), (size,)):
        rule = f"must be a number or have shape ({size},), got shape {array.shape}"
        raise wrong(name, value, rule, (size,))
    return np.ascontiguousarray(np.broadcast_to(array, (size,)))


def positive_vector(name: str, value: Any, size: int) -> Floats:
    """A vector as by :func:`vector`, every entry positive and finite."""
    array = vector(name, value, size)
    bad = np.flatnonzero(~((array > 0) & np.isfinite(array)))
    if len(bad):
        rule = f"must be positive and finite, but entry {bad[0]} is {array[bad[0]]}"
        raise wrong(name, value, rule)
    return array


def matrix(name: str, value: Any, shape: str = "(n_components, n_words)") -> Floats:
    """`value` as a contiguous float array of two dimensions."""
    array = floats(name, value)
    if array.ndim != 2 or 0 in array.shape:
        rule = f"must have shape {shape}, got shape {array.shape}"
        raise wrong(name, value, rule)
    return np.ascontiguousarray(array)


def n_threads(n_jobs: Any) -> int:
    """Number of threads that `n_jobs` asks for; None and -1 mean all cores."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    if n_jobs is None:
        return cores or 1
    wanted = whole_number("n_jobs", n_jobs, least=-(cores or 1), most=_MOST_THREADS)
    if wanted == 0:
        raise wrong("n_jobs", 0, "must not be 0; leave it out for all cores")
    return wanted if wanted > 0 else (cores or 1) + 1 + wanted


def models_by_name(models: Any) -> None:
    """Refuse models that are not in a mapping, and an empty one."""
    if not isinstance(models, Mapping):
        rule = "must be a mapping from names to models, as {'first': model}, got "
        rule += type(models).__name__
        raise wrong_type("models", models, rule)
    if not models:
        raise wrong("models", models, "is empty; give at least one model")


def wrong(name: str, value: Any, rule: str, limit: Any = None) -> InvalidArgumentError:
    """The error that an argument breaks a rule, or an entry of it, with its value and the limit."""
    message = f"{argument(name)}{'' if rule.startswith('[') else ' '}{rule}"
    return InvalidArgumentError(message, argument=name, value=value, limit=limit)


def wrong_type(name: str, value: Any, rule: str) -> InvalidTypeError:
    """The same of an argument of another type."""
    return InvalidTypeError(f"{argument(name)} {rule}", argument=name, value=value)


def number(name: str, value: Any) -> float:
    """`value` as a float."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        told = f", one for all, as {argument(name, 0.1)}" * isinstance(value, Iterable)
        raise wrong_type(name, value, f"must be a number{told}, got {_line(value)}")
    try:
        return float(value)
    except OverflowError:
        return np.inf


def floats(name: str, value: Any) -> Floats:
    """`value` as an array of floats of any shape."""
    try:
        array = np.asarray(value)
        if array.dtype.kind in "iufO":
            return np.asarray(array, dtype=np.float64)
    except OverflowError as error:
        raise wrong(name, value, "holds a number that no float is as large as") from error
    except (TypeError, ValueError) as error:
        told = f": its names match none; use [*{name}.values()] if the order is right"
        told = f"{_line(value)}{told * isinstance(value, Mapping)}"
        raise wrong_type(name, value, f"must hold numbers, got {told}") from error
    raise wrong_type(name, value, f"must hold numbers, got {_line(value)}")


def _line(value: Any) -> str:
    return " ".join(repr(value).split())[:100]


def entries(name: str, value: Any) -> list[Any]:
    """Entries of a sequence that is no text."""
    if is_single(value) or not isinstance(value, Iterable):
        raise wrong_type(name, value, f"must be a sequence, got {value!r:.100}")
    return list(value)


def is_single(value: Any) -> bool:
    """Whether a value is one text, or an array without dimensions, which has ``__iter__``, too."""
    return isinstance(value, (str, bytes)) or getattr(value, "ndim", 1) == 0


def is_name(text: str) -> bool:
    """Whether a text can name a node or an axis: letters, digits and underscores, of any script."""
    return bool(text) and f"_{text}".isidentifier()


def index_of(rows: Any) -> Any:
    """Names of the rows of a pandas object; None for other types."""
    index = getattr(rows, "index", None)
    return index if hasattr(index, "equals") else None
