"""Words of living models and their columns, checked once."""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from polyabayes.data.counts import Words, columns_of_words

# Words of each living model with a vocabulary, and their columns. They are kept outside the models,
# so that pickles and copies ignore them.
_columns: WeakKeyDictionary[Any, tuple[Any, Words, dict[str, int]]] = WeakKeyDictionary()


def kept_columns(owner: Any, vocabulary: Any) -> tuple[Words, dict[str, int]]:
    """Checked words and the column of each; made anew only if the words of `owner` changed.

    Words are made read-only, so that the same array has the same words.
    """
    before, words, columns = _columns.get(owner, (None, None, None))
    is_same = before is vocabulary and isinstance(vocabulary, np.ndarray)
    if words is None or columns is None or not (is_same and not vocabulary.flags.writeable):
        words, columns = columns_of_words(vocabulary)
        if isinstance(vocabulary, np.ndarray):
            vocabulary.flags.writeable = False
        _columns[owner] = vocabulary, words, columns
    return words, columns
