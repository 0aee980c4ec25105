"""Totals of held-out documents to 0.001 nats per token beside the default, and their coverage.

``python benches/totals.py [CORPUS K ...]`` trains each model, scores a fifth of the documents by
default and as a total, on one thread, and compares totals by other seeds with that of long runs.
"""

from __future__ import annotations

import os
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from record import Table, save

import polyabayes as pb

_BESIDE = Path(__file__).resolve().parents[2] / "shared" / "data"
DATA = Path(os.environ.get("POLYABAYES_DATA", _BESIDE))
CASES = (("poliblog5k", "20"), ("poliblog5k", "100"), ("ap", "50"), ("20ng", "50"))
TARGET, SEEDS, LONG = 0.001, 40, 2_000


def timed(model: pb.LatentDirichletAllocation, test: pb.Corpus, **options: object):
    start = time.process_time()
    found = pb.log_likelihood(model, test, n_jobs=1, **options)
    return found, time.process_time() - start


def main(cases: list[tuple[str, str]]) -> None:
    columns = {
        "corpus": "s", "topics": "s", "documents": ",", "default, s": ".1f", "total, s": ".2f",
        "ratio": ".0f", "stated error": ".5f", "intervals that hold": ".3f",
    }  # fmt: skip
    table = Table("totals", "python benches/totals.py", columns, ["lda, annealed"])
    for corpus, n_topics in cases:
        documents = pb.read_corpus(DATA / f"{corpus}.ldac.gz")
        train, test = documents.split(test_size=0.2, random_state=0)
        model = pb.LatentDirichletAllocation(int(n_topics), random_state=0, n_jobs=1).fit(train)
        _, of_default = timed(model, test, random_state=0)
        truth = pb.log_likelihood(model, test, "annealed", n_samples=LONG, random_state=SEEDS)
        runs = [
            timed(model, test, nats_per_token_std_error=TARGET, random_state=seed)
            for seed in range(SEEDS)
        ]
        seconds = float(np.median([elapsed for _, elapsed in runs]))
        errors = np.array([found.total_std_error for found, _ in runs])
        gaps = np.array([found.total - truth.total for found, _ in runs])
        holds = np.abs(gaps) < 1.96 * np.hypot(errors, truth.total_std_error)
        table.add(
            corpus, n_topics, test.n_documents, of_default, seconds, of_default / seconds,
            float(np.median(errors)) / test.n_tokens, float(holds.mean()),
        )  # fmt: skip
    save(table)


if __name__ == "__main__":
    warnings.simplefilter("ignore", pb.exceptions.PolyabayesWarning)
    main(list(zip(sys.argv[1::2], sys.argv[2::2], strict=True)) or list(CASES))
