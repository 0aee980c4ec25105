"""Topic models whose priors of documents depend on covariates."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from polyabayes._support.arrays import Floats
from polyabayes.data.corpus import Corpus
from polyabayes.data.naming import rows_by_name
from polyabayes.exceptions import InvalidArgumentError, argument
from polyabayes.models.fitted.covariates import Design, pseudo_counts
from polyabayes.models.fitted.stored_model import StoredModel
from polyabayes.models.latent_draws import LatentDraws
from polyabayes.scale.shards import Shards


class TopicCovariates(LatentDraws):
    """Base class of topic models that may have covariates."""

    covariate_names_: NDArray[np.object_]
    coefficients_: Floats
    coefficient_draws_: Floats
    # Standardised covariates of the training documents, available to callbacks.
    _rows: Floats
    _design: Design

    def _take_design(self, design: Design) -> None:
        self._design, self.covariate_names_ = design, np.array(design.names, dtype=object)

    def _priors_of(self, documents: Corpus | Shards, covariates: Any) -> Floats | None:
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
        covariates = rows_by_name("covariates", covariates, getattr(documents, "ids", None))
        rows = self._design.rows(covariates, documents.n_documents)
        return pseudo_counts(rows @ self.coefficients_.T)

    def _state_priors(self, shared: Floats, others: Floats) -> Floats:
        """Document priors in a state; `others` are lambda and sigma^2, if any."""
        if not hasattr(self, "_design"):
            return shared
        coefficients = others[:-1].reshape(len(shared), -1)
        return pseudo_counts(coefficients[:, 0] + self._rows @ coefficients[:, 1:].T)

    def _take_coefficients(self, means: Floats, draws: Floats) -> None:
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
        return stored._replace(scalars={**stored.scalars, "design": self._design._asdict()})
