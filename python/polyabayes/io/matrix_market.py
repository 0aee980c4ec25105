"""Matrix Market: ``.mtx`` and ``.mtx.gz``."""

from __future__ import annotations

from pathlib import Path

from scipy.io import mmread, mmwrite

from polyabayes._support.files import content_of, open_binary, reading, replacing
from polyabayes.data.corpus import Corpus
from polyabayes.data.counts import Words
from polyabayes.io.vocabularies import vocabulary_path, with_vocabulary, write_vocabulary


def read_matrix_market(
    path: Path, vocabulary: Words | None = None, *, transpose: bool = False
) -> Corpus:
    """Read a Matrix Market file.

    Parameters
    ----------
    path : Path
        The file.
    vocabulary : ndarray of str, shape (n_words,), optional
        The words.
    transpose : bool, default=False
        Whether the file has words (genes) in its rows and documents (cells) in its columns.

    Returns
    -------
    Corpus
        The counts.
    """
    with open_binary(path) as stream, reading(path):
        matrix = mmread(stream)
    with content_of(path):
        corpus = Corpus(matrix.T if transpose else matrix)
    return with_vocabulary(corpus, vocabulary)


def write_matrix_market(corpus: Corpus, path: Path) -> None:
    """Write a Matrix Market file, gzipped if it ends in ``.gz``, and its words beside it.

    Parameters
    ----------
    corpus : Corpus
        The documents; their ids are not kept.
    path : Path
        The file. The words, if there are any, go to the same name with ``.vocab``.
    """
    if corpus.vocabulary is not None:
        write_vocabulary(corpus.vocabulary, vocabulary_path(path))
    with replacing(path) as handle:
        mmwrite(handle, corpus.counts, field="integer", symmetry="general")
