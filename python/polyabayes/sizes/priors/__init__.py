"""Priors of unknown sizes: numbers of topics, ranks, clusters.

A size is a whole number from 1 on. Every prior gives logs of masses, in nats, and of tails that
are right to the last digits whether they are near 0 or near 1: no tail is 1 minus a sum.
"""

from polyabayes.sizes.priors.base import Product, SizePrior, UnivariatePrior
from polyabayes.sizes.priors.custom import Custom, Joint
from polyabayes.sizes.priors.distributions import Geometric, NegativeBinomial, Poisson, Uniform
from polyabayes.sizes.priors.mixture import Mixture
from polyabayes.sizes.priors.tables import JointTable, Table

__all__ = [
    "Custom",
    "Geometric",
    "Joint",
    "JointTable",
    "Mixture",
    "NegativeBinomial",
    "Poisson",
    "Product",
    "SizePrior",
    "Table",
    "Uniform",
    "UnivariatePrior",
]
