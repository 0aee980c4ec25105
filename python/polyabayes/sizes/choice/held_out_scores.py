"""Scores of held-out documents for a choice.

Differences between sizes vary by about 20 nats between documents. More documents reduce their
error; better scores of each document hardly do.
"""

import copy
from typing import Any, NamedTuple

import numpy as np

from polyabayes._support.arrays import Floats, Integers
from polyabayes.data.corpus import Corpus
from polyabayes.likelihood.result import LogLikelihood
from polyabayes.likelihood.scoring import log_likelihood

# Temperatures of a score, and per topic. On blog posts of 200 tokens, 20 to 200 topics, values are
# then low by at most 0.001 nats per token, which is enough for a choice.
_TEMPERATURES, _TEMPERATURES_PER_TOPIC = 100, 2
# Replicates run in the lanes of one annealing run: fewer take the same time. Documents of many
# tokens of each word, as mutations by channel, are scored by draws of topic weights, one replicate
# after the other: with up to 16 topics four have errors below 0.001 nats per token there.
_REPLICATES = 16
_FEW_REPLICATES, _REPEATS, _FEW_TOPICS = 4, 8, 16
# Smallest pseudo-count of a topic in a score, and its smallest share of the largest. Smaller ones
# need moves of whole topics, which take ten times as long with 200 topics on AP; raising them there
# changes values by 0.0001 nats per token.
_LEAST_PSEUDO_COUNT, _LEAST_SHARE = 0.0011, 0.011
# Bursty topics move slowest: none does with a pseudo-count above 1 / temperatures. On planted
# corpora of 32 and 64 topics, that takes a fifth of the time and changes values by 0.0005 nats.
_LEAST_SHARE_OF_BURSTY = 0.1
# Most tokens of a fold whose documents are all annealed, and fewest documents, if these are long.
_ANNEALED_TOKENS, _ANNEALED_DOCUMENTS = 20_000, 100
# Most tokens of larger folds, which are scored by short filters; some documents are also annealed,
# to correct the filters. On AP with 200 topics, filters take a thirtieth of the time of annealing
# and are low by 4 nats per document, with a standard deviation of 4.
_FILTERED_TOKENS, _CORRECTED_TOKENS, _CORRECTED_DOCUMENTS = 500_000, 10_000, 50
_PARTICLES, _FILTERS = 50, 2


class Scores(NamedTuple):
    """One value for each document, and its standard error.

    Sums of values estimate ln p of all documents, and their spread gives the errors of sums and
    differences. With corrected filters, a single value is not ln p of its document: the correction
    is a mean, and an annealed document represents others.
    """

    values: Floats
    std_errors: Floats


def n_scored(documents: Corpus) -> int:
    """Number of documents of a fold to score, the first ones."""
    annealed = _n_first(documents, _ANNEALED_TOKENS, _ANNEALED_DOCUMENTS)
    if _repeats_words(documents):
        return annealed
    return max(annealed, _n_first(documents, _FILTERED_TOKENS, _ANNEALED_DOCUMENTS))


def annealed_part(documents: Corpus) -> Integers:
    """Random part of the scored documents that is annealed, the same for every size."""
    n_documents = documents.n_documents
    annealed = _n_first(documents, _ANNEALED_TOKENS, _ANNEALED_DOCUMENTS)
    if annealed == n_documents or _repeats_words(documents):
        return np.arange(n_documents)
    order = np.random.default_rng(n_documents).permutation(n_documents)
    n_part = _n_first(documents[order], _CORRECTED_TOKENS, _CORRECTED_DOCUMENTS)
    return np.sort(order[:n_part])


