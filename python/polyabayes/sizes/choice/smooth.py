"""Smooth curve through the scores of sizes, where they have no bend."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from polyabayes._support.jackknife import Difference, paired_difference, totals_of
from polyabayes.sizes.choice.race import Race

# Fewest degrees of freedom for the noise of fits.
_LEAST_FREEDOM = 5

Vector = NDArray[np.float64]


class Smooth(NamedTuple):
    """Least squares curve of scores in nats per token, quadratic in 1 / sqrt(size).

    Every fold has a level of its own. On AP from 32 to 200 topics, a cubic term gains nothing. A
    size's score is thereby estimated from the fits of its neighbours too, which share its curve but
    not the noise of its fits.

    `weights` give the slope and the curvature from the scores of the fits, in whose order are
    `values`: the contribution of every document to these scores, with 0 for other folds. `noise`
    is the standard deviation of a score by its fit, and `freedom` its degrees of freedom.
    """

    sizes: tuple[int, ...]
    weights: Vector
    values: Vector
    lengths: Vector
    groups: NDArray[np.int64]
    noise: float
    freedom: float

    @classmethod
    def of(cls, race: Race, sizes: Collection[int]) -> Self | None:
        """The curve through some sizes, or None if there are too few fits."""
        fits = [(size, fold) for size in sorted(sizes) for fold in sorted(race.fits[size])]
        folds = np.array([fold for _, fold in fits])
        x = np.array([size for size, _ in fits]) ** -0.5
        levels = (folds[:, np.newaxis] == np.unique(folds)).astype(np.float64)
        # Documents make the slopes of folds differ; what is left is noise.
        lines = np.column_stack([levels, levels * x[:, np.newaxis], x**2])
        residuals = np.eye(len(fits)) - lines @ np.linalg.pinv(lines)
        freedom = float(np.trace(residuals))
        if freedom < _LEAST_FREEDOM - 0.5:
            return None
        values = np.zeros((len(fits), len(race.folds)))
        for row, (size, fold) in zip(values, fits, strict=True):
            row[race.folds == fold] = race.fits[size][fold].values
        # Documents that some size cannot produce are left out.
        kept = np.isfinite(values).all(axis=0) & np.isin(race.folds, folds)
        values, lengths = values[:, kept], race.n_tokens[kept]
        of_fold = folds[:, np.newaxis] == race.folds[kept]
        totals = (of_fold @ lengths)[:, np.newaxis]
        values, shares = values / totals, of_fold * lengths / totals
        scores, groups = values.sum(axis=1), race.groups[kept]
        # Noise of documents has an error of its own, by the jackknife.
        of_documents = totals_of(groups, *(residuals @ (values - scores[:, np.newaxis] * shares)))
        excess = float(((residuals @ scores) ** 2).sum()) - float(np.square(of_documents).sum())
        noise = math.sqrt(max(excess, 0.0) / freedom)
        weights = np.linalg.pinv(np.column_stack([levels, x, x**2]))[-2:]
        return cls(tuple(sorted(sizes)), weights, values, lengths, groups, noise, freedom)

    def difference(self, first: int, second: int) -> Difference:
        """Difference of two sizes on the curve, with its error for new documents and fits."""
        weights = self._weights(first, second)
        total = float(self.lengths.sum())
        found = paired_difference(total * (weights @ self.values), self.lengths, self.groups)
        noise = self.noise * float(np.linalg.norm(weights))
        return Difference(found.mean, float(np.hypot(found.std_error, noise)), self.freedom)

    def best(self, sizes: Collection[int]) -> int:
        """The size with the highest score; ties go to the smallest."""
        return max(sizes, key=lambda size: (self._ahead(size, self.sizes[0]), -size))

    def smallest(self, best: int, loss: float) -> int:
        """The smallest size on the curve that loses at most `loss` against the best one."""
        between = range(self.sizes[0], best + 1)
        return next(size for size in between if self._ahead(best, size) <= loss)

    def _weights(self, first: int, second: int) -> Vector:
        """Weights of the scores of fits in the difference of two sizes."""
        step = np.array([first**-0.5 - second**-0.5, 1 / first - 1 / second])
        weights: Vector = step @ self.weights
        return weights

    def _ahead(self, first: int, second: int) -> float:
        return float(self._weights(first, second) @ self.values.sum(axis=1))
