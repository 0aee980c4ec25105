"""Plot of the answers of latent classes, by item."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from polyabayes._support import checks
from polyabayes.exceptions import InvalidTypeError
from polyabayes.latent_classes import LatentClassAnalysis
from polyabayes.plotting.axes import axes_or_new, finish

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Share of the height of an item for its classes.
_FILLED = 0.8


def plot_item_probabilities(
    classes: LatentClassAnalysis, level: float = 0.95, *, ax: Axes | None = None
) -> Axes:
    """Plot the probability of each answer in each class, with intervals.

    Each class is a line over the answers. For items with two answers, only the second is plotted.

    Parameters
    ----------
    classes : LatentClassAnalysis
        Fitted classes.
    level : float, default=0.95
        Posterior probability of the intervals; ``method="em"`` has none.
    {ax}

    Returns
    -------
    matplotlib Axes

    {raises: bad plot}

    Examples
    --------
    >>> answers = [[0, 0, 1]] * 20 + [[1, 1, 0]] * 10
    >>> classes = pb.LatentClassAnalysis(2, random_state=0).fit(answers)
    >>> ax = pb.plotting.plot_item_probabilities(classes)
    >>> len(ax.containers)
    2
    """
    if not isinstance(classes, LatentClassAnalysis):
        raise InvalidTypeError(
            f"classes must be a LatentClassAnalysis, got {type(classes).__name__}"
        )
    checks.share("level", level)
    table: Any = classes.profiles(level).to_frame()
    rows = table[table["item"] != ""]
    n_answers = rows.groupby("item", sort=False)["answer"].transform("nunique")
    first = rows.groupby(["class", "item"], sort=False).cumcount() == 0
    rows = rows[~(first & (n_answers == 2))]
    names = rows[rows["class"] == 0]
    ax = axes_or_new(
        ax, 6, 1.2 + max(0.3, 0.12 * classes.n_classes_) * len(names), classes.n_classes_
    )
    places = np.arange(len(names))
    for k in range(classes.n_classes_):
        of = rows[rows["class"] == k]
        ends = np.stack([of.probability - of.lower, of.upper - of.probability])
        ax.errorbar(
            of.probability,
            places + _FILLED * ((k + 0.5) / classes.n_classes_ - 0.5),
            xerr=np.nan_to_num(ends).clip(0),
            fmt="o",
            markersize=4,
            label=f"class {k} ({classes.class_weights_[k]:.0%})",
        )
    labels = [f"{item}: {answer}" for item, answer in zip(names["item"], names.answer, strict=True)]
    ax.set_yticks(places, labels)
    ax.set_ylim(len(places) - 0.5, -0.5)
    for place in places[1:]:
        ax.axhline(place - 0.5, color="0.5", linewidth=0.4, zorder=0)
    ax.set(xlim=(-0.02, 1.02), xlabel="probability of the answer")
    return finish(ax)
