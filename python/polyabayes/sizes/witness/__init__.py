"""Search over unknown sizes, with bounds that are valid at any stopping time."""

from polyabayes._support.results import ResultTable
from polyabayes.sizes.scores import Score
from polyabayes.sizes.witness.estimator import WitnessSearch
from polyabayes.sizes.witness.folds import cross_validate
from polyabayes.sizes.witness.results import PredictiveBounds
from polyabayes.sizes.witness.search import SearchStep

__all__ = [
    "PredictiveBounds",
    "ResultTable",
    "Score",
    "SearchStep",
    "WitnessSearch",
    "cross_validate",
]
