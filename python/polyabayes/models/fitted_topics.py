"""Topics, words, documents and expected tokens of any fitted topic model."""

from copy import copy
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from polyabayes._support import checks
from polyabayes._support.arrays import Floats, Indices
from polyabayes.data.corpus import Corpus, of_layer
from polyabayes.exceptions import InvalidArgumentError, InvalidTypeError
from polyabayes.likelihood.foreign import as_scorable, exposed
from polyabayes.models.fitting import fingerprint
from polyabayes.models.lda import LatentDirichletAllocation
from polyabayes.models.pfa import PoissonFactorAnalysis

# Least probability in a logarithm.
_LEAST = 1e-100
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


def labels_of(model: Any, n_words: int = 3) -> list[str]:
    """Names of the topics, or their numbers and most probable words, for pictures."""
    numbers = [f"topic {k}" for k in range(len(model.components_))]
    given = getattr(model, "topic_names_", numbers)
    if model.vocabulary_ is None or not n_words:
        return list(given)
    words = [
        f"{name}: {', '.join(own)}"
        for name, own in zip(numbers, top_words(model, n_words).words, strict=True)
    ]
    return [words[k] if name == numbers[k] else name for k, name in enumerate(given)]


def names_of(model: Any) -> list[str] | None:
    """Names of the topics, if they have some, for tables."""
    return getattr(model, "topic_names_", None)


class TopWords(NamedTuple):
    """The most probable words of every topic.

    `columns` are the columns of the words, most probable first; without a vocabulary, `words` are
    column numbers as text.
    """

    columns: Indices
    words: NDArray[np.object_]


def probabilities(model: TopicModel) -> Floats:
    """Topics x words, with rows that sum to 1."""
    return np.asarray(model.components_ / model.components_.sum(axis=1, keepdims=True))


def orders_of_words(model: TopicModel) -> dict[str, Floats]:
    """Topics x words by four orders: probability, FREX, lift and score, as R's stm has them."""
    topics = probabilities(model)
    counts = getattr(model, "topic_counts_", np.ones(len(topics)))
    exclusive = topics / np.maximum(topics.sum(axis=0), _LEAST)
    ranks = [stats.rankdata(x, axis=1) / topics.shape[1] for x in (topics, exclusive)]
    ln = np.log(np.maximum(topics, _LEAST))
    return {
        "probability": topics,
        "frex": 2 / (1 / ranks[0] + 1 / ranks[1]),
        "lift": topics / np.maximum(counts / counts.sum() @ topics, _LEAST),
        "score": topics * (ln - ln.mean(axis=0)),
    }


def hellinger_similarity(one: Floats, other: Floats) -> Floats:
    """1 minus the Hellinger distance of each pair of rows of probabilities."""
    overlap = np.sqrt(one) @ np.sqrt(other).T
    return np.asarray(1.0 - np.sqrt(1.0 - np.clip(overlap, 0.0, 1.0)))


def names(model: TopicModel) -> NDArray[np.object_]:
    """Words of the columns, or column numbers as text."""
    if model.vocabulary_ is not None:
        return model.vocabulary_
    return np.array([str(column) for column in range(model.n_features_in_)], dtype=object)


def top_words(model: TopicModel, n_words: int) -> TopWords:
    """The most probable words of every topic; ties are in the order of the columns."""
    wanted = checks.whole_number("n_words", n_words)
    columns = np.argsort(-model.components_, axis=1, kind="stable")[:, :wanted]
    return TopWords(columns, names(model)[columns])


def named_by(model: TopicModel, corpus: Corpus) -> TopicModel:
    """Give a model without a vocabulary the words of a corpus with the same columns."""
    if model.vocabulary_ is not None or corpus.vocabulary is None:
        return model
    named = copy(model)
    named.vocabulary_ = corpus.vocabulary
    return named


def aligned(model: TopicModel, documents: Any, layer: str | None = None) -> Corpus:
    """Documents over the words of the model; unknown words are dropped."""
    return model._aligned(of_layer(documents, layer), "documents", "drop")[0]


def expected_tokens(model: TopicModel, corpus: Corpus) -> Floats:
    """Posterior mean number of tokens of each topic in each document, (n_documents, n_components).

    E[n] follows from the posterior mean of the weights, which is (alpha + E[n]) / (alpha_+ + N) for
    LDA, and (r + E[n]) / ((1 - p) / p + size of the topic) for gamma-Poisson. A model without a
    prior (NMF) divides its tokens in proportion to the rates.
    """
    theta, sizes = np.asarray(model.transform(corpus)), model.components_.sum(axis=1)
    lengths = corpus._lengths().astype(np.float64)[:, np.newaxis]
    shared: Any = getattr(model, f"{model._prior_argument}_", np.zeros(1))
    prior = shared if (own := model._priors_of(corpus, None)) is None else own
    if isinstance(model, LatentDirichletAllocation):
        tokens = theta * (prior.sum(axis=-1, keepdims=True) + lengths) - prior
    elif model._has_likelihood():
        exposure = 1.0 if corpus.exposure is None else corpus.exposure[:, None]
        odds = (1 - model.probability_) / model.probability_
        tokens = theta * (odds + exposure * sizes) - prior
    else:
        tokens = theta * sizes
    tokens = np.maximum(tokens, 0.0)
    # This removes only rounding errors if there is a prior.
    tokens *= lengths / np.maximum(tokens.sum(axis=1, keepdims=True), np.finfo(float).tiny)
    return np.asarray(tokens)


def topic_tokens(model: TopicModel, corpus: Corpus, expected: Floats | None = None) -> NDArray[Any]:
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


def principal_coordinates(squares: Floats) -> Floats:
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


def normalised(weights: Any, origin: str, row: str = "topic", column: str = "word") -> Floats:
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
