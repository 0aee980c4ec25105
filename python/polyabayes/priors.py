"""Priors of unknown sizes: numbers of topics, ranks, clusters."""

from polyabayes.sizes.priors import (
    Custom,
    Geometric,
    Joint,
    JointTable,
    NegativeBinomial,
    Poisson,
    Product,
    SizePrior,
    Table,
    Uniform,
    UnivariatePrior,
)

__all__ = [
    "Custom",
    "Geometric",
    "Joint",
    "JointTable",
    "NegativeBinomial",
    "Poisson",
    "Product",
    "SizePrior",
    "Table",
    "Uniform",
    "UnivariatePrior",
]
