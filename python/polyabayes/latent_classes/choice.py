"""How many classes: evidences of numbers of classes, and what they say together."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from polyabayes._support import checks
from polyabayes._support.output.tables import columns_of, text_table
from polyabayes._support.results import Result
from polyabayes.allocation import AllocationModel
from polyabayes.allocation.options import Run
from polyabayes.exceptions import InvalidArgumentError, InvalidTypeError, argument
from polyabayes.sizes.priors import SizePrior


class ClassPrior(NamedTuple):
    """Prior of tables: Dirichlet parameters of the class weights and of the items' levels.

    Of several parameters of the items, each is as probable as any other. None is that of
    :class:`AllocationModel`, BDeu with an equivalent sample size of 1.
    """

    weights: float | None
    items: tuple[float | None, ...]

    @classmethod
    def of(cls, given: Any) -> ClassPrior:
        """The argument `prior`, checked."""
        if not isinstance(given, Mapping):
            return PRIORS[checks.choice("prior", given, tuple(PRIORS))]
        if set(given) != {"weights", "items"}:
            raise InvalidArgumentError(
                f"{argument('prior')} needs the entries 'weights' and 'items', got "
                f"{', '.join(map(repr, given))}"
            )
        items = given["items"]
        items = items if isinstance(items, Sequence) and not isinstance(items, str) else [items]
        if not len(items):
            raise InvalidArgumentError("prior['items'] is empty; give a number, or several")
        found = {checks.positive_number("prior['items']", value) for value in items}
        weights = checks.positive_number("prior['weights']", given["weights"])
        return cls(weights, tuple(sorted(found)))

    @property
    def middle(self) -> int:
        """Place of the parameter of the items that is nearest to 1, by ratio."""
        return min(range(len(self.items)), key=lambda at: abs(math.log(self.items[at] or 1.0)))

    def model(
        self, axes: Iterable[str], n_classes: int, at: int = 0
    ) -> tuple[AllocationModel, str]:
        """The network of so many classes, and the name of its hidden node."""
        names = list(axes)
        hidden = next(name for name in ("class", "klass", "_class") if name not in names)
        graph, parameter = f"{hidden} -> {', '.join(names)}", self.items[at]
        if self.weights is None or parameter is None:
            return AllocationModel(graph, {hidden: n_classes}), hidden
        alphas = {hidden: self.weights, **dict.fromkeys(names, parameter)}
        return AllocationModel(graph, {hidden: n_classes}, prior=alphas), hidden


PRIORS = {
    "learned": ClassPrior(4.0, tuple(4.0**power for power in range(-1, 7))),
    "flat": ClassPrior(1.0, (1.0,)),
    "jeffreys": ClassPrior(0.5, (0.5,)),
    "bdeu": ClassPrior(None, (None,)),
}


def options_of(run: Run, n_classes: int, purpose: int) -> dict[str, Any]:
    """Keywords of a method; every number of classes has seeds of its own."""
    seed = np.random.SeedSequence([run.seed, n_classes, purpose])
    return {"random_state": seed, "n_jobs": run.n_jobs, "progress": run.progress}


@dataclass(frozen=True, eq=False, repr=False)
class ClassChoice(Result):
    """Choice of the number of classes, by posterior probabilities or by BIC.

    Attributes
    ----------
    best : int
        The most probable number; for ``"em"``, the number with the smallest BIC.
    criterion : {"evidence", "bic"}
        What was compared.
    rows : list of dict
        One per number of classes. By evidence: ``n_classes``, ``log_evidence`` (of the rows, in
        nats) and its ``std_error``, ``prior`` and ``probability``, ``low`` and ``high`` (95 %
        interval of the probability, from the errors of the evidences), and ``concentration``, the
        most probable parameter of the answers, if it is learned. By BIC: ``n_classes``,
        ``log_likelihood`` (nats), ``n_parameters``, ``aic``, ``bic`` and ``sabic``.
    occupied : dict of int to float
        Posterior probabilities of the number of classes with at least one row; no entries by BIC.

    Examples
    --------
    >>> answers = np.repeat([[0, 0, 0, 0], [1, 1, 1, 1], [0, 1, 0, 1]], [20, 20, 4], axis=0)
    >>> choice = pb.LatentClassAnalysis([1, 2, 3], random_state=0).fit(answers).choice_
    >>> choice.criterion, choice.best, list(choice.probabilities)
    ('evidence', 3, [1, 2, 3])
    """

    best: int
    criterion: str
    rows: list[dict[str, Any]]
    occupied: dict[int, float] = field(default_factory=dict)

    @property
    def probabilities(self) -> dict[int, float]:
        """Posterior probability of each number of classes; empty by BIC."""
        return {row["n_classes"]: row["probability"] for row in self.rows if "probability" in row}

    def _rows(self) -> list[dict[str, Any]]:
        return self.rows

    def __str__(self) -> str:
        columns = {
            name: [f"{x:,}" if isinstance(x, int) else f"{x:,.4f}" for x in values]
            for name, values in self._columns().items()
        }
        occupied = ", ".join(f"{n}: {p:.3f}" for n, p in self.occupied.items())
        tail = f"\nnon-empty classes: {occupied}" if occupied else ""
        return text_table(columns_of(columns)) + tail

    def __repr__(self) -> str:
        told = f"{self.best} classes"
        if self.probabilities:
            told += f", probability {self.probabilities[self.best]:.3f}"
        return f"<ClassChoice: {told} by {self.criterion}>\n{self}"


def checked_sizes(n_classes: Any, max_classes: Any, n_patterns: int) -> tuple[list[int], bool]:
    """Numbers of classes to try, and whether they end where further ones have no chance."""
    most = checks.whole_number("max_classes", max_classes, 1)
    if n_classes is None:
        return list(range(1, min(most, n_patterns) + 1)), True
    given = n_classes if isinstance(n_classes, Iterable) else [n_classes]
    if isinstance(given, str | Mapping):
        raise InvalidTypeError(f"n_classes must be a number or numbers, got {n_classes!r}")
    sizes = sorted({checks.whole_number("n_classes", size, 1) for size in given})
    if not sizes:
        raise InvalidArgumentError("n_classes is empty; give a number, or leave it out")
    if sizes[-1] > n_patterns:
        raise InvalidArgumentError(
            f"{argument('n_classes', sizes[-1])} is more than the {n_patterns:,} different "
            "patterns of answers that the rows have; lower it"
        )
    return sizes, False


def checked_ln_prior(prior: Any, sizes: Iterable[int]) -> dict[int, float]:
    """Ln of the prior probability of each number of classes, as far as it is known."""
    if not isinstance(prior, SizePrior) or prior.n_variables != 1:
        raise InvalidTypeError(
            f"size_prior must be a prior of one size, as polyabayes.priors.Geometric(0.5), got "
            f"{prior!r}"
        )
    masses = {size: prior.log_box((size,), (float(size),)) for size in sizes}
    if not np.isfinite(list(masses.values())).any():
        raise InvalidArgumentError(f"size_prior {prior!r} has no mass on {list(masses)} classes")
    return {size: mass for size, mass in masses.items() if np.isfinite(mass)}


def criteria(ln_rows: float, n_parameters: int, n_rows: float) -> dict[str, float]:
    """AIC, BIC and the sample-size adjusted BIC (Sclove 1987) of a log-likelihood."""
    penalties = {"aic": 2.0, "bic": np.log(n_rows), "sabic": np.log((n_rows + 2) / 24)}
    return {name: float(k * n_parameters - 2 * ln_rows) for name, k in penalties.items()}
