"""Helpers of the adapters, and models of other packages that cannot be scored."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NoReturn

import numpy as np
from scipy import sparse

from polyabayes._support import checks
from polyabayes._support.arrays import Floats
from polyabayes.data.corpus import as_corpus
from polyabayes.data.counts import Words, checked_labels
from polyabayes.exceptions import InvalidArgumentError, InvalidTypeError
from polyabayes.likelihood.foreign import adapter
from polyabayes.models import DocumentModel, LatentDirichletAllocation


def places_of(labels: Any, known: Sequence[str]) -> list[int]:
    """Places of `labels` among the labels of a model, without repeats."""
    names = checked_labels(labels, "labels").tolist()
    if not names or not set(names) <= set(known):
        raise InvalidArgumentError(
            f"labels must be some of {', '.join(map(repr, known[:8]))}"
            f"{' and others' * (len(known) > 8)}, got {labels!r:.100}"
        )
    return [known.index(name) for name in dict.fromkeys(names)]


def attribute(model: object, name: str, package: str) -> Any:
    """The attribute `name` of a foreign model, or an error that names package and version."""
    try:
        return getattr(model, name)
    except AttributeError as error:
        raise InvalidTypeError(
            f"this {type(model).__name__} has no attribute {name!r}, from which its topics would "
            f"be read: is it a model of a supported version of {package}? "
            "LatentDirichletAllocation.from_parameters takes topics as arrays"
        ) from error


def covariate_rows(covariates: Any, n_columns: int, names: str) -> Floats:
    """A row of covariates for all documents that will be scored, or one for each."""
    rows = checks.floats("covariates", () if covariates is None else covariates)
    if rows.ndim not in (1, 2) or rows.shape[-1] != n_columns or not np.isfinite(rows).all():
        raise InvalidArgumentError(
            f"covariates must be {n_columns} finite numbers ({names}), those of the documents "
            f"that will be scored, or a row of them for each document; got {covariates!r:.100}"
        )
    return rows


def training_counts(documents: Any, words: Words | None) -> sparse.csr_matrix:
    """Counts of training documents over the words of the model, matched where both have names."""
    corpus = as_corpus(documents)
    if words is not None and corpus.vocabulary is not None:
        corpus, _ = corpus.aligned_to(words, "drop")
    return corpus.counts


def lda_of_priors(
    topics: Floats, alpha: Floats, words: list[str], random_state: Any
) -> LatentDirichletAllocation | DocumentModel:
    """An LDA with one prior, or a DocumentModel if `alpha` has a row for each document."""
    if alpha.ndim == 1:
        return lda_of(topics, alpha, words, random_state)
    return DocumentModel.dirichlet(topics, alpha, vocabulary=words, random_state=random_state)


def lda_of(topics: Floats, alpha: Any, words: Any, random_state: Any) -> LatentDirichletAllocation:
    """An LDA of topics and the prior of their weights."""
    return LatentDirichletAllocation.from_parameters(
        doc_topic_prior=alpha, topic_word=topics, vocabulary=words, random_state=random_state
    )


_EMBEDDINGS = "it clusters embeddings of documents and gives no probabilities of words"
_REASONS = {
    "bertopic": f"it {_EMBEDDINGS}",
    "top2vec": f"it {_EMBEDDINGS}",
    "fastopic": "it transports embeddings and has no distribution of a document's words",
    "scvi": "its parameters are in its module. It has a logistic-normal prior: make the model by "
    "DocumentModel.logistic_normal(model.get_feature_by_topic().T.to_numpy(), mean, covariance)",
}


def _refuse(package: str, model: Any) -> NoReturn:
    raise InvalidTypeError(
        f"a {type(model).__name__} of {package} cannot be scored as it is: {_REASONS[package]}"
    )


for _package in _REASONS:
    adapter(_package, is_refused=True)(partial(_refuse, _package))
