"""Helpers of the plots: Matplotlib on demand, and new axes if none are given."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from polyabayes.exceptions import InvalidTypeError, MissingDependencyError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


# Colours that colour-blind readers tell apart (Okabe & Ito 2008), without yellow and black, which
# vanish on white and dark pages.
BLUE, VERMILION, GREEN, PINK = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
_COLOURS = (BLUE, VERMILION, GREEN, PINK, "#E69F00", "#56B4E9", "#7F7F7F")


# Width of a page of journals, in inches.
_PAGE = 7.2


def new_figure(
    width: float, height: float, n_rows: int = 1, *, n_colours: int = 1, **options: Any
) -> tuple[Figure, Any]:
    """Make a figure of this size in inches, with `n_rows` axes below each other.

    It is at most as wide as a page, and has different colours for `n_colours` lines.
    """
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise MissingDependencyError(
            "plots need matplotlib: pip install 'polyabayes[plot]'"
        ) from error
    size = min(width, _PAGE), height
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
    made: Axes = new_figure(width, height, n_colours=n_colours)[1]
    return made


def finish(ax: Axes, title: str | None = None) -> Axes:
    """Leave out the upper and right line, and put the legend, if any, beside the axes."""
    ax.spines[["top", "right"]].set_visible(False)
    if ax.get_legend_handles_labels()[1]:
        beside: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0)}
        ax.legend(frameon=False, fontsize="small", title=title, title_fontsize="small", **beside)
    return ax


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
