"""The comparison of numbers of classes: evidences and draws, with as much effort as each needs."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from polyabayes._support.progress import progress_bar
from polyabayes._support.warnings import warn
from polyabayes.allocation import Evidence, ModelPosterior
from polyabayes.allocation.options import Run
from polyabayes.data.tensors.tensor import CountTensor
from polyabayes.exceptions import (
    EdgeWarning,
    Interrupted,
    TargetWarning,
    UnreliableErrorWarning,
    argument,
)
from polyabayes.latent_classes.answers import ln_orders
from polyabayes.latent_classes.candidates import (
    PARTICLES,
    Candidate,
    CandidateEvidences,
    honest_error,
)
from polyabayes.latent_classes.choice import ClassChoice, ClassPrior, checked_ln_prior
from polyabayes.latent_classes.tables import ClassCounts, Floats
from polyabayes.sizes.priors import SizePrior

# Posterior odds against a number of classes below which no larger one is tried.
_LEAST_ODDS = 0.01
# Error of a probability that needs no further look, and the most error in nats of an evidence of
# any probability.
_WANTED, _MOST_ERROR = 0.05, 1.0
# Error of the second look in nats beyond which more particles are of no use where tempering is
# cheap.
_HOPELESS = 2.5
# Share of the posterior below which a number of classes tells nothing of the occupied ones.
_LEAST_SHARE = 0.01
# Gelman and Rubin's ratio above which chains disagree (Gelman et al. 2014, BDA3, section 11.4).
MOST_R_HAT = 1.1


class Chooser(CandidateEvidences):
    """Evidences and draws of numbers of classes of one table of answers.

    All numbers are looked at roughly, each with the concentrations of answers that may matter;
    those that may matter then get as little error as they need. Particles of one concentration tell
    the evidences of its neighbours, too. No look begins after `max_time` seconds.
    """

    def __init__(
        self, tensor: CountTensor, prior: ClassPrior, run: Run, max_time: float | None = None
    ) -> None:
        super().__init__(tensor, prior, run)
        self._ln_masses: dict[int, float] = {}
        self._ended_at_edge = False
        self._doubts: list[str] = []
        self._end = np.inf if max_time is None else time.monotonic() + max_time
        self._left_out: list[int] = []

    def choose(self, sizes: list[int], ends: bool, size_prior: SizePrior) -> ClassChoice:
        """Compare numbers of classes, with the posterior of the number of non-empty ones."""
        choice = self.compare(sizes, ends, size_prior)
        return replace(choice, occupied=self._occupied())

    def compare(self, sizes: list[int], ends: bool, size_prior: SizePrior) -> ClassChoice:
        """Compare numbers of classes: all roughly, then those that may matter with less error."""
        self._ln_masses = checked_ln_prior(size_prior, sizes)
        try:
            with progress_bar(self.run.progress, None, "evaluation") as tell:
                self._look_at(ends, tell or (lambda *_: None))
        except KeyboardInterrupt:
            partial = self._choice() if self.evidences else None
            done = f"{len(self._numbers())} numbers of classes are done"
            raise Interrupted(done, partial) from None
        # The remedy of an evidence names arguments that classes do not take.
        self._doubts = [
            f"{one[0]} classes: {self.evidences[one].doubt.rpartition('; ')[0]}"
            for one in self._possible()
            if self.evidences[one].doubt and self._lacks(one)
        ]
        choice = self._choice()
        is_last = choice.best == sizes[-1] and len(sizes) > 1
        self._ended_at_edge = ends and is_last and sizes[-1] < self.tensor.n_cells
        return choice

    def _look_at(self, ends: bool, tell: Callable[..., None]) -> None:
        """All numbers once, then the uncertain ones again and again."""
        for n_classes in self._ln_masses:
            if self.evidences and self._is_late():
                self._left_out.append(n_classes)
                continue
            self._look_outward(n_classes, tell)
            if ends and n_classes not in [n for n, _ in self._possible()]:
                break
        looks: list[tuple[Callable[[Candidate], None], Callable[[Candidate], bool]]] = [
            (partial(self.look, level=level), self._wants_particles)
            for level in range(1, len(PARTICLES))
        ]
        n_looks = len(self.looked_at)
        for look, is_wanted in (*looks, (self.temper, self._wants_tempering)):
            candidates = self._possible()
            if look == self.temper:
                candidates.sort(key=lambda one: -honest_error(self.evidences[one]))
            for candidate in candidates:
                # A look at the best concentration tells of the others, too.
                for one in dict.fromkeys([self.source(candidate[0]), candidate]):
                    if candidate not in self._possible() or not is_wanted(candidate):
                        break
                    if not is_wanted(one):
                        continue
                    if self._is_late():
                        return
                    look(one)
                    tell(n_looks := n_looks + 1, f"{one[0]} classes")

    def _look_outward(self, n_classes: int, tell: Callable[..., None]) -> None:
        """Look at concentrations to both sides of the best one so far, while they may matter."""
        start = max(self._joint().items(), key=lambda pair: pair[1], default=None)
        middle = self.prior.middle if start is None else start[0][1]
        for step in (1, -1):
            at, last = middle, -np.inf
            while 0 <= at < len(self.prior.items):
                one = (n_classes, at)
                if one not in self.evidences:
                    if (n_classes, middle) in self.evidences and self._is_late():
                        return
                    self.look(one, 0)
                    tell(len(self.looked_at), f"{n_classes} classes")
                if self.evidences[one].value < last and one not in self._possible():
                    break
                at, last = at + step, self.evidences[one].value

    def _numbers(self) -> list[int]:
        """Numbers of classes that were looked at."""
        return list(dict.fromkeys(n for n, _ in self.evidences))

    def _joint(self) -> dict[Candidate, float]:
        """Ln of the evidence times the prior of each candidate; concentrations are even."""
        return {one: e.value + self._ln_masses[one[0]] for one, e in self.evidences.items()}

    def _is_late(self) -> bool:
        return time.monotonic() >= self._end

    def _possible(self) -> list[Candidate]:
        """Candidates whose odds against the best, with errors more, are not low.

        The mean of exp(x) of Gaussian x of variance s² is exp(mean + s²/2), which few replicates
        fall short of where s is large; by no more than s, as measured.
        """
        joint = self._joint()
        least = max(joint.values()) + np.log(_LEAST_ODDS)
        found = []
        for one, value in joint.items():
            error = float(np.nan_to_num(self.evidences[one].std_error))
            shortfall = min(error**2 / 2, error) if self.evidences[one].doubt else 0.0
            if value + 2 * error + shortfall >= least:
                found.append(one)
        return found

    def _lacks(self, one: Candidate) -> bool:
        """Whether its error moves the probability of a candidate by more than is wanted."""
        joint = self._joint()
        others = [value for other, value in joint.items() if other != one]
        if not others:
            return False
        ln_odds, error = joint[one] - special.logsumexp(others), honest_error(self.evidences[one])
        moved = special.expit([ln_odds - error, ln_odds, ln_odds + error])
        return bool(np.diff(moved).max() > _WANTED) or error > _MOST_ERROR

    def _wants_particles(self, one: Candidate) -> bool:
        """Whether further particles are wanted, and may be of use."""
        if not self._lacks(one):
            return False
        is_first = one not in self.draws
        is_hopeless = self.evidences[one].std_error >= _HOPELESS
        return is_first or not is_hopeless or not self.n_samples(one[0])

    def _wants_tempering(self, one: Candidate) -> bool:
        """Whether tempering is wanted, cheap, and may have less error, as that of others had."""
        is_useful = honest_error(self.evidences[one]) > self.tempered_error
        return is_useful and self._lacks(one) and bool(self.n_samples(one[0]))

    def warn(self, chosen: int | None = None) -> None:
        """Warn of evidences, of the largest number tried, and of the draws of one number."""
        if self._left_out:
            first, last = self._left_out[0], self._left_out[-1]
            told = f"{first} to {last}" if last > first else f"{first}"
            warn(
                f"{argument('max_time')} ended the comparison before {told} classes were "
                "evaluated; their probability is taken as 0",
                TargetWarning,
            )
        if self._doubts:
            told = "; ".join(self._doubts[:2])
            warn(
                f"{told}; the intervals of the probabilities may be too narrow",
                UnreliableErrorWarning,
            )
        if self._ended_at_edge:
            warn(
                "the most probable number of classes is the largest tried; raise "
                f"{argument('max_classes')}",
                EdgeWarning,
            )
        if chosen is None:
            return
        draws, hidden = self.drawn(self.best(chosen))
        ratio = r_hat(draws.counts[hidden], draws.chain)
        if ratio > MOST_R_HAT:
            warn(
                f"chains of the draws disagree about the weights of {chosen} classes (ratio "
                f"{ratio:.2f}, above {MOST_R_HAT}): their intervals may be too narrow or hold two "
                "solutions",
                UnreliableErrorWarning,
            )

    def counts(self, n_classes: int) -> ClassCounts:
        """Draws of the rows of each class and of their answers, by the best concentration."""
        return self.counts_of(self.best(n_classes))

    def _occupied(self) -> dict[int, float]:
        """Posterior of the number of classes that hold a row."""
        found: dict[int, float] = {}
        joint = self._joint()
        for one, share in zip(joint, special.softmax(list(joint.values())), strict=True):
            if share < _LEAST_SHARE:
                continue
            if one[0] == 1:
                found[1] = found.get(1, 0.0) + share
                continue
            # Draws of another concentration count by the ratio of the probabilities of answers.
            source = one if one in self.draws else self.source(one[0])
            counts = self.counts_of(source)
            weights = np.zeros(len(counts.classes))
            if source != one:
                weights = counts.ln_items(self.parameter(one)) - counts.ln_items(
                    self.parameter(source)
                )
            numbers = counts.n_occupied()
            for number, weight in zip(numbers.tolist(), special.softmax(weights), strict=True):
                found[number] = found.get(number, 0.0) + share * weight
        total = sum(found.values())
        return {number: float(found[number] / total) for number in sorted(found)}

    def _averaged(self, n_classes: int) -> Evidence:
        """Evidence of a number of classes: the mean over the concentrations."""
        own = [one for one in self.evidences if one[0] == n_classes]
        found = [self.evidences[one] for one in own]
        values = np.array([e.value for e in found])
        # Errors by the same particles go together.
        errors = dict.fromkeys(own, 0.0)
        for one, evidence, share in zip(own, found, special.softmax(values), strict=True):
            errors[self.origins[one]] += share * evidence.std_error
        return replace(
            found[int(values.argmax())],
            value=float(special.logsumexp(values) - np.log(len(self.prior.items))),
            std_error=float(np.hypot.reduce(list(errors.values()))),
        )

    def _choice(self) -> ClassChoice:
        numbers = self._numbers()
        masses = special.softmax([self._ln_masses[n] for n in numbers])
        prior = {str(n): float(mass) for n, mass in zip(numbers, masses, strict=True)}
        posterior = ModelPosterior({str(n): self._averaged(n) for n in numbers}, prior)
        probabilities, ln_rows = posterior.probabilities, ln_orders(self.tensor)
        rows: list[dict[str, Any]] = []
        for n_classes in numbers:
            name = str(n_classes)
            low, high = posterior.interval(name)
            row: dict[str, Any] = {
                "n_classes": n_classes,
                "log_evidence": posterior.evidences[name].value - ln_rows,
                "std_error": posterior.evidences[name].std_error,
                "prior": prior[name],
                "probability": probabilities[name],
                "low": low,
                "high": high,
            }
            if len(self.prior.items) > 1:
                row["concentration"] = self.prior.items[self.best(n_classes)[1]]
            rows.append(row)
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
