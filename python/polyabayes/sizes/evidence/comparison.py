"""Evidences of sizes: concentrations from the best one outwards, averages, and what is unsure."""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import special

from polyabayes._support.output.progress import progress_bar
from polyabayes._support.warnings import warn
from polyabayes.allocation import Evidence
from polyabayes.exceptions import Interrupted, TargetWarning, UnreliableErrorWarning, argument
from polyabayes.sizes.evidence.concentrations import Concentrations
from polyabayes.sizes.scores import Sizes, plain

# Error of a probability that needs no further look, and the most error in nats of an evidence of
# any probability.
_WANTED, _MOST_ERROR = 0.05, 1.0

# Sizes of the hidden nodes, and the place of a concentration.
Candidate = tuple[Sizes, int]


class Comparison(ABC):
    """Evidences of sizes, each averaged over concentrations.

    Concentrations are looked at from the most probable one outwards, while they may matter. A
    subclass computes an evidence in :meth:`look`, and may spend more effort in :meth:`refine`.
    `ln_masses` are ln of the prior probabilities of the sizes; no look begins after `max_time`
    seconds.
    """

    # Posterior odds against the best candidate below which one does not matter.
    least_odds = 0.01
    # Whether the best candidate is that of the same sizes, so that each average is accurate.
    is_each_accurate = False

    def __init__(
        self,
        concentrations: Concentrations,
        ln_masses: Mapping[Sizes, float],
        start: int,
        max_time: float | None = None,
    ) -> None:
        self.concentrations, self.ln_masses = concentrations, ln_masses
        self.evidences: dict[Candidate, Evidence] = {}
        # The candidate whose particles tell the evidence of each.
        self.origins: dict[Candidate, Candidate] = {}
        # Sizes of which all concentrations that matter have an evidence.
        self.done: list[Sizes] = []
        self._start = start
        self.end = np.inf if max_time is None else time.monotonic() + max_time
        self._left_out: list[Sizes] = []

    @abstractmethod
    def look(self, one: Candidate, level: int) -> None:
        """Set the evidence of a candidate and its origin; higher levels take more effort."""

    def is_far(self, one: Candidate) -> bool:  # noqa: ARG002
        """Whether a candidate without an evidence is known to have no chance."""
        return False

    def refine(self, tell: Callable[..., None]) -> None:  # noqa: B027
        """Look again at candidates that need it."""

    def label(self, sizes: Sizes) -> str:
        """Sizes in words."""
        return f"size {plain(sizes)}"

    def compare(self, choice: Callable[[], Any], *, progress: bool, ends: bool = False) -> Any:
        """The choice from all sizes; if it `ends`, up to the first without a chance."""
        try:
            with progress_bar(progress, None, "evaluation") as tell:
                self._look_at_all(ends, tell or (lambda *_: None))
                self.refine(tell or (lambda *_: None))
        except KeyboardInterrupt:
            self.evidences = {one: e for one, e in self.evidences.items() if one[0] in self.done}
            partial = choice() if self.done else None
            done = f"{len(self.done)} of {len(self.ln_masses)} sizes are done"
            raise Interrupted(done, partial) from None
        return choice()

    def _look_at_all(self, ends: bool, tell: Callable[..., None]) -> None:
        for sizes in self.ln_masses:
            if self.evidences and self.is_late():
                self._left_out.append(sizes)
                continue
            self._look_outward(sizes, tell)
            self.done.append(sizes)
            if ends and sizes not in [other for other, _ in self.possible()]:
                break

    def _look_outward(self, sizes: Sizes, tell: Callable[..., None]) -> None:
        """Look at concentrations to both sides of the best one so far."""
        start = max(self.joint().items(), key=lambda pair: pair[1], default=None)
        middle = self._start if start is None else start[0][1]
        for step in (1, -1):
            at, last = middle, -np.inf
            while 0 <= at < len(self.concentrations.values):
                one = (sizes, at)
                if one not in self.evidences:
                    if (sizes, middle) in self.evidences and self.is_late():
                        return
                    if self.is_far(one):
                        break
                    self.look(one, 0)
                    tell(len(self.evidences), self.label(sizes))
                value = self.evidences[one].value
                is_falling = self.concentrations.is_walked and value < last
                if is_falling and one not in self.possible():
                    break
                at, last = at + step, value

    def joint(self) -> dict[Candidate, float]:
        """Ln of the evidence times the prior of each candidate."""
        ln_weights = self.concentrations.ln_weights
        return {
            one: e.value + self.ln_masses[one[0]] + float(ln_weights[one[1]])
            for one, e in self.evidences.items()
        }

    def shares(self) -> dict[Candidate, float]:
        """Posterior probability of each candidate."""
        joint = self.joint()
        return dict(zip(joint, special.softmax(list(joint.values())).tolist(), strict=True))

    def is_late(self) -> bool:
        """Whether the time is over."""
        return time.monotonic() >= self.end

    def possible(self) -> list[Candidate]:
        """Candidates whose odds against the best, with errors more, are not low."""
        joint = self.joint()
        top: dict[Any, float] = {}
        for (sizes, _), value in joint.items():
            key = sizes if self.is_each_accurate else ()
            top[key] = max(value, top.get(key, -np.inf))
        found = []
        for one, value in joint.items():
            least = top[one[0] if self.is_each_accurate else ()] + np.log(self.least_odds)
            if value + most_shortfall(self.evidences[one]) >= least:
                found.append(one)
        return found

    def uncertain(self) -> list[Candidate]:
        """Candidates that may matter and whose errors change probabilities."""
        return [one for one in self.possible() if self.lacks(one)]

    def lacks(self, one: Candidate) -> bool:
        """Whether its error moves the probability of a candidate by more than is wanted."""
        joint = self.joint()
        others = [value for other, value in joint.items() if other != one]
        if not others:
            return False
        ln_odds, error = joint[one] - special.logsumexp(others), honest_error(self.evidences[one])
        moved = special.expit([ln_odds - error, ln_odds, ln_odds + error])
        return bool(np.diff(moved).max() > _WANTED) or error > _MOST_ERROR

    def best(self, sizes: Sizes) -> Candidate:
        """The most probable candidate of some sizes."""
        return self.largest(sizes, self.evidences)

    def largest(self, sizes: Sizes, among: Iterable[Candidate]) -> Candidate:
        """The most probable candidate of some sizes among others."""
        own, joint = sorted(one for one in among if one[0] == sizes), self.joint()
        return max(own, key=lambda one: joint[one])

    def averaged(self, sizes: Sizes) -> Evidence:
        """Evidence of sizes: the mean over the concentrations."""
        own = [one for one in self.evidences if one[0] == sizes]
        found = [self.evidences[one] for one in own]
        terms = np.array([e.value for e in found])
        terms += self.concentrations.ln_weights[[at for _, at in own]]
        # Errors by the same particles go together.
        errors = dict.fromkeys((self.origins[one] for one in own), 0.0)
        for one, evidence, share in zip(own, found, special.softmax(terms), strict=True):
            errors[self.origins[one]] += share * evidence.std_error
        return replace(
            found[int(terms.argmax())],
            value=float(special.logsumexp(terms)),
            std_error=float(np.hypot.reduce(list(errors.values()))),
        )

    def warn(self, candidates: Iterable[Candidate], *, with_remedy: bool = True) -> None:
        """Warn once of the evidences among these that cannot be trusted, and of sizes left out."""
        if self._left_out:
            first, last = self.label(self._left_out[0]), self.label(self._left_out[-1])
            told = first if first == last else f"{first} to {last}"
            warn(
                f"{argument('max_time')} ended the comparison before {told} were evaluated; their "
                "probability is taken as 0",
                TargetWarning,
            )
        doubtful = [one for one in candidates if self.evidences[one].doubt]
        if not doubtful:
            return
        (sizes, at), evidence = doubtful[0], self.evidences[doubtful[0]]
        value = self.concentrations.values[at]
        where = "" if len(self.concentrations.values) == 1 else f", concentration {value:g}"
        doubt = evidence.doubt if with_remedy else evidence.reason_and_remedy[0]
        n_more = len(doubtful) - 1
        more = f"; {n_more} more evidences are unreliable" if n_more else ""
        warn(f"{self.label(sizes)}{where}: {doubt}{more}", UnreliableErrorWarning)


def most_shortfall(found: Evidence) -> float:
    """By how much an evidence may be too low.

    The mean of exp(x) of Gaussian x of variance s² is exp(mean + s²/2), which few replicates fall
    short of where s is large; by no more than s, as measured.
    """
    error = float(np.nan_to_num(found.std_error))
    return 2 * error + (min(error**2 / 2, error) if found.doubt else 0.0)


def honest_error(found: Evidence) -> float:
    """Standard error of an evidence; twice as much where it cannot be trusted."""
    return float(np.nan_to_num(found.std_error)) * (2.0 if found.doubt else 1.0)
