"""Figures with the commit that made them: kept as JSON, compared, and put into the pages.

``record.py run -o RECORD.json`` measures processor seconds of what users call on one thread,
``record.py compare BASE.json NEW.json`` prints their ratios, ``record.py kernels`` counts the
instructions of the kernels. ``record.py fill`` writes the tables of ``benches/records`` between the
marks ``<!-- record: NAME -->`` and ``<!-- end -->`` of the pages, with machine and date: no figure
there is written by hand. ``NAME, 10 by COLUMN`` shows the ten rows with the largest values of a
column. Other programs keep their tables by :class:`Table` and :func:`save`.
"""

import argparse
import hashlib
import json
import os
import platform
import re
import resource
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import polyabayes as pb

ROOT = Path(__file__).resolve().parents[1]
RECORDS = ROOT / "benches" / "records"
# Real corpora.
DATA = Path(os.environ.get("POLYABAYES_DATA", ROOT.parent / "shared" / "data"))
# Pieces of long runs, from which tables are made.
RUNS = Path(os.environ.get("POLYABAYES_RUNS", RECORDS / "runs"))
# Values that seeds give on small inputs: where one changes, the records of its method are old.
GOLDEN = ROOT / "tests" / "golden.json"
# Load above which times are not shown.
HEAVY_LOAD = 3.0
# Repetitions of a case, of which the median counts, and seconds after which no more are made.
REPEATS, ENOUGH = 9, 5.0
_BLOCK = re.compile(
    r"(<!-- record: ([\w-]+)(?:, (\d+) by ([^>]+))? -->\n).*?(<!-- end -->)", re.DOTALL
)
_TIMES = re.compile(r"(?:^|[ ,:(])(?:s|ms|seconds|minutes|million tokens)\b")

Case = Callable[[], object]


class Table:
    """Figures under named columns, each with the format in which it is shown.

    ``rests_on`` names the golden values of the methods that it measures.
    """

    def __init__(
        self, name: str, command: str, columns: dict[str, str], rests_on: Iterable[str] = ()
    ) -> None:
        self.name, self.command, self.columns = name, command, columns
        self.rests_on = tuple(rests_on)
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


def texts(corpus: pb.Corpus) -> list[list[str]]:
    """Documents as lists of words."""
    words = np.asarray(corpus.vocabulary)
    return [np.repeat(words[row.indices], row.data).tolist() for row in corpus.counts]


def processor() -> str:
    """Name of the processor, as far as the system tells it."""
    cpuinfo = Path("/proc/cpuinfo")
    names = re.findall(r"model name\s*: (.*)", cpuinfo.read_text()) if cpuinfo.exists() else []
    return names[0] if names else platform.processor() or platform.machine()


def commit() -> str:
    """The commit that a figure is made with; a plus says that files were changed since."""
    found = [
        subprocess.run(
            ["git", "-C", str(ROOT), *command.split()], capture_output=True, text=True, check=True
        ).stdout.strip()
        for command in ("rev-parse --short=10 HEAD", "status --porcelain -- src python")
    ]
    return found[0] + ("+" if found[1] else "")


def machine() -> dict[str, Any]:
    """Commit, machine, software, date and load, which every figure is shown with."""
    return {
        "commit": commit(),
        "machine": f"{processor()}, {os.cpu_count()} cores",
        "system": platform.platform(),
        "python": platform.python_version(),
        "polyabayes": pb.__version__,
        "date": time.strftime("%Y-%m-%d"),
        "load": round(os.getloadavg()[0], 1),
    }


def golden(cases: Iterable[str]) -> dict[str, str]:
    """Digests of golden values, by which a record knows that it is older than the code."""
    values = json.loads(GOLDEN.read_text())
    return {case: hashlib.sha256(repr(values[case]).encode()).hexdigest()[:12] for case in cases}


def kept(name: str) -> list[dict[str, Any]]:
    """Pieces of long work, in the order in which they were made."""
    path = RUNS / f"{name}.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def keep(name: str, piece: dict[str, Any]) -> dict[str, Any]:
    """Add a piece to those of long work, with commit, machine and date."""
    piece = machine() | piece
    RUNS.mkdir(parents=True, exist_ok=True)
    with (RUNS / f"{name}.jsonl").open("a") as file:
        print(json.dumps(piece), file=file)
    return piece


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
    made = machine() if note is None else {"commit": commit(), "note": note}
    record = made | {
        "command": table.command,
        "golden": golden(table.rests_on),
        "columns": table.columns,
        "rows": table.rows,
    }
    text = json.dumps(record, indent=1, ensure_ascii=False)
    # A row a line, so that a difference shows which changed.
    text = re.sub(r"\n   +|\n  (?=\])", " ", text)
    (folder / f"{table.name}.json").write_text(text + "\n")


