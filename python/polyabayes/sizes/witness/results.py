"""Results of a search: tables of bounds, and predictions averaged over sizes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from polyabayes._support.log_space import log_sum
from polyabayes._support.results import Record, ResultTable
from polyabayes.exceptions import ScoreError
from polyabayes.sizes.priors import Mixture
from polyabayes.sizes.scores import Score, Sizes, interval, named, plain
from polyabayes.sizes.witness.averages import mean_bounds, share_bounds
from polyabayes.sizes.witness.search import Search, Survey, points, rest_bounds, rest_weights

Vector = NDArray[np.float64]


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


_OF_STEPS = (
    *("log_score", "std_error", "log_prior", "log_f", "log_h", "lower", "upper"),
    *("witness", "n_witnesses", "seconds", "failure"),
)
_OF_POSTERIORS = ("lower", "upper", "log_lower", "log_upper")


def size_names(n_variables: int, nodes: Sequence[str] = ()) -> tuple[str, ...]:
    """Names of the columns of sizes: names of nodes, if any.

    The name of another column is not used for a node.
    """
    if n_variables == 1:
        return ("size",)
    taken = {*_OF_STEPS, *_OF_POSTERIORS, "prior"}
    numbers = map(str, range(1, n_variables + 1))
    return tuple(
        f"size_{name}" if name in taken or not nodes else name for name in nodes or numbers
    )


def bounds_table(search: Search, names: Sequence[str]) -> ResultTable:
    """Table of bounds, one row per step."""
    rows = []
    for record, step, bounds in zip(search.records, search.steps, search.bounds, strict=True):
        value, std_error, _ = record.score or Score(np.nan, np.nan)
        witness = None if step.min_witness is None else plain(step.min_witness)
        log_prior = search.prior.log_box(record.sizes, tuple(map(float, record.sizes)))
        rows.append(
            [
                *record.sizes,
                value,
                std_error,
                log_prior,
                bounds.log_f,
                bounds.log_h,
                bounds.lower,
                bounds.upper,
                witness,
                len(step.witnesses),
                record.seconds,
                record.failure,
            ]
        )
    return ResultTable([*names, *_OF_STEPS], rows)


def posterior_table(search: Search, names: Sequence[str]) -> ResultTable:
    """Table of the posterior, one row per scored configuration, by size."""
    explored = sorted(record.sizes for record in search.records if record.score is not None)
    lower, upper = _weights(search.survey, explored)
    rest = rest_bounds(search.survey, search.rules)
    log_lower, log_upper = share_bounds(lower, upper, rest)
    columns = [np.exp(log_lower), np.exp(log_upper), log_lower, log_upper]
    rows = [
        [*sizes, *numbers]
        for sizes, *numbers in zip(explored, *(c.tolist() for c in columns), strict=True)
    ]
    return ResultTable([*names, *_OF_POSTERIORS], rows)


def best_sizes(search: Search) -> Sizes:
    """The configuration with the largest prior mass times score; ties go to the smallest."""
    worth = {
        record.sizes: search.prior.log_box(record.sizes, tuple(map(float, record.sizes)))
        + record.score.value
        for record in search.records
        if record.score is not None
    }
    if not worth:
        raise ScoreError("no configuration has a score")
    return max(sorted(worth), key=worth.__getitem__)


def predictive_bounds(
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
    intervals = np.array(
        [interval(predictions[sizes], alpha / max(len(noisy), 1)) for sizes in explored]
    )
    _refuse_above(log_ceiling, explored, intervals[:, 0])
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
    best = predictions[best_sizes(search)]
    average = _average(search, predictions)
    return PredictiveBounds(*bounds, average, best.value, best.std_error)


def component_bounds(search: Search, prior: Mixture) -> list[tuple[float, float]]:
    """Bounds of ln of the posterior probability of each component of the prior.

    It is the posterior mean of p(component | sizes) over the sizes. In a cell with many sizes, only
    the bounds 0 and 1 of this probability are known.
    """
    best_sizes(search)  # Raises if nothing is scored.
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


def _average(search: Search, predictions: dict[Sizes, Score]) -> float:
    """Ln N / F, from the estimated scores and predictions."""
    weights, values = [], []
    for record in search.records:
        if record.score is not None:
            log_mass = search.prior.log_box(record.sizes, record.sizes)
            weights.append(log_mass + record.score.value)
            values.append(predictions[record.sizes].value)
    return log_sum(np.add(weights, values)) - log_sum(np.array(weights))


def _paper_bounds(
    values: Vector, weights: tuple[Vector, Vector], rest: tuple[float, float], of_witness: float
) -> tuple[float, float]:
    """N / (F + U H), and (N + p(y'|w) U H) / (F + p(y|w) H).

    The second holds if every unexplored configuration predicts as the min-witness w does.
    """
    least, most = (log_sum(np.append(weights[ix], rest[ix])) for ix in (0, 1))
    lower = log_sum(weights[0] + values[:, 0]) - most
    return lower, log_sum(np.append(weights[1] + values[:, 1], rest[1] + of_witness)) - least


def _weights(survey: Survey, explored: list[Sizes]) -> tuple[Vector, Vector]:
    """Bounds of ln p(s) p(y | s)."""
    if not explored:
        raise ScoreError("no configuration has a score")
    cells = tuple(np.array([survey.cell(sizes) for sizes in explored]).T)
    log_mass = survey.log_mass[cells]
    return log_mass + survey.lower[cells], log_mass + survey.upper[cells]


def _refuse_above(log_ceiling: float, explored: list[Sizes], lower: Vector) -> None:
    for sizes, value in zip(explored, lower.tolist(), strict=True):
        if value > log_ceiling:
            raise ScoreError(
                f"the prediction of {named(sizes)} is at least {value}, above the ceiling "
                f"{log_ceiling}: predictions must be logs of probabilities, not of densities"
            )


def unexplored_posterior(search: Search) -> tuple[float, float]:
    """Bounds of the posterior probability of all unexplored sizes."""
    explored = [record.sizes for record in search.records if record.score is not None]
    lower, upper = _weights(search.survey, explored)
    least, most = rest_bounds(search.survey, search.rules)
    return _share(least, log_sum(upper)), _share(most, log_sum(lower))


def _share(part: float, others: float) -> float:
    return float(np.exp(part - np.logaddexp(part, others))) if part > -np.inf else 0.0
