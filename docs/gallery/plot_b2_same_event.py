"""
LDA and Poisson factor analysis on one scale
============================================

LDA gives the probability of ordered tokens given the length of the document. A
gamma-Poisson model gives the probability of the counts and of the length. With
``event`` and ``given_length``, both give the probability of the same event. Otherwise
their likelihoods differ by hundreds of nats that say nothing about topics.
"""

import matplotlib.pyplot as plt

import polyabayes as pb

corpus = pb.datasets.make_gamma_poisson_corpus(400, 150, 5, random_state=0).corpus
train, test = corpus.split(test_size=0.25, random_state=0)
lda = pb.LatentDirichletAllocation(5, max_iter=80, random_state=0).fit(train)
pfa = pb.PoissonFactorAnalysis(5, max_iter=80, random_state=0).fit(train)

own = {
    "LDA: tokens in order, length given": pb.log_likelihood(lda, test, random_state=0),
    "PFA: counts and length": pb.log_likelihood(pfa, test, random_state=0),
}
for name, result in own.items():
    print(f"{name:35} {result.nats_per_token:8.4f} nats per token")

# %%
# The same event for both:

comparison = pb.compare({"LDA": lda, "PFA": pfa}, test, random_state=0)
print(comparison)
pb.plotting.plot_comparison(comparison)
plt.show()
