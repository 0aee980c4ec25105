"""Unknown sizes, such as numbers of topics: choice, search and priors."""

from polyabayes.sizes.choice import SizeChoice, choose_n_components
from polyabayes.sizes.witness import WitnessSearch, cross_validate

__all__ = ["SizeChoice", "WitnessSearch", "choose_n_components", "cross_validate"]
