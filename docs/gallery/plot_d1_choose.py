"""
How many topics?
================

Sizes are compared on the same held-out folds, so that the difference between two sizes has a
small error even where each score has a large one. Below: criteria that other packages offer.
"""

import matplotlib.pyplot as plt

import polyabayes as pb

corpus = pb.datasets.make_lda_corpus(
    300, 200, 6, document_length=50, random_state=0
).corpus
choice = pb.choose_n_components(
    pb.LatentDirichletAllocation(max_iter=50),
    corpus,
    [2, 4, 6, 8, 12],
    n_folds=3,
    random_state=0,
)
print(choice)
pb.plotting.plot_choice(choice)
plt.show()
