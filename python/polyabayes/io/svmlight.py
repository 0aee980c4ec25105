"""svmlight and libsvm: ``label word:count word:count ...``; labels are left out."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from sklearn.datasets import load_svmlight_file

from polyabayes._support.files import content_of, open_binary, reading
from polyabayes.data.corpus import Corpus
from polyabayes.data.counts import Words
from polyabayes.io.vocabularies import size_of_vocabulary


def read_svmlight(
    path: Path,
    vocabulary: Words | None = None,
    *,
    n_words: int | None = None,
    zero_based: bool | Literal["auto"] = "auto",
) -> Corpus:
    """Read a svmlight file, plain or gzipped.

    Parameters
    ----------
    path : Path
        The file.
    vocabulary : ndarray of str, shape (n_words,), optional
        The words.
    n_words : int, optional
        Number of words; the largest index if there is no vocabulary either.
    zero_based : bool or "auto", default="auto"
        Whether words are counted from 0; "auto" takes 1 unless an index 0 occurs.

    Returns
    -------
    Corpus
        The counts.
    """
    size = size_of_vocabulary(vocabulary, n_words)
    with open_binary(path) as stream, reading(path):
        matrix, _ = load_svmlight_file(stream, n_features=size, zero_based=zero_based)
    with content_of(path):
        return Corpus(matrix, vocabulary)
