"""How many classes: evidences of numbers of classes, and what they say together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from polyabayes._support import checks
from polyabayes._support.results import Result
from polyabayes._support.tables import columns_of, text_table
from polyabayes._support.warnings import quiet, warn
from polyabayes.allocation import AllocationModel, Evidence, ModelPosterior, PosteriorDraws
from polyabayes.data.tensor import CountTensor
from polyabayes.exceptions import (
    EdgeWarning,
    Interrupted,
    InvalidArgumentError,
    InvalidTypeError,
    UnreliableErrorWarning,
    argument,
)
from polyabayes.latent_classes.answers import ln_orders
from polyabayes.latent_classes.tables import ClassCounts
from polyabayes.sizes.priors import SizePrior

# Posterior odds against a number of classes below which no larger one is tried.
_LEAST_ODDS = 0.01
# Particles of a first and of a second look at a number of classes; the error in nats that needs no
# second, and the standard errors by which they contradict one another.
_FEW_PARTICLES, _MORE_PARTICLES, _LEAST_ERROR, _CONTRADICTION = 64, 256, 0.2, 3.0
# Share of the posterior below which a number of classes tells nothing of the occupied ones.
_LEAST_SHARE = 0.01
# Answers that chains of draws visit in some ten seconds, by class and by sweep; and the least and
# most sweeps.
_VISITS, _LEAST_SWEEPS, _MOST_SWEEPS = 4_000_000, 32, 512
# Gelman and Rubin's ratio above which chains disagree (Gelman et al. 2014, BDA3, section 11.4).
_MOST_R_HAT = 1.1


class ClassPrior(NamedTuple):
    """Prior of tables: Dirichlet parameters of the class weights and of each item's levels.

    None is that of :class:`AllocationModel`, BDeu with an equivalent sample size of 1.
    """

    weights: float | None
    items: float | None

    @classmethod
    def of(cls, given: Any) -> ClassPrior:
        """The argument `prior`, checked."""
        if isinstance(given, Mapping):
            if set(given) != {"weights", "items"}:
                raise InvalidArgumentError(
                    f"{argument('prior')} needs the entries 'weights' and 'items', got "
                    f"{', '.join(map(repr, given))}"
                )
            return cls(
                *(checks.positive_number(f"prior[{name!r}]", given[name]) for name in cls._fields)
            )
        return PRIORS[checks.choice("prior", given, tuple(PRIORS))]

    def model(self, axes: Iterable[str], n_classes: int) -> tuple[AllocationModel, str]:
        """The network of so many classes, and the name of its hidden node."""
        items = list(axes)
        hidden = next(name for name in ("class", "klass", "_class") if name not in items)
        graph = f"{hidden} -> {', '.join(items)}"
        if self.weights is None or self.items is None:
            return AllocationModel(graph, {hidden: n_classes}), hidden
        alphas = {hidden: self.weights, **dict.fromkeys(items, self.items)}
        return AllocationModel(graph, {hidden: n_classes}, prior=alphas), hidden


PRIORS = {
    "flat": ClassPrior(1.0, 1.0),
    "jeffreys": ClassPrior(0.5, 0.5),
    "bdeu": ClassPrior(None, None),
}


class Run(NamedTuple):
    """Seed, threads and progress of a choice."""

    seed: int
    n_jobs: int | None
    progress: bool

    def options(self, n_classes: int, purpose: int) -> dict[str, Any]:
        """Keywords of a method; every number of classes has seeds of its own."""
        seed = np.random.SeedSequence([self.seed, n_classes, purpose])
        return {"random_state": seed, "n_jobs": self.n_jobs, "progress": self.progress}


@dataclass(frozen=True, eq=False, repr=False)
class ClassChoice(Result):
    """How many classes, by the posterior probability of each number, or by BIC.

    Attributes
    ----------
    best : int
        The most probable number; by ``"em"`` that of the smallest BIC.
    criterion : {"evidence", "bic"}
        What was compared.
    rows : list of dict
        One a number of classes. By evidence: ``n_classes``, ``log_evidence`` (of the rows, in
        nats) and its ``std_error``, ``prior``, ``probability`` and ``low`` and ``high``, its 95 %
        interval for the errors of the evidences. By BIC: ``n_classes``, ``log_likelihood``,
        ``n_parameters``, ``aic``, ``bic`` and ``sabic``.
    occupied : dict of int to float
        Posterior probability of the number of classes that hold a row: classes beyond these are
        empty. Empty by BIC.

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

    def _columns(self) -> dict[str, Any]:
        return {name: [row[name] for row in self.rows] for name in self.rows[0]}

    def __str__(self) -> str:
        columns = {
            name: [f"{x:,}" if isinstance(x, int) else f"{x:,.4f}" for x in values]
            for name, values in self._columns().items()
        }
        occupied = ", ".join(f"{n}: {p:.3f}" for n, p in self.occupied.items())
        tail = f"\nclasses that hold a row: {occupied}" if occupied else ""
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


