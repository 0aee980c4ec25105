"""The comparison of numbers of classes: evidences and draws, with as much effort as each needs."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from polyabayes._support.progress import progress_bar
from polyabayes._support.warnings import quiet, warn
from polyabayes.allocation import Evidence, ModelPosterior, PosteriorDraws
from polyabayes.data.tensor import CountTensor
from polyabayes.exceptions import (
    EdgeWarning,
    Interrupted,
    TargetWarning,
    UnreliableErrorWarning,
    argument,
)
from polyabayes.latent_classes.answers import ln_orders
from polyabayes.latent_classes.choice import ClassChoice, ClassPrior, Run, checked_ln_prior
from polyabayes.latent_classes.tables import ClassCounts, Floats
from polyabayes.sizes.choice.cost import ChoiceCost
from polyabayes.sizes.priors import SizePrior

# Posterior odds against a number of classes below which no larger one is tried.
_LEAST_ODDS = 0.01
# Particles of the looks at a number of classes, one after the other, and their sweeps while the
# number of rows grows e-fold.
_PARTICLES, _SWEEPS = (16, 64, 256), 16
# Error of a probability that needs no further look, and the most error in nats of an evidence of
# any probability; the standard errors by which looks contradict one another.
_WANTED, _MOST_ERROR, _CONTRADICTION = 0.05, 1.0, 3.0
# Error of the second look in nats beyond which more particles are of no use where tempering is
# cheap.
_HOPELESS = 2.5
# Replicates of a look: those of smc by default.
_REPLICATES = 16
# Numbers of classes that are looked at twice and three times, by which the cost is foretold.
_USUALLY_AGAIN = (4, 2)
# Share of the posterior below which a number of classes tells nothing of the occupied ones.
_LEAST_SHARE = 0.01
# Answers that tempering visits in some ten seconds, by class and by sweep; and the least and most
# sweeps.
_VISITS, _LEAST_SWEEPS, _MOST_SWEEPS = 4_000_000, 32, 512
# Gelman and Rubin's ratio above which chains disagree (Gelman et al. 2014, BDA3, section 11.4).
MOST_R_HAT = 1.1


class Chooser:
    """Evidences and draws of numbers of classes of one table of answers.

    All numbers are looked at roughly; those that may matter then get as little error as they need.
    No look begins after `max_time` seconds.
    """

    def __init__(
        self, tensor: CountTensor, prior: ClassPrior, run: Run, max_time: float | None = None
    ) -> None:
        self.tensor, self.prior, self.run = tensor, prior, run
        self.evidences: dict[int, Evidence] = {}
        self._draws: dict[int, PosteriorDraws] = {}
        self._ended_at_edge = False
        self._doubts: list[str] = []
        self._end = np.inf if max_time is None else time.monotonic() + max_time
        self._left_out: list[int] = []

    def choose(self, sizes: list[int], ends: bool, size_prior: SizePrior) -> ClassChoice:
        """Compare numbers of classes, and tell how many hold a row."""
        choice = self.compare(sizes, ends, size_prior)
        return replace(choice, occupied=self._occupied(choice.probabilities))

    def compare(self, sizes: list[int], ends: bool, size_prior: SizePrior) -> ClassChoice:
        """Compare numbers of classes: all roughly, then those that may matter with less error."""
        ln_masses = checked_ln_prior(size_prior, sizes)
        try:
            with progress_bar(self.run.progress, None, "look") as tell:
                self._look_at(ln_masses, ends, tell or (lambda *_: None))
        except KeyboardInterrupt:
            partial = self._choice(ln_masses) if self.evidences else None
            done = f"{len(self.evidences)} numbers of classes are done"
            raise Interrupted(done, partial) from None
        possible = self._possible(ln_masses)
        self._doubts = [
            f"{n} classes: {found.doubt}"
            for n, found in self.evidences.items()
            if found.doubt and n in possible and self._lacks(n, ln_masses)
        ]
        choice = self._choice(ln_masses)
        is_last = choice.best == sizes[-1] and len(sizes) > 1
        self._ended_at_edge = ends and is_last and sizes[-1] < self.tensor.n_cells
        return choice

    def cost(self, sizes: list[int]) -> ChoiceCost:
        """What the comparison of these numbers will take, from short looks at its ends."""
        ends = [max(size, 2) for size in (sizes[0], sizes[-1])]
        full = [self._seconds(size) for size in ends]
        each = np.interp(sizes, ends, full) * (np.array(sizes) > 1)
        again = [
            n * particles / _PARTICLES[0]
            for n, particles in zip(_USUALLY_AGAIN, _PARTICLES[1:], strict=True)
        ]
        seconds = float(each.sum() + min(1.0, len(sizes) / 4) * sum(again) * each.mean())
        n_looks = len(sizes) + min(sum(_USUALLY_AGAIN), 2 * len(sizes))
        return ChoiceCost(n_looks, (ends[0], ends[1]), (full[0], full[1]), seconds, unit="evidence")

    def _seconds(self, n_classes: int) -> float:
        """Seconds of the first look, from one of its replicates; the first of two warms up."""
        model, _ = self.prior.model(self.tensor.axes, n_classes)
        effort: dict[str, Any] = {"n_particles": _PARTICLES[0], "n_sweeps": _SWEEPS}
        taken = []
        for _ in range(2):
            began = time.perf_counter()
            with quiet(UnreliableErrorWarning):
                model.log_evidence(
                    self.tensor, n_replicates=1, **effort, **self.run.options(n_classes, 0)
                )
            taken.append(time.perf_counter() - began)
        return _REPLICATES * min(taken)

    def _look_at(
        self, ln_masses: Mapping[int, float], ends: bool, tell: Callable[..., None]
    ) -> None:
        """All numbers once, then the uncertain ones again and again."""
        n_looks = 0
        for n_classes in ln_masses:
            if self.evidences and self._is_late():
                self._left_out.append(n_classes)
                continue
            self._look(n_classes, 0)
            tell(n_looks := n_looks + 1, f"{n_classes} classes")
            if ends and n_classes not in self._possible(ln_masses):
                break
        again: list[Callable[[int], None]] = [
            partial(self._look, level=level) for level in range(1, len(_PARTICLES))
        ]
        looks = [(look, self._wants_particles) for look in again]
        for look, is_wanted in (*looks, (self._temper, self._wants_tempering)):
            for n_classes in self._possible(ln_masses):
                if not is_wanted(n_classes, ln_masses):
                    continue
                if self._is_late():
                    return
                look(n_classes)
                tell(n_looks := n_looks + 1, f"{n_classes} classes")

    def _is_late(self) -> bool:
        return time.monotonic() >= self._end

    def _possible(self, ln_masses: Mapping[int, float]) -> list[int]:
        """Numbers of classes whose odds against the best, with errors more, are not low.

        The mean of exp(x) of Gaussian x of variance s² is exp(mean + s²/2), which few replicates
        fall short of where s is large.
        """
        joint = {n: found.value + ln_masses[n] for n, found in self.evidences.items()}
        least = max(joint.values()) + np.log(_LEAST_ODDS)
        shortfall = {n: 0.5 * float(e.std_error) ** 2 for n, e in self.evidences.items() if e.doubt}
        return [
            n
            for n, value in joint.items()
            if value + 2 * self._error(n) + shortfall.get(n, 0.0) >= least
        ]

    def _error(self, n_classes: int) -> float:
        """Standard error of an evidence; twice as much where it cannot be trusted."""
        found = self.evidences[n_classes]
        return float(np.nan_to_num(found.std_error)) * (2.0 if found.doubt else 1.0)

    def _lacks(self, n_classes: int, ln_masses: Mapping[int, float]) -> bool:
        """Whether its error moves the probability of a number of classes by more than is wanted."""
        joint = {n: found.value + ln_masses[n] for n, found in self.evidences.items()}
        others = [value for n, value in joint.items() if n != n_classes]
        if not others:
            return False
        ln_odds, error = joint[n_classes] - special.logsumexp(others), self._error(n_classes)
        moved = special.expit([ln_odds - error, ln_odds, ln_odds + error])
        return bool(np.diff(moved).max() > _WANTED) or error > _MOST_ERROR

    def _wants_particles(self, n_classes: int, ln_masses: Mapping[int, float]) -> bool:
        """Whether further particles are wanted, and may be of use."""
        if not self._lacks(n_classes, ln_masses):
            return False
        is_first = n_classes not in self._draws
        is_hopeless = self.evidences[n_classes].std_error >= _HOPELESS
        return is_first or not is_hopeless or not self._n_samples(n_classes)

    def _wants_tempering(self, n_classes: int, ln_masses: Mapping[int, float]) -> bool:
        """Whether tempering is wanted, and cheap."""
        return self._lacks(n_classes, ln_masses) and bool(self._n_samples(n_classes))

    def _n_samples(self, n_classes: int) -> int:
        """Sweeps of a tempering; 0 where too few would be affordable."""
        visits = self.tensor.total * len(self.tensor.axes) * n_classes
        n_samples = int(min(_VISITS // visits, _MOST_SWEEPS))
        return n_samples if n_samples >= _LEAST_SWEEPS else 0

    def warn(self, chosen: int | None = None) -> None:
        """Warn of evidences, of the largest number tried, and of the draws of one number."""
        if self._left_out:
            first, last = self._left_out[0], self._left_out[-1]
            told = f"{first} to {last}" if last > first else f"{first}"
            warn(
                f"{argument('max_time')} ended the comparison before {told} classes were looked "
                "at; their probability is taken for 0",
                TargetWarning,
            )
        if self._doubts:
            warn("; ".join(self._doubts[:2]), UnreliableErrorWarning)
        if self._ended_at_edge:
            warn(
                "the most probable number of classes is the largest tried; raise "
                f"{argument('max_classes')}",
                EdgeWarning,
            )
        ratio = 1.0 if chosen is None else self._r_hat(chosen)
        if ratio > MOST_R_HAT:
            warn(
                f"chains of the draws disagree about the weights of {chosen} classes (ratio "
                f"{ratio:.2f}, above {MOST_R_HAT}): their intervals may be too narrow or hold two "
                "solutions",
                UnreliableErrorWarning,
            )

    def _look(self, n_classes: int, level: int) -> None:
        """Evidence of a number of classes, given the number of rows; draws from the second on."""
        effort: dict[str, Any] = {"n_particles": _PARTICLES[level], "n_sweeps": _SWEEPS}
        run = self.run._replace(progress=False).options(n_classes, level)
        model, _ = self.prior.model(self.tensor.axes, n_classes)
        with quiet(UnreliableErrorWarning):
            if level == 0:
                found = model.log_evidence(self.tensor, given_total=True, **effort, **run)
            else:
                draws = model.sample_posterior(self.tensor, method="smc", **effort, **run)
                self._draws[n_classes] = draws
                found = self._confirmed(n_classes, _given_total(draws.evidence))
        self.evidences[n_classes] = found

    def _temper(self, n_classes: int) -> None:
        """Evidence and draws by tempering, where they have less error than those by particles."""
        n_samples = self._n_samples(n_classes)
        model, _ = self.prior.model(self.tensor.axes, n_classes)
        run = self.run._replace(progress=False).options(n_classes, len(_PARTICLES))
        with quiet():
            draws = model.sample_posterior(self.tensor, n_samples=n_samples, **run)
        found, before = _given_total(draws.evidence), self.evidences[n_classes]
        error = found.std_error * (2.0 if found.doubt else 1.0)
        if error < self._error(n_classes):
            self.evidences[n_classes] = self._confirmed(n_classes, found)
            self._draws[n_classes] = draws
        elif before.method != "exact":
            self.evidences[n_classes] = _confirmed(before, found)

    def _confirmed(self, n_classes: int, found: Evidence) -> Evidence:
        return _confirmed(found, self.evidences[n_classes])

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
            run = self.run._replace(progress=False).options(n_classes, 1)
            with quiet(UnreliableErrorWarning):
                self._draws[n_classes] = model.sample_posterior(
                    self.tensor, method="smc", n_particles=_PARTICLES[1], n_sweeps=_SWEEPS, **run
                )
        return self._draws[n_classes], hidden

    def _r_hat(self, n_classes: int) -> float:
        """Largest ratio, over the weights, of the spread of draws to that within their chains."""
        draws, hidden = self._drawn(n_classes)
        return r_hat(draws.counts[hidden], draws.chain)

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


def r_hat(values: Floats, chain: NDArray[np.intp]) -> float:
    """Largest ratio of the spread of draws to that within their chains."""
    groups = [values[chain == number] for number in np.unique(chain)]
    if min(map(len, groups)) < 2 or len(groups) < 2:
        return 1.0
    within = np.mean([group.var(axis=0, ddof=1) for group in groups], axis=0)
    between = np.var([group.mean(axis=0) for group in groups], axis=0, ddof=1)
    ratios = np.divide(between, within, out=np.zeros_like(within), where=within > 0)
    return float(np.sqrt(1 + ratios.max()))


def _given_total(found: Evidence) -> Evidence:
    """The same evidence, given the total of the rows."""
    ln_total = found.log_probability_of_total
    return replace(
        found,
        value=found.value - ln_total,
        lower_bound=found.lower_bound - ln_total,
        given_total=True,
    )


def _confirmed(found: Evidence, other: Evidence) -> Evidence:
    """An evidence, with its distance to another in its error where they contradict one another."""
    moved = found.value - other.value
    if abs(moved) <= _CONTRADICTION * float(np.hypot(found.std_error, other.std_error)):
        return found
    return replace(found, std_error=float(np.hypot(found.std_error, moved)), converged=False)
