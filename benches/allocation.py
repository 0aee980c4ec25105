"""The figures of docs/methods/evidence.md, one line each.

    nice -n -15 python benches/allocation.py [SECTION ...]

Sections: table, sandwich, size, tokens, speed, icews14, toy, coverage, medium; by default all.
Times are processor seconds of one thread, the least of several where they are short. Real data are
read from the folder POLYABAYES_DATA, exact values of the toy matrices from POLYABAYES_VECTORS, or
from ../shared beside the repository; what needs them is left out, with a word, where there is none.
"""

from __future__ import annotations

import json
import os
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import polyabayes as pb
from polyabayes import AllocationModel, CountTensor
from polyabayes.allocation.layout import lay_out
from polyabayes.allocation.options import Options
from polyabayes.exceptions import BudgetExceededError, UnreliableErrorWarning

_BESIDE = Path(__file__).resolve().parents[2] / "shared"
DATA = Path(os.environ.get("POLYABAYES_DATA", _BESIDE / "data"))
VECTORS = Path(os.environ.get("POLYABAYES_VECTORS", _BESIDE / "vectors"))

Counts = NDArray[np.int64]


def report(what: str, figure: str) -> None:
    print(f"{what:<66} {figure}", flush=True)


def least_seconds(work: Callable[[], object], repeats: int = 5) -> float:
    """Least processor time of `work`."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def evidence(model: AllocationModel, counts: Any, method: str, **options: Any) -> str:
    """Value, error and time of the evidence given the total."""
    start = time.process_time()
    found = model.log_evidence(
        counts, method, given_total=True, random_state=0, n_jobs=1, **options
    )
    return shown(found, time.process_time() - start)


def shown(evidence: pb.Evidence, seconds: float) -> str:
    error = "a bound" if evidence.is_lower_bound else f"+- {evidence.std_error:.2f}"
    doubt = ", in doubt" if evidence.doubt else ""
    return f"{evidence.value:10,.1f} {error:<9} {seconds:6.2f} s{doubt}"


def drawn_table(alpha: float, seed: int) -> Counts:
    """A 26 x 26 table of 2,000 tokens from 8 topics whose rows are Dirichlet(alpha)."""
    rng = np.random.default_rng(seed)
    topics = rng.dirichlet(np.ones(8))
    first, second = (rng.dirichlet(np.full(26, alpha), 8) for _ in range(2))
    counts: Counts = rng.multinomial(2000, ((first.T * topics) @ second).ravel()).reshape(26, 26)
    return counts


def drawn_from_prior(seed: int) -> Counts:
    """The same from the tables of the BDeu prior with a = 1: Dirichlet(1/208) and (1/8)."""
    rng = np.random.default_rng(seed)
    topics = rng.dirichlet(np.full(8, 1 / 8))
    tables = rng.gamma(1 / 208, size=(2, 8, 26)) + 1e-300
    first, second = tables / tables.sum(axis=2, keepdims=True)
    counts: Counts = rng.multinomial(2000, ((first.T * topics) @ second).ravel()).reshape(26, 26)
    return counts


def table() -> None:
    """The table of the size of the paper's letters, by every method on one thread."""
    model = AllocationModel.nmf(8, axes=["first", "second"])
    cases = {"rows Dirichlet(0.1)": drawn_table(0.1, 0), "model's prior": drawn_from_prior(0)}
    settings: list[tuple[str, str, dict[str, Any]]] = [
        ("smc, 1,000 particles x 4", "smc", {}),
        ("smc-lookahead, 1,000 particles x 4", "smc-lookahead", {}),
        ("tempered, 256 scans", "tempered", {"n_samples": 256}),
        ("tempered, defaults", "tempered", {}),
        ("vb, 10 restarts", "vb", {}),
    ]
    for name, counts in cases.items():
        report(f"26 x 26, T = 2,000, {name}: non-zero cells", f"{np.count_nonzero(counts)}")
        for what, method, options in settings:
            report(f"  {what}", evidence(model, counts, method, **options))


