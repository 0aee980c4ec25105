"""Evidence by tempering: tables of docs/methods/evidence.md, and whether its errors hold.

    python benches/tempering.py SECTION ...

Sections are tables, prior, few, refuted, missing, huge, icews14 [RANKS] and coverage [N].

By default the first two. Times are processor seconds, of one thread except for icews14. Real data
are read from the folder POLYABAYES_DATA, or from ../shared/data beside the repository. Coverage
runs on two processes; with a folder in POLYABAYES_RUNS it keeps every run there and begins none
after POLYABAYES_SECONDS: the same command then goes on, after a kill, too.
"""

from __future__ import annotations

import os
import pickle
import resource
import sys
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from recorded import Table, save
from scipy.special import gammaln
from scipy.stats import dirichlet_multinomial

import polyabayes as pb
from polyabayes import AllocationModel, Evidence

DATA = Path(
    os.environ.get("POLYABAYES_DATA", Path(__file__).resolve().parents[2] / "shared" / "data")
)

Counts = NDArray[np.int64]


class Case(NamedTuple):
    """A table and the model that it is scored under."""

    name: str
    counts: Counts
    n_topics: int
    concentration: float = 1.0

    def evidence(self, seed: int, **options: Any) -> tuple[Evidence, float]:
        """Evidence given the total, and the processor time that it took."""
        axes = ["first", "second"]
        model = AllocationModel.nmf(self.n_topics, axes=axes, concentration=self.concentration)
        start = time.process_time()
        found = model.log_evidence(
            self.counts, "tempered", given_total=True, random_state=seed, n_jobs=1, **options
        )
        return found, time.process_time() - start


def planted(size: int, total: int, n_topics: int, alpha: float, seed: int) -> Counts:
    """A table from topics whose rows are Dirichlet(alpha)."""
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet(np.ones(n_topics))
    first, second = (rng.dirichlet(np.full(size, alpha), n_topics) for _ in range(2))
    counts: Counts = rng.multinomial(total, ((first.T * shares) @ second).ravel())
    return counts.reshape(size, size)


def from_prior(size: int, total: int, n_topics: int, concentration: float, seed: int) -> Counts:
    """A table from the tables of the model's own prior."""
    rng = np.random.default_rng(seed)
    shares = rng.gamma(concentration / n_topics, size=n_topics) + 1e-300
    tables = rng.gamma(concentration / (n_topics * size), size=(2, n_topics, size)) + 1e-300
    first, second = tables / tables.sum(axis=2, keepdims=True)
    weights = ((first.T * shares / shares.sum()) @ second).ravel()
    counts: Counts = rng.multinomial(total, weights / weights.sum())
    return counts.reshape(size, size)


def letters(total: int, seed: int) -> Counts:
    """Draws of pairs of letters."""
    table = np.zeros((26, 26))
    for line in (DATA / "letter_bigrams.csv").read_text().splitlines()[1:]:
        first, second, count = line.split(",")
        table[ord(first) - ord("A"), ord(second) - ord("A")] = float(count)
    weights = table.ravel() / table.sum()
    counts: Counts = np.random.default_rng(seed).multinomial(total, weights)
    return counts.reshape(26, 26)


def shown(found: Evidence, seconds: float) -> str:
    forward, backward = found.sides or (np.nan, np.nan)
    return (
        f"{found.value:10.2f} +- {found.std_error:5.2f}  sides {forward - backward:+6.2f}  "
        f"{found.rounds[-1].n_scans:5} scans  {found.round_trips:5} trips  "
        f"barrier {found.barrier:5.1f}  {seconds:6.1f} s"
        f"{'' if found.converged else '  not settled'}"
    )


def tables() -> None:
    """The planted 26 x 26 tables, by their effort, against two runs of 4,096 scans."""
    record = Table(
        "evidence-speed",
        "python benches/tempering.py tables",
        {
            "tokens": ",",
            "topics": "d",
            "scans": "s",
            "seeds": "d",
            "mean off by": "+.2f",
            "rms": ".2f",
            "stated error": ".2f",
            "settled": ".0%",
            "s": ".1f",
        },
    )
    for total, n_topics in ((2000, 8), (500, 7)):
        case = Case("planted", planted(26, total, n_topics, 0.2, 0), n_topics)
        long = [case.evidence(seed, n_samples=4096, target_std_error=1e-9)[0] for seed in (10, 11)]
        reference = np.mean([found.value for found in long])
        for n_samples, n_seeds in ((256, 8), (512, 8), (None, 2)):
            runs = [case.evidence(seed, n_samples=n_samples) for seed in range(n_seeds)]
            gaps = np.array([found.value - reference for found, _ in runs])
            record.add(
                total,
                n_topics,
                "default" if n_samples is None else f"{n_samples:,}",
                n_seeds,
                gaps.mean(),
                np.sqrt((gaps**2).mean()),
                np.sqrt(np.mean([found.std_error**2 for found, _ in runs])),
                np.mean([found.converged for found, _ in runs]),
                np.mean([seconds for _, seconds in runs]),
            )
    save(record)


