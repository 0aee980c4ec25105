"""HTML report of a model and a corpus: topics, words, documents, scores."""

from __future__ import annotations

import json
import os
import textwrap
from collections.abc import Sequence
from html import escape
from importlib import resources
from pathlib import Path
from string import Template
from typing import Any

import numpy as np

from polyabayes._support import checks
from polyabayes._support.arrays import Floats
from polyabayes._support.files import checked_path, replacing
from polyabayes._support.random import RandomState
from polyabayes._support.warnings import quiet
from polyabayes.data.corpus import Corpus, of_layer
from polyabayes.exceptions import InvalidArgumentError
from polyabayes.likelihood.foreign import of_measured_words
from polyabayes.likelihood.reliability import warn_of_caveats
from polyabayes.likelihood.result import LogLikelihood
from polyabayes.likelihood.scoring import log_likelihood
from polyabayes.models.fitted_topics import (
    TopicModel,
    fitted_model,
    named_by,
    names,
    principal_coordinates,
    probabilities,
)
from polyabayes.topics.diagnostics import diagnostics, one_each, texts_of, top_documents
from polyabayes.topics.prevalence import TopicPrevalence, profiles

# Weights between probability and lift for which the page holds the best words of every topic.
_LAMBDAS = np.linspace(0, 1, 11)
_BINS = 30
# Characters of a document that the page shows.
_EXCERPT = 280


def report(
    model: Any,
    documents: Any,
    path: str | os.PathLike[str],
    *,
    title: str = "Topics",
    labels: Sequence[str] | None = None,
    texts: str | Sequence[str] | None = None,
    part: str | None = None,
    n_words: int = 15,
    n_documents: int = 5,
    layer: str | None = None,
    missing_words: str | None = None,
    random_state: RandomState = 0,
    n_jobs: int | None = None,
    progress: bool = False,
) -> Path:
    """Write a self-contained HTML page about a topic model; it works offline.

    It shows the likelihood of the documents with standard errors; the topics by size, with words by
    relevance (a slider moves the weight between probability and lift), diagnostics and documents;
    and a map of the topics by similarity. For a model trained with columns of metadata, it also
    shows the expected prevalence of each topic along each column, with 95 % intervals.

    Parameters
    ----------
    {topics model}
    documents : Corpus, sparse matrix, integer array or DataFrame, shape (n_documents, n_words)
        The documents; unknown words are dropped and counted.
    path : path
        The file, usually ``*.html``; it is written completely or not at all.
    title : str, default="Topics"
        Heading of the page.
    labels : sequence of str of length n_components, optional
        Names of the topics; default: those of the model.
    texts : str, or sequence of length n_documents, optional
        Readable texts of the documents, as a column of the metadata or a sequence; the page shows
        their beginnings below the topics.
    part : str, optional
        Name of this part of the data, such as "training" or "held out", shown next to the score.
    n_words : int, default=15
        Number of words per topic.
    n_documents : int, default=5
        Documents of a topic on the page.
    {layer}
    {missing words}
    random_state : None, int, RandomState, Generator or SeedSequence, default=0
        Seed of the scores.
    {n_jobs}
    progress : bool, default=False
        Show a progress bar while documents are scored.

    Returns
    -------
    pathlib.Path
        The file.

    Raises
    ------
    FileAccessError
        If the file cannot be written.
    InvalidArgumentError
        If the documents hold no tokens of the model's words, or there is not one label for each
        topic or one text for each document.

    References
    ----------
    Sievert & Shirley (2014). LDAvis: a method for visualizing and interpreting topics.

    Examples
    --------
    >>> page = folder / "report.html"
    >>> pb.topics.report(lda, [[9, 0], [0, 9], [5, 5]], page, n_words=2).stat().st_size > 1_000
    True
    """
    place = checked_path(path)
    checks.text("title", title)
    fitted = fitted_model(model)
    labels = getattr(fitted, "topic_names_", None) if labels is None else labels
    names_of_topics = one_each("labels", labels, len(fitted.components_), "topics")
    checks.whole_number("n_words", n_words)
    documents = of_layer(documents, layer)
    fitted, documents = of_measured_words(fitted, documents, "documents", missing_words, "drop")
    corpus, n_unseen = fitted._aligned(documents, "documents", "drop")
    if not corpus.n_tokens:
        raise InvalidArgumentError("documents hold no tokens of the model's words")
    excerpts = texts_of(corpus, texts)
    fitted = named_by(fitted, corpus)
    checks.whole_number("n_documents", n_documents)
    scores = None
    if fitted._has_likelihood():
        with quiet():
            scores = log_likelihood(
                fitted, corpus, random_state=random_state, n_jobs=n_jobs, progress=progress
            )
        warn_of_caveats(scores, "polyabayes.log_likelihood(model, documents, {})")
    content = {
        "model": {
            "class": type(fitted).__name__,
            "n_components": len(fitted.components_),
            "n_words": int(fitted.n_features_in_),
        },
        "corpus": {
            "n_documents": corpus.n_documents,
            "n_tokens": corpus.n_tokens,
            "n_unseen_tokens": n_unseen,
        },
        "part": None if part is None else checks.text("part", part),
        "score": None if scores is None else _about_scores(scores),
        "lambdas": _LAMBDAS.round(2).tolist(),
        "topics": _topics(fitted, corpus, n_words, n_documents, scores),
        "covariates": [_about_covariate(*found) for found in profiles(fitted, corpus.metadata)],
    }
    for topic in content["topics"]:
        topic["label"] = names_of_topics[topic["topic"]] if names_of_topics else ""
        for document in topic["documents"]:
            text = excerpts[document["row"]] if excerpts else ""
            document["excerpt"] = textwrap.shorten(text, _EXCERPT, placeholder=" …")
    data = _json_of_page(content)
    template = resources.files("polyabayes.topics").joinpath("report.html").read_text("utf-8")
    page = Template(template).substitute(title=escape(title), data=data, n_shown=n_words)
    with replacing(place) as stream:
        stream.write(page.encode(errors="replace"))
    return place


