"""Estimators by name: their properties and options."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

from polyabayes import _core
from polyabayes._support import checks
from polyabayes.exceptions import InvalidArgumentError, InvalidTypeError


class Method(NamedTuple):
    """Properties of an estimator of p.

    Unbiased estimates have mean p for any sample size; consistent estimates tend to p as the sample
    grows. `cost` is multiply-adds of a replicate: N tokens, W distinct words, K topics, S samples,
    P particles. `size` is the argument for the sample size, if any. `default_size` is its default,
    None if it depends on the document.
    """

    cost: str
    is_unbiased: bool
    is_consistent: bool
    size: str | None
    default_size: int | None
    options: list[str]


# All estimators that results may name; those that users can choose; those that can run backwards
# from a draw of the posterior.
ESTIMATORS: dict[str, Method] = {}
METHODS: dict[str, Method] = {}
REVERSIBLE: list[str] = []
for _name, _cost, _flags, _size, _default_size, _options in _core.estimators():
    _unbiased, _consistent, _reversible, _asked = _flags
    ESTIMATORS[_name] = Method(_cost, _unbiased, _consistent, _size, _default_size, _options)
    if _asked:
        METHODS[_name] = ESTIMATORS[_name]
    if _reversible:
        REVERSIBLE.append(_name)

_LARGEST = 10**9


class Options(NamedTuple):
    """Options of single estimators."""

    order: int = 1
    n_iterations: int = 20
    n_conditional_samples: int | None = None
    start: str | None = None


_SOME = partial(checks.whole_number, most=10**6)
_OPTIONS: dict[str, Callable[[str, Any], Any]] = {
    "order": partial(checks.whole_number, most=2),
    "n_iterations": partial(_SOME, least=0),
    "n_conditional_samples": _SOME,
    "start": partial(checks.choice, choices=("mean-field", "prior", "lowered")),
}


def check_options(method: str, options: Mapping[str, Any] | None) -> Options:
    """Refuse unknown options of the method, and values out of range."""
    if options is None:
        return Options()
    if not isinstance(options, Mapping):
        raise InvalidTypeError(f"options must be a mapping or None, got {options!r}")
    known = METHODS[method].options
    for name in options:
        if name not in known:
            takes = ", ".join(repr(name) for name in known) or "none"
            raise InvalidArgumentError(
                f"method {method!r} has no option {name!r}; its options: {takes}"
            )
    given = {name: value for name, value in options.items() if value is not None}
    return Options(**{name: _OPTIONS[name](f"options[{name!r}]", x) for name, x in given.items()})


class Settings(NamedTuple):
    """Settings of the scoring, for the compiled core."""

    method: str
    event: str
    given_length: bool
    n_samples: int | None
    n_particles: int | None
    n_replicates: int
    target_std_error: float | None
    budget: float | None
    trace: bool
    order: int
    n_iterations: int
    n_conditional_samples: int | None
    start: str | None


def check_settings(
    *,
    method: Any,
    event: str,
    given_length: bool,
    n_samples: Any = None,
    n_particles: Any = None,
    n_replicates: Any = None,
    target_std_error: Any = None,
    budget: Any = None,
    trace: Any = False,
    options: Mapping[str, Any] | None = None,
) -> Settings:
    """Check all values and make the settings."""
    method = checks.choice("method", method, tuple(METHODS))
    trace = checks.flag("trace", trace)
    if trace and target_std_error is not None:
        raise InvalidArgumentError("trace=True needs a fixed sample size; omit target_std_error")

    def size(name: str, value: Any, least: int = 1, most: int = _LARGEST) -> int | None:
        return None if value is None else checks.whole_number(name, value, least, most)

    def positive(name: str, value: Any) -> float | None:
        return None if value is None else checks.positive_number(name, value)

    replicates = size("n_replicates", n_replicates, 2, 10_000)
    return Settings(
        method,
        event,
        given_length,
        size("n_samples", n_samples),
        size("n_particles", n_particles),
        16 if replicates is None else replicates,
        positive("target_std_error", target_std_error),
        positive("budget", budget),
        trace,
        *check_options(method, options),
    )
