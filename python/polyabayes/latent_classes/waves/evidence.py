"""Evidences of numbers of classes of rows in waves, by particles of the parameters."""

import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
from scipy import special

from polyabayes import _core
from polyabayes.allocation import Evidence
from polyabayes.allocation.options import Run
from polyabayes.latent_classes.chains import ChainPrior, Chains, Waves, sampled
from polyabayes.sizes.evidence import Candidate, Comparison, Concentrations
from polyabayes.sizes.scores import Sizes

# Particles of the looks at a number of classes, one after the other, in each of the replicates.
# Chosen by hand; a look is repeated with more only where its error changes probabilities.
_PARTICLES, _REPLICATES = (64, 128, 256), 4


class ChainComparison(Comparison):
    """Evidences of numbers of classes, and draws, for rows in waves."""

    def __init__(
        self, waves: Waves, prior: ChainPrior, ln_masses: Mapping[int, float], run: Run
    ) -> None:
        masses: dict[Sizes, float] = {(n,): mass for n, mass in ln_masses.items()}
        super().__init__(Concentrations.even([None]), masses, 0)
        self._waves, self._prior, self._run = waves, prior, run
        self.draws: dict[Candidate, Chains] = {}

    def label(self, sizes: Sizes) -> str:
        """Sizes in words."""
        return f"{sizes[0]} classes"

    def look(self, one: Candidate, level: int) -> None:
        """The mean of unbiased estimates by independent sets of particles."""
        began, n_classes = time.perf_counter(), one[0][0]
        seeds = np.random.SeedSequence([self._run.seed, n_classes, level]).spawn(_REPLICATES)
        draw = partial(sampled, self._waves, self._prior, n_classes, _PARTICLES[level])
        with ThreadPoolExecutor(self._run.n_jobs) as pool:
            logs, chains = zip(*pool.map(draw, seeds), strict=True)
        shares = special.softmax(logs)
        spread = np.sqrt(((shares * _REPLICATES - 1) ** 2).sum() / (_REPLICATES - 1) / _REPLICATES)
        # The spread of logarithms tells more than that of values if one replicate dominates.
        error = float(max(spread, np.std(logs, ddof=1) / np.sqrt(_REPLICATES)))
        n_eff = float(1 / (shares**2).sum())
        self.evidences[one] = Evidence(
            value=float(special.logsumexp(logs) - np.log(_REPLICATES)),
            std_error=error,
            method="smc",
            given_total=True,
            log_probability_of_total=np.nan,
            n_tokens=len(self._waves.rows),
            is_unbiased=True,
            is_lower_bound=False,
            n_replicates=_REPLICATES,
            n_eff=n_eff,
            seconds=time.perf_counter() - began,
            converged=not _core.is_doubtful(error, n_eff, _REPLICATES),
            n_free=_REPLICATES - 1,
        )
        self.origins[one] = one
        # Draws of each replicate in proportion to its estimate, as of one set of particles.
        joined, n_each = Chains.joined(chains), _PARTICLES[level]
        points = (np.arange(_REPLICATES * n_each) + 0.5) / (_REPLICATES * n_each)
        ends = np.cumsum(np.repeat(shares / n_each, n_each))
        chosen = np.minimum(np.searchsorted(ends, points), len(ends) - 1)
        self.draws[one] = joined.take(chosen)

    def refine(self, tell: Callable[..., None]) -> None:
        """More particles for numbers of classes whose errors change probabilities."""
        n_looks = len(self.evidences)
        for level in range(1, len(_PARTICLES)):
            for one in self.uncertain():
                self.look(one, level)
                tell(n_looks := n_looks + 1, self.label(one[0]))
