"""The figures of the papers, in their small form, are those that docs/papers/small keeps."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from benches.papers import PAPERS, pages  # noqa: E402
from benches.papers.figure import DATA, Figure, Size  # noqa: E402

# Wall time, and what only repeats what another column says.
NOT_COMPARED = ("seconds",)
ROUNDING = 1e-6
KEPT = ROOT / "docs/papers/small"

FIGURES = [figure for figures in PAPERS.values() for figure in figures]


def differences(found: dict[str, Any], kept: dict[str, Any]) -> list[str]:
    """Columns that differ by more than five of their errors, or than rounding without one."""
    errors = [row["error"] for row in (found, kept) if row.get("error") is not None]
    slack = 5 * math.hypot(*errors) if errors else 0.0
    wrong = []
    for name, value in kept.items():
        if name in NOT_COMPARED or name == "error":
            continue
        if isinstance(value, float) and isinstance(found[name], float):
            if not math.isclose(found[name], value, rel_tol=ROUNDING, abs_tol=slack + ROUNDING):
                wrong.append(f"{name}: {found[name]}, was {value}")
        elif found[name] != value:
            wrong.append(f"{name}: {found[name]}, was {value}")
    return wrong


@pytest.mark.slow
@pytest.mark.skipif(not DATA.is_dir(), reason=f"no data at {DATA}")
@pytest.mark.filterwarnings("ignore::polyabayes.exceptions.PolyabayesWarning")
@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: f"{figure.paper}-{figure.name}")
def test_small_form_is_the_one_kept(figure: Figure) -> None:
    kept = json.loads((KEPT / f"{figure.paper}-{figure.name}.json").read_text())
    found = figure.rows(Size.SMALL)
    assert len(found) == len(kept["rows"])
    wrong = [differences(*rows) for rows in zip(found, kept["rows"], strict=True)]
    assert not any(wrong), next(w for w in wrong if w)


def test_tables_are_those_of_the_runs() -> None:
    texts = [page.read_text(encoding="utf-8") for page in pages.PAGES.glob("*.md")]
    for text in texts:
        assert pages.filled(text) == text
    for name in pages.TABLES:
        assert sum(f"<!-- papers: {name} -->" in text for text in texts) == 1, name


@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: f"{figure.paper}-{figure.name}")
def test_files_beside_the_pages_are_of_the_declared_sizes(figure: Figure) -> None:
    name = f"{figure.paper}-{figure.name}"
    kept = json.loads((pages.PAGES / f"{name}.json").read_text())
    assert kept["size"] in ("small", "published", f"middle: {figure.middle}")
    assert json.loads((KEPT / f"{name}.json").read_text())["size"] == "small"
    assert (pages.PAGES / f"{name}.png").exists() == (figure.x is not None)
