"""Hostile files for every reader, `load`, checkpoint folders and foreign models.

    python fuzz/fuzz.py --inputs 1000000 [--seed 0] [--processes 2]
    python fuzz/fuzz.py --seconds 60

``--record`` keeps the numbers for SECURITY.md in benches/records.

A child makes small valid files, changes them with regard to their structure (numbers, lines, arrays
of archives, headers, checksums, operations of pickles), and reads them, thousands in one process
under a limit of memory. The parent counts what comes of it. It ends with status 1 and keeps the
file in ``fuzz/found`` where a child dies, hangs beyond 5 s or raises what is not of
``polyabayes.exceptions``, and where the damage of a file with a checksum is not noticed.
"""

import argparse
import multiprocessing
import os
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
LIMIT_BYTES = 3 << 30
# Seconds of processor time that one file may take, and how many times that before it is killed.
LONGEST, PATIENCE = 5.0, 15
# Inputs between two reports of a child, and in the life of one.
_REPORT, _LIFE = 500, 50_000


def child(seed: int, n_inputs: int, seconds: float, folder: str, reports: Any) -> None:
    """Read changed files until their number or the time is reached."""
    import resource
    import warnings

    from corpora import CORPORA
    from foreign import FOREIGN
    from states import STATES

    warnings.simplefilter("ignore")
    resource.setrlimit(resource.RLIMIT_AS, (LIMIT_BYTES, LIMIT_BYTES))
    rng = random.Random(seed)
    cases = [case(Path(folder) / case.__name__, rng) for case in CORPORA + STATES + FOREIGN]
    shares = [case.share for case in cases]
    outcomes: Counter[str] = Counter()
    end = time.monotonic() + seconds
    for number, case in enumerate(rng.choices(cases, shares, k=n_inputs), 1):
        path, content = case.change()
        path.write_bytes(content)
        (Path(folder) / "now").write_text(f"{case.name}\t{path}")
        outcome = outcome_of(case)
        if outcome.startswith("BAD"):
            reports.put((case.name, outcome, path.name, content))
        outcomes[f"{case.name}: {outcome.split(':')[0]}"] += 1
        case.restore()
        is_over = time.monotonic() > end
        if number % _REPORT == 0 or number == n_inputs or is_over:
            reports.put(("", outcomes, "", b""))
            outcomes = Counter()
        if is_over:
            break


def outcome_of(case: Any) -> str:
    """Read the file of a case; the outcome in a word, BAD where it is not as documented."""
    from polyabayes.exceptions import InternalError, PolyabayesError

    start = time.process_time()
    try:
        outcome: str = case.read()
    except InternalError as error:
        outcome = f"BAD internal error: {error}"
    except PolyabayesError as error:
        outcome = type(error).__name__
    except BaseException as error:
        outcome = f"BAD {type(error).__name__}: {str(error)[:200]}"
    taken = time.process_time() - start
    return f"BAD took {taken:.1f} s" if taken > LONGEST else outcome


class Child:
    """A process that fuzzes, and what it was about when it ended."""

    def __init__(self, seed: int, n_inputs: int, seconds: float, reports: Any) -> None:
        memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        self.folder = tempfile.mkdtemp(prefix="polyabayes-fuzz-", dir=memory)
        arguments = (seed, n_inputs, seconds, self.folder, reports)
        self.process = multiprocessing.get_context("spawn").Process(target=child, args=arguments)
        self.process.start()

    def last(self) -> tuple[str, Path]:
        """The case and the file that it read last."""
        name, _, path = (Path(self.folder) / "now").read_text().partition("\t")
        return name, Path(path)

    def hangs(self) -> bool:
        """Whether it has read one file for several times as long as any may take."""
        now = Path(self.folder) / "now"
        return now.exists() and time.time() - now.stat().st_mtime > PATIENCE * LONGEST


