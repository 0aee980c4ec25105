"""Unknown sizes, such as numbers of topics: choice, search and priors."""

from polyabayes.sizes.choice import ChoiceCost, SizeChoice, choice_cost, choose_n_components
from polyabayes.sizes.witness import WitnessSearch, cross_validate

__all__ = [
    "ChoiceCost",
    "SizeChoice",
    "WitnessSearch",
    "choice_cost",
    "choose_n_components",
    "cross_validate",
]
