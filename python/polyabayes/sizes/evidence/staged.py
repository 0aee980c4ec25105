"""Evidences and draws of networks, with as much effort as each candidate needs."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy import special

from polyabayes._support.arrays import Floats, Indices
from polyabayes._support.warnings import quiet, warn
from polyabayes.allocation import AllocationModel, Evidence, PosteriorDraws
from polyabayes.allocation.inference.draws import DRAWS, ln_tables, weigh_posteriors
from polyabayes.allocation.layout import Layout, lay_out
from polyabayes.allocation.options import Options, Run
from polyabayes.data.tensors.tensor import CountTensor
from polyabayes.exceptions import BudgetExceededError, UnreliableErrorWarning
from polyabayes.sizes.evidence.comparison import Candidate, Comparison, honest_error, most_shortfall
from polyabayes.sizes.evidence.concentrations import Concentrations
from polyabayes.sizes.scores import Sizes

# The efforts are those with which benches/latent_classes.py made the records
# latent-classes-choice and latent-classes-speed.

# Particles of the looks at a candidate, one after the other, and their sweeps while the number of
# tokens grows e-fold.
PARTICLES, SWEEPS = (16, 64, 256), 16
# Standard errors by which looks contradict one another.
_CONTRADICTION = 3.0
# Most multiply-adds of an exact sum, which takes the place of looks.
_EXACT = 1e7
# Concentrations to both sides whose evidence particles tell, too, and the most error with which it
# makes a look of their own needless: particles may miss what is probable under another one, and
# agree.
_NEIGHBOURS, _SURE = 2, 0.1
# Nats below a chance at which particles of the next concentration make a look needless, too: none
# of 122 looks that they made needless in sets of `benches/latent_classes.py choice` came within 15
# nats of the best.
_FAR = 10.0
# Answers that tempering visits in some ten seconds, by hidden level and by sweep; and the least and
# most sweeps.
_VISITS, _LEAST_SWEEPS, _MOST_SWEEPS = 4_000_000, 32, 512
# Error of the second look in nats beyond which more particles are of no use where tempering is
# cheap.
_HOPELESS = 2.5
# Gelman and Rubin's ratio above which chains disagree (Gelman et al. 2014, BDA3, section 11.4).
MOST_R_HAT = 1.1


class Networks(NamedTuple):
    """Networks with one hidden node to compare on a tensor: `make` gives that of a candidate."""

    tensor: CountTensor
    make: Callable[[Candidate], AllocationModel]


class StagedComparison(Comparison):
    """Evidences, given the total of the tensor, and draws of networks.

    All sizes are looked at roughly, each with the concentrations that may matter; candidates that
    may matter then get as little error as they need. Particles of one concentration tell the
    evidences of its neighbours, too.
    """

    def __init__(
        self,
        networks: Networks,
        concentrations: Concentrations,
        ln_masses: Mapping[Sizes, float],
        start: int,
        run: Run,
        max_time: float | None = None,
    ) -> None:
        super().__init__(concentrations, ln_masses, start, max_time)
        self.networks, self.run = networks, run
        # Level of the last look at candidates with particles or an exact sum of their own.
        self.looked_at: dict[Candidate, int] = {}
        # Draws of the candidates that were looked at twice and may be probable, or drawn.
        self.draws: dict[Candidate, PosteriorDraws] = {}
        # Least error in nats that a tempering has had; 0 before the first.
        self._tempered_error = 0.0
        # Evidences that particles of the next concentration told with too much error.
        self._rough: dict[Candidate, Evidence] = {}
        self._layouts: dict[Candidate, Layout] = {}
        self._most_exact: float = np.inf

    def options(self, one: Candidate, purpose: int) -> dict[str, Any]:
        """Keywords of a method; every candidate has seeds of its own."""
        words = [self.run.seed, *one[0], purpose + one[1] * (len(PARTICLES) + 1)]
        return {"random_state": np.random.SeedSequence(words), "n_jobs": self.run.n_jobs}

    def layout(self, one: Candidate) -> Layout:
        """The network of a candidate, laid out."""
        if one not in self._layouts:
            self._layouts[one] = lay_out(self.networks.make(one), self.networks.tensor)
        return self._layouts[one]

    def is_far(self, one: Candidate) -> bool:
        """Whether particles of the next concentration put the evidence far below the best."""
        if (rough := self._rough.get(one)) is None:
            return False
        most = rough.value + most_shortfall(rough) + self.ln_masses[one[0]] + _FAR
        return bool(most < max(self.joint().values()) + np.log(self.least_odds))

    def look(self, one: Candidate, level: int) -> None:
        """Evidence of a candidate; draws from the second look on, unless it is improbable.

        Other concentrations get the evidence by the same particles where it has less error than a
        look of their own, or hardly any.
        """
        if level == 0 and self._look_exactly(one):
            return
        sizes, at = one
        n_values = len(self.concentrations.values)
        near = range(max(at - _NEIGHBOURS, 0), min(at + _NEIGHBOURS + 1, n_values))
        places = sorted(near, key=lambda place: place != at)
        found, draws = weigh_posteriors(
            [self.layout((sizes, place)) for place in places],
            Options.of(method="smc", n_particles=PARTICLES[level], n_sweeps=SWEEPS),
            DRAWS if level and self.shares()[one] >= self.least_odds else 0,
            Run.of(**self.options(one, level), progress=False),
        )
        before = self.evidences.get(one)
        self.evidences[one] = found[0]
        if before is not None and one in self.looked_at:
            self.evidences[one] = _confirmed(found[0], before)
        self.looked_at[one] = level
        self.origins[one] = one
        if draws is not None:
            self.draws[one] = draws
        for place, evidence in zip(places[1:], found[1:], strict=True):
            other = (sizes, place)
            held = self.evidences.get(other)
            if held is not None and other in self.looked_at:
                if evidence.value + honest_error(evidence) < held.value:
                    # Estimates lower by more than their error are ignored: particles that miss a
                    # class are too low, and agree. This keeps the higher of two, about half an
                    # error too high where they differ by chance.
                    continue
                evidence = _confirmed(evidence, held)
            most = _SURE if held is None else honest_error(held)
            if honest_error(evidence) < most:
                self.evidences[other], self.origins[other] = evidence, one
            elif abs(place - at) == 1:
                self._rough[other] = evidence

    def _look_exactly(self, one: Candidate) -> bool:
        """Evidence of a candidate by the sum over its allocations; False if they are too many."""
        if np.prod(one[0]) > self._most_exact:
            return False
        try:
            found = self.networks.make(one).log_evidence(
                self.networks.tensor,
                "exact",
                given_total=True,
                budget=_EXACT,
                **self.options(one, 0),
            )
        except BudgetExceededError:
            self._most_exact = float(np.prod(one[0])) - 1
            return False
        self.evidences[one], self.origins[one] = found, one
        self.looked_at[one] = 0
        return True

    def _temper(self, one: Candidate) -> None:
        """Evidence and draws by tempering, where they have less error than those by particles.

        Tempering that has not converged takes no one's place: it may be too high by tens of nats,
        where particles, which are unbiased, are hardly ever too high.
        """
        n_samples, options = self._n_samples(one[0]), self.options(one, len(PARTICLES))
        with quiet():
            draws = self.networks.make(one).sample_posterior(
                self.networks.tensor, n_samples=n_samples, **options
            )
        found, before = draws.evidence, self.evidences[one]
        less = found.log_probability_of_total
        value, bound = found.value - less, found.lower_bound - less
        found = replace(found, value=value, lower_bound=bound, given_total=True)
        self._tempered_error = min(honest_error(found), self._tempered_error or np.inf)
        if found.converged and honest_error(found) < honest_error(before):
            self.evidences[one] = _confirmed(found, before)
            self.draws[one], self.origins[one] = draws, one
            self.looked_at[one] = len(PARTICLES)
        elif before.method != "exact":
            self.evidences[one] = _confirmed(before, found)

    def _n_samples(self, sizes: Sizes) -> int:
        """Sweeps of a tempering; 0 where too few would be affordable."""
        tensor = self.networks.tensor
        visits = tensor.total * len(tensor.axes) * int(np.prod(sizes))
        n_samples = int(min(_VISITS // visits, _MOST_SWEEPS))
        return n_samples if n_samples >= _LEAST_SWEEPS else 0

    def refine(self, tell: Callable[..., None]) -> None:
        """More particles for uncertain candidates that may matter, and then tempering."""
        looks: list[tuple[Callable[[Candidate], None], Callable[[Candidate], bool]]] = [
            (partial(self.look, level=level), self._wants_particles)
            for level in range(1, len(PARTICLES))
        ]
        n_looks = len(self.looked_at)
        for look, is_wanted in (*looks, (self._temper, self._wants_tempering)):
            candidates = self.possible()
            if look == self._temper:
                candidates.sort(key=lambda one: -honest_error(self.evidences[one]))
            for candidate in candidates:
                # A look at the best concentration tells of the others, too.
                for one in dict.fromkeys([self.source(candidate[0]), candidate]):
                    if candidate not in self.possible() or not is_wanted(candidate):
                        break
                    if not is_wanted(one):
                        continue
                    if self.is_late():
                        return
                    look(one)
                    tell(n_looks := n_looks + 1, self.label(one[0]))

    def source(self, sizes: Sizes) -> Candidate:
        """The best candidate of some sizes with particles of its own."""
        return self.largest(sizes, self.looked_at)

    def _wants_particles(self, one: Candidate) -> bool:
        """Whether further particles are wanted, and may be of use."""
        if not self.lacks(one):
            return False
        is_hopeless = self.looked_at.get(one, 0) > 0 and self.evidences[one].std_error >= _HOPELESS
        return not is_hopeless or not self._n_samples(one[0])

    def _wants_tempering(self, one: Candidate) -> bool:
        """Whether tempering is wanted, cheap, and may have less error, as that of others had."""
        is_useful = honest_error(self.evidences[one]) > self._tempered_error
        return is_useful and self.lacks(one) and bool(self._n_samples(one[0]))

    def drawn(self, one: Candidate) -> PosteriorDraws:
        """Draws of a candidate, those of its looks if there are any."""
        if one not in self.draws:
            with quiet(UnreliableErrorWarning):
                self.draws[one] = self.networks.make(one).sample_posterior(
                    self.networks.tensor,
                    method="smc",
                    n_particles=PARTICLES[1],
                    n_sweeps=SWEEPS,
                    **self.options(one, 1),
                )
        return self.draws[one]

    def levels(self, one: Candidate) -> Floats:
        """Tokens of each level of the hidden node, shape (n_draws, n_levels)."""
        draws = self.drawn(one)
        (hidden,) = draws.counts.keys() - set(self.networks.tensor.axes)
        counts = draws.counts[hidden]
        return counts.reshape(*counts.shape[:2], -1).sum(axis=2)

    def occupied(self) -> dict[int, float]:
        """Posterior of the number of levels of the hidden node that hold a token."""
        found: dict[int, float] = {}
        for one, share in self.shares().items():
            if share < self.least_odds:
                continue
            if one[0] == (1,):
                found[1] = found.get(1, 0.0) + share
                continue
            # Draws of another concentration count by the ratio of the laws of their counts.
            source = one if one in self.draws else self.source(one[0])
            draws = self.drawn(source)
            weights = np.zeros(len(draws))
            if source != one:
                ln_laws = [ln_tables(draws, self.layout(two).alphas) for two in (one, source)]
                weights = ln_laws[0] - ln_laws[1]
            numbers = (self.levels(source) > 0).sum(axis=1)
            for number, weight in zip(numbers.tolist(), special.softmax(weights), strict=True):
                found[number] = found.get(number, 0.0) + share * weight
        total = sum(found.values())
        return {number: float(found[number] / total) for number in sorted(found)}

    def warn(
        self, candidates: Iterable[Candidate] | None = None, *, with_remedy: bool = False
    ) -> None:
        """Warn of the uncertain evidences, whose remedies are arguments that nobody gave."""
        super().warn(
            self.uncertain() if candidates is None else candidates, with_remedy=with_remedy
        )

    def warn_of_draws(self, one: Candidate) -> None:
        """Warn if chains of the draws of a candidate disagree."""
        ratio = r_hat(self.levels(one), self.drawn(one).chain)
        if ratio > MOST_R_HAT:
            warn(
                f"chains of the draws disagree about the weights of {self.label(one[0])} (ratio "
                f"{ratio:.2f}, above {MOST_R_HAT}): their intervals may be too narrow or hold two "
                "solutions",
                UnreliableErrorWarning,
            )


def _confirmed(found: Evidence, other: Evidence) -> Evidence:
    """An evidence, with its distance to another in its error where they contradict one another."""
    moved = found.value - other.value
    if abs(moved) <= _CONTRADICTION * float(np.hypot(found.std_error, other.std_error)):
        return found
    return replace(found, std_error=float(np.hypot(found.std_error, moved)), converged=False)


def r_hat(values: Floats, chain: Indices) -> float:
    """Largest ratio of the spread of draws to that within their chains."""
    groups = [values[chain == number] for number in np.unique(chain)]
    if min(map(len, groups)) < 2 or len(groups) < 2:
        return 1.0
    within = np.mean([group.var(axis=0, ddof=1) for group in groups], axis=0)
    between = np.var([group.mean(axis=0) for group in groups], axis=0, ddof=1)
    ratios = np.divide(between, within, out=np.zeros_like(within), where=within > 0)
    return float(np.sqrt(1 + ratios.max()))
