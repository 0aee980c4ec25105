"""Faults of the machine while work writes: full disks, closed folders, EIO, kill -9.

    python fuzz/faults.py --rounds 500 [--seed 0]

Every round forks a process that trains, searches, chooses or writes files, kills it at a random
instant or takes the disk from it, and lets another go on without faults. The end must be the result
of a run without faults, bit by bit; the process with the fault may end with an error of
``polyabayes.exceptions``, and every file that is there must be whole. Full disks and closed folders
need a small tmpfs, so the rights to mount one; without them, files end at a limit of their size.
"""

import argparse
import hashlib
import multiprocessing
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from fake_files import failing_files

import polyabayes as pb

CORPUS = pb.datasets.make_lda_corpus(60, 40, 3, document_length=30, random_state=1).corpus
OPTIONS = {"random_state": 0, "n_jobs": 1}
# Endings of a process: whole, an error of the package, an error of another kind, killed.
WHOLE, REFUSED, WRONG = 0, 9, 8
_LONGEST = 120.0
# The disk of runs for which none of their own can be mounted.
_MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
# Results that are compared; the states of searches and choices have times in them.
_COMPARED = ("model.safetensors", "bounds", "corpus.npz", "corpus.mtx.gz", "corpus.tns")


def fit(estimator: Any, where: Path) -> None:
    """Train by sampling, a checkpoint every sweep."""
    options = {"max_iter": 20, "burn_in": 5, "checkpoint": where / "state", **OPTIONS}
    estimator(3, checkpoint_every=1, **options).fit(CORPUS).save(where / "model.safetensors")


def search(where: Path) -> None:
    """Search the number of topics with bounds."""
    found = pb.WitnessSearch(
        pb.LatentDirichletAllocation(max_iter=10, n_jobs=1),
        pb.priors.Poisson(4.0),
        scoring="bound",
        max_steps=4,
        random_state=0,
        checkpoint=where / "state",
    ).fit(CORPUS)
    write_text(where / "bounds", repr([found.bounds_["lower"].tolist(), found.best_]))
    found.model().save(where / "model.safetensors")


def choose(where: Path) -> None:
    """Choose the number of topics by held-out likelihood."""
    choice = pb.choose_n_components(
        pb.LatentDirichletAllocation(max_iter=5, n_jobs=1),
        CORPUS[:40],
        [2, 4],
        n_folds=2,
        random_state=0,
        checkpoint=where / "state",
    )
    scores = [{name: row[name] for name in row if name != "seconds"} for row in choice.rows]
    write_text(where / "bounds", repr([choice.best, scores]))


def writes(where: Path) -> None:
    """Write the same files again and again."""
    for _ in range(5):
        pb.write_corpus(CORPUS, where / "corpus.npz")
        pb.write_corpus(CORPUS, where / "corpus.mtx.gz")
        pb.write_tensor(pb.CountTensor.from_corpus(CORPUS), where / "corpus.tns")


def shards(where: Path) -> None:
    """Write a corpus larger than memory, as it were, in shards."""
    found = pb.write_shards(CORPUS, where / "shards", 3)
    found.verify()
    write_text(where / "bounds", repr([shard.corpus().counts.sum() for shard in found]))


def fit_shards(where: Path) -> None:
    """Train on shards, whose every sweep is a checkpoint."""
    found = pb.write_shards(CORPUS, where / "shards", 3)
    lda = pb.LatentDirichletAllocation(
        3, max_iter=20, burn_in=5, learn_priors=True, checkpoint=where / "state", **OPTIONS
    )
    lda.fit(found).save(where / "model.safetensors")


def write_text(path: Path, text: str) -> None:
    """Write a result of this script; it is whole or not there, as those of the package are."""
    from polyabayes._support.files import replacing

    with replacing(path) as stream:
        stream.write(text.encode())


WORK: dict[str, Callable[[Path], None]] = {
    "lda": partial(fit, pb.LatentDirichletAllocation),
    "pfa": partial(fit, pb.PoissonFactorAnalysis),
    "search": search,
    "choose": choose,
    "writes": writes,
    "shards": shards,
    "training on shards": fit_shards,
}