class Chooser:
    """Evidences and draws of numbers of classes of one table of answers."""

    def __init__(self, tensor: CountTensor, prior: ClassPrior, run: Run) -> None:
        self.tensor, self.prior, self.run = tensor, prior, run
        self.evidences: dict[int, Evidence] = {}
        self._draws: dict[int, PosteriorDraws] = {}
        self._ended_at_edge = False
        self._doubts: list[str] = []

    def choose(self, sizes: list[int], ends: bool, size_prior: SizePrior) -> ClassChoice:
        """Compare numbers of classes, and tell how many hold a row."""
        choice = self.compare(sizes, ends, size_prior)
        return replace(choice, occupied=self._occupied(choice.probabilities))

    def compare(self, sizes: list[int], ends: bool, size_prior: SizePrior) -> ClassChoice:
        """Compare numbers of classes: all roughly, then those that may matter with less error."""
        ln_masses = checked_ln_prior(size_prior, sizes)
        try:
            for n_classes in ln_masses:
                self._estimate(n_classes, n_particles=_FEW_PARTICLES)
                if ends and n_classes not in self._possible(ln_masses):
                    break
            for n_classes in self._possible(ln_masses):
                self._refine(n_classes)
        except KeyboardInterrupt:
            partial = self._choice(ln_masses) if self.evidences else None
            done = f"{len(self.evidences)} numbers of classes are done"
            raise Interrupted(done, partial) from None
        possible = self._possible(ln_masses)
        self._doubts = [
            f"{n} classes: {found.doubt}"
            for n, found in self.evidences.items()
            if found.doubt and n in possible
        ]
        choice = self._choice(ln_masses)
        is_last = choice.best == sizes[-1] and len(sizes) > 1
        self._ended_at_edge = ends and is_last and sizes[-1] < self.tensor.n_cells
        return choice

    def _possible(self, ln_masses: Mapping[int, float]) -> list[int]:
        """Numbers of classes whose odds against the best, with two errors more, are not low."""
        joint = {n: found.value + ln_masses[n] for n, found in self.evidences.items()}
        least = max(joint.values()) + np.log(_LEAST_ODDS)
        errors = {n: np.nan_to_num(found.std_error) for n, found in self.evidences.items()}
        return [n for n, value in joint.items() if value + 2 * errors[n] >= least]

    def warn(self, chosen: int | None = None) -> None:
        """Warn of evidences, of the largest number tried, and of the draws of one number."""
        if self._doubts:
            warn("; ".join(self._doubts[:2]), UnreliableErrorWarning)
        if self._ended_at_edge:
            warn(
                "the most probable number of classes is the largest tried; raise "
                f"{argument('max_classes')}",
                EdgeWarning,
            )
        ratio = 1.0 if chosen is None else self._r_hat(chosen)
        if ratio > _MOST_R_HAT:
            warn(
                f"chains of the draws disagree about the weights of {chosen} classes (ratio "
                f"{ratio:.2f}, above {_MOST_R_HAT}): their intervals may be too narrow or hold two "
                "solutions",
                UnreliableErrorWarning,
            )

    def _refine(self, n_classes: int) -> None:
        """Less error: by more particles, and by any method where these contradict the first."""
        first = self.evidences[n_classes]
        if first.doubt or first.std_error > _LEAST_ERROR:
            self._estimate(n_classes, n_particles=_MORE_PARTICLES)
            found = self.evidences[n_classes]
            error = float(np.hypot(found.std_error, first.std_error))
            if found.doubt or abs(found.value - first.value) > _CONTRADICTION * error:
                self._estimate(n_classes)

    def _estimate(self, n_classes: int, **options: Any) -> None:
        """Evidence of a number of classes, given the number of rows."""
        model, _ = self.prior.model(self.tensor.axes, n_classes)
        with quiet(UnreliableErrorWarning):
            self.evidences[n_classes] = model.log_evidence(
                self.tensor, given_total=True, **options, **self.run.options(n_classes, 0)
            )

    def counts(self, n_classes: int) -> ClassCounts:
        """Draws of the rows of each class and of their answers."""
        draws, hidden = self._drawn(n_classes)
        axes = self.tensor.axes
        return ClassCounts(
            draws.counts[hidden],
            tuple(draws.counts[axis] for axis in axes),
            [draws.alphas[node] for node in (hidden, *axes)],
        )

    def _drawn(self, n_classes: int) -> tuple[PosteriorDraws, str]:
        model, hidden = self.prior.model(self.tensor.axes, n_classes)
        if n_classes not in self._draws:
            visits = self.tensor.total * len(self.tensor.axes) * n_classes
            n_samples = int(np.clip(_VISITS // visits, _LEAST_SWEEPS, _MOST_SWEEPS))
            with quiet(UnreliableErrorWarning):
                self._draws[n_classes] = model.sample_posterior(
                    self.tensor, n_samples=n_samples, **self.run.options(n_classes, 1)
                )
        return self._draws[n_classes], hidden

    def _r_hat(self, n_classes: int) -> float:
        """Largest ratio, over the weights, of the spread of draws to that within their chains."""
        draws, hidden = self._drawn(n_classes)
        values = draws.counts[hidden]
        groups = [values[draws.chain == number] for number in np.unique(draws.chain)]
        if min(map(len, groups)) < 2 or len(groups) < 2:
            return 1.0
        within = np.mean([group.var(axis=0, ddof=1) for group in groups], axis=0)
        between = np.var([group.mean(axis=0) for group in groups], axis=0, ddof=1)
        ratios = np.divide(between, within, out=np.zeros_like(within), where=within > 0)
        return float(np.sqrt(1 + ratios.max()))

    def _occupied(self, probabilities: Mapping[int, float]) -> dict[int, float]:
        """Posterior of the number of classes that hold a row."""
        found: dict[int, float] = {}
        for n_classes, share in probabilities.items():
            if share < _LEAST_SHARE:
                continue
            numbers = self.counts(n_classes).n_occupied() if n_classes > 1 else np.ones(1, int)
            for number in numbers.tolist():
                found[number] = found.get(number, 0.0) + share / len(numbers)
        total = sum(found.values())
        return {number: float(found[number] / total) for number in sorted(found)}

    def _choice(self, ln_masses: Mapping[int, float]) -> ClassChoice:
        prior = {str(n): float(np.exp(ln_masses[n])) for n in self.evidences}
        total = sum(prior.values())
        prior = {name: mass / total for name, mass in prior.items()}
        posterior = ModelPosterior({str(n): e for n, e in self.evidences.items()}, prior)
        probabilities, ln_rows = posterior.probabilities, ln_orders(self.tensor)
        rows = []
        for n_classes, evidence in self.evidences.items():
            low, high = posterior.interval(str(n_classes))
            rows.append(
                {
                    "n_classes": n_classes,
                    "log_evidence": evidence.value - ln_rows,
                    "std_error": evidence.std_error,
                    "prior": prior[str(n_classes)],
                    "probability": probabilities[str(n_classes)],
                    "low": low,
                    "high": high,
                }
            )
        best: Any = max(rows, key=lambda row: row["probability"])["n_classes"]
        return ClassChoice(best, "evidence", rows)


def criteria(ln_rows: float, n_parameters: int, n_rows: float) -> dict[str, float]:
    """AIC, BIC and the sample-size adjusted BIC (Sclove 1987) of a log-likelihood."""
    penalties = {"aic": 2.0, "bic": np.log(n_rows), "sabic": np.log((n_rows + 2) / 24)}
    return {name: float(k * n_parameters - 2 * ln_rows) for name, k in penalties.items()}


def by_criteria(fits: Mapping[int, tuple[float, int]], n_rows: float) -> ClassChoice:
    """The choice by BIC among maxima of the likelihood and their numbers of parameters."""
    rows: list[dict[str, Any]] = []
    for n_classes, (value, n_parameters) in fits.items():
        row: dict[str, Any] = {
            "n_classes": n_classes,
            "log_likelihood": value,
            "n_parameters": n_parameters,
        }
        rows.append({**row, **criteria(value, n_parameters, n_rows)})
    best: Any = min(rows, key=lambda row: row["bic"])["n_classes"]
    return ClassChoice(best, "bic", rows)
