"""Plot of a choice of the number of topics: scores with paired errors, quality of topics."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from polyabayes.exceptions import InvalidArgumentError, InvalidTypeError
from polyabayes.plotting.axes import BLUE, VERMILION, Axes, Figure, new_figure
from polyabayes.sizes.choice import SizeChoice

_BELOW = (
    ("stability", "stability over folds"),
    ("coherence", "coherence (NPMI)"),
    ("exclusivity", "exclusivity"),
)
# Sizes beyond so many times the interval of the worst that was kept are below the axes.
_FARTHEST = 3.0


def plot_choice(choice: SizeChoice) -> Figure:
    """Plot the scores of all sizes, and the quality of their topics below.

    Above: distance of every size to the best, in nats per token, with the 95 % interval of the
    paired difference. Sizes whose interval holds zero are as good as the best, and filled; the
    recommended size has a ring.
    Below: stability, coherence and exclusivity. For a choice by evidence: posterior probabilities
    of the sizes, and of the concentrations if these were averaged over.

    Parameters
    ----------
    choice : SizeChoice
        Result of :func:`polyabayes.choose_n_components` for one unknown size.

    Returns
    -------
    matplotlib Figure

    {raises: bad plot}

    Examples
    --------
    >>> ranks = pb.choose_n_components(
    ...     pb.AllocationModel.nmf(None), [[4, 3, 2], [5, 4, 3]], sizes=[1, 2, 3]
    ... )
    >>> figure = pb.plotting.plot_choice(ranks)
    """
    if not isinstance(choice, SizeChoice):
        raise InvalidTypeError(f"choice must be a SizeChoice, got {type(choice).__name__}")
    if isinstance(choice.best, tuple):
        raise InvalidArgumentError("choice has several unknown sizes: plot its to_frame()")
    if choice.criterion == "evidence":
        return _draw_evidence(choice)
    options = {"height_ratios": (3, 1.3)}
    figure, stack = new_figure(7, 6, 2, sharex=True, gridspec_kw=options)
    _draw_scores(stack[0], choice)
    sizes = [row["size"] for row in choice.rows]
    for place, (name, label) in enumerate(_BELOW):
        values = [row[name] for row in choice.rows]
        stack[1].plot(sizes, values, marker="osD"[place], markersize=4, label=label)
    stack[1].set_ylabel("quality of topics")
    stack[1].legend(fontsize="small", ncols=3, loc="lower center", bbox_to_anchor=(0.5, 1.0))
    stack[-1].set_xscale("log", base=2)
    rotation = 60 if len(sizes) > 12 else 0
    stack[-1].set_xticks(sizes, [str(size) for size in sizes], rotation=rotation)
    stack[-1].minorticks_off()
    stack[-1].set_xlabel("number of topics")
    return figure


def _draw_evidence(choice: SizeChoice) -> Figure:
    figure, axes = new_figure(7, 3.6, ncols=2 if choice.joint else 1, squeeze=False)
    _draw_shares(axes[0, 0], "size", choice.probabilities)
    axes[0, 0].set_ylabel("posterior probability")
    told = f"most probable: {choice.best}; recommended: {choice.recommended}"
    axes[0, 0].set_title(told, fontsize="medium")
    if choice.joint:
        shares = {f"{value:g}": share for value, share in choice.concentrations.items()}
        _draw_shares(axes[0, 1], "concentration", shares)
    return figure


def _draw_scores(ax: Axes, choice: SizeChoice) -> None:
    """Plot distances to the best, with errors; dropped sizes are crosses."""
    for row in choice.rows:
        good = row["size"] in choice.equally_good
        marker, colour = ("x", "0.55") if row["dropped"] else ("o", BLUE)
        face = BLUE if good else ax.get_facecolor()
        style: Any = {"fmt": marker, "color": colour, "markerfacecolor": face}
        style |= {"capsize": 3, "zorder": 3}
        ax.errorbar(row["size"], -row["behind"], yerr=_reach(row), **style)
    kinds = [("o", BLUE, BLUE, "as good as the best"), ("o", BLUE, ax.get_facecolor(), "behind")]
    if any(row["dropped"] for row in choice.rows):
        kinds.append(("x", "0.55", "0.55", "dropped early"))
    for marker, color, inside, label in kinds:
        ax.plot([], [], marker, color=color, markerfacecolor=inside, label=label)
    recommended = next(row for row in choice.rows if row["size"] == choice.recommended)
    ax.plot(
        recommended["size"], -recommended["behind"], "o", color=VERMILION, markersize=14,
        markerfacecolor="none", label=f"recommended: {choice.recommended}",
    )  # fmt: skip
    ax.axhline(0, color="0.6", linewidth=0.8, linestyle="--", zorder=0)
    ax.axvline(float(np.max(choice.best)), color="0.6", linewidth=0.8, linestyle=":", zorder=0)
    _focus(ax, choice)
    ax.set_ylabel("nats per token against the best")
    place: dict[str, Any] = {"loc": "lower center", "bbox_to_anchor": (0.5, 1.0)}
    ax.legend(fontsize="small", ncols=5, columnspacing=1.0, handletextpad=0.3, **place)
    ax.set_title(
        f"{'1 topic predicts' if choice.best == 1 else f'{choice.best} topics predict'} best "
        "(95 % intervals of paired differences)",
        fontsize="medium",
        pad=26,
    )


def _reach(row: Mapping[str, Any]) -> float:
    """Half of the interval of a difference; none if it is unknown."""
    return float(np.nan_to_num(row["behind_upper"] - row["behind"], posinf=0.0))


def _focus(ax: Axes, choice: SizeChoice) -> None:
    """Leave far sizes below the axes' end, with an arrow, so that close ones can be told apart."""
    ends = {row["size"]: row["behind"] + _reach(row) for row in choice.rows}
    depth = max((ends[row["size"]] for row in choice.rows if not row["dropped"]), default=0.0)
    if depth > 0:
        bottom = -1.05 * max(end for end in ends.values() if end <= _FARTHEST * depth)
        ax.set_ylim(bottom, depth * 0.25)
        hidden = [size for size, end in ends.items() if -end < bottom]
        if hidden:
            options: dict[str, Any] = {"label": "below the axis", "clip_on": False}
            ax.plot(hidden, [bottom] * len(hidden), "v", color="0.55", **options)


def _draw_shares(ax: Axes, what: str, shares: Mapping[Any, float]) -> None:
    ax.bar(range(len(shares)), [*shares.values()], color=BLUE)
    ax.set_xticks(range(len(shares)), [str(name) for name in shares])
    ax.set_xlabel(what)
