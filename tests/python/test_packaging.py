"""What the package ships: licences of the crates that are compiled into it, and its extras."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
SHIPPED = (ROOT / "THIRDPARTY.yml").read_text(encoding="utf-8")


def test_licences_are_of_the_locked_versions():
    pattern = r"- package_name: (\S+)\n  package_version: (\S+)"
    named = set(re.findall(pattern, SHIPPED))
    packages = tomllib.loads((ROOT / "Cargo.lock").read_text())["package"]
    assert named <= {(package["name"], package["version"]) for package in packages}
    assert {"pyo3", "numpy", "rayon", "rand", "signal-hook"} <= {name for name, _ in named}


def test_every_text_is_there():
    assert SHIPPED.count("  - license:") == SHIPPED.count("    text:")
    assert "NOT FOUND" not in SHIPPED


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
