"""Simulators of every kind of claim, and a table of how far the answers are from the truth.

    python -m benches.truth [--seed N] [--size N] [--only WORD ...]

A size of 1 takes a few minutes of one thread. The seed is that of the day by default, so that each
run is new; a miss is looked up by running its kind again with the seed of the table.
"""

import argparse
import datetime
import time
import warnings
import zlib

import numpy as np
from benches.record import Table
from benches.truth import bursty, documents, others
from benches.truth.table import COLUMNS, add

# Problems of a kind for each unit of size.
N_DOCUMENTS = 8


def main() -> None:
    """Print a row for each kind."""
    today = int(f"{datetime.datetime.now(datetime.UTC):%Y%m%d}")
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=today)
    parser.add_argument("--size", type=int, default=1)
    parser.add_argument("--only", nargs="+", default=[""], help="parts of the names of kinds")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    print(f"seed {given.seed}, size {given.size}")
    table = Table("truth", "python -m benches.truth", COLUMNS)
    of_documents = documents.SIMULATORS | bursty.SIMULATORS
    kinds = [(name, part, N_DOCUMENTS) for name, part in of_documents.items()]
    kinds += [(name, part, 1) for name, part in others.SIMULATORS.items()]
    for name, simulator, n in kinds:
        if any(word in name for word in given.only):
            rng = np.random.default_rng([given.seed, zlib.crc32(name.encode())])
            start = time.process_time()
            outcomes = list(simulator(rng, n * given.size))
            if outcomes:
                add(table, name, outcomes, time.process_time() - start)


if __name__ == "__main__":
    main()