def prior() -> None:
    """Tables of the model's own prior at a = 1, beside SMC with 30,000 particles."""
    for seed in range(3):
        case = Case(f"prior {seed}", from_prior(26, 2000, 8, 1.0, seed), 8)
        model = AllocationModel.nmf(8, axes=["first", "second"])
        smc = model.log_evidence(
            case.counts, "smc", n_particles=30_000, given_total=True, random_state=0, n_jobs=1
        )
        print(f"prior's table {seed}: smc {smc.value:.2f} +- {smc.std_error:.2f}")
        print(f"  tempered {shown(*case.evidence(0))}")


def blocks(size: int, total: int, noise: float, seed: int) -> Counts:
    """A table of two blocks, and a share of noise."""
    rng = np.random.default_rng(seed)
    half, weights = size // 2, np.zeros((size, size))
    for block in (slice(half), slice(half, size)):
        weights[block, block] = np.outer(*rng.dirichlet(np.ones(half), 2))
    weights = (1 - noise) * weights / weights.sum() + noise / size**2
    counts: Counts = rng.multinomial(total, weights.ravel())
    return counts.reshape(size, size)


def few() -> None:
    """Small concentrations, where few topics hold most tokens and a second path is tried."""
    record = Table(
        "few-topics",
        "python benches/tempering.py few",
        {
            "table": "s",
            "scans": "s",
            "seed": "d",
            "evidence": ",.2f",
            "±": ".2f",
            "left open": ".2f",
            "barrier": ".1f",
            "round trips": "d",
            "settled": "s",
            "s": ".1f",
        },
    )
    tied, nmf = AllocationModel.symmetric_nmf, AllocationModel.nmf
    letter_pairs, two_blocks = letters(2000, 0), blocks(12, 500, 0.4, 1)
    planted_table = planted(20, 1000, 8, 0.3, 10)
    for name, model, counts, n_samples in (
        ("letters, symmetric, a = 0.001, K = 2", tied(2, concentration=1e-3), letter_pairs, 128),
        ("letters, symmetric, a = 0.001, K = 2", tied(2, concentration=1e-3), letter_pairs, 1024),
        ("letters, symmetric, a = 0.001, K = 10", tied(10, concentration=1e-3), letter_pairs, 256),
        ("planted, a = 0.0001, K = 8, T = 1,000", nmf(8, concentration=1e-4), planted_table, 512),
        ("planted, a = 0.0001, K = 8, T = 1,000", nmf(8, concentration=1e-4), planted_table, None),
        ("two blocks, a = 0.01, K = 10, T = 500", nmf(10, concentration=1e-2), two_blocks, 128),
        ("two blocks, a = 0.01, K = 10, T = 500", nmf(10, concentration=1e-2), two_blocks, None),
    ):
        for seed in range(2):
            start = time.process_time()
            found = model.log_evidence(
                counts,
                "tempered",
                given_total=True,
                n_samples=n_samples,
                random_state=seed,
                n_jobs=1,
            )
            record.add(
                name,
                "default" if n_samples is None else f"{n_samples:,}",
                seed,
                found.value,
                found.std_error,
                found.left_open,
                found.barrier,
                found.round_trips,
                "yes" if found.converged else "no",
                time.process_time() - start,
            )
    save(record)


def refuted() -> None:
    """Two topics of pairs of letters, where both paths agree and particles show that they are low.

    The mean of an estimate by particles is the evidence: it is e^5 times as large once in e^5 runs
    at most.
    """
    record = Table(
        "evidence-refuted",
        "python benches/tempering.py refuted",
        {"method": "s", "of": "s", "seed": "d", "evidence": ",.1f", "±": ".1f", "s": ".0f"},
    )
    model, pairs = AllocationModel.symmetric_nmf(2, concentration=1e-3), letters(2000, 0)
    runs: list[tuple[str, str, int, dict[str, Any]]] = [
        ("tempered", "8,192 scans", 0, {"n_samples": 8192}),
        *(("smc", "10,000 particles", seed, {"n_particles": 10_000}) for seed in range(7)),
        *(("smc", "30,000 particles", seed, {"n_particles": 30_000}) for seed in range(1, 4)),
    ]
    for method, size, seed, options in runs:
        start = time.process_time()
        found = model.log_evidence(
            pairs, method, given_total=True, random_state=seed, n_jobs=1, **options
        )
        seconds = time.process_time() - start
        record.add(method, size, seed, found.value, found.std_error, seconds)
    save(record)


