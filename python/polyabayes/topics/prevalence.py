"""Topic prevalence by covariates: expected shares and their differences, with intervals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any, cast

import numpy as np

from polyabayes._support import checks
from polyabayes._support.arrays import Floats
from polyabayes._support.output.frames import DataFrame, data_frame
from polyabayes._support.output.tables import topic_columns
from polyabayes._support.posterior_draws import central_interval
from polyabayes._support.results import Result
from polyabayes._support.warnings import warn
from polyabayes.data.conversion.frames import frame_of
from polyabayes.data.corpus import Corpus
from polyabayes.exceptions import (
    InvalidArgumentError,
    InvalidTypeError,
    UnreliableErrorWarning,
    argument,
)
from polyabayes.models.fitted.covariate_tables import as_dates
from polyabayes.models.fitted.covariates import pseudo_counts
from polyabayes.models.fitted_topics import labels_of, names_of, top_words
from polyabayes.models.topic_model import TopicModel
from polyabayes.topics.groups import sampling_weights

# Most values of a numeric covariate shown one by one; most levels; steps of other covariates.
_FEW_VALUES, _MOST_LEVELS, _STEPS = 5, 12, 21
# Words of a topic in a table, and the usual level of intervals.
_WORDS, _LEVEL = 4, 0.95


@dataclass(frozen=True, repr=False, eq=False)
class TopicPrevalence(Result):
    """Posterior draws of topic prevalence at given covariates, or of differences.

    Attributes
    ----------
    draws : ndarray of shape (n_draws, n_rows, n_components)
        Values by draw of the coefficients, row of covariates and topic.
    rows : list of str
        Label of each row.
    event : {"prevalence", "difference"}
        Whether the draws are expected shares or differences of shares.
    level : float
        Posterior probability of the intervals.
    at : DataFrame or None
        The covariates of the rows, if they have names; of differences, those that both sides share.
    labels : list of str or None
        Name or words of each topic, for pictures.
    topics : list of str or None
        Names of the topics, if they have some, for tables.
    words : list of str or None
        The most probable words of each topic, for tables of differences.

    Examples
    --------
    >>> corpus = pb.Corpus([[4, 0], [3, 1], [0, 4], [1, 3]] * 5)
    >>> corpus = corpus.with_metadata({"year": [0, 0, 1, 1] * 5})
    >>> lda = pb.LatentDirichletAllocation(2, formula="~ year", max_iter=2000, random_state=0)
    >>> found = pb.topics.prevalence(lda.fit(corpus), at={"year": [0, 1]})
    >>> found.to_frame().columns.tolist()
    ['row', 'year', 'topic', 'mean', 'lower', 'upper']
    """

    draws: Floats
    rows: list[str]
    event: str
    level: float = _LEVEL
    at: DataFrame | None = None
    labels: list[str] | None = None
    topics: list[str] | None = None
    words: list[str] | None = None
    # Whether ``fit`` has warned that draws are too few for intervals of the usual level.
    _is_told: bool = False

    @property
    def mean(self) -> Floats:
        """Posterior means, shape (n_rows, n_components)."""
        return self.draws.mean(axis=0)

    def interval(self, level: float | None = None) -> Floats:
        """Posterior intervals from quantiles of the draws, widened for few draws.

        A new draw lies between the ends with probability `level`. Plain quantiles of m effective
        draws miss about 2 / m of probability. If there are too few draws, ``fit`` has warned, or
        this does, and says how much longer to train.

        Parameters
        ----------
        level : float, optional
            Posterior probability of the interval; default: the result's `level`.

        Returns
        -------
        ndarray of shape (2, n_rows, n_components)
            Lower and upper ends.

        {raises: bad level}

        Examples
        --------
        >>> corpus = pb.Corpus([[4, 0], [3, 1], [0, 4], [1, 3]] * 5)
        >>> lda = pb.LatentDirichletAllocation(2, max_iter=2000, random_state=0)
        >>> lda = lda.fit(corpus, covariates={"year": [0, 0, 1, 1] * 5})
        >>> found = pb.topics.prevalence(lda, at={"year": [0, 1]})
        >>> low, high = found.interval(0.5)
        >>> bool((low <= high).all())
        True
        """
        level = checks.share("level", self.level if level is None else level)
        ends, shortage = central_interval(self.draws, level)
        worst = float(shortage.max())
        if worst > 1 and not (self._is_told and level <= _LEVEL):
            warn(
                f"draws are too few for intervals of level {level:.4g}, which may be too narrow "
                f"({(shortage > 1).mean():.0%} of them): train with max_iter "
                f"{worst:.2g} times as large",
                UnreliableErrorWarning,
            )
        return ends

    def _columns(self) -> dict[str, Any]:
        ends = dict(zip(("lower", "upper"), self.interval(), strict=True))
        mean, rows = self.mean, {"row": np.array(self.rows, object)}
        found = topic_columns(rows, {"mean": mean, **ends}, self.topics)
        if self.event != "difference":
            at: Any = {} if self.at is None else self.at
            own = {name: np.repeat(at[name].to_numpy(), mean.shape[1]) for name in at}
            return {"row": found.pop("row"), **own, **found}
        if self.words is not None:
            found["words"] = np.tile(np.array(self.words, object), len(mean))
        # Topics of each contrast, the largest difference first.
        order = (
            np.argsort(-mean, axis=1, kind="stable") + np.arange(len(mean))[:, None] * mean.shape[1]
        )
        return {name: values[order.ravel()] for name, values in found.items()}

    def __repr__(self) -> str:
        n_draws, n_rows, n_topics = self.draws.shape
        return (
            f"<TopicPrevalence, {self.event}: {n_rows} rows, {n_topics} topics, {n_draws:,} draws>"
        )


def prevalence(
    model: TopicModel,
    at: Any = None,
    *,
    documents: Any = None,
    weights: Any = None,
    level: float = _LEVEL,
) -> TopicPrevalence:
    """Expected prevalence of topics at given covariates, with posterior intervals.

    For LDA, it is E[theta_k | x] = alpha_k(x) / sum_j alpha_j(x), with alpha(x) = exp(lambda x),
    for each draw of lambda from training; for gamma-Poisson models, the topic's share of the
    expected tokens. It describes new documents with these covariates. For the weights of given
    documents, see :func:`by_group`. A draw costs rows x topics x columns; with `documents`, times
    their number.

    Parameters
    ----------
    model : LatentDirichletAllocation or PoissonFactorAnalysis
        Trained with covariates.
    at : DataFrame, mapping or array of shape (n_rows, n_covariates), optional
        Covariates, as for ``fit``, with a row for each prevalence. A mapping of values is a grid:
        each value of a column with each of the others. With `documents`, some of the columns, or
        None.
    documents : Corpus or DataFrame, optional
        Documents with metadata, or the metadata. Prevalence is then the mean over the documents;
        each row of `at` replaces their values in its columns.
    weights : str or array of shape (n_documents,), optional
        Sampling weights of the documents, or the column with them: the mean is weighted.
    level : float, default=0.95
        Posterior probability of the intervals.

    Returns
    -------
    TopicPrevalence

    Raises
    ------
    InvalidArgumentError, InvalidTypeError
        If the model was not trained with covariates or has no draws, or `at` does not fit it.

    References
    ----------
    D. Mimno and A. McCallum (2008). Topic models conditioned on arbitrary features with
    Dirichlet-multinomial regression. UAI.

    Examples
    --------
    >>> corpus = pb.Corpus([[4, 0], [3, 1], [0, 4], [1, 3]] * 5)
    >>> corpus = corpus.with_metadata({"year": [0, 0, 1, 1] * 5})
    >>> lda = pb.LatentDirichletAllocation(2, formula="~ year", max_iter=2000, random_state=0)
    >>> found = pb.topics.prevalence(lda.fit(corpus), at={"year": [0, 1]})
    >>> found.mean.shape, found.mean.sum(axis=1).round(6).tolist()
    ((2, 2), [1.0, 1.0])
    """
    level = checks.share("level", level)
    draws, table = _draws(_checked(model), at, documents, weights)
    at = _named(model, table)
    return TopicPrevalence(draws, _labels(table), "prevalence", level, at, *_topics(model))


def contrast(
    model: TopicModel,
    a: Any,
    b: Any,
    *,
    documents: Any = None,
    weights: Any = None,
    level: float = _LEVEL,
) -> TopicPrevalence:
    """Difference of the expected prevalence at covariates `a` and `b`, with posterior intervals.

    Both use the same draws, so that common errors cancel. With `documents`, it is the average
    marginal effect: the mean difference over the documents between the values of `a` and `b`.

    Parameters
    ----------
    model : LatentDirichletAllocation or PoissonFactorAnalysis
        Trained with covariates.
    a, b : DataFrame, mapping or array of shape (n_rows, n_covariates)
        Covariates, as for :func:`prevalence`, with equally many rows.
    documents : Corpus or DataFrame, optional
        Documents over which the difference is averaged, as for :func:`prevalence`.
    weights : str or array of shape (n_documents,), optional
        Their sampling weights, as for :func:`prevalence`.
    level : float, default=0.95
        Posterior probability of the intervals.

    Returns
    -------
    TopicPrevalence
        Draws of the differences.

    Raises
    ------
    InvalidArgumentError, InvalidTypeError
        If the model was not trained with covariates, or `a` and `b` do not fit it or each other.

    References
    ----------
    D. Mimno and A. McCallum (2008). Topic models conditioned on arbitrary features with
    Dirichlet-multinomial regression. UAI.

    Examples
    --------
    >>> corpus = pb.Corpus([[4, 0], [3, 1], [0, 4], [1, 3]] * 5)
    >>> corpus = corpus.with_metadata({"year": [0, 0, 1, 1] * 5})
    >>> lda = pb.LatentDirichletAllocation(2, formula="~ year", max_iter=2000, random_state=0)
    >>> effect = pb.topics.contrast(lda.fit(corpus), {"year": 1}, {"year": 0})
    >>> effect.rows, bool(abs(effect.mean.sum()) < 1e-9)
    (['year=1 - year=0'], True)
    """
    level = checks.share("level", level)
    fitted = _checked(model)
    (first, one), (second, other) = (_draws(fitted, at, documents, weights) for at in (a, b))
    sides = _labels(one), _labels(other)
    if len(first[0]) != len(second[0]):
        raise InvalidArgumentError(
            f"{argument('a')} has {len(first[0])} rows, {argument('b')} {len(second[0])}: give as "
            "many"
        )
    labels = [f"{name} - {of_other}" for name, of_other in zip(*sides, strict=True)]
    shared, others = _named(fitted, one), _named(fitted, other)
    if shared is not None and others is not None:
        shared = shared[[x for x in shared if x in others and (shared[x] == others[x]).all()]]
    draws = first - second
    return TopicPrevalence(draws, labels, "difference", level, shared, *_topics(model))


def profiles(model: TopicModel, metadata: Any) -> list[tuple[str, Any, TopicPrevalence]]:
    """Prevalence along each covariate, with the others at their means or most frequent levels.

    Yields the name, the values of a continuous covariate or None, and the prevalences; nothing if
    the model has no columns of metadata or no draws.
    """
    design = getattr(model, "_design", None)
    if design is None or design.columns is None or not len(model.coefficient_draws_):
        return []
    coded = design.levels_of_columns()
    columns = {
        name: as_dates(metadata[name]) if name in design.dates else metadata[name]
        for name in design.columns
    }
    levels = {name: _levels(column, coded.get(name)) for name, column in columns.items()}
    usual = {name: x.mode()[0] if name in coded else x.mean() for name, x in columns.items()}
    found = []
    for name, column in columns.items():
        along, values = None, levels[name]
        if values is None:
            steps = np.linspace(0.0, 1.0, _STEPS)
            values = [column.min() + (column.max() - column.min()) * step for step in steps]
            along = np.array(values)
        draws, table = _draws(model, {**usual, name: values}, None)
        rows = [_text(value) for value in values]
        found.append((name, along, TopicPrevalence(draws, rows, "prevalence", at=table)))
    return found


def _levels(column: Any, coded: list[Any] | None) -> list[Any] | None:
    """Frequent values of a covariate, to show one by one; None if it is continuous."""
    frequent = column.value_counts().index
    if coded is not None:
        return [level for level in coded if level in frequent[:_MOST_LEVELS]]
    return sorted(frequent.tolist()) if len(frequent) <= _FEW_VALUES else None


def _checked(model: Any) -> TopicModel:
    if not isinstance(model, TopicModel):
        raise InvalidTypeError(f"model must be a topic model, got {type(model).__name__}")
    if not hasattr(model, "coefficient_draws_"):
        raise InvalidArgumentError(
            f"this {type(model).__name__} was not trained with covariates: give it a formula, or "
            "fit(X, covariates=...)"
        )
    if not len(model.coefficient_draws_):
        raise InvalidArgumentError(
            f"this {type(model).__name__} kept no sweep, so there are no draws: train it longer"
        )
    return model


def _draws(model: TopicModel, at: Any, documents: Any, weights: Any = None) -> tuple[Floats, Any]:
    """Prevalences of shape (n_draws, n_rows, n_components), and the covariates of the rows."""
    if documents is None:
        if at is None:
            raise InvalidArgumentError(f"give {argument('at')}, or {argument('documents')}")
        if weights is not None:
            raise InvalidArgumentError(f"{argument('weights')} are of {argument('documents')}")
        table = _table(at)
        return _shares(model, model._design.rows(table)), table
    frame = documents.metadata if isinstance(documents, Corpus) else frame_of(documents)
    if frame is None or not hasattr(frame, "columns"):
        raise InvalidArgumentError(
            f"{argument('documents')} have no metadata: give a Corpus that has, or a DataFrame"
        )
    counted = sampling_weights(frame, weights)
    if at is None:
        return _mean_shares(model, frame, counted), None
    table = _table(at)
    if not hasattr(table, "columns"):
        raise InvalidTypeError(f"{argument('at')} must name columns where documents are given")
    unknown = [name for name in table.columns if name not in frame.columns]
    if unknown:
        raise InvalidArgumentError(
            f"{argument('at')} has the column {unknown[0]!r}, which the documents do not have"
        )
    rows = [_mean_shares(model, frame.assign(**row), counted) for row in table.to_dict("records")]
    return np.concatenate(rows, axis=1), table


def _mean_shares(model: TopicModel, frame: Any, counted: Floats) -> Floats:
    """Mean over documents for each draw, of one row; draws are processed in turn to save memory."""
    rows, places = np.unique(model._design.rows(frame), axis=0, return_inverse=True)
    weights = np.bincount(places.ravel(), counted)
    draws = model.coefficient_draws_
    means = [weights @ _shares(model, rows, own[None])[0] / weights.sum() for own in draws]
    return np.stack(means)[:, None]


def _shares(model: TopicModel, rows: Floats, draws: Floats | None = None) -> Floats:
    """Shares of topics, shape (n_draws, n_rows, n_components)."""
    draws = model.coefficient_draws_ if draws is None else draws
    sizes = pseudo_counts(np.einsum("rp,dkp->drk", rows, draws)) * model._expected_sizes()
    return sizes / sizes.sum(axis=2, keepdims=True)


def _table(at: Any) -> Any:
    """A DataFrame: the grid of a mapping, or the table; other values unchanged."""
    if isinstance(at, Mapping):
        columns = [[x] if np.ndim(x) == 0 else list(x) for x in at.values()]
        at = data_frame([dict(zip(at, row, strict=True)) for row in product(*columns)])
    frame = frame_of(at)
    if frame is not None and not len(frame):
        raise InvalidArgumentError(f"{argument('at')} has no rows: give one for each prevalence")
    return at if frame is None else frame


def _topics(model: TopicModel) -> tuple[Any, ...]:
    """Labels, names and words of the topics, and whether ``fit`` has warned of few draws."""
    words = None
    if model.vocabulary_ is not None:
        words = [" ".join(own) for own in top_words(cast("Any", model), _WORDS).words]
    is_told = getattr(model, "_told_of_draws", False)
    return labels_of(model), names_of(model), words, is_told


def _named(model: TopicModel, table: Any) -> DataFrame | None:
    """The covariates of rows, if they have names; dates as pandas has them."""
    if not hasattr(table, "columns"):
        return None
    dates = [name for name in model._design.dates if name in table]
    return table.assign(**{name: as_dates(table[name]) for name in dates})


def _labels(table: Any) -> list[str]:
    if table is None:
        return ["documents"]
    if not hasattr(table, "columns"):
        return [f"row {i}" for i in range(len(table))]
    records = table.to_dict("records")
    return [", ".join(f"{name}={_text(x)}" for name, x in row.items()) for row in records]


def _text(value: Any) -> str:
    if hasattr(value, "isoformat"):
        return str(value.isoformat())[:10]
    return f"{value:.4g}" if isinstance(value, float) else str(value)
