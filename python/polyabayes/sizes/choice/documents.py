"""The documents of a choice, as they come: with a layer, and with sizes that are known."""

from __future__ import annotations

from typing import Any

from polyabayes.data.corpus import Corpus, as_corpus
from polyabayes.data.sources import is_anndata
from polyabayes.exceptions import InvalidTypeError, argument
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
    return exposed(model, corpus, exposure)