def sandwich() -> None:
    """Annealing from both sides on tables drawn from the model's urn."""
    for K in (3, 8):
        data = CountTensor.from_dense(np.ones((26, 26), int), ["doc", "word"])
        core = lay_out(AllocationModel.nmf(K), data, None).core
        for seed in range(4):
            start = time.process_time()
            lower, upper = core.sandwich(
                2000, n_chains=16, n_temperatures=1000, n_replicates=4, seed=seed, n_jobs=1
            )
            gap = upper.ln_value - lower.ln_value
            report(
                f"sandwich, 26 x 26, T = 2,000, K = {K}, 1,000 temperatures, urn {seed}",
                f"{lower.ln_value:,.2f} to {upper.ln_value:,.2f}: gap {gap:.2f} nats, "
                f"{time.process_time() - start:.1f} s",
            )


def cp_tensor(size: int) -> CountTensor:
    """A tensor of 1,000 tokens from a CP model of rank 4."""
    rng = np.random.default_rng(size)
    ranks = rng.choice(4, 1000, p=rng.dirichlet(np.ones(4)))
    axes = [rng.dirichlet(np.full(size, 0.5), 4) for _ in range(3)]
    cells = np.array([[rng.choice(size, p=axis[r]) for axis in axes] for r in ranks])
    places, counts = np.unique(cells, axis=0, return_counts=True)
    return CountTensor.from_coo(places, counts, ["i", "j", "k"], [size] * 3)


def size() -> None:
    """Time against the size of the tensor: SMC, and VB for a given number of iterations."""
    model = AllocationModel.cp(["i", "j", "k"], 4)
    for edge in (4, 8, 16, 32, 64, 256):
        tensor = cp_tensor(edge)
        core = lay_out(model, tensor, None).core
        filtered = smc_seconds(core, 1000)
        climbed = least_seconds(
            lambda core=core: core.variational(  # type: ignore[misc]
                "vb", max_iter=100, tolerance=1e-300, n_restarts=1, seed=0, n_jobs=1
            )
        )
        report(
            f"CP 4, T = 1,000, {edge}^3 cells, {tensor.n_cells} of them not zero",
            f"smc 1,000 particles {1e3 * filtered:.1f} ms; vb 100 iterations "
            f"{1e3 * climbed:.1f} ms; {core.n_marginals:,} marginal counts",
        )


def smc_seconds(core: Any, n_particles: int, below: float = 0.5) -> float:
    """Least time of one run of SMC."""
    return least_seconds(
        lambda: core.evidence(
            Options("smc", n_particles, n_replicates=1, resample_below=below), seed=0, n_jobs=1
        )
    )


def tokens() -> None:
    """SMC: time against tokens and particles."""
    model = AllocationModel.nmf(4)
    rng = np.random.default_rng(0)
    cells = rng.dirichlet(np.full(400, 0.3))
    for total in (500, 1000, 2000, 4000):
        counts = rng.multinomial(total, cells).reshape(20, 20)
        core = lay_out(model, counts, None).core
        for n_particles in (250, 1000, 4000):
            seconds = smc_seconds(core, n_particles)
            speed = total * n_particles / seconds / 1e6
            report(
                f"smc, NMF 20 x 20, K = 4, T = {total:,}, {n_particles:,} particles",
                f"{1e3 * seconds:7.1f} ms, {speed:.0f} million particle-tokens/s",
            )


def speed() -> None:
    """SMC: particle-tokens a second, with and without resampling."""
    for K in (2, 4, 8, 16):
        counts = np.random.default_rng(0).poisson(5, (20, 20))
        core = lay_out(AllocationModel.nmf(K), counts, None).core
        for below in (0.0, 0.5, 1.0):
            seconds = smc_seconds(core, 1000, below)
            report(
                f"smc, NMF 20 x 20, K = {K}, 1,000 particles, resample below {below}",
                f"{counts.sum() * 1000 / seconds / 1e6:.0f} million particle-tokens/s",
            )


def icews14() -> None:
    """CP ranks of the political events of 2014."""
    if not (DATA / "icews14.tns.gz").is_file():
        return report("icews14", f"left out: not in {DATA}")
    tensor = pb.read_tensor(DATA / "icews14.tns.gz")
    for rank in (5, 10, 20, 50):
        model = AllocationModel.cp(tensor.axes, rank)
        for method, what in (("vb", "10 restarts"), ("tempered", "64 scans x 2")):
            options = {"n_samples": 64, "n_replicates": 2} if method == "tempered" else {}
            found = evidence(model, tensor, method, **options)
            report(f"icews14, CP {rank}, {method}, {what}", found)
    return None


