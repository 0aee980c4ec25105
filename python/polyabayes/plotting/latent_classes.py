"""Plots of latent classes: their answers by item, and how rows move between them."""

from __future__ import annotations

from typing import Any

import numpy as np

from polyabayes._support import checks
from polyabayes.exceptions import InvalidTypeError
from polyabayes.latent_classes import LatentClassAnalysis, LatentTransitionAnalysis
from polyabayes.plotting.axes import Axes, axes_or_new, finish, heat_map

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
    height = 1.2 + max(0.3, 0.12 * classes.n_classes_) * len(names)
    ax = axes_or_new(ax, 6, height, classes.n_classes_)
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


def plot_transitions(
    classes: LatentTransitionAnalysis, level: float = 0.95, *, wave: int = 0, ax: Axes | None = None
) -> Axes:
    """Plot the transitions from a wave to the next, with intervals.

    Rows are the classes from which people go, columns those to which they go.

    Parameters
    ----------
    classes : LatentTransitionAnalysis
        Fitted classes.
    {level}
    wave : int, default=0
        Number of the first of both waves, from 0.
    {ax}

    Returns
    -------
    matplotlib Axes

    {raises: bad plot}

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"a1": [0, 0, 1, 1] * 9, "a2": [0, 1, 1, 1] * 9})
    >>> frame = frame.assign(b1=frame.a1, b2=frame.a2)
    >>> model = pb.LatentTransitionAnalysis(2, random_state=0)
    >>> model = model.fit(frame, waves=[["a1", "b1"], ["a2", "b2"]])
    >>> len(pb.plotting.plot_transitions(model).texts)
    4
    """
    if not isinstance(classes, LatentTransitionAnalysis):
        raise InvalidTypeError(
            f"classes must be a LatentTransitionAnalysis, got {type(classes).__name__}"
        )
    table: Any = classes.transitions(level).to_frame()
    last = int(table.wave.max())
    wave = checks.whole_number("wave", wave, 0, last)
    means = classes.transition_probabilities_[wave]
    ax = axes_or_new(ax, 2.5 + 1.1 * len(means), 1.5 + 0.8 * len(means))
    texts = [
        f"{row['probability']:.2f}\n{row['lower']:.2f} to {row['upper']:.2f}"
        for row in table[table.wave == wave].sort_values(["from", "to"]).to_dict("records")
    ]
    heat_map(ax, means, "probability", texts, vmax=1.0, aspect="auto")
    names = [f"class {k}" for k in range(len(means))]
    ax.set_xticks(range(len(means)), names)
    ax.set_yticks(range(len(means)), names)
    ax.set(xlabel=f"to, in wave {wave + 1}", ylabel=f"from, in wave {wave}")
    return ax
