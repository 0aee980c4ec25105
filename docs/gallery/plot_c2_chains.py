"""
Several chains
==============

Chains from different seeds should agree. If they do not, the sampler still depends on
its start.
"""

import matplotlib.pyplot as plt

import polyabayes as pb

corpus = pb.datasets.make_lda_corpus(
    200, 150, 5, document_length=40, random_state=0
).corpus
model = pb.LatentDirichletAllocation(5, max_iter=80)
chains = pb.sample_chains(model, corpus, n_chains=4, random_state=0)
pb.plotting.plot_trace({f"chain {i}": chain for i, chain in enumerate(chains.models)})
plt.title("Four chains reach the same joint density")
plt.show()
