"""Search over unknown sizes, with bounds that hold wherever it stops."""

from polyabayes.witness._estimator import WitnessSearch
from polyabayes.witness._folds import cross_validate
from polyabayes.witness._results import PredictiveBounds
from polyabayes.witness._scores import Score
from polyabayes.witness._search import SearchStep
from polyabayes.witness._table import ResultTable

__all__ = [
    "PredictiveBounds",
    "ResultTable",
    "Score",
    "SearchStep",
    "WitnessSearch",
    "cross_validate",
]
