"""The comparison of numbers of classes: evidences and draws, with as much effort as each needs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from polyabayes._support.progress import progress_bar
from polyabayes._support.warnings import quiet, warn
from polyabayes.allocation import AllocationModel, Evidence, ModelPosterior, PosteriorDraws
from polyabayes.allocation.draws import DRAWS, weigh_posteriors
from polyabayes.allocation.layout import Layout, lay_out
from polyabayes.allocation.options import Options, Run as AllocationRun
from polyabayes.data.tensor import CountTensor
from polyabayes.exceptions import (
    BudgetExceededError,
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
# Most multiply-adds of an exact sum, which takes the place of looks.
_EXACT = 1e7
# Concentrations to both sides whose evidence particles tell, too, and the most error with which it
# makes a look of their own needless: particles may miss what is probable under another one, and
# agree.
_NEIGHBOURS, _SURE = 2, 0.1
# Candidates that are looked at twice and three times: by these the cost is foretold.
_USUALLY_AGAIN = (4, 2)
# Share of the posterior below which a number of classes tells nothing of the occupied ones.
_LEAST_SHARE = 0.01
# Answers that tempering visits in some ten seconds, by class and by sweep; and the least and most
# sweeps.
_VISITS, _LEAST_SWEEPS, _MOST_SWEEPS = 4_000_000, 32, 512
# Gelman and Rubin's ratio above which chains disagree (Gelman et al. 2014, BDA3, section 11.4).
MOST_R_HAT = 1.1

# A number of classes, and the place of a concentration of the answers among those of the prior.
Candidate = tuple[int, int]


class Chooser:
    """Evidences and draws of numbers of classes of one table of answers.

    All numbers are looked at roughly, each with the concentrations of answers that may matter;
    those that may matter then get as little error as they need. Particles of one concentration tell
    the evidences of its neighbours, too. No look begins after `max_time` seconds.
    """

    def __init__(
        self, tensor: CountTensor, prior: ClassPrior, run: Run, max_time: float | None = None
    ) -> None:
        self.tensor, self.prior, self.run = tensor, prior, run
        self.evidences: dict[Candidate, Evidence] = {}
        # Candidates with particles of their own.
        self._looked_at: set[Candidate] = set()
        self._draws: dict[Candidate, PosteriorDraws] = {}
        self._layouts: dict[int, list[Layout]] = {}
        self._most_exact: float = np.inf
        # Least error in nats that a tempering has had.
        self._tempered_error = 0.0
        self._ln_masses: dict[int, float] = {}
        self._ended_at_edge = False
        self._doubts: list[str] = []
        self._end = np.inf if max_time is None else time.monotonic() + max_time
        self._left_out: list[int] = []

    def choose(self, sizes: list[int], ends: bool, size_prior: SizePrior) -> ClassChoice:
        """Compare numbers of classes, and tell how many hold a row."""
        choice = self.compare(sizes, ends, size_prior)
        return replace(choice, occupied=self._occupied())

    def compare(self, sizes: list[int], ends: bool, size_prior: SizePrior) -> ClassChoice:
        """Compare numbers of classes: all roughly, then those that may matter with less error."""
        self._ln_masses = checked_ln_prior(size_prior, sizes)
        try:
            with progress_bar(self.run.progress, None, "look") as tell:
                self._look_at(ends, tell or (lambda *_: None))
        except KeyboardInterrupt:
            partial = self._choice() if self.evidences else None
            done = f"{len(self._numbers())} numbers of classes are done"
            raise Interrupted(done, partial) from None
        self._doubts = [
            f"{one[0]} classes: {self.evidences[one].doubt}"
            for one in self._possible()
            if self.evidences[one].doubt and self._lacks(one)
        ]
        choice = self._choice()
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
        model, _, run = self._model((n_classes, 0), 0)
        effort: dict[str, Any] = {"n_particles": _PARTICLES[0], "n_sweeps": _SWEEPS}
        taken = []
        for _ in range(2):
            began = time.perf_counter()
            with quiet(UnreliableErrorWarning):
                model.log_evidence(self.tensor, "smc", n_replicates=1, **effort, **run)
            taken.append(time.perf_counter() - began)
        return _REPLICATES * min(taken)

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
            (partial(self._look, level=level), self._wants_particles)
            for level in range(1, len(_PARTICLES))
        ]
        n_looks = len(self._looked_at)
        for look, is_wanted in (*looks, (self._temper, self._wants_tempering)):
            candidates = self._possible()
            if look == self._temper:
                candidates.sort(key=lambda one: -_honest_error(self.evidences[one]))
            for candidate in candidates:
                # A look at the best concentration tells of the others, too.
                for one in dict.fromkeys([self._source(candidate[0]), candidate]):
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
                    self._look(one, 0)
                    tell(len(self._looked_at), f"{n_classes} classes")
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
        ln_odds, error = joint[one] - special.logsumexp(others), _honest_error(self.evidences[one])
        moved = special.expit([ln_odds - error, ln_odds, ln_odds + error])
        return bool(np.diff(moved).max() > _WANTED) or error > _MOST_ERROR

    def _wants_particles(self, one: Candidate) -> bool:
        """Whether further particles are wanted, and may be of use."""
        if not self._lacks(one):
            return False
        is_first = one not in self._draws
        is_hopeless = self.evidences[one].std_error >= _HOPELESS
        return is_first or not is_hopeless or not self._n_samples(one[0])

    def _wants_tempering(self, one: Candidate) -> bool:
        """Whether tempering is wanted, cheap, and may have less error, as that of others had."""
        is_useful = _honest_error(self.evidences[one]) > self._tempered_error
        return is_useful and self._lacks(one) and bool(self._n_samples(one[0]))

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

    def _model(self, one: Candidate, purpose: int) -> tuple[AllocationModel, str, dict[str, Any]]:
        """The network of a candidate, its hidden node, and keywords of a method."""
        model, hidden = self.prior.model(self.tensor.axes, *one)
        run = self.run._replace(progress=False)
        # Every candidate has seeds of its own.
        return model, hidden, run.options(one[0], purpose + one[1] * (len(_PARTICLES) + 1))

    def _look(self, one: Candidate, level: int) -> None:
        """Evidence of a candidate, given the number of rows; draws from the second look on.

        Other concentrations get the evidence by the same particles where it has less error than a
        look of their own, or hardly any.
        """
        if level == 0 and self._sum(one):
            return
        _, _, run = self._model(one, level)
        n_classes, at = one
        if n_classes not in self._layouts:
            self._layouts[n_classes] = [
                lay_out(self.prior.model(self.tensor.axes, n_classes, other)[0], self.tensor)
                for other in range(len(self.prior.items))
            ]
        near = range(max(at - _NEIGHBOURS, 0), min(at + _NEIGHBOURS + 1, len(self.prior.items)))
        places = sorted(near, key=lambda place: place != at)
        found, draws = weigh_posteriors(
            [self._layouts[n_classes][place] for place in places],
            Options.of(method="smc", n_particles=_PARTICLES[level], n_sweeps=_SWEEPS),
            DRAWS if level else 0,
            AllocationRun.of(**run),
        )
        before = self.evidences.get(one)
        self.evidences[one] = found[0]
        if before is not None and one in self._looked_at:
            self.evidences[one] = _confirmed(found[0], before)
        self._looked_at.add(one)
        if draws is not None:
            self._draws[one] = draws
        for place, evidence in zip(places[1:], found[1:], strict=True):
            other = (n_classes, place)
            held = self.evidences.get(other)
            if held is not None and other in self._looked_at:
                evidence = _confirmed(evidence, held)
            most = _SURE if held is None else _honest_error(held)
            if _honest_error(evidence) < most:
                self.evidences[other] = evidence

    def _sum(self, one: Candidate) -> bool:
        """Whether the evidence of a candidate is a sum over few allocations; then it is kept."""
        if one[0] > self._most_exact:
            return False
        model, _, run = self._model(one, 0)
        try:
            found = model.log_evidence(self.tensor, "exact", given_total=True, budget=_EXACT, **run)
        except BudgetExceededError:
            self._most_exact = one[0] - 1
            return False
        self.evidences[one] = found
        self._looked_at.add(one)
        return True

    def _temper(self, one: Candidate) -> None:
        """Evidence and draws by tempering, where they have less error than those by particles."""
        model, _, run = self._model(one, len(_PARTICLES))
        with quiet():
            draws = model.sample_posterior(self.tensor, n_samples=self._n_samples(one[0]), **run)
        found, before = _given_total(draws.evidence), self.evidences[one]
        self._tempered_error = min(_honest_error(found), self._tempered_error or np.inf)
        if _honest_error(found) < _honest_error(before):
            self.evidences[one] = _confirmed(found, before)
            self._draws[one] = draws
            self._looked_at.add(one)
        elif before.method != "exact":
            self.evidences[one] = _confirmed(before, found)

    def counts(self, n_classes: int) -> ClassCounts:
        """Draws of the rows of each class and of their answers, by the best concentration."""
        return self._counts(self._best(n_classes))

    def _parameter(self, one: Candidate) -> float:
        parameter = self.prior.items[one[1]]
        assert parameter is not None
        return parameter

    def _best(self, n_classes: int) -> Candidate:
        return self._largest(n_classes, self.evidences)

    def _source(self, n_classes: int) -> Candidate:
        """The best candidate with particles of its own."""
        return self._largest(n_classes, self._looked_at)

    def _largest(self, n_classes: int, among: Iterable[Candidate]) -> Candidate:
        own = sorted(one for one in among if one[0] == n_classes)
        return max(own, key=lambda one: self.evidences[one].value)

    def _counts(self, one: Candidate) -> ClassCounts:
        """Draws of a candidate."""
        draws, hidden = self._drawn(one)
        axes = self.tensor.axes
        return ClassCounts(
            draws.counts[hidden],
            tuple(draws.counts[axis] for axis in axes),
            [draws.alphas[node] for node in (hidden, *axes)],
        )

    def _drawn(self, one: Candidate) -> tuple[PosteriorDraws, str]:
        model, hidden, run = self._model(one, 1)
        if one not in self._draws:
            with quiet(UnreliableErrorWarning):
                self._draws[one] = model.sample_posterior(
                    self.tensor, method="smc", n_particles=_PARTICLES[1], n_sweeps=_SWEEPS, **run
                )
        return self._draws[one], hidden

    def _r_hat(self, n_classes: int) -> float:
        """Largest ratio, over the weights, of the spread of draws to that within their chains."""
        draws, hidden = self._drawn(self._best(n_classes))
        return r_hat(draws.counts[hidden], draws.chain)

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
            source = one if one in self._draws else self._source(one[0])
            counts = self._counts(source)
            weights = np.zeros(len(counts.classes))
            if source != one:
                weights = counts.ln_items(self._parameter(one)) - counts.ln_items(
                    self._parameter(source)
                )
            numbers = counts.n_occupied()
            for number, weight in zip(numbers.tolist(), special.softmax(weights), strict=True):
                found[number] = found.get(number, 0.0) + share * weight
        total = sum(found.values())
        return {number: float(found[number] / total) for number in sorted(found)}

    def _averaged(self, n_classes: int) -> Evidence:
        """Evidence of a number of classes: the mean over the concentrations."""
        found = [e for (n, _), e in self.evidences.items() if n == n_classes]
        values = np.array([e.value for e in found])
        errors = special.softmax(values) * [e.std_error for e in found]
        return replace(
            found[int(values.argmax())],
            value=float(special.logsumexp(values) - np.log(len(self.prior.items))),
            std_error=float(np.hypot.reduce(errors)),
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
                row["concentration"] = self.prior.items[self._best(n_classes)[1]]
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


def _honest_error(found: Evidence) -> float:
    """Standard error of an evidence; twice as much where it cannot be trusted."""
    return float(np.nan_to_num(found.std_error)) * (2.0 if found.doubt else 1.0)


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
