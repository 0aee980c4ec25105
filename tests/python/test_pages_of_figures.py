"""Tables of the pages are those of the records: none is written by hand."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "benches"))

import record  # noqa: E402

PAGES = record.pages()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_tables_are_those_of_the_records(page):
    assert record.filled(page.read_text(encoding="utf-8")) == page.read_text(encoding="utf-8")


def test_every_table_has_a_record():
    text = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    cases = json.loads((record.RECORDS / "base.json").read_text())["cases"]
    for name in re.findall(r"<!-- record: ([\w-]+) -->", text):
        kept = (record.RECORDS / f"{name}.json").exists()
        assert kept or any(case.startswith(name) for case in cases), name


def test_every_record_is_on_a_page():
    text = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    names = {path.stem for path in record.RECORDS.glob("*.json")} - {"base"}
    assert all(f"<!-- record: {name} -->" in text for name in names)


def test_an_edited_figure_is_put_back():
    text = next(page for page in PAGES if page.name == "benchmarks.md").read_text(encoding="utf-8")
    assert record.filled(text.replace("| start: ", "| begin: ")) == text