def all_allocations(n_tokens: int) -> tuple[float, float]:
    """Log evidence and expected missing count of ``gap``, summed over all its allocations.

    The weight of an allocation is one term for each topic, so that the sum over how a missing
    cell's tokens divide is a convolution.
    """
    few, rate = (1, 2), 1 / n_tokens
    missing = np.arange(14 * n_tokens + 200, dtype=float)

    def rising(a: float, n: Any) -> Any:
        return gammaln(a + n) - gammaln(a)

    def weights(many: int, beside: int, below: int) -> NDArray[np.float64]:
        rows = rising(0.25, many + beside) + rising(0.25, missing + below)
        columns = rising(0.25, many + missing) + rising(0.25, beside + below)
        total = rising(0.5, many + beside + below + missing)
        divisions = sum(gammaln(n + 1) for n in (many, beside, below, missing))
        found: NDArray[np.float64] = np.exp(rows + columns - total - divisions)
        return found

    size = 1 << int(np.ceil(np.log2(2 * missing.size)))
    terms = sum(
        np.fft.rfft(weights(many, beside, below), size)
        * np.fft.rfft(weights(n_tokens - many, few[0] - beside, few[1] - below), size)
        for beside in range(few[0] + 1)
        for below in range(few[1] + 1)
        for many in range(n_tokens + 1)
    )
    sums = np.fft.irfft(terms, size)[: missing.size]
    law = sums * rate * (1 + rate) ** -(n_tokens + sum(few) + missing + 1)
    return float(np.log(law.sum())), float((law * missing).sum() / law.sum())


def missing() -> None:
    """One missing cell beside one of many tokens, against the sum over all allocations."""
    record = Table(
        "missing-cells",
        "python benches/tempering.py missing",
        {
            "tokens of the first cell": ",",
            "method": "s",
            "ln evidence": ".2f",
            "±": ".2f",
            "off by": "+.2f",
            "expected in the missing cell": ",.0f",
            "± tokens": ",.0f",
            "by the sum": ",.0f",
            "s": ".1f",
        },
    )
    for n_tokens in (100, 300, 1000, 3000):
        model = AllocationModel.nmf(2, rate=1 / n_tokens)
        gap = np.ma.masked_equal([[n_tokens, 1], [-1, 2]], -1)
        value, expected = all_allocations(n_tokens)
        for method in ("tempered", "smc"):
            for seed in range(3):
                start = time.process_time()
                found = model.predict_missing(gap, method, random_state=seed, n_jobs=1)
                record.add(
                    n_tokens,
                    method,
                    found.evidence.value,
                    found.evidence.std_error,
                    found.evidence.value - value,
                    found.expected_counts[0],
                    found.expected_std_errors[0],
                    expected,
                    time.process_time() - start,
                )
    save(record)


def huge() -> None:
    """A cell of many tokens in a table of one row, whose topics add up to one Dirichlet law."""
    record = Table(
        "huge-cells",
        "python benches/tempering.py huge",
        {"tokens": ",", "±": ".3f", "off by": "+.3f", "MiB": ",.0f", "s": ".1f"},
    )
    model = AllocationModel.nmf(2)
    for n_tokens in (10**5, 10**6, 10**7):
        counts = [n_tokens, 40, 3]
        exact = dirichlet_multinomial.logpmf(counts, np.full(3, 1 / 3), sum(counts))
        start = time.process_time()
        found = model.log_evidence([counts], "tempered", given_total=True, random_state=0, n_jobs=1)
        seconds = time.process_time() - start
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        record.add(n_tokens, found.std_error, found.value - exact, peak, seconds)
    save(record)


def icews14(*ranks: int) -> None:
    """CP ranks of the political events of 2014, on all threads."""
    tensor = pb.read_tensor(DATA / "icews14.tns.gz")
    columns = {"rank": "d", "evidence": ",.1f", "±": ".1f", "sides apart": "+.1f"}
    columns |= {"moved at last": "+.1f", "barrier": ".1f", "round trips": "d", "settled": "s"}
    columns |= {"CPU s": ",.0f"}
    ranks = ranks or (5, 10, 20, 35, 50, 100)
    record = Table(
        "icews14", f"python benches/tempering.py icews14 {' '.join(map(str, ranks))}", columns
    )
    for rank in ranks:
        start = time.process_time()
        found = AllocationModel.cp(tensor.axes, rank).log_evidence(
            tensor,
            "tempered",
            given_total=True,
            random_state=0,
            n_replicates=2,
            n_samples=512,
        )
        moved = np.diff([np.mean(round_.values) for round_ in found.rounds[-2:]])[0]
        sides = np.subtract(*found.sides)
        settled = "yes" if found.converged else "no"
        taken = time.process_time() - start
        figures = found.value, found.std_error, sides, moved, found.barrier, found.round_trips
        record.add(rank, *figures, settled, taken)
        save(record)


