"""LDA of polyabayes and of topica with the same processor time, in turn, one thread each.

    python benches/equal_time.py run [--corpus NAME ...] [--budget SECONDS ...] [--seeds N]
    python benches/equal_time.py table

``run`` makes the fits that are not there yet and keeps a line of JSON for each in
``benches/records/runs/equal-time.jsonl``; ``table`` makes the record of them. Splits and scores are
those of the leaderboard. Under thousands of topics, topica's sampler is WarpLDA, and some documents
are scored along a path that lowers pseudo-counts.
"""

import math
from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import record
from leaderboard import scored, split
from record import Table, golden, save, texts, timed, told

import polyabayes as pb

KEPT = "equal-time"
CELLS = (
    *(("AP", 20), ("AP", 100), ("NIPS", 50), ("poliblog5k", 2000)),
    *(("20 Newsgroups", 2000), ("20 Newsgroups", 5000), ("planted topics", 2000)),
)
NAMES = tuple(dict.fromkeys(name for name, _ in CELLS))
# Number of topics from which they are many; documents that are scored then, and their temperatures.
MANY, N_SCORED, TEMPERATURES = 1000, 20, 500
BUDGETS = (5, 30, 180)
RESTS_ON = ("lda, auto", "lda, Gibbs")
# Sweeps of the first fit of a cell; share of the budget by which a fit may miss it.
PILOT, TOLERANCE = 20, 0.15


def polyabayes_fit(train: pb.Corpus, n_topics: int, n_sweeps: int, seed: int) -> Any:
    lda = pb.LatentDirichletAllocation(n_topics, max_iter=n_sweeps, n_jobs=1, random_state=seed)
    return lda.fit(train)


def topica_fit(words: list[list[str]], n_topics: int, n_sweeps: int, seed: int) -> Any:
    """Of so many sweeps in all; what its fit keeps beside the topics is off."""
    import topica

    # Its five samples follow, 25 sweeps apart by default.
    interval = min(25, math.ceil(n_sweeps / 10))
    lda = topica.LDA(n_topics, seed=seed, **{"sampler": "warplda"} if n_topics >= MANY else {})
    options = {"keep_theta_draws": False, "check_every": 0, "num_threads": 1}
    lda.fit(words, iters=max(1, n_sweeps - 5 * interval), sample_interval=interval, **options)
    return pb.interop.from_topica(lda)


def within(fit: Callable[[int], Any], budget: float, n_sweeps: int) -> tuple[Any, int, float]:
    """A fit that takes the budget, its sweeps and its seconds, from a guess of the sweeps."""
    while True:
        model, seconds = timed(fit, n_sweeps)
        if abs(seconds / budget - 1) < TOLERANCE:
            return model, n_sweeps, seconds
        n_sweeps = max(1, round(n_sweeps * budget / seconds))


def score(model: Any, test: pb.Corpus) -> Any:
    """Log-likelihoods of the test documents, of the first if there are many topics."""
    if len(model.components_) < MANY:
        return scored(model, test)
    options = {"n_samples": TEMPERATURES, "budget": 1e12, "options": {"start": "lowered"}}
    return pb.log_likelihood(
        *(model, test[:N_SCORED], "annealed"),
        event="sequence", given_length=True, n_jobs=1, random_state=0, **options,
    )  # fmt: skip


def rows() -> list[dict[str, Any]]:
    """Fits whose golden values are today's."""
    return [row for row in record.kept(KEPT) if row["golden"] == golden(RESTS_ON)]


def run(corpus: Sequence[str] = NAMES, budget: Sequence[int] = BUDGETS, seeds: int = 5) -> None:
    """Make the fits that are not there, in turn, and score them."""
    for seconds, seed, (name, n_topics) in product(budget, range(seeds), CELLS):
        if name not in corpus:
            continue
        train, test = split(name)
        fits = {
            "polyabayes": partial(polyabayes_fit, train, n_topics),
            "topica": partial(topica_fit, texts(train), n_topics),
        }
        for package, fit in fits.items():
            cell = {"corpus": name, "topics": n_topics, "package": package}
            own = [row for row in rows() if cell.items() <= row.items()]
            if any((row["budget"], row["seed"]) == (seconds, seed) for row in own):
                continue
            near = min(own, key=lambda row: abs(math.log(row["budget"] / seconds)), default=None)
            guess = round(near["sweeps"] * seconds / near["seconds"]) if near else PILOT
            model, n_sweeps, spent = within(partial(fit, seed=seed), seconds, guess)
            found = score(model, test)
            cell |= {"budget": seconds, "seed": seed, "sweeps": n_sweeps, "seconds": spent}
            cell |= {"nats": found.nats_per_token, "error": found.nats_per_token_std_error}
            cell |= {"golden": golden(RESTS_ON)}
            print(record.keep(KEPT, cell), flush=True)


def table() -> None:
    """One corpus, number of topics and budget a line: mean of the seeds, least and most of them."""
    packages = ("polyabayes", "topica")
    columns = {"corpus": "s", "K": "d", "processor time": "s", "seeds": "d"}
    columns |= {f"{package}, sweeps": ",d" for package in packages}
    columns |= dict.fromkeys((*packages, "difference"), "s")
    made = Table(KEPT, "python benches/equal_time.py run", columns, RESTS_ON)
    found = pd.DataFrame(rows())
    for (name, n_topics, budget), of_cell in found.groupby(["corpus", "topics", "budget"]):
        by_package = [of_cell[of_cell.package == package] for package in packages]
        scores = [own.nats.to_numpy() for own in by_package]
        n_seeds = min(map(len, scores))
        ranges = [f"{x.mean():.4f} ({x.min():.4f} to {x.max():.4f})" for x in scores]
        ahead = f"{scores[0].mean() - scores[1].mean():+.4f}"
        if n_seeds > 1:
            ahead += f" ± {np.sqrt(sum(x.var(ddof=1) / len(x) for x in scores)):.4f}"
        elif of_cell.topics.max() >= MANY:
            ahead += f" ± {np.hypot(*of_cell.error):.4f}"
        sweeps = [round(own.sweeps.mean()) for own in by_package]
        made.add(name, n_topics, f"{budget} s", n_seeds, *sweeps, *ranges, ahead)
    save(made, note=told(rows()))


if __name__ == "__main__":
    record.main(run, table)
