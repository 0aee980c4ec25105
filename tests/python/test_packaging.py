"""What the package ships: licences of the crates that are compiled into it, and its extras."""

import re
import sys
import tomllib
from pathlib import Path

import pytest

import polyabayes as pb
from helpers.small_models import COUNTS, lda

ROOT = Path(__file__).parents[2]
CHAINS = pb.sample_chains(pb.LatentDirichletAllocation(2), COUNTS, 2, random_state=0)
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
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = set(project["optional-dependencies"])
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


@pytest.mark.parametrize(
    ("package", "remedy", "call"),
    [
        ("arviz", r"polyabayes\[diagnostics\]", CHAINS.summary),
        ("arviz", r"polyabayes\[diagnostics\]", CHAINS.to_inference_data),
        ("matplotlib.pyplot", r"polyabayes\[plot\]", lambda: pb.plotting.plot_topics(lda())),
        ("networkx", r"polyabayes\[graph\]", lambda: pb.AllocationModel.nmf(2).graph.to_networkx()),
        ("pyLDAvis", "pip install pyLDAvis", lambda: pb.interop.to_pyldavis(lda(), COUNTS)),
        (
            "tqdm.auto",
            r"polyabayes\[progress\]",
            lambda: pb.log_likelihood(lda(), COUNTS, progress=True),
        ),
    ],
)
def test_a_missing_package_is_asked_for_by_its_extra(package, remedy, call, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(pb.exceptions.MissingDependencyError, match=remedy):
        call()
