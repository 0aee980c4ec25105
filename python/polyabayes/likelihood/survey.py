"""Totals of all documents from short runs of all and longer runs of a random sample.

The short runs are low. What the sample is higher by tells what all are: the difference estimator of
survey sampling (Cassel, Särndal and Wretman 1976), here by a ratio, whose weights make the total
that of the sampled values and of predictions for the others (Brewer 1999).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from polyabayes.likelihood.blocks import BlockScores

__all__ = ["Difference", "Population", "difference_scale", "least_scale", "unremoved_bias"]

Floats = NDArray[np.float64]

_HALVINGS = 60

# Bias of ln p that may be left, as a share of its correction, and the least correction as a
# share of the variances of the runs, which is its expectation where they are small: as measured on
# news articles, papers and short documents. Counted as error.
_UNREMOVED, _LEAST_CORRECTION = 1.0, 1 / 32


def least_scale(is_enough: Callable[[float], bool], most: float) -> float:
    """The least number up to `most` that is enough, to some digits; `most` where none is."""
    low, high = 0.0, most
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        if is_enough(middle):
            high = middle
        else:
            low = middle
    return high


def unremoved_bias(correction: float, variance: float) -> float:
    """Bias that may be left of a total: its correction, and the variances of its runs, summed."""
    return _UNREMOVED * max(abs(correction), _LEAST_CORRECTION * variance)


class Population:
    """The different documents of a corpus, each of which is drawn with a probability of its own.

    Parameters
    ----------
    groups : ndarray of shape (n_documents,)
        Which of the different documents each one is.
    n_tokens : ndarray of shape (n_documents,)
        Lengths.
    uniforms : ndarray of shape (n_documents,)
        Numbers uniform on [0, 1), the same for equal documents: those below their probability are
        drawn, so that a larger sample holds a smaller one.
    """

    def __init__(
        self, groups: NDArray[np.int64], n_tokens: NDArray[np.int64], uniforms: Floats
    ) -> None:
        _, first, index, copies = np.unique(
            groups, return_index=True, return_inverse=True, return_counts=True
        )
        # In order of first appearance, however groups are numbered.
        order = np.argsort(first)
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        self.first, self.index = first[order], place[index.ravel()]
        self.copies = copies[order].astype(np.float64)
        self.n_tokens = n_tokens[self.first].astype(np.float64)
        self.uniforms = uniforms[self.first]

    def probabilities(self, n: float, measure: Floats) -> Floats:
        """Probabilities by which about `n` documents are drawn, in proportion to a measure of each.

        1 for those whose share would be larger; documents of measure 0 are never drawn.
        """
        positive = measure[measure > 0]
        if len(positive) <= n:
            return (measure > 0).astype(np.float64)

        def n_drawn(scale: float) -> float:
            return float(np.minimum(scale * positive, 1.0).sum())

        most = float(1.0 / positive.min())
        scale = least_scale(lambda scale: n_drawn(scale) >= n, most)
        probabilities: Floats = np.minimum(scale * measure, 1.0)
        return probabilities


def difference_scale(population: Population, short: BlockScores) -> Floats:
    """Number to which the difference of each document is in proportion, about; 0 where exact."""
    scale: Floats = np.sqrt(population.n_tokens * short.variances[population.first])
    return scale


class Difference:
    """Estimate of a total from short runs of all documents and longer ones of a sample.

    Parameters
    ----------
    population : Population
        The documents.
    short, sampled : BlockScores
        Of all documents; the latter NaN for those that were not drawn.
    measure, probabilities : ndarray
        What each different document was drawn in proportion to, and by which probability.
    """

    def __init__(
        self,
        population: Population,
        short: BlockScores,
        sampled: BlockScores,
        measure: Floats,
        probabilities: Floats,
    ) -> None:
        self._population, self._short, self._sampled = population, short, sampled
        self._measure = measure
        # A run that outweighs the others by chance lifts both a value and its correction.
        self._of_short = short.values - short.corrections
        # Differences are in proportion to this, about; nothing is to be found out where it is 0.
        self.scale = difference_scale(population, short)
        self._drawn = (population.uniforms < probabilities) & (self.scale > 0)
        rows = population.first[self._drawn]
        self._copies = population.copies[self._drawn]
        self._weights = 1.0 / probabilities[self._drawn]
        self._corrections, self._variances = sampled.corrections[rows], sampled.variances[rows]
        self._noise = sampled.corrected_errors[rows] ** 2
        own_scale = self.scale[self._drawn]
        differences = sampled.values[rows] + self._corrections - self._of_short[rows]
        outside = (self._weights - 1.0) * self._copies
        total_scale = float(outside @ own_scale)
        self._ratio = float(outside @ differences) / total_scale if total_scale else 0.0
        n = max(len(rows), 2)
        squares = n / (n - 1) * (differences - self._ratio * own_scale) ** 2
        # Sampling ends when the error seems small, and it seems so where no large difference was
        # drawn: hence a standard error more of what the squares sum to.
        parts = outside * self._weights * self._copies * squares
        whole = float(parts.sum())
        doubt = np.sqrt(max(float(parts @ parts) - whole**2 / n, 0.0)) / whole if whole else 0.0
        self._squares = (1.0 + doubt) * squares
        # The squares of all predictions together are what the sample tells of them.
        squared_scale = float(((population.copies * self.scale)[~self._drawn] ** 2).sum())
        whole = float((outside * self._copies) @ self._squares)
        self._spread = np.sqrt(whole / squared_scale) if squared_scale else 0.0

    def _bias(self) -> float:
        weights = self._weights * self._copies
        return unremoved_bias(float(weights @ self._corrections), float(weights @ self._variances))

    def squared_error(self, scale: float = 0.0) -> float:
        """Expected square of the error of the total, if more documents are drawn.

        By probabilities of `scale` times the measure, where that is more than they were drawn by.
        """
        measure = self._measure[self._drawn]
        weights = 1.0 / np.maximum(1.0 / self._weights, np.minimum(scale * measure, 1.0))
        each = self._weights * ((weights - 1.0) * self._squares + self._noise)
        return float(self._copies**2 @ each) + self._bias() ** 2

    def probabilities(self, squared_error: float) -> Floats:
        """Least probabilities by which more documents should be drawn to get there."""
        measure = self._measure[self._drawn]
        if not len(measure):
            return np.zeros_like(self._measure)
        most = float(1.0 / measure.min())
        scale = least_scale(lambda scale: self.squared_error(scale) <= squared_error, most)
        probabilities: Floats = np.minimum(scale * self._measure, 1.0)
        return probabilities

    def corrected(self, target: float) -> tuple[BlockScores, float]:
        """Scores whose sum is the estimate, and the error that they share.

        Those that were drawn keep the error of their runs; predictions have the spread of
        the differences.
        """
        index, short, sampled = self._population.index, self._short, self._sampled
        drawn = self._drawn[index]
        scale = self.scale[index]
        values = self._of_short + self._ratio * scale
        values[drawn] = (sampled.values + sampled.corrections)[drawn]
        errors = self._spread * scale
        errors[drawn] = sampled.corrected_errors[drawn]
        others = self._weights - 1.0
        shared = float(self._copies**2 @ (others**2 * self._squares + others * self._noise))
        shared += self._bias() ** 2
        own = float((np.bincount(index, weights=errors) ** 2).sum())
        scores = short._replace(
            values=values,
            std_errors=errors,
            sizes=np.where(drawn, sampled.sizes, short.sizes),
            reached=short.reached & (own + shared <= target**2),
        )
        return scores, float(np.sqrt(shared))
