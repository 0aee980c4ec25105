"""Programs of the pages of the docs run as they stand."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[3] / "docs"


@pytest.mark.parametrize("page", ["coming-from.md"])
def test_the_programs_of_a_page_run(page, capsys):
    for package in ("gensim", "tomotopy", "anndata"):
        pytest.importorskip(package)
    programs = re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(), re.DOTALL)
    assert len(programs) > 5
    names: dict[str, object] = {}
    with warnings.catch_warnings():
        # Warnings that other packages give about themselves, and edges of grids of two sizes.
        warnings.simplefilter("ignore")
        for program in programs:
            exec(compile(program, page, "exec"), names)
    assert "nats a token" in capsys.readouterr().out
