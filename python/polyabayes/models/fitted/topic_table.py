"""Table of topics by weight."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polyabayes._support.arrays import Floats, Integers
from polyabayes._support.output.tables import columns_of, counted, html_table, text_table
from polyabayes._support.results import Record

_TOPICS_SHOWN, _WORDS_SHOWN = 20, 10


@dataclass(frozen=True, repr=False, eq=False)
class TopicTable(Record):
    """Topics by weight, largest first; in its table, the words of a topic are one column.

    Attributes
    ----------
    topic : ndarray of int, shape (n_components,)
        Row of ``components_``.
    weight : ndarray, shape (n_components,)
        Share of the training tokens.
    n_tokens : ndarray, shape (n_components,)
        Training tokens in the last state.
    words : ndarray of object, shape (n_components, n_words)
        The most probable words, by decreasing probability; their indices if the model has no
        vocabulary.
    names : list of str or None
        Names of the topics, if they have some; they take the place of numbers in its table.

    Examples
    --------
    >>> counts = [[3, 1, 0, 0], [2, 2, 0, 0], [0, 0, 1, 3], [0, 0, 2, 2]]
    >>> lda = pb.LatentDirichletAllocation(2, max_iter=20, random_state=0).fit(counts)
    >>> lda.topic_table(n_words=3).words.shape
    (2, 3)
    >>> lda.topic_table(n_words=3).to_frame().columns.tolist()
    ['topic', 'weight', 'n_tokens', 'words']
    """

    topic: Integers
    weight: Floats
    n_tokens: NDArray[Any]
    words: NDArray[np.object_]
    names: list[str] | None = None

    def __repr__(self) -> str:
        topics = counted(len(self.topic), "topic")
        return f"<TopicTable: {topics} of {int(self.n_tokens.sum()):,} tokens>"

    def __str__(self) -> str:
        return text_table(columns_of(self._columns()))

    def _columns(self) -> dict[str, Any]:
        words = [" ".join(map(str, row)) for row in self.words]
        found = {**super()._columns(), "words": words}
        del found["names"]
        return found if self.names is None else {**found, "topic": self.names}


def topic_table(
    components: Floats,
    n_tokens: NDArray[Any],
    vocabulary: NDArray[np.object_] | None,
    n_words: int,
    names: list[str] | None = None,
) -> TopicTable:
    """Order topics by tokens, and the words of each by probability."""
    order = np.argsort(-n_tokens, kind="stable")
    best = np.argsort(-components[order], axis=1, kind="stable")[:, :n_words]
    words = best.astype(object) if vocabulary is None else np.asarray(vocabulary, object)[best]
    named = None if names is None else [names[topic] for topic in order]
    return TopicTable(order, n_tokens[order] / n_tokens.sum(), n_tokens[order], words, named)


def topics_html(components: Floats, vocabulary: NDArray[np.object_] | None, caption: str) -> str:
    """The first topics by their most probable words, for notebooks."""
    shown = components[:_TOPICS_SHOWN]
    best = np.argsort(-shown, axis=1, kind="stable")[:, :_WORDS_SHOWN]
    words = best if vocabulary is None else vocabulary[best]
    if len(components) > len(shown):
        caption += f"; the first {len(shown)}"
    columns = {"topic": np.arange(len(shown)), "words": [" ".join(map(str, row)) for row in words]}
    return html_table(columns_of(columns), caption)
