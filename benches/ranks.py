"""How many topics, or which rank? The posterior of the size, by scores that can tell and others.

    python benches/ranks.py bigrams [LETTER_BIGRAMS.csv]
    python benches/ranks.py known

`bigrams`: ranks of the non-negative matrix factorisation of letter bigrams by integrated evidence,
an interval for every rank. `known`: corpora drawn from LDA with 3 to 6 topics, and the mode of the
posterior by the training's bound, by the likelihood at the trained parameters and by the evidence.
All sizes of the range are equally probable before.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import polyabayes as pb

_BESIDE = Path(__file__).resolve().parents[2] / "shared" / "data"
DATA = Path(os.environ.get("POLYABAYES_DATA", _BESIDE)) / "letter_bigrams.csv"


def search_evidence(
    counts: Any, largest: int, concentration: float, **options: Any
) -> pb.WitnessSearch:
    """Score all sizes of the factorisation word <- topic -> document by tempering."""
    return pb.WitnessSearch(
        pb.AllocationModel.nmf(None, concentration=concentration),
        pb.priors.Uniform(1, largest),
        scoring_options={"method": "tempered", "given_total": True, **options},
        random_state=0,
    ).fit(counts)


def bigrams(file: Path, n_tokens: int, largest: int, concentration: float) -> None:
    """Print the table of ranks."""
    table = pd.read_csv(file, keep_default_na=False)
    shares = table.pivot(index="first", columns="second", values="count").to_numpy(float)
    shares = shares / shares.sum()
    rng = np.random.default_rng(0)
    counts = rng.multinomial(n_tokens, shares.ravel()).reshape(shares.shape)
    # Few replicates have wide intervals, by Student's law.
    search = search_evidence(counts, largest, concentration, n_replicates=16)
    bounds, posterior = search.bounds_, search.posterior_bounds_
    print(f"{n_tokens:,} bigrams, concentration {concentration:g}")
    print("rank  ln evidence      +-  posterior between      and  seconds")
    for row in range(search.n_steps_):
        score, share = bounds.row(row), posterior.row(row)
        print(
            f"{score['size']:4}  {score['log_score']:11.2f}  {score['std_error']:6.2f}  "
            f"{share['lower']:17.2g}  {share['upper']:7.2g}  {score['seconds']:7.1f}"
        )
    last = bounds.row(-1)
    print(f"ln p(counts | total): {last['lower']:.2f} to {last['upper']:.2f}; mode {search.best_}")


def known(n_corpora: int, largest: int, concentration: float) -> None:
    """Print the posterior's mode by every score."""
    names = ["bound", "likelihood", "evidence"]
    print("true  " + "  ".join(f"{name:>10}" for name in names) + "  seconds")
    near = np.zeros(3, dtype=int)
    for seed in range(n_corpora):
        start, truth = time.perf_counter(), 3 + seed % 4
        corpus = pb.datasets.make_lda_corpus(
            60, 20, truth, document_length=30, random_state=seed
        ).corpus
        sizes = pb.priors.Uniform(1, largest)
        lda = pb.LatentDirichletAllocation(learn_priors=True, topic_word_prior=0.0)
        nested = [
            pb.WitnessSearch(lda, sizes, scoring=name, random_state=0).fit(corpus)
            for name in ("bound", "likelihood")
        ]
        evidence = search_evidence(corpus, largest, concentration, n_samples=128)
        found = [search.best_ for search in (*nested, evidence)]
        near += np.abs(np.array(found) - truth) <= 1
        row = "  ".join(f"{size:10}" for size in found)
        print(f"{truth:4}  {row}  {time.perf_counter() - start:7.1f}", flush=True)
    print("near  " + "  ".join(f"{f'{n} of {n_corpora}':>10}" for n in near))


def main() -> None:
    """Print a table."""
    warnings.simplefilter("ignore", pb.exceptions.PolyabayesWarning)
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", choices=["bigrams", "known"])
    parser.add_argument("file", nargs="?", type=Path, default=DATA)
    parser.add_argument("--tokens", type=int, default=2000, help="bigrams drawn")
    parser.add_argument("--corpora", type=int, default=10, help="corpora of known size")
    parser.add_argument("--largest", type=int, default=10, help="largest size")
    parser.add_argument("--concentration", type=float, default=20.0, help="of all tables")
    arguments = parser.parse_args()
    if arguments.part == "bigrams":
        bigrams(arguments.file, arguments.tokens, arguments.largest, arguments.concentration)
    else:
        known(arguments.corpora, arguments.largest, arguments.concentration)


if __name__ == "__main__":
    main()
