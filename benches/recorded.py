"""Tables of figures: printed by rows, kept as JSON, put into pages by ``record.py fill``."""

from __future__ import annotations

import json
import os
import platform
import re
import time
from pathlib import Path
from typing import Any

import polyabayes as pb

RECORDS = Path(__file__).resolve().parent / "records"
# Pieces of long runs, from which tables are made.
RUNS = Path(os.environ.get("POLYABAYES_RUNS", RECORDS / "runs"))


class Table:
    """Figures under named columns, each with the format in which it is shown."""

    def __init__(self, name: str, command: str, columns: dict[str, str]) -> None:
        self.name, self.command, self.columns = name, command, columns
        self.rows: list[list[Any]] = []
        print(f"\n{name}: " + " | ".join(columns), flush=True)

    def add(self, *figures: Any) -> None:
        """Print a row and keep it."""
        row = [figure.item() if hasattr(figure, "item") else figure for figure in figures]
        self.rows.append(row)
        print(" | ".join(shown(row, list(self.columns.values()))), flush=True)


def shown(row: list[Any], formats: list[str]) -> list[str]:
    """Figures as they stand in a page; None is an empty cell."""
    pairs = zip(row, formats, strict=True)
    return ["" if figure is None else format(figure, form) for figure, form in pairs]


def processor() -> str:
    """Name of the processor, as far as the system tells it."""
    cpuinfo = Path("/proc/cpuinfo")
    names = re.findall(r"model name\s*: (.*)", cpuinfo.read_text()) if cpuinfo.exists() else []
    return names[0] if names else platform.processor() or platform.machine()


def machine() -> dict[str, Any]:
    """Machine, software, date and load, which every figure is shown with."""
    return {
        "machine": f"{processor()}, {os.cpu_count()} cores",
        "system": platform.platform(),
        "python": platform.python_version(),
        "polyabayes": pb.__version__,
        "date": time.strftime("%Y-%m-%d"),
        "load": round(os.getloadavg()[0], 1),
    }


def told(pieces: list[dict[str, Any]]) -> str:
    """When, on which machines and by which versions the pieces of a table were made."""
    dates = sorted({piece["date"] for piece in pieces})
    span = dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"
    machines, versions = (
        ", ".join(sorted({piece[name] for piece in pieces})) for name in ("machine", "polyabayes")
    )
    return f"{span}, {machines}; polyabayes {versions}."


def save(table: Table, folder: Path = RECORDS, *, note: str | None = None) -> None:
    """Keep a table in a file of its own; a note stands for machine and date of several runs."""
    made = machine() if note is None else {"note": note}
    record = made | {
        "command": table.command,
        "columns": table.columns,
        "rows": table.rows,
    }
    text = json.dumps(record, indent=1, ensure_ascii=False)
    # A row a line, so that a difference shows which changed.
    text = re.sub(r"\n   +|\n  (?=\])", " ", text)
    (folder / f"{table.name}.json").write_text(text + "\n")


def page_table(record: dict[str, Any]) -> str:
    """A table as Markdown, with the command that prints it, the machine and the date."""
    titles, formats = list(record["columns"]), list(record["columns"].values())
    sides = ["---" if form.endswith("s") or not form else "---:" for form in formats]
    rows = [titles, sides, *(shown(row, formats) for row in record["rows"])]
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join([*lines, "", f"`{record['command']}`; {provenance(record)}", ""])


def provenance(record: dict[str, Any]) -> str:
    """When and on which machine a record was made, or the note of one made in several parts."""
    if "note" in record:
        return str(record["note"])
    return (
        f"{record['date']}, {record['machine']}, load {record['load']}; "
        f"polyabayes {record['polyabayes']}."
    )
