"""Figures with the commit that made them: kept as JSON, compared, and put into the pages.

``record.py run --output RECORD.json`` measures processor seconds of what users call on one thread,
``record.py compare BASE.json NEW.json`` prints their ratios, ``record.py kernels`` counts the
instructions of the kernels. ``record.py fill`` writes the tables of ``benches/records`` between the
marks ``<!-- record: NAME -->`` and ``<!-- end -->`` of the pages, with machine and date: no figure
there is written by hand. ``NAME, 10 by COLUMN`` shows the ten rows with the largest values of a
column. Other programs keep their tables by :class:`Table` and :func:`save`, time their calls by
:func:`timed`, and run by :func:`main`.
"""

import argparse
import hashlib
import inspect
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
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

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
T = TypeVar("T")


def main(*parts: Callable[..., None]) -> None:
    """Run the part that the command line names, with its options; without a name, all parts.

    Parameters of a part are options, and stand without a name where a slash follows them; of a
    tuple, one or more entries may be chosen. Parts that need an argument run only by their name.
    """
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser()
    names = parser.add_subparsers(metavar="PART", required=len(sys.argv) > 1)
    for part in parts:
        told = (part.__doc__ or "").partition("\n")[0]
        options = {"help": told.replace("%", "%%"), "description": told}
        command = names.add_parser(part.__name__.replace("_", "-"), **options)
        command.set_defaults(part=part)
        for name, option in inspect.signature(part).parameters.items():
            kind = {"default": option.default, "type": option.annotation}
            if option.kind is option.POSITIONAL_ONLY:
                command.add_argument(name, nargs=None if is_needed(option) else "?", **kind)
            elif isinstance(option.default, tuple):
                kind |= {"type": type(option.default[0]), "choices": option.default}
                command.add_argument(f"--{name}", nargs="+", **kind)
            else:
                command.add_argument(f"--{name}", **kind)
    options = vars(parser.parse_args())
    if "part" not in options:
        for part in parts:
            if not any(map(is_needed, inspect.signature(part).parameters.values())):
                part()
        return
    part = options.pop("part")
    parameters = inspect.signature(part).parameters.values()
    before_slash = [options.pop(x.name) for x in parameters if x.kind is x.POSITIONAL_ONLY]
    part(*before_slash, **options)


def is_needed(parameter: inspect.Parameter) -> bool:
    """Whether a part cannot run without this argument."""
    return parameter.default is parameter.empty


def timed(work: Callable[..., T], *arguments: Any, **options: Any) -> tuple[T, float]:
    """What a call returns, and its processor seconds."""
    start = time.process_time()
    found = work(*arguments, **options)
    return found, time.process_time() - start


def corpus(name: str) -> pb.Corpus:
    """A real corpus with its words."""
    if not DATA.is_dir():
        sys.exit(f"no data in {DATA}: set POLYABAYES_DATA")
    return pb.read_corpus(DATA / f"{name}.ldac.gz", vocabulary=DATA / f"{name}.vocab")


def cells(n_cells: int) -> pb.Corpus:
    """Simulated cells of 1,000 genes and eight programmes, a count in two of which is not 0."""
    rng = np.random.default_rng(0)
    rates = rng.gamma(0.5, size=(n_cells, 8)) @ rng.dirichlet(np.full(1000, 0.1), 8)
    depths = rng.lognormal(np.log(400), 0.4, n_cells)
    return pb.Corpus(rng.poisson(depths[:, np.newaxis] * rates))


def letter_shares() -> np.ndarray:
    """Shares of the bigrams of English."""
    import pandas as pd

    table = pd.read_csv(DATA / "letter_bigrams.csv", keep_default_na=False)
    shares = table.pivot(index="first", columns="second", values="count").to_numpy(float)
    return shares / shares.sum()


def simulated(
    n_documents: int, n_words: int, n_topics: int, **law: Any
) -> tuple[pb.LatentDirichletAllocation, pb.Corpus]:
    """A random LDA model, and documents drawn from it."""
    data = pb.datasets.make_lda_corpus(n_documents, n_words, n_topics, **law)
    model = pb.LatentDirichletAllocation.from_parameters(
        doc_topic_prior=data.doc_topic_prior, topic_word=data.topic_word
    )
    return model, data.corpus


