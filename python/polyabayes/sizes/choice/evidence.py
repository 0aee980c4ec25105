"""The choice of sizes of allocation models by evidence."""

import math
from collections.abc import Mapping
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from scipy import special

from polyabayes._support import checks
from polyabayes._support.random import RandomState, draw_seed
from polyabayes._support.storage.state_folder import StateFolder
from polyabayes._support.warnings import warn
from polyabayes.allocation import AllocationModel
from polyabayes.allocation.observed_cells import lay_out_observed
from polyabayes.allocation.options import METHODS
from polyabayes.allocation.posterior import kept_evidence
from polyabayes.exceptions import EdgeWarning, InvalidArgumentError, argument
from polyabayes.sizes.choice.result import Size, SizeChoice, gains_of, warn_at_edge
from polyabayes.sizes.evidence import Candidate, Comparison, Concentrations
from polyabayes.sizes.scores import Score, identity_of, plain

# Largest log odds "not worth more than a bare mention" (Kass & Raftery 1995).
_NO_EVIDENCE = float(np.log(3))


class Evidences(Comparison):
    """Evidences of all combinations of sizes, by a method and options that the user gives.

    Every evidence has its own seed, from its sizes and concentration, and is saved to the folder at
    once. Bad arguments are refused.
    """

    # Averages are accurate to a few thousandths of a percent.
    least_odds, is_each_accurate = math.exp(-10), True

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
        self._is_averaged = len(chosen.values) > 1
        if self._is_averaged and model.rate is None and observed is None:
            # The default rate depends on the data, so that P(T) would favour large concentrations.
            options.setdefault("given_total", True)
        combinations = dict.fromkeys(product(*sizes.values()), 0.0)
        super().__init__(chosen, combinations, chosen.nearest(model.concentration))
        self._model, self._data, self._sizes, self._options = model, data, sizes, options
        self._seed, self._folder = draw_seed(random_state), folder
        if folder is not None:
            identity = identity_of(model, layout.tensor, options, missing)
            folder.claim("choice.safetensors", "choice", {**identity, "seed": self._seed})

    def choose(self) -> SizeChoice:
        """The choice among all combinations of sizes."""
        choice: SizeChoice = self.compare(self._choice, progress=False)
        self.warn(self.evidences)
        values = self.concentrations.values
        _, at = self.best(choice.best if isinstance(choice.best, tuple) else (choice.best,))
        if self._is_averaged and at in (0, len(values) - 1):
            warn(
                f"the most probable concentration, {values[at]:g} at size {choice.best}, is the "
                f"{'smallest' if at == 0 else 'largest'} of those to choose from: others beyond "
                "may be more probable, and change the choice",
                EdgeWarning,
            )
        warn_at_edge(choice)
        return choice

    def look(self, one: Candidate, level: int) -> None:  # noqa: ARG002
        """The evidence of a candidate by the user's method, or from the folder."""
        sizes, concentration = one[0], self.concentrations.values[one[1]]
        assert concentration is not None
        name = f"size-{'-'.join(map(str, sizes))}-concentration-{concentration!r}"
        self.origins[one] = one
        model = self._model.with_sizes(**dict(zip(self._sizes, sizes, strict=True)))
        model.concentration = concentration
        # The seed depends on the bits of the concentration, not on the other concentrations.
        bits = int(np.float64(concentration).view(np.uint64))
        seed = np.random.SeedSequence([self._seed % 2**63, *sizes, bits])
        find = partial(model.log_evidence, self._data, random_state=seed, **self._options)
        file, what = f"{name}.safetensors", f"the evidence of {name}"
        self.evidences[one] = kept_evidence(self._folder, file, what, find)

    def _choice(self) -> SizeChoice:
        """The choice among the finished combinations."""
        averages = {plain(sizes): self.averaged(sizes) for sizes in self.done}
        scores = {size: Score(one.value, one.std_error) for size, one in averages.items()}
        ended = len(self.done) == len(self.ln_masses)
        return choice_by_evidence(scores, self._joint_rows(), [*self._sizes.values()], ended)

    def _joint_rows(self) -> list[dict[str, Any]]:
        """Rows of sizes and concentrations; none for a single concentration."""
        if not self._is_averaged:
            return []
        shares = self.shares()
        return [
            {
                "size": plain(sizes),
                "concentration": self.concentrations.values[at],
                "score": self.evidences[sizes, at].value,
                "std_error": self.evidences[sizes, at].std_error,
                "probability": shares[sizes, at],
            }
            for sizes, at in sorted(shares, key=lambda one: (self.done.index(one[0]), one[1]))
        ]


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