SIZES = ((10, 50, 2), (12, 200, 4), (16, 500, 6), (20, 1000, 8), (26, 2000, 10))


def cases() -> Iterator[Case]:
    """Tables of four generators, small ones first."""
    for size, total, K in SIZES:
        shape = f"T = {total}, K = {K}"
        for seed in range(3):
            alpha, a = (0.05, 0.2, 1.0)[seed], (1e-4, 1e-2, 100.0)[seed]
            yield Case(f"prior {seed}, {shape}", from_prior(size, total, K, 1.0, seed), K)
            yield Case(f"planted {alpha}, {shape}", planted(size, total, K, alpha, seed), K)
            yield Case(f"letters {seed}, {shape}", letters(total, seed), K)
            counts = planted(size, total, K, 0.3, 10 + seed)
            yield Case(f"a = {a:g}, {shape}", counts, K, a)


class Spent(Exception):  # noqa: N818
    """The time is over, and runs are left."""


def kept(case: Case, seed: int, until: float, **options: Any) -> tuple[Evidence, float]:
    """:meth:`Case.evidence`, from the folder of runs where it is there."""
    folder = os.environ.get("POLYABAYES_RUNS")
    path = None if folder is None else Path(folder) / f"{case.name}, seed {seed}.pickle"
    if path is not None and path.exists():
        found: tuple[Evidence, float] = pickle.loads(path.read_bytes())
        return found
    if time.time() > until:
        raise Spent
    if path is not None and options:
        # A reference, whose time is not shown, goes on where it was stopped.
        options["checkpoint"] = path.with_suffix("")
    found = case.evidence(seed, **options)
    if path is not None:
        path.write_bytes(pickle.dumps(found))
    return found


def compared(case: Case, until: float) -> tuple[list[tuple[Evidence, float]], Evidence] | None:
    """Runs of two seeds, and one eight times as long; None where time is over."""
    warnings.simplefilter("ignore")
    try:
        runs = [kept(case, seed, until) for seed in (1, 2)]
        n_scans = 8 * max(found.rounds[-1].n_scans for found, _ in runs)
        return runs, kept(case, 3, until, n_samples=n_scans, target_std_error=1e-9)[0]
    except Spent:
        return None


def coverage(n_tables: int = 60) -> None:
    """95 % intervals of two seeds against a run eight times as long, by the size of the table."""
    record = Table(
        "evidence-intervals",
        f"python benches/tempering.py coverage {n_tables}",
        {
            "tokens": ",",
            "tables": "d",
            "intervals of 95 % that hold": ".0%",
            "settled": ".0%",
            "beyond 4 errors": "d",
            "of them without a warning": "d",
            "rms distance": ".2f",
            "mean ±": ".2f",
            "s": ".1f",
        },
    )
    rows: dict[int, list[tuple[float, ...]]] = {}
    until = time.time() + float(os.environ.get("POLYABAYES_SECONDS", "inf"))
    chosen = list(islice(cases(), n_tables))
    with ProcessPoolExecutor(2) as processes:
        results = list(processes.map(compared, chosen, [until] * n_tables))
    for case, result in zip(chosen, results, strict=True):
        if result is None:
            print(f"{case.name:<38} is left", flush=True)
            continue
        runs, reference = result
        for found, seconds in runs:
            low, high = found.interval()
            gap = found.value - reference.value
            is_far = abs(gap) > 4 * np.hypot(found.std_error, reference.std_error)
            row = (low <= reference.value <= high, found.converged, is_far, gap)
            rows.setdefault(int(case.counts.sum()), []).append((*row, found.std_error, seconds))
            print(f"{case.name:<38} gap {gap:+6.2f}  {shown(found, seconds)}", flush=True)
    for n_tokens, of_size in rows.items():
        held, settled, far, gaps, errors, seconds = np.array(of_size, dtype=float).T
        record.add(
            n_tokens,
            len(held) // 2,
            held.mean(),
            settled.mean(),
            int(far.sum()),
            int((far * settled).sum()),
            np.sqrt((gaps**2).mean()),
            errors.mean(),
            seconds.mean(),
        )
    if None not in results:
        save(record)


def main() -> None:
    """Print the sections asked for."""
    warnings.simplefilter("ignore")
    sections = {
        section.__name__: section
        for section in (tables, prior, few, refuted, missing, huge, icews14, coverage)
    }
    numbers: dict[str, list[int]] = {}
    for word in sys.argv[1:] or ["tables", "prior"]:
        if word.isdigit():
            numbers[next(reversed(numbers))].append(int(word))
        else:
            numbers[word] = []
    for name, of_section in numbers.items():
        sections[name](*of_section)


if __name__ == "__main__":
    main()
