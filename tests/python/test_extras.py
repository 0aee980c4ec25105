"""Errors name extras that the package has."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_errors_name_extras_of_the_package():
    extras = set(
        tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    )
    named = {
        (path.name, extra)
        for path in (ROOT / "python" / "polyabayes").rglob("*.py")
        for extra in re.findall(r"polyabayes\[(\w+)\]|need\(\"\w+\", \"(\w+)\"", path.read_text())
    }
    found = {extra for _, pair in named for extra in pair if extra}
    assert len(found) > 5
    assert found <= extras