def largest(record: dict[str, Any], n_rows: int, column: str) -> dict[str, Any]:
    """A record with the rows that have the largest values of a column, in their order."""
    place, rows = list(record["columns"]).index(column), record["rows"]
    order = sorted(range(len(rows)), key=lambda row_ix: -rows[row_ix][place])
    kept = [rows[row_ix] for row_ix in sorted(order[:n_rows])]
    return record | {"rows": kept, "of": len(rows)}


def page_table(record: dict[str, Any]) -> str:
    """A table as Markdown, with the command that prints it, commit, machine and date.

    Times that were measured under load are left out.
    """
    is_loaded = record.get("load") is None or record["load"] > HEAVY_LOAD
    kept = [
        ix for ix, title in enumerate(record["columns"]) if not (is_loaded and _TIMES.search(title))
    ]
    titles = [list(record["columns"])[ix] for ix in kept]
    formats = [list(record["columns"].values())[ix] for ix in kept]
    sides = ["---" if form.endswith("s") or not form else "---:" for form in formats]
    rows = [shown([row[ix] for ix in kept], formats) for row in record["rows"]]
    lines = ["| " + " | ".join(row) + " |" for row in (titles, sides, *rows)]
    left_out = f" ({len(rows)} of {record['of']} rows)" if "of" in record else ""
    return "\n".join([*lines, "", f"`{record['command']}`{left_out}; {provenance(record)}", ""])


def provenance(record: dict[str, Any]) -> str:
    """The commit, the day and the machine, or the note of a record made in several parts."""
    if "note" in record:
        return f"commit `{record['commit']}`; {record['note']}"
    return f"commit `{record['commit']}`, {record['date']}, {record['machine']}."


def documents() -> Iterator[tuple[str, Case]]:
    """Scores of documents drawn from the model."""
    for n_topics, length in ((5, 40), (50, 100), (50, 500)):
        data = pb.datasets.make_lda_corpus(
            20, 1000, n_topics, document_length=length, random_state=0
        )
        model = pb.LatentDirichletAllocation.from_parameters(
            doc_topic_prior=data.doc_topic_prior, topic_word=data.topic_word
        )
        for method in ("auto", "annealed", "smc-lookahead"):
            yield (
                f"score-{method}: 20 documents, K = {n_topics}, {length} tokens",
                lambda model=model, corpus=data.corpus, method=method: pb.log_likelihood(
                    model, corpus, method, n_jobs=1, random_state=0
                ),
            )


def training() -> Iterator[tuple[str, Case]]:
    """Fits to documents of 100 tokens."""
    corpus = pb.datasets.make_lda_corpus(1000, 2000, 20, random_state=0).corpus
    options: dict[str, Any] = {"max_iter": 20, "n_jobs": 1, "random_state": 0}
    fits = {
        "LDA, Gibbs": pb.LatentDirichletAllocation(50, learn_priors=False, **options),
        "LDA, EM": pb.LatentDirichletAllocation(50, fit_method="em", learn_priors=False, **options),
        "PFA, beta-gamma-gamma": pb.PoissonFactorAnalysis(50, **options),
        "NMF": pb.PoissonFactorAnalysis(50, prior="nmf", **options),
    }
    for name, model in fits.items():
        yield f"fit: {name}, 100,000 tokens, K = 50, 20 sweeps", lambda m=model: m.fit(corpus)


def evidence() -> Iterator[tuple[str, Case]]:
    """Evidence of a table of 20 x 20."""
    counts = np.random.default_rng(0).poisson(
        np.outer(*np.random.default_rng(1).gamma(1, 1, (2, 20)))
    )
    model = pb.AllocationModel.nmf(4)
    for method, options in {
        "smc": {"n_particles": 1000},
        "smc-lookahead": {"n_particles": 1000},
        "tempered": {"n_samples": 256},
        "vb": {},
    }.items():
        yield (
            f"evidence-{method}: 20 x 20, {counts.sum()} tokens, K = 4",
            lambda method=method, options=options: model.log_evidence(
                counts, method, n_jobs=1, random_state=0, **options
            ),
        )


