"""Concentrations over which evidences are averaged."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from scipy import special

from polyabayes._support import checks
from polyabayes._support.arrays import Floats
from polyabayes.allocation import AllocationModel
from polyabayes.exceptions import InvalidArgumentError, InvalidTypeError

AUTO = "auto"
# Smallest concentration of "auto", which averages over powers of 2.
_LEAST_POWER = -2
# Dirichlet parameter of a cell of the largest table at the largest concentration of "auto".
_MOST_A_CELL = 4.0


class Concentrations(NamedTuple):
    """Concentrations and their prior.

    Values increase; a single None is the concentration of the model. `ln_weights` are ln of prior
    probabilities, which sum to 1; `is_walked` says whether negligible values are skipped.
    """

    values: tuple[float | None, ...]
    ln_weights: Floats
    is_walked: bool = False

    @classmethod
    def even(cls, values: Iterable[float | None], *, is_walked: bool = False) -> Concentrations:
        """Concentrations of equal prior probability; a single None is that of the model."""
        found = tuple(values)
        return cls(found, np.full(len(found), -np.log(len(found))), is_walked)

    @classmethod
    def of(cls, given: Any, model: AllocationModel, n_cells: int) -> Concentrations:
        """Check the argument `concentrations`.

        None is the concentration of the model; `n_cells` is the number of cells of the largest
        table at the largest sizes.
        """
        if given is None:
            return cls.even([model.concentration])
        if model.prior not in ("bdeu", "bdeu-tokens"):
            raise InvalidArgumentError(
                "concentrations need a model with prior='bdeu', but the model has "
                f"prior={model.prior!r}"
            )
        if isinstance(given, str):
            checks.choice("concentrations", given, (AUTO,))
            most = math.ceil(math.log2(_MOST_A_CELL * n_cells))
            values = tuple(2.0**power for power in range(_LEAST_POWER, most + 1))
            return cls.even(values, is_walked=True)
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

    def nearest(self, value: float) -> int:
        """Place of the concentration with the nearest ratio to a value."""
        apart = [abs(math.log(one or 1.0) - math.log(value)) for one in self.values]
        return int(np.argmin(apart))
