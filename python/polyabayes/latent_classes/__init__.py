"""Latent class analysis: how many classes, their profiles, and the class of each row."""

from polyabayes.latent_classes.analysis import LatentClassAnalysis
from polyabayes.latent_classes.choice import ClassChoice
from polyabayes.latent_classes.invariance import ClassInvariance
from polyabayes.latent_classes.outcomes import ClassOutcome
from polyabayes.latent_classes.residuals import PairResiduals
from polyabayes.latent_classes.waves.estimator import LatentTransitionAnalysis

__all__ = [
    "ClassChoice",
    "ClassInvariance",
    "ClassOutcome",
    "LatentClassAnalysis",
    "LatentTransitionAnalysis",
    "PairResiduals",
]
