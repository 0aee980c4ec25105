"""Nothing that is computed changes unseen: every value as golden_cases.py once wrote it.

Elementary functions of the C library and of NumPy may differ in the last bit between machines.
Where they are those of the machine that wrote the values, all must be equal bit for bit; elsewhere
numbers may differ by 1e-12 of their size, and all else must be equal.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest

from golden_cases import FOLDER, GROUPS, Case, compute, elementary_functions

ROUNDING = 1e-12


@cache
def kept(group: str) -> dict[str, Any]:
    values: dict[str, Any] = json.loads((FOLDER / f"{group}.json").read_text())
    return values


@cache
def is_same_machine() -> bool:
    return elementary_functions() == kept("machine")


def differences(found: Any, expected: Any, rounding: float, at: str = "") -> Iterator[str]:
    """Every place where both differ; NaN equals NaN."""
    if isinstance(expected, dict) and isinstance(found, dict) and found.keys() == expected.keys():
        for name, item in expected.items():
            yield from differences(found[name], item, rounding, f"{at}[{name!r}]")
    elif isinstance(expected, list) and isinstance(found, list) and len(found) == len(expected):
        for i, item in enumerate(expected):
            yield from differences(found[i], item, rounding, f"{at}[{i}]")
    elif isinstance(expected, float) and isinstance(found, float):
        same = found.hex() == expected.hex()  # signs of zero count, too
        if not same and not (
            rounding and math.isclose(found, expected, rel_tol=rounding, abs_tol=rounding)
        ):
            yield f"{at}: {found!r}, was {expected!r}"
    elif type(found) is not type(expected) or found != expected:
        yield f"{at}: {found!r}, was {expected!r}"


CASES = [
    pytest.param(group, name, case, id=f"{group}: {name}")
    for group, cases in GROUPS.items()
    for name, case in cases()
]


@pytest.mark.parametrize(("group", "name", "case"), CASES)
def test_value_is_the_one_kept(group: str, name: str, case: Case) -> None:
    rounding = 0.0 if is_same_machine() else ROUNDING
    changed = list(differences(compute(case), kept(group)[name], rounding))
    assert not changed, f"{len(changed)} changes, first:\n" + "\n".join(changed[:10])


@pytest.mark.parametrize("group", GROUPS)
def test_every_value_kept_has_its_case(group: str) -> None:
    assert list(kept(group)) == [name for name, _ in GROUPS[group]()]


def test_differences_are_found() -> None:
    expected = {"a": [1.0, math.nan, 0.0], "b": "x", "c": 1}
    assert not list(differences({"a": [1.0, math.nan, 0.0], "b": "x", "c": 1}, expected, 0.0))
    near = {"a": [1.0 + 2**-52, math.nan, -0.0], "b": "x", "c": 1}
    assert len(list(differences(near, expected, 0.0))) == 2
    assert not list(differences(near, expected, ROUNDING))
    for other in (
        {"a": [1.0, 2.0, 0.0], "b": "x", "c": 1},
        {"a": [1.0, math.nan], "b": "x", "c": 1},
        {"a": [1.0, math.nan, 0.0], "b": "y", "c": 1},
        {"a": [1.0, math.nan, 0.0], "b": "x", "c": True},
        {"a": [1.0, math.nan, 0.0], "b": "x"},
    ):
        assert len(list(differences(other, expected, ROUNDING))) == 1
