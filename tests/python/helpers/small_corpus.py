"""A corpus of three documents."""

import numpy as np

DENSE = np.array([[2, 0, 1], [0, 0, 0], [0, 3, 0]])
WORDS, IDS = ["urn", "ball", "colour"], ["a", "b", "c"]


def dense(corpus):
    return corpus.counts.toarray().tolist()
