"""Topics in AnnData objects, at the places that single-cell tools read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from polyabayes._support.output.frames import import_pandas
from polyabayes._support.warnings import warn
from polyabayes.data.conversion.sources import is_of
from polyabayes.data.corpus import Corpus
from polyabayes.exceptions import DataWarning, InvalidArgumentError, InvalidTypeError
from polyabayes.likelihood.foreign import as_scorable, exposed
from polyabayes.models import LatentDirichletAllocation, PoissonFactorAnalysis
from polyabayes.models.fitted_topics import labels_of, orders_of_words


def to_anndata(
    adata: Any,
    model: Any,
    *,
    key: str = "polyabayes",
    layer: str | None = None,
    exposure: Any = None,
    unseen: str = "raise",
    missing_words: str | None = None,
) -> None:
    """Write the topics of a model and the weights of all cells into an AnnData object.

    Parameters
    ----------
    adata : AnnData
        The cells; changed in place.
    model : LatentDirichletAllocation, PoissonFactorAnalysis or foreign model
        A fitted model. Words of its vocabulary, if any, are matched with ``var_names``.
    key : str, default="polyabayes"
        Name of the results:

        * ``obsm["X_" + key]``: posterior mean topic weights, shape (n_obs, n_components).
        * ``obsm["X_" + key + "_std"]``: their standard deviations.
        * ``varm[key]``: topics, shape (n_vars, n_components); NaN for variables unknown to the
          model.
        * ``varm[key + "_std"]``: ``components_std_`` of the model, if it has them.
        * ``obs[key]``: the topic with most of the cell's expected counts.
        * ``uns["rank_genes_" + key]``: genes of each topic by specificity, where scanpy's
          ``sc.pl.rank_genes_groups_dotplot`` and the like find them: ``scores`` are FREX,
          ``logfoldchanges`` log2 of the lift. There are no p-values: these are NaN.
        * ``uns[key]``: class and prior parameters of the model.
    layer : str, optional
        Layer that holds the counts; default ``X``.
    exposure : "total", str, float or array of shape (n_obs,), optional
        Known sizes of the cells, or a column of ``obs``, as for ``fit``; a model that was fitted
        with exposures needs them.
    unseen : {"raise", "drop"}, default="raise"
        Whether counts of variables unknown to the model are refused or dropped.
    {missing words}

    Raises
    ------
    InvalidArgumentError, InvalidCountsError, InvalidTypeError
        If an argument is bad; nothing is written then.

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
    cells = exposed(fitted, Corpus.from_anndata(adata, layer), exposure)
    if fitted.vocabulary_ is None:
        cells = Corpus(cells.counts, exposure=cells.exposure, metadata=cells.metadata)
    measured, documents = fitted._measured(cells, unseen, missing_words)
    columns, pandas = np.arange(adata.n_vars), import_pandas()
    if fitted.vocabulary_ is not None:
        columns = pandas.Index(fitted.vocabulary_).get_indexer(adata.var_names.astype(str))
    if fitted._has_likelihood():
        mean, adata.obsm[f"X_{key}_std"] = measured.topic_weights(documents)
    else:
        mean = np.asarray(measured.transform(documents))
    adata.obsm[f"X_{key}"] = mean
    std = getattr(fitted, "components_std_", None)
    for end, table in (("", fitted.components_), ("_std", std)):
        if table is not None:
            adata.varm[key + end] = np.where(columns < 0, np.nan, table[:, columns]).T
    adata.uns[key] = {
        "model": type(fitted).__name__,
        **{name.rstrip("_"): getattr(fitted, name) for name in fitted._arrays[1:]},
    }
    labels, known = labels_of(fitted, 0), columns >= 0
    main = (mean * fitted.components_.sum(axis=1)).argmax(axis=1)
    adata.obs[key] = pandas.Categorical.from_codes(main, labels)
    orders = {name: order[:, columns[known]] for name, order in orders_of_words(fitted).items()}
    by_frex = np.argsort(-orders["frex"], axis=1, kind="stable")
    frex, lift = (np.take_along_axis(orders[name], by_frex, axis=1) for name in ("frex", "lift"))
    tables: dict[str, Any] = {
        "names": np.asarray(adata.var_names[known], dtype=object)[by_frex],
        "scores": frex,
        "logfoldchanges": np.log2(np.maximum(lift, np.finfo(float).tiny)),
        **dict.fromkeys(("pvals", "pvals_adj"), np.full_like(frex, np.nan)),
    }
    layers = {} if layer is None else {"layer": layer}
    adata.uns[f"rank_genes_{key}"] = {
        "params": {"groupby": key, "reference": "rest", "method": "FREX", "use_raw": False}
        | layers,
        **{
            name: pandas.DataFrame(x.T, columns=labels).to_records(index=False)
            for name, x in tables.items()
        },
    }


def from_mudata(
    mdata: Any, modalities: Sequence[str] | None = None, *, layer: Any = None
) -> dict[str, Corpus]:
    """Make a corpus of each modality of a MuData object, over the cells that all modalities share.

    A :class:`~polyabayes.DocumentModel` of several vocabularies takes all of them; other models
    take one.

    Parameters
    ----------
    mdata : MuData
        In memory.
    modalities : sequence of str, optional
        Names of the modalities; default: all.
    layer : str or mapping of str to str, optional
        Layer that holds the counts, for all modalities or by modality; default ``X``.

    Returns
    -------
    dict of str to Corpus
        By modality; cells are documents, in the order of the first modality.

    Raises
    ------
    InvalidArgumentError, InvalidCountsError
        If there is no such modality or layer, it does not hold counts, or the modalities share no
        cell.
    InvalidTypeError
        If `mdata` is not a MuData.

    Warns
    -----
    DataWarning
        If cells are dropped because a modality lacks them.

    Examples
    --------
    >>> import anndata
    >>> import mudata
    >>> parts = {}
    >>> for name, counts in (("rna", [[3, 0], [1, 2]]), ("atac", [[1, 1], [0, 4]])):
    ...     parts[name] = anndata.AnnData(np.array(counts, dtype=float))
    ...     parts[name].var_names = [f"{name} {place}" for place in range(2)]
    >>> with mudata.set_options(pull_on_update=False):
    ...     cells = mudata.MuData(parts)
    >>> corpora = pb.interop.from_mudata(cells)
    >>> {name: corpus.n_tokens for name, corpus in corpora.items()}
    {'rna': 6, 'atac': 6}
    """
    if not is_of(mdata, "mudata", "MuData"):
        raise InvalidTypeError(f"mdata must be a MuData, got {type(mdata).__name__}")
    names = list(mdata.mod) if modalities is None else list(modalities)
    for name in names:
        if name not in mdata.mod:
            known = ", ".join(map(repr, mdata.mod))
            raise InvalidArgumentError(f"the MuData has no modality {name!r}; it has {known}")
    layers = layer if isinstance(layer, Mapping) else dict.fromkeys(names, layer)
    parts = {name: mdata.mod[name] for name in names}
    every = [set(part.obs_names) for part in parts.values()]
    cells = [cell for cell in parts[names[0]].obs_names if all(cell in own for own in every)]
    n_left_out = len(set.union(*every)) - len(cells)
    if not cells:
        raise InvalidArgumentError("the modalities have no cell in common")
    if n_left_out:
        warn(f"{n_left_out:,} cells that some modality lacks are left out", DataWarning)
    return {name: Corpus.from_anndata(x[cells], layers.get(name)) for name, x in parts.items()}
