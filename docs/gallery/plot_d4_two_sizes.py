"""
Two sizes at a time
===================

A search over two sizes scores next where the bounds are widest. Squares are numbered in
the order of scoring. Red frames mark the witnesses, which bound the scores of all
larger sizes.
"""

import matplotlib.pyplot as plt

import polyabayes as pb


def log_score(k, m):
    """A score that never falls as sizes grow, as bounds of trained models."""
    return -60 - 25 / k - 18 / m - 6 / (k * m)


prior = pb.priors.Product(pb.priors.Poisson(2), pb.priors.Poisson(2))
search = pb.WitnessSearch(log_score, prior, strategy="widest", max_steps=20).fit()
pb.plotting.plot_search_map(search)
plt.show()
