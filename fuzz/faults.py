"""Faults of the machine while work writes: full disks, folders that cannot be written, kill -9.

    python fuzz/faults.py --rounds 50 [--seed 0]

Every round runs a training, a search or the writing of files in a child process, kills it at a
random instant or takes the disk from it, and runs it again. It must end with the result of a run
without faults, bit by bit, or with an error of ``polyabayes.exceptions``; a file that is there must
be whole. Full disks need a small tmpfs, so the rights to mount one.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

WORK = {
    "lda": """
pb.LatentDirichletAllocation(4, max_iter=60, burn_in=10, random_state=0, n_jobs=1,
    checkpoint=where / "state", checkpoint_every=1).fit(corpus).save(where / "model.safetensors")
""",
    "pfa": """
pb.PoissonFactorAnalysis(4, max_iter=60, burn_in=10, random_state=0, n_jobs=1,
    checkpoint=where / "state", checkpoint_every=1).fit(corpus).save(where / "model.safetensors")
""",
    "search": """
search = pb.WitnessSearch(pb.LatentDirichletAllocation(max_iter=30, n_jobs=1),
    pb.priors.Poisson(4.0), scoring="bound", max_steps=6, random_state=0,
    checkpoint=where / "state").fit(corpus)
(where / "bounds").write_text(repr([search.bounds_["lower"].tolist(), search.best_]))
search.model().save(where / "model.safetensors")
""",
    "writes": """
for round in range(20):
    pb.write_corpus(corpus, where / "corpus.npz")
    pb.write_corpus(corpus, where / "corpus.mtx.gz")
    pb.write_tensor(pb.CountTensor.from_corpus(corpus), where / "corpus.tns")
""",
}
BEGIN = """
import sys, warnings
from pathlib import Path
import polyabayes as pb
warnings.simplefilter("ignore")
where = Path(sys.argv[1])
corpus = pb.datasets.make_lda_corpus(200, 60, 4, document_length=60, random_state=1).corpus
print("ready", flush=True)
try:
"""
END = """
except pb.exceptions.PolyabayesError as error:
    print("polyabayes error:", error, file=sys.stderr)
    sys.exit(9)
except OSError as error:
    print("plain error:", error, file=sys.stderr)
    sys.exit(8)
"""
# Results that are compared; the state of a search has times in it.
_COMPARED = ("model.safetensors", "bounds", "corpus.npz", "corpus.mtx.gz", "corpus.tns")


def start(work: str, where: Path) -> subprocess.Popen[bytes]:
    """Begin some work; returns once it is under way."""
    body = "".join(f"    {line}\n" for line in WORK[work].strip().splitlines())
    process = subprocess.Popen(
        [sys.executable, "-c", BEGIN + body + END, str(where)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    process.stdout.readline()
    return process


def digest(where: Path) -> dict[str, str]:
    """Checksums of the results."""
    files = [where / name for name in _COMPARED if (where / name).exists()]
    # The path of the checkpoint is no part of a model file, so that the bytes can be compared.
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


@contextmanager
def small_disk(n_bytes: int) -> Iterator[Path | None]:
    """A disk of so many bytes, where one can be mounted."""
    folder = Path(tempfile.mkdtemp(prefix="polyabayes-disk-"))
    mount = ["mount", "-t", "tmpfs", "-o", f"size={n_bytes}", "tmpfs", str(folder)]
    mounted = subprocess.run(mount, capture_output=True, check=False).returncode == 0
    try:
        yield folder if mounted else None
    finally:
        if mounted:
            subprocess.run(["umount", "-l", str(folder)], check=False)
        folder.rmdir()


def killed(work: str, expected: dict[str, str], seconds: float, rng: random.Random) -> str:
    """Kill some work a few times at random instants, then let it end."""
    where = Path(tempfile.mkdtemp(prefix="polyabayes-kill-"))
    try:
        for _ in range(rng.choice((1, 1, 2, 3))):
            process = start(work, where)
            time.sleep(rng.random() * seconds)
            process.send_signal(signal.SIGKILL)
            process.communicate()
        process = start(work, where)
        _, errors = process.communicate(timeout=600)
        if process.returncode != 0:
            return f"BAD after kill: {errors.decode(errors='replace')[-300:]}"
        found = digest(where)
        wrong = [name for name in expected if found.get(name) != expected[name]]
        return f"BAD other bits in {', '.join(wrong)}" if wrong else "equal after kill -9"
    finally:
        shutil.rmtree(where)


def filled(work: str, expected: dict[str, str], rng: random.Random) -> str:
    """Run some work on a small disk, then with room."""
    with small_disk(int(10 ** rng.uniform(3.6, 5.2))) as where:
        if where is None:
            return "no disk could be mounted"
        process = start(work, where)
        _, errors = process.communicate(timeout=600)
        if process.returncode not in (0, 8, 9) or (work != "search" and process.returncode == 8):
            return f"BAD on a full disk: {errors.decode(errors='replace')[-300:]}"
        found = digest(where)
        # Every file is whole but `bounds`, which this script writes and a kill may cut.
        wrong = [n for n in found if n != "bounds" and found[n] != expected[n]]
        if wrong:
            return f"BAD files on a full disk: {', '.join(wrong)}"
        subprocess.run(["mount", "-o", "remount,size=64m", str(where)], check=True)
        process = start(work, where)
        _, errors = process.communicate(timeout=600)
        if process.returncode != 0 or digest(where) != expected:
            return f"BAD after a full disk: {errors.decode(errors='replace')[-300:]}"
        return "equal after a full disk"


def forbidden(work: str, expected: dict[str, str]) -> str:
    """Run some work where its files may not be replaced."""
    where = Path(tempfile.mkdtemp(prefix="polyabayes-closed-"))
    for name in expected:
        (where / name).write_bytes(b"mine")
        (where / name).chmod(0o444)
    try:
        process = start(work, where)
        _, errors = process.communicate(timeout=600)
        kept = all((where / n).read_bytes() == b"mine" for n in expected if n != "bounds")
        if process.returncode not in (8, 9) or not kept:
            return f"BAD with read-only files: {errors.decode(errors='replace')[-300:]}"
        return "refused read-only files"
    finally:
        shutil.rmtree(where)


def main() -> int:
    """Run the rounds; ends with status 1 where one is bad."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rng = random.Random(options.seed)
    expected, seconds = {}, {}
    for work in WORK:
        where = Path(tempfile.mkdtemp(prefix="polyabayes-whole-"))
        process = start(work, where)
        begin = time.monotonic()
        _, errors = process.communicate()
        seconds[work] = time.monotonic() - begin
        if process.returncode != 0:
            sys.exit(errors.decode())
        expected[work] = digest(where)
        shutil.rmtree(where)
    outcomes: Counter[str] = Counter()
    for number in range(options.rounds):
        work = rng.choice(sorted(WORK))
        match number % 8:
            case 0:
                outcome = filled(work, expected[work], rng)
            case 1:
                outcome = forbidden(work, expected[work])
            case _:
                outcome = killed(work, expected[work], seconds[work], rng)
        outcomes[f"{work}: {outcome}"] += 1
        if outcome.startswith("BAD"):
            print(f"{work}: {outcome}", flush=True)
    for outcome, count in sorted(outcomes.items()):
        print(f"{count:>6}  {outcome}")
    return 1 if any(": BAD" in outcome for outcome in outcomes) else 0


if __name__ == "__main__":
    os.environ.setdefault("PYTHONDONTWRITEBYTECODE", "1")
    sys.exit(main())
