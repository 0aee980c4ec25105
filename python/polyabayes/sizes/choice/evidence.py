"""Sizes of allocation models by evidence, at one concentration or averaged over several."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from polyabayes._support import checks
from polyabayes._support.random import RandomState, draw_seed
from polyabayes._support.state_folder import StateFolder
from polyabayes._support.warnings import quiet, warn
from polyabayes.allocation import AllocationModel
from polyabayes.allocation.observed_cells import lay_out_observed
from polyabayes.allocation.options import METHODS
from polyabayes.exceptions import (
    EdgeWarning,
    Interrupted,
    InvalidArgumentError,
    InvalidTypeError,
    UnreliableErrorWarning,
    argument,
)
from polyabayes.sizes.choice.result import Size, SizeChoice, gains_of, warn_at_edge
from polyabayes.sizes.scores import Score, Sizes, identity_of, plain

AUTO = "auto"
# Smallest concentration of "auto", which averages over powers of 2.
_LEAST_POWER = -2
# Dirichlet parameter of a cell of the largest table at the largest concentration of "auto".
_MOST_A_CELL = 4.0
# "auto" moves away from the best concentration until ln of the evidence is this much lower.
_NEGLIGIBLE = 10.0
# Approximate number of concentrations that "auto" evaluates per size.
_WALKED = 6
# Standard errors of a difference added to the threshold of "auto".
_DOUBT = 2.0
# Largest log odds "not worth more than a bare mention" (Kass & Raftery 1995).
_NO_EVIDENCE = float(np.log(3))


class Found(NamedTuple):
    """An evidence, its standard error in nats, and why the error cannot be trusted, if so."""

    value: float
    std_error: float
    doubt: str


class Concentrations(NamedTuple):
    """Concentrations and their prior.

    Values increase; `ln_weights` are ln of prior probabilities, which sum to 1; `is_walked` says
    whether negligible values are skipped.
    """

    values: tuple[float, ...]
    ln_weights: NDArray[np.float64]
    is_walked: bool = False

    @classmethod
    def of(cls, given: Any, model: AllocationModel, n_cells: int) -> Concentrations:
        """Check the argument `concentrations`.

        None is the concentration of the model; `n_cells` is the number of cells of the largest
        table at the largest sizes.
        """
        if given is None:
            return cls((model.concentration,), np.zeros(1))
        if model.prior not in ("bdeu", "bdeu-tokens"):
            raise InvalidArgumentError(
                "concentrations need a model with prior='bdeu', but the model has "
                f"prior={model.prior!r}"
            )
        if isinstance(given, str):
            checks.choice("concentrations", given, (AUTO,))
            most = math.ceil(math.log2(_MOST_A_CELL * n_cells))
            values = tuple(2.0**power for power in range(_LEAST_POWER, most + 1))
            return cls(values, np.full(len(values), -np.log(len(values))), is_walked=True)
        if not isinstance(given, Iterable):
            raise InvalidTypeError(
                "concentrations must be None, 'auto', numbers, or a mapping of numbers to their "
                f"prior weights, got {given!r:.100}"
            )
        pairs = given.items() if isinstance(given, Mapping) else ((value, 1.0) for value in given)
        weights = {
            checks.positive_number("concentrations", value): checks.positive_number(
                f"concentrations[{value!r}]", weight
            )
            for value, weight in pairs
        }
        if not weights:
            raise InvalidArgumentError("concentrations is empty; give at least one, or None")
        values = tuple(sorted(weights))
        logs = np.log([weights[value] for value in values])
        return cls(values, logs - special.logsumexp(logs))

    @property
    def is_averaged(self) -> bool:
        """Whether there are several concentrations."""
        return len(self.values) > 1


class Evidences:
    """Evidences of all combinations of sizes, at one concentration or at several.

    Every evidence has its own seed, from its sizes and concentration, and is saved to the folder at
    once. Bad arguments are refused.
    """

    def __init__(
        self,
        model: AllocationModel,
        data: Any,
        sizes: Mapping[str, list[int]],
        concentrations: Any,
        random_state: RandomState,
        options: dict[str, Any],
        folder: StateFolder | None = None,
    ) -> None:
        method = checks.choice("method", options.get("method", "auto"), tuple(METHODS))
        if METHODS[method].is_lower_bound:
            raise InvalidArgumentError(
                f"method {method!r} gives a bound, which gives no odds; use "
                f"{argument('method', 'tempered')} or {argument('method', 'smc')}"
            )
        largest = model.with_sizes(**{node: values[-1] for node, values in sizes.items()})
        observed, order = options.get("observed"), options.get("elimination_order")
        layout, missing = lay_out_observed(largest, data, observed, order)
        n_cells = max(math.prod(layout.shape(node)) for node in layout.sizes)
        chosen = Concentrations.of(concentrations, model, n_cells)
        if chosen.is_averaged and model.rate is None and observed is None:
            # The default rate depends on the data, so that P(T) would favour large concentrations.
            options.setdefault("given_total", True)
        self._model, self._data, self._sizes, self._options = model, data, sizes, options
        self._concentrations, self._seed = chosen, draw_seed(random_state)
        # The concentration with the nearest ratio to that of the model.
        apart = np.abs(np.log(chosen.values) - np.log(model.concentration))
        self._start = int(np.argmin(apart))
        self._table: dict[Sizes, dict[int, Found]] = {}
        self._folder = folder
        if folder is not None:
            identity = identity_of(model, layout.tensor, options, missing)
            folder.claim("choice.safetensors", "choice", {**identity, "seed": self._seed})

    def choose(self) -> SizeChoice:
        """The choice among all combinations of sizes."""
        combinations = list(product(*self._sizes.values()))
        try:
            for values in combinations:
                self._of_sizes(dict(zip(self._sizes, values, strict=True)))
                self._start = self._best_concentration(values)
        except KeyboardInterrupt:
            partial = self._choice(ended=False) if self._table else None
            done = f"{len(self._table)} of {len(combinations)} sizes are done"
            raise Interrupted(done, partial) from None
        self._warn()
        choice = self._choice(ended=True)
        warn_at_edge(choice)
        return choice

    def _of_sizes(self, sizes: dict[str, int]) -> None:
        """All evidences of one combination; "auto" goes up and down from the last best one."""
        start, n_values = self._start, len(self._concentrations.values)
        found: dict[int, Found] = {}
        if not self._concentrations.is_walked:
            found = {index: self._evidence(sizes, index) for index in range(n_values)}
        else:
            found[start] = self._evidence(sizes, start)
            for step, end in ((1, n_values), (-1, -1)):
                for index in range(start + step, end, step):
                    if _is_negligible(found[index - step], found.values()):
                        break
                    found[index] = self._evidence(sizes, index)
        self._table[tuple(sizes.values())] = found

    def _best_concentration(self, values: Sizes) -> int:
        """Index of the most probable concentration of a finished combination."""
        found = self._table[values]
        return max(found, key=lambda index: self._ln_joint(found, index))

    def _warn(self) -> None:
        """Warn once of all evidences that cannot be trusted."""
        doubts = [
            f"size {plain(values)}{self._at(index)}: {evidence.doubt}"
            for values, found in self._table.items()
            for index, evidence in found.items()
            if evidence.doubt
        ]
        if doubts:
            n_more = len(doubts) - 1
            more = f"; {n_more} more evidences are unreliable" if n_more else ""
            warn(doubts[0] + more, UnreliableErrorWarning)
        best = max(self._table, key=lambda values: self._score(self._table[values]).value)
        index, given = self._best_concentration(best), self._concentrations.values
        if self._concentrations.is_averaged and index in (0, len(given) - 1):
            warn(
                f"the most probable concentration, {given[index]:g} at size {plain(best)}, is the "
                f"{'smallest' if index == 0 else 'largest'} of those to choose from: others beyond "
                "may be more probable, and change the choice",
                EdgeWarning,
            )

    def _choice(self, *, ended: bool) -> SizeChoice:
        """The choice among the finished combinations."""
        scores = {plain(values): self._score(found) for values, found in self._table.items()}
        return choice_by_evidence(scores, self._joint(), [*self._sizes.values()], ended)

    def _joint(self) -> list[dict[str, Any]]:
        """Rows of sizes and concentrations; none for a single concentration."""
        if not self._concentrations.is_averaged:
            return []
        tried = [
            (values, index, self._ln_joint(found, index))
            for values, found in self._table.items()
            for index in sorted(found)
        ]
        shares = special.softmax([ln_joint for *_, ln_joint in tried]).tolist()
        return [
            {
                "size": plain(values),
                "concentration": self._concentrations.values[index],
                "score": self._table[values][index].value,
                "std_error": self._table[values][index].std_error,
                "probability": share,
            }
            for (values, index, _), share in zip(tried, shares, strict=True)
        ]

    def _evidence(self, sizes: dict[str, int], index: int) -> Found:
        """The evidence of sizes at a concentration, by its index."""
        concentration = self._concentrations.values[index]
        name = f"size-{'-'.join(map(str, sizes.values()))}-concentration-{concentration!r}"
        kept = None if self._folder is None else self._folder.read(f"{name}.safetensors")
        if kept is not None:
            return Found(*(kept[0][field] for field in Found._fields))
        model = self._model.with_sizes(**sizes)
        model.concentration = concentration
        # The seed depends on the bits of the concentration, not on the other concentrations.
        bits = int(np.float64(concentration).view(np.uint64))
        seed = np.random.SeedSequence([self._seed % 2**63, *sizes.values(), bits])
        with quiet(UnreliableErrorWarning):
            made = model.log_evidence(self._data, random_state=seed, **self._options)
        found = Found(made.value, made.std_error, made.doubt)
        if self._folder is not None:
            self._folder.keep(f"{name}.safetensors", found._asdict(), {}, f"the evidence of {name}")
        return found

    def _ln_joint(self, found: dict[int, Found], index: int) -> float:
        return found[index].value + float(self._concentrations.ln_weights[index])

    def _score(self, found: dict[int, Found]) -> Score:
        """Log mean evidence over concentrations; errors by their shares of it."""
        terms = np.array([self._ln_joint(found, index) for index in found])
        errors = np.array([evidence.std_error for evidence in found.values()])
        error = float(np.sqrt(((special.softmax(terms) * errors) ** 2).sum()))
        return Score(float(special.logsumexp(terms)), error)

    def _at(self, index: int) -> str:
        if not self._concentrations.is_averaged:
            return ""
        return f", concentration {self._concentrations.values[index]:g}"


def _is_negligible(evidence: Found, others: Iterable[Found]) -> bool:
    """Whether an evidence is far below the largest, given the errors of both."""
    top = max(others, key=lambda other: other.value)
    error = np.nan_to_num(np.hypot(evidence.std_error, top.std_error), nan=0.0)
    return bool(top.value - evidence.value > _NEGLIGIBLE + _DOUBT * error)


def choice_by_evidence(
    scores: dict[Size, Score], joint: list[dict[str, Any]], ranges: list[list[int]], ended: bool
) -> SizeChoice:
    """Make the choice from the posterior of allocation models.

    `joint` are the rows of sizes and concentrations, `ranges` the sizes to choose from, for every
    unknown node.
    """
    chances = special.softmax([score.value for score in scores.values()]).tolist()
    rows: list[dict[str, Any]] = [
        {"size": size, "score": score.value, "std_error": score.std_error, "probability": chance}
        for (size, score), chance in zip(scores.items(), chances, strict=True)
    ]
    for row in rows if joint else ():
        of_size = [other for other in joint if other["size"] == row["size"]]
        row["concentration"] = max(of_size, key=lambda one: one["probability"])["concentration"]
    best = max(scores, key=lambda size: scores[size].value)
    good = tuple(
        size for size in scores if _odds_against(scores[size], scores[best]) <= _NO_EVIDENCE
    )
    smallest = min(good, key=lambda size: (int(np.prod(size)), size))
    values = best if isinstance(best, tuple) else (best,)
    edge = ""
    for value, tried in zip(values, ranges, strict=True):
        if len(tried) > 1 and value in (tried[0], tried[-1]) and value != 1:
            edge = "smallest" if value == tried[0] else "largest"

    def difference(one: Any, other: Any) -> Score:
        error = float(np.hypot(scores[one].std_error, scores[other].std_error))
        return Score(scores[one].value - scores[other].value, error)

    gains = () if isinstance(best, tuple) else gains_of(sorted(scores), difference)
    return SizeChoice(best, good, smallest, edge, ended, "evidence", rows, joint, gains=gains)


def _odds_against(score: Score, best: Score) -> float:
    """Log odds against a size, minus their standard error if known."""
    if score is best:
        return 0.0
    error = np.nan_to_num(np.hypot(best.std_error, score.std_error))
    return best.value - score.value - float(error)
