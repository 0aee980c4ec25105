"""The kind of score of a search, and its ceiling."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from polyabayes._support import checks
from polyabayes._support.state_folder import StateFolder
from polyabayes.allocation.model import AllocationModel
from polyabayes.data.corpus import Corpus
from polyabayes.exceptions import InvalidArgumentError, InvalidTypeError
from polyabayes.sizes.priors import SizePrior
from polyabayes.sizes.scores import ROUNDING, Sizes
from polyabayes.sizes.witness.adapters import FunctionScorer, NestedEstimator, Scorer
from polyabayes.sizes.witness.evidence import EvidenceScorer


class ScoreOptions(NamedTuple):
    """Arguments of the search for its score."""

    predictive: Any
    scoring: str
    scoring_options: dict[str, Any]
    seed: int
    folder: StateFolder | None


def is_estimator(estimator: Any) -> bool:
    """Whether an argument of the search is an estimator."""
    return hasattr(estimator, "get_params") and hasattr(estimator, "fit")


def kind_of(estimator: Any, kind: Any) -> Any:
    """The kind of score, as given or by default."""
    if kind is not None:
        return kind
    return "evidence" if isinstance(estimator, AllocationModel) else "nested"


def make_scorer(
    estimator: Any, kind: str, first: Sizes, data: Any, options: ScoreOptions
) -> Scorer:
    """Make the scorer of the search; other types are refused."""
    predictive = options.predictive
    if predictive is not None and not callable(predictive):
        raise InvalidTypeError(f"predictive must be a function or None, got {predictive!r}")
    if isinstance(estimator, AllocationModel):
        if kind != "evidence":
            raise InvalidArgumentError(
                'the evidence of an allocation model may fall as sizes grow: use kind="evidence"'
            )
        return EvidenceScorer(
            estimator, data, first, options.scoring_options, options.seed, predictive
        )
    if is_estimator(estimator):
        if kind != "nested" or len(first) != 1:
            raise InvalidArgumentError(
                'an estimator gives nested scores of one size: use kind="nested" and a prior of '
                "one size; to choose by integrated evidence, give an allocation model of unknown "
                "size, as AllocationModel.nmf(None), or a function of the sizes"
            )
        if data is None:
            raise InvalidArgumentError("X is missing: an estimator must be fitted to documents")
        return NestedEstimator(
            estimator, data, options.scoring, options.scoring_options, options.seed, options.folder
        )
    if not callable(estimator) or isinstance(estimator, type):
        raise InvalidTypeError(
            "estimator must be one of scikit-learn's kind, an AllocationModel or a function of "
            f"sizes, got {estimator!r}"
        )
    return FunctionScorer(estimator, predictive)


def check_further_prior(prior: Any, first: SizePrior) -> None:
    """Refuse anything but a prior of the same number of sizes."""
    if not isinstance(prior, SizePrior) or prior.n_variables != first.n_variables:
        raise InvalidArgumentError(f"prior must be of {first.n_variables} sizes, got {prior!r}")


def log_ceiling_of(upper: Any, data: Any, scorer: Scorer) -> float:
    """Ln of an upper bound of p(y | sizes) for all sizes."""
    if callable(upper):
        value = float(upper(data))
        if not np.isfinite(value):
            raise InvalidArgumentError(f"upper(X) is {value}: it must be a finite number")
        return value
    if checks.choice("upper", upper, ("multinomial", "vacuous")) == "vacuous":
        return 0.0
    if isinstance(scorer, EvidenceScorer):
        return scorer.log_ceiling()
    if data is None:
        raise InvalidArgumentError('upper="multinomial" needs X, the counts')
    return log_multinomial_ceiling(data)


def log_multinomial_ceiling(corpus: Corpus) -> float:
    """Sum of n_dw ln(n_dw / n_d) over documents and words, rounded up.

    No mixture of multinomials exceeds each document's own frequencies.
    """
    counts = corpus.counts.data.astype(np.float64)
    lengths = corpus._lengths().astype(np.float64)
    lengths = np.repeat(lengths, np.diff(corpus.counts.indptr))
    return float((counts * np.log(counts / lengths)).sum()) * (1.0 - ROUNDING)
