"""One size trained without one fold and scored on it: the unit of work of a choice."""

from __future__ import annotations

import copy
import time
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from polyabayes._support.warnings import quiet
from polyabayes.data.corpus import Corpus
from polyabayes.likelihood.result import LogLikelihood
from polyabayes.likelihood.scoring import log_likelihood
from polyabayes.models.latent_draws import TokenTopics
from polyabayes.sizes.choice.comparable import comparable
from polyabayes.topics.coherence import coherence
from polyabayes.topics.fitted import probabilities

# Words by which topics of different fits are matched, the most frequent ones.
_MATCHED_WORDS = 1_000
_TOP_WORDS = 10
# Temperatures of a score: two a topic. On blog posts of 200 tokens, 20 to 200 topics, values are
# then low by at most 0.001 nats per token, and a choice needs no more.
_TEMPERATURES, _TEMPERATURES_PER_TOPIC = 100, 2
# Replicates run in the lanes of one annealing run: fewer take the same time. Documents of many
# tokens of each word, as mutations by channel, are scored by draws of topic weights, one replicate
# after the other: with up to 16 topics four have errors below 0.001 nats per token there.
_REPLICATES = 16
_FEW_REPLICATES, _REPEATS, _FEW_TOPICS = 4, 8, 16
# Least pseudo-count of a topic in a score, and its least share of the largest. Smaller ones take
# moves of whole topics, which with 200 topics on AP take ten times as long, and raising them there
# changes values by 0.0001 nats per token.
_LEAST_PSEUDO_COUNT, _LEAST_SHARE = 0.0011, 0.011
# Tokens of a fold that are scored: differences between sizes then have errors below 0.003 nats per
# token. And documents at the least, where these are long.
_SCORED_TOKENS, _SCORED_DOCUMENTS = 20_000, 100


# Topics from which on fits take the time of a choice: larger ones grow from smaller ones.
SHARED_SIZE = 32


class FoldFit(NamedTuple):
    """Result of one fit on one fold.

    `values` are ln p of the scored documents in nats, -inf where the model cannot produce one;
    `figures` are coherence (NPMI over the training documents) and exclusivity; `topics` are
    probabilities of the most frequent words, for the stability over folds; `assignments` are topics
    of all tokens of the training documents, from which larger fits grow, or none; `seconds` is the
    time of fit and scores.
    """

    size: int
    fold: int
    values: NDArray[np.float64]
    std_errors: NDArray[np.float64]
    figures: NDArray[np.float64]
    topics: NDArray[np.float32]
    assignments: NDArray[np.uint16]
    seconds: float


FIGURES = ("coherence", "exclusivity")
ARRAYS = ("values", "std_errors", "figures", "topics", "assignments")


def frequent_words(corpus: Corpus) -> NDArray[np.int64]:
    """Columns of the words by which topics of different fits are matched."""
    totals = np.asarray(corpus.counts.sum(axis=0)).ravel()
    return np.argsort(-totals, kind="stable")[:_MATCHED_WORDS]


def fit_and_score(
    model: Any,
    train: Corpus,
    scored: Corpus,
    words: NDArray[np.int64],
    size: int,
    fold: int,
    seed: int,
    smaller: NDArray[np.uint16] | None,
) -> FoldFit:
    """Train a clone of `model` with `size` topics on some documents and score others.

    `words` are columns of the topics to keep. The seed is keyed by the size and the fold;
    `smaller` are topics of all tokens in a smaller fit, from which this one grows.
    """
    began = time.perf_counter()
    grown_from = None if smaller is None else TokenTopics(train, smaller)
    fitted = comparable(model, size, seed, grown_from)
    kept: list[NDArray[np.uint16]] = [np.empty(0, np.uint16)]

    def keep(state: Any) -> None:
        kept.append(state.posterior_draw("z")["z"])

    looks = {"callback": keep, "eval_every": fitted.max_iter} if is_shared(fitted, size) else {}
    with quiet():
        fitted.fit(train, **looks)
        scores = score(fitted, scored, seed)
        figures = _figures(fitted, train)
    return FoldFit(
        size,
        fold,
        scores.values,
        scores.std_errors,
        figures,
        # In the order of storage: sums over a fit that was read again have the same bits.
        np.ascontiguousarray(probabilities(fitted)[:, words], dtype=np.float32),
        kept[-1],
        time.perf_counter() - began,
    )


def is_shared(model: Any, size: int) -> bool:
    """Whether larger fits grow from a fit of this size."""
    return size >= SHARED_SIZE and model._samples()


def n_scored(documents: Corpus) -> int:
    """How many documents of a fold are scored, the first ones."""
    n_tokens = np.cumsum(documents._lengths())
    enough = int(np.searchsorted(n_tokens, _SCORED_TOKENS)) + 1
    return min(max(enough, _SCORED_DOCUMENTS), documents.n_documents)


def score(fitted: Any, documents: Corpus, seed: int) -> LogLikelihood:
    """Ln p of documents, as sequences of given length, by short annealing runs in many lanes."""
    fitted = _without_rare_topics(fitted)
    n_topics = len(fitted.components_)
    is_drawn = n_topics <= _FEW_TOPICS and documents.n_tokens >= _REPEATS * documents.counts.nnz
    return log_likelihood(
        fitted,
        documents,
        "annealed",
        event="sequence",
        given_length=True,
        n_samples=max(_TEMPERATURES, _TEMPERATURES_PER_TOPIC * n_topics),
        n_replicates=_FEW_REPLICATES if is_drawn else _REPLICATES,
        random_state=seed,
        n_jobs=fitted.n_jobs,
    )


def _without_rare_topics(fitted: Any) -> Any:
    """The model with its smallest pseudo-counts raised a little."""
    name = "doc_topic_prior_" if hasattr(fitted, "doc_topic_prior_") else "shape_"
    pseudo_counts = getattr(fitted, name)
    made = copy.copy(fitted)
    least = min(_LEAST_PSEUDO_COUNT, _LEAST_SHARE * float(pseudo_counts.max()))
    setattr(made, name, np.maximum(pseudo_counts, least))
    return made


def _figures(fitted: Any, train: Corpus) -> NDArray[np.float64]:
    topics = probabilities(fitted)
    n_words = min(_TOP_WORDS, fitted.n_features_in_)
    top = np.argsort(-topics, axis=1, kind="stable")[:, :n_words]
    exclusive = np.take_along_axis(topics / topics.sum(axis=0).clip(1e-300), top, axis=1)
    coherent = coherence(fitted, train, n_words=n_words) if n_words > 1 else np.full(1, np.nan)
    known = coherent[np.isfinite(coherent)]
    return np.array([known.mean() if len(known) else np.nan, exclusive.mean()])


def is_fit(arrays: dict[str, NDArray[Any]], size: int, n_scored: int) -> bool:
    """Whether the arrays of a stored fit are what :func:`fit_and_score` gives."""
    if arrays.keys() != set(ARRAYS):
        return False
    kinds = "".join(arrays[name].dtype.kind for name in ARRAYS)
    if kinds != "ffffu" or (arrays["assignments"] >= size).any():
        return False
    shapes = [arrays[name].shape for name in ARRAYS[:3]]
    if shapes != [(n_scored,), (n_scored,), (len(FIGURES),)] or len(arrays["topics"]) != size:
        return False
    # A document that the model cannot produce has -inf, and an error that is no number.
    return not np.isnan(arrays["values"]).any() and bool(np.isfinite(arrays["topics"]).all())
