"""The number of topics chosen by held-out likelihood or evidence."""

from polyabayes.sizes.choice.choose import choose_n_components
from polyabayes.sizes.choice.result import SizeChoice

__all__ = ["SizeChoice", "choose_n_components"]