def start_up() -> Iterator[tuple[str, Case]]:
    """Processes, from their start to their end."""
    programs = {
        "polyabayes --version": ["-m", "polyabayes", "--version"],
        "import polyabayes": ["-c", "import polyabayes"],
        "first use of a model": ["-c", "import polyabayes; polyabayes.LatentDirichletAllocation"],
    }
    for name, program in programs.items():
        yield (
            f"start: {name}",
            lambda program=program: subprocess.run(
                [sys.executable, *program], check=True, stdout=subprocess.DEVNULL
            ),
        )


def processor_seconds() -> float:
    """Seconds of this process and of those that it has waited for."""
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def measured(case: Case) -> dict[str, float]:
    """Median and quartiles of repetitions, the first of which is not counted."""
    case()
    seconds: list[float] = []
    while len(seconds) < REPEATS and (len(seconds) < 3 or sum(seconds) < ENOUGH):
        start = processor_seconds()
        case()
        seconds.append(processor_seconds() - start)
    low, middle, high = np.quantile(seconds, [0.25, 0.5, 0.75])
    return {"seconds": middle, "low": low, "high": high, "n": len(seconds)}


def run(output: Path) -> None:
    """Measure everything; what the estimates say of themselves is not the question here."""
    warnings.simplefilter("ignore", pb.exceptions.PolyabayesWarning)
    cases = {}
    for group in (start_up, documents, training, evidence):
        for name, case in group():
            cases[name] = measured(case)
            print(f"{cases[name]['seconds']:10.4f} s  {name}", flush=True)
    record = machine() | {"cases": cases}
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(json.dumps(record, indent=1) + "\n")


def kernels() -> None:
    """Count the instructions of every kernel, which no load changes."""
    columns = {"kernel": "s", "million instructions": ",.1f"}
    table = Table("kernels", "python benches/record.py kernels", columns)
    done = subprocess.run(
        ["cargo", "bench", "--quiet", "--package", "polyabayes-benches", "--bench", "kernels"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    for line in done.stdout.splitlines():
        name, _, count = line.partition("\t")
        table.add(name, int(count) / 1e6)
    save(table)


def compare(base: Path, new: Path) -> None:
    """Print the ratio of the times of every case that both records have."""
    before, after = (json.loads(path.read_text()) for path in (base, new))
    for name, record in (("base", before), ("new", after)):
        print(f"{name:5} {record['date']}, {record['machine']}, load {record['load']}")
    for name, found in after["cases"].items():
        kept = before["cases"].get(name)
        if kept is None:
            print(f"{'new':>7}  {name}")
            continue
        apart = found["low"] > kept["high"] or found["high"] < kept["low"]
        print(f"{found['seconds'] / kept['seconds']:7.2f}{'*' if apart else ' '} {name}")
    print("* the middle halves of the times do not meet")


def filled(text: str, records: Path = RECORDS) -> str:
    """A page with the tables of the records between its marks."""

    def block(mark: re.Match[str]) -> str:
        found = json.loads((records / f"{mark[2]}.json").read_text())
        if mark[3]:
            found = largest(found, int(mark[3]), mark[4])
        return f"{mark[1]}\n{page_table(found)}\n{mark[5]}"

    return _BLOCK.sub(block, text)


def pages() -> list[Path]:
    """Pages with tables of records."""
    found = [ROOT / "README.md", ROOT / "SECURITY.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [page for page in found if "<!-- record: " in page.read_text(encoding="utf-8")]


def fill() -> None:
    """Put the tables into all pages."""
    for page in pages():
        page.write_text(filled(page.read_text(encoding="utf-8")), encoding="utf-8")


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    added = commands.add_parser("run")
    added.add_argument("-o", "--output", type=Path, default=ROOT / "target" / "record.json")
    added = commands.add_parser("compare")
    added.add_argument("base", type=Path)
    added.add_argument("new", type=Path)
    commands.add_parser("kernels")
    commands.add_parser("fill")
    arguments = parser.parse_args()
    if arguments.command == "run":
        run(arguments.output)
    elif arguments.command == "compare":
        compare(arguments.base, arguments.new)
    elif arguments.command == "kernels":
        kernels()
    else:
        fill()


if __name__ == "__main__":
    main()
