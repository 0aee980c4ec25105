"""Plot of mutational signatures over the 96 channels of single-base substitutions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from polyabayes._support import checks
from polyabayes.exceptions import InvalidArgumentError, argument
from polyabayes.plotting.axes import Axes, axes_or_new, foreground
from polyabayes.topics.matching import topics_of

# Substitutions in the usual order, with the colours of COSMIC; its black is that of the text, so
# that it is seen on black, too.
_COLOURS = {
    "C>A": "#03bcee",
    "C>G": "",
    "C>T": "#e32926",
    "T>A": "#cac9c9",
    "T>C": "#a1ce63",
    "T>G": "#ebc6c4",
}
_CHANNELS = [f"{a}[{change}]{b}" for change in _COLOURS for a in "ACGT" for b in "ACGT"]
# Space between two signatures, in units of the highest bar.
_GAP = 0.25


def plot_signatures(
    model: Any,
    signatures: Sequence[int] | None = None,
    *,
    labels: Sequence[str] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Plot signatures over the 96 channels of single-base substitutions, below each other.

    Channels are in the order of COSMIC: by substitution, then by the neighbouring bases. All
    signatures have the same scale.

    Parameters
    ----------
    model : model or DataFrame of shape (n_components, n_channels)
        A fitted model with words like ``"A[C>T]G"``, or a table of signatures with such columns.
        Missing channels have no bars.
    signatures : sequence of int, optional
        Rows to plot, in this order; default: all.
    labels : sequence of str, optional
        Names of the signatures; default: the index of a table, else their numbers.
    {ax}

    Returns
    -------
    matplotlib Axes
        Each signature is a bar container.

    {raises: bad plot}

    References
    ----------
    L. Alexandrov et al. (2020). The repertoire of mutational signatures in human cancer.
    Nature 578.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame([[0.7, 0.3]], ["SBS1"], ["A[C>T]G", "T[C>T]G"])
    >>> ax = pb.plotting.plot_signatures(table)
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['SBS1']
    """
    topics = topics_of(model, "model")
    places = _places(topics.vocabulary)
    n_known = len(topics.rows)
    if signatures is None:
        rows = list(range(n_known))
    else:
        rows = [checks.whole_number("signatures", row, 0, n_known - 1) for row in signatures]
    known = [str(name) for name in getattr(model, "index", range(n_known))]
    names = [known[row] for row in rows] if labels is None else list(labels)
    if len(names) != len(rows):
        raise InvalidArgumentError(
            f"{argument('labels')} has {len(names)} names for {len(rows)} signatures"
        )
    ax = axes_or_new(ax, 10.0, 0.7 + 1.1 * len(rows))
    highest = float(topics.rows[rows].max())
    colours = np.repeat([colour or foreground() for colour in _COLOURS.values()], 16)[places]
    bases = [-(1 + _GAP) * highest * number for number in range(len(rows))]
    for row, base in zip(rows, bases, strict=True):
        ax.bar(places, topics.rows[row], bottom=base, color=colours.tolist(), width=0.8)
        ax.axhline(base, color="grey", linewidth=0.6)
    ax.set_yticks(bases, names)
    ax.set_xticks(np.arange(6) * 16 + 7.5, list(_COLOURS))
    ax.tick_params(length=0)
    ax.set_xlim(-1, 96)
    ax.set_ylim(bases[-1], highest * 1.05)
    ax.spines[:].set_visible(False)
    ax.set_xlabel(f"substitution, by neighbouring bases; highest bar: {highest:.0%}")
    return ax


def is_channel(word: Any) -> bool:
    """Whether a word is one of the 96 channels."""
    return str(word) in _CHANNELS


def _places(vocabulary: Any) -> Any:
    """Position of each channel among the 96."""
    words = [] if vocabulary is None else list(map(str, vocabulary))
    for word in words:
        if not is_channel(word):
            raise InvalidArgumentError(f"{word!r} is not a channel like 'A[C>T]G'")
    if not words:
        raise InvalidArgumentError(
            "the signatures have no channels: train on counts whose words are like 'A[C>T]G'"
        )
    return np.array([_CHANNELS.index(word) for word in words])
