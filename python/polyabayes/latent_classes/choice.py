"""How many classes: evidences of numbers of classes, and what they say together."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from scipy import special

from polyabayes._support import checks
from polyabayes._support.output.tables import columns_of, text_table
from polyabayes._support.results import Result
from polyabayes._support.warnings import warn
from polyabayes.allocation import AllocationModel, Evidence, ModelPosterior
from polyabayes.allocation.options import Run
from polyabayes.data.names import CALLS
from polyabayes.data.tensors.tensor import CountTensor
from polyabayes.exceptions import EdgeWarning, InvalidArgumentError, InvalidTypeError, argument
from polyabayes.latent_classes.tables import ClassCounts
from polyabayes.sizes.evidence import Comparison, Concentrations, Networks, StagedComparison
from polyabayes.sizes.priors import Geometric, SizePrior
from polyabayes.sizes.scores import Sizes


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
            told = argument("prior"), ", ".join(map(repr, given))
            raise InvalidArgumentError(CALLS["no class prior"].format(*told))
        items = given["items"]
        items = items if isinstance(items, Sequence) and not isinstance(items, str) else [items]
        if not len(items):
            raise InvalidArgumentError("prior['items'] is empty; give a number, or several")
        found = {checks.positive_number("prior['items']", value) for value in items}
        weights = checks.positive_number("prior['weights']", given["weights"])
        return cls(weights, tuple(sorted(found)))

    def model(self, axes: Iterable[str], n_classes: int, at: int = 0) -> AllocationModel:
        """The network of so many classes."""
        names = list(axes)
        hidden, parameter = hidden_of(names), self.items[at]
        graph = f"{hidden} -> {', '.join(names)}"
        if self.weights is None or parameter is None:
            return AllocationModel(graph, {hidden: n_classes})
        alphas = {hidden: self.weights, **dict.fromkeys(names, parameter)}
        return AllocationModel(graph, {hidden: n_classes}, prior=alphas)


def hidden_of(axes: Collection[str]) -> str:
    """Name of the hidden node beside these axes."""
    return next(name for name in ("class", "klass", "_class") if name not in axes)


# Dirichlet parameters of answers among which the default prior learns.
LEARNED = tuple(4.0**power for power in range(-1, 7))
PRIORS = {
    "learned": ClassPrior(4.0, LEARNED),
    "flat": ClassPrior(1.0, (1.0,)),
    "jeffreys": ClassPrior(0.5, (0.5,)),
    "bdeu": ClassPrior(None, (None,)),
}


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

    def _methods_text(self) -> str:
        """A sentence about the choice for a methods section."""
        rows = {row["n_classes"]: row for row in self.rows}
        if len(rows) == 1:
            return f"The number of classes, {self.best}, was given."
        told = CALLS[f"classes by {self.criterion}"]
        return told.format(min(rows), max(rows), self.best, **rows[self.best])

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


class ClassComparison(StagedComparison):
    """Evidences and draws of numbers of classes of one table of answers."""

    def __init__(
        self,
        tensor: CountTensor,
        prior: ClassPrior,
        ln_masses: Mapping[int, float],
        run: Run,
        max_time: float | None = None,
    ) -> None:
        networks = Networks(tensor, lambda one: prior.model(tensor.axes, one[0][0], one[1]))
        concentrations = Concentrations.even(prior.items, is_walked=True)
        masses: dict[Sizes, float] = {(n_classes,): mass for n_classes, mass in ln_masses.items()}
        start = concentrations.nearest(1.0)
        super().__init__(networks, concentrations, masses, start, run, max_time)

    def label(self, sizes: Sizes) -> str:
        """Sizes in words."""
        return f"{sizes[0]} classes"

    def warn_of_all(self, best: int, open_end: int | None) -> None:
        """Warn of uncertain evidences, and of a best number at the end of an open range."""
        self.warn()
        if best == open_end and 1 < open_end < self.networks.tensor.n_cells:
            warn(CALLS["most classes"].format(argument("max_classes")), EdgeWarning)

    def counts(self, n_classes: int) -> ClassCounts:
        """Draws of the rows of each class and of their answers, by the best concentration."""
        draws, axes = self.drawn(self.best((n_classes,))), self.networks.tensor.axes
        nodes = hidden_of(axes), *axes
        first, *items = (draws.counts[node] for node in nodes)
        alphas = [draws.alphas[node] for node in nodes]
        return ClassCounts(first, tuple(items), alphas, (True,) * len(items))


def choice_of(parts: Sequence[tuple[Comparison, float]]) -> ClassChoice:
    """The choice among numbers of classes, whose evidences are sums over comparisons.

    Each has ln of a factor.
    """
    first = parts[0][0]
    values = first.concentrations.values
    done = sorted({sizes for compared, _ in parts for sizes in compared.done})
    masses = special.softmax([first.ln_masses[sizes] for sizes in done])
    prior = {str(n): float(mass) for (n,), mass in zip(done, masses, strict=True)}
    summed = {sizes: _summed(parts, sizes) for sizes in done}
    evidences = {str(sizes[0]): evidence for sizes, (evidence, _) in summed.items()}
    posterior = ModelPosterior(evidences, prior)
    probabilities, rows = posterior.probabilities, []
    for sizes in done:
        name = str(sizes[0])
        low, high = posterior.interval(name)
        row: dict[str, Any] = {
            "n_classes": sizes[0],
            "log_evidence": evidences[name].value,
            "std_error": evidences[name].std_error,
            "prior": prior[name],
            "probability": probabilities[name],
            "low": low,
            "high": high,
        }
        if len(values) > 1:
            row["concentration"] = values[summed[sizes][1].best(sizes)[1]]
        rows.append(row)
    best: Any = max(rows, key=lambda row: row["probability"])["n_classes"]
    return ClassChoice(best, "evidence", rows)


def _summed(parts: Sequence[tuple[Comparison, float]], sizes: Sizes) -> tuple[Evidence, Comparison]:
    """Evidence of sizes by all comparisons together, and the one with the largest."""
    own = [(compared, shift) for compared, shift in parts if sizes in compared.done]
    found = [compared.averaged(sizes) for compared, _ in own]
    terms = np.array([e.value + shift for e, (_, shift) in zip(found, own, strict=True)])
    errors = special.softmax(terms) * [e.std_error for e in found]
    best = int(terms.argmax())
    value, error = float(special.logsumexp(terms)), float(np.hypot.reduce(errors))
    return replace(found[best], value=value, std_error=error), own[best][0]


def checked_sizes(n_classes: Any, max_classes: Any, n_patterns: int) -> tuple[list[int], bool]:
    """Numbers of classes to try, and whether they end where further ones have no chance."""
    most = checks.whole_number("max_classes", max_classes, 1)
    if n_classes is None:
        return list(range(1, min(most, n_patterns) + 1)), True
    given = n_classes if isinstance(n_classes, Iterable) else [n_classes]
    if isinstance(given, str | Mapping):
        raise InvalidTypeError(f"n_classes must be a number or numbers, got {n_classes!r}")
    if not (sizes := sorted({checks.whole_number("n_classes", size, 1) for size in given})):
        raise InvalidArgumentError("n_classes is empty; give a number, or leave it out")
    if sizes[-1] > n_patterns:
        told = CALLS["patterns"].format(argument("n_classes", sizes[-1]), n_patterns)
        raise InvalidArgumentError(told)
    return sizes, False


def checked_ln_prior(prior: Any, sizes: Iterable[int]) -> dict[int, float]:
    """Ln of the prior probability of each number of classes, as far as it is known.

    By default, P(K) ∝ 2^-K.
    """
    prior = Geometric(0.5) if prior is None else prior
    if not isinstance(prior, SizePrior) or prior.n_variables != 1:
        raise InvalidTypeError(CALLS["no size prior"].format(prior))
    masses = {size: prior.log_box((size,), (float(size),)) for size in sizes}
    if not np.isfinite(list(masses.values())).any():
        raise InvalidArgumentError(f"size_prior {prior!r} has no mass on {list(masses)} classes")
    return {size: mass for size, mass in masses.items() if np.isfinite(mass)}


def criteria(ln_rows: float, n_parameters: int, n_rows: float) -> dict[str, float]:
    """AIC, BIC and the sample-size adjusted BIC (Sclove 1987) of a log-likelihood."""
    penalties = {"aic": 2.0, "bic": np.log(n_rows), "sabic": np.log((n_rows + 2) / 24)}
    return {name: float(k * n_parameters - 2 * ln_rows) for name, k in penalties.items()}
