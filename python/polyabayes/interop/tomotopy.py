"""Models of tomotopy."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polyabayes.exceptions import (
    InvalidArgumentError,
    InvalidTypeError,
    NotFittedError,
    PolyabayesWarning,
)
from polyabayes.interop.shared import attribute, normalised
from polyabayes.likelihood.foreign import adapter
from polyabayes.models import LatentDirichletAllocation

__all__ = ["from_tomotopy"]

_OTHERS = {
    "HDPModel": "convert it by its convert_to_lda()",
    "CTModel": "its prior is a logistic normal, under which this would score another model",
    "DMRModel": "the prior of its topics depends on the documents' metadata",
    "GDMRModel": "the prior of its topics depends on the documents' metadata",
    "LLDAModel": "its topics are bound to labels of the documents",
    "PLDAModel": "its topics are bound to labels of the documents",
    "HLDAModel": "its topics form a tree",
    "PAModel": "its topics have super topics: AllocationModel.pachinko trains and scores such",
    "HPAModel": "its topics have super topics: AllocationModel.pachinko trains and scores such",
    "MGLDAModel": "it has global and local topics",
    "DTModel": "its topics change with time",
    "PTModel": "its documents are pooled",
}


@adapter("tomotopy")
def from_tomotopy(model: Any, *, random_state: Any = None) -> LatentDirichletAllocation:
    """Take over a trained LDA of tomotopy.

    The topics are counts of the last sweep plus their prior, per word where ``set_word_prior`` was
    called (tomotopy's own ``get_topic_word_dist`` leaves that out), divided by row sums in double
    precision. The Dirichlet prior is ``model.alpha``, which tomotopy learns by default. Words are
    ``used_vocabs``: those that pruning left.

    Parameters
    ----------
    model : tomotopy LDAModel
        Trained, with ``TermWeight.ONE``.
    random_state : None, int, RandomState, Generator or SeedSequence
        Seed of ``transform`` and ``score``.

    Returns
    -------
    LatentDirichletAllocation

    Raises
    ------
    InvalidTypeError
        If `model` is another kind of model; the message says why.
    InvalidArgumentError
        If its terms are weighted, so that its counts are no counts.
    NotFittedError
        If it is not trained.

    Examples
    --------
    >>> import polyabayes as pb
    >>> import tomotopy
    >>> theirs = tomotopy.LDAModel(k=2, seed=1)
    >>> for text in [["urn", "ball", "urn"], ["topic", "word"]]:
    ...     _ = theirs.add_doc(text)
    >>> theirs.train(10, workers=1)
    >>> sorted(pb.interop.from_tomotopy(theirs).vocabulary_)
    ['ball', 'topic', 'urn', 'word']
    """
    kind = type(model).__name__
    if kind in _OTHERS:
        raise InvalidTypeError(f"a {kind} of tomotopy is no plain LDA: {_OTHERS[kind]}")
    if kind not in ("LDAModel", "SLDAModel"):
        raise InvalidTypeError(f"model must be an LDAModel of tomotopy, got {model!r:.200}")
    weighting = int(attribute(model, "tw", "tomotopy"))
    if weighting != 0:
        raise InvalidArgumentError(
            "the terms of this LDAModel are weighted (idf or pmi), so its counts are no counts: "
            "train it with tw=tomotopy.TermWeight.ONE"
        )
    words = [str(word) for word in attribute(model, "used_vocabs", "tomotopy")]
    if not words:
        raise NotFittedError("this LDAModel of tomotopy is not trained yet: call its train")
    if not attribute(model, "global_step", "tomotopy"):
        # train(0) leaves random topics, convert_to_lda those of the HDP: nothing tells them apart.
        warnings.warn(
            "this LDAModel of tomotopy counts no sweeps: unless it comes from convert_to_lda, its "
            "topics are random, and its train should be called",
            PolyabayesWarning,
            stacklevel=2,
        )
    return LatentDirichletAllocation.from_parameters(
        doc_topic_prior=np.asarray(model.alpha, dtype=np.float64) * np.ones(model.k),
        topic_word=normalised(_pseudo_counts(model, words), "the LDAModel"),
        vocabulary=words,
        random_state=random_state,
    )


def _pseudo_counts(model: Any, words: list[str]) -> NDArray[np.float64]:
    """Counts of the last sweep and the prior of every word in every topic."""
    rows = [model.get_topic_word_dist(topic, normalize=False) for topic in range(model.k)]
    # The scalar prior stands in every entry, whatever the prior of the word is.
    counts = np.rint(np.array(rows, dtype=np.float64) - float(model.eta))
    # Empty where no word has a prior of its own.
    if not len(model.get_word_prior(words[0])):
        return counts + float(model.eta)
    priors = [model.get_word_prior(word) for word in words]
    return counts + np.array(priors, dtype=np.float64).T