class Process:
    """A fork that does some work in a folder, under a fault perhaps."""

    def __init__(self, work: str, where: Path, fault: Callable[[], None] | None = None) -> None:
        self.errors = tempfile.TemporaryFile()  # noqa: SIM115
        fork = multiprocessing.get_context("fork")
        self.process = fork.Process(target=self._work, args=(work, where, fault))
        self.process.start()

    def _work(self, work: str, where: Path, fault: Callable[[], None] | None) -> None:
        status = WRONG
        try:
            os.dup2(self.errors.fileno(), 2)
            warnings.simplefilter("ignore")
            if fault is not None:
                fault()
            WORK[work](where)
            status = WHOLE
        except pb.exceptions.InternalError:
            traceback.print_exc()
        except pb.exceptions.PolyabayesError as error:
            sys.stderr.write(f"polyabayes error: {error}")
            status = REFUSED
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(status)

    def end(self) -> tuple[int, str]:
        """Wait for the end: the status and what was written to standard error."""
        self.process.join(_LONGEST)
        self.process.kill()
        self.process.join()
        self.errors.seek(0)
        told = self.errors.read().decode(errors="replace")[-400:]
        self.errors.close()
        return self.process.exitcode, told

    def kill_after(self, seconds: float) -> None:
        """Kill it after some time, and wait for its end."""
        time.sleep(seconds)
        self.process.kill()
        self.end()


def digest(where: Path) -> dict[str, str]:
    """Checksums of the results."""
    files = [where / name for name in _COMPARED if (where / name).exists()]
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


@contextmanager
def disk(n_bytes: int) -> Iterator[tuple[Path, Callable[[str], None] | None]]:
    """A disk of so many bytes and what mounts it anew; a plain folder where none can be mounted."""
    folder = Path(tempfile.mkdtemp(prefix="polyabayes-disk-", dir=_MEMORY))
    options = ["mount", "-t", "tmpfs", "-o", f"size={n_bytes}", "tmpfs", str(folder)]
    is_mounted = subprocess.run(options, capture_output=True, check=False).returncode == 0

    def remount(option: str) -> None:
        subprocess.run(["mount", "-o", f"remount,{option}", str(folder)], check=True)

    try:
        yield folder, remount if is_mounted else None
    finally:
        if is_mounted:
            subprocess.run(["umount", "-l", str(folder)], check=False)
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def folder() -> Iterator[Path]:
    """A folder that is removed in the end."""
    where = Path(tempfile.mkdtemp(prefix="polyabayes-faults-", dir=_MEMORY))
    try:
        yield where
    finally:
        shutil.rmtree(where)


