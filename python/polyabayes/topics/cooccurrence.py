"""Shares of documents, or of sliding windows, that hold both words of a pair.

The diagonal of each matrix has those that hold a word.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from polyabayes._support import checks
from polyabayes.data.corpus import Corpus
from polyabayes.exceptions import InvalidTypeError

# Most entries of the table of windows in memory.
_BLOCK_ENTRIES = 4_000_000


def in_documents(corpus: Corpus, words: Sequence[str]) -> NDArray[np.float64]:
    """Co-occurrence of words in whole documents; unknown words occur in none."""
    vocabulary: Any = corpus.vocabulary
    column_of = {word: column for column, word in enumerate(vocabulary)}
    known = [row for row, word in enumerate(words) if word in column_of]
    columns = [column_of[words[row]] for row in known]
    held = sparse.csr_matrix(corpus.counts[:, columns], dtype=np.float64)
    held.data[:] = 1.0
    joint = np.zeros((len(words), len(words)))
    joint[np.ix_(known, known)] = sparse.csr_matrix(held.T @ held).toarray()
    return joint / max(corpus.n_documents, 1)


def in_windows(
    texts: Iterable[Sequence[str]], words: Sequence[str], window: int
) -> NDArray[np.float64]:
    """Co-occurrence of words in windows of `window` tokens that slide by one.

    A text shorter than a window is one window. Each window counts a word at most once.
    """
    index = {word: position for position, word in enumerate(words)}
    joint = np.zeros((len(words), len(words)))
    total = n_entries = 0
    rows: list[NDArray[np.int64]] = []
    columns: list[NDArray[np.int64]] = []

    def add_block() -> None:
        nonlocal joint, n_entries
        if rows:
            row, column = np.concatenate(rows), np.concatenate(columns)
            held = sparse.coo_matrix(
                (np.ones(len(row)), (row - row.min(), column)),
                shape=(int(row.max() - row.min()) + 1, len(words)),
            ).tocsr()
            # Repeated words of a window were added up.
            held.data[:] = 1.0
            joint += (held.T @ held).toarray()
        rows.clear()
        columns.clear()
        n_entries = 0

    if checks.is_single(texts) or not isinstance(texts, Iterable):
        raise InvalidTypeError(f"texts must hold sequences of tokens, got {texts!r:.100}")
    for number, text in enumerate(texts):
        if not isinstance(text, Sequence) or isinstance(text, str):
            raise InvalidTypeError(
                f"texts must hold sequences of tokens, got {text!r:.100} for text {number}: divide "
                "it into its words first"
            )
        found = [(position, index[word]) for position, word in enumerate(text) if word in index]
        n_windows = max(1, len(text) - window + 1)
        if found:
            positions, relevant = np.array(found, dtype=np.int64).T
            first = np.maximum(positions - window + 1, 0)
            last = np.minimum(positions, n_windows - 1)
            spans = last - first + 1
            starts = np.repeat(first - np.r_[0, spans.cumsum()[:-1]], spans)
            rows.append(total + starts + np.arange(spans.sum()))
            columns.append(np.repeat(relevant, spans))
            n_entries += int(spans.sum())
        total += n_windows
        if n_entries > _BLOCK_ENTRIES:
            add_block()
    add_block()
    return joint / max(total, 1)