def held_out_scores(fitted: Any, documents: Corpus, seed: int) -> Scores:
    """Ln p of documents, as sequences of given length: all by annealing, or by corrected filters.

    The correction is a difference estimator: the mean excess per token of annealing over filters,
    in a random part of the documents, is added to all documents. The residuals of the excesses are
    added to the documents of the part, weighted by the documents that each represents, so that the
    spread of the values gives the error of the estimate (Särndal, Swensson and Wretman 1992, Model
    assisted survey sampling, 6.3).
    """
    fitted = _without_rare_topics(fitted)
    part = annealed_part(documents)
    exact = annealed(fitted, documents[part], seed)
    if len(part) == documents.n_documents:
        return Scores(exact.values, exact.std_errors)
    values, std_errors = filtered(fitted, documents, seed).values.copy(), np.zeros(len(documents))
    lengths = documents._lengths().astype(np.float64)
    is_known = np.isfinite(values[part]) & np.isfinite(exact.values)
    impossible, part = part[~is_known], part[is_known]
    excess = exact.values[is_known] - values[part]
    n_tokens = max(float(lengths[part].sum()), 1.0)
    mean = float(excess.sum()) / n_tokens
    apart = excess - mean * lengths[part]
    # Number of documents that one in the part represents, itself included.
    weight = float(lengths.sum()) / n_tokens
    values += mean * lengths
    values[part] += weight * apart
    values[impossible] = -np.inf
    sampling = apart * np.sqrt(1 - 1 / weight)
    std_errors[part] = weight * np.hypot(exact.std_errors[is_known], sampling)
    return Scores(values, std_errors)


def annealed(fitted: Any, documents: Corpus, seed: int) -> LogLikelihood:
    """Scores by short annealing runs in many lanes."""
    n_samples = _n_temperatures(fitted)
    is_drawn = len(fitted.components_) <= _FEW_TOPICS and _repeats_words(documents)
    n_replicates = _FEW_REPLICATES if is_drawn else _REPLICATES
    return _scored(
        fitted, documents, "annealed", seed, n_samples=n_samples, n_replicates=n_replicates
    )


def _n_temperatures(fitted: Any) -> int:
    return max(_TEMPERATURES, _TEMPERATURES_PER_TOPIC * len(fitted.components_))


def filtered(fitted: Any, documents: Corpus, seed: int) -> LogLikelihood:
    """Scores by particle filters that look one token ahead: cheap, and low by some nats."""
    options = {"n_particles": _PARTICLES, "n_replicates": _FILTERS}
    return _scored(fitted, documents, "smc-lookahead", seed, **options)


def _scored(fitted: Any, documents: Corpus, method: str, seed: int, **effort: Any) -> LogLikelihood:
    return log_likelihood(
        fitted,
        documents,
        method,
        event="sequence",
        given_length=True,
        random_state=seed,
        n_jobs=fitted.n_jobs,
        **effort,
    )


def _n_first(documents: Corpus, n_tokens: int, n_documents: int) -> int:
    """Number of first documents with `n_tokens` tokens in all, at least `n_documents`."""
    cumulated = np.cumsum(documents._lengths())
    enough = int(np.searchsorted(cumulated, n_tokens)) + 1
    return min(max(enough, n_documents), documents.n_documents)


def _repeats_words(documents: Corpus) -> bool:
    """Whether documents have many tokens of each word."""
    return bool(documents.n_tokens >= _REPEATS * documents.counts.nnz)


def _without_rare_topics(fitted: Any) -> Any:
    """The model with its smallest pseudo-counts raised slightly."""
    name = "doc_topic_prior_" if hasattr(fitted, "doc_topic_prior_") else "shape_"
    pseudo_counts = getattr(fitted, name)
    made = copy.copy(fitted)
    least, share = _LEAST_PSEUDO_COUNT, _LEAST_SHARE
    if np.isfinite(getattr(fitted, "topic_concentration_", np.inf)).any():
        least, share = 1.01 / _n_temperatures(fitted), _LEAST_SHARE_OF_BURSTY
    least = min(least, share * float(pseudo_counts.max()))
    setattr(made, name, np.maximum(pseudo_counts, least))
    return made
