"""Numbers of hidden levels by evidence: one comparison for all allocation models."""

from polyabayes.sizes.evidence.comparison import Candidate, Comparison
from polyabayes.sizes.evidence.concentrations import Concentrations
from polyabayes.sizes.evidence.staged import MOST_R_HAT, Networks, StagedComparison, r_hat

__all__ = [
    "MOST_R_HAT",
    "Candidate",
    "Comparison",
    "Concentrations",
    "Networks",
    "StagedComparison",
    "r_hat",
]
