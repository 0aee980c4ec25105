"""One size trained without one fold and scored on it: the unit of work of a choice."""

from __future__ import annotations

import time
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from polyabayes._support.storage import read_arrays, write_arrays
from polyabayes.data.corpus import Corpus
from polyabayes.exceptions import PolyabayesWarning
from polyabayes.likelihood.scoring import log_likelihood
from polyabayes.models.fitting import LONG_START
from polyabayes.sizes.choice import criteria
from polyabayes.topics.coherence import coherence
from polyabayes.topics.fitted import probabilities

# Words by which topics of different fits are matched, the most frequent ones.
MATCHED_WORDS = 1_000
_TOP_WORDS = 10
# Replicates of the scores: their error is a hundredth of that between documents even so.
REPLICATES = 4
# Starts of a fit, of which the best goes on.
STARTS = 2
# Sweeps whose p(w | z) enters the harmonic mean.
_HARMONIC_LOOKS = 20


class FoldFit(NamedTuple):
    """Result of one fit on one fold.

    Attributes
    ----------
    size, fold : int
        Number of topics; the fold that was held out.
    values, std_errors : ndarray of shape (n_held_out,)
        ln p of the held-out documents, in nats; -inf where the model cannot produce one.
    figures : ndarray of shape (6,)
        Coherence (NPMI over the training documents), exclusivity, and the criteria of Griffiths,
        Cao, Arun and Deveaud.
    topics : ndarray of float32, shape (size, n_matched_words)
        Probabilities of the most frequent words, for the stability over folds.
    seconds : float
        Time of fit and scores.
    """

    size: int
    fold: int
    values: NDArray[np.float64]
    std_errors: NDArray[np.float64]
    figures: NDArray[np.float64]
    topics: NDArray[np.float32]
    seconds: float


FIGURES = (
    "coherence",
    "exclusivity",
    "griffiths_2004",
    "cao_juan_2009",
    "arun_2010",
    "deveaud_2014",
)


def fit_and_score(
    model: Any, corpus: Corpus, held_out: NDArray[np.bool_], size: int, fold: int, seed: int
) -> FoldFit:
    """Train a clone of `model` with `size` topics on some documents and score the others.

    Parameters
    ----------
    model : LatentDirichletAllocation or PoissonFactorAnalysis
        Its parameters are kept, but for `n_components` and `random_state`.
    corpus : Corpus
        All documents.
    held_out : ndarray of bool, shape (n_documents,)
        Those of the fold.
    size, fold : int
        What the result is of.
    seed : int
        Of the fit and of the scores; keyed by the size and the fold, so that the order in which
        sizes are tried does not matter.
    """
    began = time.perf_counter()
    train, test = corpus[~held_out], corpus[held_out]
    fitted = untrained(model, size, seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PolyabayesWarning)
        looks = fit_and_look(fitted, train)
        scores = log_likelihood(
            fitted,
            test,
            event="sequence",
            given_length=True,
            n_replicates=REPLICATES,
            random_state=seed,
            n_jobs=fitted.n_jobs,
        )
        figures = _figures(fitted, train, looks)
    return FoldFit(
        size,
        fold,
        scores.values,
        scores.std_errors,
        figures,
        _frequent(fitted, corpus),
        time.perf_counter() - began,
    )


def untrained(model: Any, size: int, seed: int) -> Any:
    """A clone with so many topics, whose start is long.

    A fit that merges two topics scores below as many topics well found, so that larger sizes win.
    """
    made = clone(model).set_params(n_components=size, random_state=seed)
    made.set_params(n_init=max(made.n_init, STARTS))
    made._longer_start = LONG_START
    return made


def fit_and_look(fitted: Any, train: Corpus) -> list[float]:
    """Train; give ln p(words | topics of the tokens) of some sweeps, where the sampler has such."""
    looks: list[float] = []
    samples_topics = type(fitted).__name__ == "LatentDirichletAllocation" and fitted._samples()
    if not samples_topics:
        fitted.fit(train)
        return looks

    def look(state: Any) -> None:
        if state.n_iter_ > fitted.max_iter // 2:
            counts = state._last_state().counts
            prior = float(state.topic_word_prior_)
            looks.append(criteria.log_p_words_given_topics(counts.toarray(), prior))

    every = max(1, fitted.max_iter // (2 * _HARMONIC_LOOKS))
    fitted.fit(train, callback=look, eval_every=every)
    return looks


def _figures(fitted: Any, train: Corpus, looks: list[float]) -> NDArray[np.float64]:
    topics = probabilities(fitted)
    n_words = min(_TOP_WORDS, fitted.n_features_in_)
    top = np.argsort(-topics, axis=1, kind="stable")[:, :n_words]
    exclusive = np.take_along_axis(topics / topics.sum(axis=0).clip(1e-300), top, axis=1)
    lengths = np.asarray(train.counts.sum(axis=1), dtype=np.float64).ravel()
    weights = np.asarray(fitted.transform(train)) * fitted.components_.sum(axis=1)
    coherent = coherence(fitted, train, n_words=n_words) if n_words > 1 else np.full(1, np.nan)
    return np.array(
        [
            np.nanmean(coherent) if np.isfinite(coherent).any() else np.nan,
            exclusive.mean(),
            criteria.griffiths_2004(np.array(looks)),
            criteria.cao_juan_2009(topics),
            criteria.arun_2010(topics, weights / weights.sum(axis=1, keepdims=True), lengths),
            criteria.deveaud_2014(topics),
        ]
    )


def _frequent(fitted: Any, corpus: Corpus) -> NDArray[np.float32]:
    totals = np.asarray(corpus.counts.sum(axis=0)).ravel()
    columns = np.argsort(-totals, kind="stable")[:MATCHED_WORDS]
    # In the order of storage: sums over a fit that was read again have the same bits.
    return np.ascontiguousarray(probabilities(fitted)[:, columns], dtype=np.float32)


def write_fit(path: Path, fit: FoldFit) -> None:
    """Store a fit; the file takes its name only when it is complete."""
    header = {"size": fit.size, "fold": fit.fold, "seconds": fit.seconds}
    arrays = {name: getattr(fit, name) for name in ("values", "std_errors", "figures", "topics")}
    write_arrays(path, header, arrays)


def read_fit(path: Path) -> FoldFit:
    """Read what :func:`write_fit` wrote."""
    header, arrays = read_arrays(path)
    return FoldFit(
        int(header["size"]), int(header["fold"]), seconds=float(header["seconds"]), **arrays
    )


def is_fit(fit: FoldFit, n_held_out: int, n_words: int) -> bool:
    """Whether the arrays of a stored fit are what :func:`fit_and_score` gives."""
    expected: list[tuple[NDArray[Any], tuple[int, ...]]] = [
        (fit.values, (n_held_out,)),
        (fit.std_errors, (n_held_out,)),
        (fit.figures, (len(FIGURES),)),
        (fit.topics, (fit.size, n_words)),
    ]
    if any(array.shape != shape or array.dtype.kind != "f" for array, shape in expected):
        return False
    # A document that the model cannot produce has -inf, and an error that is no number.
    return not np.isnan(fit.values).any() and bool(np.isfinite(fit.topics).all())
