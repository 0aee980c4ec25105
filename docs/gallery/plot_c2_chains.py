"""
Several chains
==============

Chains from different seeds agree, or the sampler has not yet forgotten where it began.
Densities of one kind of model share an axis.
"""

import matplotlib.pyplot as plt

import polyabayes as pb

corpus = pb.datasets.make_lda_corpus(
    200, 150, 5, document_length=40, random_state=0
).corpus
model = pb.LatentDirichletAllocation(5, max_iter=80)
chains = pb.sample_chains(model, corpus, n_chains=4, random_state=0)
pb.plotting.plot_trace({f"chain {i}": chain for i, chain in enumerate(chains.models)})
plt.show()
