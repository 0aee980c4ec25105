"""Topics by metadata: mean weights in groups of documents, with errors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from polyabayes._support import checks
from polyabayes._support.arrays import Floats, Indices, Integers
from polyabayes._support.output.tables import topic_columns
from polyabayes._support.results import Result
from polyabayes.data.corpus import Corpus, of_layer
from polyabayes.data.naming import rows_by_name
from polyabayes.data.tensors.factors import one_column
from polyabayes.exceptions import InvalidArgumentError, argument
from polyabayes.models.fitted_topics import fitted_model, labels_of, names_of


@dataclass(frozen=True, repr=False, eq=False)
class TopicsByGroup(Result):
    """Mean topic weights of groups of documents; its table has 95 % intervals.

    Attributes
    ----------
    groups : ndarray of shape (n_groups,)
        Values of the groups: categories in their order, others sorted.
    n_documents : ndarray of int, shape (n_groups,)
        Number of documents of each group.
    means, std_errors : ndarray of shape (n_groups, n_components)
        Mean weight of every topic, and its standard error for the source of the group's documents.
        A group of one document takes the variance within the other groups; NaN if all groups have
        one document.
    n_freedom : ndarray of int, shape (n_groups,)
        Degrees of freedom of the standard errors.
    largest : float
        Upper limit of weights: 1 for shares, infinite for rates.
    labels : list of str or None
        Name or words of each topic, for pictures.
    topics : list of str or None
        Names of the topics, if they have some, for tables.

    Examples
    --------
    >>> found = pb.topics.by_group(lda, [[9, 0], [8, 1], [0, 9], [1, 7]], ["a", "a", "b", "b"])
    >>> found.to_frame().columns.tolist()
    ['group', 'n_documents', 'topic', 'mean', 'std_error', 'lower', 'upper']
    """

    groups: NDArray[Any]
    n_documents: Integers
    means: Floats
    std_errors: Floats
    n_freedom: Integers
    largest: float
    labels: list[str] | None = None
    topics: list[str] | None = None

    def interval(self, level: float = 0.95) -> Floats:
        """Confidence intervals of the means by Student's t, clipped to valid weights.

        Parameters
        ----------
        level : float, default=0.95
            Confidence level.

        Returns
        -------
        ndarray of shape (2, n_groups, n_components)
            Lower and upper ends.

        {raises: bad level}

        Examples
        --------
        >>> found = pb.topics.by_group(lda, [[9, 0], [8, 1], [7, 0]], ["a", "a", "a"])
        >>> low, high = found.interval(0.9)
        >>> bool((low < found.means).all() and (found.means < high).all())
        True
        """
        freedom = np.maximum(self.n_freedom, 1)[:, None]
        reach = stats.t.ppf(0.5 + checks.share("level", level) / 2, freedom) * self.std_errors
        return np.clip([self.means - reach, self.means + reach], 0.0, self.largest)

    def _columns(self) -> dict[str, Any]:
        ends = dict(zip(("lower", "upper"), self.interval(), strict=True))
        rows = {"group": self.groups, "n_documents": self.n_documents}
        tables = {"mean": self.means, "std_error": self.std_errors, **ends}
        return topic_columns(rows, tables, self.topics)

    def __repr__(self) -> str:
        return f"<TopicsByGroup: {len(self.groups)} groups, {self.means.shape[1]} topics>"


def by_group(
    model: Any,
    documents: Any,
    by: Any,
    *,
    weights: Any = None,
    layer: str | None = None,
    missing_words: str | None = None,
) -> TopicsByGroup:
    """Mean topic weights of groups of documents: of authors, of years.

    Errors are from the method of composition in closed form. With posterior mean E_d and variance
    V_d of a document's weight, the squared error of a group of n documents is
    (var(E_d) + mean(V_d)) / n, from a regression on the group for one draw of all weights, plus
    mean(V_d) / n, from the variance between draws. For a group of one document, var(E_d) is the
    variance within the other groups. Topics and priors are treated as known.

    Parameters
    ----------
    model : LatentDirichletAllocation, PoissonFactorAnalysis or foreign model
        A fitted model; it need not be trained with the groups.
    documents : Corpus, sparse matrix, integer array or DataFrame, shape (n_documents, n_words)
        The documents; unknown words are dropped.
    by : str or array of shape (n_documents,)
        A column of the corpus's ``metadata``, or the groups themselves; numbers or texts.
    weights : str or array of shape (n_documents,), optional
        Sampling weights of the documents, or the column of the ``metadata`` with them. Means are
        then weighted, with errors by linearisation: w_d n / Σ w multiplies what a document adds.
    {layer}
    {missing words}

    Returns
    -------
    TopicsByGroup
        Means and errors of the weights of ``transform``: shares for LDA, rates for gamma-Poisson.

    Raises
    ------
    InvalidArgumentError, InvalidTypeError
        If there is no such column, or not one group for each document.

    References
    ----------
    M. Roberts et al. (2014). Structural topic models for open-ended survey responses. AJPS 58;
    their ``estimateEffect``.

    Examples
    --------
    >>> corpus = pb.Corpus([[9, 0], [8, 1], [0, 9], [1, 7]]).with_metadata(
    ...     {"year": [1999, 1999, 2024, 2024]}
    ... )
    >>> found = pb.topics.by_group(lda, corpus, "year")
    >>> found.groups.tolist(), (found.means > 0.5).tolist()
    ([1999, 2024], [[True, False], [False, True]])
    """
    fitted = fitted_model(model)
    fitted, corpus = fitted._measured(of_layer(documents, layer), "drop", missing_words)
    groups, rows = _levels_of(corpus, "by", by)
    counted = sampling_weights(corpus, weights)
    found, n = fitted.topic_weights(corpus), np.bincount(rows)
    shares = (counted * (n / np.bincount(rows, counted))[rows])[:, None]
    total = np.zeros((3, len(groups), found.mean.shape[1]))
    for place, values in enumerate((shares * found.mean, (shares * found.std) ** 2)):
        np.add.at(total[place], rows, values)
    means = total[0] / n[:, None]
    np.add.at(total[2], rows, (shares * (found.mean - means[rows])) ** 2)
    is_alone, pooled = n == 1, int((n - 1).sum())
    freedom = np.where(is_alone, pooled, n - 1)
    total[2, is_alone] = total[2].sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        between = total[2] / freedom[:, None]
    variance = (between + 2 * total[1] / n[:, None]) / n[:, None]
    largest = 1.0 if fitted._conditions_on_length else np.inf
    figures = groups, n, means, np.sqrt(variance), freedom, largest
    return TopicsByGroup(*figures, labels_of(fitted), names_of(fitted))


def sampling_weights(documents: Any, weights: Any) -> Floats:
    """Sampling weights of documents or of rows of metadata: given, or a column."""
    if weights is None:
        return np.ones(len(documents))
    if isinstance(documents, Corpus):
        weights = documents._rows("weights", weights)
    elif isinstance(weights, str):
        weights = one_column(documents, weights)
    else:
        weights = rows_by_name("weights", weights, documents.index)
    return checks.positive_vector("weights", weights, len(documents))


def _levels_of(corpus: Corpus, name: str, labels: Any) -> tuple[NDArray[Any], Indices]:
    """Distinct labels, in the order of categories or else sorted, and the level of each row."""
    corpus._values_of(name, labels)
    rows = corpus._rows(name, labels)
    if str(getattr(rows, "dtype", "")) == "category":
        used = getattr(rows, "array", rows).remove_unused_categories()
        return used.categories.to_numpy(), used.codes.astype(np.intp)
    try:
        return np.unique(np.asarray(rows), return_inverse=True)
    except TypeError as error:
        told = f"{argument(name)} must hold numbers or texts, not both"
        raise InvalidArgumentError(told) from error