def toy() -> None:
    """The paper's matrices X1 and X2."""
    file = VECTORS / "toy_matrices.json"
    if not file.is_file():
        return report("toy matrices", f"left out: not in {VECTORS}")
    toys = json.loads(file.read_text())
    known = {
        name: value for name, value in toys["log_evidence"].items() if name[:2] in ("X1", "X2")
    }
    found = {name: toy_model(name).log_evidence(toys[name[:2]], "exact").value for name in known}
    worst = max(abs(found[name] - value) for name, value in known.items())
    report(f"toy matrices: {len(known)} exact values, largest error", f"{worst:.1e}")
    for name, value in toys["best_elbo"].items():
        bound = toy_model(name).log_evidence(toys[name[:2]], "vb", n_restarts=200, random_state=0)
        exact = found.get(name, np.nan)
        report(
            f"toy matrices: {name}, best bound of 200 restarts",
            f"{bound.value:.10f} (known {value:.10f}; exact value {exact:.6f})",
        )
    return None


def toy_model(name: str) -> AllocationModel:
    """Of a name like 'X2 K=4 a=1e0'."""
    _, rank, concentration = name.split()
    return AllocationModel.nmf(int(rank[2:]), concentration=float(concentration[2:]))


def coverage() -> None:
    """95 % intervals at default settings on small tables with exact values."""
    rng = np.random.default_rng(5)
    found: dict[str, list[tuple[float, float, bool]]] = {}
    methods = ("smc", "smc-lookahead", "tempered")
    n_tables = 0
    while n_tables < 200:
        shape, K = rng.integers(2, 6, 2), int(rng.integers(2, 4))
        total, a = int(rng.integers(8, 26)), float(rng.choice([0.5, 1, 4, 20]))
        counts = rng.multinomial(total, rng.dirichlet(np.full(shape.prod(), 0.4))).reshape(shape)
        model = AllocationModel.nmf(K, concentration=a)
        try:
            exact = model.log_evidence(counts, "exact", budget=1e8).value
        except BudgetExceededError:
            continue
        n_tables += 1
        for method in methods:
            one = model.log_evidence(counts, method, random_state=n_tables, n_jobs=1)
            low, high = one.interval()
            row = (one.value - exact, one.std_error, low <= exact <= high)
            found.setdefault(method, []).append(row)
    for method, rows in found.items():
        gaps, errors, holds = np.array(rows).T
        ratios = np.expm1(gaps)
        bias = ratios.mean() / (ratios.std() / np.sqrt(len(ratios)))
        report(
            f"coverage of 200 tables, {method}, defaults",
            f"{holds.mean():.1%}; mean of L^/L - 1 is {bias:+.1f} errors; "
            f"rms {np.sqrt((gaps**2).mean()):.3f} nats, rms of gap/error "
            f"{np.sqrt(((gaps / errors) ** 2).mean()):.2f}",
        )


def medium() -> None:
    """Intervals at default settings where no exact value is known, against a long run."""
    model = AllocationModel.nmf(4)
    for total in (100, 300):
        rng = np.random.default_rng(total)
        topics, words = rng.dirichlet(np.full(12, 0.2), 4), rng.dirichlet(np.full(12, 0.2), 4)
        counts = rng.multinomial(total, (topics.T @ words / 4).ravel()).reshape(12, 12)
        long = model.log_evidence(
            counts, "tempered", target_std_error=0.05, n_replicates=8, random_state=0
        )
        report(f"12 x 12, K = 4, T = {total}: to 0.05 nats", repr(long))
        for method in ("smc", "smc-lookahead", "tempered"):
            runs = [
                model.log_evidence(counts, method, random_state=seed, n_jobs=1)
                for seed in range(1, 31)
            ]
            holds = [low <= long.value <= high for low, high in (run.interval() for run in runs)]
            gaps = np.array([run.value - long.value for run in runs])
            report(
                f"  {method}, defaults, 30 seeds: 95 % intervals that hold it",
                f"{np.mean(holds):.0%}, in doubt {np.mean([bool(run.doubt) for run in runs]):.0%}, "
                f"mean gap {gaps.mean():+.2f}, rms {np.sqrt((gaps**2).mean()):.2f} nats",
            )


SECTIONS = [table, sandwich, size, tokens, speed, icews14, toy, coverage, medium]


def main() -> None:
    """Print the sections asked for."""
    warnings.simplefilter("ignore", UnreliableErrorWarning)
    known = {section.__name__: section for section in SECTIONS}
    for name in sys.argv[1:] or known:
        known[name]()


if __name__ == "__main__":
    main()
