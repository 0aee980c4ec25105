"""A stand-in for an estimator that trains many topics from fewer: it splits the first topic."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

import polyabayes as pb
from polyabayes.corpus import as_corpus


class NestedLda(pb.LatentDirichletAllocation):
    """LDA with the parameters that the witness search asks for."""

    def __init__(
        self,
        n_components: int = 10,
        *,
        doc_topic_prior: float = 0.5,
        fit_method: str = "gibbs",
        init: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.doc_topic_prior = doc_topic_prior
        self.fit_method = fit_method
        self.init = init
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: ARG002
        """Copy the topics of `init` and split the first; the likelihood stays what it was."""
        words = as_corpus(X).counts.toarray().sum(axis=0) + 1.0
        topics = np.empty((self.n_components, len(words)))
        topics[:] = words / words.sum()
        weights = np.full(self.n_components, self.doc_topic_prior / self.n_components)
        if self.init is not None:
            n_before = len(self.init.components_)
            topics[:n_before] = self.init.components_
        self._set_topic_word(topics, None, 0, normalised=True)
        self.doc_topic_prior_ = weights
        self.bound_ = -1000.0 - 50.0 / self.n_components
        return self
