"""Tables of the pages, from the JSON files beside them: no figure is written by hand.

``python -m benches.papers.pages`` writes them between the marks ``<!-- papers: NAME -->`` and
``<!-- end -->``. The tables of sizes keep pages from claiming what was not run.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from benches.papers import PAPERS
from benches.papers.figure import Row

PAGES = Path(__file__).resolve().parents[2] / "docs" / "papers"
_BLOCK = re.compile(r"(<!-- papers: ([\w-]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def kept(name: str) -> dict[str, Any]:
    """What a run wrote: its size, its time and its rows."""
    found: dict[str, Any] = json.loads((PAGES / f"{name}.json").read_text(encoding="utf-8"))
    return found


def table(head: list[str], lines: list[list[str]]) -> str:
    """A table of Markdown."""
    rows = [head, ["---"] * len(head), *lines]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def sizes(paper: str) -> str:
    """One line a figure: its command, the size of its data, and what the run took."""
    lines = []
    for figure in PAPERS[paper]:
        run = kept(f"{paper}-{figure.name}")
        seconds = run["processor seconds"]
        spent = "in pieces"
        if seconds is not None:
            spent = f"{seconds / 60:.0f} min" if seconds >= 90 else f"{seconds:.0f} s"
        lines.append([f"`{paper} {figure.name}`", run["size"], spent])
    return table(["command", "size", "processor time"], lines)


def pivot(rows: list[Row], index: str, columns: str, value: str, form: str) -> str:
    """One line a value of `index`, one column a value of `columns`."""
    head = list(dict.fromkeys(row[columns] for row in rows))
    cells = {(row[index], row[columns]): form.format(row[value]) for row in rows}
    return table(
        [index, *map(str, head)],
        [
            [str(name), *(cells.get((name, column), "") for column in head)]
            for name in dict.fromkeys(row[index] for row in rows)
        ],
    )


def by_method(name: str, value: str, n_samples: int, form: str) -> str:
    """Methods by collection, at one number of samples."""
    rows = [row for row in kept(name)["rows"] if row["samples"] == n_samples]
    return pivot(rows, "method", "corpus", value, form)


def errors_of_estimators() -> str:
    """Figures 1 and 2 of Buntine (2009) at their largest number of samples."""
    rows = [
        {**row, "gamma": gamma}
        for name, gamma in (("eltm-fig1", 0.2), ("eltm-fig2", 3))
        for row in kept(name)["rows"]
        if row["samples"] == 20_000
    ]
    return pivot(rows, "method", "gamma", "rms", "{:.2g}")


def numbers_named() -> str:
    """Figures 3 to 5 of Buntine (2009): the K that each method names, its lead, and its time."""
    groups: dict[tuple[str, int, str], list[Row]] = {}
    for row in kept("eltm-fig3-5")["rows"]:
        groups.setdefault((row["set"], row["trained on"], row["method"]), []).append(row)
    lines = []
    for (which, n_train, method), rows in groups.items():
        best, second = sorted(rows, key=lambda row: -row["nats a token"])[:2]
        lead = best["nats a token"] - second["nats a token"]
        error = math.hypot(best["error"], second["error"])
        seconds = sum(row["seconds"] for row in rows) / len(rows)
        ahead = f"{lead:.4f} ± {error:.4f}"
        lines.append([which, f"{n_train:,}", method, f"{best['K']}", ahead, f"{seconds:.2g}"])
    head = ["set", "trained on", "method", "K named", "ahead of the next, nats a token", "s"]
    return table(head, lines)


def ranks_named() -> str:
    """Figure 10: for how many tensors each method names the rank they were drawn with."""
    lines = []
    rows = kept("bam-fig10-ranks")["rows"]
    for a, method in dict.fromkeys((row["a"], row["method"]) for row in rows):
        found = [row for row in rows if (row["a"], row["method"]) == (a, method)]
        wrong = [row for row in found if row["rank"] != row["true rank"]]
        named = ", ".join(f"{row['true rank']}: {row['rank']}" for row in wrong)
        lead = max((row["ahead of the true one"] for row in wrong), default=0.0)
        right = f"{len(found) - len(wrong)} of {len(found)}"
        lines.append([f"{a:g}", method, right, f"{lead:.1f}", named])
    head = [
        "a",
        "method",
        "right",
        "largest lead of a wrong rank, nats",
        "true rank: wrong rank named",
    ]
    return table(head, lines)


def bounds_of_cora() -> str:
    """Figures 3 to 5 of the witness search by the number of steps, the middle prior."""
    rows = [row for row in kept("witness-fig3-5")["rows"] if row["lambda"] == 10]
    return pivot(rows, "quantity", "steps", "nats a token", "{:.4g}")


def seconds_of_estimators() -> str:
    """Nats a token, its error, and the time of each estimator of Buntine (2009)."""
    lines = [
        [row["method"], f"{row['nats a token']:.4f} ± {row['error']:.5f}", f"{row['seconds']:.2g}"]
        for row in kept("eltm-times")["rows"]
    ]
    return table(["method", "nats a token", "s"], lines)


def statements() -> str:
    """Section 3 of the allocation model: sums of probabilities, and differences between graphs."""
    lines = [
        [
            row["prior"],
            f"`{row['graph']}`",
            f"{row['ln of the sum - ln p(T)']:.0e}",
            f"{row['largest difference from the first']:.2g}",
        ]
        for row in kept("bam-section3")["rows"]
    ]
    head = ["prior", "graph", "ln of the sum - ln p(T)", "largest difference from the first"]
    return table(head, lines)


def perplexities() -> str:
    """Plug-in perplexity and topics in use, by prior and sweeps; none where it is infinite."""
    rows = [
        {**row, "cell": f"{row['perplexity'] or math.inf:.0f} ({row['topics in use']})"}
        for row in kept("pfa-perplexity")["rows"]
    ]
    return pivot(rows, "prior", "sweeps", "cell", "{}")


def every_document() -> str:
    """All documents of the collections: how many are exact, and the error of the mean."""
    lines = [
        [
            row["corpus"],
            *(f"{row[name]:,}" for name in ("documents", "fewer than 1e9 terms", "exact")),
            f"{row['nats a document']:.3f} ± {row['error']:.4f}",
            f"{row['seconds']:.2g}",
        ]
        for row in kept("l2r-all")["rows"]
    ]
    head = ["collection", "documents", "fewer than 1e9 terms", "exact", "nats a document", "s"]
    return table(head, lines)


TABLES: dict[str, Callable[[], str]] = {
    **{f"sizes-{paper}": partial(sizes, paper) for paper in PAPERS},
    "l2r-fig2": partial(by_method, "l2r-fig2", "KL", 10_000, "{:.1e}"),
    "l2r-fig2-all": partial(by_method, "l2r-fig2-all", "largest |ln p̂ - ln p|", 1_000, "{:.2g}"),
    "l2r-all": every_document,
    "eltm-fig1-2": errors_of_estimators,
    "eltm-times": seconds_of_estimators,
    "eltm-fig3-5": numbers_named,
    "pfa-perplexity": perplexities,
    "bam-section3": statements,
    "bam-fig10-ranks": ranks_named,
    "witness-fig3-5": bounds_of_cora,
}


def filled(text: str) -> str:
    """The page with its tables written anew."""
    return _BLOCK.sub(lambda match: match[1] + TABLES[match[2]]() + match[3], text)


def main() -> None:
    """Fill every page."""
    for page in sorted(PAGES.glob("*.md")):
        page.write_text(filled(page.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
