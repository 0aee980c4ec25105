"""Errors name extras that the package has."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_errors_name_extras_of_the_package():
    extras = set(
        tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    )
    ways = (
        r'polyabayes\[(?P<a>\w+)\]|need\("\w+", "(?P<b>\w+)"|import_optional\([^()]*"(?P<c>\w+)"\)'
    )
    found = {
        found[found.lastgroup]
        for path in (ROOT / "python" / "polyabayes").rglob("*.py")
        for found in re.finditer(ways, path.read_text())
        if found.lastgroup
    }
    assert len(found) > 5
    assert found <= extras
