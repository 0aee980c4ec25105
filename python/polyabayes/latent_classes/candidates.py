"""Evidences and draws of candidates: numbers of classes with a concentration of the answers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from polyabayes._support.warnings import quiet
from polyabayes.allocation import AllocationModel, Evidence, PosteriorDraws
from polyabayes.allocation.inference.draws import DRAWS, weigh_posteriors
from polyabayes.allocation.layout import Layout, lay_out
from polyabayes.allocation.options import Options, Run
from polyabayes.data.tensors.tensor import CountTensor
from polyabayes.exceptions import BudgetExceededError, UnreliableErrorWarning
from polyabayes.latent_classes.choice import ClassPrior, options_of
from polyabayes.latent_classes.tables import ClassCounts

# Particles of the looks at a candidate, one after the other, and their sweeps while the number of
# rows grows e-fold.
PARTICLES, SWEEPS = (16, 64, 256), 16
# Standard errors by which looks contradict one another.
_CONTRADICTION = 3.0
# Most multiply-adds of an exact sum, which takes the place of looks.
_EXACT = 1e7
# Concentrations to both sides whose evidence particles tell, too, and the most error with which it
# makes a look of their own needless: particles may miss what is probable under another one, and
# agree.
_NEIGHBOURS, _SURE = 2, 0.1
# Answers that tempering visits in some ten seconds, by class and by sweep; and the least and most
# sweeps.
_VISITS, _LEAST_SWEEPS, _MOST_SWEEPS = 4_000_000, 32, 512

# A number of classes, and the place of a concentration of the answers among those of the prior.
Candidate = tuple[int, int]


class CandidateEvidences:
    """Evidences, given the number of rows, and draws of candidates for one table of answers."""

    def __init__(self, tensor: CountTensor, prior: ClassPrior, run: Run) -> None:
        self.tensor, self.prior, self.run = tensor, prior, run
        self.evidences: dict[Candidate, Evidence] = {}
        # Candidates with particles or an exact sum of their own.
        self.looked_at: set[Candidate] = set()
        # Whose particles tell the evidence of each.
        self.origins: dict[Candidate, Candidate] = {}
        # Draws of the candidates that were looked at twice, or drawn.
        self.draws: dict[Candidate, PosteriorDraws] = {}
        # Least error in nats that a tempering has had; 0 before the first.
        self.tempered_error = 0.0
        self._layouts: dict[int, list[Layout]] = {}
        self._most_exact: float = np.inf

    def model(self, one: Candidate, purpose: int) -> tuple[AllocationModel, str, dict[str, Any]]:
        """The network of a candidate, its hidden node, and keywords of a method."""
        model, hidden = self.prior.model(self.tensor.axes, *one)
        run = self.run._replace(progress=False)
        # Every candidate has seeds of its own.
        return model, hidden, options_of(run, one[0], purpose + one[1] * (len(PARTICLES) + 1))

    def look(self, one: Candidate, level: int) -> None:
        """Evidence of a candidate, given the number of rows; draws from the second look on.

        Other concentrations get the evidence by the same particles where it has less error than a
        look of their own, or hardly any.
        """
        if level == 0 and self._look_exactly(one):
            return
        _, _, run = self.model(one, level)
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
            Options.of(method="smc", n_particles=PARTICLES[level], n_sweeps=SWEEPS),
            DRAWS if level else 0,
            Run.of(**run),
        )
        before = self.evidences.get(one)
        self.evidences[one] = found[0]
        if before is not None and one in self.looked_at:
            self.evidences[one] = _confirmed(found[0], before)
        self.looked_at.add(one)
        self.origins[one] = one
        if draws is not None:
            self.draws[one] = draws
        for place, evidence in zip(places[1:], found[1:], strict=True):
            other = (n_classes, place)
            held = self.evidences.get(other)
            if held is not None and other in self.looked_at:
                evidence = _confirmed(evidence, held)
            most = _SURE if held is None else honest_error(held)
            if honest_error(evidence) < most:
                self.evidences[other], self.origins[other] = evidence, one

    def _look_exactly(self, one: Candidate) -> bool:
        """Evidence of a candidate by the sum over its allocations; False if they are too many."""
        if one[0] > self._most_exact:
            return False
        model, _, run = self.model(one, 0)
        try:
            found = model.log_evidence(self.tensor, "exact", given_total=True, budget=_EXACT, **run)
        except BudgetExceededError:
            self._most_exact = one[0] - 1
            return False
        self.evidences[one], self.origins[one] = found, one
        self.looked_at.add(one)
        return True

    def temper(self, one: Candidate) -> None:
        """Evidence and draws by tempering, where they have less error than those by particles."""
        model, _, run = self.model(one, len(PARTICLES))
        with quiet():
            draws = model.sample_posterior(self.tensor, n_samples=self.n_samples(one[0]), **run)
        found, before = draws.evidence, self.evidences[one]
        less = found.log_probability_of_total
        value, bound = found.value - less, found.lower_bound - less
        found = replace(found, value=value, lower_bound=bound, given_total=True)
        self.tempered_error = min(honest_error(found), self.tempered_error or np.inf)
        if honest_error(found) < honest_error(before):
            self.evidences[one] = _confirmed(found, before)
            self.draws[one], self.origins[one] = draws, one
            self.looked_at.add(one)
        elif before.method != "exact":
            self.evidences[one] = _confirmed(before, found)

    def n_samples(self, n_classes: int) -> int:
        """Sweeps of a tempering; 0 where too few would be affordable."""
        visits = self.tensor.total * len(self.tensor.axes) * n_classes
        n_samples = int(min(_VISITS // visits, _MOST_SWEEPS))
        return n_samples if n_samples >= _LEAST_SWEEPS else 0

    def best(self, n_classes: int) -> Candidate:
        """The candidate of the largest evidence."""
        return self._largest(n_classes, self.evidences)

    def source(self, n_classes: int) -> Candidate:
        """The best candidate with particles of its own."""
        return self._largest(n_classes, self.looked_at)

    def _largest(self, n_classes: int, among: Iterable[Candidate]) -> Candidate:
        own = sorted(one for one in among if one[0] == n_classes)
        return max(own, key=lambda one: self.evidences[one].value)

    def parameter(self, one: Candidate) -> float:
        """The concentration of a candidate."""
        parameter = self.prior.items[one[1]]
        assert parameter is not None
        return parameter

    def counts_of(self, one: Candidate) -> ClassCounts:
        """Draws of the rows of each class and of their answers."""
        draws, hidden = self.drawn(one)
        axes = self.tensor.axes
        return ClassCounts(
            draws.counts[hidden],
            tuple(draws.counts[axis] for axis in axes),
            [draws.alphas[node] for node in (hidden, *axes)],
        )

    def drawn(self, one: Candidate) -> tuple[PosteriorDraws, str]:
        """Draws of a candidate, those of its looks if there are any, and its hidden node."""
        model, hidden, run = self.model(one, 1)
        if one not in self.draws:
            with quiet(UnreliableErrorWarning):
                self.draws[one] = model.sample_posterior(
                    self.tensor, method="smc", n_particles=PARTICLES[1], n_sweeps=SWEEPS, **run
                )
        return self.draws[one], hidden


def honest_error(found: Evidence) -> float:
    """Standard error of an evidence; twice as much where it cannot be trusted."""
    return float(np.nan_to_num(found.std_error)) * (2.0 if found.doubt else 1.0)


def _confirmed(found: Evidence, other: Evidence) -> Evidence:
    """An evidence, with its distance to another in its error where they contradict one another."""
    moved = found.value - other.value
    if abs(moved) <= _CONTRADICTION * float(np.hypot(found.std_error, other.std_error)):
        return found
    return replace(found, std_error=float(np.hypot(found.std_error, moved)), converged=False)
