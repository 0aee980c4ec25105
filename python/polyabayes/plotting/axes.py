"""Helpers of the plots: Matplotlib on demand, and new axes if none are given."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from polyabayes._support.arrays import Floats
from polyabayes.exceptions import InvalidTypeError, MissingDependencyError

if TYPE_CHECKING:
    from matplotlib.axes import Axes as Axes
    from matplotlib.figure import Figure as Figure
else:
    # Annotations name them; Matplotlib is imported with the first plot.
    Axes = Figure = Any


# Colours that colour-blind readers tell apart (Okabe & Ito 2008), without yellow and black, which
# vanish on white and dark pages.
BLUE, VERMILION, GREEN, PINK = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
_COLOURS = (BLUE, VERMILION, GREEN, PINK, "#E69F00", "#56B4E9", "#7F7F7F")


# Width and height of a page of journals, in inches.
_PAGE = 7.2, 9.0
# Letters of a label that leave enough of the page to the axes beside it, and of a line of labels
# above them; letters that the mark of a label is worth.
_BESIDE, _ABOVE, _MARK = 20, 76, 8


def new_figure(
    width: float, height: float, n_rows: int = 1, *, n_colours: int = 1, **options: Any
) -> tuple[Figure, Any]:
    """Make a figure of this size in inches, with `n_rows` axes below each other.

    It fits on a page, and has different colours for `n_colours` lines.
    """
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise MissingDependencyError(
            "plots need matplotlib: pip install 'polyabayes[plot]'"
        ) from error
    size = np.minimum((width, height), _PAGE)
    figure, axes = plt.subplots(n_rows, figsize=size, layout="constrained", **options)
    for ax in figure.axes:
        ax.set_prop_cycle(color=colours(max(n_colours, len(_COLOURS))))
    return figure, axes


def axes_or_new(ax: Axes | None, width: float, height: float, n_colours: int = 1) -> Axes:
    """Return the given axes, or make a figure of this size in inches."""
    if ax is not None:
        if not hasattr(ax, "get_figure"):
            raise InvalidTypeError(f"ax must be Axes of Matplotlib or None, got {ax!r:.100}")
        return ax
    return new_figure(width, height, n_colours=n_colours)[1]


def finish(ax: Axes, title: str | None = None) -> Axes:
    """Leave out the upper and right line; the legend, if any, is beside the axes, or above them."""
    ax.spines[["top", "right"]].set_visible(False)
    if labels := ax.get_legend_handles_labels()[1]:
        longest = max(map(len, labels))
        place: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0)}
        if longest > _BESIDE:
            place = {"loc": "lower right", "bbox_to_anchor": (1.0, 1.0)}
            place["ncols"] = max(1, _ABOVE // (longest + _MARK))
        ax.legend(frameon=False, fontsize="small", title=title, title_fontsize="small", **place)
    return ax


def heat_map(ax: Axes, values: Floats, label: str, texts: Any = (), **options: Any) -> None:
    """Draw a matrix of values from zero with its scale; `texts` are in its cells, by row."""
    image: Any = ax.imshow(values, cmap="viridis", vmin=0.0, **options)
    ax.figure.colorbar(image, ax=ax, label=label)
    for (row, column), text in zip(np.ndindex(values.shape), texts, strict=False):
        ink = "white" if image.norm(values[row, column]) < 0.5 else "black"
        ax.text(column, row, text, ha="center", va="center", color=ink, size="small")


def shortened(name: str, longest: int) -> str:
    """A name of so many letters at most."""
    return name if len(name) <= longest else f"{name[: longest - 1]}…"


def foreground() -> str:
    """Colour of text in the current style: black on white, white on black."""
    import matplotlib as mpl

    return str(mpl.rcParams["text.color"])


def colours(n: int) -> list[Any]:
    """Colours that differ: of Okabe and Ito, or of viridis if there are more."""
    import matplotlib as mpl

    if n <= len(_COLOURS):
        return list(_COLOURS[:n])
    scale = mpl.colormaps["viridis"]
    return [scale(place / (n - 1)) for place in range(n)]
