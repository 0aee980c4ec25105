"""
A prior that leaves topics empty
================================

The beta-gamma-gamma prior learns a shape for every topic. Of twenty topics, it uses
about as many as the data have. The shares of the tokens show which.
"""

import matplotlib.pyplot as plt

import polyabayes as pb

data = pb.datasets.make_gamma_poisson_corpus(300, 150, 5, random_state=0)
pfa = pb.PoissonFactorAnalysis(20, max_iter=200, random_state=0).fit(data.corpus)
print(f"{pfa.n_active_} of 20 topics have tokens; the documents were made from 5")
pb.plotting.plot_topic_weights(pfa)
plt.show()
