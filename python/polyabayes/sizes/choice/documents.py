"""The documents of a choice, as they come: with a layer, and with sizes that are known."""

from __future__ import annotations

from typing import Any

import numpy as np

from polyabayes.data.corpus import Corpus, as_corpus
from polyabayes.data.sources import is_anndata
from polyabayes.exceptions import InvalidArgumentError, InvalidTypeError, argument
from polyabayes.likelihood.foreign import exposed


def documents_of(model: Any, data: Any, layer: str | None, exposure: Any) -> Corpus:
    """Documents with their metadata, and with the exposures that the model takes into account.

    LDA takes no exposures.
    """
    if is_anndata(data):
        corpus = Corpus.from_anndata(data, layer).with_metadata(data.obs)
    elif layer is not None:
        raise InvalidTypeError(f"{argument('layer')} is for an AnnData, got {type(data).__name__}")
    else:
        corpus = as_corpus(data, "data")
    named = exposure if isinstance(exposure, str) else None
    return exposed(model, corpus, exposure if named is None else _column(corpus, named))


def _column(corpus: Corpus, name: str) -> Any:
    """Exposures that are called by a name: a column, or totals over their mean."""
    if corpus.metadata is not None and name in corpus.metadata:
        return corpus.metadata[name].to_numpy()
    if name != "total":
        raise InvalidArgumentError(
            f"{argument('exposure')} is {name!r}: the documents have no such column of metadata; "
            f"{argument('exposure', 'total')} takes the total count of each"
        )
    totals = np.asarray(corpus.counts.sum(axis=1), dtype=np.float64).ravel()
    empty = np.flatnonzero(totals == 0)
    if len(empty):
        raise InvalidArgumentError(
            f"{argument('exposure', 'total')} needs counts in each document, and document "
            f"{empty[0]} has none; leave out the {len(empty):,} that are empty"
        )
    return totals / totals.mean()
