"""Hostile files for every reader, `load`, checkpoint folders and foreign models.

    python fuzz/fuzz.py --inputs 1000000 [--seed 0] [--processes 2]
    python fuzz/fuzz.py --seconds 60

``--record`` keeps the numbers for SECURITY.md in benches/records.

A child makes small valid files, changes them with regard to their structure (numbers, lines, arrays
of archives, headers, checksums, operations of pickles), and reads them, thousands in one process
under a limit of memory. The status is 1, and the file is kept in ``fuzz/found``, where a child
dies, hangs beyond 5 s or raises what is not of ``polyabayes.exceptions``, and where the damage of a
file with a checksum is not noticed.
"""

import argparse
import faulthandler
import itertools
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
LIMIT_BYTES = 3 << 30
# Seconds of processor time that one file may take, and seconds after which a child ends itself.
LONGEST, PATIENCE = 5.0, 75.0
# Inputs between two reports of a child, and in the life of one.
_REPORT, _LIFE = 500, 50_000


def child(folder: Path, seed: int, n_inputs: int, seconds: float) -> None:
    """Read changed files until their number or the time is reached; count what comes of them."""
    import resource
    import warnings

    from corpora import CORPORA
    from foreign import FOREIGN
    from states import STATES

    warnings.simplefilter("ignore")
    resource.setrlimit(resource.RLIMIT_AS, (LIMIT_BYTES, LIMIT_BYTES))
    rng = random.Random(seed)
    cases = [case(folder / case.__name__, rng) for case in CORPORA + STATES + FOREIGN]
    shares = [case.share for case in cases]
    outcomes: Counter[str] = Counter()
    end = time.monotonic() + seconds
    for number, case in enumerate(rng.choices(cases, shares, k=n_inputs), 1):
        path, content = case.change()
        path.write_bytes(content)
        (folder / "now").write_text(f"{case.name}\t{path}")
        faulthandler.dump_traceback_later(PATIENCE, exit=True)
        outcome = outcome_of(case)
        if outcome.startswith("BAD"):
            keep(case.name, path.name, content, outcome)
        outcomes[f"{case.name}: {outcome.split(':')[0]}"] += 1
        case.restore()
        is_over = number == n_inputs or time.monotonic() > end
        if number % _REPORT == 0 or is_over:
            (folder / "outcomes").write_text(json.dumps(outcomes))
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


def keep(case: str, name: str, content: bytes, outcome: str) -> None:
    """Keep a file that was found, for a test of its own."""
    (HERE / "found").mkdir(exist_ok=True)
    with tempfile.NamedTemporaryFile(
        prefix=f"{case}-", suffix=f"-{name}", dir=HERE / "found", delete=False
    ) as stream:
        stream.write(content)
    print(f"{case}: {outcome} -> {stream.name}", flush=True)


def outcomes_of_life(seed: int, n_inputs: int, seconds: float) -> Counter[str]:
    """Number of inputs by outcome of one child; its last file is kept if it died or hung."""
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="polyabayes-fuzz-", dir=memory) as name:
        folder = Path(name)
        told = {"child": folder, "seed": seed, "inputs": n_inputs, "seconds": seconds}
        options = [f"--{option}={value}" for option, value in told.items()]
        status = subprocess.run([sys.executable, __file__, *options], check=False).returncode
        report = folder / "outcomes"
        outcomes = Counter(json.loads(report.read_text()) if report.exists() else {})
        if status:
            case, _, path = (folder / "now").read_text().partition("\t")
            keep(case, Path(path).name, Path(path).read_bytes(), f"ended with status {status}")
            outcomes[f"{case}: BAD end"] += 1
        return outcomes


def hunt(seed: int, n_inputs: int, seconds: float, n_processes: int) -> Counter[str]:
    """Number of inputs by outcome; children begin until all are read or the time is over."""
    end = time.monotonic() + seconds
    sizes = itertools.chain(itertools.repeat(_LIFE, n_inputs // _LIFE), [n_inputs % _LIFE])
    lives = zip(itertools.count(seed), filter(None, sizes), strict=False)

    def work(_: int) -> None:
        while (left := end - time.monotonic()) > 0 and (life := next(lives, None)):
            outcomes.update(outcomes_of_life(*life, left))

    outcomes: Counter[str] = Counter()
    with ThreadPoolExecutor(n_processes) as pool:
        list(pool.map(work, range(n_processes)))
    return outcomes


def n_found(outcomes: Counter[str]) -> int:
    """Number of findings."""
    return sum(count for outcome, count in outcomes.items() if ": BAD" in outcome)


def record(outcomes: Counter[str], options: str, seconds: float) -> None:
    """Keep the numbers of a hunt for the page."""
    sys.path.insert(0, str(HERE.parent / "benches"))
    from record import Table, save

    columns = dict.fromkeys(("inputs", "kinds of file", "read", "refused"), ",")
    columns |= {"deaths, hangs, other exceptions, damage unnoticed": ",", "minutes": ",.0f"}
    table = Table("fuzz", f"python fuzz/fuzz.py {options} --record", columns)
    kinds = {outcome.split(": ")[0] for outcome in outcomes}
    n_read = sum(n for outcome, n in outcomes.items() if outcome.endswith(": read"))
    n_refused = outcomes.total() - n_read - n_found(outcomes)
    table.add(outcomes.total(), len(kinds), n_read, n_refused, n_found(outcomes), seconds / 60)
    save(table)


def main() -> int:
    """Fuzz as long as asked for; the number of inputs by outcome is printed at the end."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--inputs", type=int, default=sys.maxsize)
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    seconds = options.seconds or (60.0 if options.inputs == sys.maxsize else 1e9)
    if options.child:
        child(options.child, options.seed, options.inputs, seconds)
        return 0
    start = time.monotonic()
    outcomes = hunt(options.seed, options.inputs, seconds, options.processes)
    taken = time.monotonic() - start
    for outcome, count in sorted(outcomes.items()):
        print(f"{count:>9,}  {outcome}")
    print(f"{outcomes.total():,} inputs in {taken:,.0f} s, {n_found(outcomes)} findings")
    if options.record:
        record(outcomes, f"--inputs {options.inputs} --seed {options.seed}", taken)
    return 1 if n_found(outcomes) else 0


if __name__ == "__main__":
    sys.exit(main())
