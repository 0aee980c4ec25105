"""Topics and expected tokens of any fitted topic model."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from polyabayes.data.corpus import Corpus
from polyabayes.exceptions import InvalidArgumentError, InvalidTypeError
from polyabayes.likelihood.foreign import as_scorable, exposed
from polyabayes.models.fitting import fingerprint
from polyabayes.models.lda import LatentDirichletAllocation
from polyabayes.models.pfa import PoissonFactorAnalysis

Matrix = NDArray[np.float64]
TopicModel = LatentDirichletAllocation | PoissonFactorAnalysis


def fitted_model(model: Any, name: str = "model") -> TopicModel:
    """A fitted model of this package; models of other packages are converted."""
    found: Any = as_scorable(name, model)
    if not isinstance(found, (LatentDirichletAllocation, PoissonFactorAnalysis)):
        raise InvalidTypeError(
            f"{name} must be an LDA or a Poisson factor model, got "
            f"{type(found).__name__}; for its topics, see its components_"
        )
    found._check_fitted()
    return found


def expected_tokens(model: TopicModel, corpus: Corpus) -> Matrix:
    """Posterior mean number of tokens of each topic in each document, (n_documents, n_components).

    E[n] follows from the posterior mean of the weights, which is (alpha + E[n]) / (alpha_+ + N) for
    LDA, and (r + E[n]) / ((1 - p) / p + size of the topic) for gamma-Poisson. A model without a
    prior (NMF) divides its tokens in proportion to the rates.
    """
    theta, sizes = np.asarray(model.transform(corpus)), model.components_.sum(axis=1)
    lengths = corpus._lengths().astype(np.float64)[:, np.newaxis]
    if isinstance(model, LatentDirichletAllocation):
        tokens = theta * (model.doc_topic_prior_.sum() + lengths) - model.doc_topic_prior_
    elif model._has_likelihood():
        exposure = 1.0 if corpus.exposure is None else corpus.exposure[:, None]
        odds = (1 - model.probability_) / model.probability_
        tokens = theta * (odds + exposure * sizes) - model.shape_
    else:
        tokens = theta * sizes
    tokens = np.maximum(tokens, 0.0)
    # This removes only rounding errors if there is a prior.
    tokens *= lengths / np.maximum(tokens.sum(axis=1, keepdims=True), np.finfo(float).tiny)
    return np.asarray(tokens)


def topic_tokens(model: TopicModel, corpus: Corpus, expected: Matrix | None = None) -> NDArray[Any]:
    """Tokens of each topic, shape (n_components,).

    For the training documents, these are the tokens in training, so that shares of topics agree
    everywhere. For other documents, they are the sums of :func:`expected_tokens`, which may be
    given as `expected`.
    """
    trained_on = getattr(model, "_trained_on", None)
    if trained_on and trained_on == fingerprint(exposed(model, corpus, None)):
        return model.topic_counts_
    found = expected_tokens(model, corpus) if expected is None else expected
    return np.asarray(found.sum(axis=0))


def principal_coordinates(squares: Matrix) -> Matrix:
    """Points in the plane whose squared distances approximate `squares`, shape (n_points, 2).

    Classical scaling: the two largest eigenvalues of the doubly centred matrix.
    """
    centre = np.eye(len(squares)) - 1 / len(squares)
    values, vectors = np.linalg.eigh(-0.5 * centre @ squares @ centre)
    plane = np.zeros((len(squares), 2))
    for axis, (value, vector) in enumerate(zip(values[::-1][:2], vectors.T[::-1][:2], strict=True)):
        # The largest entry of an eigenvector is made positive: signs agree on every machine.
        plane[:, axis] = vector * np.sign(vector[np.argmax(np.abs(vector))])
        plane[:, axis] *= np.sqrt(max(value, 0.0))
    return plane


def normalised(weights: Any, origin: str, row: str = "topic", column: str = "word") -> Matrix:
    """Rows of topics x words divided by their sums, in double precision.

    Negative and infinite weights, and topics without weight, are refused. Error messages use the
    names `origin`, `row` and `column`.
    """
    rows = np.array(weights, dtype=np.float64)
    if rows.ndim != 2 or 0 in rows.shape:
        raise InvalidArgumentError(
            f"{origin} must have shape (n_components, n_words), got shape {rows.shape}"
        )
    bad = np.argwhere(~(np.isfinite(rows) & (rows >= 0)))
    if len(bad):
        one, other = bad[0]
        raise InvalidArgumentError(
            f"{origin} holds {rows[one, other]} for {row} {one}, {column} {other}: weights must be "
            "finite and not negative"
        )
    sums = rows.sum(axis=1, keepdims=True)
    if not sums.all():
        raise InvalidArgumentError(
            f"{row} {int(np.argmin(sums))} of {origin} gives no weight to any {column}: "
            + (
                "the model is not trained, or its topic-word prior is missing"
                if row == "topic"
                else "leave it out"
            )
        )
    rows /= sums
    # A second division removes rounding errors of the first.
    rows /= rows.sum(axis=1, keepdims=True)
    return rows
