"""Latent transition analysis: classes of the same rows in several waves."""

from polyabayes.latent_classes.waves.analysis import LatentTransitionAnalysis

__all__ = ["LatentTransitionAnalysis"]
