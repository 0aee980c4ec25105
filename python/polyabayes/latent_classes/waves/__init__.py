"""Latent transition analysis: latent classes of rows in several waves."""
