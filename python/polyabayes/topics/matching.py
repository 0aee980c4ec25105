"""One-to-one matching of topics, and stability of topics over several fits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment, nnls

from polyabayes._support import checks
from polyabayes._support.arrays import Floats, Indices
from polyabayes._support.results import Result, ResultTable
from polyabayes.data.counts import checked_words
from polyabayes.exceptions import InvalidArgumentError, InvalidTypeError
from polyabayes.models.fitted_topics import (
    fitted_model,
    hellinger_similarity,
    normalised,
    probabilities,
)

_METRICS = ("cosine", "hellinger")
_CHANGES = ("change", "first", "second", "similarity")
# Share of the topics of refits that are less similar to their matches than the band says.
_OUTSIDE = 0.05
# Least share of a part in a mixture of topics.
_LEAST_PART = 0.1


@dataclass(frozen=True, repr=False, eq=False)
class TopicMatch(Result):
    """Pairs of topics of two models, the most similar pairs first.

    Attributes
    ----------
    first, second : ndarray of int, shape (n_pairs,)
        Topics of the first and of the second model; there is a pair for each topic of the smaller
        model.
    similarities : ndarray of shape (n_pairs,)
        Similarity of each pair, between 0 and 1.
    metric : str
        Name of the similarity: ``"cosine"`` or ``"hellinger"``.
    changes : ResultTable
        With `refits`, what became of the topics: ``change`` (``"same"``, ``"split"``,
        ``"merged"``, ``"gone"`` or ``"new"``), the topics of the ``first`` and of the ``second``
        model, as tuples, and the ``similarity`` of both sides, of which several are mixed. Empty
        without.
    band : float
        Least similarity of equal topics; NaN without `refits`.

    Examples
    --------
    >>> lda = pb.LatentDirichletAllocation.from_parameters(
    ...     doc_topic_prior=0.5, topic_word=[[1, 0], [0, 1]]
    ... )
    >>> pb.topics.match_topics(lda, lda).metric
    'cosine'
    """

    first: Indices
    second: Indices
    similarities: Floats
    metric: str
    changes: ResultTable = field(default_factory=lambda: ResultTable(_CHANGES, []))
    band: float = float("nan")

    def _columns(self) -> dict[str, Any]:
        return {"first": self.first, "second": self.second, "similarity": self.similarities}

    def __repr__(self) -> str:
        return f"<TopicMatch by {self.metric}: {len(self.first)} pairs>"


def match_topics(
    first: Any, second: Any, metric: str = "cosine", *, refits: Sequence[Any] = ()
) -> TopicMatch:
    """Match the topics of two models one to one, maximising the sum of similarities.

    With `refits`, also say which topics are the same, split, merged, new or gone. Topics are the
    same if they are as similar as topics of refits are to their matches, all but 5 %. A topic is
    split if it is as similar to a mixture of two or more topics of the other model, which have no
    partner; others are gone. Merged and new topics are the reverse.

    Parameters
    ----------
    first, second : model, or array or DataFrame of shape (n_components, n_words)
        Fitted models of this or other packages, or topics such as reference signatures, whose rows
        are divided by their sums. Words are matched by vocabulary if both have one (the columns of
        a DataFrame), else by column.
    metric : {"cosine", "hellinger"}, default="cosine"
        Cosine of the word probabilities, or 1 minus their Hellinger distance.
    refits : sequence of models, or of arrays of topics, optional
        Fits of the data of the first model with other seeds: how much topics vary by chance.

    Returns
    -------
    TopicMatch

    Raises
    ------
    InvalidArgumentError
        If the models have no words in common, or different numbers of columns and no vocabulary.

    References
    ----------
    Kuhn (1955). The Hungarian method for the assignment problem.

    Examples
    --------
    >>> def lda(topics):
    ...     return pb.LatentDirichletAllocation.from_parameters(
    ...         doc_topic_prior=0.5, topic_word=topics
    ...     )
    >>> match = pb.topics.match_topics(lda([[1, 0], [0, 1]]), lda([[0, 1], [0.6, 0.4]]))
    >>> match.first.tolist(), match.second.tolist(), match.similarities.round(3).tolist()
    ([1, 0], [0, 1], [1.0, 0.832])
    >>> pb.topics.match_topics(lda([[1, 0], [0, 1]]), [[0, 8], [3, 2]]).second.tolist()
    [0, 1]
    """
    checks.choice("metric", metric, _METRICS)
    one, other = topics_of(first, "first"), topics_of(second, "second")
    similarity = _similarity(one, other, metric)
    rows, columns = linear_sum_assignment(-similarity)
    found = similarity[rows, columns]
    order = np.argsort(-found, kind="stable")
    pairs = rows[order], columns[order], found[order]
    if not len(refits):
        return TopicMatch(*pairs, metric)
    known = [match_topics(first, refit, metric).similarities for refit in refits]
    band = float(np.quantile(np.concatenate(known), _OUTSIDE, method="lower"))
    return TopicMatch(*pairs, metric, _changes(one, other, pairs, band, metric), band)


def _changes(
    one: _Topics, other: _Topics, pairs: tuple[Any, ...], band: float, metric: str
) -> ResultTable:
    """What became of the topics: rows of the table of changes."""
    both = _common(one, other)
    rows: list[tuple[Any, ...]] = [
        ("same", (int(k),), (int(j),), float(x))
        for k, j, x in zip(*pairs, strict=True)
        if x >= band
    ]
    free = [
        [k for k in range(len(topics)) if k not in {row[side + 1][0] for row in rows}]
        for side, topics in enumerate(both)
    ]
    for side, change in enumerate(("split", "merged")):
        for k in list(free[side]):
            if len(free[1 - side]) < 2:
                continue
            parts = both[1 - side][free[1 - side]]
            weights = nnls(parts.T, both[side][k])[0]
            kept = weights >= _LEAST_PART * max(weights.sum(), 1e-300)
            mixed = _Topics((weights[kept] @ parts[kept])[None], None)
            if kept.sum() < 2 or not mixed.rows.sum():
                continue
            mixed = _Topics(mixed.rows / mixed.rows.sum(), None)
            near = float(_similarity(_Topics(both[side][[k]], None), mixed, metric)[0, 0])
            if near >= band:
                used = tuple(np.array(free[1 - side])[kept].tolist())
                rows.append((change, *((k,), used)[:: 1 if side == 0 else -1], near))
                free[side].remove(k)
                free[1 - side] = [j for j in free[1 - side] if j not in used]
    rows += [("gone", (k,), (), float("nan")) for k in free[0]]
    rows += [("new", (), (k,), float("nan")) for k in free[1]]
    return ResultTable(_CHANGES, rows)


def stability(models: Sequence[Any], metric: str = "cosine") -> Floats:
    """Mean similarity of the topics of the first model to their matches in the others.

    Parameters
    ----------
    models : sequence of at least two models, or arrays of topics
        Fits of the same corpus with other seeds, or on resampled documents.
    metric : {"cosine", "hellinger"}, default="cosine"
        As for :func:`match_topics`.

    Returns
    -------
    ndarray of shape (n_components,)
        Mean similarity of each topic of the first model; a smaller model without a match counts
        as 0.

    Raises
    ------
    InvalidArgumentError
        If there are fewer than two models.

    References
    ----------
    Greene, O'Callaghan & Cunningham (2014). How many topics? Stability analysis for topic models.

    Examples
    --------
    >>> lda = pb.LatentDirichletAllocation.from_parameters(
    ...     doc_topic_prior=0.5, topic_word=[[0.9, 0.1], [0.2, 0.8]]
    ... )
    >>> pb.topics.stability([lda, lda]).round(3).tolist()
    [1.0, 1.0]
    """
    if isinstance(models, (str, bytes)) or not isinstance(models, Sequence):
        raise InvalidTypeError(f"models must be a sequence of models, got {models!r:.100}")
    if len(models) < 2:
        raise InvalidArgumentError(f"stability compares at least two models, got {len(models)}")
    total = np.zeros(len(topics_of(models[0], "models[0]").rows))
    for other in models[1:]:
        match = match_topics(models[0], other, metric)
        total[match.first] += match.similarities
    return total / (len(models) - 1)


class _Topics(NamedTuple):
    """Topics x words, with rows that sum to 1, and the words if known."""

    rows: Floats
    vocabulary: NDArray[np.object_] | None


def topics_of(value: Any, name: str) -> _Topics:
    """Topics of a model, or given topics."""
    if isinstance(value, (list, tuple, np.ndarray)) or hasattr(value, "columns"):
        rows = normalised(checks.matrix(name, value), name)
        labels = getattr(value, "columns", None)
        are_words = labels is not None and all(isinstance(word, str) for word in labels)
        return _Topics(rows, checked_words(labels) if are_words else None)
    model = fitted_model(value, name)
    return _Topics(probabilities(model), model.vocabulary_)


def _similarity(first: _Topics, second: _Topics, metric: str) -> Floats:
    one, other = _common(first, second)
    if metric == "hellinger":
        return hellinger_similarity(one, other)
    lengths = np.outer(np.linalg.norm(one, axis=1), np.linalg.norm(other, axis=1))
    cosines: Floats = one @ other.T / lengths
    return np.minimum(cosines, 1.0)


def _common(first: _Topics, second: _Topics) -> tuple[Floats, Floats]:
    """Word probabilities over the union of words; missing words have probability 0."""
    one, other = first.rows, second.rows
    if first.vocabulary is None or second.vocabulary is None:
        if one.shape[1] != other.shape[1]:
            raise InvalidArgumentError(
                f"the topics have {one.shape[1]} and {other.shape[1]} words, and not both have a "
                "vocabulary to match them by"
            )
        return one, other
    words = {word: column for column, word in enumerate(first.vocabulary)}
    if not any(word in words for word in second.vocabulary):
        raise InvalidArgumentError("the topics have no words in common")
    for word in second.vocabulary:
        words.setdefault(word, len(words))
    wide = np.zeros((len(other), len(words)))
    wide[:, [words[word] for word in second.vocabulary]] = other
    return np.pad(one, ((0, 0), (0, len(words) - one.shape[1]))), wide