class Hunt:
    """Children, the inputs that they have read, and what was found."""

    def __init__(self, seed: int, n_inputs: int, seconds: float, n_processes: int) -> None:
        self.reports = multiprocessing.get_context("spawn").Queue()
        self.outcomes: Counter[str] = Counter()
        self.n_found = 0
        self.n_inputs, self.seed = n_inputs, seed
        self.end = time.monotonic() + seconds
        self.n_processes = n_processes

    def run(self) -> None:
        """Start children until all inputs are read or the time is over."""
        children: list[Child] = []
        begun, told = 0, time.monotonic()
        while children or (begun < self.n_inputs and time.monotonic() < self.end):
            while (
                len(children) < self.n_processes
                and begun < self.n_inputs
                and time.monotonic() < self.end
            ):
                life = min(_LIFE, self.n_inputs - begun)
                left = self.end - time.monotonic()
                children.append(Child(self.seed, life, left, self.reports))
                begun, self.seed = begun + life, self.seed + 1
            self.collect()
            for one in list(children):
                if not one.process.is_alive() or one.hangs():
                    children.remove(one)
                    begun -= self.finish(one)
            if time.monotonic() - told > 60:
                told = time.monotonic()
                print(f"{self.outcomes.total():,} inputs, {self.n_found} findings", flush=True)
            time.sleep(0.05)
        self.collect()

    def collect(self) -> None:
        """Take the reports that are there."""
        while not self.reports.empty():
            case, outcome, name, content = self.reports.get()
            if case:
                self.keep(case, name, content, outcome)
            else:
                self.outcomes.update(outcome)

    def finish(self, one: Child) -> int:
        """End a child; its last file is kept where it died or hung. Inputs to be read anew."""
        hangs = one.process.is_alive()
        if hangs:
            one.process.kill()
        one.process.join()
        died = one.process.exitcode != 0
        if died:
            case, path = one.last()
            what = "hung" if hangs else f"died with status {one.process.exitcode}"
            self.keep(case, path.name, path.read_bytes(), what)
        shutil.rmtree(one.folder, ignore_errors=True)
        self.collect()
        return _REPORT if died else 0

    def keep(self, case: str, name: str, content: bytes, outcome: str) -> None:
        """Keep a file that was found, for a test of its own."""
        self.n_found += 1
        folder = HERE / "found"
        folder.mkdir(exist_ok=True)
        path = folder / f"{len(list(folder.iterdir())):04d}-{case}-{name}"
        path.write_bytes(content)
        print(f"{case}: {outcome} -> {path}", flush=True)


def record(hunt: Hunt, options: str, seconds: float) -> None:
    """Keep the numbers of a hunt for the page."""
    sys.path.insert(0, str(HERE.parent / "benches"))
    from record import Table, save

    table = Table(
        "fuzz",
        f"python fuzz/fuzz.py {options} --record",
        {
            "inputs": ",",
            "kinds of file": ",",
            "read": ",",
            "refused": ",",
            "deaths, hangs, other exceptions, damage unnoticed": ",",
            "minutes": ",.0f",
        },
    )
    outcomes = hunt.outcomes
    kinds = {outcome.split(": ")[0] for outcome in outcomes}
    n_read = sum(n for outcome, n in outcomes.items() if outcome.endswith(": read"))
    n_refused = outcomes.total() - n_read - hunt.n_found
    table.add(outcomes.total(), len(kinds), n_read, n_refused, hunt.n_found, seconds / 60)
    save(table)


def main() -> int:
    """Fuzz as long as asked for; the number of inputs by outcome is printed at the end."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--inputs", type=int, default=sys.maxsize)
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    seconds = options.seconds or (60.0 if options.inputs == sys.maxsize else 1e9)
    start = time.monotonic()
    hunt = Hunt(options.seed, options.inputs, seconds, options.processes)
    hunt.run()
    for outcome, count in sorted(hunt.outcomes.items()):
        print(f"{count:>9,}  {outcome}")
    taken = time.monotonic() - start
    print(f"{hunt.outcomes.total():,} inputs in {taken:,.0f} s, {hunt.n_found} findings")
    if options.record:
        record(hunt, f"--inputs {options.inputs} --seed {options.seed}", taken)
    return 1 if hunt.n_found else 0


if __name__ == "__main__":
    sys.exit(main())
