"""Posterior of rank and concentration by particle Markov chain Monte Carlo."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from polyabayes._support import checks
from polyabayes._support.progress import progress_bar
from polyabayes._support.random import RandomState, random_generator
from polyabayes._support.results import Result
from polyabayes._support.warnings import quiet
from polyabayes.allocation.model import AllocationModel
from polyabayes.allocation.options import METHODS
from polyabayes.exceptions import (
    Interrupted,
    InvalidArgumentError,
    InvalidTypeError,
    UnreliableErrorWarning,
)

if TYPE_CHECKING:
    pass

__all__ = ["ParticleChain", "particle_mcmc"]

# Batches whose means tell the error of an average over the chain.
_N_BATCHES = 20


@dataclass(frozen=True, repr=False, eq=False)
class ParticleChain(Result):
    """States of a chain whose law tends to the posterior of rank and concentration.

    Attributes
    ----------
    ranks : ndarray of int, shape (n_steps,)
        Rank at every step.
    concentrations : ndarray of shape (n_steps,)
        Concentration at every step.
    log_evidences : ndarray of shape (n_steps,)
        Estimated evidence of the state, in nats.
    acceptance : float
        Share of the proposals that were accepted.

    Examples
    --------
    >>> import polyabayes as pb
    >>> def model(K, a):
    ...     return pb.AllocationModel.nmf(K, concentration=a)
    >>> counts = [[4, 3, 0], [0, 0, 3], [0, 0, 3]]
    >>> chain = pb.particle_mcmc(model, counts, ranks=[1, 2, 3], n_steps=50, random_state=0)
    >>> chain.ranks.shape, 0 <= chain.acceptance <= 1
    ((50,), True)
    """

    ranks: NDArray[np.int64]
    concentrations: NDArray[np.float64]
    log_evidences: NDArray[np.float64]
    acceptance: float

    def rank_probabilities(self, burn_in: int = 0) -> dict[int, tuple[float, float]]:
        """Posterior probability of every rank visited, and its standard error.

        The error is that of the means of 20 batches of the chain; it holds for chains much
        longer than 20 times their correlation, and is NaN for those shorter than 20 steps.

        Parameters
        ----------
        burn_in : int, default=0
            Steps to leave out.

        Returns
        -------
        dict of int to (float, float)
            Probability and standard error by rank.

        Raises
        ------
        InvalidArgumentError, InvalidTypeError
            If `burn_in` leaves too few steps.

        Examples
        --------
        >>> import polyabayes as pb
        >>> def model(K, a):
        ...     return pb.AllocationModel.nmf(K, concentration=a)
        >>> counts = [[4, 3, 0], [0, 0, 3], [0, 0, 3]]
        >>> chain = pb.particle_mcmc(model, counts, ranks=[1, 2, 3], n_steps=50, random_state=0)
        >>> found = chain.rank_probabilities()
        >>> abs(sum(share for share, _ in found.values()) - 1) < 1e-12
        True
        """
        checks.whole_number("burn_in", burn_in, 0, max(len(self.ranks) - _N_BATCHES, 0))
        kept = self.ranks[burn_in:]
        probabilities = {}
        for rank in np.unique(kept).tolist():
            error = np.nan
            if len(kept) >= _N_BATCHES:
                means = [(batch == rank).mean() for batch in np.array_split(kept, _N_BATCHES)]
                error = float(np.std(means, ddof=1) / np.sqrt(_N_BATCHES))
            probabilities[int(rank)] = (float((kept == rank).mean()), error)
        return probabilities

    def _columns(self) -> dict[str, Any]:
        return {
            "rank": self.ranks,
            "concentration": self.concentrations,
            "log_evidence": self.log_evidences,
        }

    def __repr__(self) -> str:
        return f"<ParticleChain: {len(self.ranks):,} steps, {self.acceptance:.0%} accepted>"


class Density(Protocol):
    """A frozen continuous distribution of scipy.stats."""

    def logpdf(self, x: float) -> Any: ...


class _State(NamedTuple):
    rank: int
    concentration: float
    ln_prior: float
    ln_evidence: float


def particle_mcmc(
    model: Callable[[int, float], AllocationModel],
    data: Any,
    *,
    ranks: Sequence[int] | Mapping[int, float],
    concentration: float = 1.0,
    concentration_prior: Density | None = None,
    step: float = 0.5,
    n_steps: int = 1000,
    method: str = "auto",
    given_total: bool = True,
    n_replicates: int = 1,
    random_state: RandomState = None,
    progress: bool = False,
    **options: Any,
) -> ParticleChain:
    """Draw ranks and concentrations from their posterior, by particle marginal Metropolis-Hastings.

    Each step proposes the next rank up or down, and a concentration by a random walk of its
    logarithm, and estimates the evidence there. Since the estimate has no bias, the chain has the
    exact posterior as its stationary law, however noisy the estimate is (Andrieu, Doucet and
    Holenstein 2010, section 2.4.2); noise costs acceptance: aim for errors below about 1.5 nats.

    Parameters
    ----------
    model : callable
        Gives the model of a rank and a concentration, as
        ``lambda K, a: AllocationModel.nmf(K, concentration=a)``.
    data : CountTensor, Corpus, array or sparse matrix
        As for :meth:`AllocationModel.log_evidence`.
    ranks : sequence of int, or mapping of int to float
        The ranks that may be, or their prior weights.
    concentration : float, default=1.0
        The concentration, or where its walk starts.
    concentration_prior : frozen scipy distribution, optional
        Prior of the concentration, as ``scipy.stats.gamma(2)``; without one it stays fixed.
    step : float, default=0.5
        Standard deviation of a step of ln concentration.
    n_steps : int, default=1000
        Length of the chain.
    method : str, default="auto"
        As for :meth:`AllocationModel.log_evidence`; none that gives a bound.
    given_total : bool, default=True
        Condition on the total. Without a rate the prior of the total follows the data, and says
        nothing of the concentration that could be believed.
    n_replicates : int, default=1
        Replicates of every estimate.
    random_state : None, int, RandomState, Generator or SeedSequence
        Equal seeds give equal chains.
    progress : bool, default=False
        Show a progress bar (needs tqdm).
    **options
        Further options of :meth:`AllocationModel.log_evidence`.

    Returns
    -------
    ParticleChain
        The states.

    Raises
    ------
    InvalidArgumentError, InvalidTypeError
        If an argument is bad.
    Interrupted
        On Ctrl-C: a KeyboardInterrupt whose ``partial`` is the chain so far. Before the first step
        ends it is a plain KeyboardInterrupt, which says so.

    References
    ----------
    C. Andrieu, A. Doucet and R. Holenstein (2010). Particle Markov chain Monte Carlo methods.
    Journal of the Royal Statistical Society B 72(3).

    Examples
    --------
    >>> import polyabayes as pb
    >>> def model(K, a):
    ...     return pb.AllocationModel.nmf(K, concentration=a)
    >>> counts = [[4, 3, 0], [0, 0, 3], [0, 0, 3]]
    >>> chain = pb.particle_mcmc(model, counts, ranks=[1, 2, 3], n_steps=50, random_state=0)
    >>> max(chain.rank_probabilities(), key=lambda rank: chain.rank_probabilities()[rank][0]) > 1
    True
    """
    if not callable(model):
        raise InvalidTypeError(f"model must be a function of rank and concentration, got {model!r}")
    if not (concentration_prior is None or hasattr(concentration_prior, "logpdf")):
        raise InvalidTypeError(
            "concentration_prior must be a frozen distribution, as scipy.stats.gamma(2), got "
            f"{concentration_prior!r}"
        )
    if METHODS[checks.choice("method", method, tuple(METHODS))].is_lower_bound:
        raise InvalidArgumentError(f"method {method!r} gives a bound; the chain needs evidence")
    weights = _rank_weights(ranks)
    checks.positive_number("concentration", concentration)
    checks.positive_number("step", step)
    checks.whole_number("n_steps", n_steps, 1, 10**9)
    rng = random_generator(random_state)
    options = {**options, "given_total": given_total}
    if method != "exact":
        options["n_replicates"] = n_replicates

    def visit(rank: int, value: float) -> _State:
        """A state, with the density of its logarithm: the walk is along ln concentration."""
        ln_prior = float(np.log(weights[rank]))
        if concentration_prior is not None:
            ln_prior += float(concentration_prior.logpdf(value)) + float(np.log(value))
        if not np.isfinite(ln_prior):
            return _State(rank, value, -np.inf, -np.inf)
        seed = int(rng.integers(2**63))
        made = model(rank, value)
        if not isinstance(made, AllocationModel):
            raise InvalidTypeError(f"model({rank}, {value:g}) must give a model, got {made!r}")
        with quiet(UnreliableErrorWarning):
            found = made.log_evidence(data, method, random_state=seed, **options)
        return _State(rank, value, ln_prior, found.value)

    states: list[_State] = []
    n_accepted = 0
    try:
        state = visit(next(iter(weights)), float(concentration))
        if not np.isfinite(state.ln_prior):
            raise InvalidArgumentError(
                f"concentration={concentration} has density zero under concentration_prior; start "
                "where it is positive"
            )
        with progress_bar(progress, n_steps, "step") as update:
            for done in range(n_steps):
                proposal = _propose(state, list(weights), concentration_prior, step, rng)
                proposed = None if proposal is None else visit(*proposal)
                if proposed is not None and _accepts(state, proposed, rng):
                    state = proposed
                    n_accepted += 1
                states.append(state)
                if update is not None:
                    update(done + 1)
    except KeyboardInterrupt:
        if not states:
            message = "stopped before the first step ended: there is no chain yet"
            raise KeyboardInterrupt(message) from None
        partial = _chain(states, n_accepted)
        raise Interrupted(f"{len(states)} of {n_steps} steps are done", partial) from None
    return _chain(states, n_accepted)


def _propose(
    state: _State,
    ranks: list[int],
    prior: Density | None,
    step: float,
    rng: np.random.Generator,
) -> tuple[int, float] | None:
    """A neighbouring rank, and a concentration; None where there is no such rank."""
    value = state.concentration
    if prior is not None:
        value *= float(np.exp(step * rng.standard_normal()))
    place = ranks.index(state.rank)
    if len(ranks) > 1:
        place += int(rng.choice((-1, 1)))
    return (ranks[place], value) if 0 <= place < len(ranks) else None


def _accepts(state: _State, proposed: _State, rng: np.random.Generator) -> bool:
    ln_ratio = proposed.ln_prior + proposed.ln_evidence - state.ln_prior - state.ln_evidence
    return bool(np.log(rng.random()) < ln_ratio)


def _chain(states: list[_State], n_accepted: int) -> ParticleChain:
    return ParticleChain(
        np.array([state.rank for state in states], dtype=np.int64),
        np.array([state.concentration for state in states], dtype=np.float64),
        np.array([state.ln_evidence for state in states], dtype=np.float64),
        n_accepted / max(len(states), 1),
    )


def _rank_weights(ranks: Any) -> dict[int, float]:
    """Prior weights by increasing rank."""
    if isinstance(ranks, str) or not isinstance(ranks, Iterable):
        raise InvalidTypeError(f"ranks must be a sequence or a mapping of weights, got {ranks!r}")
    weights = ranks if isinstance(ranks, Mapping) else dict.fromkeys(ranks, 1.0)
    if not weights:
        raise InvalidArgumentError("ranks is empty; give at least one, as range(1, 6)")
    checked = {
        checks.whole_number("an entry of ranks", rank): checks.positive_number(
            f"ranks[{rank}]", weight
        )
        for rank, weight in weights.items()
    }
    return dict(sorted(checked.items()))
