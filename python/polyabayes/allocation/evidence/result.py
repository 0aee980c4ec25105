"""Evidence of a count tensor."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

from polyabayes import _core
from polyabayes._support import checks
from polyabayes._support.docs import shared_docs
from polyabayes._support.output.tables import measured
from polyabayes._support.results import Result
from polyabayes.allocation.layout import Layout
from polyabayes.allocation.options import METHODS
from polyabayes.exceptions import argument

# Largest share of the evidence in omitted totals without a warning.
_LEAST_DOUBTED = 0.01

# Options that make every replicate larger.
_GROWING = ("n_particles", "n_samples")

# Relative rounding difference of two sums: with one topic, the bound equals the evidence.
_ROUNDING = 1e-9


@shared_docs
class Round(NamedTuple):
    """One round of tempering.

    Attributes
    ----------
    n_scans : int
        Sweeps of every chain.
    values : tuple of float
        ln of the evidence by each replicate.
    sides : tuple of float
        ln of the evidence by stepping stones from the prior to the posterior, and back; means
        over the replicates. They are estimates, not bounds.
    round_trips : int
        Round trips of chains between prior and posterior, in all replicates.
    barrier : float
        Sum of the rejection probabilities of the swaps along a ladder.

    References
    ----------
    {Syed 2022}

    Examples
    --------
    >>> found = pb.AllocationModel.nmf(2).log_evidence(
    ...     [[4, 3, 0], [0, 0, 3]], "tempered", random_state=0
    ... )
    >>> found.rounds[-1].n_scans >= found.rounds[0].n_scans
    True
    """

    n_scans: int
    values: tuple[float, ...]
    sides: tuple[float, float]
    round_trips: int
    barrier: float

    def scaled(self, ln_factor: float) -> Round:
        """The round, for an evidence multiplied by exp(`ln_factor`).

        Parameters
        ----------
        ln_factor : float
            In nats; added to every value and to both sides.

        Returns
        -------
        Round
            A copy with new values and sides.

        Examples
        --------
        >>> Round(64, (-3.0,), (-3.5, -2.5), 5, 0.4).scaled(1.0).sides
        (-2.5, -1.5)
        """
        forward, backward = self.sides
        values = tuple(value + ln_factor for value in self.values)
        return self._replace(values=values, sides=(forward + ln_factor, backward + ln_factor))


@shared_docs
@dataclass(frozen=True, repr=False, eq=False)
class Evidence(Result):
    """Evidence of a count tensor under an allocation model, in nats.

    Attributes
    ----------
    value : float
        ln of the evidence: tables, intensity and hidden nodes are integrated out.
    std_error : float
        Standard error of `value`; 0 if exact, NaN for a bound or a single replicate. For
        ``"smc"``, the larger of two estimates: from the replicates, and from the genealogy of the
        particles (Lee & Whiteley 2018).
    method : str
        The method that was used; "exact" also if no node with several values is hidden.
    given_total : bool
        Whether the value is conditional on the total of the tensor.
    log_probability_of_total : float
        ln P(T), which `value` includes unless `given_total`. NaN with missing cells, or for an
        empty tensor under a model without a rate.
    n_tokens : int
        T, the total of the observed cells.
    is_unbiased : bool
        Whether the evidence is estimated without bias. `value` is then low by half its variance,
        in expectation.
    is_lower_bound : bool
        Whether `value` is a lower bound.
    n_replicates : int
        Independent replicates behind the error; 0 if there are none.
    n_eff : float
        Effective number of replicates; ``inf`` if exact, NaN if particles may all leave hidden
        states of a tiny concentration without tokens.
    seconds : float
        Run time.
    log_remainder : float
        With missing cells, about ln of the evidence in totals beyond the last one summed (see
        :class:`MissingCells`); ``-inf`` if none was left out.
    rounds : tuple of Round
        Rounds of ``"tempered"``, each twice as long as the previous; the last is the estimate.
    betas, rejections : tuple of float
        Ladder of the first replicate in the last round of ``"tempered"``: inverse temperatures from
        0 to 1, and rejection probabilities of swaps between neighbours (one fewer).
    converged : bool
        Whether the estimate is confirmed. ``"smc"``: the replicates agree, and those with a quarter
        of the particles agree with them. ``"tempered"``: sides, rounds and replicates agree within
        the target standard error, there is at least one round trip per replicate, and no lower
        bound exceeds the value. True if exact.
    n_free : int
        Degrees of freedom of `std_error`: replicates - 1; twice that for ``"tempered"``, which
        pools two rounds.
    lower_bound : float
        Lower bound that checks ``"tempered"``; ``-inf`` for other methods. It is the larger of a
        variational bound and an estimate from few particles minus 5 nats
        (above ln of the evidence with probability exp(-5) at most). If it exceeds the value,
        `std_error` includes the difference, and `converged` is False.

    References
    ----------
    A. Lee and N. Whiteley (2018). Variance estimation in the particle filter. Biometrika 105(3).

    Examples
    --------
    >>> pb.AllocationModel.nmf(2).log_evidence(counts)
    <Evidence: -17.254166 nats (exact)>
    """

    value: float
    std_error: float
    method: str
    given_total: bool
    log_probability_of_total: float
    n_tokens: int
    is_unbiased: bool
    is_lower_bound: bool
    n_replicates: int
    n_eff: float
    seconds: float
    log_remainder: float = -np.inf
    rounds: tuple[Round, ...] = ()
    converged: bool = True
    betas: tuple[float, ...] = ()
    rejections: tuple[float, ...] = ()
    n_free: int = 0
    lower_bound: float = -np.inf

    @property
    def n_rounds(self) -> int:
        """Number of rounds of tempering; 0 for other methods."""
        return len(self.rounds)

    @property
    def sides(self) -> tuple[float, float] | None:
        """Estimates of the last round in both directions, not bounds; None without rounds."""
        return self.rounds[-1].sides if self.rounds else None

    @property
    def round_trips(self) -> int:
        """Round trips of chains between prior and posterior, in all rounds."""
        return sum(one.round_trips for one in self.rounds)

    @property
    def barrier(self) -> float:
        """Sum of the rejection probabilities along a ladder, last round; NaN without rounds."""
        return self.rounds[-1].barrier if self.rounds else np.nan

    @property
    def doubt(self) -> str:
        """Why the value or its error cannot be trusted, and the remedy; empty if it can."""
        return "; ".join(filter(None, self.reason_and_remedy))

    @property
    def reason_and_remedy(self) -> tuple[str, str]:
        """The two parts of `doubt`."""
        left = math.exp(min(self.log_remainder - self.value, 0.0))
        if left > _LEAST_DOUBTED:
            reason = f"totals beyond the last would add about {left:.1%} to the evidence, or more"
            return reason, f"raise {argument('max_total')}"
        if self.n_replicates == 1:
            reason = "one replicate gives no standard error"
            return reason, f"raise {argument('n_replicates')}"
        if self.rounds and not self.converged:
            return self._why_rounds_differ(), f"raise {argument('n_samples')}"
        if self.rounds:
            return "", ""
        if self.method == "smc" and self.log_remainder > -np.inf:
            return (
                "particles seldom find the rare tables under which missing cells hold many tokens: "
                "the value may be too low and its error too small"
            ), (
                f"compare {argument('method', 'vb')}, or {argument('method', 'exact')} with a "
                f"larger {argument('budget')}"
            )
        if self.method == "smc" and np.isnan(self.n_eff):
            return (
                "the concentration is so small that all replicates may leave hidden states without "
                "tokens"
            ), f"use {argument('method', 'tempered')}"
        sizes = " or ".join(name for name in METHODS[self.method].options if name in _GROWING)
        if _core.is_doubtful(self.std_error, self.n_eff, self.n_replicates):
            return (
                f"{self.n_replicates} replicates differ too much for their standard error to be "
                "trusted"
            ), f"raise {sizes}"
        if not self.converged:
            reason = "replicates with a quarter of the particles give another value"
            return reason, f"raise {sizes}"
        return "", ""

    def _why_rounds_differ(self) -> str:
        if self.lower_bound > self.value:
            return (
                f"tempering has not converged: a lower bound of the evidence lies "
                f"{self.lower_bound - self.value:,.2f} nats above it"
            )
        forward, backward = self.rounds[-1].sides
        few, moved = self.round_trips < self.n_replicates, ""
        if self.n_rounds > 1:
            last, before = (np.mean(one.values) for one in self.rounds[:-3:-1])
            moved = f", the last round moved it by {last - before:+.2f}"
        return (
            f"tempering has not converged to the target standard error: its two directions are "
            f"{forward - backward:+.2f} nats apart{moved}, with {self.round_trips} round trips"
            f"{': all replicates may miss the same modes' if few else ''}"
        )

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Confidence interval of ln of the evidence.

        It uses Student's t with `n_free` degrees of freedom. A lower bound has no upper end.

        Parameters
        ----------
        level : float, default=0.95
            Confidence level, strictly between 0 and 1.

        Returns
        -------
        lower, upper : float
            Ends of the interval, in nats; equal if the value is exact.

        {raises: bad level}

        Examples
        --------
        >>> found = pb.AllocationModel.nmf(2).log_evidence(
        ...     counts, "smc", n_particles=64, random_state=0
        ... )
        >>> lower, upper = found.interval(0.95)
        >>> lower < found.value < upper
        True
        """
        checks.share("level", level)
        if self.is_lower_bound:
            return self.value, np.inf
        if not self.n_replicates:
            return self.value, self.value
        quantile = float(stats.t.ppf(0.5 + level / 2, max(self.n_free, 1)))
        half_width = quantile * self.std_error
        return self.value - half_width, self.value + half_width

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Evidence:
        """Restore an evidence from its ``asdict`` after JSON.

        Parameters
        ----------
        plain : mapping of str to Any
            All fields, tuples as lists.

        Returns
        -------
        Evidence
            Equal to the original.

        Examples
        --------
        >>> import json
        >>> from dataclasses import asdict
        >>> found = pb.AllocationModel.nmf(2).log_evidence([[4, 3, 0], [0, 0, 3]])
        >>> Evidence.from_plain(json.loads(json.dumps(asdict(found)))).value == found.value
        True
        """
        rounds = _rounds_of(plain["rounds"])
        ladder = {name: tuple(plain[name]) for name in ("betas", "rejections")}
        return cls(**{**plain, **ladder, "rounds": rounds})

    def _columns(self) -> dict[str, Any]:
        by_row = ("rounds", "betas", "rejections")
        names = [field.name for field in fields(self) if field.name not in by_row]
        return {name: [getattr(self, name)] for name in (*names, "n_rounds", "round_trips")}

    def __repr__(self) -> str:
        given = ", given the total" if self.given_total else ""
        if self.is_lower_bound:
            return f"<Evidence: at least {self.value:z,.4f} nats ({self.method}{given})>"
        if not self.n_replicates:
            return f"<Evidence: {self.value:z,.6f} nats ({self.method}{given})>"
        if self.n_replicates == 1:
            return f"<Evidence: {self.value:z,.4f} nats ({self.method}, one replicate{given})>"
        return (
            f"<Evidence: {measured(self.value, self.std_error)} nats "
            f"({self.method}, {self.n_replicates} replicates{given})>"
        )


