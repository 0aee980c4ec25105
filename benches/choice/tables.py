"""Count tables and tensors of known rank, of few and of more counts."""

from typing import NamedTuple

import numpy as np
from benches.choice.factors import METHODS, product
from benches.choice.pieces import Case, Choice, Part, choices_of

import polyabayes as pb


class Regime(NamedTuple):
    """How tables are drawn."""

    shape: tuple[int, ...]
    rank: int
    total: int


REGIMES = {
    f"{' x '.join(map(str, shape))}, {total:,} counts, rank {rank}": Regime(shape, rank, total)
    for shape, totals in (((20, 15), (300, 1_000)), ((12, 10, 8), (300, 1_000)))
    for rank in (2, 4)
    for total in totals
}
MOST = 8


def drawn(regime: Regime, seed: int) -> Case:
    """A table whose counts are drawn from a mixture of independent laws of its modes."""
    rng = np.random.default_rng(100 * regime.rank + seed)
    factors = [rng.dirichlet(np.full(n, 0.2), regime.rank).T for n in regime.shape]
    factors[0] = factors[0] * rng.dirichlet(np.full(regime.rank, 5.0))
    shares = product(factors)
    counts = rng.multinomial(regime.total, shares.ravel() / shares.sum()).reshape(regime.shape)
    return Case(regime.rank, counts, list(range(1, MOST + 1)))


def by_evidence(case: Case) -> dict[str, Choice]:
    """Our call: parameters integrated out."""
    axes = ["i", "j", "k"][: case.data.ndim]
    model = pb.AllocationModel.cp(axes, None)
    found = pb.choose_n_components(
        model, case.data, case.sizes, concentrations="auto", random_state=0, target_std_error=1.0
    )
    return choices_of(found, ", by evidence")


TABLES = Part(
    "tables", REGIMES, drawn, {"choose": by_evidence, **METHODS}, rests_on="nmf, tempered"
)
