"""Estimators by name: their properties and options."""

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

_COUNT = partial(checks.whole_number, most=10**9)
_SOME = partial(checks.whole_number, most=10**6)
# Checks of the settings that may be left to the method, and of options of single estimators.
_SETTINGS: dict[str, Callable[[str, Any], Any]] = {
    "n_samples": _COUNT,
    "n_particles": _COUNT,
    "n_replicates": partial(checks.whole_number, least=2, most=10_000),
    "target_std_error": checks.positive_number,
    "budget": checks.positive_number,
    "trace": checks.flag,
}
_OPTIONS: dict[str, Callable[[str, Any], Any]] = {
    "order": partial(checks.whole_number, most=2),
    "n_iterations": partial(_SOME, least=0),
    "n_conditional_samples": _SOME,
    "start": partial(checks.choice, choices=("mean-field", "prior", "lowered", "softened")),
}


class Settings(NamedTuple):
    """Settings of the scoring, for the compiled core; the last four are options of estimators."""

    method: str
    event: str
    given_length: bool
    n_samples: int | None = None
    n_particles: int | None = None
    n_replicates: int = 16
    target_std_error: float | None = None
    budget: float | None = None
    trace: bool = False
    order: int = 1
    n_iterations: int = 20
    n_conditional_samples: int | None = None
    start: str | None = None


def check_settings(
    *,
    method: Any,
    event: str,
    given_length: bool,
    options: Mapping[str, Any] | None = None,
    **given: Any,
) -> Settings:
    """Check all values and make the settings; None means the default."""
    method = checks.choice("method", method, tuple(METHODS))
    found = {name: _SETTINGS[name](name, x) for name, x in given.items() if x is not None}
    if found.get("trace") and "target_std_error" in found:
        raise InvalidArgumentError("trace=True needs a fixed sample size; omit target_std_error")
    options = {} if options is None else options
    if not isinstance(options, Mapping):
        raise InvalidTypeError(f"options must be a mapping or None, got {options!r}")
    known = METHODS[method].options
    for name, value in options.items():
        if name not in known:
            takes = ", ".join(repr(name) for name in known) or "none"
            raise InvalidArgumentError(
                f"method {method!r} has no option {name!r}; its options: {takes}"
            )
        if value is not None:
            found[name] = _OPTIONS[name](f"options[{name!r}]", value)
    return Settings(method, event, given_length, **found)
