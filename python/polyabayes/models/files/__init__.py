"""Fitted models in files."""
