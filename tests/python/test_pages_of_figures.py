"""Tables of the pages are those of the records: none is written by hand."""

import json
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "benches"))

import record  # noqa: E402

PAGES = record.pages()
RECORDS = sorted(record.RECORDS.glob("*.json"))
WRITTEN = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]

# Tables of a record or of a run, and outputs of programs, which tests of their own compare.
_MADE = re.compile(r"<!-- (?:record|papers): .*?<!-- end -->|^```.*?^```", re.DOTALL | re.MULTILINE)
_FIGURE = re.compile(r"[+-]?\d[\d,.]*(e[+-]?\d+)?\s*(%|s|ms|ns|nats|GiB|MB|times)?")


def rows_with_figures(text):
    """Rows of tables outside the records that have a cell with nothing but a figure."""
    rows = [line for line in _MADE.sub("", text).splitlines() if line.startswith("|")]
    cells = {row: [cell.strip() for cell in row.strip("|").split("|")] for row in rows}
    return [row for row in rows if any(map(_FIGURE.fullmatch, cells[row]))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_tables_are_those_of_the_records(page):
    assert record.filled(page.read_text(encoding="utf-8")) == page.read_text(encoding="utf-8")


def test_every_record_is_on_a_page():
    text = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    names = {path.stem for path in RECORDS}
    assert names == set(re.findall(r"<!-- record: ([\w-]+)", text))


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.stem)
def test_the_command_of_a_record_names_a_part_of_a_bench(path):
    _, program, *options = json.loads(path.read_text())["command"].split()
    if program.startswith("benches/") and options:
        part = options[0].replace("-", "_")
        assert f"\ndef {part}(" in (ROOT / program).read_text(encoding="utf-8")


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.stem)
def test_no_record_is_older_than_the_code_that_it_names(path):
    """Where a golden value of a method has changed, its tables are made anew or dropped."""
    kept = json.loads(path.read_text())
    assert re.fullmatch(r"[0-9a-f]{10}\+?", kept["commit"])
    assert kept["golden"] == record.golden(kept["golden"]), kept["command"]


def test_records_rest_on_what_they_measure():
    """Fuzzing and faults have no numbers of a method; all others name golden values."""
    without = {path.stem for path in RECORDS if not json.loads(path.read_text())["golden"]}
    assert without == {"fuzz", "faults"}


def test_an_older_record_is_found(tmp_path, monkeypatch):
    values = json.loads(record.GOLDEN.read_text())
    kept = record.golden(["nmf, vb"])
    values["nmf, vb"][0] += 1e-9
    (tmp_path / "golden.json").write_text(json.dumps(values))
    monkeypatch.setattr(record, "GOLDEN", tmp_path / "golden.json")
    assert record.golden(["nmf, vb"]) != kept


@pytest.mark.parametrize("page", WRITTEN, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_table_of_figures_is_written_by_hand(page):
    assert rows_with_figures(page.read_text(encoding="utf-8")) == []


def test_a_table_written_by_hand_is_found():
    by_hand = "| in memory | 80 ns |\n"
    made = f"<!-- record: x -->\n{by_hand}<!-- end -->\n```text\n{by_hand}```\n"
    assert rows_with_figures(made + "| `auto` | up to 30 tokens |\n") == []
    assert rows_with_figures(made + by_hand) == [by_hand.strip()]


@pytest.mark.parametrize("page", WRITTEN, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_formula_is_taken_for_emphasis(page):
    text = _MADE.sub("", page.read_text(encoding="utf-8"))
    prose = "\n".join(line for line in text.splitlines() if not line.startswith("    "))
    # A bracket before an underscore lets Markdown begin or end slanted letters there.
    assert re.findall(r"[)\]}]_[{\w]", re.sub(r"`[^`]*`", "", prose)) == []
