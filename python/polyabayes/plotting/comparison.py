"""Plot of models compared on the same documents."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import stats

from polyabayes._support import checks
from polyabayes.exceptions import InvalidTypeError
from polyabayes.likelihood.comparison import Comparison
from polyabayes.plotting.axes import BLUE, Axes, axes_or_new

# Limits of the axis: margin beside the outermost interval as a share of the span, and the least
# span in nats per token, so that equal models do not show rounding errors.
_MARGIN = 0.08
_LEAST_SPAN = 1e-4


def plot_comparison(comparison: Comparison, level: float = 0.95, ax: Axes | None = None) -> Axes:
    """Plot the nats per token of models, best on top, and their distance to the best.

    The line through a point is the interval of the estimate on these documents; it shrinks with
    more particles or replicates. The band is the interval of the paired difference to the best
    model for new documents from the same source. A model whose band reaches the dashed line may be
    as good as the best.

    Parameters
    ----------
    comparison : Comparison
        Result of :func:`polyabayes.compare`.
    level : float, default=0.95
        Confidence level of the intervals, by the normal distribution for the estimate and by
        Student's t for the difference.
    {ax}

    Returns
    -------
    matplotlib Axes
        The x axis is in nats per token; higher is better.

    {raises: bad plot}

    Examples
    --------
    >>> topics = [[0.5, 0.25, 0.125, 0.125], [0.1, 0.2, 0.3, 0.4]]
    >>> make = pb.LatentDirichletAllocation.from_parameters
    >>> models = {str(a): make(doc_topic_prior=a, topic_word=topics) for a in (0.1, 1.0)}
    >>> ax = pb.plotting.plot_comparison(pb.compare(models, [[3, 1, 1, 0], [0, 0, 2, 4]]))
    >>> len(ax.get_yticklabels())
    2
    """
    if not isinstance(comparison, Comparison):
        raise InvalidTypeError(f"comparison must be a Comparison, got {type(comparison).__name__}")
    quantile = float(stats.norm.ppf(0.5 + checks.share("level", level) / 2))
    ax = axes_or_new(ax, 7.5, 1.5 + 0.62 * len(comparison.results))
    names = list(comparison.results)
    heights = range(len(names))
    ax.set_yticks(heights, names)
    ax.set_ylim(len(names) - 0.35, -0.6)

    best = comparison.results[comparison.best].nats_per_token
    reached = [best]
    for y, name in zip(heights, names, strict=True):
        result = comparison.results[name]
        value = result.nats_per_token
        if not np.isfinite(value):
            continue
        error = quantile * result.nats_per_token_std_error
        ax.errorbar(value, y, xerr=error, fmt="o", color=BLUE, markersize=5, capsize=4, zorder=3)
        lower, upper = comparison.interval(comparison.best, name, level)
        band = float(np.nan_to_num((upper - lower) / 2))
        if band:
            ax.barh(y, 2 * band, left=value - band, height=0.3, color=BLUE, alpha=0.25)
        reached += [value - max(error, band), value + max(error, band)]
    reached = [x for x in reached if np.isfinite(x)]
    if reached:
        # Differences may be much wider than the errors.
        low, high = min(reached), max(reached)
        margin = _MARGIN * (high - low) + max(0.0, _LEAST_SPAN - (high - low)) / 2
        ax.set_xlim(low - margin, high + margin)
    else:
        ax.set_xticks([])
    _annotate(ax, comparison, level)
    if np.isfinite(best) and len(names) > 1:
        ax.axvline(best, color="0.5", linewidth=0.8, linestyle="--", zorder=0)
    _describe(ax, comparison, level)
    return ax


def _annotate(ax: Axes, comparison: Comparison, level: float) -> None:
    """Label each point with its distance to the best, aligned to stay within the axes."""
    low, high = ax.get_xlim()
    for y, (name, result) in enumerate(comparison.results.items()):
        value = result.nats_per_token
        if not np.isfinite(value):
            zero = int(np.isneginf(result.values).sum())
            text = f"probability zero: {zero:,} of {len(result.values):,} documents"
            if not zero:
                text = "no tokens"
            ax.annotate(
                text, (0, y), (6, 0), ax.get_yaxis_transform(), "offset points", va="center"
            )
            continue
        if name == comparison.best:
            text = f"best: {_signed(value, 4)}"
        else:
            behind, _ = comparison.difference(comparison.best, name)
            text = _behind(behind, comparison.interval(comparison.best, name, level)[1])
        place = (value - low) / (high - low)
        side = "left" if place < 0.35 else "right" if place > 0.65 else "center"
        shift = {"left": -4, "right": 4, "center": 0}[side]
        if name == comparison.best and len(comparison.results) > 1:
            side, shift = "right", -6  # clear of the dashed line
        style: Any = {"ha": side, "va": "top", "size": "small"}
        ax.annotate(text, (value, y), (shift, -12), textcoords="offset points", **style)


def _behind(behind: float, upper: float) -> str:
    """Text of a difference and its interval, with two digits of the half width."""
    half_width = upper - behind
    if not np.isfinite(half_width):
        return f"{_signed(behind, 4)} behind (one document: no interval)"
    digits = 4 if not half_width else int(np.clip(1 - np.floor(np.log10(half_width)), 1, 9))
    ends = f"{_signed(behind - half_width, digits)} to {_signed(behind + half_width, digits)}"
    return f"{_signed(behind, digits)} behind ({ends})"


def _signed(value: float, digits: int) -> str:
    return f"{value:.{digits}f}".replace("-", "\N{MINUS SIGN}")


def _describe(ax: Axes, comparison: Comparison, level: float) -> None:
    """Set title and labels, and explain the two intervals."""
    result = comparison.results[comparison.best]
    given = ", given the length" if comparison.given_length else ""
    ax.set_title(
        f"{len(result.values):,} document{'s' if len(result.values) != 1 else ''}, "
        f"{int(result.n_tokens.sum()):,} tokens; event: {comparison.event}{given}",
        loc="left",
        size="medium",
    )
    line = f"line: {100 * level:g} % interval of the estimate on these documents"
    band = "\nband: the same of the difference to the best, on new documents"
    ax.set_xlabel(
        f"nats per token (higher is better)\n{line}{band if len(comparison.results) > 1 else ''}"
    )
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.tick_params(axis="y", length=0)
    ax.ticklabel_format(axis="x", useOffset=False)