def _rounds_of(rows: Iterable[Any]) -> tuple[Round, ...]:
    return tuple(
        Round(n_scans, tuple(values), (sides[0], sides[1]), n_trips, barrier)
        for n_scans, values, sides, n_trips, barrier in rows
    )


class Estimate(NamedTuple):
    """ln of a probability given the total, with its error."""

    ln_value: float
    std_error: float
    n_eff: float
    n_replicates: int
    rounds: tuple[Round, ...] = ()
    converged: bool = True
    betas: tuple[float, ...] = ()
    rejections: tuple[float, ...] = ()
    n_free: int = 0
    lower_bound: float = -np.inf
    interruption: BaseException | None = None

    @classmethod
    def of(
        cls,
        found: _core.AllocationEstimate,
        converged: bool = True,
        tempering: _core.AllocationTempering | None = None,
    ) -> Estimate:
        """The estimate of the compiled core; a single replicate has no standard error."""
        std_error = np.nan if found.n_replicates == 1 else found.std_error
        n_free = max(found.n_replicates - 1, 0)
        estimate = cls(found.ln_value, std_error, found.n_eff, found.n_replicates)
        if tempering is None:
            return estimate._replace(converged=converged, n_free=n_free)
        return estimate._replace(
            rounds=_rounds_of(tempering.rounds),
            converged=tempering.converged,
            betas=tuple(tempering.betas),
            rejections=tuple(tempering.rejections),
            n_free=tempering.n_free,
        )

    def fields(self) -> dict[str, Any]:
        """Fields that the result shares."""
        found = self._asdict()
        del found["ln_value"], found["interruption"]
        return found

    def held_by(self, lower_bound: float) -> Estimate:
        """Not converged and with a larger error if a lower bound is above; else unchanged."""
        estimate = self._replace(lower_bound=lower_bound)
        missed = lower_bound - self.ln_value
        if not missed > _ROUNDING * abs(self.ln_value):
            return estimate
        return estimate._replace(std_error=math.hypot(self.std_error, missed), converged=False)


def as_evidence(
    layout: Layout,
    method: str,
    estimate: Estimate,
    *,
    given_total: bool,
    ln_total: float,
    start: float,
) -> Evidence:
    """Make the result of a method that began at `start` from its estimate given the total."""
    ln_factor = 0.0 if given_total else ln_total
    scaled = estimate._replace(
        rounds=tuple(one.scaled(ln_factor) for one in estimate.rounds),
        lower_bound=estimate.lower_bound + ln_factor,
    )
    return Evidence(
        value=estimate.ln_value + ln_factor,
        method=method,
        given_total=given_total,
        log_probability_of_total=ln_total,
        n_tokens=layout.tensor.total,
        is_unbiased=METHODS[method].is_unbiased,
        is_lower_bound=METHODS[method].is_lower_bound,
        seconds=time.perf_counter() - start,
        **scaled.fields(),
    )
