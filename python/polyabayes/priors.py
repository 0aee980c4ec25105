"""Priors of unknown sizes: numbers of topics, ranks, clusters."""

from polyabayes.sizes.priors import *  # noqa: F403
from polyabayes.sizes.priors import __all__ as __all__
