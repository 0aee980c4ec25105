"""Results of a search: tables, bounds and predictions."""

from __future__ import annotations

from typing import Any

from sklearn.base import BaseEstimator

from polyabayes._support.results import ResultTable
from polyabayes.allocation.model import AllocationModel
from polyabayes.data.corpus import as_corpus
from polyabayes.exceptions import NotFittedError
from polyabayes.sizes.scores import Sizes, plain
from polyabayes.sizes.witness.adapters import NestedEstimator, Scorer
from polyabayes.sizes.witness.results import (
    PredictiveBounds,
    best_sizes,
    bounds_table,
    posterior_table,
    predictive_bounds,
    size_names,
    unexplored_posterior,
)
from polyabayes.sizes.witness.search import Search, SearchStep
from polyabayes.sizes.witness.sources import is_estimator, log_multinomial_ceiling


class SearchResults(BaseEstimator):  # type: ignore[misc]
    """The fitted attributes and predictions of :class:`WitnessSearch`."""

    estimator: Any
    bound: str
    upper: Any
    _search: Search
    _scorer: Scorer

    @property
    def n_steps_(self) -> int:
        """Number of steps."""
        return len(self._fitted().records)

    @property
    def size_names_(self) -> tuple[str, ...]:
        """Names of the columns of sizes; names of nodes, if a model has several unknown sizes."""
        nodes = self.estimator.unknown_sizes if isinstance(self.estimator, AllocationModel) else ()
        return size_names(self._fitted().prior.n_variables, nodes)

    @property
    def trace_(self) -> list[SearchStep]:
        """The witness set after every step."""
        return list(self._fitted().steps)

    @property
    def log_ceiling_(self) -> float:
        """Ln U."""
        return self._fitted().rules.log_ceiling

    @property
    def holds_(self) -> dict[str, bool]:
        """Which bounds are valid: all, except with lower bounds as scores or ``bound="paper"``."""
        rules = self._fitted().rules
        exact = not self._scorer.is_lower_bound
        predictive = exact and rules.bound != "paper"
        return {"lower": True, "upper": exact, "posterior": exact, "predictive": predictive}

    @property
    def bounds_(self) -> ResultTable:
        """Table of bounds, one row per step."""
        return bounds_table(self._fitted(), self.size_names_)

    @property
    def posterior_bounds_(self) -> ResultTable:
        """Bounds of p(sizes | y) for every scored configuration, and their logs.

        The lower bound takes the configuration's own score at its lower bound, and all others,
        including unexplored ones, at their upper bounds.
        """
        return posterior_table(self._fitted(), self.size_names_)

    @property
    def unexplored_posterior_(self) -> tuple[float, float]:
        """Bounds of the posterior probability of all sizes without a score."""
        return unexplored_posterior(self._fitted())

    @property
    def best_(self) -> int | Sizes:
        """The size (a tuple for several) with the largest prior mass times score."""
        return plain(best_sizes(self._fitted()))

    def model(self, *sizes: int) -> Any:
        """The trained model of an explored size; default: of ``best_``.

        It has fewer components if no model of this size scored higher than a smaller model. An
        allocation model has its sizes filled in.

        Parameters
        ----------
        *sizes : int
            The size or sizes.

        Returns
        -------
        estimator or AllocationModel

        Raises
        ------
        InvalidArgumentError, NotFittedError
            If there is no model of this size.

        Examples
        --------
        >>> nmf = pb.AllocationModel.nmf(None)
        >>> search = pb.WitnessSearch(nmf, pb.priors.Uniform(1, 3), max_steps=3)
        >>> search.fit([[4, 3, 0], [0, 0, 3], [0, 0, 3]]).model(2)
        <AllocationModel: topic -> doc, word; topic 2; concentration 1>
        """
        done = self._fitted()
        return self._scorer.model(sizes or best_sizes(done))

    def score(self, X: Any, y: Any = None) -> float:  # noqa: ARG002
        """Log probability of new documents, averaged over the explored sizes by their posterior.

        This is the predictor N / F of Chiang & Poole. :meth:`predictive_bounds` includes the
        unexplored sizes, and also has the single best size.

        Parameters
        ----------
        X : documents
            New documents; for a callable score, the argument of `predictive`.
        y : ignored
            Present for scikit-learn.

        Returns
        -------
        float
            Log probability in nats per token for an estimator; in nats for a callable score or an
            allocation model.

        Raises
        ------
        InvalidArgumentError, InvalidTypeError, NotFittedError, ScoreError
            If the search cannot predict, or a prediction fails.

        References
        ----------
        M. Chiang and D. Poole. A search algorithm for latent variable models with unbounded
        domains.

        Examples
        --------
        >>> search = pb.WitnessSearch(
        ...     lambda k: -2.0, pb.priors.Uniform(1, 2), predictive=lambda documents, k: -1.0 * k
        ... ).fit()
        >>> round(search.score([[1]]), 4)  # ln of the mean of 1/e and 1/e^2
        -1.3799
        """
        average = self.predictive_bounds(X).average
        is_trained = isinstance(self._scorer, NestedEstimator)
        return average / as_corpus(X, "X").n_tokens if is_trained else average

    def predictive_bounds(self, X: Any) -> PredictiveBounds:
        """Bounds of ln p(X | y), averaged over sizes by their posterior.

        With N = sum over explored sizes of p(s) p(y|s) p(X|s, y): N / (F + U H) <= p(X|y) <=
        (N + U' U H) / (F + U H), where U' is the multinomial ceiling of X, or 1. Errors of scores
        and predictions are included. It needs a score of X for every explored size.

        Parameters
        ----------
        X : documents
            New documents; for a callable score, the argument of `predictive`.

        Returns
        -------
        PredictiveBounds

        Raises
        ------
        InvalidArgumentError, InvalidTypeError, NotFittedError, ScoreError
            If the search cannot predict, or a prediction fails.

        References
        ----------
        M. Chiang and D. Poole. A search algorithm for latent variable models with unbounded
        domains.

        Examples
        --------
        >>> search = pb.WitnessSearch(
        ...     lambda k: -10.0 - 2.0 / k,
        ...     pb.priors.Uniform(1, 3),
        ...     predictive=lambda documents, k: -1.0 - 0.5 / k,
        ... ).fit()
        >>> found = search.predictive_bounds([[1]])
        >>> -1.5 < found.lower <= found.upper < -1.1
        True
        """
        done, log_ceiling, documents = self._fitted(), 0.0, X
        if isinstance(self._scorer, NestedEstimator):
            documents = as_corpus(X, "X")
            if self._upper() == "multinomial":
                log_ceiling = log_multinomial_ceiling(documents)
        predictions = {
            record.sizes: self._scorer.predict(record.sizes, documents)
            for record in done.records
            if record.score is not None
        }
        return predictive_bounds(done, predictions, log_ceiling)

    def _fitted(self) -> Search:
        if not hasattr(self, "_search"):
            raise NotFittedError("This WitnessSearch instance is not fitted yet: call fit")
        return self._search

    def _upper(self) -> Any:
        if self.upper is not None:
            return self.upper
        known = is_estimator(self.estimator) or isinstance(self.estimator, AllocationModel)
        return "multinomial" if known and self.bound != "paper" else "vacuous"
