"""Models of pycisTopic: topics of chromatin regions over single cells."""

from __future__ import annotations

from typing import Any

import numpy as np

from polyabayes._support import checks
from polyabayes._support.arrays import Floats
from polyabayes.exceptions import InvalidArgumentError, InvalidTypeError
from polyabayes.interop.shared import attribute, lda_of
from polyabayes.likelihood.foreign import adapter
from polyabayes.models import LatentDirichletAllocation
from polyabayes.models.fitted_topics import normalised


@adapter("pycisTopic")
def from_pycistopic(
    model: Any,
    *,
    doc_topic_prior: float | None = None,
    topic_word_prior: float | None = None,
    random_state: Any = None,
) -> LatentDirichletAllocation:
    """Convert a ``CistopicLDAModel``, trained by MALLET or by the package lda.

    Models trained by MALLET are stored without eta, so that regions without training counts would
    be impossible in held-out cells. Their topics are computed as (n + eta) / (N + V eta), from the
    counts n = ``topic_region`` x ``topic_ass.Assignments``. Models of the package lda include eta.
    The prior of a cell's weights is alpha divided by the number of topics (for the package lda only
    with ``alpha_by_topic``).

    Parameters
    ----------
    model : pycisTopic CistopicLDAModel
        With ``topic_region`` (a DataFrame, regions x topics), ``topic_ass`` and ``parameters``.
    doc_topic_prior : float, optional
        alpha of each topic, if ``parameters`` lacks it (models loaded from feather files).
    topic_word_prior : float, optional
        eta of each region, if ``parameters`` lacks it; needed only if the topics hold zeros.
    {seed of transform}

    Returns
    -------
    LatentDirichletAllocation
        The model over regions. pycisTopic trains on binary accessibility: score cells as 0 and 1.

    Raises
    ------
    InvalidTypeError
        If `model` lacks attributes of a CistopicLDAModel.
    InvalidArgumentError
        If a prior is neither stored nor given.

    References
    ----------
    Bravo González-Blas et al. (2019). cisTopic: cis-regulatory topic modeling on single-cell
    ATAC-seq data. Nature Methods 16.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> import pandas as pd
    >>> stored = SimpleNamespace(
    ...     topic_region=pd.DataFrame([[0.75, 0.0], [0.25, 1.0]], index=["chr1:1-9", "chr1:10-19"]),
    ...     topic_ass=pd.DataFrame({"Topic": [1, 2], "Assignments": [4, 2]}),
    ...     parameters=pd.DataFrame(
    ...         {"Parameter": ["Mallet", 2, 50.0, True, 0.1]},
    ...         index=["package", "n_topics", "alpha", "alpha_by_topic", "eta"],
    ...     ),
    ... )
    >>> pb.interop.from_pycistopic(stored).components_.round(3).tolist()
    [[0.738, 0.262], [0.045, 0.955]]
    """
    table = attribute(model, "topic_region", "pycisTopic")
    if not hasattr(table, "index"):
        raise InvalidTypeError("topic_region of the model must be a DataFrame, regions x topics")
    topics = np.asarray(table, dtype=np.float64).T
    trained = attribute(model, "parameters", "pycisTopic")
    # Models loaded from feather files have no parameters of the training.
    parameters = {} if trained is None else dict(trained["Parameter"])
    package = str(parameters.get("package", "Mallet" if (topics == 0).any() else "lda"))
    if package.lower() == "mallet":
        eta = _given("topic_word_prior", topic_word_prior, parameters.get("eta"))
        topics = _smoothed(topics, attribute(model, "topic_ass", "pycisTopic"), eta)
    alpha = _alpha(doc_topic_prior, parameters, package, len(topics))
    regions = [str(region) for region in table.index]
    return lda_of(normalised(topics, "topic_region"), alpha, regions, random_state)


def _given(name: str, given: float | None, stored: Any) -> float:
    value = stored if given is None else given
    if value is None:
        raise InvalidArgumentError(
            f"this CistopicLDAModel does not hold the parameters of its training: give {name}"
        )
    return checks.positive_number(name, value if given is not None else float(value))


def _alpha(given: float | None, parameters: dict[str, Any], package: str, n_topics: int) -> float:
    alpha = _given("doc_topic_prior", given, parameters.get("alpha"))
    # MALLET's --alpha, as stored, is the sum over all topics.
    summed = package.lower() == "mallet" or bool(parameters.get("alpha_by_topic", True))
    return alpha / n_topics if given is None and summed else alpha


def _smoothed(topics: Floats, assignments: Any, eta: float) -> Floats:
    """Counts of regions, recovered from the numbers of assignments, plus their prior."""
    totals = np.asarray(assignments["Assignments"], dtype=np.float64)
    if totals.shape != (len(topics),) or not (totals >= 0).all():
        raise InvalidArgumentError(
            f"topic_ass has {totals.size} entries for {len(topics)} topics: it must hold the "
            "assignments of every topic"
        )
    counts: Floats = np.rint(np.nan_to_num(topics) * totals[:, None])
    return counts + eta
