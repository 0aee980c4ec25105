"""Results of a search: tables, bounds, and predictions averaged over sizes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from polyabayes._support.arrays import Floats, Integers
from polyabayes._support.docs import shared_docs
from polyabayes._support.log_space import log_cumulative_sum, log_sum
from polyabayes._support.results import Record, ResultTable
from polyabayes.allocation.model import AllocationModel
from polyabayes.data.corpus import as_corpus
from polyabayes.exceptions import NotFittedError, ScoreError
from polyabayes.sizes.priors import Mixture
from polyabayes.sizes.scores import Score, Sizes, interval, named, plain
from polyabayes.sizes.witness.adapters import (
    NestedEstimator,
    Scorer,
    is_estimator,
    log_multinomial_ceiling,
)
from polyabayes.sizes.witness.search import (
    Search,
    SearchStep,
    Survey,
    points,
    rest_bounds,
    rest_weights,
)

# Columns of the tables, besides the sizes.
_OF_STEPS = (
    *("log_score", "std_error", "log_prior", "log_f", "log_h", "lower", "upper"),
    *("witness", "n_witnesses", "seconds", "failure"),
)
_OF_POSTERIORS = ("lower", "upper", "log_lower", "log_upper")


@dataclass(frozen=True, repr=False, eq=False)
class PredictiveBounds(Record):
    """Bounds of ln p(new documents | documents), averaged over sizes, in nats.

    Attributes
    ----------
    lower, upper : float
        The bounds.
    average : float
        Ln of the posterior mean of the predictions over explored sizes, N / F; between the bounds.
    best : float
        Ln p of the new documents under the single best model.
    best_std_error : float
        Standard error of `best`.

    Examples
    --------
    >>> search = pb.WitnessSearch(
    ...     lambda k: -1.0 / k, pb.priors.Uniform(1, 2), predictive=lambda documents, k: -0.5
    ... ).fit()
    >>> round(search.predictive_bounds([[1]]).best, 6)
    -0.5
    """

    lower: float
    upper: float
    average: float
    best: float
    best_std_error: float


@shared_docs
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
        """Names of the columns of sizes; names of nodes, if a model has several unknown sizes.

        The name of another column is not used for a node.
        """
        n_variables = self._fitted().prior.n_variables
        if n_variables == 1:
            return ("size",)
        if isinstance(self.estimator, AllocationModel):
            taken = {*_OF_STEPS, *_OF_POSTERIORS, "prior"}
            nodes = self.estimator.unknown_sizes
            return tuple(f"size_{node}" if node in taken else node for node in nodes)
        return tuple(f"size_{number}" for number in range(1, n_variables + 1))

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
        done, rows = self._fitted(), []
        for record, step, bounds in zip(done.records, done.steps, done.bounds, strict=True):
            value, std_error, _ = record.score or Score(np.nan, np.nan)
            log_prior = done.prior.log_box(record.sizes, record.sizes)
            found = (value, std_error, log_prior, bounds.log_f, bounds.log_h)
            witness = None if step.min_witness is None else plain(step.min_witness)
            tried = (witness, len(step.witnesses), record.seconds, record.failure)
            rows.append([*record.sizes, *found, bounds.lower, bounds.upper, *tried])
        return ResultTable([*self.size_names_, *_OF_STEPS], rows)

    @property
    def posterior_bounds_(self) -> ResultTable:
        """Bounds of p(sizes | y) for every scored configuration, and their logs.

        The lower bound takes the configuration's own score at its lower bound, and all others,
        including unexplored ones, at their upper bounds.
        """
        done = self._fitted()
        explored = sorted(done.explored)
        lower, upper = _weights(done.survey, explored)
        log_lower, log_upper = share_bounds(lower, upper, rest_bounds(done.survey, done.rules))
        columns = (np.exp(log_lower), np.exp(log_upper), log_lower, log_upper)
        pairs = zip(explored, np.transpose(columns).tolist(), strict=True)
        rows = [[*sizes, *numbers] for sizes, numbers in pairs]
        return ResultTable([*self.size_names_, *_OF_POSTERIORS], rows)

    @property
    def unexplored_posterior_(self) -> tuple[float, float]:
        """Bounds of the posterior probability of all sizes without a score."""
        done = self._fitted()
        lower, upper = _weights(done.survey, done.explored)
        least, most = rest_bounds(done.survey, done.rules)
        return _share(least, log_sum(upper)), _share(most, log_sum(lower))

    @property
    def best_(self) -> int | Sizes:
        """The size (a tuple for several) with the largest prior mass times score."""
        return plain(_best_sizes(self._fitted()))

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

        {raises: bad search}

        Examples
        --------
        >>> nmf = pb.AllocationModel.nmf(None)
        >>> search = pb.WitnessSearch(nmf, pb.priors.Uniform(1, 3), max_steps=3)
        >>> search.fit([[4, 3, 0], [0, 0, 3], [0, 0, 3]]).model(2)
        <AllocationModel: topic -> doc, word; topic 2; concentration 1>
        """
        done = self._fitted()
        return self._scorer.model(sizes or _best_sizes(done))

    def score(self, X: Any, y: Any = None) -> float:  # noqa: ARG002
        """Log probability of new documents, averaged over the explored sizes by their posterior.

        This is the predictor N / F of Chiang & Poole. :meth:`predictive_bounds` includes the
        unexplored sizes, and also has the single best size.

        Parameters
        ----------
        X : documents
            New documents; for a callable score, the argument of `predictive`.
        {y}

        Returns
        -------
        float
            Log probability in nats per token for an estimator; in nats for a callable score or an
            allocation model.

        {raises: bad search}

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

        {raises: bad search}

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
        predictions = {sizes: self._scorer.predict(sizes, documents) for sizes in done.explored}
        return _predictive_bounds(done, predictions, log_ceiling)

    def _fitted(self) -> Search:
        if not hasattr(self, "_search"):
            raise NotFittedError("This WitnessSearch instance is not fitted yet: call fit")
        return self._search

    def _upper(self) -> Any:
        if self.upper is not None:
            return self.upper
        known = is_estimator(self.estimator) or isinstance(self.estimator, AllocationModel)
        return "multinomial" if known and self.bound != "paper" else "vacuous"


def _best_sizes(search: Search) -> Sizes:
    """The configuration with the largest prior mass times score; ties go to the smallest."""
    worth = _log_joint(search)
    if not worth:
        raise ScoreError("no configuration has a score")
    return max(sorted(worth), key=worth.__getitem__)


def _log_joint(search: Search) -> dict[Sizes, float]:
    """Ln of prior mass times score of every scored configuration."""
    return {
        record.sizes: search.prior.log_box(record.sizes, record.sizes) + record.score.value
        for record in search.records
        if record.score is not None
    }


def _predictive_bounds(
    search: Search, predictions: dict[Sizes, Score], log_ceiling: float
) -> PredictiveBounds:
    """Bounds of the average of predictions over all sizes.

    `log_ceiling` is an upper bound of predictions for all sizes.
    """
    explored = list(predictions)
    alpha = 1.0 - search.rules.level
    noisy = [sizes for sizes in explored if predictions[sizes].std_error > 0]
    survey = search.survey
    if noisy and any(record.score and record.score.std_error for record in search.records):
        # Half of the failure probability goes to the scores, half to the predictions.
        alpha /= 2
        survey = search.survey_at(1.0 - alpha)
    share = alpha / max(len(noisy), 1)
    intervals = np.array([interval(predictions[sizes], share) for sizes in explored])
    for sizes, value in zip(explored, intervals[:, 0].tolist(), strict=True):
        if value > log_ceiling:
            raise ScoreError(
                f"the prediction of {named(sizes)} is at least {value}, above the ceiling "
                f"{log_ceiling}: predictions must be logs of probabilities, not of densities"
            )
    values = np.minimum(intervals, log_ceiling)
    weights = _weights(survey, explored)
    rest = rest_bounds(survey, search.rules)
    if search.rules.bound == "paper":
        witness = search.steps[-1].min_witness
        of_witness = 0.0 if witness is None else float(values[explored.index(witness), 1])
        bounds = _paper_bounds(values, weights, rest, of_witness)
    else:
        bounds = mean_bounds(
            np.append(values[:, 0], -np.inf),
            np.append(values[:, 1], log_ceiling),
            np.append(weights[0], rest[0]),
            np.append(weights[1], rest[1]),
        )
    best = predictions[_best_sizes(search)]
    # Ln N / F, from the estimated scores and predictions.
    joint = _log_joint(search)
    of_joint = np.array([*joint.values()])
    new = of_joint + [predictions[sizes].value for sizes in joint]
    average = log_sum(new) - log_sum(of_joint)
    return PredictiveBounds(*bounds, average, best.value, best.std_error)


def component_bounds(search: Search, prior: Mixture) -> list[tuple[float, float]]:
    """Bounds of ln of the posterior probability of each component of the prior.

    It is the posterior mean of p(component | sizes) over the sizes. In a cell with many sizes, only
    the bounds 0 and 1 of this probability are known.
    """
    _best_sizes(search)  # Raises if nothing is scored.
    survey = search.survey
    lower, upper = (survey.log_mass + side for side in (survey.lower, survey.upper))
    lower[survey.open], upper[survey.open] = rest_weights(survey, search.rules)
    is_point = np.zeros(lower.shape, dtype=bool)
    is_point[points(lower.ndim)] = True
    cells = survey.log_mass > -np.inf
    tops = tuple(low + n - 2 for low, n in zip(survey.first, lower.shape, strict=True))
    found = []
    for log_weight, component in zip(prior.log_weights, prior.priors, strict=True):
        share = log_weight + component.log_masses(tops)[cells] - survey.log_mass[cells]
        low, high = (np.where(is_point[cells], share, end) for end in (-np.inf, 0.0))
        found.append(mean_bounds(low, high, lower[cells], upper[cells]))
    return found


def _paper_bounds(
    values: Floats, weights: tuple[Floats, Floats], rest: tuple[float, float], of_witness: float
) -> tuple[float, float]:
    """N / (F + U H), and (N + p(y'|w) U H) / (F + p(y|w) H).

    The second holds if every unexplored configuration predicts as the min-witness w does.
    """
    least, most = (log_sum(np.append(weights[ix], rest[ix])) for ix in (0, 1))
    lower = log_sum(weights[0] + values[:, 0]) - most
    return lower, log_sum(np.append(weights[1] + values[:, 1], rest[1] + of_witness)) - least


def _weights(survey: Survey, explored: list[Sizes]) -> tuple[Floats, Floats]:
    """Bounds of ln p(s) p(y | s)."""
    if not explored:
        raise ScoreError("no configuration has a score")
    cells = tuple(np.array([survey.cell(sizes) for sizes in explored]).T)
    log_mass = survey.log_mass[cells]
    return log_mass + survey.lower[cells], log_mass + survey.upper[cells]


def _share(part: float, others: float) -> float:
    return float(np.exp(part - np.logaddexp(part, others))) if part > -np.inf else 0.0


def share_bounds(lower: Floats, upper: Floats, rest: tuple[float, float]) -> tuple[Floats, Floats]:
    """Bounds of ln of each weight's share.

    `rest` bounds the log of one more weight, without a share in the result. A share is smallest if
    its weight is smallest and all others are largest.
    """
    return (
        _shares(lower, _of_others(np.append(upper, rest[1]))),
        _shares(upper, _of_others(np.append(lower, rest[0]))),
    )


def _of_others(logs: Floats) -> Floats:
    """Ln of the sum of all but one, for each but the last, without subtraction."""
    before = log_cumulative_sum(logs)
    after = log_cumulative_sum(logs[::-1])[::-1]
    return np.asarray(np.logaddexp(before[:-2], after[1:-1]))


def _shares(weights: Floats, others: Floats) -> Floats:
    shares = np.full(weights.shape, -np.inf)
    known = weights > -np.inf
    shares[known] = weights[known] - np.logaddexp(weights[known], others[known])
    return shares


def mean_bounds(
    low_values: Floats, high_values: Floats, low_weights: Floats, high_weights: Floats
) -> tuple[float, float]:
    """Bounds of ln of a weighted mean, all in logs, each array of shape (n,).

    The mean is smallest if weights are largest for values below some threshold and smallest above
    it: every threshold is tried. NaN if no weight can be positive.
    """
    upwards, downwards = np.argsort(low_values), np.argsort(-high_values)
    return (
        min(_threshold_means(low_values, low_weights, high_weights, upwards), default=np.nan),
        max(_threshold_means(high_values, low_weights, high_weights, downwards), default=np.nan),
    )


def _threshold_means(
    values: Floats, low_weights: Floats, high_weights: Floats, order: Integers
) -> list[float]:
    """Means with the first 0, 1, ..., n values in this order at their high weights."""
    values, low, high = values[order], low_weights[order], high_weights[order]

    def sums(low_terms: Floats, high_terms: Floats) -> Floats:
        rest = log_cumulative_sum(low_terms[::-1])[::-1]
        return np.asarray(np.logaddexp(log_cumulative_sum(high_terms), rest))

    totals = sums(low, high)
    defined = totals > -np.inf
    means = sums(low + values, high + values)[defined] - totals[defined]
    return [float(mean) for mean in means]
