"""Shared by the plots: Matplotlib on demand, and new axes where the caller gives none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from polyabayes.exceptions import MissingDependencyError

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def axes_or_new(ax: Axes | None, width: float, height: float) -> Axes:
    """Use the axes given, or make a figure of this size in inches."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise MissingDependencyError(
            "plots need matplotlib: pip install 'polyabayes[plot]'"
        ) from error
    if ax is not None:
        return ax
    return plt.subplots(figsize=(width, height), layout="constrained")[1]
