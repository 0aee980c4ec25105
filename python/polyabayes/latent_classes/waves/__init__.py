"""Latent transition analysis: classes of the same rows in several waves."""
