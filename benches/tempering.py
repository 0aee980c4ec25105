"""Evidence by tempering: whether errors hold.

    python benches/tempering.py coverage [N]

Real data are read from the folder POLYABAYES_DATA, or from ../shared/data beside the repository.
Coverage runs on two processes.
"""

import warnings
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from evidence import planted
from record import Table, holds, letter_shares, main, save, timed

from polyabayes import AllocationModel, Evidence
from polyabayes._support.arrays import Integers

COMMAND = "python benches/tempering.py"


class Case(NamedTuple):
    """A table and the model that it is scored under."""

    name: str
    counts: Integers
    n_topics: int
    concentration: float = 1.0

    def evidence(self, seed: int, **options: Any) -> tuple[Evidence, float]:
        """Evidence given the total, and the processor time that it took."""
        axes = ["first", "second"]
        model = AllocationModel.nmf(self.n_topics, axes=axes, concentration=self.concentration)
        return timed(
            model.log_evidence,
            *(self.counts, "tempered"),
            given_total=True,
            random_state=seed,
            n_jobs=1,
            **options,
        )


def from_prior(size: int, total: int, n_topics: int, concentration: float, seed: int) -> Integers:
    """A table from the tables of the model's own prior."""
    rng = np.random.default_rng(seed)
    shares = rng.gamma(concentration / n_topics, size=n_topics) + 1e-300
    tables = rng.gamma(concentration / (n_topics * size), size=(2, n_topics, size)) + 1e-300
    first, second = tables / tables.sum(axis=2, keepdims=True)
    weights = ((first.T * shares / shares.sum()) @ second).ravel()
    counts: Integers = rng.multinomial(total, weights / weights.sum())
    return counts.reshape(size, size)


def letters(total: int, seed: int) -> Integers:
    """Draws of pairs of letters."""
    shares = letter_shares()
    counts: Integers = np.random.default_rng(seed).multinomial(total, shares.ravel())
    return counts.reshape(shares.shape)


SIZES = ((10, 50, 2), (12, 200, 4), (16, 500, 6), (20, 1000, 8), (26, 2000, 10))


def cases() -> Iterator[Case]:
    """Tables of four generators, small ones first."""
    for size, total, K in SIZES:
        shape = f"T = {total}, K = {K}"
        for seed in range(3):
            alpha, a = (0.05, 0.2, 1.0)[seed], (1e-4, 1e-2, 100.0)[seed]
            yield Case(f"prior {seed}, {shape}", from_prior(size, total, K, 1.0, seed), K)
            yield Case(f"planted {alpha}, {shape}", planted(size, total, K, seed, alpha), K)
            yield Case(f"letters {seed}, {shape}", letters(total, seed), K)
            counts = planted(size, total, K, 10 + seed, 0.3)
            yield Case(f"a = {a:g}, {shape}", counts, K, a)


def compared(case: Case) -> tuple[list[tuple[Evidence, float]], Evidence]:
    """Runs of two seeds, and one eight times as long."""
    warnings.simplefilter("ignore")
    runs = [case.evidence(seed) for seed in (1, 2)]
    n_scans = 8 * max(found.rounds[-1].n_scans for found, _ in runs)
    return runs, case.evidence(3, n_samples=n_scans, target_std_error=1e-9)[0]


def coverage(n_tables: int = 60, /) -> None:
    """95 % intervals of two seeds against a run eight times as long, by the size of the table."""
    columns = {
        "tokens": ",", "tables": "d", "coverage of 95 % intervals": ".0%", "converged": ".0%",
        "beyond 4 errors": "d", "of them without a warning": "d", "rms distance": ".2f",
        "mean ±": ".2f", "s": ".1f",
    }  # fmt: skip
    command = f"{COMMAND} coverage {n_tables}"
    table = Table("evidence-intervals", command, columns, ["nmf, tempered"])
    rows = []
    chosen = list(islice(cases(), n_tables))
    with ProcessPoolExecutor(2) as processes:
        results = list(processes.map(compared, chosen))
    for case, (runs, reference) in zip(chosen, results, strict=True):
        for found, seconds in runs:
            gap, error = found.value - reference.value, found.std_error
            is_far = abs(gap) > 4 * np.hypot(error, reference.std_error)
            held = holds(found, reference.value)
            rows.append((case.counts.sum(), held, found.converged, is_far, gap, error, seconds))
            print(f"{case.name:<38} gap {gap:+6.2f}  {found}  {seconds:.1f} s", flush=True)
    names = ["tokens", "held", "converged", "far", "gap", "error", "seconds"]
    for n_tokens, of in pd.DataFrame(rows, columns=names).groupby("tokens"):
        table.add(
            n_tokens, len(of) // 2, of.held.mean(), of.converged.mean(), of.far.sum(),
            (of.far & of.converged).sum(), np.sqrt((of.gap**2).mean()), of.error.mean(),
            of.seconds.mean(),
        )  # fmt: skip
    save(table)


if __name__ == "__main__":
    main(coverage)
