"""Intervals from correlated posterior draws, corrected for their number."""

import numpy as np

from polyabayes._support.arrays import Floats


def n_effective(draws: Floats) -> Floats:
    """Effective number of draws along the first axis: n over the autocorrelation time.

    Autocorrelations are added up to Geyer's initial monotone sequence (1992, Practical Markov chain
    Monte Carlo, Statistical Science 7). Never more than n; n where all draws are equal.
    """
    n = len(draws)
    spectrum = np.abs(np.fft.rfft(draws - draws.mean(axis=0), 2 * n, axis=0)) ** 2
    covariances = np.fft.irfft(spectrum, 2 * n, axis=0)[:n]
    correlations = covariances / np.where(covariances[0] > 0, covariances[0], 1.0)
    pairs = correlations[: n - n % 2].reshape(-1, 2, *draws.shape[1:]).sum(axis=1)
    pairs = np.minimum.accumulate(pairs, axis=0).clip(0)
    return n / np.maximum(2 * pairs.sum(axis=0) - 1, 1.0)


def central_interval(draws: Floats, level: float) -> tuple[Floats, Floats]:
    """Interval, shape (2, ...), that has a further draw with probability `level`, and its shortage.

    The quantile at p of n draws worth m independent ones, as NumPy interpolates it, has probability
    p + (1 - 2p) c below it on average, c = (1/m + 1/n) / 2: one half by the noise of the empirical
    distribution, one by the definition. The quantile is taken where that is (1 - level) / 2. The
    shortage is the factor by which there are too few draws for it; above 1, the ends are the
    outermost draws, and the interval is too narrow.
    """
    n, tail = len(draws), (1 - level) / 2
    short = _short(draws)
    with np.errstate(divide="ignore", invalid="ignore"):
        p = np.where(short < tail, (tail - short) / (1 - 2 * short), 0.0)
    ordered = np.sort(draws, axis=0)
    ends = [_at(ordered, q * (n - 1)) for q in (p, 1 - p)]
    return np.stack(ends), short / tail


def shortage(draws: Floats, level: float = 0.95) -> float:
    """Factor by which there are too few draws for all their intervals; 1 or less if enough."""
    return float(_short(draws).max()) / ((1 - level) / 2)


def _short(draws: Floats) -> Floats:
    return (1 / n_effective(draws) + 1 / len(draws)) / 2


def _at(ordered: Floats, place: Floats) -> Floats:
    """Values at places that may lie between two rows."""
    below = np.floor(place).astype(np.intp)
    above = np.minimum(below + 1, len(ordered) - 1)
    low, high = (np.take_along_axis(ordered, at[None], axis=0)[0] for at in (below, above))
    return low + (place - below) * (high - low)
