"""Other packages on the documents of shards: CPU seconds of a pass, where they are installed."""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import polyabayes as pb

Pass = Callable[[str, int], float]


def _blocks(folder: str) -> Iterator[Any]:
    return (block.counts for block in pb.read_shards(folder).blocks(2_000))


def sklearn_online(folder: str, n_topics: int) -> float:
    from sklearn.decomposition import LatentDirichletAllocation

    model = LatentDirichletAllocation(n_topics, learning_method="online", random_state=0)
    start = time.process_time()
    for counts in _blocks(folder):
        model.partial_fit(counts)
    return time.process_time() - start


def gensim_online(folder: str, n_topics: int) -> float:
    from gensim.matutils import Sparse2Corpus
    from gensim.models import LdaModel

    n_words = pb.read_shards(folder).n_words
    id2word = {word: str(word) for word in range(n_words)}
    model = LdaModel(None, n_topics, id2word, chunksize=2_000, random_state=0)
    start = time.process_time()
    for counts in _blocks(folder):
        model.update(Sparse2Corpus(counts, documents_columns=False))
    return time.process_time() - start


def tomotopy_gibbs(folder: str, n_topics: int) -> float:
    """All documents in memory; a sweep, from a longer run less a shorter one."""
    import tomotopy

    taken = []
    model = tomotopy.LDAModel(k=n_topics, alpha=5.0 / n_topics, eta=0.1, seed=0)
    for counts in _blocks(folder):
        for row in range(counts.shape[0]):
            cells = slice(counts.indptr[row], counts.indptr[row + 1])
            words = np.repeat(counts.indices[cells], counts.data[cells])
            model.add_doc(words.astype(str).tolist())
    for n_sweeps in (2, 6):
        start = time.process_time()
        model.train(n_sweeps, workers=1, show_progress=False)
        taken.append(time.process_time() - start)
    return (taken[1] - taken[0]) / 4


def available() -> list[tuple[str, Pass]]:
    """Those whose package is installed."""
    known: list[tuple[str, str, Pass]] = [
        ("tomotopy", "tomotopy, in memory", tomotopy_gibbs),
        ("gensim", "gensim, online", gensim_online),
        ("sklearn", "scikit-learn, partial_fit", sklearn_online),
    ]
    return [
        (name, function)
        for package, name, function in known
        if importlib.util.find_spec(package) is not None
    ]
