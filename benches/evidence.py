"""Evidence of tables by every method, against the exact value or a long run of tempering.

`python benches/evidence.py evidence`: one thread, processor time; `coverage N`: whether errors of
tempering hold, on two processes. The tables are kept in benches/records.
"""

from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import chain, islice, product
from typing import Any

import numpy as np
import pandas as pd
from record import Table, holds, letter_shares, main, save, timed

import polyabayes as pb
from polyabayes._support.arrays import Integers

# Golden values of these methods.
RESTS_ON = ["nmf, tempered", "nmf, smc", "nmf, vb"]
METHODS = ("auto", "smc", "tempered", "vb")


def planted(size: int, total: int, n_topics: int, seed: int, alpha: float = 0.1) -> Integers:
    """A table of tokens from topics whose rows are Dirichlet(alpha)."""
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet(np.ones(n_topics))
    first, second = (rng.dirichlet(np.full(size, alpha), n_topics) for _ in range(2))
    return rng.multinomial(total, ((first.T * shares) @ second).ravel()).reshape(size, size)


def evidence() -> None:
    """A table of all methods, each with its default settings, for two tables of counts."""
    columns = {"method": "s", "took": "s", "value": ",.2f", "±": ".2g"}
    columns |= {"off by": "+.2f", "s": ".2g"}
    for size, n_tokens, n_topics in ((5, 20, 3), (20, 500, 7)):
        counts = planted(size, n_tokens, n_topics, 0)
        options: dict[str, Any] = {"given_total": True, "n_jobs": 1}
        model = pb.AllocationModel.nmf(n_topics)
        try:
            truth = model.log_evidence(counts, "exact", **options)
        except pb.exceptions.BudgetExceededError:
            effort = {"target_std_error": 0.1, "n_replicates": 8, "n_samples": 4096}
            truth = model.log_evidence(counts, "tempered", random_state=99, **options, **effort)
        name = f"evidence-of-{n_tokens}-tokens"
        table = Table(name, "python benches/evidence.py evidence", columns, RESTS_ON)
        for method in METHODS:
            found, seconds = timed(model.log_evidence, counts, method, random_state=0, **options)
            error = None if found.is_lower_bound else found.std_error
            table.add(method, found.method, found.value, error, found.value - truth.value, seconds)
        save(table)
        print(f"truth: {truth.value:.2f} +- {truth.std_error:.2g} ({truth.method})")


def from_prior(size: int, total: int, n_topics: int, seed: int) -> Integers:
    """A table from the tables of the model's own prior."""
    rng = np.random.default_rng(seed)
    shares = rng.gamma(1 / n_topics, size=n_topics) + 1e-300
    tables = rng.gamma(1 / (n_topics * size), size=(2, n_topics, size)) + 1e-300
    first, second = tables / tables.sum(axis=2, keepdims=True)
    weights = ((first.T * shares / shares.sum()) @ second).ravel()
    return rng.multinomial(total, weights / weights.sum()).reshape(size, size)


SIZES = ((10, 50, 2), (12, 200, 4), (16, 500, 6), (20, 1000, 8), (26, 2000, 10))


def cases() -> Iterator[tuple[Integers, int, float]]:
    """Tables of four generators, small ones first, with numbers of topics and concentrations."""
    letters = letter_shares()
    for (size, total, K), seed in product(SIZES, range(3)):
        rng = np.random.default_rng(seed)
        yield from_prior(size, total, K, seed), K, 1.0
        yield planted(size, total, K, seed, (0.05, 0.2, 1.0)[seed]), K, 1.0
        yield rng.multinomial(total, letters.ravel()).reshape(letters.shape), K, 1.0
        yield planted(size, total, K, 10 + seed, 0.3), K, (1e-4, 1e-2, 100.0)[seed]


def compared(case: tuple[Integers, int, float]) -> list[tuple[Any, ...]]:
    """Runs of two seeds, beside one eight times as long."""
    counts, n_topics, a = case
    model = pb.AllocationModel.nmf(n_topics, concentration=a)
    options: dict[str, Any] = {"given_total": True, "n_jobs": 1}
    draw = partial(model.log_evidence, counts, "tempered", **options)
    runs = [timed(draw, random_state=seed) for seed in (1, 2)]
    n_scans = 8 * max(found.rounds[-1].n_scans for found, _ in runs)
    long, rows = draw(random_state=3, n_samples=n_scans, target_std_error=1e-9), []
    for found, seconds in runs:
        gap, error = found.value - long.value, found.std_error
        is_far = abs(gap) > 4 * np.hypot(error, long.std_error)
        held = holds(found, long.value)
        rows.append((counts.sum(), held, found.converged, is_far, gap, error, seconds))
    return rows


def coverage(n_tables: int = 60, /) -> None:
    """95 % intervals of two seeds against a run eight times as long, by the size of the table."""
    columns = {
        "tokens": ",", "tables": "d", "coverage of 95 % intervals": ".0%", "converged": ".0%",
        "beyond 4 errors": "d", "of them without a warning": "d", "rms distance": ".2f",
        "mean ±": ".2f", "s": ".1f",
    }  # fmt: skip
    command = f"python benches/evidence.py coverage {n_tables}"
    table = Table("evidence-intervals", command, columns, ["nmf, tempered"])
    with ProcessPoolExecutor(2) as processes:
        rows = chain(*processes.map(compared, islice(cases(), n_tables)))
    names = ["tokens", "held", "converged", "far", "gap", "error", "seconds"]
    for n_tokens, of in pd.DataFrame(rows, columns=names).groupby("tokens"):
        table.add(
            n_tokens, len(of) // 2, of.held.mean(), of.converged.mean(), of.far.sum(),
            (of.far & of.converged).sum(), np.sqrt((of.gap**2).mean()), of.error.mean(),
            of.seconds.mean(),
        )  # fmt: skip
    save(table)


if __name__ == "__main__":
    main(evidence, coverage)