def _json_of_page(content: object) -> str:
    """JSON for a script element: no text in it can begin or end an element or a comment."""
    text = json.dumps(content, ensure_ascii=False, allow_nan=False)
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _about_scores(scores: LogLikelihood) -> dict[str, Any]:
    """The total, and the histogram of nats per token over documents."""
    with np.errstate(invalid="ignore", divide="ignore"):
        per_token = scores.values / scores.n_tokens
    finite = per_token[np.isfinite(per_token)]
    counts, edges = np.histogram(finite, bins=_BINS) if len(finite) else ([], [])
    return {
        "total": _number(scores.total),
        "total_std_error": _number(scores.total_std_error),
        "nats_per_token": _number(scores.nats_per_token),
        "nats_per_token_std_error": _number(scores.nats_per_token_std_error),
        "perplexity": _number(scores.perplexity),
        "n_impossible": int(np.isneginf(scores.values).sum()),
        "event": scores.event,
        "counts": np.asarray(counts).tolist(),
        "edges": np.asarray(edges).tolist(),
    }


def _about_covariate(name: str, along: Floats | None, found: TopicPrevalence) -> dict[str, Any]:
    """Prevalence of all topics along a covariate, rows x topics."""
    if along is not None and along.dtype.kind == "O":
        along = along.astype("datetime64[s]").astype(np.float64)
    lower, upper = found.interval()
    ends = {"mean": found.mean, "lower": lower, "upper": upper}
    return {
        "name": name,
        "rows": found.rows,
        "values": None if along is None else along.tolist(),
        **{key: values.round(5).tolist() for key, values in ends.items()},
    }


def _number(value: float) -> float | None:
    """A number, or None for values that JSON lacks."""
    return float(value) if np.isfinite(value) else None


def _topics(
    model: TopicModel, corpus: Corpus, n_words: int, n_documents: int, scores: LogLikelihood | None
) -> list[dict[str, Any]]:
    """Data of each topic on the page, largest first."""
    figures = diagnostics(model, corpus, n_words=n_words)
    # Coordinates in the plane, from Hellinger distances.
    roots = np.sqrt(probabilities(model))
    places = principal_coordinates(1 - np.minimum(roots @ roots.T, 1))
    words = _words(model, corpus, n_words)
    top = top_documents(model, corpus, n_documents)
    return [
        {
            "topic": int(topic),
            "share": float(figures.tokens[topic] / figures.tokens.sum()),
            "x": float(places[topic, 0]),
            "y": float(places[topic, 1]),
            "coherence": _number(figures.coherence[topic]),
            "exclusivity": _number(figures.exclusivity[topic]),
            "eff_num_words": _number(figures.eff_num_words[topic]),
            "words": words[topic],
            "documents": [
                _document(corpus, scores, int(row), float(share))
                for row, share in zip(top.rows[topic], top.shares[topic], strict=True)
            ],
        }
        for topic in np.argsort(-figures.tokens, kind="stable")
    ]


def _document(
    corpus: Corpus, scores: LogLikelihood | None, row: int, share: float
) -> dict[str, Any]:
    name = f"document {row}" if corpus.ids is None else str(corpus.ids[row])
    about: dict[str, Any] = {"id": name, "row": row, "share": share}
    if scores is not None and scores.n_tokens[row]:
        about["nats_per_token"] = _number(scores.values[row] / scores.n_tokens[row])
        about["std_error"] = _number(scores.std_errors[row] / scores.n_tokens[row])
    return about


def _words(model: TopicModel, corpus: Corpus, n_words: int) -> list[list[list[Any]]]:
    """Words of every topic that are among the best for any weight: name, ln p, ln lift."""
    topics, vocabulary = probabilities(model), names(model)
    frequency = np.asarray(corpus.counts.sum(axis=0), dtype=np.float64).ravel() + 0.5
    with np.errstate(divide="ignore"):
        ln_p = np.log(topics)
        ln_lift = ln_p - np.log(frequency / frequency.sum())
    found = []
    for own, lift in zip(ln_p, ln_lift, strict=True):
        best: set[int] = set()
        for weight in _LAMBDAS:
            relevance = weight * np.maximum(own, -1e300) + (1 - weight) * np.maximum(lift, -1e300)
            best.update(np.argsort(-relevance, kind="stable")[:n_words].tolist())
        known = [column for column in sorted(best) if np.isfinite(own[column])]
        rounded = zip(own[known].round(4).tolist(), lift[known].round(4).tolist(), strict=True)
        found.append([[str(vocabulary[c]), *two] for c, two in zip(known, rounded, strict=True)])
    return found
