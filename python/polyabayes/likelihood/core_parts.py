"""A model as arrays, which travel where the compiled one does not."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from polyabayes import _core

__all__ = ["CoreParts"]


class CoreParts(NamedTuple):
    """Arguments of a model of the compiled core.

    `kind` is "lda", "gamma_poisson", "logistic_normal", "product_of_experts" or "mixture"; the
    flags are what the kind leaves open.
    """

    kind: str
    arrays: tuple[NDArray[np.float64], ...]
    flags: tuple[bool, ...] = ()

    def core_model(self) -> _core.Model:
        """The model as the compiled core reads it."""
        # Arrays that have travelled may not be aligned.
        arrays = [np.require(array, requirements=["C", "A"]) for array in self.arrays]
        model: _core.Model = getattr(_core.Model, self.kind)(*arrays, *self.flags)
        return model