class Round:
    """Some work, what comes of it without faults, and how long that takes."""

    def __init__(self, work: str) -> None:
        self.work = work
        with folder() as where:
            begin = time.monotonic()
            status, told = Process(work, where).end()
            self.seconds = time.monotonic() - begin
            if status != WHOLE:
                sys.exit(f"{work} fails without faults: {told}")
            self.expected = digest(where)

    def killed(self, rng: random.Random) -> str:
        """Kill it a few times at random instants, then let it end."""
        with folder() as where:
            for _ in range(rng.choice((1, 1, 2, 3))):
                Process(self.work, where).kill_after(rng.random() * self.seconds)
                if damage := self.damaged(where):
                    return f"BAD files after kill -9: {damage}"
            return self.gone_on(where, "kill -9")

    def filled(self, rng: random.Random) -> str:
        """Run it on a small disk, then with room."""
        n_bytes = int(10 ** rng.uniform(3.6, 5.2))
        with disk(n_bytes) as (where, remount):
            what = "a full disk" if remount else "a limit of the size of files"
            limit = None if remount else (lambda: limit_files(n_bytes // 4))
            if bad := self.faulty(where, limit):
                return bad
            if remount:
                remount("size=64m")
            return self.gone_on(where, what)

    def closed(self, rng: random.Random) -> str:
        """Run it in a folder that turned read-only, then in the same when it can be written."""
        with disk(1 << 26) as (where, remount):
            if remount is None:
                return "no disk could be mounted"
            if rng.random() < 0.5:
                Process(self.work, where).kill_after(rng.random() * self.seconds)
            remount("ro")
            bad = self.faulty(where, None, must_fail=not digest(where))
            remount("rw")
            return bad or self.gone_on(where, "a read-only folder")

    def failing(self, rng: random.Random) -> str:
        """Run it with files whose reads, writes or syncs fail now and then, then without."""
        share, seed = 10 ** rng.uniform(-2.5, -0.5), rng.random()
        with folder() as where:
            if bad := self.faulty(where, lambda: failing_files(where, share, seed)):
                return bad
            return self.gone_on(where, "EIO")

    def refused(self, _: random.Random) -> str:
        """Run it where its files may not be replaced."""
        with folder() as where:
            for name in self.expected:
                (where / name).write_bytes(b"mine")
                (where / name).chmod(0o444)
            status, told = Process(self.work, where).end()
            kept = all((where / name).read_bytes() == b"mine" for name in self.expected)
            if status != REFUSED or not kept:
                return f"BAD with read-only files ({status}): {told}"
            return "refused read-only files"

    def faulty(
        self, where: Path, fault: Callable[[], None] | None, *, must_fail: bool = False
    ) -> str:
        """Run it under a fault; empty where that ended as it may."""
        status, told = Process(self.work, where, fault).end()
        if status not in (WHOLE, REFUSED) or (must_fail and status != REFUSED):
            return f"BAD end under a fault ({status}): {told}"
        damage = self.damaged(where)
        return f"BAD files under a fault: {damage}" if damage else ""

    def damaged(self, where: Path) -> str:
        """Files that are there, but not whole."""
        found = digest(where)
        return ", ".join(name for name in found if found[name] != self.expected[name])

    def gone_on(self, where: Path, fault: str) -> str:
        """Run it again without faults: equal bits, and nothing unfinished is left."""
        status, told = Process(self.work, where).end()
        if status != WHOLE:
            return f"BAD after {fault} ({status}): {told}"
        if digest(where) != self.expected:
            return f"BAD other bits after {fault}"
        return f"equal after {fault}"


def limit_files(n_bytes: int) -> None:
    """No file of this process grows beyond so many bytes."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, resource.RLIM_INFINITY))


def record(outcomes: Counter[str], options: str) -> None:
    """Keep the rounds by what came of them, for the page."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "benches"))
    from record import Table, save

    columns = {"what came of it": "s", "rounds": ",", "work": "s"}
    table = Table("faults", f"python fuzz/faults.py {options} --record", columns)
    by_end: dict[str, Counter[str]] = {}
    for outcome, count in outcomes.items():
        work, end = outcome.split(": ", 1)
        by_end.setdefault(end, Counter())[work] += count
    for end, works in sorted(by_end.items()):
        told = ", ".join(f"{work} {count}" for work, count in sorted(works.items()))
        table.add(end, works.total(), told)
    save(table)


def main() -> int:
    """Run the rounds; ends with status 1 where one is bad."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--record", action="store_true", help="keep the numbers for SECURITY.md")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    rng = random.Random(options.seed)
    for work in WORK.values():
        # Imports that work begins with are done once, not in every fork.
        with folder() as where:
            work(where)
    rounds = [Round(work) for work in WORK]
    outcomes: Counter[str] = Counter()
    faults: list[Any] = [Round.killed, Round.filled, Round.closed, Round.failing, Round.refused]
    for number in range(1, options.rounds + 1):
        one = rng.choice(rounds)
        fault = rng.choices(faults, (8, 3, 2, 3, 1))[0]
        outcome = fault(one, rng)
        outcomes[f"{one.work}: {outcome.split(': ')[0]}"] += 1
        if outcome.startswith("BAD"):
            print(f"{one.work}: {outcome}", flush=True)
        if number % 50 == 0:
            print(f"{number} rounds", flush=True)
    for outcome, count in sorted(outcomes.items()):
        print(f"{count:>6}  {outcome}")
    n_bad = sum(count for outcome, count in outcomes.items() if ": BAD" in outcome)
    print(f"{outcomes.total()} rounds, {n_bad} bad")
    if options.record:
        record(outcomes, f"--rounds {options.rounds} --seed {options.seed}")
    return 1 if n_bad else 0


if __name__ == "__main__":
    os.environ.setdefault("PYTHONDONTWRITEBYTECODE", "1")
    # The date in a model's file is the same in every round.
    os.environ["SOURCE_DATE_EPOCH"] = "0"
    sys.exit(main())
