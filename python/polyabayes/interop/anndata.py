"""Topics written into AnnData objects, where single-cell tools look for them."""

from __future__ import annotations

from typing import Any

import numpy as np

from polyabayes.data.corpus import Corpus
from polyabayes.exceptions import InvalidTypeError
from polyabayes.likelihood.foreign import as_scorable
from polyabayes.models import LatentDirichletAllocation, PoissonFactorAnalysis


def to_anndata(
    adata: Any,
    model: Any,
    *,
    key: str = "polyabayes",
    layer: str | None = None,
    unseen: str = "raise",
) -> None:
    """Write the topics of a model and the weights of all cells into an AnnData object.

    Parameters
    ----------
    adata : AnnData
        The cells; changed in place.
    model : LatentDirichletAllocation, PoissonFactorAnalysis or foreign model
        Fitted. Its words are matched with ``var_names``, where it has a vocabulary.
    key : str, default="polyabayes"
        ``obsm["X_" + key]`` becomes the posterior mean topic weights, shape
        (n_obs, n_components); ``varm[key]`` the topics, shape (n_vars, n_components), NaN for
        variables that the model does not know; ``uns[key]`` the class and the prior parameters.
    layer : str, optional
        Layer that holds the counts; by default ``X``.
    unseen : {"raise", "drop"}, default="raise"
        What to do with counts of variables that the model does not know.

    Raises
    ------
    InvalidArgumentError, InvalidCountsError, InvalidTypeError
        If an argument is bad; before anything is written.

    Examples
    --------
    >>> import anndata
    >>> cells = anndata.AnnData(np.array([[9.0, 0.0], [0.0, 9.0]]))
    >>> lda = pb.LatentDirichletAllocation.from_parameters(
    ...     doc_topic_prior=0.5, topic_word=[[0.9, 0.1], [0.1, 0.9]]
    ... )
    >>> pb.interop.to_anndata(cells, lda, key="lda")
    >>> cells.obsm["X_lda"].shape, cells.varm["lda"].shape
    ((2, 2), (2, 2))
    """
    if not isinstance(key, str):
        raise InvalidTypeError(f"key must be a str, got {key!r}")
    fitted: Any = as_scorable("model", model)
    if not isinstance(fitted, (LatentDirichletAllocation, PoissonFactorAnalysis)):
        raise InvalidTypeError(f"model has no topic weights to write: {fitted!r:.100}")
    cells = Corpus.from_anndata(adata, layer)
    if fitted.vocabulary_ is None:
        cells = Corpus(cells.counts)
    aligned, _ = fitted._aligned(cells, "adata", unseen)
    weights = np.asarray(fitted.transform(aligned))
    topics = np.full((adata.n_vars, len(fitted.components_)), np.nan)
    if fitted.vocabulary_ is None:
        topics[:] = fitted.components_.T
    else:
        column_of = {word: column for column, word in enumerate(fitted.vocabulary_)}
        columns = np.array([column_of.get(str(name), -1) for name in adata.var_names])
        topics[columns >= 0] = fitted.components_.T[columns[columns >= 0]]
    adata.obsm[f"X_{key}"] = weights
    adata.varm[key] = topics
    adata.uns[key] = {
        "model": type(fitted).__name__,
        **{name.rstrip("_"): getattr(fitted, name) for name in fitted._arrays[1:]},
    }
