"""Priors of unknown sizes: numbers of topics, ranks, clusters.

A size is an integer from 1 on. Every prior gives logs of masses and of tails, in nats, accurate for
tails near 0 and near 1.
"""

from polyabayes._support.docs import fill_room
from polyabayes.sizes.priors.base import Mixture, Product, SizePrior, UnivariatePrior
from polyabayes.sizes.priors.custom import Custom, Joint
from polyabayes.sizes.priors.distributions import Geometric, NegativeBinomial, Poisson, Uniform
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

fill_room(globals())
