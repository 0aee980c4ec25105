"""
Two sizes at a time
===================

A search over two sizes scores next where the bounds are widest. Squares have the colour
of their score, and are numbered in the order of scoring.
"""

import matplotlib.pyplot as plt

import polyabayes as pb


def log_score(k, m):
    """A score that never falls as sizes grow, as bounds of trained models."""
    return -60 - 25 / k - 18 / m - 6 / (k * m)


prior = pb.priors.Product(pb.priors.Poisson(2), pb.priors.Poisson(2))
search = pb.WitnessSearch(log_score, prior, strategy="widest", max_steps=20).fit()
table = search.bounds_
x, y = table["size_1"], table["size_2"]
plt.scatter(x, y, c=table["log_score"], marker="s", s=330, alpha=0.6)
for step, place in enumerate(zip(x, y, strict=True), start=1):
    plt.annotate(str(step), place, ha="center", va="center")
plt.colorbar(label="ln p(y | sizes) (nats)")
plt.locator_params(integer=True)
plt.xlabel("first size")
plt.ylabel("second size")
plt.show()
