"""NumPy archives: those of ``scipy.sparse.save_npz``, with words and ids beside the matrix."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from polyabayes._support.files import content_of, open_binary, reading, replacing
from polyabayes.data.corpus import Corpus
from polyabayes.data.counts import Words
from polyabayes.io.vocabularies import with_vocabulary


def read_npz(path: Path, vocabulary: Words | None = None) -> Corpus:
    """Read a sparse matrix and, if they are there, its words and ids.

    Parameters
    ----------
    path : Path
        A file of :func:`polyabayes.io.write_corpus` or ``scipy.sparse.save_npz``.
    vocabulary : ndarray of str, shape (n_words,), optional
        The words; where the file has words of its own, its columns are put in this order.

    Returns
    -------
    Corpus
        The counts, words and ids.
    """
    with open_binary(path) as stream, reading(path):
        matrix = sparse.load_npz(stream)
        stream.seek(0)
        with np.load(stream, allow_pickle=False) as archive:
            words, ids = (archive.get(name) for name in ("vocabulary", "ids"))
    with content_of(path):
        corpus = Corpus(matrix, words, ids)
    return with_vocabulary(corpus, vocabulary)


def write_npz(corpus: Corpus, path: Path) -> None:
    """Write counts, words and ids; ``scipy.sparse.load_npz`` reads the counts back too.

    Parameters
    ----------
    corpus : Corpus
        The documents.
    path : Path
        The file.
    """
    counts = corpus.counts
    arrays: dict[str, Any] = {
        "format": np.array(b"csr"),
        "shape": np.array(counts.shape),
        "data": counts.data,
        "indices": counts.indices,
        "indptr": counts.indptr,
    }
    for name, labels in (("vocabulary", corpus.vocabulary), ("ids", corpus.ids)):
        if labels is not None:
            arrays[name] = labels.astype(str)
    with replacing(path) as handle:
        np.savez_compressed(handle, **arrays)
