"""Real corpora on one thread: published exact values, AP, and intervals where nothing is exact.

Corpora are read from the folder POLYABAYES_DATA, or from ../shared/data beside the repository. The
tables are kept in benches/records.
"""

from __future__ import annotations

import csv
import json
import os
import sys
import time
import warnings
from pathlib import Path

from recorded import Table, save

import polyabayes as pb

_BESIDE = Path(__file__).resolve().parents[2] / "shared" / "data"
DATA = Path(os.environ.get("POLYABAYES_DATA", _BESIDE))
COMMAND = "python benches/figures.py"


def published_values() -> None:
    """The model and the corpus of Capdevila et al. 2018, cut to 100 words."""
    parameters = json.loads((DATA / "l2r_twitter100.model.json").read_text())
    model = pb.PoissonFactorAnalysis.from_parameters(
        topic_word=parameters["phi"], shape=parameters["r"], probability=parameters["p"]
    )
    corpus = pb.read_corpus(DATA / "l2r_twitter100.ldac.gz", n_words=100)
    with (DATA / "l2r_twitter100.exact.csv").open() as stream:
        published = [tuple(map(float, row)) for row in list(csv.reader(stream))[1:]]
    rows = [int(row) for row, _ in published]
    values = pb.log_likelihood(model, corpus[rows], "exact").values
    error = max(abs(found / value - 1) for found, (_, value) in zip(values, published, strict=True))
    start = time.process_time()
    pb.log_likelihood(model, corpus, "exact", n_jobs=1)
    table = Table("published", COMMAND, {"l2r_twitter100": "s", "": ".2g"})
    table.add("largest relative error of ten published values", error)
    table.add("seconds for the exact values of all 10,653 documents", time.process_time() - start)
    save(table)


def associated_press() -> None:
    """Fit and score AP; intervals of sixty documents against a long run."""
    corpus = pb.read_corpus(DATA / "ap.ldac.gz", vocabulary=DATA / "ap.vocab")
    train, test = corpus.split(test_size=0.2, random_state=0)
    start = time.process_time()
    model = pb.LatentDirichletAllocation(50, learn_priors=False, n_jobs=1, random_state=0)
    model.fit(train)
    fitted = time.process_time()
    result = pb.log_likelihood(model, test, n_jobs=1, random_state=0)
    scored = time.process_time()
    table = Table("ap", COMMAND, {"AP, LDA with 50 topics, fixed priors": "s", "": ".5g"})
    table.add("seconds of training, 200 sweeps", round(fitted - start, 1))
    table.add(f"seconds of scoring {test.n_documents} documents", round(scored - fitted, 1))
    table.add("nats a token of the held-out documents", result.nats_per_token)
    table.add("its standard error", float(f"{result.nats_per_token_std_error:.1g}"))
    save(table)

    some = test[:60]
    long_run = {"n_samples": 3_000, "n_replicates": 32, "budget": 1e13, "random_state": 7}
    reference = pb.log_likelihood(model, some, "annealed", n_jobs=1, **long_run)
    columns = {"method": "s", "seed": "d", "held": ".0%", "total off by": "+.1f", "±": ".1f"}
    table = Table("ap-intervals", COMMAND, columns)
    for method in ("auto", "annealed", "smc-lookahead"):
        for seed in (0, 1):
            found = pb.log_likelihood(model, some, method, random_state=seed, n_jobs=1)
            lower, upper = found.interval()
            held = ((lower <= reference.values) & (reference.values <= upper)).mean()
            table.add(method, seed, held, found.total - reference.total, found.total_std_error)
    save(table)


def main() -> int:
    """Print all tables."""
    warnings.simplefilter("ignore", pb.exceptions.UnreliableErrorWarning)
    if not DATA.is_dir():
        print(f"no data in {DATA}: set POLYABAYES_DATA")
        return 1
    published_values()
    associated_press()
    return 0


if __name__ == "__main__":
    sys.exit(main())
