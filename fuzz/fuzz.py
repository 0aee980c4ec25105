"""Hostile files for every reader, `load` and checkpoint folders, in child processes.

    python fuzz/fuzz.py --seconds 60 [--seed 0] [--processes 2]

A child makes small valid files, changes them with regard to their structure (numbers, lines, arrays
of archives, headers, checksums), and reads them under a limit of memory. The parent counts what
comes of it. It ends with status 1 and keeps the file in ``fuzz/found`` where a child dies, hangs
beyond 5 s or raises what is not of ``polyabayes.exceptions``, and where the damage of a file with a
checksum is not noticed.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
LIMIT_BYTES = 3 << 30
LONGEST = 5.0


def child(seed: int, seconds: float, folder: str, reports: Any) -> None:
    """Read changed files until the time is over; reports each file before it is read."""
    import resource
    import warnings

    from cases import CASES

    from polyabayes.exceptions import InternalError, PolyabayesError

    warnings.simplefilter("ignore")
    resource.setrlimit(resource.RLIMIT_AS, (LIMIT_BYTES, LIMIT_BYTES))
    rng = random.Random(seed)
    cases = [case(Path(folder) / case.__name__, rng) for case in CASES]
    outcomes: Counter[str] = Counter()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        case = rng.choice(cases)
        path, content = case.change()
        path.write_bytes(content)
        (Path(folder) / "now").write_text(f"{case.name}\t{path}")
        signal.setitimer(signal.ITIMER_REAL, 0)
        start = time.monotonic()
        try:
            outcome = case.read()
        except InternalError as error:
            outcome = f"BAD internal error: {error}"
        except PolyabayesError as error:
            outcome = type(error).__name__
        except BaseException as error:
            outcome = f"BAD {type(error).__name__}: {str(error)[:200]}"
        if time.monotonic() - start > LONGEST:
            outcome = f"BAD took {time.monotonic() - start:.1f} s"
        if outcome.startswith("BAD"):
            reports.put((case.name, outcome, path.name, content))
        outcomes[f"{case.name}: {outcome.split(':')[0]}"] += 1
        case.restore()
    reports.put(("", json.dumps(outcomes), "", b""))


class Child:
    """A process that fuzzes, and what it was about when it ended."""

    def __init__(self, seed: int, seconds: float, reports: Any) -> None:
        self.folder = tempfile.mkdtemp(prefix="polyabayes-fuzz-")
        arguments = (seed, seconds, self.folder, reports)
        self.process = multiprocessing.get_context("spawn").Process(target=child, args=arguments)
        self.process.start()

    def last(self) -> tuple[str, Path]:
        """The case and the file that it read last."""
        name, _, path = (Path(self.folder) / "now").read_text().partition("\t")
        return name, Path(path)

    def hangs(self) -> bool:
        """Whether it has read one file for four times as long as any may take."""
        now = Path(self.folder) / "now"
        return now.exists() and time.time() - now.stat().st_mtime > 4 * LONGEST


def keep(case: str, name: str, content: bytes, outcome: str) -> Path:
    """Keep a file that was found, for a test of its own."""
    folder = HERE / "found"
    folder.mkdir(exist_ok=True)
    number = len(list(folder.iterdir()))
    path = folder / f"{number:04d}-{case}-{name}"
    path.write_bytes(content)
    print(f"{case}: {outcome} -> {path}", flush=True)
    return path


def main() -> int:
    """Fuzz for the time asked for; the number of inputs by outcome is printed at the end."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    reports = multiprocessing.get_context("spawn").Queue()
    end = time.monotonic() + options.seconds
    seeds = iter(range(options.seed, sys.maxsize))
    children = [Child(next(seeds), options.seconds, reports) for _ in range(options.processes)]
    outcomes: Counter[str] = Counter()
    n_found = 0
    while children:
        while not reports.empty():
            case, outcome, name, content = reports.get()
            if case:
                n_found += 1
                keep(case, name, content, outcome)
            else:
                outcomes.update(json.loads(outcome))
        for one in list(children):
            hangs = one.process.is_alive() and one.hangs()
            if hangs:
                one.process.kill()
                one.process.join()
            if one.process.is_alive() or (one.process.exitcode == 0 and not reports.empty()):
                continue
            children.remove(one)
            if one.process.exitcode != 0:
                n_found += 1
                case, path = one.last()
                what = "hung" if hangs else f"died with status {one.process.exitcode}"
                keep(case, path.name, path.read_bytes(), what)
                left = end - time.monotonic()
                if left > 1:
                    children.append(Child(next(seeds), left, reports))
            shutil.rmtree(one.folder, ignore_errors=True)
        time.sleep(0.05)
    for outcome, count in sorted(outcomes.items()):
        print(f"{count:>9,}  {outcome}")
    print(f"{outcomes.total():,} inputs, {n_found} findings")
    return 1 if n_found else 0


if __name__ == "__main__":
    sys.exit(main())
