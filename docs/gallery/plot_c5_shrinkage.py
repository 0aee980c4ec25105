"""
A prior that leaves topics empty
================================

The beta-gamma-gamma prior learns a shape for every topic, so superfluous topics stay
nearly empty. The documents are drawn from five topics. Of the twenty topics of the
model, five hold 97 % of the tokens.
"""

import matplotlib.pyplot as plt
import numpy as np

import polyabayes as pb

data = pb.datasets.make_gamma_poisson_corpus(300, 150, 5, random_state=0)
pfa = pb.PoissonFactorAnalysis(20, max_iter=200, random_state=0).fit(data.corpus)
largest = np.sort(pfa.topic_counts_)[-5:]
print(f"five topics hold {largest.sum() / pfa.topic_counts_.sum():.0%} of the tokens")
pb.plotting.plot_topic_weights(pfa)
plt.show()
