"""Evidence of tables by every method, against the exact value or a long run of tempering.

`python benches/evidence.py`: one thread, processor time; the tables are kept in benches/records.
"""

import sys
import time
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from record import Table, save

import polyabayes as pb

# Golden values of these methods.
RESTS_ON = ["nmf, tempered", "nmf, smc", "nmf, vb"]
METHODS: list[tuple[str, dict[str, Any]]] = [
    ("auto", {}),
    ("smc", {}),
    ("smc-lookahead", {}),
    ("tempered", {}),
    ("vb", {}),
]


def planted(size: int, total: int, n_topics: int, seed: int) -> NDArray[np.int64]:
    """A table of tokens from topics whose rows are Dirichlet(0.1)."""
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet(np.ones(n_topics))
    first, second = (rng.dirichlet(np.full(size, 0.1), n_topics) for _ in range(2))
    return rng.multinomial(total, ((first.T * shares) @ second).ravel()).reshape(size, size)


def measure(name: str, counts: NDArray[np.int64], n_topics: int) -> None:
    """A table of all methods, each with its default settings."""
    model = pb.AllocationModel.nmf(n_topics)
    try:
        truth = model.log_evidence(counts, "exact", given_total=True)
    except pb.exceptions.BudgetExceededError:
        effort = {"target_std_error": 0.1, "n_replicates": 8, "n_samples": 4096}
        truth = model.log_evidence(counts, "tempered", given_total=True, random_state=99, **effort)
    columns = {"method": "s", "took": "s", "value": ",.2f", "±": ".2g", "off by": "+.2f"}
    table = Table(
        f"evidence-of-{name}", "python benches/evidence.py", columns | {"s": ".2g"}, RESTS_ON
    )
    for method, options in METHODS:
        start = time.process_time()
        found = model.log_evidence(
            counts, method, given_total=True, random_state=0, n_jobs=1, **options
        )
        seconds = time.process_time() - start
        error = None if found.is_lower_bound else found.std_error
        table.add(method, found.method, found.value, error, found.value - truth.value, seconds)
    save(table)
    print(f"truth: {truth.value:.2f} +- {truth.std_error:.2g} ({truth.method})")


def main() -> int:
    """Print all tables."""
    warnings.simplefilter("ignore", pb.exceptions.PolyabayesWarning)
    measure("20-tokens", planted(5, 20, 3, 0), 3)
    measure("500-tokens", planted(20, 500, 7, 0), 7)
    return 0


if __name__ == "__main__":
    sys.exit(main())
