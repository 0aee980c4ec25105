"""Held-out scores of sizes on the same documents: differences, their errors, who may be best."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from polyabayes.sizes.choice.fits import FoldFit

# Draws of the probabilities of being the best.
_DRAWS = 4_000


class Difference(NamedTuple):
    """Nats per token that one size is ahead of another, for a new document and a new fit."""

    mean: float
    std_error: float
    degrees_of_freedom: float


class Race:
    """Scores by size and fold; every size is scored on the same documents of a fold.

    Parameters
    ----------
    folds : ndarray of int, shape (n_documents,)
        Fold of every document.
    n_tokens : ndarray of int, shape (n_documents,)
        Length of every document.
    """

    def __init__(self, folds: NDArray[np.int64], n_tokens: NDArray[np.int64]) -> None:
        self.folds, self.n_tokens = folds, n_tokens.astype(np.float64)
        self.fits: dict[int, dict[int, FoldFit]] = {}

    def add(self, fit: FoldFit) -> None:
        """Take in a fit and its scores."""
        self.fits.setdefault(fit.size, {})[fit.fold] = fit

    def n_folds(self, size: int) -> int:
        """Folds on which a size was scored."""
        return len(self.fits[size])

    def best(self, sizes: list[int]) -> int:
        """The size that none of `sizes` beats on their common folds.

        Sizes that were scored on fewer folds than others were dropped, and are not asked.
        """
        most = max(self.n_folds(size) for size in sizes)
        whole = [size for size in sizes if self.n_folds(size) == most]
        return max(whole, key=lambda size: (self.difference(size, whole[0]).mean, -size))

    def scores(self, size: int) -> tuple[float, float]:
        """Nats per token of a size over its folds, and the standard error of the estimates."""
        values, lengths = self._documents(size, sorted(self.fits[size]))
        errors = np.concatenate([self.fits[size][f].std_errors for f in sorted(self.fits[size])])
        kept = np.isfinite(values)
        total = lengths[kept].sum()
        return float(values[kept].sum() / total), float(np.sqrt((errors[kept] ** 2).sum()) / total)

    def difference(self, first: int, second: int) -> Difference:
        """Paired difference on the common folds.

        The error is the larger of two: the delete-one jackknife over documents, which holds for
        new documents, and the spread of the folds' differences, which holds for new fits too.
        """
        common = sorted(self.fits[first].keys() & self.fits[second].keys())
        one, lengths = self._documents(first, common)
        other, _ = self._documents(second, common)
        if first == second or not common:
            return Difference(0.0, 0.0, np.inf)
        both = np.isfinite(one) & np.isfinite(other)
        ahead, tokens = (one - other)[both], lengths[both]
        total = tokens.sum()
        with np.errstate(divide="ignore", invalid="ignore"):
            left_out = (ahead.sum() - ahead) / (total - tokens)
            n = len(ahead)
            variance = float(((left_out - left_out.mean()) ** 2).sum() * (n - 1) / n)
        freedom = max(float(total**2 / (tokens**2).sum()) - 1, 1.0)
        mean = float(ahead.sum() / total)
        of_folds = self._of_folds(first, second, common)
        if len(common) > 2 and (spread := float(of_folds.var(ddof=1) / len(common))) > variance:
            return Difference(mean, float(np.sqrt(spread)), len(common) - 1.0)
        return Difference(mean, float(np.sqrt(variance)), freedom)

    def probabilities(self, sizes: list[int], rng: np.random.Generator) -> dict[int, float]:
        """Probability of each size to be the best of `sizes` for new documents and fits.

        By the Bayesian bootstrap over documents (Rubin 1981), and normal noise for the part of
        the folds' spread that documents do not explain.
        """
        common = sorted(set.intersection(*(set(self.fits[size]) for size in sizes)))
        values = np.array([self._documents(size, common)[0] for size in sizes])
        _, lengths = self._documents(sizes[0], common)
        kept = np.isfinite(values).all(axis=0)
        values, lengths = values[:, kept], lengths[kept]
        noise = self._noise_of_fits(sizes, common)
        wins = np.zeros(len(sizes))
        for _ in range(_DRAWS):
            weights = rng.standard_exponential(len(lengths))
            drawn = values @ weights / (lengths @ weights)
            wins[np.argmax(drawn + noise * rng.standard_normal(len(sizes)))] += 1
        return {size: float(share) for size, share in zip(sizes, wins / _DRAWS, strict=True)}

    def behind(self, size: int, leader: int) -> float:
        """Probability that `size` is as good as `leader`, by Student's t."""
        found = self.difference(leader, size)
        if not found.std_error > 0:
            return 1.0 if found.mean <= 0 else 0.0
        return float(stats.t.sf(found.mean / found.std_error, found.degrees_of_freedom))

    def _noise_of_fits(self, sizes: list[int], common: list[int]) -> float:
        """Standard deviation of a size's score from its fits alone, the median over neighbours."""
        if len(common) < 3 or len(sizes) < 2:
            return 0.0
        excess = []
        for one, other in pairwise(sizes):
            spread = self._of_folds(one, other, common).var(ddof=1) / len(common)
            first, lengths = self._documents(one, common)
            second, _ = self._documents(other, common)
            ahead = first - second
            kept = np.isfinite(ahead)
            mean = ahead[kept].sum() / lengths[kept].sum()
            residuals = ahead[kept] - mean * lengths[kept]
            excess.append(spread - (residuals**2).sum() / lengths[kept].sum() ** 2)
        return float(np.sqrt(max(np.median(excess), 0.0) / 2))

    def _of_folds(self, first: int, second: int, common: list[int]) -> NDArray[np.float64]:
        """Differences in nats per token, fold by fold."""
        found = []
        for fold in common:
            lengths = self.n_tokens[self.folds == fold]
            ahead = self.fits[first][fold].values - self.fits[second][fold].values
            kept = np.isfinite(ahead)
            found.append(ahead[kept].sum() / lengths[kept].sum())
        return np.array(found)

    def _documents(
        self, size: int, folds: list[int]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Values and lengths of the documents of some folds."""
        values = [self.fits[size][fold].values for fold in folds]
        lengths = [self.n_tokens[self.folds == fold] for fold in folds]
        return np.concatenate(values), np.concatenate(lengths)
