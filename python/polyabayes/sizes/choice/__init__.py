"""The number of topics chosen by held-out likelihood or evidence."""

from polyabayes.sizes.choice.choose import choice_cost, choose_n_components
from polyabayes.sizes.choice.cost import ChoiceCost
from polyabayes.sizes.choice.result import SizeChoice

__all__ = ["ChoiceCost", "SizeChoice", "choice_cost", "choose_n_components"]
