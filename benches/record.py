"""Processor seconds of what users call: recorded as JSON, compared, and put into the pages.

``record.py run -o RECORD.json`` measures every case on one thread, ``record.py kernels`` counts the
instructions of the kernels, ``record.py compare BASE.json NEW.json`` prints ratios. ``record.py
fill`` writes the tables of ``benches/records`` between the marks ``<!-- record: NAME -->`` and
``<!-- end -->`` of the pages, with machine and date: no figure there is written by hand.
"""

from __future__ import annotations

import argparse
import json
import re
import resource
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from recorded import RECORDS, Table, machine, page_table, provenance, save

import polyabayes as pb

ROOT = Path(__file__).resolve().parents[1]
# Repetitions of a case, of which the median counts, and seconds after which no more are made.
REPEATS, ENOUGH = 9, 5.0
_BLOCK = re.compile(r"(<!-- record: ([\w-]+) -->\n).*?(<!-- end -->)", re.DOTALL)

Case = Callable[[], object]


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


def cases_table(record: dict[str, Any], prefix: str) -> str:
    """Rows of the cases that begin so."""
    lines = ["| | processor time |", "|---|---:|"]
    for name, found in record["cases"].items():
        if name.startswith(prefix):
            value = found["seconds"]
            shown = f"{value:.3g} s" if value >= 1 else f"{1e3 * value:.3g} ms"
            lines.append(f"| {name.removeprefix(prefix).lstrip('-: ')} | {shown} |")
    return "\n".join([*lines, "", f"`make bench-compare`; {provenance(record)}", ""])


def filled(text: str, records: Path = RECORDS) -> str:
    """A page with the tables of the records between its marks."""

    def block(mark: re.Match[str]) -> str:
        path = records / f"{mark[2]}.json"
        if path.exists():
            found = page_table(json.loads(path.read_text()))
        else:
            found = cases_table(json.loads((records / "base.json").read_text()), mark[2])
        return f"{mark[1]}\n{found}\n{mark[3]}"

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
