"""Fitted models whose document priors may depend on covariates."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from polyabayes._support import checks
from polyabayes.data.corpus import Corpus
from polyabayes.exceptions import InvalidArgumentError, argument
from polyabayes.models.fitted.covariates import Design
from polyabayes.models.fitted.fitted_model import FittedModel
from polyabayes.models.fitted.stored_model import StoredModel
from polyabayes.scale.shards import Shards

# Bounds of a pseudo-count in the compiled core.
_RANGE = (1e-100, 1e100)


class CovariateModel(FittedModel):
    """Base class of the topic models; not made directly."""

    formula: str | None

    covariate_names_: NDArray[np.object_]
    coefficients_: NDArray[np.float64]
    coefficient_draws_: NDArray[np.float64]
    # Standardised covariates of the training documents, available to callbacks.
    _rows: NDArray[np.float64]
    _design: Design

    def _learn_design(
        self, documents: Corpus | Shards, covariates: Any
    ) -> tuple[Design | None, NDArray[np.float64]]:
        """Learn the design of covariates; also returns the standardised rows of the documents."""
        name = "formula" if covariates is None else "covariates"
        if covariates is None and self.formula is not None:
            covariates = documents.metadata if isinstance(documents, Corpus) else ()
            if covariates is None:
                raise InvalidArgumentError(
                    f"{argument('formula')} needs columns: give {argument('covariates')}, or "
                    "documents with metadata, by corpus.with_metadata(...)"
                )
        if covariates is None:
            return None, np.empty((documents.n_documents, 0))
        if isinstance(documents, Shards):
            raise InvalidArgumentError(
                f"{argument(name)}: documents with covariates must be in memory; give a Corpus"
            )
        self._check_covariates(name)
        checks.row_names("covariates", covariates, getattr(documents, "ids", None))
        design, rows = Design.learn(covariates, self.formula, documents.n_documents)
        return design, design.standardised(rows)

    def _expected_sizes(self) -> NDArray[np.float64]:
        """Expected weight of each topic per unit of its prior parameter."""
        return np.ones(len(self.components_))

    def _check_covariates(self, name: str) -> None:
        """Refuse covariates if the prior cannot depend on them."""

    def _take_design(self, design: Design | None) -> None:
        """Store the design of covariates in place of an earlier one."""
        for name in ("_design", "covariate_names_", "coefficients_", "coefficient_draws_"):
            self.__dict__.pop(name, None)
        if design is not None:
            self._design = design
            self.covariate_names_ = np.array(design.names, dtype=object)

    def _priors_of(self, documents: Corpus | Shards, covariates: Any) -> NDArray[np.float64] | None:
        if not hasattr(self, "_design"):
            return super()._priors_of(documents, covariates)
        if covariates is None and self._design.columns is not None:
            covariates = getattr(documents, "metadata", None)
        if covariates is None:
            raise InvalidArgumentError(
                f"{argument('covariates')}: the prior of this {type(self).__name__} depends on "
                "covariates; give those of the documents, a row for each"
                + (
                    ", or documents with metadata"
                    if self._design.columns is not None
                    else "; a model trained with a DataFrame takes them from the metadata"
                )
            )
        checks.row_names("covariates", covariates, getattr(documents, "ids", None))
        rows = self._design.rows(covariates, documents.n_documents)
        return pseudo_counts(rows @ self.coefficients_.T)

    def _state_priors(
        self, shared: NDArray[np.float64], others: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Document priors in a state; `others` are lambda and sigma^2, if any."""
        if not hasattr(self, "_design"):
            return shared
        coefficients = others[:-1].reshape(len(shared), -1)
        return pseudo_counts(coefficients[:, 0] + self._rows @ coefficients[:, 1:].T)

    def _take_coefficients(self, means: NDArray[np.float64], draws: NDArray[np.float64]) -> None:
        shape = len(self.components_), len(self._design.names)
        self.coefficient_draws_ = self._design.coefficients(draws.reshape(-1, *shape))
        if len(self.coefficient_draws_):
            self.coefficients_ = self.coefficient_draws_.mean(axis=0)
        else:
            self.coefficients_ = self._design.coefficients(means.reshape(shape))

    def _to_store(self) -> StoredModel:
        stored = super()._to_store()
        if not hasattr(self, "_design"):
            return stored
        return stored._replace(scalars={**stored.scalars, "design": self._design.to_json()})


def pseudo_counts(predicted: NDArray[np.float64]) -> NDArray[np.float64]:
    """Exp of the linear predictor, clipped to the range of prior parameters."""
    # Clipped twice, since exp(ln bound) may exceed the bound by rounding.
    found: NDArray[np.float64] = np.exp(np.clip(predicted, *np.log(_RANGE))).clip(*_RANGE)
    return found
