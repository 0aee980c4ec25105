"""Unit of work of a choice: one size, trained without one fold and scored on it."""

import time
from collections.abc import Collection
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from sklearn.base import clone

from polyabayes._support.arrays import Floats, Integers
from polyabayes._support.jackknife import paired_difference
from polyabayes._support.warnings import quiet
from polyabayes.data.corpus import Corpus
from polyabayes.models import LatentDirichletAllocation
from polyabayes.models.fitted_topics import probabilities
from polyabayes.models.fitting import LONG_START
from polyabayes.sizes.choice.held_out_scores import held_out_scores
from polyabayes.topics.coherence import coherence

# Values are those with which ``python -m benches.choice topics`` made its record.

# Number of most frequent words that match topics of different fits.
_MATCHED_WORDS = 1_000
_TOP_WORDS = 10


# Starts of a comparable fit; the best one continues.
_STARTS = 2


def comparable(model: Any, size: int, seed: int) -> Any:
    """A clone with `size` topics and long starts.

    A fit that merges two topics scores below a good fit of the same size, which would favour larger
    sizes. Every size starts afresh with the same number of sweeps: on AP, a fit that continues from
    a smaller size gains 0.02 nats per token by its additional sweeps, which would favour sizes late
    in the chain.
    """
    made = clone(model).set_params(n_components=size, random_state=seed)
    made.set_params(n_init=max(made.n_init, _STARTS))
    made._start = LONG_START
    return made


class FoldFit(NamedTuple):
    """Result of one fit on one fold.

    `values` are those of :func:`held_out_scores`, in nats, -inf where the model cannot produce a
    document; `figures` are coherence (NPMI over the training documents), exclusivity, and those of
    :func:`repeats`; `topics` are probabilities of the most frequent words, for the stability over
    folds; `seconds` is the time of fit and scores.
    """

    size: int
    fold: int
    values: Floats
    std_errors: Floats
    figures: Floats
    topics: NDArray[np.float32]
    seconds: float


FIGURES = ("coherence", "exclusivity", "repeats", "repeats_std_error")
ARRAYS = ("values", "std_errors", "figures", "topics")


def frequent_words(corpus: Corpus) -> Integers:
    """Columns of the words that match topics of different fits."""
    totals = np.asarray(corpus.counts.sum(axis=0)).ravel()
    return np.argsort(-totals, kind="stable")[:_MATCHED_WORDS]


def fit_and_score(
    model: Any, train: Corpus, scored: Corpus, words: Integers, size: int, fold: int, seed: int
) -> FoldFit:
    """Train a clone of `model` with `size` topics on some documents and score others.

    `words` are columns of the topics to keep. The seed depends on the size and the fold.
    """
    began = time.perf_counter()
    fitted = comparable(model, size, seed)
    with quiet():
        fitted.fit(train)
        scores = held_out_scores(fitted, scored, seed)
        figures = np.array([*quality(fitted, train), *repeats(fitted, scored)])
    return FoldFit(
        size,
        fold,
        scores.values,
        scores.std_errors,
        figures,
        # In storage order, so that sums over a fit read from a file have the same bits.
        np.ascontiguousarray(probabilities(fitted)[:, words], dtype=np.float32),
        time.perf_counter() - began,
    )


def repeats(fitted: Any, documents: Corpus) -> tuple[float, float]:
    """How many times as often two tokens of a document are the same word as expected, with error.

    Of an LDA, bursty or not, with one prior for all documents; else NaN. Two tokens have the same
    topic k with probability a_k (a_k + 1) / (A (A + 1)), and then the same word with probability
    (s_k q_k + 1) / (s_k + 1), where q_k is the sum of squares of phi_k.
    """
    if not isinstance(fitted, LatentDirichletAllocation) or fitted.formula is not None:
        return np.nan, np.nan
    prior, topics = fitted.doc_topic_prior_, fitted.components_
    same = (topics**2).sum(axis=1)
    own = same + (1 - same) / (1 + fitted.topic_concentration_)
    pairs = ((prior @ topics) ** 2).sum() + prior @ ((prior + 1) * own - prior * same)
    expected = float(pairs / (prior.sum() * (prior.sum() + 1)))
    counts, lengths = documents.counts.astype(np.float64), documents._lengths().astype(np.float64)
    others = np.asarray(counts.multiply(counts).sum(axis=1)).ravel() - lengths
    found = paired_difference(others / np.maximum(lengths - 1, 1), lengths * (lengths > 1))
    return found.mean / expected, found.std_error / expected


def quality(fitted: Any, documents: Corpus) -> tuple[float, float]:
    """Mean coherence (NPMI over the documents) and exclusivity of the topics."""
    topics = probabilities(fitted)
    n_words = min(_TOP_WORDS, fitted.n_features_in_)
    top = np.argsort(-topics, axis=1, kind="stable")[:, :n_words]
    exclusive = np.take_along_axis(topics / topics.sum(axis=0).clip(1e-300), top, axis=1)
    coherent = coherence(fitted, documents, n_words=n_words) if n_words > 1 else np.full(1, np.nan)
    known = coherent[np.isfinite(coherent)]
    return float(known.mean()) if len(known) else np.nan, float(exclusive.mean())


def is_fit(arrays: dict[str, NDArray[Any]], size: int, n_scored: int) -> bool:
    """Whether the arrays of a stored fit are valid results of :func:`fit_and_score`."""
    if arrays.keys() != set(ARRAYS):
        return False
    kinds = "".join(arrays[name].dtype.kind for name in ARRAYS)
    if kinds != "ffff":
        return False
    shapes = [arrays[name].shape for name in ARRAYS[:3]]
    if shapes != [(n_scored,), (n_scored,), (len(FIGURES),)] or len(arrays["topics"]) != size:
        return False
    # A document that the model cannot produce has value -inf and error NaN.
    return not np.isnan(arrays["values"]).any() and bool(np.isfinite(arrays["topics"]).all())


def mean_figures(fits: Collection[FoldFit]) -> dict[str, float]:
    """Means of the figures over folds; NaN for undefined ones."""
    table = np.array([fit.figures for fit in fits])
    known = np.isfinite(table)
    sums, counts = np.where(known, table, 0.0).sum(axis=0), known.sum(axis=0)
    means = [float(s / n) if n else float("nan") for s, n in zip(sums, counts, strict=True)]
    return dict(zip(FIGURES, means, strict=True))


def stability(fits: Collection[FoldFit]) -> float:
    """Mean cosine of topics of the first fit and their matches in the others; NaN for one fit."""
    if len(fits) < 2:
        return float("nan")
    topics = [fit.topics for fit in fits]
    units = [rows / np.linalg.norm(rows, axis=1, keepdims=True).clip(1e-30) for rows in topics]
    found = []
    for other in units[1:]:
        cosines = units[0] @ other.T
        pairs = linear_sum_assignment(-cosines)
        found.append(float(cosines[pairs].mean()))
    return float(np.mean(found))
