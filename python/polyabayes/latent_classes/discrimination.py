"""Which items tell the classes apart, by their answers in draws of the classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy import special

from polyabayes._support.output.tables import counted
from polyabayes._support.warnings import warn
from polyabayes.allocation.inference.draws import ln_table
from polyabayes.exceptions import DataWarning
from polyabayes.latent_classes.choice import PRIORS
from polyabayes.latent_classes.tables import ClassCounts, Floats

# Ln of the Bayes factor that counts as clear: data of the prior pass it in one of 20 cases at most.
_CLEAR = np.log(20)
# Dirichlet parameters that an item of its own may have, each as probable as any other.
_PARAMETERS = [parameter for parameter in PRIORS["learned"].items if parameter is not None]
# Draws that are looked at, and items that a warning names.
_MOST_DRAWS, _MOST_NAMED = 100, 6


class ItemEvidence(NamedTuple):
    """What draws of the classes tell of each item."""

    # Ln of the odds that the classes have profiles of their own, against one profile of all.
    log_bayes_factors: Floats
    # Dirichlet parameters of the items' own, geometric means.
    concentrations: Floats
    # Ln of the Bayes factor of a Dirichlet parameter for each item against one of all items.
    log_own: float

    @classmethod
    def of(cls, counts: ClassCounts) -> ItemEvidence:
        """Bayes factors are means over draws of the ratios of probabilities given the classes."""
        step = -(-len(counts.classes) // _MOST_DRAWS)
        tables = [table[::step] for table in counts.items]
        given = [ln_table(*pair) for pair in zip(tables, counts.alphas[1:], strict=True)]
        own, alike = (
            np.array([[ln_table(table, alpha) for alpha in _PARAMETERS] for table in each])
            for each in (tables, [table.sum(axis=2, keepdims=True) for table in tables])
        )
        ln_own, ln_common = _ln_mean(own, 1).sum(axis=0), _ln_mean(own.sum(axis=0), 0)
        shares = special.softmax(own, axis=1).mean(axis=2)
        return cls(
            -_ln_mean(_ln_mean(alike, 1) - given, 1),
            np.exp(shares @ np.log(_PARAMETERS)),
            float(_ln_mean(ln_own - ln_common, 0)),
        )

    def warn(self, items: Sequence[str]) -> None:
        """Warn of items of noise beside others: further classes may be found in them."""
        noise = self.log_bayes_factors < _CLEAR
        if self.log_own < _CLEAR or not 0 < noise.sum() < len(items):
            return
        names = [item for item, is_noise in zip(items, noise, strict=True) if is_noise]
        more = ", ..." if len(names) > _MOST_NAMED else ""
        warn(
            f"{len(names)} of {counted(len(items), 'item')} hardly tell the classes apart "
            f"({', '.join(names[:_MOST_NAMED])}{more}), and items clearly differ in the "
            f"concentration of their answers (ln of the odds {self.log_own:.0f}), which is one for "
            "all in this prior: the classes may be too many. Choose again without these items; "
            "item_discrimination() shows all",
            DataWarning,
        )


def _ln_mean(values: Floats, axis: int) -> Floats:
    found: Floats = special.logsumexp(values, axis=axis) - np.log(values.shape[axis])
    return found
