"""Held-out scores of sizes on the same documents: differences, errors, who may be best."""

from collections.abc import Collection

import numpy as np
from scipy import stats

from polyabayes._support.arrays import Floats, Integers
from polyabayes._support.jackknife import Difference, paired_difference, totals_of
from polyabayes.sizes.choice.fits import FoldFit

# Level of the interval of a difference: a size whose interval holds 0 is as good as the best.
LEVEL = 0.95

# A size is dropped if its probability of being as good as the best is below this.
_HOPELESS = 1e-4
# Groups from which Student's t may tell as surely as dropping a size asks for.
_FEW_GROUPS = 6


class Race:
    """Scores by size and fold; every size is scored on the same documents of a fold.

    `folds` has the fold of every document that is scored, -1 for the others.
    """

    def __init__(self, folds: Integers, n_tokens: Integers, groups: Integers | None = None) -> None:
        self.folds, self.n_tokens = folds, n_tokens.astype(np.float64)
        self.groups = np.arange(len(folds)) if groups is None else groups
        self.fits: dict[int, dict[int, FoldFit]] = {}

    @property
    def n_fits(self) -> int:
        """Fits of all sizes."""
        return sum(map(len, self.fits.values()))

    def add(self, fit: FoldFit) -> None:
        """Add a fit and its scores."""
        self.fits.setdefault(fit.size, {})[fit.fold] = fit

    def n_folds(self, size: int) -> int:
        """Folds on which a size was scored."""
        return len(self.fits[size])

    def best(self, sizes: Collection[int]) -> int:
        """The size with the highest score, by differences on common folds; ties go to the smallest.

        Differences are first to the size scored on most folds, then to the leader, since sizes that
        share more folds with the leader may be ahead of it.
        """
        reference = max(sizes, key=self.n_folds)
        for _ in range(2):
            ahead = {size: self.difference(size, reference).mean for size in sizes}
            reference = max(sizes, key=lambda size: (ahead[size], -size))
        return reference

    def scores(self, size: int) -> tuple[float, float]:
        """Nats per token of a size over its folds, and the standard error of the estimates."""
        folds = sorted(self.fits[size])
        values, lengths, _ = self._documents(size, folds)
        errors = np.concatenate([self.fits[size][fold].std_errors for fold in folds])
        kept = np.isfinite(values)
        total = lengths[kept].sum()
        return float(values[kept].sum() / total), float(np.sqrt((errors[kept] ** 2).sum()) / total)

    def difference(self, first: int, second: int) -> Difference:
        """Paired difference on the common folds, in nats per token.

        The error is the larger of two: the delete-one jackknife over documents or groups, for new
        documents, and the spread of differences between folds, for new documents and fits. It is
        infinite for a single document.
        """
        common = sorted(self.fits[first].keys() & self.fits[second].keys())
        if first == second or not common:
            return Difference(0.0, 0.0, np.inf)
        found = paired_difference(*self._ahead(first, second, common))
        if np.isnan(found.std_error):
            return Difference(found.mean, np.inf, np.inf)
        by_fold = self._by_fold(first, second, common)
        if len(common) > 2:
            std_error = float(np.sqrt(by_fold.var(ddof=1) / len(common)))
            if not found.std_error >= std_error:
                return Difference(found.mean, std_error, len(common) - 1.0)
        return found

    def behind(self, size: int, leader: int, margin: float = 0.0) -> float:
        """Probability that `size` is at most `margin` behind `leader`, by Student's t."""
        return chance(self.difference(leader, size), margin)

    def chance_to_stay(self, size: int, leader: int, margin: float = 0.0) -> float:
        """Probability of :meth:`behind`; a size for which it is tiny is dropped.

        If there are only a few groups, and the size is behind in each, documents count instead:
        by Student's t, two donors could never drop a size, however far it is behind.
        """
        common = sorted(self.fits[leader].keys() & self.fits[size].keys())
        if size != leader and common:
            ahead, lengths, groups = self._ahead(leader, size, common)
            by_group, of_group = totals_of(groups, ahead, lengths)
            is_ahead = (by_group > margin * of_group).all()
            if len(by_group) < min(_FEW_GROUPS, len(ahead)) and is_ahead:
                return chance(paired_difference(ahead, lengths), margin)
        return self.behind(size, leader, margin)

    def is_hopeless(self, size: int, leader: int, margin: float = 0.0) -> bool:
        """Whether `size` is surely more than `margin` behind `leader`."""
        return self.chance_to_stay(size, leader, margin) < _HOPELESS

    def may_gain(self, size: int, leader: int, gain: float) -> float:
        """Probability that `size` is ahead by `gain` or more; of few groups, documents count."""
        common = sorted(self.fits[leader].keys() & self.fits[size].keys())
        behind, lengths, groups = self._ahead(leader, size, common)
        few = len(np.unique(groups)) < min(_FEW_GROUPS, len(behind))
        found = paired_difference(behind, lengths) if few else self.difference(leader, size)
        return chance(found, -gain)

    def are_equal(self, first: int, second: int, loss: float) -> bool:
        """Whether the difference of two sizes is at most `loss`, with its standard error.

        If there are few groups, the error is at least that for new documents.
        """
        common = sorted(self.fits[first].keys() & self.fits[second].keys())
        if first == second or not common:
            return True
        found = self.difference(first, second)
        ahead, lengths, _ = self._ahead(first, second, common)
        error = np.fmax(found.std_error, paired_difference(ahead, lengths).std_error)
        return bool(abs(found.mean) + error <= loss)

    def _by_fold(self, first: int, second: int, common: list[int]) -> Floats:
        """Differences in nats per token, fold by fold."""
        parts = [self._ahead(first, second, [fold])[:2] for fold in common]
        return np.array([ahead.sum() / lengths.sum() for ahead, lengths in parts])

    def _ahead(self, first: int, second: int, folds: list[int]) -> tuple[Floats, Floats, Integers]:
        """Differences of the documents of some folds in nats, their lengths and groups."""
        one, lengths, groups = self._documents(first, folds)
        ahead = one - self._documents(second, folds)[0]
        kept = np.isfinite(ahead)
        return ahead[kept], lengths[kept], groups[kept]

    def _documents(self, size: int, folds: list[int]) -> tuple[Floats, Floats, Integers]:
        """Values, lengths and groups of the documents of some folds."""
        rows = np.concatenate([np.flatnonzero(self.folds == fold) for fold in folds])
        values = np.concatenate([self.fits[size][fold].values for fold in folds])
        return values, self.n_tokens[rows], self.groups[rows]


def chance(found: Difference, margin: float = 0.0) -> float:
    """Probability that a difference is at most `margin`, by Student's t."""
    excess = found.mean - margin
    if not found.std_error > 0:
        return 1.0 if excess <= 0 else 0.0
    return float(stats.t.sf(excess / found.std_error, found.degrees_of_freedom))


def interval(found: Difference) -> tuple[float, float]:
    """Interval of a difference by Student's t."""
    reach = found.std_error
    if np.isfinite(reach) and reach:
        reach *= float(stats.t.ppf(0.5 + LEVEL / 2, found.degrees_of_freedom))
    return found.mean - reach, found.mean + reach
