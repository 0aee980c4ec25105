"""Evidence of tables by every method, against the exact value or a long run of tempering.

`python benches/evidence.py`: one thread, processor time; the tables are kept in benches/records.
"""

from typing import Any

import numpy as np
from record import Table, main, save, timed

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
        table = Table(name, "python benches/evidence.py", columns, RESTS_ON)
        for method in METHODS:
            found, seconds = timed(model.log_evidence, counts, method, random_state=0, **options)
            error = None if found.is_lower_bound else found.std_error
            table.add(method, found.method, found.value, error, found.value - truth.value, seconds)
        save(table)
        print(f"truth: {truth.value:.2f} +- {truth.std_error:.2g} ({truth.method})")


if __name__ == "__main__":
    main(evidence)