def holds(found: Any, truth: Any) -> Any:
    """Whether the 95 % intervals contain the truth, up to the rounding of exact values."""
    low, high = found.interval()
    return (low - 1e-9 <= truth) & (truth <= high + 1e-9)


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
    machines = ", ".join(sorted({piece["machine"] for piece in pieces}))
    versions = ", ".join(sorted({piece["polyabayes"] for piece in pieces}))
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
    write(folder / f"{table.name}.json", record)


def write(path: Path, record: dict[str, Any]) -> None:
    """Write a record, a row a line, so that a difference shows which changed."""
    text = json.dumps(record, indent=1, ensure_ascii=False)
    path.write_text(re.sub(r"\n   +|\n  (?=[\]}])", " ", text) + "\n")


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
    times = set(filter(_TIMES.search, record["columns"])) if is_loaded else set()
    kept = [ix for ix, title in enumerate(record["columns"]) if title not in times]
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


def cases() -> Iterator[tuple[str, Case]]:
    """Starts of processes, scores of documents, fits, and evidence of a table, with their names."""
    for name, program in {
        "polyabayes --version": ["-m", "polyabayes", "--version"],
        "import polyabayes": ["-c", "import polyabayes"],
        "first use of a model": ["-c", "import polyabayes; polyabayes.LatentDirichletAllocation"],
    }.items():
        command = [sys.executable, *program]
        start = partial(subprocess.run, command, check=True, stdout=subprocess.DEVNULL)
        yield f"start: {name}", start
    options: dict[str, Any] = {"n_jobs": 1, "random_state": 0}
    for n_topics, length in ((5, 40), (50, 100), (50, 500)):
        model, documents = simulated(20, 1000, n_topics, document_length=length, random_state=0)
        for method in ("auto", "annealed", "smc-lookahead"):
            name = f"score-{method}: 20 documents, K = {n_topics}, {length} tokens"
            yield name, partial(pb.log_likelihood, model, documents, method, **options)
    training = pb.datasets.make_lda_corpus(1000, 2000, 20, random_state=0).corpus
    for name, estimator in {
        "LDA, Gibbs": pb.LatentDirichletAllocation(50, learn_priors=False),
        "LDA, EM": pb.LatentDirichletAllocation(50, fit_method="em", learn_priors=False),
        "PFA, beta-gamma-gamma": pb.PoissonFactorAnalysis(50),
        "NMF": pb.PoissonFactorAnalysis(50, prior="nmf"),
    }.items():
        fit = estimator.set_params(max_iter=20, **options).fit
        yield f"fit: {name}, 100,000 tokens, K = 50, 20 sweeps", partial(fit, training)
    rates = np.outer(*np.random.default_rng(1).gamma(1, 1, (2, 20)))
    counts = np.random.default_rng(0).poisson(rates)
    efforts = {"smc": {"n_particles": 1000}, "tempered": {"n_samples": 256}, "vb": {}}
    for method, effort in efforts.items():
        evidence = partial(pb.AllocationModel.nmf(4).log_evidence, **options, **effort)
        name = f"evidence-{method}: 20 x 20, {counts.sum()} tokens, K = 4"
        yield name, partial(evidence, counts, method)


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


def run(output: Path = ROOT / "target" / "record.json") -> None:
    """Measure processor seconds of what users call."""
    found = {}
    for name, case in cases():
        found[name] = measured(case)
        print(f"{found[name]['seconds']:10.4f} s  {name}", flush=True)
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(json.dumps(machine() | {"cases": found}, indent=1) + "\n")


def kernels() -> None:
    """Count the instructions of every kernel, in millions, which no load changes."""
    done = subprocess.run(
        ["cargo", "bench", "--quiet", "--package", "polyabayes-benches", "--bench", "kernels"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    for line in done.stdout.splitlines():
        name, _, count = line.partition("\t")
        print(f"{int(count) / 1e6:10,.1f} {name}")


def compare(base: Path, new: Path, /) -> None:
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


if __name__ == "__main__":
    main(run, compare, kernels, fill)
