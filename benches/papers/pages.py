"""Tables of the pages, from the JSON files beside them: no figure is written by hand.

``python -m benches.papers.pages`` writes them between the marks ``<!-- papers: NAME -->`` and
``<!-- end -->``. Tables of runs name every setting that is not the paper's.
"""

import json
import math
import re
from functools import cache
from typing import Any

from benches.papers import PAPERS
from benches.papers.figure import Row
from benches.record import ROOT, shown

PAGES = ROOT / "docs" / "papers"
_BLOCK = re.compile(r"(<!-- papers: ([\w-]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def kept(name: str) -> dict[str, Any]:
    """What a run wrote: its settings, commit, time and rows."""
    return json.loads((PAGES / f"{name}.json").read_text(encoding="utf-8"))


def table(head: list[str], lines: list[list[str]]) -> str:
    """A table of Markdown."""
    rows = [head, ["---"] * len(head), *lines]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def rows_of(name: str, only: dict[str, Any]) -> list[Row]:
    """Rows of a record with these values."""
    return [row for row in kept(name)["rows"] if all(row[key] == only[key] for key in only)]


def runs(paper: str) -> str:
    """One line a run: its command, the place in the paper, its settings, time and commit."""
    lines = []
    for figure in PAPERS[paper]:
        run = kept(f"{paper}-{figure.name}")
        place = figure.published["in"]
        how = "; ".join(figure.differences(run["settings"])) or "as published"
        seconds = run["processor seconds"]
        spent = "in pieces" if seconds is None else f"{seconds:,.0f} s"
        made = f"{run['date']}, `{run['commit']}`"
        settings = how if place else "a run of ours"
        lines.append([f"`{paper} {figure.name}`", place, settings, spent, made])
    return table(["command", "in the paper", "settings", "processor time", "made"], lines)


def columns(name: str, wanted: dict[str, str] | None = None, **only: Any) -> str:
    """Columns of a record, in their formats or all as they are, of the rows with these values."""
    rows = rows_of(name, only)
    formats = dict.fromkeys(rows[0], "") if wanted is None else wanted
    cells = [shown([row[key] for key in formats], list(formats.values())) for row in rows]
    return table(list(formats), cells)


def pivot(name: str, index: str, across: str, value: str, form: str, **only: Any) -> str:
    """One line a value of `index`, one column a value of `across`."""
    rows = rows_of(name, only)
    head = list(dict.fromkeys(row[across] for row in rows))
    lines: dict[Any, dict[Any, str]] = {}
    for row in rows:
        lines.setdefault(row[index], {})[row[across]] = shown([row[value]], [form])[0]
    cells = [[str(line), *(own.get(x, "") for x in head)] for line, own in lines.items()]
    return table([index, *map(str, head)], cells)


def by_length() -> str:
    """Figure 1 of Capdevila et al.: the KL of L2R and of direct sampling, by mean length."""
    found: dict[str, dict[str, Row]] = {}
    for row in kept("l2r-fig2")["rows"]:
        if row["samples"] == 10_000:
            found.setdefault(row["corpus"], {})[row["method"]] = row
    lines = []
    for name, rows in sorted(found.items(), key=lambda item: item[1]["direct"]["mean length"]):
        direct = rows["direct"]["KL"]
        ratios = [f"{direct / rows[f'L2R, {k}']['KL']:.0f}" for k in ("one draw", "one chain")]
        lines.append([name, f"{rows['direct']['mean length']:.1f}", *ratios])
    head = ["collection", "mean length"]
    return table([*head, "KL of direct / of L2R, one draw", "of direct / of one chain"], lines)


def numbers_named() -> str:
    """Figures 3 to 5 of Buntine (2009): the K that each method names, its lead, and its time."""
    groups: dict[tuple[int, str], list[Row]] = {}
    for row in kept("eltm-fig3-5")["rows"]:
        groups.setdefault((row["trained on"], row["method"]), []).append(row)
    lines = []
    for (n_train, method), rows in groups.items():
        best, second = sorted(rows, key=lambda row: -row["nats per token"])[:2]
        lead = best["nats per token"] - second["nats per token"]
        error = math.hypot(best["error"], second["error"])
        named = f"{best['K']}, then {second['K']}"
        lines.append([f"{n_train:,}", method, named, f"{lead:.4f} ± {error:.4f}"])
    return table(["trained on", "method", "K named", "lead, nats per token"], lines)


PLAIN, SHORT = ".4g", ".2g"


@cache
def tables() -> dict[str, str]:
    """Tables by their marks."""
    return {
        **{f"runs-{paper}": runs(paper) for paper in PAPERS},
        "l2r-fig1": by_length(),
        "l2r-fig2": pivot("l2r-fig2", "method", "corpus", "KL", ".1e", samples=10_000),
        "l2r-fig2-all": pivot("l2r-fig2-all", "method", "corpus", "largest |ln p̂ - ln p|", SHORT,
                              samples=1_000),
        "l2r-algorithm1": columns("l2r-algorithm1", {
            "method": "", "samples": ",", "mean of ln p̂ - ln p": "+.4f", "error": ".4f",
            "KL": ".1e"}),
        "eltm-table1": columns("eltm-table1", {
            "gamma": "", "method": "", "mean": ".4f", "published mean": ".4f", "t": ".1f"}),
        "eltm-times": columns("eltm-times", {
            "method": "", "samples": ",", "nats per token": ".4f", "error": ".5f",
            "seconds": ".1f"}),
        "eltm-fig3-5": numbers_named(),
        "pfa-perplexity": pivot("pfa-perplexity", "prior", "sweeps", "perplexity", ".0f"),
        "bam-table1": columns("bam-table1", {
            "method": "", "S": "", "λ, θ": "", "climbs": "", "reached": ",.1f", "iterations": ""}),
        "bam-section3": columns("bam-section3", {
            "prior": "", "graph": "", "ln of the sum - ln p(T)": ".0e",
            "largest difference from the first": SHORT}),
        "bam-example32": pivot("bam-example32", "prior", "graph", "ln evidence", ".3f"),
        "bam-fig12": pivot("bam-fig12", "rank", "a", "ahead of the complete graph", ",.0f",
                           method="vb"),
        "bam-fig15": pivot("bam-fig15", "line", "rank", "ln evidence", ",.0f", a=0.001),
        "bam-fig15-1": pivot("bam-fig15", "line", "rank", "ln evidence", ",.0f", a=1.0),
        "bam-fig16-sparsity": pivot("bam-fig16", "method", "a", "sparsity", ".2f"),
        "bam-fig16-loss": pivot("bam-fig16", "method", "a", "loss", ".0f"),
        "bam-fig16-KL": pivot("bam-fig16", "method", "a", "KL", ",.0f"),
        "witness-fig2": columns("witness-fig2"),
        "witness-two-modes": pivot("witness-two-modes", "groups of women", "kinds of event",
                                   "posterior", "", **{"lambda": None}),
        "witness-two-modes-lambda": columns("witness-two-modes", {
            "lambda": "", "ln evidence": ",.2f", "posterior": ""}, **{"groups of women": None}),
        "witness-fig3-5": pivot("witness-fig3-5", "quantity", "steps", "nats per token", PLAIN,
                                **{"lambda": 10}),
        "witness-fig4-5": columns("witness-fig4-5", {
            "fold": "", "lambda": "", "K of largest posterior": "",
            "ln posterior of it, lower": ",.0f", "ln posterior of it, upper": ".2g",
            "best K by test score": "", "best single LDA, nats per token": ".4f",
            "average over sizes, nats per token": ".4f"}),
    }  # fmt: skip


def filled(text: str) -> str:
    """The page with its tables written anew."""
    return _BLOCK.sub(lambda match: match[1] + tables()[match[2]] + match[3], text)


def main() -> None:
    """Fill every page, and draw its pictures anew."""
    for figure in (figure for figures in PAPERS.values() for figure in figures):
        record = PAGES / f"{figure.paper}-{figure.name}.json"
        if record.exists():
            figure.draw(json.loads(record.read_text())["rows"], record.with_suffix(".png"))
    for page in sorted(PAGES.glob("*.md")):
        page.write_text(filled(page.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
