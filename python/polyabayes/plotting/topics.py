"""Plot of topics as their most probable words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polyabayes._support import checks
from polyabayes._support.arrays import Floats
from polyabayes.data.counts import words_of
from polyabayes.exceptions import InvalidArgumentError, InvalidTypeError
from polyabayes.models.fitted_topics import TopicModel, fitted_model, labels_of
from polyabayes.models.pfa import PoissonFactorAnalysis
from polyabayes.plotting.axes import BLUE, Axes, axes_or_new, shortened

_DEFAULT_TOPICS = 8
_COLUMNS = 4
_LONGEST_WORD, _LONGEST_TITLE = 26, 16

# Space for the number beside a column, and gap between columns, in units of the widest bar.
_NUMBER_ROOM = 0.22
_GAP = 0.14
# Space for the title of a block, and gap below the block, in units of a bar.
_TITLE_ROOM = 1.0
_BLOCK_GAP = 0.9


def plot_topics(
    model: Any,
    n_words: int = 8,
    topics: Sequence[int] | NDArray[np.integer[Any]] | None = None,
    vocabulary: Any = None,
    ax: Axes | None = None,
) -> Axes:
    """Plot the most probable words of topics, with a block of bars for each topic.

    Width and label of a bar are the word's weight in ``components_``; all bars have the same scale.
    The title of a block shows the topic's share of the training tokens. For a model that was not
    trained here, it shows the topic's share of the prior mean (LDA) or of the mean rate of tokens
    (gamma-Poisson), unless all topics have the same share.

    Parameters
    ----------
    model : LatentDirichletAllocation, PoissonFactorAnalysis or foreign model
        Fitted, or made by ``from_parameters``; a Pipeline uses the words of its vectoriser.
    n_words : int, default=8
        Number of words per topic.
    topics : sequence of int, optional
        Topics as rows of ``components_``, in this order; default: the 8 topics with the largest
        shares.
    vocabulary : sequence of str, shape (n_words_of_the_model,), or fitted vectoriser, optional
        The words; default: the vocabulary of the model, else names such as "word 17".
    {ax}

    Returns
    -------
    matplotlib Axes
        Titles and words are texts of the axes; each topic is a bar container.

    {raises: bad plot}

    Examples
    --------
    >>> ax = pb.plotting.plot_topics(model, n_words=3)
    >>> len(ax.patches)  # a bar a word
    6
    """
    model = fitted_model(model)
    n_shown = min(checks.whole_number("n_words", n_words), model.n_features_in_)
    weights, of = _topic_weights(model)
    with_shares = not np.allclose(weights, weights[0], rtol=1e-9, atol=0)
    chosen = _chosen(topics, weights)
    words = words_of(vocabulary, model.n_features_in_, "the model")
    if words is None:
        words = model.vocabulary_
    n_columns = min(_COLUMNS, len(chosen))
    n_rows = -(-len(chosen) // n_columns)
    ax = axes_or_new(ax, 1.8 * n_columns, 0.3 + n_rows * (0.5 + 0.23 * n_shown))

    widest = float(model.components_[chosen].max()) or 1.0
    column_width = widest * (1 + _NUMBER_ROOM)
    block_height = n_shown + _TITLE_ROOM + _BLOCK_GAP
    for block, topic in enumerate(chosen):
        row, column = divmod(block, n_columns)
        left = column * (column_width + widest * _GAP)
        top = row * block_height
        title = shortened(labels_of(model, 0)[topic], _LONGEST_TITLE)
        if with_shares:
            title += f"  ({weights[topic] / weights.sum():.0%})"
        ax.text(left, top, title, weight="bold", va="center", size="medium")
        own = model.components_[topic]
        best = np.argsort(-own, kind="stable")[:n_shown]
        heights = top + _TITLE_ROOM + np.arange(n_shown)
        ax.barh(heights, own[best], height=0.84, left=left, color=BLUE, alpha=0.3, linewidth=0)
        for word, y in zip(best.tolist(), heights.tolist(), strict=True):
            name = f"word {word}" if words is None else shortened(str(words[word]), _LONGEST_WORD)
            # An offset in points keeps the gap to the edge of the bar for any size of the axes.
            offset: dict[str, Any] = {"textcoords": "offset points", "size": "small"}
            ax.annotate(name, (left, y), (4, 0), va="center_baseline", **offset)
            right: dict[str, Any] = {"ha": "right", "size": "x-small", "alpha": 0.6}
            number = _number(own[word])
            ax.text(left + column_width, y, number, va="center_baseline", **right)
    ax.set_xlim(0, n_columns * column_width + (n_columns - 1) * widest * _GAP)
    ax.set_ylim(n_rows * block_height - _BLOCK_GAP - 0.3, -_TITLE_ROOM / 2)
    ax.set_xticks([])
    ax.set_yticks([])
    ax.spines[:].set_visible(False)
    caption = "" if len(chosen) == len(weights) else f"{len(chosen)} of {len(weights)} topics; "
    caption += "bars and numbers: weight of a word in the topic"
    if with_shares:
        caption += f"; in brackets: share of the topic in {of}"
    ax.set_xlabel(caption, size="small", loc="left")
    return ax


def _topic_weights(model: TopicModel) -> tuple[Floats, str]:
    """Training tokens; else the prior, or mean tokens (gamma-Poisson); and what has the tokens."""
    counts = np.asarray(getattr(model, "topic_counts_", 0.0), dtype=np.float64)
    if counts.sum() > 0:
        return counts, "the training tokens"
    if isinstance(model, PoissonFactorAnalysis):
        rate = model.shape_ * model.probability_ / (1.0 - model.probability_)
        return np.asarray(rate * model.components_.sum(axis=1)), "a mean document"
    return np.asarray(model.doc_topic_prior_), "a mean document"


def _chosen(topics: Any, weights: Floats) -> list[int]:
    if topics is None:
        # Rounded, so that rounding errors do not order equal topics.
        order = np.argsort(-np.round(weights / weights.max(), 9), kind="stable")
        return [int(topic) for topic in order[:_DEFAULT_TOPICS]]
    try:
        rows = np.asarray(topics)
    except ValueError:
        rows = np.zeros(0)
    if rows.ndim != 1 or not rows.size or rows.dtype.kind not in "iu":
        raise InvalidTypeError(
            f"topics must be a sequence of ints, at least one, got {topics!r:.100}"
        )
    outside = rows[(rows < 0) | (rows >= len(weights))]
    if len(outside):
        raise InvalidArgumentError(
            f"topics: there is no topic {outside[0]}; the model has topics 0 to {len(weights) - 1}"
        )
    return [int(row) for row in rows]


def _number(weight: float) -> str:
    return f"{weight:.3f}" if weight >= 0.0005 or weight == 0 else f"{weight:.0e}"
