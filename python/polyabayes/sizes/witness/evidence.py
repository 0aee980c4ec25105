"""Scores by evidence: an allocation model with unknown sizes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from polyabayes._support import checks
from polyabayes.allocation.layout import lay_out
from polyabayes.allocation.model import AllocationModel
from polyabayes.allocation.options import METHODS, Options
from polyabayes.data.tensors.tensor import CountTensor
from polyabayes.exceptions import InvalidArgumentError
from polyabayes.sizes.evidences import identity_of
from polyabayes.sizes.scores import ROUNDING, Score, Sizes
from polyabayes.sizes.witness.adapters import FunctionScorer, check_names


@dataclass(frozen=True, eq=False)
class EvidenceOf:
    """Ln of the evidence of a tensor, as a function of the unknown sizes of a model."""

    model: AllocationModel
    tensor: CountTensor
    options: dict[str, Any]

    def __call__(self, *sizes: int) -> Score:
        """The value with its error; degrees of freedom if the error is from replicates."""
        found = self.sized(sizes).log_evidence(self.tensor, **self.options)
        if not found.n_replicates:
            return Score(found.value)
        return Score(found.value, found.std_error, max(found.n_free, 1))

    def sized(self, sizes: Sizes) -> AllocationModel:
        """The model of these sizes."""
        return self.model.with_sizes(**dict(zip(self.model.unknown_sizes, sizes, strict=True)))


# Arguments of log_evidence that the search sets or does not use.
_OWN = ("self", "data", "observed", "max_total", "random_state", "options")


class EvidenceScorer(FunctionScorer):
    """An allocation model whose unknown sizes are searched.

    Unknown sizes are the variables of the search, in their order; `first` are sizes for a check
    that model and data fit.
    """

    def __init__(
        self,
        model: AllocationModel,
        data: Any,
        first: Sizes,
        options: Mapping[str, Any],
        seed: int,
        predictive: Callable[..., Any] | None,
    ) -> None:
        if len(model.unknown_sizes) != len(first):
            unknown = ", ".join(model.unknown_sizes) or "none"
            raise InvalidArgumentError(
                f"prior is of {len(first)} sizes, but the unknown sizes of the model are "
                f"{unknown}; give a prior of each, such as priors.Product"
            )
        if data is None:
            raise InvalidArgumentError("X is missing: an allocation model needs counts")
        check_names("scoring_options", options, AllocationModel.log_evidence, _OWN, Options.names())
        method = checks.choice("method", options.get("method", "auto"), tuple(METHODS))
        self._evidence = EvidenceOf(model, data, {**options, "random_state": seed})
        tensor = lay_out(self._evidence.sized(first), data).tensor
        self._evidence = EvidenceOf(model, tensor, self._evidence.options)
        super().__init__(self._evidence, predictive)
        self.is_lower_bound = METHODS[method].is_lower_bound

    def model(self, sizes: Sizes) -> AllocationModel:
        """The model of these sizes."""
        return self._evidence.sized(sizes)

    def log_ceiling(self) -> float:
        """Ln of the probability of the tensor, given its total, by its own frequencies.

        Given the total and the observed axes of each token, the evidence of every network is an
        average of products of multinomial distributions, one for each set of observed axes.
        """
        tensor = self._evidence.tensor
        _, patterns = np.unique(tensor.coordinates < 0, axis=0, return_inverse=True)
        counts = tensor.counts.astype(np.float64)
        totals = np.bincount(patterns.ravel(), counts)
        ways = special.gammaln(totals + 1.0).sum() - special.gammaln(counts + 1.0).sum()
        shares = float((counts * np.log(counts / totals[patterns.ravel()])).sum())
        room = ROUNDING * (abs(shares) + 2.0 * float(special.gammaln(totals + 1.0).sum()))
        return min(float(ways) + shares + room, 0.0)

    def identity(self) -> dict[str, Any]:
        """Model, data and options of the evidence."""
        model, tensor, options = self._evidence.model, self._evidence.tensor, self._evidence.options
        identity = identity_of(model, tensor, options)
        told = {"concentration": model.concentration, "scoring_options": identity.pop("options")}
        return {**identity, **told}
